/* SPDX-License-Identifier: Apache-2.0 */

#include "crew.h"

#include <err.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"
#include "stats.h"

/* A phase has two steps, making ready and running; the last step is the end. */
#define STEPS_MAX (2 * BENCH_PHASES_MAX + 1)

typedef struct Shared {
        atomic_uint n_arrived[STEPS_MAX];        /* processes that wait for a step to begin */
        atomic_uint gate;                        /* steps before this one have begun */
        uint64_t opened_ns[BENCH_PROCESSES_MAX]; /* how long it took */
        LoopReport reports[];
} Shared;

typedef struct Crew {
        const CrewOptions *options;
        Shared *shared;
        pid_t pids[BENCH_PROCESSES_MAX];
} Crew;

/* ---- a process -------------------------------------------------------------------- */

static void step_wait(Shared *shared, unsigned step) {
        atomic_fetch_add(&shared->n_arrived[step], 1);
        while (atomic_load(&shared->gate) <= step)
                usleep(50);
}

static void member_phase(const Crew *crew, Loop *loop, unsigned k, LoopReport *report) {
        const CrewPhase *phase = &crew->options->phases[k];

        step_wait(crew->shared, 2 * k);
        loop_prepare(loop, phase->data);
        if (!crew->options->cold)
                loop_run(loop, phase->n_in_flight, 0, NULL);

        step_wait(crew->shared, 2 * k + 1);
        report->n_jobs = 0;
        report->first_ns = bench_now_ns();
        loop_run(loop, phase->n_in_flight, report->first_ns + (uint64_t)(phase->seconds * 1e9),
                 report);
}

static void member_main(const Crew *crew, unsigned number) {
        const CrewOptions *options = crew->options;
        uint64_t t = bench_now_ns();
        Loop *loop;

        loop = loop_new(options->contender, &options->bench, number);
        crew->shared->opened_ns[number] = bench_now_ns() - t;

        for (unsigned k = 0; k < options->n_phases; k++)
                member_phase(crew, loop, k, &crew->shared->reports[number]);
        step_wait(crew->shared, 2 * options->n_phases);
        loop_free(loop);
}

static void member_burst(const Crew *crew, unsigned number) {
        const CrewOptions *options = crew->options;
        Loop *loop = loop_new(options->contender, &options->bench, number);

        loop_prepare(loop, options->phases[0].data);
        loop_run(loop, 1, 0, &crew->shared->reports[number]);
        loop_free(loop);
}

/* ---- all of them ------------------------------------------------------------------- */

static void crew_new(const CrewOptions *options, Crew *crew) {
        size_t size = sizeof(Shared) + options->n_processes * sizeof(LoopReport);

        crew->options = options;
        crew->shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (crew->shared == MAP_FAILED)
                err(1, "mmap");
}

static void crew_kill(const Crew *crew) {
        for (unsigned i = 0; i < crew->options->n_processes; i++)
                if (crew->pids[i] > 0)
                        kill(crew->pids[i], SIGKILL);
}

/* No member outlives this process, however that ends. */
static void crew_fork(Crew *crew, void (*member)(const Crew *, unsigned)) {
        pid_t parent = getpid();

        fflush(stdout);
        for (unsigned i = 0; i < crew->options->n_processes; i++) {
                pid_t pid = fork();

                if (pid < 0) {
                        crew_kill(crew);
                        err(1, "fork");
                }
                if (pid == 0) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        if (getppid() != parent)
                                _exit(1);
                        member(crew, i);
                        exit(0);
                }
                crew->pids[i] = pid;
        }
}

static void crew_reaped(Crew *crew, pid_t pid, int status) {
        for (unsigned i = 0; i < crew->options->n_processes; i++)
                if (crew->pids[i] == pid)
                        crew->pids[i] = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return;

        crew_kill(crew);
        errx(1, "%s: a process of %u failed", crew->options->contender->name,
             crew->options->n_processes);
}

static void crew_await(Crew *crew, unsigned step) {
        int status;

        while (atomic_load(&crew->shared->n_arrived[step]) < crew->options->n_processes) {
                pid_t pid = waitpid(-1, &status, WNOHANG);

                if (pid > 0)
                        crew_reaped(crew, pid, status);
                else
                        usleep(200);
        }
}

static void crew_begin(Crew *crew, unsigned step) {
        atomic_store(&crew->shared->gate, step + 1);
}

static void crew_reap(Crew *crew) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, 0)) > 0)
                crew_reaped(crew, pid, status);
}

static void crew_hold(const Crew *crew) {
        int c;

        fflush(stdout);
        while (crew->options->hold && (c = getchar()) != '\n')
                if (c == EOF) {
                        crew_kill(crew);
                        errx(1, "nobody waits for the result any more");
                }
}

static void crew_print(const Crew *crew, unsigned k) {
        const CrewOptions *options = crew->options;
        const CrewPhase *phase = &options->phases[k];
        uint64_t opened = 0;
        Stats stats;

        for (unsigned i = 0; i < options->n_processes; i++)
                if (crew->shared->opened_ns[i] > opened)
                        opened = crew->shared->opened_ns[i];
        stats_make(crew->shared->reports, options->n_processes, &stats);
        printf("{\"contender\": \"%s\", \"data\": \"%s\", \"n\": %zu, \"launches\": %u, "
               "\"processes\": %u, \"in_flight\": %u, \"jobs\": %llu, \"seconds\": %.6f, "
               "\"jobs_per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"open_s\": %.4f}\n",
               options->contender->name, bench_data_name(phase->data), options->bench.n,
               options->bench.n_launches, options->n_processes, phase->n_in_flight,
               (unsigned long long)stats.n_jobs, stats.seconds,
               (double)stats.n_jobs / stats.seconds, stats.p50_us, stats.p99_us,
               (double)opened / 1e9);
}

void crew_run(const CrewOptions *options) {
        Crew crew = {0};

        if (options->hold)
                prctl(PR_SET_PDEATHSIG, SIGKILL); /* of who holds it */
        crew_new(options, &crew);
        crew_fork(&crew, member_main);
        for (unsigned k = 0; k < options->n_phases; k++) {
                crew_await(&crew, 2 * k);
                crew_begin(&crew, 2 * k);
                crew_await(&crew, 2 * k + 1);
                if (options->hold)
                        printf("{\"ready\": %u}\n", k);
                crew_hold(&crew);
                crew_begin(&crew, 2 * k + 1);
                crew_await(&crew, 2 * k + 2);
                crew_print(&crew, k);
        }
        crew_hold(&crew);
        crew_begin(&crew, 2 * options->n_phases);
        crew_reap(&crew);
}

void crew_burst(const CrewOptions *options) {
        uint64_t first = bench_now_ns(), last = first;
        Crew crew = {0};

        crew_new(options, &crew);
        crew_fork(&crew, member_burst);
        crew_reap(&crew);
        for (unsigned i = 0; i < options->n_processes; i++)
                if (crew.shared->reports[i].last_ns > last)
                        last = crew.shared->reports[i].last_ns;
        printf("{\"contender\": \"%s\", \"processes\": %u, \"burst_s\": %.4f}\n",
               options->contender->name, options->n_processes, (double)(last - first) / 1e9);
}

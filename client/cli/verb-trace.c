/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq trace - write when and where jobs waited and ran, for Perfetto
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/human.h"
#include "io.h"
#include "number.h"
#include "trace.h"
#include "verb.h"

#define TRACE_SECONDS_MS 5000u
#define TRACE_PAUSE_MS   100u /* gpuqd keeps a job for 250 ms at least */

typedef struct TraceOptions {
        uint32_t ms;
        const char *path; /* NULL: standard output */
} TraceOptions;

typedef struct TraceRun {
        Cli *cli;
        gpuq_trace_cursor cursor;
        TraceFile *file;
        gpuq_queue *unfinished; /* asked for at the end */
        TraceSummary summary;
} TraceRun;

static volatile sig_atomic_t trace_is_stopped;

/* ---- time and signals ---------------------------------------------------------- */

static void trace_on_signal(int signal) {
        trace_is_stopped = 1;
}

/* The first signal ends the trace, the second one the program. */
static void trace_take_signals(void) {
        static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
        struct sigaction action = {.sa_handler = trace_on_signal, .sa_flags = (int)SA_RESETHAND};

        for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
                (void)sigaction(signals[i], &action, NULL);
}

static uint64_t trace_clock_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A signal cuts it short. */
static void trace_sleep(uint64_t ms) {
        struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
                                 .tv_nsec = (long)(ms % 1000) * 1000000};

        (void)nanosleep(&pause, NULL);
}

/* ---- what gpuqd says -------------------------------------------------------------- */

static gpuq_queue_entry *trace_find_unfinished(const TraceRun *run, uint64_t id) {
        for (size_t i = 0; run->unfinished && i < run->unfinished->n_entries; i++)
                if (run->unfinished->entries[i].id == id)
                        return &run->unfinished->entries[i];
        return NULL;
}

/* Return: 0 or an exit code. */
static int trace_add(TraceRun *run, const gpuq_trace_job *job, const char *reason) {
        gpuq_queue_entry *entry = trace_find_unfinished(run, job->id);

        if (entry)
                entry->id = 0; /* it has ended meanwhile */
        return trace_file_add(run->file, job, reason) < 0 ? cli_no_memory(run->cli) : 0;
}

static int trace_take(TraceRun *run, const gpuq_trace *trace) {
        char text[80];
        int r = 0;

        run->summary.now_ns = trace->now_ns;
        run->summary.unix_ns = trace->unix_ns;
        run->summary.n_lost += trace->lost;
        if (trace->lost) {
                snprintf(text, sizeof(text), "%llu jobs that ended before are missing",
                         (unsigned long long)trace->lost);
                trace_file_mark(run->file, trace->now_ns, text);
        }
        for (size_t i = 0; r == 0 && i < trace->n_jobs; i++)
                r = trace_add(run, &trace->jobs[i], "");
        return r;
}

/* Begin again where gpuqd has forgotten the trace. Return: 0 or an exit code. */
static int trace_get(TraceRun *run, gpuq_trace **ret_trace) {
        bool is_first = !run->cursor.trace;
        int r;

        r = gpuq_get_trace(run->cli->client, &run->cursor, ret_trace);
        if (r == GPUQ_E_NOT_FOUND && !is_first) {
                run->cursor = (gpuq_trace_cursor){0};
                run->summary.n_gaps++;
                r = gpuq_get_trace(run->cli->client, &run->cursor, ret_trace);
        }
        return r < 0 ? cli_failed(run->cli, EXIT_WHEN_ASKED, r) : 0;
}

static bool trace_ended_after(const gpuq_trace *trace, uint64_t at_ns) {
        return trace->n_jobs > 0 && trace->jobs[trace->n_jobs - 1].ended_ns > at_ns;
}

/* All jobs that had ended at the first answer. Others may end faster than they are read. */
static int trace_read(TraceRun *run) {
        uint64_t until_ns = 0;
        gpuq_trace *trace;
        bool goes_on = true;
        int r = 0;

        while (r == 0 && goes_on) {
                r = trace_get(run, &trace);
                if (r)
                        return r;
                if (!until_ns)
                        until_ns = trace->now_ns;
                r = trace_take(run, trace);
                goes_on = !trace->is_last && !trace_ended_after(trace, until_ns);
                gpuq_trace_free(trace);
        }
        return r;
}

/* ---- jobs that have not ended ------------------------------------------------------- */

static gpuq_trace_job trace_unfinished_job(const gpuq_queue_entry *entry, uint64_t now_ns) {
        bool is_running = strcmp(entry->state, "running") == 0;
        uint64_t ran_ns = is_running ? entry->ran_us * 1000 : 0;

        return (gpuq_trace_job){
                .id = entry->id,
                .uid = entry->uid,
                .state = entry->state,
                .code = "",
                .label = entry->label,
                .kernels = entry->kernel,
                .program = "",
                .device = is_running ? entry->device : -1,
                .stream = -1,
                .submitted_ns = now_ns - MIN(now_ns, ran_ns + entry->waited_us * 1000),
                .started_ns = is_running ? now_ns - MIN(now_ns, ran_ns) : 0,
                .ended_ns = now_ns,
                .ran_us = is_running ? entry->ran_us : 0,
                .retries = entry->retries,
        };
}

static int trace_add_unfinished(TraceRun *run) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < run->unfinished->n_entries; i++) {
                const gpuq_queue_entry *entry = &run->unfinished->entries[i];
                gpuq_trace_job job = trace_unfinished_job(entry, run->summary.now_ns);

                if (entry->id >> 32) /* a detached job that waits belongs to no session */
                        r = trace_file_add(run->file, &job, entry->reason);
        }
        return r < 0 ? cli_no_memory(run->cli) : 0;
}

/* The list comes before the last jobs that ended, so that none is missing in both. */
static int trace_finish(TraceRun *run) {
        int64_t uid = run->summary.all_users ? -1 : (int64_t)getuid();
        int r;

        r = gpuq_get_queue(run->cli->client, uid, &run->unfinished);
        if (r < 0)
                return cli_failed(run->cli, EXIT_WHEN_ASKED, r);
        r = trace_read(run);
        return r ? r : trace_add_unfinished(run);
}

/* ---- the trace ------------------------------------------------------------------------ */

static int trace_begin(TraceRun *run, FILE *stream) {
        gpuq_trace *trace;
        int r;

        r = trace_get(run, &trace);
        if (r)
                return r;
        run->summary.now_ns = trace->now_ns;
        run->summary.unix_ns = trace->unix_ns;
        run->summary.all_users = trace->all_users;
        r = trace_file_new(stream, trace->now_ns, &run->file);
        gpuq_trace_free(trace);
        return r < 0 ? cli_no_memory(run->cli) : 0;
}

static int trace_watch(TraceRun *run, uint32_t ms) {
        uint64_t end_ms = trace_clock_ms() + ms, now_ms;
        int r = 0;

        while (r == 0 && !trace_is_stopped && (now_ms = trace_clock_ms()) < end_ms) {
                trace_sleep(MIN(end_ms - now_ms, TRACE_PAUSE_MS));
                r = trace_read(run);
        }
        return r ? r : trace_finish(run);
}

static void trace_warn(const TraceSummary *summary) {
        if (summary->n_lost)
                fprintf(stderr,
                        "gpuq: trace: %llu jobs are missing: gpuqd keeps 4,096 jobs of each trace, "
                        "each for 0.25 s\n",
                        (unsigned long long)summary->n_lost);
        if (summary->n_gaps)
                fprintf(stderr,
                        "gpuq: trace: the trace was interrupted %u times, by a restart of gpuqd or "
                        "because this program was stopped; the jobs that ended meanwhile are "
                        "missing\n",
                        summary->n_gaps);
}

/* What was read until an error is written all the same. @ret_is_there: false: it could not begin. */
static int trace_write(Cli *cli, const TraceOptions *options, FILE *stream, bool *ret_is_there) {
        TraceRun run = {.cli = cli};
        int r;

        r = trace_begin(&run, stream);
        *ret_is_there = r == 0;
        if (r)
                return r;
        fprintf(stderr, "gpuq: trace: tracing the jobs of %s for %s; Ctrl-C ends it\n",
                run.summary.all_users ? "all users" : "this user",
                human_us(options->ms * UINT64_C(1000)).text);
        r = trace_watch(&run, options->ms);
        trace_file_end(run.file, &run.summary);
        trace_warn(&run.summary);
        trace_file_free(run.file);
        gpuq_queue_free(run.unfinished);
        return r;
}

static int trace_cannot_write(Cli *cli, const char *path, int error) {
        return problem_set(&cli->problem, EXIT_JOB_FAILED, "%s: cannot write: %s", path,
                           strerror(error));
}

static int trace_write_file(Cli *cli, const TraceOptions *options) {
        _cleanup_(outfile_freep) OutFile *file = NULL;
        bool is_there;
        FILE *stream;
        int fd, commit, r;

        r = outfile_new(options->path, &file);
        if (r < 0)
                return trace_cannot_write(cli, options->path, -r);
        fd = dup(outfile_fd(file));
        stream = fd < 0 ? NULL : fdopen(fd, "w");
        if (!stream) {
                if (fd >= 0)
                        close(fd);
                return cli_no_memory(cli);
        }
        r = trace_write(cli, options, stream, &is_there);
        if (ferror(stream) | (fclose(stream) != 0))
                return trace_cannot_write(cli, options->path, errno);
        if (!is_there)
                return r;
        commit = outfile_commit(file);
        return commit < 0 ? trace_cannot_write(cli, options->path, -commit) : r;
}

/* ---- options ---------------------------------------------------------------------------- */

static int trace_read_option(Cli *cli, int option, TraceOptions *options) {
        if (option == 'o') {
                options->path = strcmp(optarg, "-") == 0 ? NULL : optarg;
                return *optarg ? 0 : cli_option(cli, "--output", "a file, or -");
        }
        return number_ms(optarg, &options->ms) < 0
                       ? cli_option(cli, "--seconds", "a number of seconds above 0, such as 5")
                       : 0;
}

static int trace_read_options(Cli *cli, int argc, char **argv, TraceOptions *options) {
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                r = trace_read_option(cli, option, options);
                if (r)
                        return r;
        }
        if (r < 0)
                return r;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        if (!options->path && isatty(STDOUT_FILENO))
                return cli_usage(cli,
                                 "a trace is no text for a terminal: name a file with -o FILE");
        return 0;
}

static int trace_run(Cli *cli, int argc, char **argv) {
        TraceOptions options = {.ms = TRACE_SECONDS_MS};
        bool is_there;
        int r;

        r = trace_read_options(cli, argc, argv, &options);
        if (r)
                return r < 0 ? (int)cli->code : r;

        trace_take_signals();
        r = cli_connect(cli);
        if (r)
                return r;
        return options.path ? trace_write_file(cli, &options)
                            : trace_write(cli, &options, stdout, &is_there);
}

static const struct option trace_options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"output", required_argument, NULL, 'o'},
        VERB_OPTIONS_TEXT,
};

const Verb verb_trace = {
        .name = "trace",
        .arguments = "[OPTION...] -o FILE",
        .summary = "write when and where jobs waited and ran, for ui.perfetto.dev",
        .help = "  -s, --seconds SECONDS  end after this time, not after 5 s; Ctrl-C ends it at "
                "once\n"
                "  -o, --output FILE      write to this file; -: to standard output, as without "
                "it\n",
        .shorts = "s:o:",
        .options = trace_options,
        .run = trace_run,
};

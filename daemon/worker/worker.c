/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worker
 */
#include "worker/worker.h"

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "util/log.h"
#include "util/sandbox.h"
#include "worker/device.h"
#include "worker/library.h"
#include "worker/report.h"
#include "worker/spare.h"

/* Messages taken in one turn, so that completions do not wait behind a flood of jobs. */
#define WORKER_MESSAGES_MAX 256

/* How often libuv gets a turn while the loop spins. */
#define WORKER_POLL_NS UINT64_C(100000)

/* Intervals of the statistics: while busy, and a little after the worker became idle, because
 * that happens often with small jobs. */
#define WORKER_STATS_BUSY_NS UINT64_C(1000000000)
#define WORKER_STATS_IDLE_MS 200

/* How long a worker that ends tries to send its last messages to a supervisor that does not
 * read. */
#define WORKER_LAST_WORDS_NS UINT64_C(500000000)

/* ---- the end ------------------------------------------------------------------------ */

void worker_exit(Worker *worker, int status) {
        compilers_kill(&worker->compilers);
        output_forward(&worker->output);
        log_flush();
        _exit(status);
}

void worker_check_sent(Worker *worker, int r) {
        if (r == 0)
                return;
        if (r != CHANNEL_E_CLOSED)
                log_error("cannot send a message to the supervisor: %s",
                          r < 0 ? strerror(-r) : "the ring is corrupt");
        worker_exit(worker, r == CHANNEL_E_CLOSED ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void worker_nanosleep(uint64_t n_ns) {
        struct timespec time = {.tv_nsec = (long)n_ns};

        nanosleep(&time, NULL);
}

static void worker_last_words(Worker *worker) {
        uint64_t until_ns = uv_hrtime() + WORKER_LAST_WORDS_NS;

        while (outbox_flush(&worker->outbox) == 0 && !outbox_is_empty(&worker->outbox) &&
               uv_hrtime() < until_ns)
                worker_nanosleep(1000000);
}

static bool worker_all_have_words(const Worker *worker) {
        const Job *job;

        TAILQ_FOREACH (job, &worker->runner.ended, link)
                if (failure_is_set(&job->failure) || !word_is_ready(&job->word))
                        return false;
        return true;
}

/* Has the supervisor processed all earlier ends that have no word? */
static bool worker_is_clear(Worker *worker) {
        if (worker->has_wordless && channel_is_dealt_with(worker->channel, worker->wordless_to))
                worker->has_wordless = false;
        return !worker->has_wordless;
}

/*
 * If a client sees a word, it assumes that all earlier jobs have ended, too. If supervisor and
 * worker die at that moment, the next supervisor finds only words. So a word is stored only if the
 * supervisor has processed every earlier end that has no word. Ends that wait for space in the
 * ring have no word.
 */
static int worker_report_ends(Worker *worker) {
        bool may_store;
        Job *job;
        int r;

        if (worker->has_held_back && outbox_is_empty(&worker->outbox)) {
                worker->wordless_to = channel_written(worker->channel);
                worker->has_held_back = false;
        }
        r = report_ends(&worker->outbox, &worker->runner.ended);
        if (r)
                return r;
        may_store = outbox_is_empty(&worker->outbox) && worker_all_have_words(worker) &&
                    worker_is_clear(worker);
        TAILQ_FOREACH (job, &worker->runner.ended, link)
                word_end(&job->word, job->id, may_store);
        if (may_store)
                return 0;
        worker->has_wordless = true;
        worker->wordless_to = channel_written(worker->channel);
        worker->has_held_back |= !outbox_is_empty(&worker->outbox);
        return 0;
}

static void worker_report_stopped(Worker *worker, const Failure *failure, const char *output) {
        bool any;

        /* The report must stay true although the GPU goes on until this process has ended. */
        streams_shut(&worker->streams);
        /* Jobs whose done word arrived meanwhile have succeeded: all their work is done. */
        (void)runner_collect(&worker->runner, uv_hrtime(), &any);
        (void)directs_end(&worker->directs, uv_hrtime());
        (void)directs_give_back_all(&worker->directs);
        if (!TAILQ_EMPTY(&worker->runner.ended))
                (void)worker_report_ends(worker);
        (void)report_stopped(&worker->outbox, &worker->runner, failure, output);
        worker_last_words(worker);
}

void worker_stop(Worker *worker) {
        worker_report_stopped(worker, &(Failure){0}, NULL);
        worker_exit(worker, EXIT_SUCCESS);
}

/* A call reported the fault. The stream on which it happened has the reason. */
static void worker_name_fault(Worker *worker, Failure *failure) {
        CUresult result = streams_query(&worker->streams);
        const Job *job;
        char text[256];

        if (result != CUDA_SUCCESS) {
                result_text(worker->driver, result, text, sizeof(text));
                failure_set(failure, GPUQ__V1__CODE__E_FAULT, "%s", text);
                failure->is_device = device_broke(result);
                return;
        }
        TAILQ_FOREACH (job, &worker->runner.waiting, link)
                if (job->failure.code == GPUQ__V1__CODE__E_FAULT)
                        failure_copy(failure, &job->failure);
        TAILQ_FOREACH (job, &worker->runner.in_flight, link)
                if (job->failure.code == GPUQ__V1__CODE__E_FAULT)
                        failure_copy(failure, &job->failure);
        if (!failure_is_set(failure))
                failure_set(failure, GPUQ__V1__CODE__E_FAULT,
                            "the CUDA context cannot be used any more");
}

void worker_fault(Worker *worker) {
        Failure failure = {0};
        char *output = NULL;

        worker_name_fault(worker, &failure);
        /* The driver writes the text of failed asserts when the context is synchronised. */
        if (streams_query(&worker->streams) != CUDA_SUCCESS)
                (void)worker->driver->cuCtxSynchronize();
        (void)output_take_errors(&worker->output, &output);

        log_info("%s", failure.text ? failure.text : "a fault");
        worker_report_stopped(worker, &failure, output);
        worker_exit(worker, EXIT_SUCCESS);
}

static void worker_check(Worker *worker, int r) {
        if (r == 0)
                return;
        if (r == FAILURE_E_FAULT)
                worker_fault(worker);
        log_error("%s", strerror(r < 0 ? -r : EIO));
        worker_exit(worker, EXIT_FAILURE);
}

/* ---- what its objects tell it ------------------------------------------------------------ */

static void worker_on_arena(Arena *arena, void *userdata) {
        Worker *worker = userdata;

        worker_check_sent(worker, report_arena(&worker->outbox, arena));
        if (arena->failure.code == GPUQ__V1__CODE__E_FAULT)
                worker_fault(worker);
        runner_forget_addresses(&worker->runner);
        runner_changed(&worker->runner);
}

static void worker_on_module(Module *module, void *userdata) {
        Worker *worker = userdata;

        worker_check_sent(worker, report_module(&worker->outbox, module));
        runner_changed(&worker->runner);
}

static void worker_on_builtin(const Image *image, void *userdata) {
        Worker *worker = userdata;

        if (!image)
                log_warning("gpuq's own kernels cannot be loaded: jobs run one by one and use copy "
                            "engines");
        runner_open(&worker->runner, image);
}

static void worker_on_unload(void *userdata) {
        Worker *worker = userdata;

        runner_forget_functions(&worker->runner);
}

static void worker_on_memory(const MemoryUse *use, void *userdata) {
        Worker *worker = userdata;

        worker_check_sent(worker, report_stats(&worker->outbox, use, &worker->runner));
}

static Arena *worker_find_arena(void *userdata, uint64_t id) {
        return arenas_find(&((Worker *)userdata)->arenas, id);
}

static Module *worker_find_module(void *userdata, uint64_t id) {
        return modules_find(&((Worker *)userdata)->modules, id);
}

static void worker_on_bell(uv_poll_t *poll, int status, int events) {
        Worker *worker = poll->data;

        if (channel_wake(worker->channel) == CHANNEL_E_CLOSED)
                worker_exit(worker, EXIT_SUCCESS);
}

static void worker_on_hangup(uv_poll_t *poll, int status, int events) {
        worker_exit(poll->data, EXIT_SUCCESS);
}

static void worker_on_stats(uv_timer_t *timer) {
        Worker *worker = timer->data;

        /* Only when idle: the text of a failed assert belongs to a running job. */
        if (runner_is_idle(&worker->runner))
                output_forward(&worker->output);
        memory_ask(&worker->memory);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void worker_take_messages(Worker *worker, bool *ret_any) {
        bool any = true;

        for (unsigned i = 0; i < WORKER_MESSAGES_MAX && any; ++i) {
                worker_check(worker, worker_receive(worker, &any));
                *ret_any |= any;
        }
}

static void worker_tell_ends(Worker *worker) {
        if (!TAILQ_EMPTY(&worker->runner.ended))
                worker_check_sent(worker, directs_end(&worker->directs, uv_hrtime()));
        if (TAILQ_EMPTY(&worker->runner.ended))
                return;
        worker_check_sent(worker, worker_report_ends(worker));
        runner_free_ended(&worker->runner);
}

static void worker_tell(Worker *worker, uint64_t now_ns) {
        Job *job;

        while ((job = runner_next_late(&worker->runner, now_ns))) {
                worker_check_sent(worker, directs_late(&worker->directs, job));
                worker_check_sent(worker, report_late(&worker->outbox, job));
        }
        worker_tell_ends(worker);
        worker_check_sent(worker, outbox_flush(&worker->outbox));
}

/* Ends first, because clients wait for them, and one launch takes as long as reading several
 * jobs. Return: whether anything happened. */
static bool worker_turn(Worker *worker, uint64_t now_ns) {
        bool any = false;

        worker_check(worker, runner_collect(&worker->runner, now_ns, &any));
        worker_tell_ends(worker);
        worker_take_messages(worker, &any);
        worker_check_sent(worker, directs_take(&worker->directs, now_ns, &any));
        any |= arenas_poll(&worker->arenas);
        worker_check(worker, runner_turn(&worker->runner, now_ns, &any));
        worker_tell(worker, now_ns);
        return any;
}

static void worker_keep_figures(Worker *worker, uint64_t now_ns) {
        bool busy = !runner_is_idle(&worker->runner);

        if (busy && now_ns >= worker->stats_at_ns) {
                worker->stats_at_ns = now_ns + WORKER_STATS_BUSY_NS;
                memory_ask(&worker->memory);
        }
        if (worker->was_busy && !busy && !uv_is_active((uv_handle_t *)&worker->stats))
                uv_timer_start(&worker->stats, worker_on_stats, WORKER_STATS_IDLE_MS, 0);
        worker->was_busy = busy;
}

/* Return: false: there is a message, or a job in a direct ring. */
static bool worker_may_doze(Worker *worker) {
        if (!channel_sleep(worker->channel))
                return false;
        if (directs_sleep(&worker->directs))
                return true;
        (void)channel_wake(worker->channel);
        return false;
}

static void worker_rouse(Worker *worker) {
        (void)channel_wake(worker->channel);
        directs_wake(&worker->directs);
}

/* Sleeps until a message, a child, a thread or a timer has something. If jobs wait, a timer
 * still reports from time to time that the worker is alive. */
static void worker_sleep(Worker *worker) {
        if (!worker_may_doze(worker))
                return;
        if (!runner_is_idle(&worker->runner) && !uv_is_active((uv_handle_t *)&worker->stats))
                uv_timer_start(&worker->stats, worker_on_stats, WORKER_STATS_BUSY_NS / 1000000, 0);
        uv_run(&worker->loop, UV_RUN_ONCE);
        worker_rouse(worker);
}

/* As worker_sleep(), for a time too short for libuv's timers. */
static void worker_nap(Worker *worker, uint64_t nap_ns) {
        struct pollfd fd = {.fd = uv_backend_fd(&worker->loop), .events = POLLIN};
        struct timespec time = {.tv_nsec = (long)nap_ns};

        if (!worker_may_doze(worker))
                return;
        (void)ppoll(&fd, 1, &time, NULL);
        worker_rouse(worker);
        uv_run(&worker->loop, UV_RUN_NOWAIT);
}

/* Nothing is in flight here. If the supervisor is awake, it may have jobs in flight in other
 * workers, and the next job for this one in a moment. */
static bool worker_may_sleep(const Worker *worker, uint64_t now_ns) {
        return contention_is_busy(&worker->cores.contention) ||
               pace_may_sleep(&worker->pace, worker->options->poll_us * UINT64_C(1000),
                              channel_is_watched(worker->channel), now_ns);
}

static void worker_rest(Worker *worker, uint64_t now_ns, bool any) {
        bool busy = worker->streams.n_busy > 0 || !outbox_is_empty(&worker->outbox) ||
                    runner_is_holding(&worker->runner);
        bool is_contended;
        uint64_t nap_ns;

        is_contended = cores_are_busy(&worker->cores, now_ns);
        if (any)
                pace_event(&worker->pace, now_ns);
        if (!busy && !any && worker_may_sleep(worker, now_ns)) {
                worker_sleep(worker);
                pace_event(&worker->pace, uv_hrtime());
                return;
        }

        nap_ns = pace_next(&worker->pace, is_contended, now_ns);
        if (nap_ns > 0) {
                worker_nap(worker, nap_ns);
        } else if (now_ns >= worker->poll_at_ns) {
                worker->poll_at_ns = now_ns + WORKER_POLL_NS;
                uv_run(&worker->loop, UV_RUN_NOWAIT);
        }
}

static void __attribute__((noreturn)) worker_loop(Worker *worker) {
        memory_ask(&worker->memory);
        uv_run(&worker->loop, UV_RUN_NOWAIT);

        for (;;) {
                uint64_t now_ns = uv_hrtime();
                bool any = worker_turn(worker, now_ns);

                worker_keep_figures(worker, now_ns);
                worker_rest(worker, now_ns, any);
        }
}

/* ---- the start ------------------------------------------------------------------------------- */

int worker_open_driver(const WorkerOptions *options, Driver **ret_driver,
                       const char **ret_problem) {
        char path[PATH_MAX], number[16];

        if (!options->cpu)
                return driver_open("libcuda.so.1", ret_driver, ret_problem);

        snprintf(number, sizeof(number), "%u", options->cpu_devices);
        setenv("GPUQ_CPU_DEVICES", number, 1);
        if (options->cpu_threads > 0) {
                snprintf(number, sizeof(number), "%u", options->cpu_threads);
                setenv("GPUQ_CPU_THREADS", number, 1);
        }
        if (options->cpu_broken)
                setenv("GPUQ_CPU_BROKEN", options->cpu_broken, 1);
        snprintf(path, sizeof(path), "%s/libgpuq-cpu.so", options->libexec);
        return driver_open(path, ret_driver, ret_problem);
}

static int worker_init_driver(const Driver *driver, Failure *failure) {
        CUresult result = driver->cuInit(0);
        int r = result_check(driver, result, GPUQ__V1__CODE__E_NO_DEVICE, "cuInit", failure);

        failure->is_device = r && device_is_broken(result);
        return r ? FAILURE_E_SET : 0;
}

int worker_find_device(const WorkerOptions *options, Driver **ret_driver, unsigned *ret_ordinal,
                       Failure *failure) {
        const char *problem;
        int r;

        r = worker_open_driver(options, ret_driver, &problem);
        if (r < 0) {
                failure_set(failure, GPUQ__V1__CODE__E_NO_DEVICE, "%s", problem);
                failure->is_device = true;
                return FAILURE_E_SET;
        }
        r = worker_init_driver(*ret_driver, failure);
        if (r)
                return r;
        if (options->uuid)
                return device_find(*ret_driver, options->uuid, ret_ordinal, failure);
        *ret_ordinal = options->device;
        return 0;
}

static int worker_open_context(Worker *worker, Failure *failure) {
        int r;

        r = worker_find_device(worker->options, &worker->driver, &worker->ordinal, failure);
        if (r)
                return r;
        r = context_new(worker->driver, worker->ordinal, worker->options->sms, &worker->context,
                        failure);
        output_forward(&worker->output); /* what that logged, which is no output of a kernel */
        if (r)
                return r;
        return streams_init(&worker->streams, worker->context, failure);
}

static int worker_watch(Worker *worker, uv_poll_t *poll, int fd, int events, uv_poll_cb func) {
        int r;

        r = uv_poll_init(&worker->loop, poll, fd);
        if (r < 0)
                return r;
        poll->data = worker;
        return uv_poll_start(poll, events, func);
}

static int worker_start_loop(Worker *worker) {
        int r;

        r = uv_loop_init(&worker->loop);
        if (r < 0)
                return r;
        r = worker_watch(worker, &worker->bell, channel_bell_fd(worker->channel), UV_READABLE,
                         worker_on_bell);
        if (r < 0)
                return r;
        r = worker_watch(worker, &worker->socket, channel_socket_fd(worker->channel), UV_DISCONNECT,
                         worker_on_hangup);
        if (r < 0)
                return r;
        worker->stats.data = worker;
        return uv_timer_init(&worker->loop, &worker->stats);
}

static int worker_init_objects(Worker *worker) {
        const WorkerOptions *options = worker->options;
        const JobTables tables = {worker_find_arena, worker_find_module, worker};
        const CompilerSettings settings = {
                .libexec = options->libexec,
                .target = worker->context->target,
                .cache = options->cache,
                .builtin_cache = options->builtin_cache,
                .libraries = library_folders(options->libraries),
                .cache_bytes = options->cache_bytes,
                .timeout_s = options->compile_timeout_s,
                .device = worker->ordinal,
                .fence = options->fence,
        };
        const RunnerSettings runner = {
                .issue = {.coalesce = options->coalesce, .in_place = options->in_place},
                .coalesce_ns = options->coalesce_us * UINT64_C(1000),
        };
        int r;

        quiesce_init(&worker->quiesce);
        compilers_init(&worker->compilers, &worker->loop, &settings);
        modules_init(&worker->modules, worker->context, &worker->compilers, &worker->quiesce,
                     worker_on_module, worker_on_builtin, worker_on_unload, worker);
        arenas_init(&worker->arenas, worker->context, &worker->streams, &worker->quiesce,
                    &worker->loop, worker_on_arena, worker);
        memory_init(&worker->memory, worker->context, &worker->loop, worker_on_memory, worker);
        pace_init(&worker->pace, worker->driver->cpu);
        /* With the CPU driver, kernels of users run in this process. */
        (void)cores_open(&worker->cores, !worker->driver->cpu);
        r = runner_init(&worker->runner, worker->context, &worker->streams, &worker->quiesce,
                        &worker->output, &tables, &runner);
        if (r < 0)
                return r;
        directs_init(&worker->directs, &worker->runner, &worker->outbox, &worker->loop);
        r = library_new(worker->context, options->libraries);
        if (r < 0)
                return r;
        return modules_load_builtin(&worker->modules);
}

/* ---- a spare ------------------------------------------------------------------------------- */

static void worker_on_assignment(uv_poll_t *poll, int status, int events) {
        static Assignment assignment; /* its path is used from now on */
        Worker *worker = poll->data;
        const char *problem = "read its assignment";
        int r;

        r = assignment_receive(ASSIGNMENT_FD, &assignment);
        if (r == -EAGAIN)
                return;
        assert(TAILQ_EMPTY(&worker->compilers.running)); /* it would still be root */
        if (r == 0)
                r = spare_become(&assignment, &problem);
        if (r < 0) {
                log_error("a spare worker cannot %s: %s", problem, strerror(-r));
                worker_exit(worker, EXIT_FAILURE);
        }
        if (assignment.cache[0])
                worker->compilers.settings.cache = assignment.cache;
        worker->is_assigned = true;
        uv_poll_stop(poll);
        close(ASSIGNMENT_FD);
}

/* In the loop of a spare. No jobs come yet; gpuq's own kernels are loaded. */
static void worker_await(Worker *worker, const bool *is_true) {
        bool any;

        while (!*is_true) {
                worker_check_sent(worker, outbox_flush(&worker->outbox));
                uv_run(&worker->loop, UV_RUN_ONCE);
                worker_check(worker, runner_turn(&worker->runner, uv_hrtime(), &any));
        }
}

/* gpuqd-compiler, which brings gpuq's own kernels, must have ended before: it is root's, like this. */
static void worker_await_user(Worker *worker) {
        worker_await(worker, &worker->runner.open);
        worker_check(worker, worker_watch(worker, &worker->assignment, ASSIGNMENT_FD, UV_READABLE,
                                          worker_on_assignment));
        worker_await(worker, &worker->is_assigned);
}

static void worker_say_ready(Worker *worker, const Failure *failure) {
        uint64_t n_free = worker->context ? context_free_bytes(worker->context) : 0;

        worker_check_sent(worker, report_ready(&worker->outbox, n_free, failure));
}

/*
 * Not earlier: libcuda, which may start a setuid program, has its context now. Not later: nothing of a
 * client's has come yet. What a spare starts gets no rights beyond its own, so it cannot do without.
 */
static int worker_give_up_calls(Worker *worker, SandboxRole role) {
        int r;

        if (role == SANDBOX_SPARE && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = sandbox_enter(role);
        if (r < 0) {
                log_warning("runs without a filter of system calls: %s", strerror(-r));
                output_forward(&worker->output); /* it is no job's */
        }
        return 0;
}

int worker_run(const WorkerOptions *options, Channel *channel) {
        static Worker worker;
        Failure failure = {0};
        int r;

        worker.options = options;
        worker.channel = channel;
        outbox_init(&worker.outbox, channel);
        TAILQ_INIT(&worker.compilers.running);

        r = output_open(&worker.output);
        if (r < 0)
                failure_set(&failure, GPUQ__V1__CODE__E_INTERNAL, "stdout: %s", strerror(-r));
        if (r == 0)
                r = worker_open_context(&worker, &failure);
        if (r == 0)
                r = worker_give_up_calls(&worker, options->spare ? SANDBOX_SPARE : SANDBOX_WORKER);
        if (r == 0)
                r = worker_start_loop(&worker);
        if (r == 0)
                r = worker_init_objects(&worker);
        if (r < 0 && !failure_is_set(&failure))
                failure_set(&failure, GPUQ__V1__CODE__E_INTERNAL, "%s", strerror(-r));

        /* Not earlier: libcuda names its threads in /proc, where an undumpable process may not
         * write. */
        prctl(PR_SET_DUMPABLE, 0);
        worker_say_ready(&worker, &failure);
        if (r) {
                log_error("cannot create a CUDA context: %s",
                          failure.text ? failure.text : "the worker is out of memory");
                worker_exit(&worker, EXIT_FAILURE);
        }
        if (options->spare) {
                worker_await_user(&worker);
                (void)worker_give_up_calls(&worker, SANDBOX_WORKER);
                worker_say_ready(&worker, &failure);
        }
        worker_loop(&worker);
}

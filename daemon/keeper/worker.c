/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers
 *
 * See worker.h. The supervisor is not trusted: it names a uid and a device, and
 * everything else about the process is decided here and in identity.c.
 */

#include "keeper/worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "keeper/budget.h"
#include "keeper/chatter.h"
#include "keeper/driver.h"
#include "keeper/folder.h"
#include "keeper/process.h"
#include "keeper/succession.h"
#include "util/assignment.h"
#include "util/log.h"
#include "util/macro.h"

#define WORKERS_MAX        KEEPER_WORKERS_MAX
#define WORKERS_OF_UID_MAX 256u /* devices of one machine, and those that are still ending */
#define WORKERS_PER_S      64u  /* started, once as many as there may be were started at once */
#define WORKERS_CHATTER    (UINT64_C(1) << 32) /* in the epoll, beside a pid */
#define WORKERS_NOBODY     UINT32_MAX          /* whose a spare is */
#define COMPLAINTS_MAX     20u                 /* about workers that do not start */
#define COMPLAINTS_PER_S   1u

typedef struct Worker {
        LIST_ENTRY(Worker) next; /* workers->list */
        uint32_t id;
        uint32_t uid; /* as the supervisor asked for it */
        Process process;
        Process lookup; /* of a spare's user; its pid is 0 if none runs */
        int assignment; /* the socket to a spare that has no user; -1 */
        char *error;    /* why it was never executed or assigned; NULL: it was, or is about to be */
        Chatter chatter;
        bool is_muted;  /* its chatter is over its budget */
        bool is_orphan; /* its supervisor is gone: nobody wants to hear of it */
} Worker;

struct Workers {
        const char *libexec;
        bool is_private;
        WorkersTell tell;
        void *userdata;
        LIST_HEAD(, Worker) list;
        size_t n_workers;
        size_t n_muted;
        int epoll; /* of the reports of those that start, and of what they write */
        Budget starts;
        Budget complaints;
};

/* What the child of a new worker needs to know. */
typedef struct WorkerStart {
        const Workers *workers;
        const Config *config;
        const KeeperMessage *message;
        int output;     /* 0: ours */
        int assignment; /* where to send it */
} WorkerStart;

DEFINE_CLEANUP(Workers, workers_free)

int workers_new(const char *libexec, bool is_private, WorkersTell tell, void *userdata,
                Workers **ret_workers) {
        _cleanup_(workers_freep) Workers *workers = NULL;

        workers = calloc(1, sizeof(*workers));
        if (!workers)
                return -ENOMEM;
        workers->libexec = libexec;
        workers->is_private = is_private;
        workers->tell = tell;
        workers->userdata = userdata;
        workers->starts = (Budget){.n_max = WORKERS_MAX, .per_s = WORKERS_PER_S};
        workers->complaints = (Budget){.n_max = COMPLAINTS_MAX, .per_s = COMPLAINTS_PER_S};
        LIST_INIT(&workers->list);
        workers->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (workers->epoll < 0)
                return -errno;

        *ret_workers = TAKE_PTR(workers);
        return 0;
}

static Worker *worker_new(const KeeperMessage *message) {
        Worker *worker;

        worker = calloc(1, sizeof(*worker));
        if (!worker)
                return NULL;
        worker->id = message->id;
        worker->uid = message->spare ? WORKERS_NOBODY : message->uid;
        worker->process = worker->lookup = PROCESS_NONE;
        worker->assignment = worker->chatter.fd = -1;
        return worker;
}

static void worker_free(Worker *worker) {
        if (worker->lookup.pid)
                (void)kill(worker->lookup.pid, SIGKILL); /* reaped as an orphan */
        process_finish(&worker->process);
        process_finish(&worker->lookup);
        closep(&worker->assignment);
        chatter_finish(&worker->chatter);
        free(worker->error);
        free(worker);
}

static void worker_remove(Workers *workers, Worker *worker) {
        LIST_REMOVE(worker, next);
        workers->n_workers--;
        workers->n_muted -= worker->is_muted;
        worker_free(worker);
}

Workers *workers_free(Workers *workers) {
        if (!workers)
                return NULL;

        while (!LIST_EMPTY(&workers->list))
                worker_remove(workers, LIST_FIRST(&workers->list));
        closep(&workers->epoll);
        free(workers);
        return NULL;
}

int workers_fd(const Workers *workers) {
        return workers->epoll;
}

/* ---- command line -------------------------------------------------------------- */

/* It becomes a word of a command line. */
static bool worker_is_uuid(const char text[static sizeof((KeeperMessage){}.text)]) {
        size_t n = strnlen(text, KEEPER_KEY_MAX + 1);

        return n <= KEEPER_KEY_MAX && *text != '-' &&
               strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static void worker_make_args(Words *args, const Config *config, const KeeperMessage *message,
                             const char *cache, const char *builtin_cache) {
        char sms[SMS_TEXT];

        words_add(args, "gpuqd-worker");
        if (message->probe) {
                words_add(args, "--probe");
        } else {
                words_add(args, "--device");
                words_add(args, "%u", message->device);
        }
        words_add(args, "--driver");
        words_add(args, "%s", driver_choose(config->device));
        words_add(args, "--connections");
        words_add(args, "%u", config->connections);
        words_add(args, "--poll-us");
        words_add(args, "%u", config->poll_us);
        words_add(args, "--coalesce");
        words_add(args, config->coalesce ? "yes" : "no");
        words_add(args, "--coalesce-us");
        words_add(args, "%u", config->coalesce_us);
        words_add(args, "--in-place");
        words_add(args, config->in_place ? "yes" : "no");
        words_add(args, "--fence");
        words_add(args, config_is_fenced(config) ? "yes" : "no");
        words_add(args, "--cpu-devices");
        words_add(args, "%u", config->cpu.devices);
        words_add(args, "--cpu-threads");
        words_add(args, "%u", config->cpu.threads);
        if (config->cpu.broken) {
                words_add(args, "--cpu-broken");
                words_add(args, "%s", config->cpu.broken);
        }
        if (config->libraries) {
                words_add(args, "--libraries");
                words_add(args, "%s", config->libraries);
        }
        if (message->text[0]) {
                words_add(args, "--uuid");
                words_add(args, "%s", message->text);
        }
        if (message->spare)
                words_add(args, "--spare");
        if (!sms_are_all(message->sms)) {
                words_add(args, "--sms");
                words_add(args, "%s", sms_text(message->sms, sms));
        }
        words_add(args, "--cache");
        words_add(args, "%s", cache);
        if (builtin_cache) {
                words_add(args, "--builtin-cache");
                words_add(args, "%s", builtin_cache);
        }
        words_add(args, "--cache-bytes");
        words_add(args, "%llu", (unsigned long long)config->cache_bytes);
        words_add(args, "--compile-timeout");
        words_add(args, "%u", config->compile_timeout_s);
}

/* From nothing: neither the administrator's shell nor a client decides what CUDA does. */
static void worker_make_env(Words *env, const Workers *workers, const char *no_mps) {
        words_add(env, "PATH=/usr/local/cuda/bin:/usr/bin:/bin");
        words_add(env, "LANG=C.UTF-8");
        words_add(env, "HOME=/nonexistent");
        /* Any user's MPS daemon at the default place would stop cuInit(). */
        words_add(env, "CUDA_MPS_PIPE_DIRECTORY=%s", no_mps);
        words_add(env, "CUDA_CACHE_DISABLE=1");
        words_add(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID");
        words_add(env, "CUDA_MODULE_LOADING=EAGER");
        words_add_env(env, "JOURNAL_STREAM");
        if (workers->is_private) {
                words_add_env(env, "ASAN_OPTIONS");
                words_add_env(env, "UBSAN_OPTIONS");
                words_add_env(env, "TSAN_OPTIONS");
        }
}

/* ---- start ----------------------------------------------------------------- */

/* The user that the worker runs as; in the child. @ret_identity: NULL: the keeper's own. */
static int worker_make_identity(const WorkerStart *start, Identity **ret_identity, char **ret_cache,
                                char **ret_error) {
        const KeeperMessage *message = start->message;
        const Identity *identity;
        int r;

        if (!start->workers->is_private) {
                r = identity_of_worker(start->config, message->probe ? 0 : message->uid,
                                       ret_identity, ret_error);
                if (r < 0)
                        return r;
        }
        identity = *ret_identity;
        return folder_for_uid(start->config->cache_dir, identity ? identity->uid : getuid(),
                              identity ? identity->gid : getgid(), ret_cache, ret_error);
}

/* The program, and the user that it runs as; in the child. */
static int worker_make(const void *what, ProcessPlan *plan, char **ret_error) {
        const WorkerStart *start = what;
        const KeeperMessage *message = start->message;
        const Config *config = start->config;
        _cleanup_(freep) char *cache = NULL, *builtin_cache = NULL, *no_mps = NULL;
        _cleanup_(freep) char *problem = NULL;
        int r;

        if (!message->spare) {
                r = worker_make_identity(start, &plan->identity, &cache, ret_error);
                if (r < 0)
                        return r;
        }
        r = folder_without_mps(config->cache_dir, &no_mps, ret_error);
        if (r < 0)
                return r;
        /* Without it each user's first worker links these kernels. A spare is who would store them there. */
        r = folder_for_builtin(config->cache_dir, &builtin_cache, &problem);
        if (r < 0 && message->spare)
                log_warning("each user waits once for gpuq's own kernels: %s",
                            problem ? problem : strerror(-r));

        worker_make_args(&plan->argv, config, message, cache ? cache : "", builtin_cache);
        worker_make_env(&plan->env, start->workers, no_mps);
        plan->may_change_user = message->spare && !start->workers->is_private;
        plan->output = start->output;
        plan->may_raise = strcmp(driver_choose(config->device), "gpu") == 0 && !message->probe;
        return asprintf(&plan->path, "%s/gpuqd-worker", start->workers->libexec) < 0 ? -ENOMEM : 0;
}

static Worker *workers_find_id(const Workers *workers, uint32_t id) {
        Worker *worker;

        LIST_FOREACH (worker, &workers->list, next)
                if (!worker->is_orphan && worker->id == id)
                        return worker;
        return NULL;
}

static unsigned workers_count_of(const Workers *workers, uint32_t uid) {
        const Worker *worker;
        unsigned n = 0;

        LIST_FOREACH (worker, &workers->list, next)
                n += worker->uid == uid;
        return n;
}

/* Return: why there may not be this worker; NULL: there may. */
static const char *workers_refuse(Workers *workers, const KeeperMessage *message, uint64_t now_ms) {
        if (workers->is_private && !message->probe && !message->spare && message->uid != getuid())
                return "a private gpuqd serves only its own uid";
        if (message->kind == KEEPER_SPAWN && workers->n_workers >= WORKERS_MAX)
                return "too many workers are running";
        if (workers_count_of(workers, message->spare ? WORKERS_NOBODY : message->uid) >=
            WORKERS_OF_UID_MAX)
                return "too many workers of this user are running";
        if (!budget_take(&workers->starts, now_ms))
                return "too many workers were started in the last seconds";
        return NULL;
}

/* A number in the epoll, not a pointer: what it names may be gone when it comes. */
static void workers_watch(Workers *workers, int how, int fd, pid_t pid, bool is_chatter) {
        struct epoll_event event = {
                .events = EPOLLIN | EPOLLONESHOT,
                .data.u64 = (uint64_t)pid | (is_chatter ? WORKERS_CHATTER : 0),
        };

        /* Should that fail, its end tells. */
        if (fd >= 0)
                (void)epoll_ctl(workers->epoll, how, fd, &event);
}

/* A private gpuqd's worker may have our own output: it is the same user's. */
static int worker_start(Workers *workers, const Config *config, const KeeperMessage *message,
                        const int fds[static KEEPER_N_FDS]) {
        WorkerStart start = {workers, config, message, 0, -1};
        int given[KEEPER_N_FDS + 1], pair[2] = {-1, -1}, r = 0;
        _cleanup_(closep) int output = -1;
        Worker *worker;

        worker = worker_new(message);
        if (!worker)
                return -ENOMEM;
        if (!workers->is_private)
                r = chatter_init(&worker->chatter, &output);
        if (r >= 0 && message->spare)
                r = assignment_pair(pair);
        worker->assignment = pair[0];
        memcpy(given, fds, KEEPER_N_FDS * sizeof(int));
        given[KEEPER_N_FDS] = pair[1];
        start.output = output >= 0 ? output : 0;
        if (r >= 0)
                r = process_start(worker_make, &start, given, KEEPER_N_FDS + message->spare,
                                  &worker->process);
        closep(&pair[1]);
        if (r < 0) {
                worker_free(worker);
                return r;
        }

        LIST_INSERT_HEAD(&workers->list, worker, next);
        workers->n_workers++;
        workers_watch(workers, EPOLL_CTL_ADD, worker->process.report, worker->process.pid, false);
        workers_watch(workers, EPOLL_CTL_ADD, worker->chatter.fd, worker->process.pid, true);
        return 0;
}

static void workers_tell_failed(Workers *workers, const KeeperMessage *message, const char *why) {
        KeeperMessage answer = {.kind = KEEPER_EXITED, .id = message->id, .status = 127 << 8};

        if (budget_take(&workers->complaints, now_ms()))
                log_error("cannot start a worker for uid %u: %s", message->uid, why);
        snprintf(answer.text, sizeof(answer.text), "%s", why);
        workers->tell(&answer, workers->userdata);
}

bool workers_spawn(Workers *workers, const Config *config, const KeeperMessage *message,
                   const int fds[static KEEPER_N_FDS], uint64_t now_ms) {
        const char *why;
        int r;

        for (unsigned i = 0; i < KEEPER_N_FDS; i++)
                if (fds[i] < 0)
                        return false;
        if (message->spare > 1 || (message->spare && message->probe))
                return false;
        if (!sms_are_valid(message->sms) ||
            (!sms_are_all(message->sms) && (message->spare || message->probe)))
                return false;
        if (!worker_is_uuid(message->text) || workers_find_id(workers, message->id))
                return false;

        why = workers_refuse(workers, message, now_ms);
        r = why ? 0 : worker_start(workers, config, message, fds);
        if (r < 0)
                why = strerror(-r);
        if (why)
                workers_tell_failed(workers, message, why);
        return true;
}

static Worker *workers_find(const Workers *workers, pid_t pid) {
        Worker *worker;

        LIST_FOREACH (worker, &workers->list, next)
                if (worker->process.pid == pid || worker->lookup.pid == pid)
                        return worker;
        return NULL;
}

/* It runs, has failed to, or neither yet. */
static void worker_look(Workers *workers, Worker *worker) {
        const KeeperMessage spawned = {
                .kind = KEEPER_SPAWNED, .id = worker->id, .pid = worker->process.pid};
        int r;

        if (worker->process.report < 0)
                return;
        r = process_check(&worker->process, &worker->error);
        if (r < 0 && !worker->error)
                worker->error = strdup(strerror(-r));
        if (r == 0 && !worker->is_orphan)
                workers->tell(&spawned, workers->userdata);
}

/* ---- what they write ------------------------------------------------------- */

/* log_full() leaves neither control characters nor anything that is not UTF-8. */
static void worker_log_line(const char *line, void *userdata) {
        const Worker *worker = userdata;

        if (worker->uid == WORKERS_NOBODY)
                log_info("worker %d (a spare one) wrote: %s", worker->process.pid, line);
        else
                log_info("worker %d (uid %u) wrote: %s", worker->process.pid, worker->uid, line);
}

static void worker_hear(Workers *workers, Worker *worker) {
        worker->is_muted = chatter_read(&worker->chatter, now_ms(), worker_log_line, worker);
        workers->n_muted += worker->is_muted;
        if (!worker->is_muted)
                workers_watch(workers, EPOLL_CTL_MOD, worker->chatter.fd, worker->process.pid,
                              true);
}

uint64_t workers_hear_at(const Workers *workers) {
        uint64_t at = UINT64_MAX;
        const Worker *worker;

        if (!workers->n_muted)
                return at;
        LIST_FOREACH (worker, &workers->list, next)
                if (worker->is_muted)
                        at = MIN(at, chatter_free_at(&worker->chatter));
        return at;
}

void workers_hear_muted(Workers *workers, uint64_t now) {
        Worker *worker;

        if (!workers->n_muted)
                return;
        LIST_FOREACH (worker, &workers->list, next) {
                if (!worker->is_muted || chatter_free_at(&worker->chatter) > now)
                        continue;
                workers->n_muted--;
                worker_hear(workers, worker);
        }
}

void workers_on_started(Workers *workers) {
        struct epoll_event events[16];
        int n = epoll_wait(workers->epoll, events, ARRAY_SIZE(events), 0);
        Worker *worker;

        /* By number: a report that was closed stays in the epoll while a forked child has it open. */
        for (int i = 0; i < n; i++) {
                worker = workers_find(workers, (pid_t)(events[i].data.u64 & ~WORKERS_CHATTER));
                if (worker && events[i].data.u64 & WORKERS_CHATTER && !worker->is_muted)
                        worker_hear(workers, worker);
                else if (worker)
                        worker_look(workers, worker);
        }
}

/* ---- end ------------------------------------------------------------------- */

/* It may not have its group yet. */
static void worker_kill(const Worker *worker) {
        (void)kill(-worker->process.pid, SIGKILL);
        (void)kill(worker->process.pid, SIGKILL);
}

/* ---- a spare gets its user --------------------------------------------------- */

/* In a child, because lookups may take long. */
static int worker_make_assignment(const void *what, ProcessPlan *plan, char **ret_error) {
        const WorkerStart *start = what;
        _cleanup_(freep) char *cache = NULL;
        Assignment assignment = {};
        int r;

        r = worker_make_identity(start, &plan->identity, &cache, ret_error);
        if (r < 0)
                return r;
        if (plan->identity) {
                assignment.changes_user = true;
                assignment.uid = plan->identity->uid;
                assignment.gid = plan->identity->gid;
                assignment.n_groups = MIN(plan->identity->n_groups, ASSIGNMENT_GROUPS_MAX);
                for (int i = 0; i < assignment.n_groups; i++)
                        assignment.groups[i] = plan->identity->groups[i];
        }
        snprintf(assignment.cache, sizeof(assignment.cache), "%s", cache);
        return assignment_send(start->assignment, &assignment);
}

static void worker_refuse(Worker *worker, const char *why) {
        if (!worker->error)
                worker->error = strdup(why);
        worker_kill(worker);
}

bool workers_assign(Workers *workers, const Config *config, const KeeperMessage *message,
                    uint64_t now_ms) {
        Worker *worker = workers_find_id(workers, message->id);
        const WorkerStart start = {workers, config, message, 0, worker ? worker->assignment : -1};
        const char *why;
        int r;

        if (!worker)
                return true;
        if (worker->assignment < 0 || worker->uid != WORKERS_NOBODY ||
            message->uid == WORKERS_NOBODY || message->probe || message->spare)
                return false;

        why = workers_refuse(workers, message, now_ms);
        worker->uid = message->uid;
        r = why ? 0 : process_start(worker_make_assignment, &start, NULL, 0, &worker->lookup);
        if (r < 0)
                why = strerror(-r);
        if (why)
                worker_refuse(worker, why);
        return true;
}

/* The child that looked its user up has ended, and has sent the assignment unless it failed. */
static void worker_looked_up(Worker *worker, int status) {
        _cleanup_(freep) char *error = NULL;

        (void)process_check(&worker->lookup, &error);
        if (status != 0)
                worker_refuse(worker, error ? error : "the lookup of its user failed");
        process_finish(&worker->lookup);
        worker->lookup.pid = 0;
        closep(&worker->assignment);
        worker->assignment = -1;
}

void workers_kill(Workers *workers, uint32_t id) {
        Worker *worker = workers_find_id(workers, id);

        if (worker)
                worker_kill(worker);
}

void workers_kill_all(Workers *workers) {
        Worker *worker;

        LIST_FOREACH (worker, &workers->list, next) {
                worker->is_orphan = true;
                worker_kill(worker);
        }
}

static void worker_tell_end(Workers *workers, const Worker *worker, int status) {
        const KeeperMessage ended = {.id = worker->id, .uid = worker->uid},
                            exited = {.kind = KEEPER_EXITED, .id = worker->id, .status = status};

        if (worker->is_orphan)
                return;
        if (worker->error)
                workers_tell_failed(workers, &ended, worker->error);
        else
                workers->tell(&exited, workers->userdata);
}

void workers_reaped(Workers *workers, pid_t pid, int status) {
        Worker *worker = workers_find(workers, pid);

        if (!worker)
                return;
        if (pid == worker->lookup.pid) {
                worker_looked_up(worker, status);
                return;
        }
        worker_look(workers, worker);
        chatter_end(&worker->chatter, now_ms(), worker_log_line, worker);
        worker_tell_end(workers, worker, status);
        worker_remove(workers, worker);
}

bool workers_has(const Workers *workers, pid_t pid) {
        return workers_find(workers, pid) != NULL;
}

size_t workers_count(const Workers *workers) {
        return workers->n_workers;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers
 *
 * See worker.h. What the supervisor asks for is checked here once more: it must
 * not be able to get a process of uid 0, nor in private mode one of anybody else.
 */

#include "keeper/worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "keeper/driver.h"
#include "keeper/folder.h"
#include "keeper/process.h"
#include "keeper/words.h"
#include "util/macro.h"

#define WORKERS_MAX 1024

typedef struct Worker {
        LIST_ENTRY(Worker) next; /* workers->list */
        uint32_t id;
        pid_t pid;
        bool is_orphan; /* its supervisor is gone: nobody wants to hear of it */
} Worker;

struct Workers {
        const char *libexec;
        bool is_private;
        LIST_HEAD(, Worker) list;
        size_t n_workers;
};

DEFINE_CLEANUP(Identity, identity_free)

int workers_new(const char *libexec, bool is_private, Workers **ret_workers) {
        Workers *workers;

        workers = calloc(1, sizeof(*workers));
        if (!workers)
                return -ENOMEM;
        workers->libexec = libexec;
        workers->is_private = is_private;
        LIST_INIT(&workers->list);
        *ret_workers = workers;
        return 0;
}

static void worker_remove(Workers *workers, Worker *worker) {
        LIST_REMOVE(worker, next);
        workers->n_workers--;
        free(worker);
}

Workers *workers_free(Workers *workers) {
        if (!workers)
                return NULL;

        while (!LIST_EMPTY(&workers->list))
                worker_remove(workers, LIST_FIRST(&workers->list));
        free(workers);
        return NULL;
}

static int worker_fail(int error, char **ret_error, const char *format, const char *word) {
        int r;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        r = asprintf(ret_error, format, word);
#pragma GCC diagnostic pop
        if (r < 0)
                *ret_error = NULL;
        return error;
}

/* ---- user and command line ------------------------------------------------- */

static int worker_system_identity(const char *name, Identity **ret_identity, char **ret_error) {
        int r = identity_by_name(name, true, ret_identity);

        if (r == IDENTITY_E_UNKNOWN)
                return worker_fail(
                        -ENOENT, ret_error,
                        "worker_user = %s: no such user; run systemd-sysusers, or set worker_user",
                        name);
        if (r == IDENTITY_E_ROOT)
                return worker_fail(-EPERM, ret_error,
                                   "worker_user = %s: the user must not have uid or gid 0", name);
        return r;
}

/* *ret_identity stays NULL where the worker runs as we do. */
static int worker_identity(const Workers *workers, const Config *config,
                           const KeeperMessage *message, Identity **ret_identity,
                           char **ret_error) {
        bool system = message->probe || message->uid == 0;
        int r;

        if (workers->is_private) {
                if (!message->probe && message->uid != getuid())
                        return worker_fail(-EPERM, ret_error, "%s serves only its own uid",
                                           "a private gpuqd");
                return 0;
        }
        if (system)
                return worker_system_identity(config->worker_user, ret_identity, ret_error);

        r = identity_by_uid(message->uid, message->gid, ret_identity);
        if (r > 0)
                return worker_fail(-EPERM, ret_error, "a worker must not run with gid 0%s",
                                   " or an invalid uid");
        return r;
}

/* It becomes a word of a command line. */
static bool worker_is_uuid(const char text[static sizeof((KeeperMessage){}.text)]) {
        size_t n = strnlen(text, KEEPER_KEY_MAX + 1);

        return n <= KEEPER_KEY_MAX && *text != '-' &&
               strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static void worker_make_args(Words *args, const Workers *workers, const Config *config,
                             const KeeperMessage *message, const char *cache) {
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
        words_add(args, "--cpu-devices");
        words_add(args, "%u", config->cpu_devices);
        words_add(args, "--cpu-threads");
        words_add(args, "%u", config->cpu_threads);
        if (config->cpu_broken) {
                words_add(args, "--cpu-broken");
                words_add(args, "%s", config->cpu_broken);
        }
        if (message->text[0]) {
                words_add(args, "--uuid");
                words_add(args, "%s", message->text);
        }
        words_add(args, "--cache");
        words_add(args, "%s", cache);
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

static int worker_start(const Workers *workers, const Identity *identity, const Words *args,
                        const Words *env, const int fds[static KEEPER_N_FDS], pid_t *ret_pid,
                        char **ret_error) {
        _cleanup_(freep) char *path = NULL;
        ProcessPlan plan = {
                .argv = args->items,
                .env = env->items,
                .identity = identity,
                .fds = fds,
                .n_fds = KEEPER_N_FDS,
        };

        if (args->failed || env->failed || asprintf(&path, "%s/gpuqd-worker", workers->libexec) < 0)
                return -ENOMEM;
        plan.path = path;
        return process_start(&plan, ret_pid, ret_error);
}

/* Everything but the bookkeeping. */
static int worker_run(const Workers *workers, const Config *config, const KeeperMessage *message,
                      const int fds[static KEEPER_N_FDS], pid_t *ret_pid, char **ret_error) {
        _cleanup_(identity_freep) Identity *identity = NULL;
        _cleanup_(freep) char *cache = NULL, *no_mps = NULL;
        _cleanup_(words_finish) Words args = {}, env = {};
        int r;

        if (!worker_is_uuid(message->text))
                return worker_fail(-EINVAL, ret_error, "%s is not a device uuid", "the text");
        r = worker_identity(workers, config, message, &identity, ret_error);
        if (r < 0)
                return r;
        r = folder_for_uid(config->cache_dir, identity ? identity->uid : getuid(),
                           identity ? identity->gid : getgid(), &cache, ret_error);
        if (r < 0)
                return r;
        r = folder_without_mps(config->cache_dir, &no_mps, ret_error);
        if (r < 0)
                return r;

        worker_make_args(&args, workers, config, message, cache);
        worker_make_env(&env, workers, no_mps);
        return worker_start(workers, identity, &args, &env, fds, ret_pid, ret_error);
}

int workers_spawn(Workers *workers, const Config *config, const KeeperMessage *message,
                  const int fds[static KEEPER_N_FDS], pid_t *ret_pid, char **ret_error) {
        Worker *worker;
        int r;

        *ret_error = NULL;
        if (workers->n_workers >= WORKERS_MAX)
                return worker_fail(-EAGAIN, ret_error, "too many workers are running%s", "");
        worker = calloc(1, sizeof(*worker));
        if (!worker)
                return -ENOMEM;

        r = worker_run(workers, config, message, fds, &worker->pid, ret_error);
        if (r < 0) {
                free(worker);
                return r;
        }

        worker->id = message->id;
        LIST_INSERT_HEAD(&workers->list, worker, next);
        workers->n_workers++;
        *ret_pid = worker->pid;
        return 0;
}

/* ---- end ------------------------------------------------------------------- */

void workers_kill(Workers *workers, uint32_t id) {
        Worker *worker;

        LIST_FOREACH (worker, &workers->list, next)
                if (!worker->is_orphan && worker->id == id)
                        (void)kill(-worker->pid, SIGKILL);
}

void workers_kill_all(Workers *workers) {
        Worker *worker;

        LIST_FOREACH (worker, &workers->list, next) {
                worker->is_orphan = true;
                (void)kill(-worker->pid, SIGKILL);
        }
}

bool workers_reaped(Workers *workers, pid_t pid, uint32_t *ret_id) {
        Worker *worker;
        bool told;

        LIST_FOREACH (worker, &workers->list, next)
                if (worker->pid == pid)
                        break;
        if (!worker)
                return false;
        told = !worker->is_orphan;
        *ret_id = worker->id;
        worker_remove(workers, worker);
        return told;
}

size_t workers_count(const Workers *workers) {
        return workers->n_workers;
}

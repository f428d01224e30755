/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages from the supervisor, each passed to its object.
 */
#include <string.h>

#include "util/log.h"
#include "worker/worker.h"

/* The supervisor is of the same build. If it violates the protocol it is broken, and the worker
 * ends. */
static void __attribute__((noreturn)) worker_refuse(Worker *worker, const char *why) {
        log_error("exiting: invalid message from the supervisor: %s", why);
        worker_exit(worker, EXIT_FAILURE);
}

static int worker_take_fd(Worker *worker) {
        int fd = channel_take_fd(worker->channel);

        if (fd < 0)
                worker_refuse(worker, "a descriptor is missing");
        return fd;
}

static CUdeviceptr worker_take_address(Worker *worker, const WorkerMessage *message) {
        if (message->head.n_items != sizeof(uint64_t))
                worker_refuse(worker, "an address is missing");
        return *(const uint64_t *)message->items;
}

static int worker_on_arena_add(Worker *worker, const WorkerMessage *message) {
        const WorkerHead *add = &message->head;
        _cleanup_(closep) int fd = worker_take_fd(worker);
        Arena *arena = arenas_find(&worker->arenas, add->id);

        if (arena && arena->state != ARENA_FAILED)
                worker_refuse(worker, "an arena that already exists");
        if (arena) /* once more, for the next job that needs it */
                arenas_drop(&worker->arenas, arena);
        return arenas_add(&worker->arenas, add->id, (Gpuq__V1__Place)add->detail, add->number,
                          worker_take_address(worker, message), fd);
}

static int worker_on_arena_make(Worker *worker, const WorkerMessage *message) {
        const WorkerHead *make = &message->head;

        if (arenas_find(&worker->arenas, make->id))
                worker_refuse(worker, "an arena that already exists");
        return arenas_make(&worker->arenas, make->id, make->number,
                           worker_take_address(worker, message));
}

static int worker_on_arena_drop(Worker *worker, const WorkerHead *drop) {
        Arena *arena = arenas_find(&worker->arenas, drop->id);

        if (!arena)
                return 0;
        runner_forget_addresses(&worker->runner);
        arenas_drop(&worker->arenas, arena);
        return 0;
}

static size_t worker_count_words(Worker *worker, const WorkerMessage *add) {
        const char *p = add->items, *end = p + add->head.n_items;
        size_t n = 0;

        for (; p < end; ++n) {
                if (!*p || !memchr(p, '\0', (size_t)(end - p)))
                        worker_refuse(worker, "not a list of words");
                p += strlen(p) + 1;
        }
        return n;
}

/* Return: how many of one kind were added to @words. */
static size_t worker_find_words(const WorkerMessage *add, WorkerWord word, char **words) {
        const char *p = add->items, *end = p + add->head.n_items;
        size_t n = 0;

        for (; p < end; p += strlen(p) + 1)
                if (*p == (char)word)
                        words[n++] = (char *)p + 1;
        return n;
}

static int worker_on_module_add(Worker *worker, const WorkerMessage *add) {
        _cleanup_(freep) char **words = calloc(worker_count_words(worker, add) + 1, sizeof(*words));
        bool builtin = add->head.detail == GPUQ__V1__FORMAT__BUILTIN;
        CompileRequest request = {
                .format = (Gpuq__V1__Format)add->head.detail,
                .fd = builtin ? -1 : worker_take_fd(worker),
                .length = add->head.number,
                .name = builtin ? "builtin" : (char *)add->text,
        };

        if (!words)
                return -ENOMEM;
        request.options = words;
        request.n_options = worker_find_words(add, WORKER_WORD_OPTION, words);
        request.kernels = words + request.n_options;
        request.n_kernels = worker_find_words(add, WORKER_WORD_KERNEL, words + request.n_options);

        if (modules_find(&worker->modules, add->head.id))
                worker_refuse(worker, "a module that already exists");
        if (worker_find_words(add, WORKER_WORD_HEADERS,
                              words + request.n_options + request.n_kernels))
                request.headers = words[request.n_options + request.n_kernels];
        return module_add(&worker->modules, add->head.id, &request);
}

static int worker_on_module_drop(Worker *worker, const WorkerHead *drop) {
        Module *module = modules_find(&worker->modules, drop->id);

        if (module)
                module_drop(module);
        return 0;
}

static int worker_on_jobs(Worker *worker, const WorkerMessage *list) {
        const uint8_t *data = list->items;
        size_t n_left = list->head.n_items;

        while (n_left > 0) {
                WorkerJobParts parts;
                const WorkerJob *job = protocol_job(data, n_left, &parts);
                int r;

                if (!job)
                        worker_refuse(worker, "not a list of jobs");
                r = runner_add(&worker->runner, job, &parts, NULL);
                if (r < 0)
                        return r;
                data += job->n_bytes;
                n_left -= job->n_bytes;
        }
        return 0;
}

/* ---- direct rings ---- */

/* Return: as the caller. */
static int worker_check_direct(Worker *worker, int r) {
        if (r == -EBADMSG)
                worker_refuse(worker, "a direct ring out of order");
        return r;
}

static int worker_on_direct_ring(Worker *worker, uint32_t session) {
        _cleanup_(closep) int fd = worker_take_fd(worker);

        return worker_check_direct(worker, directs_open(&worker->directs, session, fd));
}

static int worker_on_direct_bell(Worker *worker, uint32_t session) {
        return worker_check_direct(
                worker, directs_set_bell(&worker->directs, session, worker_take_fd(worker)));
}

static int worker_on_lend(Worker *worker, const WorkerMessage *lend) {
        return worker_check_direct(worker,
                                   directs_lend(&worker->directs, (uint32_t)lend->head.id, lend));
}

static int worker_on_message(Worker *worker, const WorkerMessage *message) {
        switch (message->head.kind) {
                case TO_WORKER_JOBS:
                        return worker_on_jobs(worker, message);
                case TO_WORKER_ARENA_ADD:
                        return worker_on_arena_add(worker, message);
                case TO_WORKER_ARENA_MAKE:
                        return worker_on_arena_make(worker, message);
                case TO_WORKER_ARENA_DROP:
                        return worker_on_arena_drop(worker, &message->head);
                case TO_WORKER_MODULE_ADD:
                        return worker_on_module_add(worker, message);
                case TO_WORKER_MODULE_DROP:
                        return worker_on_module_drop(worker, &message->head);
                case TO_WORKER_DIRECT_RING:
                        return worker_on_direct_ring(worker, (uint32_t)message->head.id);
                case TO_WORKER_DIRECT_BELL:
                        return worker_on_direct_bell(worker, (uint32_t)message->head.id);
                case TO_WORKER_LEND:
                        return worker_on_lend(worker, message);
                case TO_WORKER_RECALL:
                        worker_check_sent(worker, directs_recall(&worker->directs,
                                                                 (uint32_t)message->head.id));
                        return 0;
                case TO_WORKER_STOP:
                        worker_stop(worker);
                default:
                        worker_refuse(worker, "an unknown kind");
        }
}

int worker_receive(Worker *worker, bool *ret_any) {
        WorkerMessage message;
        const uint8_t *data;
        size_t n_data;
        int r;

        r = channel_receive(worker->channel, &data, &n_data);
        *ret_any = r != CHANNEL_E_AGAIN;
        if (r == CHANNEL_E_AGAIN)
                return 0;
        if (r)
                worker_refuse(worker, "the ring is corrupt");
        if (!protocol_read(data, n_data, &message))
                worker_refuse(worker, "a wrong length");
        return worker_on_message(worker, &message);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the supervisor, each to the object that it is for.
 */
#include "util/log.h"
#include "worker/report.h"
#include "worker/worker.h"

/* A supervisor of our own build that breaks the rules is broken: end rather than guess. */
static void __attribute__((noreturn)) worker_refuse(Worker *worker, const char *why) {
        log_error("message of the supervisor: %s", why);
        worker_exit(worker, EXIT_FAILURE);
}

static int worker_take_fd(Worker *worker) {
        int fd = channel_take_fd(worker->channel);

        if (fd < 0)
                worker_refuse(worker, "a descriptor is missing");
        return fd;
}

static int worker_on_arena_add(Worker *worker, const Gpuq__Worker__ArenaAdd *message) {
        _cleanup_(closep) int fd = worker_take_fd(worker);
        Arena *arena = arenas_find(&worker->arenas, message->id);

        if (arena && arena->state != ARENA_FAILED)
                worker_refuse(worker, "an arena that is there already");
        if (arena) /* once more, for the next job that needs it */
                arenas_drop(&worker->arenas, arena);
        return arenas_add(&worker->arenas, message->id, message->place, message->size, fd);
}

static int worker_on_arena_make(Worker *worker, const Gpuq__Worker__ArenaMake *message) {
        if (arenas_find(&worker->arenas, message->id))
                worker_refuse(worker, "an arena that is there already");
        return arenas_make(&worker->arenas, message->id, message->size);
}

static int worker_on_arena_drop(Worker *worker, const Gpuq__Worker__ArenaDrop *message) {
        Arena *arena = arenas_find(&worker->arenas, message->id);

        if (!arena)
                return 0;
        runner_forget_addresses(&worker->runner);
        arenas_drop(&worker->arenas, arena);
        return 0;
}

static int worker_on_module_add(Worker *worker, const Gpuq__Worker__ModuleAdd *message) {
        bool builtin = message->format == GPUQ__V1__FORMAT__BUILTIN;
        CompileRequest request = {
                .format = message->format,
                .fd = builtin ? -1 : worker_take_fd(worker),
                .length = message->length,
                .name = builtin ? "builtin" : message->name,
                .options = message->options,
                .n_options = message->n_options,
        };

        if (modules_find(&worker->modules, message->id))
                worker_refuse(worker, "a module that is there already");
        return module_add(&worker->modules, message->id, &request);
}

static int worker_on_module_drop(Worker *worker, const Gpuq__Worker__ModuleDrop *message) {
        Module *module = modules_find(&worker->modules, message->id);

        if (module)
                module_drop(module);
        return 0;
}

static int worker_dispatch(Worker *worker, const Gpuq__Worker__ToWorker *message) {
        switch (message->body_case) {
                case GPUQ__WORKER__TO_WORKER__BODY_ARENA_ADD:
                        return worker_on_arena_add(worker, message->arena_add);
                case GPUQ__WORKER__TO_WORKER__BODY_ARENA_MAKE:
                        return worker_on_arena_make(worker, message->arena_make);
                case GPUQ__WORKER__TO_WORKER__BODY_ARENA_DROP:
                        return worker_on_arena_drop(worker, message->arena_drop);
                case GPUQ__WORKER__TO_WORKER__BODY_MODULE_ADD:
                        return worker_on_module_add(worker, message->module_add);
                case GPUQ__WORKER__TO_WORKER__BODY_MODULE_DROP:
                        return worker_on_module_drop(worker, message->module_drop);
                case GPUQ__WORKER__TO_WORKER__BODY_STOP:
                        worker_stop(worker);
                default:
                        worker_refuse(worker, "of no known kind");
        }
}

static int worker_on_others(Worker *worker, Scan scan) {
        Gpuq__Worker__ToWorker *message;
        int r;

        message = gpuq__worker__to_worker__unpack(bump_allocator(worker->bump), scan_left(&scan),
                                                  scan.p);
        if (!message)
                worker_refuse(worker, "not a message, or out of memory");
        r = worker_dispatch(worker, message);
        bump_reset(worker->bump);
        return r;
}

/* What comes with every job is read where it stands. */
static int worker_on_jobs(Worker *worker, Scan scan) {
        Scan list, job;
        int r;

        if (!scan_inner(&scan, &list) || scan_left(&scan) > 0)
                worker_refuse(worker, "not a list of jobs");
        while (scan_left(&list) > 0) {
                if (!scan_is(&list, 1, 2) || !scan_inner(&list, &job))
                        worker_refuse(worker, "not a list of jobs");
                r = runner_add(&worker->runner, job);
                if (r == -EBADMSG)
                        worker_refuse(worker, "not a job");
                if (r < 0)
                        return r;
        }
        return 0;
}

int worker_receive(Worker *worker, bool *ret_any) {
        const uint8_t *data;
        size_t n_data;
        Scan scan;
        int r;

        r = channel_receive(worker->channel, &data, &n_data);
        *ret_any = r != CHANNEL_E_AGAIN;
        if (r == CHANNEL_E_AGAIN)
                return 0;
        if (r)
                worker_refuse(worker, "the ring is corrupt");

        scan = (Scan){.p = data, .end = data + n_data};
        if (scan_is(&scan, GPUQ__WORKER__TO_WORKER__BODY_JOBS, 2))
                return worker_on_jobs(worker, scan);
        return worker_on_others(worker, scan);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_WORKER_H
#define GPUQ_WORKER_WORKER_H

/*
 * Worker
 *
 * One CUDA context and the loop of the thread that owns it. While jobs are in flight the loop polls;
 * otherwise it sleeps on the channel's bell. Blocking calls run in libuv's threads or in a child.
 *
 * It ends with its supervisor, whose end of the channel closes then. A spare worker (spare.h) sends
 * READY twice: when its context exists, and when it has become its user.
 */

#include <stdbool.h>

#include "util/cores.h"
#include "util/pace.h"
#include "worker/direct.h"
#include "worker/memory.h"
#include "worker/module.h"
#include "worker/outbox.h"
#include "worker/runner.h"

typedef struct WorkerOptions {
        unsigned device;
        const char *uuid; /* NULL: by index; of a probe: the one device to check */
        bool probe;
        bool spare; /* its user becomes known later (spare.h) */
        Sms sms;    /* that kernels may use */
        bool cpu;
        unsigned cpu_devices, cpu_threads;
        const char *cpu_broken;    /* NULL: none is */
        const char *cache;         /* NULL: none */
        const char *builtin_cache; /* likewise */
        uint64_t cache_bytes;      /* that each of these folders may have */
        unsigned compile_timeout_s;
        bool coalesce, in_place; /* IssueSettings */
        bool fence;              /* kernels reach no other user's memory (compiler/fence.h) */
        unsigned coalesce_us;
        unsigned connections; /* to the device */
        unsigned poll_us;
        const char *libraries; /* folders to search for them first, or NULL */
        char *libexec;         /* the folder of this executable */
} WorkerOptions;

typedef struct Worker {
        const WorkerOptions *options;
        Channel *channel;
        Outbox outbox;
        bool has_wordless;    /* ends without a word were reported: */
        uint32_t wordless_to; /* all of them lie before this, by channel_written(), */
        bool has_held_back;   /* and some of them waited for space in the ring */
        Output output;
        Driver *driver;
        unsigned ordinal; /* of the device, in this process */
        Context *context;
        Streams streams;
        Quiesce quiesce;
        Compilers compilers;
        Modules modules;
        Arenas arenas;
        Runner runner;
        Directs directs;
        Memory memory;
        Pace pace;
        Cores cores;

        uv_loop_t loop;
        uv_poll_t bell, socket;
        uv_poll_t assignment; /* of a spare */
        bool is_assigned;
        uv_timer_t stats;     /* sent when it becomes idle */
        uint64_t poll_at_ns;  /* when libuv runs next, while busy */
        uint64_t stats_at_ns; /* while busy */
        bool was_busy;
} Worker;

/** worker_open_driver() - by the options. @ret_problem: as text. Return: 0 or a negative errno. */
int worker_open_driver(const WorkerOptions *options, Driver **ret_driver, const char **ret_problem);
/** worker_find_device() - open the driver, cuInit(), find the device. @ret_driver: also on failure, may be NULL. Return: 0, or FAILURE_E_SET. */
int worker_find_device(const WorkerOptions *options, Driver **ret_driver, unsigned *ret_ordinal,
                       Failure *failure);
/**
 * worker_run() - run the worker, from creating the context to the exit
 * @channel: consumed
 *
 * Return: the exit status. Most workers exit in worker_stop() or worker_fault().
 */
int worker_run(const WorkerOptions *options, Channel *channel);

/**
 * worker_receive() - handle the next message, if any
 *
 * @ret_any: whether there was one.
 *
 * Return: 0, FAILURE_E_FAULT, or -ENOMEM.
 */
int worker_receive(Worker *worker, bool *ret_any);

/** worker_check_sent() - the result of sending a message: without a supervisor the worker exits. */
void worker_check_sent(Worker *worker, int r);
/** worker_stop() - a Stop was received: report what is in flight, exit. */
void worker_stop(Worker *worker) __attribute__((noreturn));
/** worker_fault() - the context is unusable: report what is in flight, exit. */
void worker_fault(Worker *worker) __attribute__((noreturn));
/** worker_exit() - exit at once: destroying a context with a kernel that never ends would wait for it. */
void worker_exit(Worker *worker, int status) __attribute__((noreturn));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_SUPERVISOR_H
#define GPUQ_TEST_SUPERVISOR_H

/*
 * A supervisor for tests: starts a real gpuqd-worker and speaks worker.proto
 * with it. What the worker answers is awaited, never slept for.
 *
 *   GPUQ_TEST_WORKER   the program
 *   GPUQ_TEST_LIBEXEC  the files that belong beside it, with colons between them
 *   GPUQ_TEST_DEVICE   gpu: on the first GPU; else on the CPU driver
 */

#include "test.h"

#include <stdbool.h>
#include <sys/types.h>

#include "proto/worker.pb-c.h"
#include "util/channel.h"

typedef struct Supervisor {
        Channel *channel;
        pid_t pid;
        Gpuq__Worker__FromWorker *message; /* the last one awaited */
        int fd;                            /* that came with it, or -1 */
} Supervisor;

/* A host arena of the test's. */
typedef struct HostArena {
        uint64_t id;
        size_t size;
        int fd;
        uint8_t *data;
} HostArena;

/** supervisor_folder() - libexec/gpuq made of what was built; NULL if the parts are not there. */
const char *supervisor_folder(void);
/** supervisor_folder_remove() */
void supervisor_folder_remove(void);
/* What workers that are started from now on get too, NULL at the end. */
#define SUPERVISOR_OPTIONS_MAX 6
extern const char *supervisor_options[SUPERVISOR_OPTIONS_MAX + 1];

/** supervisor_start() - a worker, until it is ready unless it probes. */
Supervisor supervisor_start(bool probe);
/** supervisor_end() - hang up and wait. Return: its status as of waitpid(). */
int supervisor_end(Supervisor *supervisor);
/** supervisor_forget() - of one whose worker was waited for elsewhere: what was awaited last. */
void supervisor_forget(Supervisor *supervisor);
/** supervisor_wait() - until it exits by itself. Return: its status. */
int supervisor_wait(Supervisor *supervisor);
/** supervisor_send() */
void supervisor_send(Supervisor *supervisor, Gpuq__Worker__ToWorker__BodyCase what, void *body,
                     int fd);
/** supervisor_await() - the next message of a kind; Stats on the way are skipped, others fail the test. */
const Gpuq__Worker__FromWorker *supervisor_await(Supervisor *supervisor,
                                                 Gpuq__Worker__FromWorker__BodyCase what);

/** host_arena() - made, filled with zeros, and added to the worker. */
HostArena host_arena(Supervisor *supervisor, uint64_t id, size_t size);
void host_arena_free(HostArena *arena);

/** supervisor_on_gpu() - whether the worker has a GPU. */
bool supervisor_on_gpu(void);
/** module_send_source() - have a module loaded. */
void module_send_source(Supervisor *supervisor, uint64_t id, const char *source);
/** module_add_source() - and await it. Return: the answer, valid until the next await. */
const Gpuq__Worker__ModuleAdded *module_add_source(Supervisor *supervisor, uint64_t id,
                                                   const char *source);

#endif

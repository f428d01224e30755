/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_SUPERVISOR_H
#define GPUQ_TEST_SUPERVISOR_H

/*
 * A supervisor for tests: starts a real gpuqd-worker and speaks its protocol
 * with it. What the worker answers is awaited, never slept for.
 *
 *   GPUQ_TEST_WORKER   the program
 *   GPUQ_TEST_LIBEXEC  the files that belong beside it, with colons between them
 *   GPUQ_TEST_DEVICE   gpu: on the first GPU; else on the CPU driver
 */

#include "test.h"

#include <stdbool.h>
#include <sys/types.h>

#include "proto/gpuq.pb-c.h"
#include "worker/protocol.h"

typedef struct Supervisor {
        Channel *channel;
        pid_t pid;
        WorkerMessage message; /* the last one awaited */
        int fd;                /* that came with it, or -1 */
        Gpuq__V1__ModuleReady *module;
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
void supervisor_send(Supervisor *supervisor, const WorkerMessage *message, int fd);
/** supervisor_tell() - a message that is its kind and an id alone. */
void supervisor_tell(Supervisor *supervisor, WorkerMessageKind kind, uint64_t id);
/** supervisor_await() - the next message of a kind, valid until the next await; Stats on the way are skipped, others fail the test. */
const WorkerMessage *supervisor_await(Supervisor *supervisor, WorkerMessageKind kind);
/** supervisor_module() - what the MODULE_ADDED awaited last says; valid as long. */
const Gpuq__V1__ModuleReady *supervisor_module(Supervisor *supervisor);

/** device_arena_make() - have one made; the answer is to be awaited. */
void device_arena_make(Supervisor *supervisor, uint64_t id, uint64_t size);
/** device_arena_make_at() - the same, at an address that all workers are to have. */
void device_arena_make_at(Supervisor *supervisor, uint64_t id, uint64_t size, uint64_t address);
/** arena_add() - @fd: the caller's. */
void arena_add(Supervisor *supervisor, uint64_t id, Gpuq__V1__Place place, uint64_t size, int fd);
/** arena_add_at() - the same, at an address that all workers are to have. */
void arena_add_at(Supervisor *supervisor, uint64_t id, Gpuq__V1__Place place, uint64_t size,
                  uint64_t address, int fd);
/** host_arena() - made, filled with zeros, and added to the worker. */
HostArena host_arena(Supervisor *supervisor, uint64_t id, size_t size);
void host_arena_free(HostArena *arena);

/** supervisor_on_gpu() - whether the worker has a GPU. */
bool supervisor_on_gpu(void);
/** module_send_builtin() - have gpuq's own kernels loaded. */
void module_send_builtin(Supervisor *supervisor, uint64_t id);
/** module_send_source() - have a module loaded. */
void module_send_source(Supervisor *supervisor, uint64_t id, const char *source);
/** module_add_source() - and await it. Return: the answer, valid until the next await. */
const WorkerMessage *module_add_source(Supervisor *supervisor, uint64_t id, const char *source);
/** module_add_checked() - the same, with the option --check. */
const WorkerMessage *module_add_checked(Supervisor *supervisor, uint64_t id, const char *source);

#endif

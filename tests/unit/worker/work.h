/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_WORK_H
#define GPUQ_TEST_WORK_H

/*
 * Jobs in few words, and the end of them.
 */

#include "fake_supervisor.h"

enum { JOB_MAX = 16 };

typedef struct Work {
        WorkerJob job;
        WorkerBuffer buffers[JOB_MAX];
        uint64_t modules[JOB_MAX];
        char names[8192];
        uint64_t after[JOB_MAX];
        Gpuq__V1__Operation operations[JOB_MAX], *operation_pointers[JOB_MAX];
        Gpuq__V1__Launch launches[JOB_MAX];
        Gpuq__V1__Copy copies[JOB_MAX];
        Gpuq__V1__Fill fills[JOB_MAX];
        Gpuq__V1__Operand operands[2 * JOB_MAX];
        Gpuq__V1__Argument arguments[JOB_MAX][4], *argument_pointers[JOB_MAX][4];
        uint64_t values[JOB_MAX][4];
        size_t n_operations;
        uint8_t packed[8192];
} Work;

#define IN    GPUQ__V1__DIRECTION__IN
#define OUT   GPUQ__V1__DIRECTION__OUT
#define INOUT GPUQ__V1__DIRECTION__INOUT

void work_init(Work *work, uint64_t id);
uint32_t work_buffer(Work *work, uint64_t arena, uint64_t offset, uint64_t length,
                     Gpuq__V1__Direction direction);
uint32_t work_kernel(Work *work, uint64_t module, const char *name);
/** work_launch() - @kinds: a letter an argument: b buffer, i i32, l i64, f f32; values follow, as uint64_t or double. */
Gpuq__V1__Launch *work_launch(Work *work, uint32_t kernel, unsigned grid, unsigned block,
                              const char *kinds, ...);
void work_fill(Work *work, uint32_t buffer, uint64_t length, uint32_t value);
/** work_copy() - one end may be a variable. */
void work_copy(Work *work, bool to_variable, uint32_t to, bool from_variable, uint32_t from,
               uint64_t length);
/** work_after() - it runs behind this job. */
void work_after(Work *work, uint64_t id);
/** work_pack() - its operations; what sends it does so too. */
void work_pack(Work *work);
/** work_write() - one whose operations are packed. @operations: of it; NULL: its own. Return: behind it. */
uint8_t *work_write(const Work *work, const uint8_t *operations, uint8_t *p);
void work_send(Supervisor *supervisor, Work *work);
/** works_send() - several jobs in one message. */
void works_send(Supervisor *supervisor, Work *works, size_t n_works);

/** jobs_send() - a list of jobs, written one behind the other. */
void jobs_send(Supervisor *supervisor, const uint8_t *jobs, size_t n_bytes);

/** await_end() - of the one job that is in flight; its error and output are those of the message. */
const WorkerMessage *await_end(Supervisor *supervisor, uint64_t id);
/** await_done() - likewise, and it is well. */
void await_done(Supervisor *supervisor, uint64_t id);
/** await_all() - that @n jobs end well. */
void await_all(Supervisor *supervisor, size_t n);
void await_refusal(Supervisor *supervisor, uint64_t id, Gpuq__V1__Code code, const char *text);
/** work_counters() - of a STATS. */
Gpuq__V1__WorkerCounters work_counters(const WorkerMessage *stats);
/** add_module() - of a source that compiles. */
void add_module(Supervisor *supervisor, uint64_t id, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>

#include "job_message.h"

void work_init(Work *work, uint64_t id) {
        memset(work, 0, sizeof(*work));
        work->job.id = id;
}

uint32_t work_buffer(Work *work, uint64_t arena, uint64_t offset, uint64_t length,
                     Gpuq__V1__Direction direction) {
        uint32_t i = work->job.n_buffers++;

        work->buffers[i] = (WorkerBuffer){arena, offset, length, direction};
        return i;
}

uint32_t work_kernel(Work *work, uint64_t module, const char *name) {
        size_t n_name = strlen(name) + 1;
        uint32_t i = work->job.n_kernels++;

        assert_true(work->job.n_names + n_name <= sizeof(work->names));
        memcpy(work->names + work->job.n_names, name, n_name);
        work->job.n_names += (uint32_t)n_name;
        work->modules[i] = module;
        return i;
}

void work_after(Work *work, uint64_t id) {
        work->after[work->job.n_after++] = id;
}

static Gpuq__V1__Operation *work_operation(Work *work) {
        size_t i = work->n_operations++;

        gpuq__v1__operation__init(&work->operations[i]);
        work->operation_pointers[i] = &work->operations[i];
        return &work->operations[i];
}

/* @kinds: a letter an argument: b buffer, i i32, l i64, f f32; values follow, as uint64_t or double. */
Gpuq__V1__Launch *work_launch(Work *work, uint32_t kernel, unsigned grid, unsigned block,
                              const char *kinds, ...) {
        size_t k = work->n_operations;
        Gpuq__V1__Operation *operation = work_operation(work);
        Gpuq__V1__Launch *launch = &work->launches[k];
        va_list args;

        gpuq__v1__launch__init(launch);
        launch->kernel = kernel;
        launch->grid_x = grid;
        launch->block_x = block;
        launch->arguments = work->argument_pointers[k];
        operation->what_case = GPUQ__V1__OPERATION__WHAT_LAUNCH;
        operation->launch = launch;

        va_start(args, kinds);
        for (; *kinds; ++kinds) {
                size_t i = launch->n_arguments++;
                Gpuq__V1__Argument *argument = &work->arguments[k][i];
                float f;

                gpuq__v1__argument__init(argument);
                work->argument_pointers[k][i] = argument;
                if (*kinds == 'b') {
                        argument->value_case = GPUQ__V1__ARGUMENT__VALUE_BUFFER;
                        argument->buffer = va_arg(args, uint32_t);
                        continue;
                }
                argument->value_case = GPUQ__V1__ARGUMENT__VALUE_SCALAR;
                argument->scalar.data = (uint8_t *)&work->values[k][i];
                argument->scalar.len = *kinds == 'l' ? 8 : 4;
                argument->kind = *kinds == 'l'   ? GPUQ__V1__KIND__I64
                                 : *kinds == 'i' ? GPUQ__V1__KIND__I32
                                                 : GPUQ__V1__KIND__F32;
                if (*kinds == 'l') {
                        work->values[k][i] = va_arg(args, uint64_t);
                } else if (*kinds == 'i') {
                        work->values[k][i] = va_arg(args, uint32_t);
                } else {
                        f = (float)va_arg(args, double);
                        memcpy(&work->values[k][i], &f, sizeof(f));
                }
        }
        va_end(args);
        return launch;
}

void work_fill(Work *work, uint32_t buffer, uint64_t length, uint32_t value) {
        size_t k = work->n_operations;
        Gpuq__V1__Operation *operation = work_operation(work);

        gpuq__v1__fill__init(&work->fills[k]);
        work->fills[k].buffer = buffer;
        work->fills[k].length = length;
        work->fills[k].value = value;
        work->fills[k].width = 4;
        operation->what_case = GPUQ__V1__OPERATION__WHAT_FILL;
        operation->fill = &work->fills[k];
}

/* One end may be a variable. */
void work_copy(Work *work, bool to_variable, uint32_t to, bool from_variable, uint32_t from,
               uint64_t length) {
        size_t k = work->n_operations;
        Gpuq__V1__Operation *operation = work_operation(work);
        Gpuq__V1__Operand *ends = &work->operands[2 * k];

        gpuq__v1__copy__init(&work->copies[k]);
        gpuq__v1__operand__init(&ends[0]);
        gpuq__v1__operand__init(&ends[1]);
        ends[0].what_case =
                to_variable ? GPUQ__V1__OPERAND__WHAT_VARIABLE : GPUQ__V1__OPERAND__WHAT_BUFFER;
        ends[0].buffer = to;
        ends[1].what_case =
                from_variable ? GPUQ__V1__OPERAND__WHAT_VARIABLE : GPUQ__V1__OPERAND__WHAT_BUFFER;
        ends[1].buffer = from;
        work->copies[k].to = &ends[0];
        work->copies[k].from = &ends[1];
        work->copies[k].length = length;
        operation->what_case = GPUQ__V1__OPERATION__WHAT_COPY;
        operation->copy = &work->copies[k];
}

void work_pack(Work *work) {
        Gpuq__V1__Operations operations = GPUQ__V1__OPERATIONS__INIT;

        operations.operations = work->operation_pointers;
        operations.n_operations = work->n_operations;
        work->job.n_operations = (uint32_t)gpuq__v1__operations__pack(&operations, work->packed);
        assert_true(work->job.n_operations <= sizeof(work->packed));
}

uint8_t *work_write(const Work *work, const uint8_t *operations, uint8_t *p) {
        const WorkerJobParts parts = {
                .buffers = work->buffers,
                .modules = work->modules,
                .after = work->after,
                .names = work->names,
                .operations = operations ? operations : work->packed,
        };

        return job_message_write(p, work->job, &parts);
}

void jobs_send(Supervisor *supervisor, const uint8_t *jobs, size_t n_bytes) {
        supervisor_send(supervisor,
                        &(WorkerMessage){{.kind = TO_WORKER_JOBS, .n_items = (uint32_t)n_bytes},
                                         .items = jobs},
                        -1);
}

void work_send(Supervisor *supervisor, Work *work) {
        works_send(supervisor, work, 1);
}

void works_send(Supervisor *supervisor, Work *works, size_t n_works) {
        size_t n_bytes = 0;
        uint8_t *jobs, *p;

        for (size_t i = 0; i < n_works; ++i) {
                work_pack(&works[i]);
                n_bytes += job_message_bytes(&works[i].job);
        }
        jobs = p = malloc(n_bytes);
        assert_non_null(jobs);
        for (size_t i = 0; i < n_works; ++i)
                p = work_write(&works[i], NULL, p);
        jobs_send(supervisor, jobs, n_bytes);
        free(jobs);
}

const WorkerMessage *await_end(Supervisor *supervisor, uint64_t id) {
        const WorkerMessage *told = supervisor_await(supervisor, FROM_WORKER_ENDS);
        const WorkerEnd *end = told->items;

        assert_int_equal(told->head.n_items, 1);
        assert_int_equal(end->id, id);
        return told;
}

void await_done(Supervisor *supervisor, uint64_t id) {
        const WorkerMessage *told = await_end(supervisor, id);

        if (told->head.code)
                fail_msg("job %d failed: %s", (int)id, told->text);
}

void await_all(Supervisor *supervisor, size_t n) {
        while (n > 0) {
                const WorkerMessage *told = supervisor_await(supervisor, FROM_WORKER_ENDS);

                if (told->head.code)
                        fail_msg("a job failed: %s", told->text);
                assert_true(told->head.n_items <= n);
                n -= told->head.n_items;
        }
}

void await_refusal(Supervisor *supervisor, uint64_t id, Gpuq__V1__Code code, const char *text) {
        const WorkerMessage *told = await_end(supervisor, id);

        assert_string_equal(told->text, text);
        assert_int_equal(told->head.code, code);
}

Gpuq__V1__WorkerCounters work_counters(const WorkerMessage *stats) {
        Gpuq__V1__WorkerCounters *unpacked =
                gpuq__v1__worker_counters__unpack(NULL, stats->head.n_items, stats->items);
        Gpuq__V1__WorkerCounters counters;

        assert_non_null(unpacked);
        counters = *unpacked;
        gpuq__v1__worker_counters__free_unpacked(unpacked, NULL);
        return counters;
}

void add_module(Supervisor *supervisor, uint64_t id, const char *text) {
        const WorkerMessage *added = module_add_source(supervisor, id, text);

        assert_int_equal(added->head.id, id);
        if (added->head.code)
                fail_msg("module: %s", added->text);
}

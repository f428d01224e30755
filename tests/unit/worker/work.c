/* SPDX-License-Identifier: Apache-2.0 */
#include "work.h"

#include <stdio.h>

void work_init(Work *work, uint64_t id) {
        memset(work, 0, sizeof(*work));
        gpuq__worker__worker_job__init(&work->job);
        work->job.id = id;
        work->job.buffers = work->buffer_pointers;
        work->job.kernels = work->kernel_pointers;
}

uint32_t work_buffer(Work *work, uint64_t arena, uint64_t offset, uint64_t length,
                     Gpuq__V1__Direction direction) {
        size_t i = work->job.n_buffers++;

        gpuq__v1__buffer__init(&work->buffers[i]);
        work->buffers[i].arena = arena;
        work->buffers[i].offset = offset;
        work->buffers[i].length = length;
        work->buffers[i].direction = direction;
        work->buffer_pointers[i] = &work->buffers[i];
        return (uint32_t)i;
}

uint32_t work_kernel(Work *work, uint64_t module, const char *name) {
        size_t i = work->job.n_kernels++;

        gpuq__v1__kernel__init(&work->kernels[i]);
        work->kernels[i].module = module;
        work->kernels[i].name = (char *)name;
        work->kernel_pointers[i] = &work->kernels[i];
        return (uint32_t)i;
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
        work->job.operations.data = work->packed;
        work->job.operations.len = gpuq__v1__operations__pack(&operations, work->packed);
        assert_true(work->job.operations.len <= sizeof(work->packed));
}

void work_send(Supervisor *supervisor, Work *work) {
        works_send(supervisor, work, 1);
}

void works_send(Supervisor *supervisor, Work *works, size_t n_works) {
        Gpuq__Worker__JobList list = GPUQ__WORKER__JOB_LIST__INIT;
        Gpuq__Worker__WorkerJob **jobs = calloc(n_works, sizeof(*jobs));

        assert_non_null(jobs);
        for (size_t i = 0; i < n_works; ++i) {
                work_pack(&works[i]);
                jobs[i] = &works[i].job;
        }
        list.jobs = jobs;
        list.n_jobs = n_works;
        supervisor_send(supervisor, GPUQ__WORKER__TO_WORKER__BODY_JOBS, &list, -1);
        free(jobs);
}

/* The end of the one job that is in flight. */
const Gpuq__Worker__JobEnd *await_end(Supervisor *supervisor, uint64_t id) {
        const Gpuq__Worker__JobEnds *ends =
                supervisor_await(supervisor, GPUQ__WORKER__FROM_WORKER__BODY_ENDS)->ends;

        assert_int_equal(ends->n_ends, 1);
        assert_int_equal(ends->ends[0]->id, id);
        return ends->ends[0];
}

void await_done(Supervisor *supervisor, uint64_t id) {
        const Gpuq__Worker__JobEnd *end = await_end(supervisor, id);

        if (end->error)
                fail_msg("job %d failed: %s", (int)id, end->error->text);
}

void await_all(Supervisor *supervisor, size_t n) {
        while (n > 0) {
                const Gpuq__Worker__JobEnds *ends =
                        supervisor_await(supervisor, GPUQ__WORKER__FROM_WORKER__BODY_ENDS)->ends;

                assert_true(ends->n_ends <= n);
                n -= ends->n_ends;
                for (size_t i = 0; i < ends->n_ends; ++i)
                        if (ends->ends[i]->error)
                                fail_msg("job %d failed: %s", (int)ends->ends[i]->id,
                                         ends->ends[i]->error->text);
        }
}

void await_refusal(Supervisor *supervisor, uint64_t id, Gpuq__V1__Code code, const char *text) {
        const Gpuq__Worker__JobEnd *end = await_end(supervisor, id);

        assert_non_null(end->error);
        assert_string_equal(end->error->text, text);
        assert_int_equal(end->error->code, code);
}

void add_module(Supervisor *supervisor, uint64_t id, const char *text) {
        const Gpuq__Worker__ModuleAdded *added = module_add_source(supervisor, id, text);

        assert_int_equal(added->id, id);
        if (added->error)
                fail_msg("module: %s", added->error->text);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches
 *
 * Arguments are checked against what the daemon told of the kernel, so that a
 * mistake is told by the call that made it. The worker checks them again.
 */

#include "build.h"
#include "error.h"
#include "module.h"

#define LAUNCH_N_ARGS_FAST 32 /* with at most so many arguments no memory is taken */

static const char *launch_kind_name(unsigned kind) {
        static const char *const names[] = {
                [GPUQ_BYTES] = "bytes",
                [GPUQ_POINTER] = "a buffer",
                [GPUQ_I32] = "a 32-bit integer",
                [GPUQ_I64] = "a 64-bit integer",
                [GPUQ_F32] = "a float",
                [GPUQ_F64] = "a double",
                [GPUQ_I8] = "an 8-bit integer",
                [GPUQ_I16] = "a 16-bit integer",
                [GPUQ_WORD64] = "a buffer or a 64-bit integer",
        };

        return kind < ARRAY_SIZE(names) ? names[kind] : "something unknown";
}

static bool launch_kind_fits(unsigned wanted, unsigned given) {
        if (wanted == given || wanted == GPUQ_BYTES)
                return true;
        if (given == GPUQ_BYTES)
                return wanted != GPUQ_POINTER;

        return wanted == GPUQ_WORD64 && (given == GPUQ_POINTER || given == GPUQ_I64);
}

static int launch_check_arg(const Gpuq__V1__KernelInfo *kernel, size_t i, const gpuq_arg *arg) {
        const Gpuq__V1__Parameter *wanted = kernel->parameters[i];

        if (arg->kind == GPUQ_POINTER && !arg->buffer)
                return error_set(GPUQ_E_INVALID, "%s: argument %zu has no buffer", kernel->name, i);

        if (arg->size != wanted->size)
                return error_set(GPUQ_E_INVALID,
                                 "%s: argument %zu has %u bytes, %s; given are %zu, %s",
                                 kernel->name, i, wanted->size, launch_kind_name(wanted->kind),
                                 arg->size, launch_kind_name(arg->kind));

        if (kernel->kinds_known && !launch_kind_fits(wanted->kind, arg->kind))
                return error_set(GPUQ_E_INVALID, "%s: argument %zu is %s; given is %s",
                                 kernel->name, i, launch_kind_name(wanted->kind),
                                 launch_kind_name(arg->kind));
        return 0;
}

static int launch_check_args(const Gpuq__V1__KernelInfo *kernel, const gpuq_arg *args,
                             size_t n_args) {
        int r;

        if (n_args != kernel->n_parameters)
                return error_set(GPUQ_E_INVALID, "%s takes %zu arguments; given are %zu",
                                 kernel->name, kernel->n_parameters, n_args);

        for (size_t i = 0; i < n_args; i++) {
                r = launch_check_arg(kernel, i, &args[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int launch_argument(gpuq_job *job, const gpuq_arg *arg, Gpuq__V1__Argument *ret_argument) {
        Gpuq__V1__Argument argument = GPUQ__V1__ARGUMENT__INIT;
        int r;

        if (arg->buffer) {
                argument.kind = GPUQ__V1__KIND__POINTER;
                argument.value_case = GPUQ__V1__ARGUMENT__VALUE_BUFFER;
                r = build_buffer(job, arg->buffer, arg->direction, &argument.buffer);
                if (r < 0)
                        return r;
        } else {
                argument.kind = (Gpuq__V1__Kind)arg->kind;
                argument.value_case = GPUQ__V1__ARGUMENT__VALUE_SCALAR;
                argument.scalar.len = arg->size;
                argument.scalar.data = arg->kind == GPUQ_BYTES ? (uint8_t *)arg->value.bytes
                                                               : (uint8_t *)&arg->value;
        }

        *ret_argument = argument;
        return 0;
}

static void launch_config(const gpuq_config *config, Gpuq__V1__Launch *launch) {
        launch->grid_x = config->grid[0];
        launch->grid_y = config->grid[1];
        launch->grid_z = config->grid[2];
        launch->block_x = config->block[0];
        launch->block_y = config->block[1];
        launch->block_z = config->block[2];
        launch->shared_bytes = config->shared_bytes;
        launch->cluster_x = config->cluster[0];
        launch->cluster_y = config->cluster[1];
        launch->cluster_z = config->cluster[2];
        launch->cooperative = config->cooperative;
}

/* @space and @pointers: room for @n_args. */
static int launch_pack(gpuq_job *job, uint32_t kernel, const gpuq_config *config,
                       const gpuq_arg *args, size_t n_args, Gpuq__V1__Argument *space,
                       Gpuq__V1__Argument **pointers) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        Gpuq__V1__Launch launch = GPUQ__V1__LAUNCH__INIT;
        int r;

        for (size_t i = 0; i < n_args; i++) {
                pointers[i] = &space[i];
                r = launch_argument(job, &args[i], &space[i]);
                if (r < 0)
                        return r;
        }

        launch_config(config, &launch);
        launch.kernel = kernel;
        launch.n_arguments = n_args;
        launch.arguments = pointers;
        operation.what_case = GPUQ__V1__OPERATION__WHAT_LAUNCH;
        operation.launch = &launch;
        return build_append(job, &operation);
}

static int launch_many(gpuq_job *job, uint32_t kernel, const gpuq_config *config,
                       const gpuq_arg *args, size_t n_args) {
        _cleanup_(freep) Gpuq__V1__Argument *space = NULL;
        _cleanup_(freep) Gpuq__V1__Argument **pointers = NULL;

        space = calloc(n_args, sizeof(*space));
        pointers = calloc(n_args, sizeof(*pointers));
        if (!space || !pointers)
                return error_memory();

        return launch_pack(job, kernel, config, args, n_args, space, pointers);
}

static int launch_append(gpuq_job *job, gpuq_module *module, const char *name,
                         const gpuq_config *config, const gpuq_arg *args, size_t n_args) {
        Gpuq__V1__Argument space[LAUNCH_N_ARGS_FAST];
        Gpuq__V1__Argument *pointers[LAUNCH_N_ARGS_FAST];
        const Gpuq__V1__KernelInfo *kernel;
        uint32_t index;
        int r;

        if (!module || !name || !config || (!args && n_args > 0))
                return error_set(GPUQ_E_INVALID,
                                 "a launch without module, kernel, config or arguments");

        r = module_find(module, name, &kernel);
        if (r < 0)
                return r;

        r = launch_check_args(kernel, args, n_args);
        if (r < 0)
                return r;

        r = build_kernel(job, module, kernel->name, false, &index);
        if (r < 0)
                return r;

        if (n_args > LAUNCH_N_ARGS_FAST)
                return launch_many(job, index, config, args, n_args);
        return launch_pack(job, index, config, args, n_args, space, pointers);
}

int gpuq_job_launch(gpuq_job *job, gpuq_module *module, const char *kernel,
                    const gpuq_config *config, const gpuq_arg *args, size_t n_args) {
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;

        mark = build_mark(job);
        return build_leave(job, mark, launch_append(job, module, kernel, config, args, n_args));
}

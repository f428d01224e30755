/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy
 *
 * A question for the device, asked by a job like any other: so it waits for its turn, survives a
 * restart of the daemon, and needs no way of its own to a worker.
 */

#include <string.h>

#include "build.h"
#include "error.h"

static void buffer_finish(gpuq_buffer **buffer) {
        gpuq_buffer_free(*buffer);
}

static void job_finish(gpuq_job **job) {
        gpuq_job_free(*job);
}

static int occupancy_append(gpuq_job *job, gpuq_module *module, const char *name,
                            Gpuq__V1__Occupancy *occupancy, gpuq_buffer *buffer) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        const Gpuq__V1__KernelInfo *kernel;
        const Need *needs;
        int r;

        r = module_find(module, name, &kernel, &needs);
        if (r == 0)
                r = build_kernel(job, module, kernel->name, false, &occupancy->kernel);
        if (r == 0)
                r = build_buffer(job, buffer, GPUQ_OUT_WHOLE, &occupancy->buffer);
        if (r < 0)
                return r;

        operation.what_case = GPUQ__V1__OPERATION__WHAT_OCCUPANCY;
        operation.occupancy = occupancy;
        return build_append(job, &operation);
}

static int occupancy_build(gpuq_job *job, gpuq_module *module, const char *name,
                           Gpuq__V1__Occupancy *occupancy, gpuq_buffer *buffer) {
        BuildMark mark;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;
        mark = build_mark(job);
        return build_leave(job, mark, occupancy_append(job, module, name, occupancy, buffer));
}

int gpuq_module_occupancy(gpuq_module *module, const char *kernel, unsigned threads,
                          unsigned shared_bytes, int device, unsigned *ret_blocks) {
        _cleanup_(buffer_finish) gpuq_buffer *buffer = NULL;
        _cleanup_(job_finish) gpuq_job *job = NULL;
        Gpuq__V1__Occupancy occupancy = GPUQ__V1__OCCUPANCY__INIT;
        uint32_t blocks;
        int r;

        if (!module || !kernel)
                return error_set(GPUQ_E_INVALID,
                                 "gpuq_module_occupancy(): module or kernel is NULL");

        if (threads == 0)
                return error_set(GPUQ_E_INVALID, "a block has at least one thread");

        occupancy.threads = threads;
        occupancy.shared_bytes = shared_bytes;
        r = gpuq_buffer_new(module->client, sizeof(blocks), &buffer);
        if (r == 0)
                r = gpuq_job_new(module->client, &job);
        if (r == 0)
                r = gpuq_job_set_device(job, device);
        if (r == 0)
                r = occupancy_build(job, module, kernel, &occupancy, buffer);
        if (r == 0)
                r = gpuq_run(job);
        if (r < 0)
                return r;

        memcpy(&blocks, gpuq_buffer_data(buffer), sizeof(blocks));
        *ret_blocks = blocks;
        return 0;
}

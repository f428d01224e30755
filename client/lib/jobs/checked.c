/* SPDX-License-Identifier: Apache-2.0 */
#include "checked.h"

#include <string.h>

/* A name that is not the job's own is the module's, and the original may be freed. */
static int checked_replace(gpuq_job *job, size_t i, gpuq_module *module) {
        JobKernel *kernel = &job->kernels[i];
        const Gpuq__V1__KernelInfo *info;
        const Need *needs;
        int r;

        if (!kernel->owned) {
                r = module_find(module, kernel->name, &info, &needs);
                if (r < 0)
                        return r;
                kernel->name = info->name;
        }
        module_ref(module);
        module_unref(kernel->module);
        kernel->module = module;
        return 0;
}

static int checked_prepare_all(gpuq_job *job) {
        gpuq_module *module, *checked;
        int r;

        for (size_t i = 0; i < job->n_kernels; i++) {
                module = job->kernels[i].module;
                r = module_find_checked(module, &checked);
                if (r < 0)
                        return r;
                /* Another thread may have changed the job while the lock was free. */
                if (checked == module || i >= job->n_kernels || job->kernels[i].module != module)
                        continue;
                r = checked_replace(job, i, checked);
                if (r < 0)
                        return r;
        }
        return 0;
}

int checked_prepare(gpuq_job *job) {
        gpuq_client *client = job->client;
        int r;

        if (!job->settings.is_checked || job->state != GPUQ_BUILDING)
                return 0;

        job_ref(job);
        client_ref(client);
        r = checked_prepare_all(job);
        job_unref(job);
        client_unref(client);
        return r;
}

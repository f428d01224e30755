/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory
 *
 * NVML is declared here as far as it is used: nvml.h of CUDA 12.4, whose
 * functions carry their versions in their names.
 */
#include "worker/memory.h"

#include <dlfcn.h>
#include <string.h>

#define NVML_PROCESSES_MAX 1024u
#define NVML_UNKNOWN       UINT64_MAX

typedef struct NvmlDevice NvmlDevice;

typedef struct NvmlProcess {
        unsigned pid;
        unsigned long long used_memory; /* bytes, NVML_UNKNOWN: not told */
        unsigned gpu_instance, compute_instance;
} NvmlProcess;

typedef struct NvmlMemory {
        unsigned long long total, free, used; /* bytes */
} NvmlMemory;

typedef struct Nvml {
        int (*init)(void);
        int (*device_by_pci)(const char *pci, NvmlDevice **ret_device);
        int (*processes)(NvmlDevice *device, unsigned *n_processes, NvmlProcess *ret_processes);
        int (*memory)(NvmlDevice *device, NvmlMemory *ret_memory);
        NvmlDevice *device;
        NvmlProcess list[NVML_PROCESSES_MAX];
} Nvml;

static bool nvml_resolve(Nvml *nvml) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
                return false;
        *(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
        *(void **)&nvml->device_by_pci = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
        *(void **)&nvml->processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
        *(void **)&nvml->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
        return nvml->init && nvml->device_by_pci && nvml->processes && nvml->memory;
}

static Nvml *nvml_open(const char *pci) {
        Nvml *nvml = calloc(1, sizeof(*nvml));

        if (!nvml)
                return NULL;
        if (!nvml_resolve(nvml) || nvml->init() != 0 ||
            nvml->device_by_pci(pci, &nvml->device) != 0) {
                free(nvml);
                return NULL;
        }
        return nvml;
}

static bool nvml_own(Nvml *nvml, uint64_t *ret_n_bytes) {
        unsigned n = NVML_PROCESSES_MAX, pid = (unsigned)getpid();

        if (nvml->processes(nvml->device, &n, nvml->list) != 0)
                return false;
        for (unsigned i = 0; i < n; ++i)
                if (nvml->list[i].pid == pid && nvml->list[i].used_memory != NVML_UNKNOWN) {
                        *ret_n_bytes = nvml->list[i].used_memory;
                        return true;
                }
        return false;
}

/* In a container NVML lists pids of another namespace: then report the use of the whole device. */
static bool nvml_ask(Nvml *nvml, MemoryUse *ret_use) {
        NvmlMemory all;

        if (nvml->memory(nvml->device, &all) != 0)
                return false;
        *ret_use = (MemoryUse){.own = all.used, .all = all.used};
        (void)nvml_own(nvml, &ret_use->own);
        return true;
}

void memory_init(Memory *memory, Context *context, uv_loop_t *loop, MemoryFunc func,
                 void *userdata) {
        *memory = (Memory){
                .context = context,
                .loop = loop,
                .func = func,
                .userdata = userdata,
        };
        memory->work.data = memory;
}

static void memory_on_ask(uv_work_t *work) {
        Memory *memory = work->data;

        if (!memory->opened) {
                memory->nvml = nvml_open(memory->context->pci);
                memory->opened = true;
        }
        memory->has_use = memory->nvml && nvml_ask(memory->nvml, &memory->use);
}

static void memory_ask_driver(Memory *memory) {
        size_t n_free, n_total;

        if (memory->context->cu->cuMemGetInfo(&n_free, &n_total) != CUDA_SUCCESS)
                return;
        memory->use = (MemoryUse){.own = n_total - n_free, .all = n_total - n_free};
        memory->func(&memory->use, memory->userdata);
}

static void memory_on_asked(uv_work_t *work, int status) {
        Memory *memory = work->data;

        memory->asking = false;
        if (memory->has_use)
                memory->func(&memory->use, memory->userdata);
        else
                memory_ask_driver(memory);
}

void memory_ask(Memory *memory) {
        if (memory->context->cu->cpu) {
                memory_ask_driver(memory);
                return;
        }
        if (memory->asking)
                return;
        memory->asking =
                uv_queue_work(memory->loop, &memory->work, memory_on_ask, memory_on_asked) == 0;
}

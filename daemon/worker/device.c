/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device
 *
 * NVML is declared here as far as it is used: nvml.h of CUDA 12.4, and the field of R570 in which the
 * driver reports how to repair a broken device.
 */
#include "worker/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NVML_ERROR_NOT_FOUND   6
#define NVML_ERROR_GPU_IS_LOST 15

#define NVML_FIELD_RECOVERY_ACTION 230
enum {
        NVML_RECOVERY_NONE = 0,
        NVML_RECOVERY_RESET = 1,
        NVML_RECOVERY_REBOOT = 2,
        NVML_RECOVERY_DRAIN_P2P = 3, /* copies between devices, which gpuq does not make */
        NVML_RECOVERY_DRAIN_AND_RESET = 4,
};

typedef struct NvmlDevice NvmlDevice;

typedef struct NvmlField {
        unsigned id, scope;
        long long time_us, latency_us;
        int type, result;
        union {
                unsigned number;
                double widest;
        } value;
} NvmlField;

typedef struct Nvml {
        int (*init)(void);
        int (*device_by_pci)(const char *pci, NvmlDevice **ret_device);
        int (*memory)(NvmlDevice *device, unsigned long long ret_bytes[static 3]);
        int (*fields)(NvmlDevice *device, int n_fields, NvmlField *fields);
} Nvml;

/* ---- which ------------------------------------------------------------------------- */

void device_uuid(const Driver *cu, CUdevice device, char text[static DEVICE_UUID_MAX]) {
        CUuuid uuid;
        size_t n;

        text[0] = '\0';
        if (cu->cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
                return;

        n = (size_t)snprintf(text, DEVICE_UUID_MAX, "GPU-");
        for (unsigned i = 0; i < sizeof(uuid.bytes); ++i)
                n += (size_t)snprintf(text + n, DEVICE_UUID_MAX - n, "%s%02x",
                                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                      (unsigned char)uuid.bytes[i]);
}

int device_find(const Driver *cu, const char *uuid, unsigned *ret_ordinal, Failure *failure) {
        char text[DEVICE_UUID_MAX];
        int n_devices = 0;
        CUdevice device;

        if (cu->cuDeviceGetCount(&n_devices) != CUDA_SUCCESS)
                n_devices = 0;
        for (int i = 0; i < n_devices; ++i) {
                if (cu->cuDeviceGet(&device, i) != CUDA_SUCCESS)
                        continue;
                device_uuid(cu, device, text);
                if (strcmp(text, uuid) == 0) {
                        *ret_ordinal = (unsigned)i;
                        return 0;
                }
        }

        failure_set(failure, GPUQ__V1__CODE__E_NO_DEVICE,
                    "the GPU driver no longer finds the device");
        failure->is_device = true;
        return FAILURE_E_SET;
}

/* ---- whether ----------------------------------------------------------------------- */

bool device_is_broken(CUresult result) {
        switch ((int)result) {
                case CUDA_ERROR_NOT_INITIALIZED:
                case CUDA_ERROR_DEINITIALIZED:
                case CUDA_ERROR_DEVICE_UNAVAILABLE:
                case CUDA_ERROR_NO_DEVICE:
                case CUDA_ERROR_INVALID_DEVICE:
                case CUDA_ERROR_OPERATING_SYSTEM:
                case CUDA_ERROR_LAUNCH_FAILED:
                case CUDA_ERROR_SYSTEM_NOT_READY:
                case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
                case CUDA_ERROR_UNKNOWN:
                        return true;
                default:
                        return device_broke(result);
        }
}

bool device_broke(CUresult result) {
        switch ((int)result) {
                case CUDA_ERROR_DEVICE_UNAVAILABLE:
                case CUDA_ERROR_ECC_UNCORRECTABLE:
                case CUDA_ERROR_NVLINK_UNCORRECTABLE:
                        return true;
                default:
                        return false;
        }
}

/* ---- NVML -------------------------------------------------------------------------- */

static bool device_open_nvml(Nvml *nvml) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
                return false;
        *(void **)&nvml->init = dlsym(library, "nvmlInit_v2");
        *(void **)&nvml->device_by_pci = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
        *(void **)&nvml->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
        *(void **)&nvml->fields = dlsym(library, "nvmlDeviceGetFieldValues");
        return nvml->init && nvml->device_by_pci && nvml->memory && nvml->fields &&
               nvml->init() == 0;
}

static const char *device_describe_action(unsigned action) {
        switch (action) {
                case NVML_RECOVERY_NONE:
                case NVML_RECOVERY_DRAIN_P2P:
                        return NULL;
                case NVML_RECOVERY_RESET:
                        return "NVML: the device needs a reset";
                case NVML_RECOVERY_REBOOT:
                        return "NVML: the device needs a reboot of the machine";
                case NVML_RECOVERY_DRAIN_AND_RESET:
                        return "NVML: the device must be drained and reset";
                default:
                        return "NVML: the device needs a recovery action";
        }
}

/* Older drivers do not know the field, which says nothing about the device. */
static const char *device_ask_action(const Nvml *nvml, NvmlDevice *device) {
        NvmlField field = {.id = NVML_FIELD_RECOVERY_ACTION};

        if (nvml->fields(device, 1, &field) != 0 || field.result != 0)
                return NULL;
        return device_describe_action(field.value.number);
}

bool device_ask_nvml(const char *pci, const char **ret_problem) {
        unsigned long long bytes[3];
        NvmlDevice *device;
        const char *problem;
        Nvml nvml;
        int r;

        if (!device_open_nvml(&nvml))
                return false;
        r = nvml.device_by_pci(pci, &device);
        if (r == 0)
                r = nvml.memory(device, bytes);
        if (r == NVML_ERROR_GPU_IS_LOST)
                problem = "NVML: the device has fallen off the bus";
        else if (r == NVML_ERROR_NOT_FOUND)
                problem = "NVML: device not found";
        else
                problem = r == 0 ? device_ask_action(&nvml, device) : NULL;

        if (!problem)
                return false;
        *ret_problem = problem;
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML
 */
#include "nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

#define NVML_TEMPERATURE_GPU 0 /* nvmlTemperatureSensors_t */

typedef struct NvmlUtilization {
        unsigned gpu, memory;
} NvmlUtilization;

typedef struct NvmlMemory {
        unsigned long long total, free, used;
} NvmlMemory;

/* Each function returns 0 on success. */
struct Nvml {
        void *library;
        int (*init)(void);
        int (*shutdown)(void);
        int (*count)(unsigned *ret_n);
        int (*by_index)(unsigned index, void **ret_device);
        int (*by_uuid)(const char *uuid, void **ret_device);
        int (*mode)(void *device, int *ret_mode);
        int (*utilization)(void *device, NvmlUtilization *ret_utilization);
        int (*temperature)(void *device, int sensor, unsigned *ret_temperature);
        int (*power)(void *device, unsigned *ret_milliwatts);
        int (*power_max)(void *device, unsigned *ret_milliwatts);
        int (*memory)(void *device, NvmlMemory *ret_memory);
};

static bool nvml_find(Nvml *nvml) {
        const struct {
                void *function;
                const char *name;
        } functions[] = {
                {&nvml->init, "nvmlInit_v2"},
                {&nvml->shutdown, "nvmlShutdown"},
                {&nvml->count, "nvmlDeviceGetCount_v2"},
                {&nvml->by_index, "nvmlDeviceGetHandleByIndex_v2"},
                {&nvml->by_uuid, "nvmlDeviceGetHandleByUUID"},
                {&nvml->mode, "nvmlDeviceGetComputeMode"},
                {&nvml->utilization, "nvmlDeviceGetUtilizationRates"},
                {&nvml->temperature, "nvmlDeviceGetTemperature"},
                {&nvml->power, "nvmlDeviceGetPowerUsage"},
                {&nvml->power_max, "nvmlDeviceGetEnforcedPowerLimit"},
                {&nvml->memory, "nvmlDeviceGetMemoryInfo"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
                void *function = dlsym(nvml->library, functions[i].name);

                if (!function)
                        return false;
                *(void **)functions[i].function = function;
        }
        return true;
}

Nvml *nvml_new(void) {
        Nvml *nvml = calloc(1, sizeof(*nvml));

        if (!nvml)
                return NULL;
        nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (nvml->library && nvml_find(nvml) && nvml->init() == 0)
                return nvml;

        if (nvml->library)
                dlclose(nvml->library);
        free(nvml);
        return NULL;
}

Nvml *nvml_free(Nvml *nvml) {
        if (!nvml)
                return NULL;

        nvml->shutdown();
        dlclose(nvml->library);
        free(nvml);
        return NULL;
}

void nvml_read(const Nvml *nvml, const char *uuid, NvmlReading *ret_reading) {
        NvmlUtilization utilization;
        unsigned temperature, power;
        NvmlMemory memory;
        void *device;

        *ret_reading = (NvmlReading){
                .utilization = NVML_UNKNOWN,
                .temperature = NVML_UNKNOWN,
                .power = NVML_UNKNOWN,
                .power_max = NVML_UNKNOWN,
        };
        if (!nvml || nvml->by_uuid(uuid, &device) != 0)
                return;

        if (nvml->utilization(device, &utilization) == 0)
                ret_reading->utilization = (int)utilization.gpu;
        if (nvml->temperature(device, NVML_TEMPERATURE_GPU, &temperature) == 0)
                ret_reading->temperature = (int)temperature;
        if (nvml->power(device, &power) == 0)
                ret_reading->power = (int)((power + 500) / 1000);
        if (nvml->power_max(device, &power) == 0)
                ret_reading->power_max = (int)((power + 500) / 1000);
        if (nvml->memory(device, &memory) == 0) {
                ret_reading->memory_used = memory.used;
                ret_reading->memory_total = memory.total;
        }
}

unsigned nvml_count(const Nvml *nvml) {
        unsigned n;

        return nvml->count(&n) == 0 ? n : 0;
}

int nvml_mode(const Nvml *nvml, unsigned index) {
        void *device;
        int mode;

        if (nvml->by_index(index, &device) != 0 || nvml->mode(device, &mode) != 0)
                return NVML_UNKNOWN;
        return mode;
}

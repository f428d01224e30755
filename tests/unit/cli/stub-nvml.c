/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A management library of two GPUs. The second tells only its memory.
 */

static int ready;
static char devices[2];

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *ret_n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_device);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_device);
int nvmlDeviceGetComputeMode(void *device, int *ret_mode);
int nvmlDeviceGetUtilizationRates(void *device, unsigned *ret_rates);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret_temperature);
int nvmlDeviceGetPowerUsage(void *device, unsigned *ret_power);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *ret_power);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret_memory);

int nvmlInit_v2(void) {
        ready = 1;
        return 0;
}

int nvmlShutdown(void) {
        ready = 0;
        return 0;
}

int nvmlDeviceGetCount_v2(unsigned *ret_n) {
        *ret_n = 2;
        return !ready;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret_device) {
        if (!ready || index > 1)
                return 1;
        *ret_device = &devices[index];
        return 0;
}

/* "GPU-0" and "GPU-1". */
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_device) {
        return nvmlDeviceGetHandleByIndex_v2((unsigned)(uuid[4] - '0'), ret_device);
}

int nvmlDeviceGetComputeMode(void *device, int *ret_mode) {
        *ret_mode = device == &devices[1] ? 3 : 0;
        return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned *ret_rates) {
        ret_rates[0] = 87;
        ret_rates[1] = 12;
        return device == &devices[1];
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *ret_temperature) {
        *ret_temperature = 61;
        return device == &devices[1] || sensor != 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *ret_power) {
        *ret_power = 344600;
        return device == &devices[1];
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *ret_power) {
        *ret_power = 700000;
        return device == &devices[1];
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret_memory) {
        (void)device;
        ret_memory[0] = 80ull << 30;
        ret_memory[1] = 50ull << 30;
        ret_memory[2] = 30ull << 30;
        return 0;
}

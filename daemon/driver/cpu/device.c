/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/device.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "util/macro.h"

#define DEVICE_DRIVER_VERSION 12040 /* the API that is spoken: CUDA 12.4 */

static Device devices[DEVICE_MAX];
static _Atomic int n_devices;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The number in an environment variable, or @otherwise. */
static uint64_t device_setting(const char *name, uint64_t otherwise, uint64_t most) {
        const char *text = getenv(name);
        unsigned long long value;
        char *end;

        if (!text || !*text)
                return otherwise;

        errno = 0;
        value = strtoull(text, &end, 10);
        if (errno || *end || value == 0)
                return otherwise;

        return MIN(value, most);
}

static unsigned device_cores(void) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) == 0)
                return (unsigned)CPU_COUNT(&set);

        return (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

static void device_init(void) {
        uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        int n_all = (int)device_setting("GPUQ_CPU_DEVICES", 1, DEVICE_MAX), n = 0;

        for (int number = 0; number < n_all; number++) {
                Device *device = &devices[n];

                if (broken_is_gone(number))
                        continue;
                device->ordinal = n++;
                device->number = number;
                device->n_threads =
                        (unsigned)device_setting("GPUQ_CPU_THREADS", device_cores(), 1024);
                device->total = device_setting("GPUQ_CPU_MEMORY", ram / 4, SIZE_MAX);
        }

        n_devices = n;
}

bool device_ready(void) {
        return n_devices > 0;
}

Device *device_find(CUdevice ordinal) {
        if (ordinal < 0 || ordinal >= n_devices)
                return NULL;

        return &devices[ordinal];
}

CUresult device_charge(Device *device, size_t n_bytes) {
        size_t used = device->used;

        do {
                if (n_bytes > device->total - used)
                        return CUDA_ERROR_OUT_OF_MEMORY;
        } while (!atomic_compare_exchange_weak(&device->used, &used, used + n_bytes));

        return CUDA_SUCCESS;
}

void device_uncharge(Device *device, size_t n_bytes) {
        device->used -= n_bytes;
}

CUresult cuInit(unsigned int flags) {
        CUresult r;

        if (flags)
                return CUDA_ERROR_INVALID_VALUE;
        r = broken_driver();
        if (r)
                return r;

        pthread_once(&once, device_init);
        return n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *ret_version) {
        if (!ret_version)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_version = DEVICE_DRIVER_VERSION;
        return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *ret_count) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;
        if (!ret_count)
                return CUDA_ERROR_INVALID_VALUE;

        *ret_count = n_devices;
        return CUDA_SUCCESS;
}

/* What every query of a device checks. */
static CUresult device_query(CUdevice ordinal, const void *ret, Device **ret_device) {
        if (!device_ready())
                return CUDA_ERROR_NOT_INITIALIZED;

        *ret_device = device_find(ordinal);
        if (!*ret_device)
                return CUDA_ERROR_INVALID_DEVICE;

        return ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGet(CUdevice *ret_device, int ordinal) {
        Device *device;
        CUresult r;

        r = device_query(ordinal, ret_device, &device);
        if (r)
                return r;

        *ret_device = ordinal;
        return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int n_name, CUdevice ordinal) {
        Device *device;
        CUresult r;

        r = device_query(ordinal, name, &device);
        if (r)
                return r;
        if (n_name <= 0)
                return CUDA_ERROR_INVALID_VALUE;

        snprintf(name, (size_t)n_name, "CPU (%u thread%s)", device->n_threads,
                 device->n_threads == 1 ? "" : "s");
        return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *ret_uuid, CUdevice ordinal) {
        Device *device;
        CUresult r;

        r = device_query(ordinal, ret_uuid, &device);
        if (r)
                return r;

        memcpy(ret_uuid->bytes, "gpuq-cpu-device\0", sizeof(ret_uuid->bytes));
        ret_uuid->bytes[15] = (char)device->number;
        return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int n_id, CUdevice ordinal) {
        char text[sizeof("ffff:00:00.0")];
        Device *device;
        CUresult r;

        r = device_query(ordinal, id, &device);
        if (r)
                return r;

        /* A domain that no real device is in. */
        snprintf(text, sizeof(text), "ffff:%02x:00.0", (unsigned)device->number & 0xff);
        if (n_id < (int)sizeof(text))
                return CUDA_ERROR_INVALID_VALUE;

        memcpy(id, text, sizeof(text));
        return CUDA_SUCCESS;
}

/* All devices are in the same memory. As with CUDA, a device is not a peer of itself. */
CUresult cuDeviceCanAccessPeer(int *ret_can, CUdevice ordinal, CUdevice peer_ordinal) {
        Device *device, *peer;
        CUresult r;

        r = device_query(ordinal, ret_can, &device);
        if (r)
                return r;
        r = device_query(peer_ordinal, ret_can, &peer);
        if (r)
                return r;

        *ret_can = device != peer;
        return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *ret_value, CUdevice_P2PAttribute attribute, CUdevice ordinal,
                                 CUdevice peer_ordinal) {
        if (attribute != CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
                return CUDA_ERROR_INVALID_VALUE;
        return cuDeviceCanAccessPeer(ret_value, ordinal, peer_ordinal);
}

CUresult cuDeviceTotalMem_v2(size_t *ret_bytes, CUdevice ordinal) {
        Device *device;
        CUresult r;

        r = device_query(ordinal, ret_bytes, &device);
        if (r)
                return r;

        *ret_bytes = device->total;
        return CUDA_SUCCESS;
}

/* Attributes that are the same for each device; what is missing is 0. */
static const int attributes[] = {
        [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = DEVICE_MAX_THREADS,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = INT_MAX,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
        [CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = DEVICE_SHARED,
        [CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 64 << 10,
        [CU_DEVICE_ATTRIBUTE_WARP_SIZE] = DEVICE_WARP,
        [CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 64 << 10,
        [CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1000000, /* kHz: clock64() counts nanoseconds */
        /* An H200's, so that what is refused there is refused here. */
        [CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = DEVICE_TEXTURE_ALIGNMENT,
        [CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = DEVICE_PITCH_ALIGNMENT,
        [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = 1 << 28,
        [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = 131072,
        [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = 65000,
        [CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = 2097120,
        [CU_DEVICE_ATTRIBUTE_INTEGRATED] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
        [CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
        [CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = 0xffff,
        [CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = DEVICE_MULTI_THREADS,
        [CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 2,
        [CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
        [CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
        [CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = DEVICE_MULTI_SHARED,
        [CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = 64 << 10,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] = 1,
        [CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
        [CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = DEVICE_SHARED_OPTIN,
        [CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = DEVICE_MAX_BLOCKS,
        [CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1,
        [CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] = 1,
        [CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
};
#define DEVICE_ATTRIBUTE_LAST 142 /* of CUDA 12.4; later ones are unknown */

CUresult cuDeviceGetAttribute(int *ret_value, CUdevice_attribute attribute, CUdevice ordinal) {
        Device *device;
        CUresult r;

        r = device_query(ordinal, ret_value, &device);
        if (r)
                return r;
        if ((int)attribute < 1 || (int)attribute > DEVICE_ATTRIBUTE_LAST)
                return CUDA_ERROR_INVALID_VALUE;

        switch (attribute) {
                case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
                        *ret_value = (int)device->n_threads;
                        break;
                case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
                        *ret_value = device->number;
                        break;
                default:
                        *ret_value = (size_t)attribute < ARRAY_SIZE(attributes)
                                             ? attributes[attribute]
                                             : 0;
        }

        return CUDA_SUCCESS;
}

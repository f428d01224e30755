/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe
 */
#include "worker/probe.h"

#include <stdio.h>
#include <string.h>

#include "util/log.h"
#include "worker/device.h"
#include "worker/check.h"

#define PROBE_DEVICES_MAX 256
#define PROBE_PEERS_MAX   64u /* bits in WorkerDevice.peers */

typedef struct Probe {
        Driver *driver;
        char version[64];
        WorkerDevice devices[PROBE_DEVICES_MAX];
        unsigned n_devices;
        Failure failure;
} Probe;

static int probe_check(Probe *probe, CUresult result, const char *what) {
        char text[256];

        if (result == CUDA_SUCCESS)
                return 0;
        return failure_set(&probe->failure, GPUQ__V1__CODE__E_NO_DEVICE, "%s: %s", what,
                           result_text(probe->driver, result, text, sizeof(text)));
}

static int probe_device(Probe *probe, unsigned i) {
        const Driver *cu = probe->driver;
        WorkerDevice *device = &probe->devices[i];
        CUdevice handle;
        size_t n_bytes;
        int r;

        r = probe_check(probe, cu->cuDeviceGet(&handle, (int)i), "cuDeviceGet");
        if (r)
                return r;
        r = probe_check(probe, cu->cuDeviceGetName(device->name, sizeof(device->name), handle),
                        "cuDeviceGetName");
        if (r)
                return r;
        r = probe_check(probe, cu->cuDeviceTotalMem(&n_bytes, handle), "cuDeviceTotalMem");
        if (r)
                return r;
        device->memory_total = n_bytes;

        device_uuid(cu, handle, device->uuid);
        if (cu->cuDeviceGetPCIBusId(device->pci, sizeof(device->pci), handle) != CUDA_SUCCESS)
                device->pci[0] = '\0';
        text_clean(device->name);
        return 0;
}

/* Without peer access, data goes from device to device through host memory. */
static void probe_peer(Probe *probe, unsigned i, CUdevice handle, unsigned k, CUdevice other) {
        const Driver *cu = probe->driver;
        int can, atomic;

        if (cu->cuDeviceCanAccessPeer(&can, handle, other) != CUDA_SUCCESS || !can)
                return;
        probe->devices[i].peers |= UINT64_C(1) << k;
        if (cu->cuDeviceGetP2PAttribute(&atomic, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                        handle, other) == CUDA_SUCCESS &&
            atomic)
                probe->devices[i].near |= UINT64_C(1) << k;
}

static int probe_peers(Probe *probe, unsigned i) {
        const Driver *cu = probe->driver;
        CUdevice handle, other;
        int r;

        r = probe_check(probe, cu->cuDeviceGet(&handle, (int)i), "cuDeviceGet");
        for (unsigned k = 0; r == 0 && k < MIN(probe->n_devices, PROBE_PEERS_MAX); ++k) {
                r = probe_check(probe, cu->cuDeviceGet(&other, (int)k), "cuDeviceGet");
                if (r == 0)
                        probe_peer(probe, i, handle, k, other);
        }
        return r;
}

/* "580.159.03 (CUDA 13.0)": the kernel module reports the first number, the library the second. */
static void probe_version(Probe *probe) {
        char module[DRIVER_VERSION_TEXT] = GPUQ_VERSION;
        int version = 0;

        if (!probe->driver->cpu)
                driver_module_version(module);

        probe->driver->cuDriverGetVersion(&version);
        snprintf(probe->version, sizeof(probe->version), "%s%s(CUDA %d.%d)", module,
                 module[0] ? " " : "", version / 1000, version % 1000 / 10);
}

static int probe_ask(Probe *probe, const WorkerOptions *options) {
        const char *problem;
        int r, n_devices;

        r = worker_open_driver(options, &probe->driver, &problem);
        if (r < 0)
                return failure_set(&probe->failure, GPUQ__V1__CODE__E_NO_DEVICE, "%s", problem);
        probe_version(probe);

        r = probe_check(probe, probe->driver->cuInit(0), "cuInit");
        if (r)
                return r;
        r = probe_check(probe, probe->driver->cuDeviceGetCount(&n_devices), "cuDeviceGetCount");
        if (r)
                return r;
        if (n_devices == 0)
                return failure_set(&probe->failure, GPUQ__V1__CODE__E_NO_DEVICE,
                                   "the GPU driver lists no device");

        for (unsigned i = 0; i < (unsigned)n_devices && i < PROBE_DEVICES_MAX; ++i) {
                r = probe_device(probe, i);
                if (r)
                        return r;
                probe->n_devices = i + 1;
        }
        for (unsigned i = 0; i < probe->n_devices; ++i) {
                r = probe_peers(probe, i);
                if (r)
                        return r;
        }
        return 0;
}

static int probe_send(const Probe *probe, Channel *channel) {
        WorkerMessage probed = {
                {.kind = FROM_WORKER_PROBED},
                .more = probe->version,
                .items = probe->devices,
        };

        failure_tell(&probe->failure, &probed);
        probed.head.n_items = probed.head.code ? 0 : probe->n_devices;
        return protocol_send(channel, &probed, -1);
}

int probe_run(const WorkerOptions *options, Channel *channel) {
        static Probe probe;
        int r;

        /* Its failure is what is sent. */
        if (options->uuid)
                (void)check_run(options, &probe.driver, &probe.failure);
        else
                (void)probe_ask(&probe, options);
        r = probe_send(&probe, channel);
        failure_clear(&probe.failure);
        driver_close(probe.driver);
        channel_free(channel);
        if (r) {
                log_error("cannot send the list of devices to the supervisor");
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

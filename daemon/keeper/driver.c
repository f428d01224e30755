/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver
 *
 * See driver.h. Looks at what the kernel shows, opens no device.
 */

#include "keeper/driver.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define PCI_FOLDER        "/sys/bus/pci/devices"
#define PCI_VENDOR_NVIDIA 0x10de
#define PCI_CLASS_DISPLAY 0x03 /* the class word's upper byte */

/* A number in hex from a file of sysfs, 0 if there is none. */
static unsigned pci_read(const char *device, const char *name) {
        char path[512];
        unsigned value = 0;
        FILE *file;

        snprintf(path, sizeof(path), PCI_FOLDER "/%s/%s", device, name);
        file = fopen(path, "re");
        if (!file)
                return 0;
        if (fscanf(file, "%x", &value) != 1)
                value = 0;
        fclose(file);
        return value;
}

static bool pci_has_gpu(void) {
        struct dirent *entry;
        bool found = false;
        DIR *folder;

        folder = opendir(PCI_FOLDER);
        if (!folder)
                return false;
        while (!found && (entry = readdir(folder)))
                found = entry->d_name[0] != '.' &&
                        pci_read(entry->d_name, "vendor") == PCI_VENDOR_NVIDIA &&
                        pci_read(entry->d_name, "class") >> 16 == PCI_CLASS_DISPLAY;
        closedir(folder);
        return found;
}

static bool driver_gpu_exists(void) {
        return access("/proc/driver/nvidia", F_OK) == 0 || access("/dev/nvidiactl", F_OK) == 0 ||
               pci_has_gpu();
}

const char *driver_choose(ConfigDriver configured) {
        switch (configured) {
                case CONFIG_DRIVER_GPU:
                        return "gpu";
                case CONFIG_DRIVER_CPU:
                        return "cpu";
                default:
                        return driver_gpu_exists() ? "gpu" : "cpu";
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver
 *
 * See driver.h. Reads what the kernel shows in /sys and /dev, and opens no device.
 */

#include "keeper/driver.h"

#include <dirent.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/macro.h"

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

/* ---- who may open the devices --------------------------------------------------- */

#define NODE_GROUP (S_IRGRP | S_IWGRP)
#define NODE_OTHER (S_IROTH | S_IWOTH)

static int driver_add_group(gid_t *groups, int n, const struct stat *node) {
        if ((node->st_mode & NODE_OTHER) == NODE_OTHER ||
            (node->st_mode & NODE_GROUP) != NODE_GROUP || node->st_gid == 0)
                return n;
        for (int i = 0; i < n; i++)
                if (groups[i] == node->st_gid)
                        return n;
        if (n < DRIVER_GROUPS_MAX)
                groups[n++] = node->st_gid;
        return n;
}

static int driver_add_nodes(gid_t *groups, int n, const char *folder, const char *pattern) {
        char path[256];
        struct stat node;
        glob_t found;

        snprintf(path, sizeof(path), "%s/%s", folder, pattern);
        if (glob(path, GLOB_NOSORT, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc; i++)
                        if (lstat(found.gl_pathv[i], &node) == 0 && !S_ISDIR(node.st_mode))
                                n = driver_add_group(groups, n, &node);
        globfree(&found);
        return n;
}

int driver_groups(const char *folder, const char *driver, gid_t groups[static DRIVER_GROUPS_MAX]) {
        /* The last two: of Tegra. */
        static const char *const nodes[] = {"nvidia*", "nvidia-caps/*", "nvmap", "nvhost*"};
        int n = 0;

        if (strcmp(driver, "cpu") == 0)
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++)
                n = driver_add_nodes(groups, n, folder, nodes[i]);
        return n;
}

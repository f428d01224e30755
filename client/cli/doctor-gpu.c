/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries are looked up as this process finds them; gpuqd's own search path may differ. None
 * of the calls initialises CUDA.
 */
#include "doctor-gpu.h"

#include <ctype.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "nvml.h"

#define MODULE_VERSION   "/proc/driver/nvidia/version"
#define PCI_NVIDIA       "0x10de"
#define PCI_DISPLAY      "0x03"
#define NAMED_MAX        5u /* processes whose names are printed */
#define ADVICE_MAKE_NODE "run `nvidia-modprobe -c 0 -u' as root, and then restart gpuqd"

static bool doctor_uses_gpu(const Doctor *doctor) {
        return doctor->status && strcmp(doctor->status->driver, "cpu") != 0;
}

/* ---- device nodes ---------------------------------------------------------- */

static bool node_access(const Doctor *doctor, const char *name, int mode) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/dev/%s", doctor->root, name);
        return access(path, mode) == 0;
}

/* Return: how many devices have a node; @ret_n_open: how many of these this user may open. */
static size_t nodes_count(const Doctor *doctor, size_t *ret_n_open) {
        char pattern[PATH_MAX];
        size_t n = 0;
        glob_t found;

        *ret_n_open = 0;
        snprintf(pattern, sizeof(pattern), "%s/dev/nvidia[0-9]*", doctor->root);
        if (glob(pattern, 0, NULL, &found) == 0)
                for (n = 0; n < found.gl_pathc; n++)
                        *ret_n_open += access(found.gl_pathv[n], R_OK | W_OK) == 0;
        globfree(&found);
        return n;
}

/* Its module need not be loaded. */
static bool bus_has_gpu(const Doctor *doctor) {
        char pattern[PATH_MAX], vendor[DOCTOR_TEXT], class[DOCTOR_TEXT];
        bool has = false;
        glob_t found;

        snprintf(pattern, sizeof(pattern), "%s/sys/bus/pci/devices/*", doctor->root);
        if (glob(pattern, 0, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc && !has; i++) {
                        const char *device = found.gl_pathv[i] + strlen(doctor->root);

                        has = doctor_read(doctor, vendor, "%s/vendor", device) > 0 &&
                              doctor_read(doctor, class, "%s/class", device) > 0 &&
                              strncmp(vendor, PCI_NVIDIA, strlen(PCI_NVIDIA)) == 0 &&
                              strncmp(class, PCI_DISPLAY, strlen(PCI_DISPLAY)) == 0;
                }
        globfree(&found);
        return has;
}

void doctor_check_gpu(Doctor *doctor) {
        const gpuq_status *status = doctor->status;
        char module[DOCTOR_TEXT];
        size_t n_open;

        if (status && (!doctor_uses_gpu(doctor) || strcmp(status->state, "ready") == 0))
                return;
        if (nodes_count(doctor, &n_open) || node_access(doctor, "nvidiactl", F_OK) ||
            doctor_read(doctor, module, MODULE_VERSION) >= 0 || bus_has_gpu(doctor))
                return;
        doctor->lacks_gpu = true;
        doctor_found(doctor, status ? DOCTOR_PROBLEM : DOCTOR_NOTE, DOCTOR_ADVICE_CPU,
                     "there is no NVIDIA GPU here");
}

static void nodes_found(Doctor *doctor, size_t n, size_t n_open) {
        if (n_open == n && node_access(doctor, "nvidiactl", R_OK | W_OK) &&
            node_access(doctor, "nvidia-uvm", R_OK | W_OK))
                doctor_found(doctor, DOCTOR_OK, NULL,
                             "nvidiactl, nvidia-uvm and the nodes of GPUs exist (%zu)", n);
        else
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "the nodes of GPUs exist (%zu); you may not open all of them, and "
                             "need not: only gpuqd opens them",
                             n);
}

void doctor_check_nodes(Doctor *doctor) {
        if (doctor->lacks_gpu)
                return;

        bool is_ready = doctor->status && strcmp(doctor->status->state, "ready") == 0;
        bool has_control = node_access(doctor, "nvidiactl", F_OK);
        size_t n_open, n = nodes_count(doctor, &n_open);
        const char *missing = !n                                        ? "nvidia0"
                              : !has_control                            ? "nvidiactl"
                              : node_access(doctor, "nvidia-uvm", F_OK) ? NULL
                                                                        : "nvidia-uvm";

        if (doctor->status && !doctor_uses_gpu(doctor)) {
                if (n)
                        doctor_found(
                                doctor, DOCTOR_NOTE,
                                "for the GPU, set device = gpu in gpuqd.conf and restart gpuqd",
                                "gpuqd uses the CPU driver, but /dev has nodes of GPUs (%zu)", n);
                else
                        doctor_found(doctor, DOCTOR_OK, NULL, "the CPU driver needs none");
        } else if (!n && !has_control && !doctor->status) {
                doctor_found(doctor, DOCTOR_NOTE, "on a machine with a GPU, " ADVICE_MAKE_NODE,
                             "/dev has no nodes of NVIDIA devices");
        } else if (missing) {
                /* Tegra and some containers have others. */
                doctor_found(doctor, is_ready ? DOCTOR_NOTE : DOCTOR_PROBLEM,
                             is_ready ? NULL : ADVICE_MAKE_NODE, "/dev/%s does not exist%s",
                             missing, is_ready ? ", but gpuqd can use its devices" : "");
        } else {
                nodes_found(doctor, n, n_open);
        }
}

/* ---- driver ---------------------------------------------------------------- */

/* The first word of digits and dots, such as 550.54.14. Return: its length; 0: there is none. */
static size_t version_find(const char *text, const char **ret_version) {
        for (;; text += strcspn(text, " \t\n")) {
                text += strspn(text, " \t\n");
                if (!*text)
                        return 0;

                size_t n = strspn(text, "0123456789."), n_word = strcspn(text, " \t\n");

                if (n == n_word && isdigit((unsigned char)*text) && memchr(text, '.', n)) {
                        *ret_version = text;
                        return n;
                }
        }
}

/* Reduces a text to that word, or to nothing. */
static void version_keep(char *text) {
        const char *version = text;
        size_t n = version_find(text, &version);

        memmove(text, version, n);
        text[n] = '\0';
}

/* Return: as CUDA counts, 12040 for 12.4; 0: no library. @ret_file: libcuda.so.550.54.14. */
static int libcuda_version(char ret_file[static PATH_MAX]) {
        void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        int (*ask)(int *) = NULL;
        struct link_map *map;
        int version = 0;

        *ret_file = '\0';
        if (!library)
                return 0;
        *(void **)&ask = dlsym(library, "cuDriverGetVersion");
        if (!ask || ask(&version) != 0)
                version = 0;
        if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !realpath(map->l_name, ret_file))
                *ret_file = '\0';
        return version;
}

static bool driver_is_of(const char *file, const char *module) {
        const char *version = strstr(file, "libcuda.so.");

        version = version ? version + strlen("libcuda.so.") : "";
        return !strchr(version, '.') || strcmp(version, module) == 0; /* others tell no version */
}

void doctor_check_driver(Doctor *doctor) {
        char module[DOCTOR_TEXT], reported[DOCTOR_TEXT] = "", file[PATH_MAX];
        int cuda = libcuda_version(file);

        if (doctor->lacks_gpu)
                return;
        if (doctor_read(doctor, module, MODULE_VERSION) < 0 && doctor->status &&
            !doctor_uses_gpu(doctor)) {
                doctor_found(doctor, DOCTOR_OK, NULL, "the CPU driver needs none of NVIDIA's");
                return;
        }
        if (!*module) {
                doctor_found(doctor, doctor_uses_gpu(doctor) ? DOCTOR_PROBLEM : DOCTOR_NOTE,
                             "for a GPU, install NVIDIA's driver, or load its module with "
                             "`modprobe nvidia'",
                             "NVIDIA's kernel module is not loaded");
                return;
        }
        version_keep(module);
        if (doctor_uses_gpu(doctor)) {
                snprintf(reported, sizeof(reported), "%s", doctor->status->driver_version);
                version_keep(reported);
        }

        if (*reported && strcmp(reported, module) != 0)
                doctor_found(doctor, DOCTOR_PROBLEM, "restart gpuqd",
                             "gpuqd started with driver %s, but the kernel module is %s now",
                             reported, module);
        else if (!cuda)
                doctor_found(doctor, DOCTOR_NOTE,
                             "install the driver's CUDA library (libcuda.so.1)",
                             "driver %s, but this process finds no libcuda.so.1", module);
        else if (!driver_is_of(file, module))
                doctor_found(
                        doctor, DOCTOR_PROBLEM,
                        "restart the machine, so that it loads the module of the installed driver",
                        "the kernel module is %s, but the library is %s", module, file);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "driver %s, for CUDA up to %d.%d", module,
                             cuda / 1000, cuda % 1000 / 10);
}

/* ---- NVRTC ----------------------------------------------------------------- */

/* In the order in which gpuqd's compiler tries them. */
static const char *const nvrtc_names[] = {"libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"};

/* As the loader finds it. Return: as libcuda_version(). */
static int nvrtc_version(void) {
        int (*ask)(int *, int *) = NULL;
        int major = 0, minor = 0;
        void *library = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(nvrtc_names) && !library; i++)
                library = dlopen(nvrtc_names[i], RTLD_LAZY | RTLD_LOCAL);
        if (library)
                *(void **)&ask = dlsym(library, "nvrtcVersion");
        return ask && ask(&major, &minor) == 0 ? 1000 * major + 10 * minor : 0;
}

static bool folder_has(const Doctor *doctor, const char *folder, const char *name, int mode) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s%s/%s", doctor->root, folder, name);
        return access(path, mode) == 0;
}

/* In a folder of the setting libraries. Not opened, as these are for the users of gpuqd's workers. */
static void nvrtc_find(const Doctor *doctor, DoctorCompilers *compilers) {
        _cleanup_(freep) char *folders = strdup(doctor->libraries ? doctor->libraries : "");
        const char *folder;

        for (char *rest = folders; (folder = strsep(&rest, ":"));)
                for (size_t i = 0; *folder == '/' && i < ARRAY_SIZE(nvrtc_names); i++) {
                        if (!folder_has(doctor, folder, nvrtc_names[i], R_OK))
                                continue;
                        compilers->nvrtc = 1000 * atoi(strrchr(nvrtc_names[i], '.') + 1);
                        snprintf(compilers->folder, sizeof(compilers->folder), "%s", folder);
                        return;
                }
}

static bool clang_is_there(const Doctor *doctor) {
        const char *variable = getenv("PATH"), *folder;
        _cleanup_(freep) char *folders = strdup(variable ? variable : "/usr/bin:/bin");
        bool found = false;

        for (char *rest = folders; !found && (folder = strsep(&rest, ":"));)
                found = folder_has(doctor, folder, "clang", X_OK) ||
                        folder_has(doctor, folder, "clang++", X_OK);
        return found;
}

static void compiler_is_missing(Doctor *doctor, const DoctorCompilers *compilers) {
        bool is_cpu = doctor->status && !doctor_uses_gpu(doctor);

        if (!compilers->has_clang)
                doctor_found(doctor, DOCTOR_NOTE,
                             "to run CUDA C++ source, install NVRTC (libnvrtc.so.12 or newer) or "
                             "clang; on a GPU, modules in PTX, cubins and fatbins run without them",
                             "this process finds neither NVRTC nor clang");
        else if (is_cpu)
                doctor_found(doctor, DOCTOR_OK, NULL,
                             "clang compiles source; this process finds no NVRTC");
        else
                doctor_found(
                        doctor, DOCTOR_NOTE,
                        "for all of CUDA C++, install NVRTC (libnvrtc.so.12 or newer), or name "
                        "its folder in libraries of gpuqd.conf",
                        "clang compiles source; this process finds no NVRTC");
}

void doctor_judge_compiler(Doctor *doctor, const DoctorCompilers *compilers) {
        int major = compilers->nvrtc / 1000, driver = compilers->driver;
        char version[PATH_MAX + 32];

        if (!compilers->nvrtc) {
                compiler_is_missing(doctor, compilers);
                return;
        }
        if (*compilers->folder)
                snprintf(version, sizeof(version), "%d in %s", major, compilers->folder);
        else
                snprintf(version, sizeof(version), "%d.%d", major, compilers->nvrtc % 1000 / 10);

        if (driver && compilers->nvrtc > driver)
                doctor_found(doctor, DOCTOR_NOTE,
                             "if kernels fail to load, install a newer driver or the NVRTC of the "
                             "driver's CUDA version",
                             "NVRTC of CUDA %s compiles source, newer than the driver's %d.%d",
                             version, driver / 1000, driver % 1000 / 10);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "NVRTC of CUDA %s compiles source", version);
}

void doctor_check_compiler(Doctor *doctor) {
        DoctorCompilers compilers = {.has_clang = clang_is_there(doctor)};
        char file[PATH_MAX];

        if (doctor->lacks_gpu)
                return;
        nvrtc_find(doctor, &compilers);
        if (!compilers.nvrtc)
                compilers.nvrtc = nvrtc_version();
        if (!doctor->status || doctor_uses_gpu(doctor))
                compilers.driver = libcuda_version(file);
        doctor_judge_compiler(doctor, &compilers);
}

/* ---- other programs -------------------------------------------------------- */

/* Return: 1: it has a device open, 0: not, or a negative errno: its descriptors cannot be read. */
static int process_has_device(const Doctor *doctor, pid_t pid) {
        char path[PATH_MAX], target[sizeof("/dev/nvidia")];
        struct dirent *entry;
        int has = 0;
        DIR *fds;

        snprintf(path, sizeof(path), "%s/proc/%d/fd", doctor->root, (int)pid);
        fds = opendir(path);
        if (!fds)
                return -errno;
        while (!has && (entry = readdir(fds))) {
                ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);

                has = n == (ssize_t)sizeof(target) - 1 &&
                      memcmp(target, "/dev/nvidia", (size_t)n) == 0;
        }
        closedir(fds);
        return has;
}

typedef struct Others {
        size_t n, n_unread;
        char names[256]; /* of the first, "a (12), b (13)" */
} Others;

static void others_add(Others *others, const char *name, pid_t pid) {
        size_t used = strlen(others->names);

        if (others->n++ < NAMED_MAX)
                snprintf(others->names + used, sizeof(others->names) - used, "%s%.20s (%d)",
                         used ? ", " : "", name, (int)pid);
}

static void others_found(Doctor *doctor, const Others *others) {
        char more[64] = "", unread[96] = "";

        if (others->n > NAMED_MAX)
                snprintf(more, sizeof(more), " and %zu more", others->n - NAMED_MAX);
        if (others->n_unread)
                snprintf(unread, sizeof(unread), "; run as root to see %zu more processes",
                         others->n_unread);
        if (others->n)
                doctor_found(doctor, DOCTOR_NOTE,
                             "programs that draw on the screen, such as Xorg and gnome-shell, are "
                             "normal; others share the GPU's time and memory with jobs, so run "
                             "their work through gpuq",
                             "other processes have a GPU open (%zu): %s%s%s", others->n,
                             others->names, more, unread);
        else
                doctor_found(doctor, others->n_unread ? DOCTOR_NOTE : DOCTOR_OK, NULL,
                             "no other process has a GPU open%s", unread);
}

/* A persistence daemon has nodes open for as long as the machine runs, and uses no GPU. */
void doctor_check_others(Doctor *doctor) {
        DIR *processes = doctor_open_processes(doctor);
        char name[DOCTOR_TEXT];
        Others others = {};
        pid_t pid;

        if (!processes) {
                doctor_found(doctor, DOCTOR_NOTE, NULL, "/proc cannot be read");
                return;
        }
        while ((pid = doctor_next_process(doctor, processes, name))) {
                if (pid == getpid() || strncmp(name, "gpuqd", 5) == 0 ||
                    strncmp(name, "nvidia-persiste", 15) == 0)
                        continue;
                if (strncmp(name, "nvidia-cuda-mps", 15) == 0) {
                        doctor_found(doctor, DOCTOR_NOTE,
                                     "if no other program needs it, stop it with `echo quit | "
                                     "nvidia-cuda-mps-control'; gpuqd does not use it",
                                     "MPS is running: %s (%d)", name, (int)pid);
                        continue;
                }

                int r = process_has_device(doctor, pid);

                if (r > 0)
                        others_add(&others, name, pid);
                else if (r < 0 && r != -ENOENT)
                        others.n_unread++;
        }
        closedir(processes);
        others_found(doctor, &others);
}

/* ---- compute mode ---------------------------------------------------------- */

/* Return: whether the mode is as gpuqd needs it. */
static bool mode_check(Doctor *doctor, const Nvml *nvml, unsigned index) {
        static const char *const modes[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                            "EXCLUSIVE_PROCESS"};
        int mode = nvml_mode(nvml, index);
        char advice[80];

        if (mode == NVML_UNKNOWN || mode == 0)
                return true;
        snprintf(advice, sizeof(advice), "run `nvidia-smi -i %u -c DEFAULT' as root", index);
        doctor_found(doctor, DOCTOR_PROBLEM, advice,
                     "GPU %u is in compute mode %s, but gpuqd's workers need several contexts",
                     index, mode > 0 && mode < (int)ARRAY_SIZE(modes) ? modes[mode] : "unknown");
        return false;
}

void doctor_check_mode(Doctor *doctor) {
        _cleanup_(nvml_freep) Nvml *nvml = NULL;
        bool is_right = true;
        unsigned n;

        if (doctor->lacks_gpu)
                return;
        if (doctor->status && !doctor_uses_gpu(doctor)) {
                doctor_found(doctor, DOCTOR_OK, NULL, "the CPU driver has none");
                return;
        }
        nvml = nvml_new();
        if (!nvml) {
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "could not be determined: NVIDIA's management library (NVML) is "
                             "missing or does not start");
                return;
        }
        n = nvml_count(nvml);
        for (unsigned i = 0; i < n; i++)
                is_right &= mode_check(doctor, nvml, i);
        if (is_right)
                doctor_found(doctor, DOCTOR_OK, NULL, "DEFAULT on all GPUs (%u)", n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/bounds.h"
#include "util/macro.h"

/* Not libcap: this is its only call. */
int spare_limit_rights(void) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

        if (geteuid() != 0)
                return 0;
        /* Elsewhere libcuda may need a setuid program, see keeper/process.c. */
        if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
                (void)bounds_drop(0);
        data[0].permitted = data[0].effective = 1u << CAP_SETUID | 1u << CAP_SETGID;
        return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* ---- what the kernel says of a thread ------------------------------------------ */

static bool ids_are(const char *line, unsigned id) {
        unsigned ids[4];

        return sscanf(line, "%*s %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4 &&
               ids[0] == id && ids[1] == id && ids[2] == id && ids[3] == id;
}

static bool capabilities_are_none(const char *line) {
        unsigned long long capabilities;

        return sscanf(line, "%*s %llx", &capabilities) == 1 && capabilities == 0;
}

/* Return: that of the lines that were looked for, all are there and as they must be. */
static bool thread_is_clean(const char *tid, const Assignment *assignment) {
        char path[64], line[512];
        unsigned n_good = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
        file = fopen(path, "re");
        if (!file)
                return errno == ENOENT || errno == ESRCH; /* it has ended */
        while (fgets(line, sizeof(line), file)) {
                n_good += strncmp(line, "Uid:", 4) == 0 && ids_are(line, assignment->uid);
                n_good += strncmp(line, "Gid:", 4) == 0 && ids_are(line, assignment->gid);
                n_good += strncmp(line, "CapPrm:", 7) == 0 && capabilities_are_none(line);
                n_good += strncmp(line, "CapInh:", 7) == 0 && capabilities_are_none(line);
                n_good += strncmp(line, "CapEff:", 7) == 0 && capabilities_are_none(line);
        }
        fclose(file);
        return n_good == 5;
}

/* The C library changes the threads that it knows. One that a library made by itself would not follow. */
static bool threads_are_clean(const Assignment *assignment) {
        DIR *folder = opendir("/proc/self/task");
        const struct dirent *entry;
        unsigned n_threads = 0;
        bool are_clean = true;

        if (!folder)
                return false;
        while (are_clean && (entry = readdir(folder))) {
                if (entry->d_name[0] == '.')
                        continue;
                n_threads++;
                are_clean = thread_is_clean(entry->d_name, assignment);
        }
        closedir(folder);
        return are_clean && n_threads > 0;
}

/* ---- the devices ------------------------------------------------------------------ */

static bool descriptor_is_open_to_user(const char *name) {
        char path[64], target[PATH_MAX];
        struct stat st;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/self/fd/%.16s", name);
        if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
                return true;
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strncmp(target, "/dev/nvidia", 11) != 0 ||
               faccessat(AT_FDCWD, target, R_OK | W_OK, AT_EACCESS) == 0;
}

/* libcuda opened them as root. Their mode decides who may use them, as for other workers. */
static bool devices_are_open_to_user(void) {
        DIR *folder = opendir("/proc/self/fd");
        const struct dirent *entry;
        bool are_open = true;

        if (!folder)
                return false;
        while (are_open && (entry = readdir(folder)))
                are_open = descriptor_is_open_to_user(entry->d_name);
        closedir(folder);
        return are_open;
}

/* ---- the change ------------------------------------------------------------------ */

static int spare_fail(const char *what, const char **ret_problem) {
        *ret_problem = what;
        return errno ? -errno : -EPERM;
}

int spare_become(const Assignment *assignment, const char **ret_problem) {
        pid_t parent = getppid();

        if (!assignment->changes_user)
                return 0;
        errno = 0;
        if (assignment->uid == 0 || assignment->gid == 0)
                return spare_fail("be assigned to root", ret_problem);
        if (setgroups((size_t)assignment->n_groups, assignment->groups) < 0)
                return spare_fail("set groups", ret_problem);
        if (setresgid(assignment->gid, assignment->gid, assignment->gid) < 0)
                return spare_fail("change gid", ret_problem);
        if (setresuid(assignment->uid, assignment->uid, assignment->uid) < 0)
                return spare_fail("change uid", ret_problem);
        /* The kernel has reset both with the uid. */
        if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return spare_fail("protect itself", ret_problem);
        if (getppid() != parent)
                return spare_fail("find its keeper", ret_problem);
        if (!threads_are_clean(assignment))
                return spare_fail("change all threads", ret_problem);
        if (!devices_are_open_to_user())
                return spare_fail("use the GPU: its user may not open the devices", ret_problem);
        return 0;
}

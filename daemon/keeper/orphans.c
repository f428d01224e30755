/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphans
 *
 * See orphans.h. A process id stays in use until the child is reaped, so the killed process is the
 * one that was found.
 */

#include "keeper/orphans.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "util/macro.h"

struct Orphans {
        bool is_init;
        pid_t *others; /* children that were there before us */
        size_t n_others;
};

DEFINE_CLEANUP(Orphans, orphans_free)

/* Visits each child that has not ended. Return: 0, or the first result that is not. */
typedef int (*ChildVisit)(pid_t pid, void *userdata);

/* Return: whether what follows the name in /proc/PID/stat is that of a child of ours that has not ended. If only its
 * first thread has ended, the process has that one's state. */
static bool child_is_alive_by(const char *stat) {
        int parent, n_threads;
        char state;

        return sscanf(stat, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                      &state, &parent, &n_threads) == 3 &&
               parent == getpid() && ((state != 'Z' && state != 'X') || n_threads > 1);
}

static bool child_is_alive(const char *number) {
        char path[64], text[512], *end;
        size_t n;
        FILE *file;

        /* Its first thread's, which costs the same with any number of threads. */
        snprintf(path, sizeof(path), "/proc/%.16s/task/%.16s/stat", number, number);
        file = fopen(path, "re");
        if (!file)
                return false;
        n = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[n] = '\0';
        end = strrchr(text, ')'); /* its name may have blanks and brackets */
        return end && child_is_alive_by(end + 1);
}

/* Those that no one but us reaps, so the list does not change meanwhile. Return: as children_each(), or -ENOENT. */
static int children_of_kernel(ChildVisit visit, void *userdata) {
        char path[64], number[16];
        FILE *list;
        int r = 0;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        list = fopen(path, "re");
        if (!list)
                return -ENOENT;
        while (r == 0 && fscanf(list, "%15s", number) == 1)
                if (child_is_alive(number))
                        r = visit((pid_t)atoi(number), userdata);
        fclose(list);
        return r;
}

/* In a kernel without CONFIG_PROC_CHILDREN. It looks at all processes, of which one user may have many. */
static int children_among_all(ChildVisit visit, void *userdata) {
        struct dirent *entry;
        DIR *folder;
        int r = 0;

        folder = opendir("/proc");
        if (!folder)
                return -errno;
        while (r == 0 && (entry = readdir(folder)))
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                    child_is_alive(entry->d_name))
                        r = visit((pid_t)atoi(entry->d_name), userdata);
        closedir(folder);
        return r;
}

static int children_each(ChildVisit visit, void *userdata) {
        int r = children_of_kernel(visit, userdata);

        return r == -ENOENT ? children_among_all(visit, userdata) : r;
}

static int orphans_leave_alone(pid_t pid, void *userdata) {
        Orphans *orphans = userdata;
        pid_t *grown;

        grown = realloc(orphans->others, (orphans->n_others + 1) * sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        orphans->others = grown;
        orphans->others[orphans->n_others++] = pid;
        return 0;
}

int orphans_new(Orphans **ret_orphans) {
        _cleanup_(orphans_freep) Orphans *orphans = NULL;
        int r;

        orphans = calloc(1, sizeof(*orphans));
        if (!orphans)
                return -ENOMEM;
        orphans->is_init = getpid() == 1;
        r = children_each(orphans_leave_alone, orphans);
        if (r < 0)
                return r;
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return -errno;

        *ret_orphans = TAKE_PTR(orphans);
        return 0;
}

Orphans *orphans_free(Orphans *orphans) {
        if (!orphans)
                return NULL;

        free(orphans->others);
        free(orphans);
        return NULL;
}

typedef struct Hunt {
        const Orphans *orphans;
        OrphansIsOwn is_own;
        void *userdata;
        size_t n_killed;
} Hunt;

static bool orphans_has_other(const Orphans *orphans, pid_t pid) {
        for (size_t i = 0; i < orphans->n_others; i++)
                if (orphans->others[i] == pid)
                        return true;
        return false;
}

/* At once, not after all were listed: one that forks and ends in a loop is gone a moment later. */
static int hunt_visit(pid_t pid, void *userdata) {
        Hunt *hunt = userdata;

        if (hunt->is_own(pid, hunt->userdata) || orphans_has_other(hunt->orphans, pid))
                return 0;
        (void)kill(pid, SIGKILL);
        hunt->n_killed++;
        return 0;
}

size_t orphans_kill(const Orphans *orphans, OrphansIsOwn is_own, void *userdata) {
        Hunt hunt = {orphans, is_own, userdata, 0};

        if (!orphans->is_init)
                (void)children_each(hunt_visit, &hunt);
        return hunt.n_killed;
}

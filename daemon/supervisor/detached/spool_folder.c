/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spool: folders and their names.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "spool_state.h"

/* ---- names ----------------------------------------------------------------- */

void spool_name(uint32_t number, uint32_t uid, char name[SPOOL_NAME_MAX]) {
        snprintf(name, SPOOL_NAME_MAX, "%u.%u", number, uid);
}

bool spool_is_name(const char *text, bool may_have_more, uint32_t *ret_number, uint32_t *ret_uid) {
        char name[SPOOL_NAME_MAX];
        unsigned number, uid;
        size_t n;

        if (sscanf(text, "%10u.%10u", &number, &uid) != 2 || number == 0)
                return false;
        spool_name(number, uid, name);
        n = strlen(name);
        if (strncmp(text, name, n) || (text[n] && !(may_have_more && text[n] == '.')))
                return false;
        *ret_number = number;
        *ret_uid = uid;
        return true;
}

/* ---- folders --------------------------------------------------------------- */

int spool_folder_open(int parent, const char *name) {
        int fd;

        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int spool_folder_make(int parent, const char *name) {
        if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        return spool_folder_open(parent, name);
}

int spool_folder_sync(int fd) {
        return fsync(fd) < 0 ? -errno : 0;
}

DIR *spool_folder_list(int parent, const char *name) {
        int fd = spool_folder_open(parent, name);
        DIR *dir;

        if (fd < 0) {
                errno = -fd;
                return NULL;
        }
        dir = fdopendir(fd);
        if (!dir)
                close(fd);
        return dir;
}

int spool_folder_remove(int parent, const char *name) {
        struct dirent *entry;
        DIR *dir;

        dir = spool_folder_list(parent, name);
        if (!dir && errno == ENOTDIR)
                return unlinkat(parent, name, 0) < 0 ? -errno : 0;
        if (!dir)
                return -errno;
        while ((entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                        (void)unlinkat(dirfd(dir), entry->d_name, 0);
        closedir(dir);
        return unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int spool_folder_problem(int error, SpoolProblem *problem) {
        if (spool_is_passing(error))
                return error;
        snprintf(problem->text, sizeof(problem->text), "its folder: %s", strerror(-error));
        return SPOOL_E_DAMAGED;
}

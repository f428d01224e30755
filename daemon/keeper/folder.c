/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder
 *
 * The keeper works here as root, below a folder that only it can write, so no other process can
 * replace a name meanwhile. It never follows a link and never uses a folder of another user.
 */

#include "keeper/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/macro.h"

static int folder_fail(int error, const char *path, const char *text, char **ret_error) {
        if (asprintf(ret_error, "folder %s: %s", path, text) < 0)
                *ret_error = NULL;
        return error;
}

/* mkdir -p; what is there already is left as it is. */
static int folder_make_all(const char *path) {
        _cleanup_(freep) char *part = strdup(path);

        if (!part)
                return -ENOMEM;
        for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
                *slash = '\0';
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return mkdir(part, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

/* cache_dir or state_dir itself: ours alone to write. Return: a descriptor, or a negative errno with text. */
static int folder_open_cache(const char *cache, char **ret_error) {
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        r = folder_make_all(cache);
        if (r < 0)
                return folder_fail(r, cache, strerror(-r), ret_error);

        fd = open(cache, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return folder_fail(-errno, cache, strerror(errno), ret_error);
        if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
                return folder_fail(-EPERM, cache,
                                   "it must belong to gpuqd's user, and no other user may have "
                                   "write access to it",
                                   ret_error);
        return TAKE_FD(fd);
}

/* CACHE/NAME with that mode, made when missing. Return: as above. */
static int folder_open(const char *cache, const char *name, mode_t mode, struct stat *ret_st,
                       char **ret_error) {
        _cleanup_(closep) int parent = -1, fd = -1;
        int r;

        r = folder_open_cache(cache, ret_error);
        if (r < 0)
                return r;
        parent = r;

        if (mkdirat(parent, name, mode) < 0 && errno != EEXIST)
                return folder_fail(-errno, name, strerror(errno), ret_error);
        fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, ret_st) < 0)
                return folder_fail(-errno, name, strerror(errno), ret_error);
        return TAKE_FD(fd);
}

static int folder_path(const char *cache, const char *name, char **ret_path) {
        return asprintf(ret_path, "%s/%s", cache, name) < 0 ? -ENOMEM : 0;
}

/* One that is that user's and closed to all others. */
static int folder_give(const char *parent, const char *name, uid_t uid, gid_t gid,
                       char **ret_error) {
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        r = folder_open(parent, name, 0700, &st, ret_error);
        if (r < 0)
                return r;
        fd = r;

        if (st.st_uid != uid && st.st_uid != geteuid())
                return folder_fail(-EPERM, name, "it belongs to another user", ret_error);
        if (st.st_mode & (S_IRWXG | S_IRWXO))
                return folder_fail(-EPERM, name,
                                   "it is accessible to others; its mode must be 0700", ret_error);
        if (st.st_uid != uid && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) < 0)
                return folder_fail(-errno, name, strerror(errno), ret_error);
        return 0;
}

int folder_for_uid(const char *cache, uid_t uid, gid_t gid, char **ret_path, char **ret_error) {
        char name[16];
        int r;

        snprintf(name, sizeof(name), "%u", (unsigned)uid);
        r = folder_give(cache, name, uid, gid, ret_error);
        return r < 0 ? r : folder_path(cache, name, ret_path);
}

int folder_for_state(const char *state, const char *name, uid_t uid, gid_t gid, char **ret_error) {
        return folder_give(state, name, uid, gid, ret_error);
}

int folder_without_mps(const char *cache, char **ret_path, char **ret_error) {
        static const char name[] = "no-mps";
        _cleanup_(closep) int fd = -1;
        struct stat st;
        int r;

        /* Readable: a worker must find nothing there rather than be refused. */
        r = folder_open(cache, name, 0755, &st, ret_error);
        if (r < 0)
                return r;
        fd = r;

        if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
                return folder_fail(-EPERM, name,
                                   "it must belong to gpuqd's user, and no other user may have "
                                   "write access to it",
                                   ret_error);
        return folder_path(cache, name, ret_path);
}

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
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/macro.h"

#define FOLDER_PASSED_ON 0770 /* its user's, and our group's until it has its name */

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

/* Return: CACHE/NAME as a descriptor, or a negative errno without text. */
static int folder_look(int parent, const char *name, struct stat *ret_st) {
        _cleanup_(closep) int fd = -1;

        fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, ret_st) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int folder_path(const char *cache, const char *name, char **ret_path) {
        return asprintf(ret_path, "%s/%s", cache, name) < 0 ? -ENOMEM : 0;
}

/* ---- a folder that is another user's -------------------------------------------- */

/*
 * gpuqd has no right to give files away (CAP_CHOWN), which would be one to take any file. So the user
 * itself makes the folder: for files this process is that user for a moment, and still ours for signals
 * and for ptrace. The user may not write to the cache's folder, so it does so in a folder below, which
 * is open to our group too. Only we then move it to its name, and the user closes it to our group.
 */
static int folder_act_as(uid_t uid, gid_t gid) {
        (void)setfsgid(gid);
        (void)setfsuid(uid);
        return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid ? 0 : -EPERM;
}

static void folder_act_as_ourselves(void) {
        (void)setfsuid(geteuid());
        (void)setfsgid(getegid());
}

static int folder_make_below(int scratch, const char *name, uid_t uid) {
        int r = folder_act_as(uid, getegid());

        if (r == 0 && mkdirat(scratch, name, FOLDER_PASSED_ON) < 0 && errno != EEXIST)
                r = -errno;
        folder_act_as_ourselves();
        return r;
}

/* Another worker of the user may have been faster: what has the name then is as good. */
static int folder_move(int scratch, const char *name, int parent) {
        int r = renameat2(scratch, name, parent, name, RENAME_NOREPLACE) < 0 ? -errno : 0;

        if (r == -EINVAL) /* not known to this file system; at most an empty folder is replaced */
                r = renameat(scratch, name, parent, name) < 0 ? -errno : 0;
        if (r < 0)
                (void)unlinkat(scratch, name, AT_REMOVEDIR);
        return r == -EEXIST || r == -ENOTEMPTY ? 0 : r;
}

static int folder_make_as(int parent, const char *name, uid_t uid) {
        _cleanup_(closep) int scratch = -1;
        char path[32];
        int r;

        /* It may be there, and the folder in it: an earlier process of our number was killed here. */
        snprintf(path, sizeof(path), ".new-%d", (int)getpid());
        if (mkdirat(parent, path, FOLDER_PASSED_ON) < 0 && errno != EEXIST)
                return -errno;
        scratch = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = scratch < 0 ? -errno : folder_make_below(scratch, name, uid);
        if (r == 0)
                r = folder_move(scratch, name, parent);
        (void)unlinkat(parent, path, AT_REMOVEDIR);
        return r;
}

static int folder_make(int parent, const char *name, uid_t uid) {
        mode_t mask = umask(0);
        int r;

        if (uid == geteuid())
                r = mkdirat(parent, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
        else
                r = folder_make_as(parent, name, uid);
        umask(mask);
        return r;
}

/* Also what we left open when we were killed. First the mode: others may look meanwhile. */
static int folder_close_to_us(int parent, const char *name, uid_t uid, gid_t gid, struct stat *st) {
        _cleanup_(closep) int fd = -1;
        int r = folder_act_as(uid, gid);

        if (r == 0) {
                fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0 || fchmod(fd, 0700) < 0 || fchown(fd, (uid_t)-1, gid) < 0 ||
                    fstat(fd, st) < 0)
                        r = -errno;
        }
        folder_act_as_ourselves();
        return r;
}

static int folder_find(int parent, const char *name, uid_t uid, gid_t gid, struct stat *ret_st) {
        int r = folder_look(parent, name, ret_st);

        if (r == -ENOENT) {
                r = folder_make(parent, name, uid);
                if (r == 0)
                        r = folder_look(parent, name, ret_st);
        }
        if (r < 0)
                return r;
        close(r);
        if (ret_st->st_uid != uid || uid == geteuid() || ret_st->st_gid != getegid() ||
            (ret_st->st_mode & 07777) != FOLDER_PASSED_ON)
                return 0;
        return folder_close_to_us(parent, name, uid, gid, ret_st);
}

/* One that is that user's and closed to all others. */
static int folder_give(const char *cache, const char *name, uid_t uid, gid_t gid,
                       char **ret_error) {
        _cleanup_(closep) int parent = -1;
        struct stat st;
        int r;

        parent = folder_open_cache(cache, ret_error);
        if (parent < 0)
                return parent;
        r = folder_find(parent, name, uid, gid, &st);
        if (r < 0)
                return folder_fail(r, name, strerror(-r), ret_error);
        if (st.st_uid != uid)
                return folder_fail(-EPERM, name, "it belongs to another user", ret_error);
        if (st.st_mode & (S_IRWXG | S_IRWXO))
                return folder_fail(-EPERM, name,
                                   "it is accessible to others; its mode must be 0700", ret_error);
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

/* ---- folders of ours ----------------------------------------------------------- */

/* Readable for workers of all users. */
static int folder_of_ours(const char *cache, const char *name, char **ret_path, char **ret_error) {
        _cleanup_(closep) int parent = -1, fd = -1;
        struct stat st;

        parent = folder_open_cache(cache, ret_error);
        if (parent < 0)
                return parent;
        if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
                return folder_fail(-errno, name, strerror(errno), ret_error);
        fd = folder_look(parent, name, &st);
        if (fd < 0)
                return folder_fail(fd, name, strerror(-fd), ret_error);

        if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
                return folder_fail(-EPERM, name,
                                   "it must belong to gpuqd's user, and no other user may have "
                                   "write access to it",
                                   ret_error);
        if ((st.st_mode & 0755) != 0755 && fchmodat(parent, name, 0755, 0) < 0)
                return folder_fail(-errno, name, strerror(errno), ret_error);
        return folder_path(cache, name, ret_path);
}

/* A worker must find nothing there rather than be refused. */
int folder_without_mps(const char *cache, char **ret_path, char **ret_error) {
        return folder_of_ours(cache, "no-mps", ret_path, ret_error);
}

int folder_for_builtin(const char *cache, char **ret_path, char **ret_error) {
        return folder_of_ours(cache, "builtin", ret_path, ret_error);
}

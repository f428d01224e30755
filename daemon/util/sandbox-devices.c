/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: devices
 *
 * Landlock knows what is allowed, not what is refused. So all that is in the root folder is allowed, except
 * for /dev, and of /dev the nodes that are no device.
 */
#include "util/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/macro.h"

#define DEVICES_FILE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)

static const char *const no_devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                         "/dev/urandom"};

static int devices_allow(int rules, int at, const char *path) {
        _cleanup_(closep) int fd = openat(at, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        const struct landlock_path_beneath_attr rule = {
                .allowed_access = DEVICES_FILE,
                .parent_fd = fd,
        };

        if (fd < 0)
                return errno == ENOENT || errno == EACCES ? 0 : -errno;
        return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
                       ? -errno
                       : 0;
}

/* Nothing is asked of what is mounted there: a network file system may not answer. */
static int devices_allow_rest(int rules) {
        DIR *root = opendir("/");
        const struct dirent *entry;
        int r = 0;

        if (!root)
                return -errno;
        while (r == 0 && (entry = readdir(root)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                    strcmp(entry->d_name, "dev") != 0)
                        r = devices_allow(rules, dirfd(root), entry->d_name);
        closedir(root);
        return r;
}

static int devices_allow_all(int rules) {
        int r = devices_allow_rest(rules);

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(no_devices); i++)
                r = devices_allow(rules, AT_FDCWD, no_devices[i]);
        return r;
}

int sandbox_close_devices(void) {
        const struct landlock_ruleset_attr handled = {
                .handled_access_fs =
                        DEVICES_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK,
        };
        _cleanup_(closep) int rules =
                (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
        int r;

        if (rules < 0)
                return errno == ENOSYS ? -EOPNOTSUPP : -errno;
        r = devices_allow_all(rules);
        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel log
 *
 * See kernel_log.h.
 */

#include "keeper/kernel_log.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "keeper/driver.h"
#include "util/log.h"
#include "util/macro.h"

/*
 * It was for one open(). Not where what we start keeps our uid: of root it would have the
 * right again, for which the kernel takes away the signal that it gets at our death.
 */
static void kernel_log_give_up_right(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
        struct __user_cap_data_struct *set = &data[CAP_TO_INDEX(CAP_SYSLOG)];

        if (syscall(SYS_capget, &header, data) < 0)
                return;
        set->effective &= ~CAP_TO_MASK(CAP_SYSLOG);
        set->permitted &= ~CAP_TO_MASK(CAP_SYSLOG);
        set->inheritable &= ~CAP_TO_MASK(CAP_SYSLOG);
        (void)syscall(SYS_capset, &header, data);
}

static int kernel_log_try(const char *path) {
        _cleanup_(closep) int fd = -1;
        struct stat st;

        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        /* A fifo has no end to go to, and nothing old in it. */
        (void)lseek(fd, 0, SEEK_END);
        return TAKE_FD(fd);
}

int kernel_log_open(const Config *config, bool is_private) {
        int fd;

        if (!config->kernel_log)
                return -1;
        fd = kernel_log_try(config->kernel_log);
        if (!is_private)
                kernel_log_give_up_right();
        if (fd >= 0)
                return fd;
        if (strcmp(driver_choose(config->device), "cpu") != 0)
                log_notice("Xids are not reported: cannot read the kernel log: %s: %s",
                           config->kernel_log, strerror(-fd));
        return -1;
}

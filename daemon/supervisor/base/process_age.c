/* SPDX-License-Identifier: Apache-2.0 */
#include "process_age.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

#define PROCESS_AGE_FIELD 20u /* starttime, counted from the state, which follows the name */

uint64_t process_age_start(pid_t pid) {
        _cleanup_(closep) int fd = -1;
        char path[48], text[1024], *field;
        ssize_t n;

        /* The first thread's: for the whole process the kernel visits all of its threads, which a
         * client may have by the ten thousand. */
        snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return 0;

        text[n] = '\0';
        field = strrchr(text, ')'); /* the name may contain any character */
        for (unsigned i = 0; field && i < PROCESS_AGE_FIELD; ++i)
                field = strchr(field + 1, ' ');
        return field ? strtoull(field, NULL, 10) : 0;
}

bool process_age_is_alive(pid_t pid, uint64_t start) {
        uint64_t now = process_age_start(pid);

        if (start && now)
                return start == now;
        return kill(pid, 0) == 0 || errno != ESRCH;
}

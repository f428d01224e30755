/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runnable
 */
#include "util/runnable.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Opened anew each time: a library keeps no descriptor that its program does not know of. */
static unsigned runnable_read(void) {
        unsigned n_runnable = 0;
        char text[80];
        ssize_t n;
        int fd;

        fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (n < 0)
                return 0;
        text[n] = '\0';
        return sscanf(text, "%*s %*s %*s %u/", &n_runnable) == 1 ? n_runnable : 0;
}

void runnable_count(Contention *contention, uint64_t now_ns) {
        if (contention_wants_count(contention, now_ns))
                contention_count(contention, runnable_read(),
                                 (unsigned)sysconf(_SC_NPROCESSORS_ONLN), now_ns);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores
 */
#include "util/cores.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int cores_open(void) {
        return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

static void cores_sample(Contention *contention, int fd, uint64_t now_ns) {
        unsigned long long ran_ns, waited_ns;
        char text[80];
        ssize_t n;

        n = pread(fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return;
        text[n] = '\0';
        if (sscanf(text, "%llu %llu", &ran_ns, &waited_ns) == 2)
                contention_sample(contention, waited_ns, now_ns);
}

/* Opened anew each time: a library keeps no descriptor that its program does not know of. */
static unsigned cores_n_runnable(void) {
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

bool cores_are_busy(Contention *contention, int fd, uint64_t now_ns) {
        if (fd >= 0 && contention_wants_sample(contention, now_ns))
                cores_sample(contention, fd, now_ns);
        if (contention_wants_count(contention, now_ns))
                contention_count(contention, cores_n_runnable(),
                                 (unsigned)sysconf(_SC_NPROCESSORS_ONLN), now_ns);
        return contention_is_busy(contention);
}

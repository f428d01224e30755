/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cores
 *
 * Three alternatives were measured on the CPU driver and are not used, see docs/benchmarks.md:
 * real-time policies, time slices of 0.1 ms (sched_runtime), and a higher priority at all times.
 */
#include "util/cores.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/macro.h"
#include "util/runnable.h"

/* Not by sched_setscheduler(), which systemd's RestrictRealtime= forbids with this flag. */
static int cores_set_nice(int nice) {
        struct sched_attr attr = {
                .size = SCHED_ATTR_SIZE_VER0,
                .sched_policy = SCHED_NORMAL,
                .sched_flags = SCHED_FLAG_RESET_ON_FORK,
                .sched_nice = nice,
        };

        return (int)syscall(SYS_sched_setattr, 0, &attr, 0);
}

bool cores_open(Cores *cores, bool wants_raise) {
        bool is_permitted = true;

        *cores = (Cores){.fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
        contention_init(&cores->contention);
        if (wants_raise && getpriority(PRIO_PROCESS, 0) == 0) {
                is_permitted = cores_set_nice(CORES_NICE) == 0;
                cores->may_raise = is_permitted && cores_set_nice(0) == 0;
        }
        return is_permitted;
}

void cores_close(Cores *cores) {
        closep(&cores->fd);
        cores->fd = -1;
}

static void cores_sample(Cores *cores, uint64_t now_ns) {
        unsigned long long ran_ns, waited_ns;
        char text[80];
        ssize_t n;

        n = pread(cores->fd, text, sizeof(text) - 1, 0);
        if (n < 0)
                return;
        text[n] = '\0';
        if (sscanf(text, "%llu %llu", &ran_ns, &waited_ns) == 2)
                contention_sample(&cores->contention, waited_ns, now_ns);
}

bool cores_are_busy(Cores *cores, uint64_t now_ns) {
        bool was_busy = contention_is_busy(&cores->contention), is_busy;

        if (cores->fd >= 0 && contention_wants_sample(&cores->contention, now_ns))
                cores_sample(cores, now_ns);
        runnable_count(&cores->contention, now_ns);
        is_busy = contention_is_busy(&cores->contention);
        if (is_busy != was_busy && cores->may_raise)
                (void)cores_set_nice(is_busy ? CORES_NICE : 0);
        return is_busy;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox
 *
 * The filters are made by sandbox-filters.c when gpuq is built. Here nothing is allocated.
 */
#include "util/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox-filters.inc"
#include "util/macro.h"

/* The kernel only reads it; its type does not say so. */
#define SANDBOX_PROGRAM(lines)                                                                     \
        { .len = ARRAY_SIZE(lines), .filter = (struct sock_filter *)(lines) }

static const struct sock_fprog programs[] = {
        [SANDBOX_SUPERVISOR] = SANDBOX_PROGRAM(supervisor_filter),
        [SANDBOX_WORKER] = SANDBOX_PROGRAM(worker_filter),
        [SANDBOX_SPARE] = SANDBOX_PROGRAM(spare_filter),
};

int sandbox_enter(SandboxRole role) {
        long r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        /* libuv and libcuda may have threads already. */
        r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                    &programs[role]);
        if (r < 0)
                return -errno;
        return r > 0 ? -ESRCH : 0; /* a thread has a filter that we have not */
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The liar as an image of the CPU driver (daemon/driver/cpu/image.h)
 *
 * An attacker puts it into the cache of compiled modules, which is the user's own, in place of what
 * the compiler made. Its kernels then run any code in the worker.
 */

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/cpu/image.h"
#include "util/macro.h"

void lie(const char *what);

static __thread GpuqCpuPlace here;

static GpuqCpuPlace *place(void) {
        return &here;
}

/* become(int *out, const char *what) */
static void run_become(void *const *params) {
        here.n_next = here.n_threads;
        **(int **)params[0] = 0;
        lie(*(const char **)params[1]);
}

/* By system calls, as the worker's threads must not notice. forks(int *out, const char *) */
static void run_forks(void *const *params) {
        here.n_next = here.n_threads;
        for (int i = 0; i < 16; i++)
                if (syscall(SYS_fork) == 0) {
                        syscall(SYS_alarm, 30);
                        syscall(SYS_setsid);
                        for (volatile int j = 0; j >= 0; j = 0)
                                ;
                }
        **(int **)params[0] = 1;
}

/* A child of the keeper's, which exits at once. By hand: parent and child share a stack. */
static void leave_child(void) {
#ifdef __x86_64__
        long n = SYS_clone;

        asm volatile("syscall\n test %%rax, %%rax\n jnz 1f\n mov $60, %%eax\n syscall\n 1:\n"
                     : "+a"(n)
                     : "D"((long)(CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD)), "S"(0L),
                       "d"(0L)
                     : "rcx", "r8", "r9", "r10", "r11", "memory");
#else
        if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0)
                syscall(SYS_exit, 0);
#endif
}

/* exits(int *out, const char *) */
static void run_exits(void *const *params) {
        for (;;)
                leave_child();
}

static const uint32_t sizes[] = {8, 8}, offsets[] = {0, 8};
static const GpuqCpuEntry entries[] = {
        {"become", run_become, sizes, offsets, 2, 8},
        {"forks", run_forks, sizes, offsets, 2, 8},
        {"exits", run_exits, sizes, offsets, 2, 8},
};

extern GpuqCpuImage gpuq_cpu_image;
__attribute__((visibility("default"))) GpuqCpuImage gpuq_cpu_image = {
        .version = GPUQ_CPU_IMAGE_VERSION,
        .size = sizeof(GpuqCpuImage),
        .entries = entries,
        .entries_end = entries + ARRAY_SIZE(entries),
        .place = place,
};

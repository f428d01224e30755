/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/fault.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "util/macro.h"

#define FAULT_INTERRUPT (SIGRTMAX - 2) /* nobody else's in a process of ours */
#define FAULT_STACK     (64u << 10) /* bytes: handlers that were there before may need more than ours */

/* What each signal is in CUDA's words. */
static const struct {
        int signal;
        CUresult error;
} faults[] = {
        {SIGSEGV, CUDA_ERROR_ILLEGAL_ADDRESS},
        {SIGBUS, CUDA_ERROR_ILLEGAL_ADDRESS},
        {SIGFPE, CUDA_ERROR_LAUNCH_FAILED}, /* the GPU divides by zero without one */
        {SIGILL, CUDA_ERROR_ILLEGAL_INSTRUCTION},
};
static struct sigaction before[ARRAY_SIZE(faults)];

static bool (*fault_is_kernels)(void);
static void (*fault_leave)(CUresult error);
static _Thread_local void *stack;

/* A signal that is not a kernel's is passed to the previous handler. */
static void fault_pass_on(size_t i, siginfo_t *info, void *context) {
        struct sigaction *action = &before[i];

        if (action->sa_flags & SA_SIGINFO) {
                action->sa_sigaction(faults[i].signal, info, context);
                return;
        }

        if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
                action->sa_handler(faults[i].signal);
                return;
        }

        /* Without a handler: the instruction runs again, and its signal ends the process. */
        sigaction(faults[i].signal, action, NULL);
        if (info->si_code <= 0)
                raise(faults[i].signal);
}

static void fault_on_signal(int signal, siginfo_t *info, void *context) {
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
                if (faults[i].signal != signal)
                        continue;
                if (fault_is_kernels())
                        fault_leave(faults[i].error);
                fault_pass_on(i, info, context);
        }
}

/* A late interrupt finds that the thread has already left the kernel. */
static void fault_on_interrupt(int signal) {
        if (fault_is_kernels())
                fault_leave(CUDA_SUCCESS);
}

/* A handler that was installed after ours becomes the previous one, which gets other signals. */
static void fault_take(size_t i) {
        /* The handler is left by a jump, so the signal must not stay blocked. */
        struct sigaction ours = {
                .sa_sigaction = fault_on_signal,
                .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
        };
        struct sigaction now;

        sigaction(faults[i].signal, NULL, &now);
        if (now.sa_sigaction != fault_on_signal)
                before[i] = now;
        else if ((now.sa_flags & ours.sa_flags) == ours.sa_flags)
                return;

        sigemptyset(&ours.sa_mask);
        sigaction(faults[i].signal, &ours, NULL);
}

void fault_install(bool (*is_kernels)(void), void (*leave)(CUresult error)) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        struct sigaction interrupt = {
                .sa_handler = fault_on_interrupt,
                .sa_flags = SA_ONSTACK | SA_NODEFER,
        };

        sigemptyset(&interrupt.sa_mask);
        pthread_mutex_lock(&lock);
        if (!fault_leave) { /* handlers read them without the lock */
                fault_is_kernels = is_kernels;
                fault_leave = leave;
        }
        sigaction(FAULT_INTERRUPT, &interrupt, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                fault_take(i);
        pthread_mutex_unlock(&lock);
}

/* All other signals are for the program's own threads. */
static void fault_mask(void) {
        sigset_t mask;

        sigfillset(&mask);
        sigdelset(&mask, FAULT_INTERRUPT);
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                sigdelset(&mask, faults[i].signal);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

int fault_thread_open(void) {
        stack_t alternative = {.ss_size = FAULT_STACK};

        stack = mmap(NULL, FAULT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stack == MAP_FAILED)
                return -ENOMEM;

        alternative.ss_sp = stack;
        sigaltstack(&alternative, NULL);
        fault_mask();
        return 0;
}

void fault_thread_close(void) {
        stack_t none = {.ss_flags = SS_DISABLE};

        sigaltstack(&none, NULL);
#if defined(__SANITIZE_ADDRESS__)
        /* The address sanitizer still counts a handler that was left by a jump as running on
         * this stack. */
        __asan_unpoison_memory_region(stack, FAULT_STACK);
#endif
        munmap(stack, FAULT_STACK);
}

void fault_interrupt(pthread_t thread) {
        pthread_kill(thread, FAULT_INTERRUPT);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generation
 *
 * The number is in a page that the kernel empties in a child (MADV_WIPEONFORK). A process that
 * finds the page empty stores the next number there. Unlike pthread_atfork() this also detects a
 * bare clone() or _Fork(). If the kernel does not support it, the process id is used instead,
 * which costs a system call.
 */

#include "generation.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_once_t generation_once = PTHREAD_ONCE_INIT;
static unsigned *generation_page;
static unsigned generation_last; /* the number of this process, or of its parent */

static void generation_make(void) {
        long size = sysconf(_SC_PAGESIZE);
        void *page;

        page = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED)
                return;

        if (madvise(page, (size_t)size, MADV_WIPEONFORK) < 0) {
                munmap(page, (size_t)size);
                return;
        }

        generation_page = page;
}

unsigned generation_get(void) {
        unsigned n, expected = 0;

        pthread_once(&generation_once, generation_make);
        if (!generation_page)
                return (unsigned)getpid();

        n = __atomic_load_n(generation_page, __ATOMIC_ACQUIRE);
        if (n != 0)
                return n;

        /* The page is empty: it is new, or was wiped. One of several threads stores the number,
         * the others read it. */
        n = __atomic_load_n(&generation_last, __ATOMIC_RELAXED) + 1;
        if (!__atomic_compare_exchange_n(generation_page, &expected, n, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
                return expected;

        __atomic_store_n(&generation_last, n, __ATOMIC_RELAXED);
        return n;
}

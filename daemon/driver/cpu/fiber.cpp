/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/fiber.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

/* The one that a jump goes to, for the code where it lands. */
static thread_local Fiber *landing;

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
        sanitizer = __tsan_get_current_fiber();
#endif
}

Fiber *Fiber::make() {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        Fiber *fiber;
        void *memory;

        memory = mmap(nullptr, page + BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (memory == MAP_FAILED)
                return nullptr;

        /* The first kind costs no mapping of its own, of which a process has 65,530. */
        if (madvise(memory, page, MADV_GUARD_INSTALL) < 0 &&
            mprotect(memory, page, PROT_NONE) < 0) {
                munmap(memory, page + BYTES);
                return nullptr;
        }

        fiber = new (std::nothrow) Fiber;
        if (!fiber) {
                munmap(memory, page + BYTES);
                return nullptr;
        }

        fiber->memory = memory;
        fiber->bottom = (char *)memory + page;
        fiber->size = BYTES;
#if defined(__SANITIZE_THREAD__)
        fiber->sanitizer = __tsan_create_fiber(0);
#endif
        return fiber;
}

Fiber::~Fiber() {
        if (!memory)
                return;

#if defined(__SANITIZE_ADDRESS__)
        __asan_unpoison_memory_region(bottom, size);
#endif
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(sanitizer);
#endif
        munmap(memory, (size_t)sysconf(_SC_PAGESIZE) + BYTES);
}

void Fiber::prepare(void (*main_)()) {
        main = main_;
        context = make_fcontext((char *)bottom + size, size, start);
#if defined(__SANITIZE_ADDRESS__)
        /* Frames that were left by a jump are still marked as in use. */
        __asan_unpoison_memory_region(bottom, size);
        sanitizer = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
        /* Calls that were abandoned on it would pile up. */
        __tsan_destroy_fiber(sanitizer);
        sanitizer = __tsan_create_fiber(0);
#endif
}

void Fiber::start(transfer_t transfer) {
        landing->land(transfer);
        landing->main();
        abort();
}

/* In the fiber that was jumped to: note where the other one stands. */
void Fiber::land(transfer_t transfer) {
        Fiber *from = (Fiber *)transfer.data;
        const void *other = nullptr;
        size_t n_other = 0;

#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(sanitizer, &other, &n_other);
#endif
        if (!from)
                return;

        from->context = transfer.fctx;
        if (!from->memory && other) {
                from->bottom = (void *)other;
                from->size = n_other;
        }
}

void Fiber::jump(Fiber &to, bool for_good) {
        transfer_t transfer;

        landing = &to;
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizer, to.bottom, to.size);
#endif
#if defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(to.sanitizer, 0);
#endif
        transfer = jump_fcontext(to.context, for_good ? nullptr : this);
        land(transfer);
}

void Fiber::switch_to(Fiber &to) {
        jump(to, false);
}

void Fiber::leave_to(Fiber &to) {
        jump(to, true);
        abort();
}

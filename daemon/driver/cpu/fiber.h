/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_FIBER_H
#define GPUQ_CPU_FIBER_H

/*
 * Fiber
 *
 * A stack with a guard page, on which a thread of a block can wait while its
 * host thread goes on with another. Boost.Context switches; the sanitizers are
 * told. Fibers stay on the host thread that made them.
 */

#include <cstddef>
#include <cstdint>

#include <boost/context/detail/fcontext.hpp>

class Fiber {
      public:
        /* As much as a kernel's thread gets for its local variables. */
        static constexpr size_t BYTES = 256 << 10;

        /* With its own stack, or nullptr when there is no memory. */
        static Fiber *make();
        /* The host thread that calls: its stack is what it has. */
        Fiber();
        ~Fiber();
        Fiber(const Fiber &) = delete;
        Fiber &operator=(const Fiber &) = delete;

        /* Whether its own stack has this address. */
        bool has(uint64_t address) const {
                return memory && address - (uint64_t)bottom < size;
        }

        /* The next switch to it starts main, which must never return. */
        void prepare(void (*main)());
        /* Go on here; this one stays where it is until somebody switches to it. */
        void switch_to(Fiber &to);
        /* Go on there, and forget where this one stood. */
        [[noreturn]] void leave_to(Fiber &to);

      private:
        void *memory = nullptr; /* guard page and stack; none for a host thread */
        void *bottom = nullptr;
        size_t size = 0;
        boost::context::detail::fcontext_t context = nullptr;
        void (*main)() = nullptr;
        void *sanitizer = nullptr; /* what it keeps of this fiber */

        void jump(Fiber &to, bool for_good);
        void land(boost::context::detail::transfer_t transfer);
        static void start(boost::context::detail::transfer_t transfer);
};

#endif

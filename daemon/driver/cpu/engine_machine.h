/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_ENGINE_MACHINE_H
#define GPUQ_CPU_ENGINE_MACHINE_H

/*
 * Machine
 *
 * The inside of an engine: the threads of the block that runs, and what each of them waits for. A
 * block starts as a loop over its threads on one fiber. When a thread has to wait, its fiber is
 * suspended and another fiber continues the loop. When all threads are started, those that can
 * continue take turns.
 *
 *     NEW -> READY <-> BARRIER, NAMED, IN_WARP, ACTIVE -> DONE
 */

#include <csignal>
#include <cstdint>
#include <vector>

#include "driver/cpu/engine.h"
#include "driver/cpu/fiber.h"

class Machine : public Engine {
      public:
        static constexpr uint32_t MAX_THREADS = 1024;
        static constexpr uint32_t WARP = 32;

        Machine(struct CUctx_st *context);
        ~Machine();
        bool open();

        CUresult run_block(const EngineBlock &block);
        CUresult run_guarded(CUresult (*run)(void *), void *argument);
        /* Not in a kernel: a signal that came on the way would leave once more. */
        [[noreturn]] void leave(CUresult error);
        /* The same, and tell the user why on stderr. */
        [[noreturn]] void leave_saying(CUresult error, const char *format, ...)
                __attribute__((format(printf, 3, 4)));

        /* Called by a kernel's threads. */
        uint32_t barrier(GpuqCpuBarrier scope, uint32_t predicate);
        uint32_t barrier_named(uint32_t id, uint32_t n, uint32_t predicate, bool waits);
        uint64_t warp(GpuqCpuWarp operation, uint32_t mask, uint64_t value, uint32_t source);
        uint32_t active(const void *site);
        void end();
        void relax(bool now);
        bool is_local(uint64_t address) const {
                return running->has(address);
        }

        /* A signal while it is set is the kernel's. end_kernel(): whether it was. */
        volatile sig_atomic_t in_kernel = 0;
        bool end_kernel();

        GpuqCpuPlace *place = nullptr;
        const EngineBlock *block = nullptr;

      private:
        enum State : uint8_t { NEW, READY, BARRIER, NAMED, IN_WARP, ACTIVE, DONE };
        struct Thread {
                State state;
                GpuqCpuIndex index;
                Fiber *fiber;
                uint64_t value, result;
                uint32_t source; /* of a shuffle; of a named barrier its number */
                const void *site;
        };
        struct NamedBarrier {
                uint32_t n, n_arrived, n_predicate; /* n: threads to come, 0: all */
        };
        /* Threads of a warp that meet under one mask; kept at the lane that came first, while it waits. */
        struct Group {
                uint32_t mask, arrived;
                GpuqCpuWarp operation;
        };

        Fiber host;
        std::vector<Fiber *> fibers; /* all that were made */
        size_t n_used = 0;           /* of them, by this block */
        std::vector<Fiber *> spare;  /* of those, the ones that can be used again */
        Fiber *running = nullptr;
        CUresult error = CUDA_SUCCESS;

        CUresult (*guarded)(void *) = nullptr;
        void *guarded_argument = nullptr;

        Thread *threads = nullptr; /* of the block, from the first that waited on */
        uint32_t n_alive = 0, n_arrived = 0, n_predicate = 0;
        GpuqCpuBarrier scope = GPUQ_CPU_BARRIER_BLOCK;
        static constexpr uint32_t NAMED_BARRIERS = 16;
        NamedBarrier named[NAMED_BARRIERS];
        uint32_t gone[MAX_THREADS / WARP];
        Group groups[MAX_THREADS];
        uint32_t meeting[MAX_THREADS / WARP]; /* of each warp: the lanes that keep a group */
        unsigned n_relaxed = 0;

        static void main_block();
        static void main_guarded();
        void enter(Fiber *fiber);
        bool make_room();
        Fiber *take();

        void first_wait();
        void wait(State state);
        void go_on(bool for_good);
        int find_ready(uint32_t after) const;
        bool settle_active();
        void resume(uint32_t thread);
        [[noreturn]] void stuck();

        void barrier_complete();
        bool named_complete(uint32_t id);
        [[noreturn]] void barriers_stuck();
        void group_check(uint32_t mask, uint32_t lane);
        uint32_t group_join(uint32_t warp, GpuqCpuWarp operation, uint32_t mask, uint32_t lane);
        void group_call(const Group &group, const Thread *warp);
        bool group_complete(uint32_t warp, uint32_t at);
        void groups_lose(uint32_t warp, uint32_t lane);
        [[noreturn]] void group_stuck(uint32_t warp, const Group &group);
        uint64_t group_result(const Group &group, const Thread *warp, uint32_t lane) const;
};

#endif

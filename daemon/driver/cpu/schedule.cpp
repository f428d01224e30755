/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread of a block goes on
 *
 * Everything here runs on a fiber, called by a kernel through the runtime, with
 * in_kernel off: a fault here is our own.
 */
#include <time.h>

#include "driver/cpu/engine_machine.h"
#include "driver/cpu/gang.h"

/* How often a thread that fails to get a lock spins before others get a turn. */
static constexpr unsigned RELAX_EVERY = 64;

/* A block without any waiting has no books. They are opened by the first thread that waits. */
void Machine::first_wait() {
        uint32_t n = place->n_threads, self = place->linear;

        if (place->waited)
                return;

        place->waited = 1;
        for (uint32_t i = 0; i < n; i++)
                threads[i].state = i < self ? DONE : i == self ? READY : NEW;
        n_alive = n - self;
        n_arrived = n_predicate = 0;
        for (uint32_t warp = 0; warp * WARP < n; warp++) {
                uint32_t first = warp * WARP, here = n - first < WARP ? n - first : WARP;

                /* Lanes that the block does not have count as gone, as do those that ended. */
                gone[warp] = here == WARP ? 0 : ~0u << here;
                if (self >= first + here)
                        gone[warp] = ~0u;
                else if (self > first)
                        gone[warp] |= (1u << (self - first)) - 1;
                for (uint32_t lane = 0; lane < WARP; lane++)
                        groups[first + lane].arrived = 0;
        }
}

/* Leave the calling thread standing until its state is READY again. */
void Machine::wait(State state) {
        Thread &self = threads[place->linear];

        self.state = state;
        self.index = place->thread;
        self.fiber = running;
        go_on(false);
}

int Machine::find_ready(uint32_t after) const {
        uint32_t n = place->n_threads;

        for (uint32_t i = after + 1; i < n; i++)
                if (threads[i].state == READY)
                        return (int)i;
        for (uint32_t i = 0; i <= after && i < n; i++)
                if (threads[i].state == READY)
                        return (int)i;
        return -1;
}

void Machine::resume(uint32_t thread) {
        place->linear = thread;
        place->thread = threads[thread].index;
        running = threads[thread].fiber;
}

/*
 * Run another thread: one that was not started yet, else one that may go on. If
 * none can, threads that asked which others are with them have met all they will.
 * Otherwise the block hangs, as it does on a GPU, until its context ends.
 */
void Machine::go_on(bool for_good) {
        Fiber *from = running;
        uint32_t self = place->linear;
        struct timespec moment = {0, 1000000};
        int next;

        if (place->n_next < place->n_threads) {
                running = take();
                if (!running) {
                        running = from;
                        leave(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
                }
                running->prepare(main_block);
        } else {
                while ((next = find_ready(self)) < 0 && !settle_active()) {
                        if (context_error(context))
                                leave(CUDA_SUCCESS);
                        nanosleep(&moment, nullptr);
                }
                if (next < 0)
                        next = find_ready(self);
                resume((uint32_t)next);
        }

        if (running == from)
                return;
        if (for_good)
                from->leave_to(*running);
        from->switch_to(*running);
}

/* ---- barriers ------------------------------------------------------------------- */

/* All have come: the last one goes to meet the other blocks, for all. */
void Machine::barrier_complete() {
        uint32_t n = place->n_threads, count = n_predicate;

        n_arrived = n_predicate = 0;
        if (scope != GPUQ_CPU_BARRIER_BLOCK && block->gang)
                gang_meet(block->gang, scope, block->rank);

        for (uint32_t i = 0; i < n; i++)
                if (threads[i].state == BARRIER) {
                        threads[i].state = READY;
                        threads[i].result = count;
                }
}

uint32_t Machine::barrier(GpuqCpuBarrier scope_, uint32_t predicate) {
        uint32_t count;

        /* A grid that was not launched to wait for itself. */
        if (scope_ == GPUQ_CPU_BARRIER_GRID && !gang_is_grid(block->gang))
                leave(CUDA_ERROR_LAUNCH_FAILED);

        first_wait();
        scope = scope_;
        n_predicate += predicate;
        if (++n_arrived < n_alive) {
                wait(BARRIER);
                return (uint32_t)threads[place->linear].result;
        }

        count = n_predicate;
        barrier_complete();
        return count;
}

/* ---- warps ----------------------------------------------------------------------- */

static uint32_t lowest(uint32_t mask) {
        return (uint32_t)__builtin_ctz(mask);
}

uint64_t Machine::group_result(const Group &group, const Thread *warp, uint32_t lane) const {
        const Thread &self = warp[lane];
        uint64_t result = self.value;
        uint32_t rest = group.arrived;

        switch (group.operation) {
                case GPUQ_CPU_WARP_SYNC:
                        return 0;
                case GPUQ_CPU_WARP_SHUFFLE:
                        return self.source < WARP && group.arrived >> self.source & 1
                                       ? warp[self.source].value
                                       : self.value;
                case GPUQ_CPU_WARP_BALLOT:
                case GPUQ_CPU_WARP_MATCH:
                        result = 0;
                        break;
                default:
                        rest &= ~(1u << lane);
        }

        for (; rest; rest &= rest - 1) {
                uint32_t other = lowest(rest);
                uint64_t value = warp[other].value;

                switch (group.operation) {
                        case GPUQ_CPU_WARP_BALLOT:
                                result |= (uint64_t)(value != 0) << other;
                                break;
                        case GPUQ_CPU_WARP_MATCH:
                                result |= (uint64_t)(value == self.value) << other;
                                break;
                        case GPUQ_CPU_WARP_ADD:
                                result = (uint32_t)(result + value);
                                break;
                        case GPUQ_CPU_WARP_MIN:
                                result = value < result ? value : result;
                                break;
                        case GPUQ_CPU_WARP_MAX:
                                result = value > result ? value : result;
                                break;
                        case GPUQ_CPU_WARP_MIN_SIGNED:
                                result = (int32_t)value < (int32_t)result ? value : result;
                                break;
                        case GPUQ_CPU_WARP_MAX_SIGNED:
                                result = (int32_t)value > (int32_t)result ? value : result;
                                break;
                        case GPUQ_CPU_WARP_AND:
                                result &= value;
                                break;
                        case GPUQ_CPU_WARP_OR:
                                result |= value;
                                break;
                        default:
                                result ^= value;
                }
        }
        return result;
}

/* If all of a group that still live have come, each gets its result. */
bool Machine::group_complete(uint32_t warp, Group &group) {
        Thread *lanes = threads + warp * WARP;

        if (!group.arrived || (group.mask & ~gone[warp]) != group.arrived)
                return false;

        for (uint32_t rest = group.arrived; rest; rest &= rest - 1) {
                uint32_t lane = lowest(rest);

                lanes[lane].result = group_result(group, lanes, lane);
                lanes[lane].state = READY;
        }
        group.arrived = 0;
        return true;
}

uint64_t Machine::warp(GpuqCpuWarp operation, uint32_t mask, uint64_t value, uint32_t source) {
        uint32_t self = place->linear, warp = self / WARP, lane = self % WARP;
        Group *group;

        first_wait();
        /* A mask without the caller is undefined; here it then stands for the caller too. */
        mask |= 1u << lane;
        group = &groups[warp * WARP + lowest(mask)];
        group->mask = mask;
        group->operation = operation;
        group->arrived |= 1u << lane;
        threads[self].value = value;
        threads[self].source = source;
        if (!group_complete(warp, *group))
                wait(IN_WARP);
        return threads[self].result;
}

/*
 * Threads of a warp that stand at the same place are told of each other only
 * when nothing else can run: then all that could come there have.
 */
uint32_t Machine::active(const void *site) {
        uint32_t self = place->linear;

        first_wait();
        threads[self].site = site;
        wait(ACTIVE);
        return (uint32_t)threads[self].result;
}

bool Machine::settle_active() {
        bool settled = false;

        for (uint32_t first = 0; first < place->n_threads; first += WARP) {
                uint32_t n = place->n_threads - first < WARP ? place->n_threads - first : WARP;
                Thread *lanes = threads + first;
                const void *site = nullptr;
                uint32_t mask = 0;

                for (uint32_t lane = 0; lane < n; lane++) {
                        if (lanes[lane].state != ACTIVE || (site && lanes[lane].site != site))
                                continue;
                        site = lanes[lane].site;
                        mask |= 1u << lane;
                }

                for (uint32_t rest = mask; rest; rest &= rest - 1) {
                        lanes[lowest(rest)].result = mask;
                        lanes[lowest(rest)].state = READY;
                        settled = true;
                }
        }
        return settled;
}

/* ---- the end of a thread, and turns ------------------------------------------------ */

/* Those who wait for it need not any more. */
void Machine::end() {
        uint32_t self = place->linear, warp = self / WARP;

        threads[self].state = DONE;
        n_alive--;
        gone[warp] |= 1u << self % WARP;
        if (n_alive && n_arrived == n_alive)
                barrier_complete();
        for (uint32_t lane = 0; lane < WARP; lane++)
                group_complete(warp, groups[warp * WARP + lane]);
}

void Machine::relax(bool now) {
        if (!now && ++n_relaxed % RELAX_EVERY)
                return;

        if (place->n_threads > 1) {
                first_wait();
                wait(READY);
        }
        /* Or a block on another host thread has what this one waits for. */
        sched_yield();
}

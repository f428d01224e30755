/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread of a block goes on
 *
 * Everything here runs on a fiber, called by a kernel through the runtime, with
 * in_kernel off: a fault here is our own.
 */
#include <algorithm>
#include <cstdio>

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
        for (NamedBarrier &barrier : named)
                barrier = {};
        for (uint32_t warp = 0; warp * WARP < n; warp++) {
                uint32_t first = warp * WARP, here = n - first < WARP ? n - first : WARP;

                /* Lanes that the block does not have count as gone, as do those that ended. */
                gone[warp] = here == WARP ? 0 : ~0u << here;
                if (self >= first + here)
                        gone[warp] = ~0u;
                else if (self > first)
                        gone[warp] |= (1u << (self - first)) - 1;
                meeting[warp] = 0;
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
 * Otherwise the block would wait for ever, as on a GPU: all that wake a thread are
 * threads of its block.
 */
void Machine::go_on(bool for_good) {
        Fiber *from = running;
        uint32_t self = place->linear;
        int next;

        if (place->n_next < place->n_threads) {
                running = take();
                if (!running) {
                        running = from;
                        leave(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
                }
                running->prepare(main_block);
        } else {
                next = find_ready(self);
                if (next < 0 && settle_active())
                        next = find_ready(self);
                if (next < 0)
                        stuck();
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

/* How many threads must come to a barrier of @n, or of all if that is 0. The last warp of a block may have fewer
 * threads than it counts for. */
static uint32_t barrier_wanted(uint32_t n, uint32_t n_alive) {
        return n && n < n_alive ? n : n_alive;
}

/* If all have come, those that wait go on. */
bool Machine::named_complete(uint32_t id) {
        NamedBarrier &barrier = named[id];

        if (barrier.n_arrived == 0 || barrier.n_arrived < barrier_wanted(barrier.n, n_alive))
                return false;

        for (uint32_t i = 0; i < place->n_threads; i++)
                if (threads[i].state == NAMED && threads[i].source == id) {
                        threads[i].state = READY;
                        threads[i].result = barrier.n_predicate;
                }
        barrier = {};
        return true;
}

uint32_t Machine::barrier_named(uint32_t id, uint32_t n, uint32_t predicate, bool waits) {
        Thread *self;
        uint32_t count;

        if (id >= NAMED_BARRIERS || n % WARP)
                leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                             "block: [%u,%u,%u]: barrier %u of %u threads: a barrier has a number "
                             "below %u, and a number of threads that is a multiple of %u.\n",
                             place->block.x, place->block.y, place->block.z, id, n, NAMED_BARRIERS,
                             WARP);

        first_wait();
        self = &threads[place->linear];
        named[id].n = n;
        named[id].n_arrived++;
        named[id].n_predicate += predicate;
        count = named[id].n_predicate;
        if (named_complete(id) || !waits)
                return count;

        self->source = id;
        wait(NAMED);
        return (uint32_t)threads[place->linear].result;
}

/* How many threads wait at a barrier and have come. Return: what of @text is used now. */
static size_t tell_barrier(char *text, size_t size, size_t used, const char *name,
                           uint32_t n_waiting, uint32_t n_arrived, uint32_t n_wanted) {
        int n;

        if (n_waiting == 0)
                return used;
        n = snprintf(text + used, size - used, "%u thread%s at %s, to which %u of %u have come; ",
                     n_waiting, n_waiting == 1 ? " waits" : "s wait", name, n_arrived, n_wanted);
        return std::min(used + (size_t)n, size - 1);
}

/* No thread can go on, and all that are left wait at barriers, but not at the same one. */
void Machine::barriers_stuck() {
        static const char *const names[] = {"__syncthreads()", "a barrier of the cluster",
                                            "a barrier of the grid"};
        uint32_t n_waiting[NAMED_BARRIERS] = {};
        const GpuqCpuIndex &at = place->block;
        char text[1536] = "", name[32];
        size_t used = 0;

        for (uint32_t i = 0; i < place->n_threads; i++)
                if (threads[i].state == NAMED)
                        n_waiting[threads[i].source]++;
        used = tell_barrier(text, sizeof(text), used, names[scope], n_arrived, n_arrived, n_alive);
        for (uint32_t id = 0; id < NAMED_BARRIERS; id++) {
                const NamedBarrier &barrier = named[id];

                snprintf(name, sizeof(name), "barrier %u", id);
                used = tell_barrier(text, sizeof(text), used, name, n_waiting[id],
                                    barrier.n_arrived, barrier_wanted(barrier.n, n_alive));
        }
        leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                     "block: [%u,%u,%u]: %snone of them can go on. A barrier is for all threads of "
                     "a block, or for as many as the kernel says.\n",
                     at.x, at.y, at.z, text);
}

/* ---- the end of a thread, and turns ------------------------------------------------ */

/* Those who wait for it need not any more. */
void Machine::end() {
        uint32_t self = place->linear;

        threads[self].state = DONE;
        n_alive--;
        if (n_alive && n_arrived == n_alive)
                barrier_complete();
        for (uint32_t id = 0; n_alive && id < NAMED_BARRIERS; id++)
                named_complete(id);
        groups_lose(self / WARP, self % WARP);
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

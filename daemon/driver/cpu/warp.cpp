/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a warp that meet
 *
 * A group meets under one mask: a lane waits in one group at a time, and groups of different masks do not
 * mix. What is undefined on a GPU (a mask without its caller, different functions under one mask, lanes that
 * wait for each other) ends the kernel with a text. As schedule.cpp, on a fiber with in_kernel off.
 */
#include <cstdio>

#include "driver/cpu/engine_machine.h"

/* As in GpuqCpuWarp. */
static const char *const names[] = {
        "__syncwarp()",
        "a shuffle",
        "a vote",
        "a match",
        "__reduce_add_sync()",
        "__reduce_min_sync()",
        "__reduce_max_sync()",
        "__reduce_min_sync() of int",
        "__reduce_max_sync() of int",
        "__reduce_and_sync()",
        "__reduce_or_sync()",
        "__reduce_xor_sync()",
        "an instruction for matrices",
};
static_assert(sizeof(names) / sizeof(names[0]) == GPUQ_CPU_WARP_CALL + 1, "one name each");

static uint32_t lowest(uint32_t mask) {
        return (uint32_t)__builtin_ctz(mask);
}

uint64_t Machine::group_result(const Group &group, const Thread *warp, uint32_t lane) const {
        const Thread &self = warp[lane];
        uint64_t result = self.value;
        uint32_t rest = group.arrived;

        switch (group.operation) {
                case GPUQ_CPU_WARP_SYNC:
                case GPUQ_CPU_WARP_CALL:
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

/* One of the lanes' functions is called for all of them. */
void Machine::group_call(const Group &group, const Thread *warp) {
        GpuqCpuCall *calls[WARP] = {};

        for (uint32_t rest = group.arrived; rest; rest &= rest - 1)
                calls[lowest(rest)] = (GpuqCpuCall *)warp[lowest(rest)].value;
        for (uint32_t rest = group.arrived; rest; rest &= rest - 1)
                if (calls[lowest(rest)]->call != calls[lowest(group.arrived)]->call)
                        leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                                     "block: [%u,%u,%u]: the lanes of a warp are at different "
                                     "instructions for matrices; all must be at the same.\n",
                                     place->block.x, place->block.y, place->block.z);
        calls[lowest(group.arrived)]->call(calls);
}

/* If all of a group that still live have come, each gets its result. */
bool Machine::group_complete(uint32_t warp, uint32_t at) {
        const Group &group = groups[warp * WARP + at];
        Thread *lanes = threads + warp * WARP;

        if ((group.mask & ~gone[warp]) != group.arrived)
                return false;

        if (group.operation == GPUQ_CPU_WARP_CALL)
                group_call(group, lanes);
        for (uint32_t rest = group.arrived; rest; rest &= rest - 1) {
                uint32_t lane = lowest(rest);

                lanes[lane].result = group_result(group, lanes, lane);
                lanes[lane].state = READY;
        }
        meeting[warp] &= ~(1u << at);
        return true;
}

/* A lane ended: nobody waits for it any more. */
void Machine::groups_lose(uint32_t warp, uint32_t lane) {
        gone[warp] |= 1u << lane;
        for (uint32_t rest = meeting[warp]; rest; rest &= rest - 1)
                group_complete(warp, lowest(rest));
}

/* On a GPU what follows is undefined. */
void Machine::group_check(uint32_t mask, uint32_t lane) {
        const GpuqCpuIndex &at = place->block, &thread = place->thread;

        if (mask >> lane & 1)
                return;
        leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                     "block: [%u,%u,%u], thread: [%u,%u,%u], lane %u of its warp: it calls a warp "
                     "function with mask 0x%08x, which must contain the lane itself.\n",
                     at.x, at.y, at.z, thread.x, thread.y, thread.z, lane, mask);
}

/* The group that meets under the whole mask: those who wait under another one are others. Return: its lane. */
uint32_t Machine::group_join(uint32_t warp, GpuqCpuWarp operation, uint32_t mask, uint32_t lane) {
        const GpuqCpuIndex &at = place->block;

        for (uint32_t rest = meeting[warp]; rest; rest &= rest - 1) {
                Group &group = groups[warp * WARP + lowest(rest)];

                if (group.mask != mask)
                        continue;
                if (group.operation != operation)
                        leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                                     "block: [%u,%u,%u], warp %u: with mask 0x%08x, lane %u calls "
                                     "%s but lanes 0x%08x call %s; all lanes of a mask must call "
                                     "the same function.\n",
                                     at.x, at.y, at.z, warp, mask, lane, names[operation],
                                     group.arrived, names[group.operation]);
                group.arrived |= 1u << lane;
                return lowest(rest);
        }

        meeting[warp] |= 1u << lane;
        groups[warp * WARP + lane] = {mask, 1u << lane, operation};
        return lane;
}

uint64_t Machine::warp(GpuqCpuWarp operation, uint32_t mask, uint64_t value, uint32_t source) {
        uint32_t self = place->linear, warp = self / WARP, lane = self % WARP, at;

        first_wait();
        group_check(mask, lane);
        at = group_join(warp, operation, mask, lane);
        threads[self].value = value;
        threads[self].source = source;
        if (!group_complete(warp, at))
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

/* ---- threads that wait for each other ----------------------------------------------- */

/* Of those that a group waits for, the first tells what is wrong. */
void Machine::group_stuck(uint32_t warp, const Group &group) {
        uint32_t missing = group.mask & ~gone[warp] & ~group.arrived, lane = lowest(missing);
        const GpuqCpuIndex &at = place->block;
        const Thread &waits_for = threads[warp * WARP + lane];
        char where[64] = "at a barrier";

        if (waits_for.state == NAMED)
                snprintf(where, sizeof(where), "at barrier %u", waits_for.source);
        for (uint32_t rest = meeting[warp]; rest; rest &= rest - 1) {
                const Group &other = groups[warp * WARP + lowest(rest)];

                if (other.arrived >> lane & 1)
                        snprintf(where, sizeof(where), "in %s with mask 0x%08x",
                                 names[other.operation], other.mask);
        }
        leave_saying(CUDA_ERROR_LAUNCH_FAILED,
                     "block: [%u,%u,%u], warp %u: lanes 0x%08x wait in %s with mask 0x%08x for "
                     "lanes 0x%08x, but lane %u waits %s: none of them can go on. A mask must name "
                     "exactly the lanes that make this call.\n",
                     at.x, at.y, at.z, warp, group.arrived, names[group.operation], group.mask,
                     missing, lane, where);
}

/* Lanes under a mask come first: those who wait at a barrier may wait for them. */
void Machine::stuck() {
        for (uint32_t warp = 0; warp * WARP < place->n_threads; warp++)
                if (meeting[warp])
                        group_stuck(warp, groups[warp * WARP + lowest(meeting[warp])]);
        barriers_stuck();
}

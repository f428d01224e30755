/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs in a context of the process's own, as a good program does them: pinned host
 * memory, a stream for each job in flight (or a few for all), a chain as a graph
 * that is made once, completion by polling. Under MPS it is the same program.
 */

#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "util/macro.h"

typedef struct Slot {
        float *host[3]; /* a, b, c */
        CUdeviceptr in_place[3];
        CUdeviceptr device[3];
        CUdeviceptr *args; /* what the kernel gets: one of these two */
        CUstream stream;   /* shared with other slots if there are fewer streams */
        bool ended;        /* seen, when another slot's end was looked for */
        CUgraphExec chain;
} Slot;

typedef struct State {
        const BenchOptions *options;
        Cuda cuda;
        BenchData data;
        unsigned long long n;
        size_t n_bytes; /* of a, b or c */
        Slot slots[BENCH_SLOTS_MAX];
        unsigned flying[BENCH_SLOTS_MAX]; /* slots in the order of their start, a ring */
        unsigned n_started, n_ended;
} State;

static size_t own_stride(const State *state) {
        return (state->n_bytes + 255) / 256 * 256;
}

static int own_open_slot(State *state, unsigned index) {
        const BenchOptions *options = state->options;
        Slot *slot = &state->slots[index];

        for (unsigned i = 0; i < 3; i++) {
                size_t at = (index * 3 + i) * own_stride(state);

                slot->host[i] = (float *)(state->cuda.host + at);
                slot->in_place[i] = state->cuda.in_place + at;
        }
        if (options->n_streams && index >= options->n_streams)
                slot->stream = state->slots[index % options->n_streams].stream;
        else
                CUDA_TRY(&state->cuda, cuStreamCreateWithPriority, &slot->stream,
                         CU_STREAM_NON_BLOCKING, 0);
        return 0;
}

static int own_open(const BenchOptions *options, void **ret_state) {
        State *state = calloc(1, sizeof(*state));

        if (!state)
                return -1;
        state->options = options;
        state->n = options->n;
        state->n_bytes = options->n * sizeof(float);

        if (cuda_open(&state->cuda, options, options->n_slots * 3 * own_stride(state)) < 0)
                return -1;
        for (unsigned i = 0; i < options->n_slots; i++)
                if (own_open_slot(state, i) < 0)
                        return -1;
        *ret_state = state;
        return 0;
}

static void own_inputs(void *p, unsigned slot, float **ret_a, float **ret_b) {
        State *state = p;

        *ret_a = state->slots[slot].host[0];
        *ret_b = state->slots[slot].host[1];
}

/* c = a + b, then c = c + b as often as is left. */
static int own_make_chain(State *state, Slot *slot) {
        CUDA_KERNEL_NODE_PARAMS params = {
                .func = state->cuda.add,
                .gridDimX = (unsigned)((state->n + BENCH_BLOCK - 1) / BENCH_BLOCK),
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = BENCH_BLOCK,
                .blockDimY = 1,
                .blockDimZ = 1};
        CUgraphNode node = NULL;
        CUgraph graph;

        if (slot->chain)
                CUDA_TRY(&state->cuda, cuGraphExecDestroy, slot->chain);
        slot->chain = NULL;

        CUDA_TRY(&state->cuda, cuGraphCreate, &graph, 0);
        for (unsigned i = 0; i < state->options->n_launches; i++) {
                void *args[] = {&slot->args[i ? 2 : 0], &slot->args[1], &slot->args[2], &state->n};
                CUgraphNode before = node;

                params.kernelParams = args;
                CUDA_TRY(&state->cuda, cuGraphAddKernelNode, &node, graph, before ? &before : NULL,
                         before ? 1 : 0, &params);
        }
        CUDA_TRY(&state->cuda, cuGraphInstantiateWithFlags, &slot->chain, graph, 0);
        CUDA_TRY(&state->cuda, cuGraphDestroy, graph);
        return 0;
}

static int own_prepare_slot(State *state, unsigned index) {
        Slot *slot = &state->slots[index];

        for (unsigned i = 0; i < 3; i++)
                slot->device[i] = state->cuda.device + (index * 3 + i) * own_stride(state);
        slot->args = state->data == BENCH_IN_PLACE ? slot->in_place : slot->device;

        memset(slot->host[2], 0xff, state->n_bytes); /* NaN */
        for (unsigned i = 0; state->data == BENCH_DEVICE && i < 3; i++)
                CUDA_TRY(&state->cuda, cuMemcpyHtoDAsync, slot->device[i], slot->host[i],
                         state->n_bytes, slot->stream);
        CUDA_TRY(&state->cuda, cuStreamSynchronize, slot->stream);
        return state->options->n_launches > 1 ? own_make_chain(state, slot) : 0;
}

static int own_prepare(void *p, BenchData data) {
        State *state = p;

        state->data = data;
        if (data != BENCH_IN_PLACE && cuda_want_device(&state->cuda) < 0)
                return -1;
        for (unsigned i = 0; i < state->options->n_slots; i++)
                if (own_prepare_slot(state, i) < 0)
                        return -1;
        return 0;
}

static int own_launch(State *state, Slot *slot) {
        unsigned long long spin_ns = state->options->spin_ns;
        void *args[] = {&slot->args[0], &slot->args[1], &slot->args[2], &state->n, &spin_ns};
        CUlaunchConfig config = {.gridDimX = (unsigned)((state->n + BENCH_BLOCK - 1) / BENCH_BLOCK),
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = BENCH_BLOCK,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = slot->stream};

        if (spin_ns)
                config.gridDimX = state->options->n_blocks;
        CUDA_TRY(&state->cuda, cuLaunchKernelEx, &config,
                 spin_ns ? state->cuda.spin : state->cuda.add, args, NULL);
        return 0;
}

static int own_start(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];
        bool copies = state->data == BENCH_COPIES;

        for (unsigned i = 0; copies && i < 2; i++)
                CUDA_TRY(&state->cuda, cuMemcpyHtoDAsync, slot->device[i], slot->host[i],
                         state->n_bytes, slot->stream);
        if (slot->chain)
                CUDA_TRY(&state->cuda, cuGraphLaunch, slot->chain, slot->stream);
        else if (own_launch(state, slot) < 0)
                return -1;
        if (copies)
                CUDA_TRY(&state->cuda, cuMemcpyDtoHAsync, slot->host[2], slot->device[2],
                         state->n_bytes, slot->stream);

        slot->ended = false;
        state->flying[state->n_started++ % BENCH_SLOTS_MAX] = index;
        return 0;
}

/* All jobs of a stream have ended when nothing is left in it: one look for several, where they share one. */
static void own_mark_ended(State *state, CUstream stream) {
        for (unsigned i = state->n_ended; i != state->n_started; i++) {
                Slot *slot = &state->slots[state->flying[i % BENCH_SLOTS_MAX]];

                if (slot->stream == stream)
                        slot->ended = true;
        }
}

static CUresult own_wait(State *state, CUstream stream) {
        for (;;) {
                CUresult r = state->cuda.driver->cuStreamQuery(stream);

                if (r != CUDA_ERROR_NOT_READY)
                        return r;
                if (state->options->crowded)
                        sched_yield();
        }
}

/* The oldest: jobs of one size end nearly in the order of their start, and every look costs. */
static int own_next(void *p, unsigned *ret_slot) {
        State *state = p;
        unsigned index = state->flying[state->n_ended % BENCH_SLOTS_MAX];
        Slot *slot = &state->slots[index];

        if (!slot->ended) {
                if (cuda_check(&state->cuda, own_wait(state, slot->stream), "a job") < 0)
                        return -1;
                if (state->options->n_streams &&
                    state->options->n_streams < state->options->n_slots)
                        own_mark_ended(state, slot->stream);
        }

        state->n_ended++;
        *ret_slot = index;
        return 0;
}

static const float *own_result(void *p, unsigned index) {
        State *state = p;
        Driver *driver = state->cuda.driver;
        Slot *slot = &state->slots[index];

        if (state->data == BENCH_DEVICE &&
            (driver->cuMemcpyDtoHAsync(slot->host[2], slot->device[2], state->n_bytes,
                                       slot->stream) != CUDA_SUCCESS ||
             driver->cuStreamSynchronize(slot->stream) != CUDA_SUCCESS))
                return NULL;
        return slot->host[2];
}

static void own_close(void *p) {
        State *state = p;

        cuda_close(&state->cuda);
        free(state);
}

const Contender contender_own = {
        .name = "own",
        .open = own_open,
        .inputs = own_inputs,
        .prepare = own_prepare,
        .start = own_start,
        .next = own_next,
        .result = own_result,
        .close = own_close,
};

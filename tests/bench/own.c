/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The small job from a context of the process's own, as a good program does it:
 * pinned host memory, a stream for each job in flight, completion by polling.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

typedef struct Slot {
        float *host[3]; /* a, b, c, pinned */
        CUdeviceptr data[3];
        CUstream stream;
        bool busy;
} Slot;

typedef struct State {
        const BenchOptions *options;
        Driver *cu;
        CUcontext context;
        CUmodule module;
        CUfunction add;
        unsigned next;
        Slot slots[BENCH_SLOTS_MAX];
} State;

#define TRY(call)                                                                                  \
        do {                                                                                       \
                CUresult _r = (call);                                                              \
                if (_r != CUDA_SUCCESS) {                                                          \
                        fprintf(stderr, "own: %s: error %d\n", #call, (int)_r);                    \
                        return -1;                                                                 \
                }                                                                                  \
        } while (0)

static void *read_file(const char *folder, const char *name) {
        char path[4096];
        void *data = NULL;
        long size;
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "rb");
        if (!file)
                return NULL;
        fseek(file, 0, SEEK_END);
        size = ftell(file);
        rewind(file);
        data = calloc(1, (size_t)size + 1);
        if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
                free(data);
                data = NULL;
        }
        fclose(file);
        return data;
}

/* The same images that the daemon loads. */
static int load_module(State *state) {
        static const char *const names[] = {"builtin.fatbin", "builtin.ptx", "builtin.cpu.so"};

        for (unsigned i = 0; i < 3; i++) {
                void *image = read_file(state->options->kernels, names[i]);
                CUresult r = image ? state->cu->cuModuleLoadData(&state->module, image)
                                   : CUDA_ERROR_FILE_NOT_FOUND;

                free(image);
                if (r == CUDA_SUCCESS)
                        return 0;
        }
        fprintf(stderr, "own: no image of the built-in kernels in %s loads\n",
                state->options->kernels);
        return -1;
}

static int slot_open(State *state, Slot *slot) {
        size_t size = state->options->n * sizeof(float);
        CUmemoryPool pool;
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

        TRY(state->cu->cuMemPoolCreate(&pool, &props));
        TRY(state->cu->cuStreamCreateWithPriority(&slot->stream, CU_STREAM_NON_BLOCKING, 0));
        for (unsigned i = 0; i < 3; i++) {
                TRY(state->cu->cuMemHostAlloc((void **)&slot->host[i], size, 0));
                memset(slot->host[i], 0, size);
                TRY(state->cu->cuMemAllocFromPoolAsync(&slot->data[i], size, pool, slot->stream));
        }
        TRY(state->cu->cuStreamSynchronize(slot->stream));
        return 0;
}

static int own_open(const BenchOptions *options, void **ret_state) {
        const char *problem = NULL;
        State *state = calloc(1, sizeof(*state));

        if (!state)
                return -1;
        state->options = options;
        if (driver_open(options->driver, &state->cu, &problem) < 0) {
                fprintf(stderr, "own: %s\n", problem ? problem : options->driver);
                return -1;
        }
        TRY(state->cu->cuInit(0));
        TRY(state->cu->cuCtxCreate(&state->context, 0, 0));
        if (load_module(state) < 0)
                return -1;
        TRY(state->cu->cuModuleGetFunction(&state->add, state->module, "add_f32"));
        for (unsigned i = 0; i < options->n_slots; i++)
                if (slot_open(state, &state->slots[i]) < 0)
                        return -1;
        *ret_state = state;
        return 0;
}

static void own_inputs(void *p, unsigned slot, float **ret_a, float **ret_b) {
        State *state = p;

        *ret_a = state->slots[slot].host[0];
        *ret_b = state->slots[slot].host[1];
}

static int own_ready(void *p) {
        State *state = p;
        size_t size = state->options->n * sizeof(float);

        for (unsigned i = 0; i < state->options->n_slots; i++) {
                Slot *slot = &state->slots[i];

                for (unsigned k = 0; k < 2; k++)
                        TRY(state->cu->cuMemcpyHtoDAsync(slot->data[k], slot->host[k], size,
                                                         slot->stream));
                TRY(state->cu->cuStreamSynchronize(slot->stream));
        }
        return 0;
}

static int own_start(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];
        unsigned long long n = state->options->n;
        size_t size = n * sizeof(float);
        void *args[] = {&slot->data[0], &slot->data[1], &slot->data[2], &n};
        CUlaunchConfig config = {.gridDimX = (unsigned)((n + 255) / 256),
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 256,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = slot->stream};

        for (unsigned k = 0; !state->options->on_device && k < 2; k++)
                TRY(state->cu->cuMemcpyHtoDAsync(slot->data[k], slot->host[k], size, slot->stream));
        TRY(state->cu->cuLaunchKernelEx(&config, state->add, args, NULL));
        if (!state->options->on_device)
                TRY(state->cu->cuMemcpyDtoHAsync(slot->host[2], slot->data[2], size, slot->stream));
        slot->busy = true;
        return 0;
}

static int own_next(void *p, unsigned *ret_slot) {
        State *state = p;

        for (;;) {
                Slot *slot = &state->slots[state->next];
                unsigned index = state->next;
                CUresult r;

                state->next = (state->next + 1) % state->options->n_slots;
                if (!slot->busy)
                        continue;
                r = state->cu->cuStreamQuery(slot->stream);
                if (r == CUDA_ERROR_NOT_READY)
                        continue;
                TRY(r);
                slot->busy = false;
                *ret_slot = index;
                return 0;
        }
}

static const float *own_result(void *p, unsigned index) {
        State *state = p;
        Slot *slot = &state->slots[index];
        size_t size = state->options->n * sizeof(float);

        if (state->options->on_device &&
            (state->cu->cuMemcpyDtoHAsync(slot->host[2], slot->data[2], size, slot->stream) !=
                     CUDA_SUCCESS ||
             state->cu->cuStreamSynchronize(slot->stream) != CUDA_SUCCESS))
                return NULL;
        return slot->host[2];
}

static void own_close(void *p) {
        State *state = p;

        state->cu->cuCtxDestroy(state->context);
        driver_close(state->cu);
        free(state);
}

const Contender contender_own = {
        .name = "own",
        .open = own_open,
        .inputs = own_inputs,
        .ready = own_ready,
        .start = own_start,
        .next = own_next,
        .result = own_result,
        .close = own_close,
};

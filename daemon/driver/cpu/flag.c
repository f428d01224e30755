/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flag
 *
 * Words in memory that a stream writes, or waits for.
 */
#include <string.h>
#include <time.h>

#include "driver/cpu/api.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/range.h"
#include "driver/cpu/stream.h"

#define FLAG_SPINS    200 /* looks before it sleeps between them */
#define FLAG_SLEEP_NS 20000

typedef struct FlagWork {
        Work work;
        Context *context;
        uint32_t *word;
        uint32_t value;
        unsigned flags;
} FlagWork;

static void flag_free(Work *work) {
        free(work);
}

/* A thread that sees the value also sees all earlier work of the stream. */
static CUresult flag_write(void *argument) {
        FlagWork *flag = argument;

        __atomic_store_n(flag->word, flag->value, __ATOMIC_RELEASE);
        return CUDA_SUCCESS;
}

static bool flag_reached(const FlagWork *flag) {
        uint32_t word = __atomic_load_n(flag->word, __ATOMIC_ACQUIRE);

        switch (flag->flags) {
                case CU_STREAM_WAIT_VALUE_GEQ:
                        return (int32_t)(word - flag->value) >= 0;
                case CU_STREAM_WAIT_VALUE_EQ:
                        return word == flag->value;
                case CU_STREAM_WAIT_VALUE_AND:
                        return (word & flag->value) != 0;
                default:
                        return ~(word | flag->value) != 0;
        }
}

static CUresult flag_wait(void *argument) {
        struct timespec moment = {.tv_nsec = FLAG_SLEEP_NS};
        FlagWork *flag = argument;

        for (unsigned i = 0; !flag_reached(flag) && !flag->context->error; i++)
                if (i > FLAG_SPINS)
                        nanosleep(&moment, NULL);

        return CUDA_SUCCESS;
}

static CUresult flag_run_write(Work *work, Stream *stream) {
        return engine_run_guarded(stream->engine, flag_write, work);
}

static CUresult flag_run_wait(Work *work, Stream *stream) {
        return engine_run_guarded(stream->engine, flag_wait, work);
}

static CUresult flag_push(CUstream handle, CUdeviceptr address, uint32_t value, unsigned flags,
                          unsigned flags_max, CUresult (*run)(Work *, Stream *)) {
        Context *context;
        Stream *stream;
        FlagWork *flag;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        if (flags > flags_max || address % sizeof(uint32_t) ||
            !range_covers(address, sizeof(uint32_t), RANGE_DEVICE | RANGE_PINNED))
                return CUDA_ERROR_INVALID_VALUE;

        flag = calloc(1, sizeof(*flag));
        if (!flag)
                return CUDA_ERROR_OUT_OF_MEMORY;

        *flag = (FlagWork){
                .work = {.n_refs = 1, .run = run, .free = flag_free},
                .context = context,
                .word = (uint32_t *)(uintptr_t)address,
                .value = value,
                .flags = flags,
        };
        return stream_push(stream, &flag->work);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int flags) {
        return flag_push(stream, address, value, flags, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER,
                         flag_run_write);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags) {
        return flag_push(stream, address, value, flags, CU_STREAM_WAIT_VALUE_NOR, flag_run_wait);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions of the program, such as a library on the host computes
 */
#include <string.h>

#include "driver/cpu/api.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/stream.h"

typedef struct CallWork {
        Work work;
        CUresult (*func)(void *data);
        _Alignas(16) char data[];
} CallWork;

static void call_free(Work *work) {
        free(work);
}

static CUresult call_run(Work *work, Stream *stream) {
        CallWork *call = (CallWork *)work;

        return engine_run_guarded(stream->engine, call->func, call->data);
}

CUresult gpuq_cpu_call(CUstream handle, CUresult (*func)(void *data), const void *data,
                       size_t n_data) {
        Context *context;
        Stream *stream;
        CallWork *work;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;
        work = calloc(1, sizeof(*work) + n_data);
        if (!work)
                return CUDA_ERROR_OUT_OF_MEMORY;

        work->work = (Work){.n_refs = 1, .run = call_run, .free = call_free};
        work->func = func;
        memcpy(work->data, data, n_data);
        return stream_push(stream, &work->work);
}

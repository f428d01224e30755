/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/stream.h"

#include "driver/cpu/api.h"
#include "driver/cpu/broken.h"
#include "driver/cpu/engine.h"
#include "driver/cpu/print.h"

#define STREAM_MAGIC 0x7374726du

bool stream_idle(const Stream *stream) {
        return STAILQ_EMPTY(&stream->items) && !stream->busy;
}

/* Without the lock. After a fault work is not run any more, only released. */
static void stream_run(Stream *stream, StreamItem *item) {
        Context *context = stream->context;
        CUresult r = broken_device(context->device->number);

        if (!context->error && !r)
                r = item->work->run(item->work, stream);
        if (r)
                context_fail(context, r);

        work_unref(item->work);
        free(item);
}

/* With the lock, which it releases at times. */
static void stream_loop(Stream *stream) {
        Context *context = stream->context;
        StreamItem *item;

        for (;;) {
                item = STAILQ_FIRST(&stream->items);
                if (!item && stream->ending)
                        return;
                if (!item) {
                        pthread_cond_wait(&stream->wake, &context->lock);
                        continue;
                }

                STAILQ_REMOVE_HEAD(&stream->items, link);
                stream->busy = true;
                pthread_mutex_unlock(&context->lock);
                stream_run(stream, item);
                pthread_mutex_lock(&context->lock);
                stream->busy = false;
                pthread_cond_broadcast(&context->progress);
        }
}

void stream_free(Stream *stream) {
        LIST_REMOVE(stream, link);
        pthread_cond_destroy(&stream->wake);
        stream->magic = 0;
        free(stream);
}

static void *stream_thread(void *argument) {
        Stream *stream = argument;
        Context *context = stream->context;
        Engine *engine = engine_new(context);

        /* Without an engine the thread cannot run work. */
        if (!engine)
                context_fail(context, CUDA_ERROR_OUT_OF_MEMORY);

        pthread_mutex_lock(&context->lock);
        stream->engine = engine;
        stream_loop(stream);
        stream_free(stream);
        pthread_mutex_unlock(&context->lock);

        engine_free(engine);
        pthread_mutex_lock(&context->lock);
        context_thread_end(context);
        return NULL;
}

/* With the lock held. */
static CUresult stream_new(Context *context, int priority, Stream **ret_stream) {
        Stream *stream;

        stream = calloc(1, sizeof(*stream));
        if (!stream)
                return CUDA_ERROR_OUT_OF_MEMORY;

        stream->magic = STREAM_MAGIC;
        stream->context = context;
        stream->priority = priority;
        STAILQ_INIT(&stream->items);
        pthread_cond_init(&stream->wake, NULL);
        LIST_INSERT_HEAD(&context->streams, stream, link);
        *ret_stream = stream;
        return CUDA_SUCCESS;
}

/* The stream of calls that name no stream. It does not wait for the other streams. */
static CUresult stream_default(Context *context, Stream **ret_stream) {
        CUresult r = CUDA_SUCCESS;

        pthread_mutex_lock(&context->lock);
        if (!context->null_stream)
                r = stream_new(context, 0, &context->null_stream);
        if (!r)
                *ret_stream = context->null_stream;
        pthread_mutex_unlock(&context->lock);
        return r;
}

CUresult stream_enter(CUstream stream, Context **ret_context, Stream **ret_stream) {
        CUresult r;

        r = context_enter(ret_context);
        if (r)
                return r;
        if (!stream)
                return stream_default(*ret_context, ret_stream);
        if (stream->magic != STREAM_MAGIC)
                return CUDA_ERROR_INVALID_HANDLE;
        /* A stream of another context is used in that context, and returns its fault. */
        if (stream->context->error)
                return (CUresult)stream->context->error;

        *ret_context = stream->context;
        *ret_stream = stream;
        return CUDA_SUCCESS;
}

/* With the lock held. */
static CUresult stream_start(Stream *stream) {
        if (stream->started)
                return CUDA_SUCCESS;
        if (context_thread_start(stream->context, stream_thread, stream) < 0)
                return CUDA_ERROR_OUT_OF_MEMORY;

        stream->started = true;
        return CUDA_SUCCESS;
}

CUresult stream_push(Stream *stream, Work *work) {
        StreamItem *item;
        CUresult r;

        if (stream->capture)
                return stream->append(stream->capture, work);
        item = malloc(sizeof(*item));
        if (!item) {
                work_unref(work);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }

        item->work = work;
        pthread_mutex_lock(&stream->context->lock);
        r = stream_start(stream);
        if (r == CUDA_SUCCESS) {
                STAILQ_INSERT_TAIL(&stream->items, item, link);
                pthread_cond_signal(&stream->wake);
        }
        pthread_mutex_unlock(&stream->context->lock);
        if (r) {
                work_unref(work);
                free(item);
        }
        return r;
}

CUresult stream_drain(Context *context) {
        Stream *stream;

        pthread_mutex_lock(&context->lock);
again:
        LIST_FOREACH (stream, &context->streams, link) {
                if (!stream_idle(stream) && !context->error) {
                        pthread_cond_wait(&context->progress, &context->lock);
                        goto again;
                }
        }
        pthread_mutex_unlock(&context->lock);
        return (CUresult)context->error;
}

CUresult stream_wait(Stream *stream) {
        Context *context = stream->context;

        pthread_mutex_lock(&context->lock);
        while (!stream_idle(stream) && !context->error)
                pthread_cond_wait(&context->progress, &context->lock);
        pthread_mutex_unlock(&context->lock);
        return (CUresult)context->error;
}

CUresult cuStreamCreateWithPriority(CUstream *ret_stream, unsigned int flags, int priority) {
        int least, greatest;
        Context *context;
        CUresult r;

        r = context_enter(&context);
        if (r)
                return r;
        if (!ret_stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;

        cuCtxGetStreamPriorityRange(&least, &greatest);
        priority = MAX(MIN(priority, least), greatest);

        pthread_mutex_lock(&context->lock);
        r = stream_new(context, priority, ret_stream);
        pthread_mutex_unlock(&context->lock);
        return r;
}

/* Queued work still runs. Then the stream's thread frees the stream, if it has a thread. */
CUresult cuStreamDestroy_v2(CUstream handle) {
        Context *context;
        Stream *stream;
        CUresult r;

        if (!handle)
                return CUDA_ERROR_INVALID_HANDLE;
        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;

        pthread_mutex_lock(&context->lock);
        stream->ending = true;
        if (stream->started)
                pthread_cond_signal(&stream->wake);
        else
                stream_free(stream);
        pthread_mutex_unlock(&context->lock);
        return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
        Context *context;
        Stream *stream;
        bool idle;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r)
                return r;

        pthread_mutex_lock(&context->lock);
        idle = stream_idle(stream);
        pthread_mutex_unlock(&context->lock);
        if (context->error)
                return (CUresult)context->error;

        return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
        Context *context;
        Stream *stream;
        CUresult r;

        r = stream_enter(handle, &context, &stream);
        if (r == CUDA_ERROR_NOT_INITIALIZED || r == CUDA_ERROR_INVALID_CONTEXT)
                return r;
        if (r) {
                /* Output from before the fault can still be read. */
                cuCtxSynchronize();
                return r;
        }

        r = stream_wait(stream);
        print_flush(context->print);
        return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_STREAM_H
#define GPUQ_CPU_STREAM_H

/*
 * Stream
 *
 * A queue of work and the host thread that runs it in order. The thread starts with the first
 * work, because a program may create many streams and use few. Guarded by the context's lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "driver/cpu/context.h"
#include "driver/cpu/work.h"

typedef struct StreamItem {
        Work *work;
        STAILQ_ENTRY(StreamItem) link;
} StreamItem;

typedef struct CUstream_st {
        uint32_t magic;
        Context *context;
        LIST_ENTRY(CUstream_st) link; /* context->streams */
        int priority;                 /* lower numbers go first */
        struct Engine *engine;        /* of its thread */

        struct CUgraph_st *capture; /* gets pushed work, by append(); NULL: the stream runs it */
        CUresult (*append)(struct CUgraph_st *graph, Work *work);
        STAILQ_HEAD(, StreamItem) items;
        pthread_cond_t wake;
        bool started; /* its thread */
        bool busy;
        bool ending;
} Stream;

/**
 * stream_enter() - what a call on a stream checks first
 * @stream: as it was given: NULL is the context's own
 */
CUresult stream_enter(CUstream stream, Context **ret_context, Stream **ret_stream);
/** stream_free() - free a stream whose thread has ended or never started; with the lock held. */
void stream_free(Stream *stream);
/** stream_push() - append work, or capture it, and take over its reference. Return: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult stream_push(Stream *stream, Work *work);
/** stream_idle() - nothing queued or running; with the lock held. */
bool stream_idle(const Stream *stream);
/** stream_drain() - wait until all streams of a context are idle; takes the lock itself. Return:
 * the fault. */
CUresult stream_drain(Context *context);
/** stream_wait() - until it is idle or the context failed. Return: the fault. */
CUresult stream_wait(Stream *stream);

#endif

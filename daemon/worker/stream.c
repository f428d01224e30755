/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream
 */
#include "worker/stream.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "worker/wide.h"

#define STREAMS_ALL ((size_t)_STREAM_CLASS_N * STREAMS_MAX)

/* The gate's word. */
enum { STREAMS_SHUT, STREAMS_OPEN };

/* A write of the GPU takes a microsecond to arrive. After this time it has arrived. */
#define STREAMS_SETTLE_NS 100000

/* Bytes of the smallest scratch; larger ones are twice as large, and so on. */
#define STREAM_SCRATCH_MIN ((size_t)256 << 10)

StreamClass stream_class(int priority) {
        if (priority < 0)
                return STREAM_LOW;
        return priority > 0 ? STREAM_HIGH : STREAM_NORMAL;
}

/* CUDA's priorities: the smaller, the sooner. Where there are only two, normal is low. */
static int stream_priority(const Context *context, StreamClass class) {
        switch (class) {
                case STREAM_LOW:
                        return context->priority_least;
                case STREAM_HIGH:
                        return context->priority_greatest;
                default:
                        return (context->priority_least + context->priority_greatest) / 2;
        }
}

static int stream_init(Streams *streams, StreamClass class, unsigned i, Failure *failure) {
        Context *context = streams->context;
        const Driver *cu = context->cu;
        size_t slot = (size_t) class * STREAMS_MAX + i;
        Stream *stream = &streams->streams[class][i];
        int r;

        stream->words = streams->words + slot;
        stream->words_device = streams->words_device + slot * sizeof(StreamWords);
        stream->class = class;
        r = context_check(context,
                          cu->cuStreamCreateWithPriority(&stream->stream, CU_STREAM_NON_BLOCKING,
                                                         stream_priority(context, class)),
                          "cuStreamCreateWithPriority", failure);
        if (r)
                return r;
        return context_check(context, cu->cuEventCreate(&stream->event, CU_EVENT_DISABLE_TIMING),
                             "cuEventCreate", failure);
}

static int streams_make(Streams *streams, Failure *failure) {
        int r = 0;

        for (unsigned class = 0; class < _STREAM_CLASS_N; ++class)
                for (unsigned i = 0; i < STREAMS_MAX && r == 0; ++i)
                        r = stream_init(streams, class, i, failure);
        return r;
}

int streams_init(Streams *streams, Context *context, Failure *failure) {
        const Driver *cu = context->cu;
        size_t n_bytes = sizeof(StreamWords) * (STREAMS_ALL + 1);
        void *memory;
        int r;

        r = context_check(context,
                          cu->cuMemHostAlloc(&memory, n_bytes,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                          "cuMemHostAlloc", failure);
        if (r)
                return r;
        memset(memory, 0, n_bytes);

        r = context_check(context, cu->cuMemHostGetDevicePointer(&streams->words_device, memory, 0),
                          "cuMemHostGetDevicePointer", failure);
        if (r)
                return r;

        streams->words = memory;
        streams->words[STREAMS_ALL].started = STREAMS_OPEN;
        streams->context = context;
        return streams_make(streams, failure);
}

unsigned stream_least_busy(const Stream *streams, unsigned n_streams) {
        unsigned best = 0;

        for (unsigned i = 1; i < n_streams && streams[best].n_busy > 0; ++i)
                if (streams[i].n_busy < streams[best].n_busy)
                        best = i;
        return best;
}

Stream *streams_choose(Streams *streams, StreamClass class) {
        Stream *all = streams->streams[class];

        return &all[stream_least_busy(all, STREAMS_MAX)];
}

static CUresult stream_drop_scratch(Streams *streams, Stream *stream) {
        CUdeviceptr scratch = stream->scratch;

        streams->n_scratch -= stream->n_scratch;
        stream->scratch = 0;
        stream->n_scratch = 0;
        return scratch ? streams->context->cu->cuMemFreeAsync(scratch, stream->stream)
                       : CUDA_SUCCESS;
}

static size_t scratch_room(size_t n_bytes) {
        size_t n_room = STREAM_SCRATCH_MIN;

        while (n_room < n_bytes)
                n_room *= 2;
        return n_room;
}

bool streams_may_keep(const Streams *streams, const Stream *stream, size_t n_bytes) {
        return n_bytes <= stream->n_scratch ||
               streams->n_scratch + scratch_room(n_bytes) <= STREAMS_SCRATCH_MAX;
}

CUresult stream_scratch(Streams *streams, Stream *stream, size_t n_bytes,
                        CUdeviceptr *ret_scratch) {
        CUdeviceptr scratch;
        CUresult result;
        size_t n_room;

        if (n_bytes > stream->n_scratch) {
                n_room = scratch_room(n_bytes);
                result = streams->context->cu->cuMemAllocFromPoolAsync(
                        &scratch, n_room, streams->context->pool, stream->stream);
                if (result != CUDA_SUCCESS)
                        return result;
                result = stream_drop_scratch(streams, stream); /* behind the tickets that use it */
                if (result != CUDA_SUCCESS)
                        return result;
                stream->scratch = scratch;
                stream->n_scratch = n_room;
                streams->n_scratch += n_room;
        }

        *ret_scratch = stream->scratch;
        return CUDA_SUCCESS;
}

CUdeviceptr stream_wide(const Streams *streams, Stream *stream) {
        const Driver *cu = streams->context->cu;
        CUdeviceptr wide;

        if (stream->wide)
                return stream->wide;
        if (cu->cuMemAllocFromPoolAsync(&wide, WIDE_BYTES, streams->context->pool,
                                        stream->stream) != CUDA_SUCCESS)
                return 0;
        if (cu->cuMemsetD8Async(wide, 0, WIDE_BYTES, stream->stream) != CUDA_SUCCESS) {
                (void)cu->cuMemFreeAsync(wide, stream->stream);
                return 0;
        }
        stream->wide = wide;
        return wide;
}

static CUresult stream_drop_wide(const Streams *streams, Stream *stream) {
        CUdeviceptr wide = stream->wide;

        stream->wide = 0;
        return wide ? streams->context->cu->cuMemFreeAsync(wide, stream->stream) : CUDA_SUCCESS;
}

CUresult stream_launch(Streams *streams, Stream *stream, CUlaunchConfig *config,
                       CUfunction function, void **params) {
        unsigned n_graphs = stream->launcher.n;
        CUresult result;

        config->hStream = stream->stream;
        result = launcher_launch(&stream->launcher, streams->context->cu, config, function, params,
                                 !streams->context->is_green && streams->n_graphs < LAUNCHER_MAX);
        streams->n_graphs += stream->launcher.n - n_graphs;
        return result;
}

void streams_forget_functions(Streams *streams) {
        for (unsigned class = 0; class < _STREAM_CLASS_N; ++class)
                for (unsigned i = 0; i < STREAMS_MAX; ++i)
                        launcher_clear(&streams->streams[class][i].launcher, streams->context->cu);
        streams->n_graphs = 0;
}

bool streams_drop_scratch(Streams *streams) {
        bool any = false;

        for (unsigned class = 0; class < _STREAM_CLASS_N; ++class)
                for (unsigned i = 0; i < STREAMS_MAX; ++i) {
                        Stream *stream = &streams->streams[class][i];

                        if (stream->n_busy > 0 || (!stream->scratch && !stream->wide))
                                continue;
                        /* If the context is unusable, the next call that returns a result
                         * reports it. */
                        (void)stream_drop_scratch(streams, stream);
                        (void)stream_drop_wide(streams, stream);
                        any = true;
                }
        return any;
}

Ticket ticket_take(Streams *streams, Stream *stream) {
        ++streams->n_busy;
        ++stream->n_busy;
        return (Ticket){.stream = stream, .number = ++stream->number};
}

void ticket_release(Streams *streams, Ticket *ticket) {
        if (!ticket->stream)
                return;
        --ticket->stream->n_busy;
        --streams->n_busy;
        ticket->stream = NULL;
}

static CUresult ticket_mark(const Streams *streams, const Ticket *ticket, size_t offset) {
        /* The driver puts a memory barrier before the write, so earlier work is visible when
         * the word is. */
        return streams->context->cu->cuStreamWriteValue32(
                ticket->stream->stream, ticket->stream->words_device + offset, ticket->number,
                CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult ticket_mark_started(const Streams *streams, const Ticket *ticket) {
        return ticket_mark(streams, ticket, offsetof(StreamWords, started));
}

CUresult ticket_pass_gate(const Streams *streams, const Ticket *ticket) {
        return streams->context->cu->cuStreamWaitValue32(
                ticket->stream->stream, streams->words_device + STREAMS_ALL * sizeof(StreamWords),
                STREAMS_OPEN, CU_STREAM_WAIT_VALUE_EQ);
}

/* The stream writes the word before it reads the gate. So if it finds the gate open, the word
 * was written before the gate was shut. */
CUresult ticket_mark_committing(const Streams *streams, const Ticket *ticket) {
        CUresult result = ticket_mark(streams, ticket, offsetof(StreamWords, committing));

        return result == CUDA_SUCCESS ? ticket_pass_gate(streams, ticket) : result;
}

CUresult ticket_mark_done(const Streams *streams, const Ticket *ticket) {
        return ticket_mark(streams, ticket, offsetof(StreamWords, done));
}

static uint32_t ticket_load(const uint32_t *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/*
 * Not every ticket writes the first two words, so only its own number counts. A
 * later ticket's replaces it, but then this one is done.
 */
bool ticket_has_started(const Ticket *ticket) {
        return ticket_load(&ticket->stream->words->started) == ticket->number;
}

bool ticket_is_committing(const Ticket *ticket) {
        return ticket_load(&ticket->stream->words->committing) == ticket->number;
}

/* Every ticket writes this one. Numbers wrap around; those in flight are never 2^31 apart. */
bool ticket_is_done(const Ticket *ticket) {
        return (int32_t)(ticket_load(&ticket->stream->words->done) - ticket->number) >= 0;
}

bool ticket_is_next(const Ticket *ticket) {
        return (int32_t)(ticket_load(&ticket->stream->words->done) - (ticket->number - 1)) >= 0;
}

CUresult ticket_wait(const Streams *streams, const Ticket *ticket, Stream *stream) {
        const Driver *cu = streams->context->cu;
        CUresult result;

        if (ticket->stream == stream)
                return CUDA_SUCCESS;

        result = cu->cuEventRecord(ticket->stream->event, ticket->stream->stream);
        if (result != CUDA_SUCCESS)
                return result;
        return cu->cuStreamWaitEvent(stream->stream, ticket->stream->event, 0);
}

void streams_shut(Streams *streams) {
        struct timespec settle = {.tv_nsec = STREAMS_SETTLE_NS};

        __atomic_store_n(&streams->words[STREAMS_ALL].started, STREAMS_SHUT, __ATOMIC_SEQ_CST);
        nanosleep(&settle, NULL);
}

CUresult streams_query(Streams *streams) {
        for (unsigned class = 0; class < _STREAM_CLASS_N; ++class)
                for (unsigned i = 0; i < STREAMS_MAX; ++i) {
                        Stream *stream = &streams->streams[class][i];
                        CUresult result;

                        if (stream->n_busy == 0)
                                continue;
                        result = streams->context->cu->cuStreamQuery(stream->stream);
                        if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
                                return result;
                }
        return CUDA_SUCCESS;
}

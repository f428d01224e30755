/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_STREAM_H
#define GPUQ_WORKER_STREAM_H

/*
 * Stream
 *
 * Streams by priority, all created at the start: the driver reserves memory for every few (26 MiB for
 * all, in 1.5 ms, on an H200), and may wait for all running kernels first. Each stream writes words in
 * pinned host memory as it proceeds, which the loop polls. Reading a word costs a load, while a
 * callback or a blocking event costs 40 us. Work on a stream is a ticket: its number in the stream's
 * order.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "worker/context.h"
#include "worker/launcher.h"

#define STREAMS_MAX 16u /* of each class */
/* Limit of the scratch that all streams keep, but for 3 MiB of stream_wide(); the driver's pool grows by 32 MiB
 * at a time. */
#define STREAMS_SCRATCH_MAX ((size_t)24 << 20)

typedef enum StreamClass {
        STREAM_LOW,
        STREAM_NORMAL,
        STREAM_HIGH,
        _STREAM_CLASS_N,
} StreamClass;

/*
 * Written by the GPU: each word is set to the number of its ticket. After the words of all streams comes
 * one that this process writes: the gate (see streams_shut()).
 */
typedef struct StreamWords {
        uint32_t started;
        uint32_t committing;
        uint32_t done;
        uint32_t _padding[13]; /* one stream's words fill a cache line */
} StreamWords;

typedef struct Stream {
        CUstream stream;
        CUevent event; /* for other streams to wait for */
        StreamWords *words;
        CUdeviceptr words_device;
        uint32_t number; /* of the last ticket */
        unsigned n_busy; /* tickets not released yet */
        StreamClass class;
        Launcher launcher;
        CUdeviceptr
                scratch; /* kept from ticket to ticket, since these run one after the other; or 0 */
        size_t n_scratch; /* bytes */
        CUdeviceptr wide; /* memory of wide launches (wide.h), or 0 */
} Stream;

typedef struct Ticket {
        Stream *stream; /* NULL: none */
        uint32_t number;
} Ticket;

typedef struct Streams {
        Context *context;
        StreamWords *words;
        CUdeviceptr words_device;
        Stream streams[_STREAM_CLASS_N][STREAMS_MAX];
        unsigned n_busy;   /* tickets on all of them */
        unsigned n_graphs; /* of all launchers */
        size_t n_scratch;  /* bytes that all of them keep */
} Streams;

/** streams_init() - into zeroed @streams. Return: 0, FAILURE_E_SET, FAILURE_E_FAULT. */
int streams_init(Streams *streams, Context *context, Failure *failure);

/** stream_class() - of a job's priority, -100 to 100. */
StreamClass stream_class(int priority);
/** stream_least_busy() - index of the least busy of @n_streams; of equals the first. Pure. */
unsigned stream_least_busy(const Stream *streams, unsigned n_streams);
/** streams_choose() - a stream for new work of a class. */
Stream *streams_choose(Streams *streams, StreamClass class);

/** streams_may_keep() - whether this much scratch on the stream stays within STREAMS_SCRATCH_MAX. */
bool streams_may_keep(const Streams *streams, const Stream *stream, size_t n_bytes);
/**
 * stream_scratch() - device memory for the next ticket, until the ticket is done
 *
 * Kept and grown, so that a job need not ask the pool. Return: CUDA's result; out of memory changes
 * nothing.
 */
CUresult stream_scratch(Streams *streams, Stream *stream, size_t n_bytes, CUdeviceptr *ret_scratch);
/**
 * stream_wide() - memory for the next wide launches on the stream (wide.h), until streams_drop_scratch()
 *
 * Return: 0 if the device has none.
 */
CUdeviceptr stream_wide(const Streams *streams, Stream *stream);
/** stream_launch() - launch a kernel; sets hStream of @config. Return: as launcher_launch(). */
CUresult stream_launch(Streams *streams, Stream *stream, CUlaunchConfig *config,
                       CUfunction function, void **params);
/** streams_forget_functions() - some functions will be unloaded. */
void streams_forget_functions(Streams *streams);

/** streams_drop_scratch() - free the scratch of idle streams. Return: whether there was any. */
bool streams_drop_scratch(Streams *streams);

/** ticket_take() - the next number on a stream; release it with ticket_release(). */
Ticket ticket_take(Streams *streams, Stream *stream);
/** ticket_release() - the ticket is not needed any more. */
void ticket_release(Streams *streams, Ticket *ticket);
/** ticket_place() - of the ticket's stream among all: index + 1; 0: the ticket has none. */
static inline uint32_t ticket_place(const Streams *streams, const Ticket *ticket) {
        return ticket->stream ? (uint32_t)(ticket->stream - &streams->streams[0][0]) + 1 : 0;
}
/** ticket_mark_…() - the stream writes the word when it gets there. */
CUresult ticket_mark_started(const Streams *streams, const Ticket *ticket);
/* This one also passes the gate. */
CUresult ticket_mark_committing(const Streams *streams, const Ticket *ticket);
CUresult ticket_mark_done(const Streams *streams, const Ticket *ticket);
/** ticket_pass_gate() - the stream stops there for ever if the gate is shut. */
CUresult ticket_pass_gate(const Streams *streams, const Ticket *ticket);
/** ticket_has_…() - whether the stream got there. Its earlier work is visible then. */
bool ticket_has_started(const Ticket *ticket);
bool ticket_is_committing(const Ticket *ticket);
bool ticket_is_done(const Ticket *ticket);
/** ticket_is_next() - whether all tickets before it on its stream are done. */
bool ticket_is_next(const Ticket *ticket);
/** ticket_wait() - @stream waits for the work that is now on the ticket's stream. */
CUresult ticket_wait(const Streams *streams, const Ticket *ticket, Stream *stream);

/**
 * streams_shut() - from now on no stream passes ticket_pass_gate() and ticket_mark_committing()
 *
 * A ticket that is not committing now never will be, and queued work does not begin. The worker can
 * therefore report it, and the report stays true until this process has ended, however long that takes.
 * The gate is never opened again.
 */
void streams_shut(Streams *streams);
/** streams_query() - query the driver about a busy stream: only this shows a fault. */
CUresult streams_query(Streams *streams);

#endif

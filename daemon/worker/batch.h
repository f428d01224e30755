/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_BATCH_H
#define GPUQ_WORKER_BATCH_H

/*
 * Batch
 *
 * Jobs that are issued to a stream and end together, under one ticket: one job, or several of one
 * kind, which become one launch of their kernel's twin. A Forming collects ready jobs into batches.
 * Both are pure: nothing here calls the driver.
 */

#include "worker/graph.h"
#include "worker/in_place.h"
#include "worker/job.h"
#include "worker/texture.h"

#define BATCH_BYTES_MAX (4u << 20) /* of small jobs in one batch: enough for full speed over PCIe */
#define FORMING_MAX     8u         /* batches that are formed at once */

/* How the host data of a batch's jobs reaches the kernels. */
typedef enum BatchWay {
        BATCH_NO_DATA,
        BATCH_COPIED,   /* by the copy engines, through scratch of its own */
        BATCH_MOVED,    /* by the move kernel, through the stream's scratch */
        BATCH_IN_PLACE, /* kernels work on the host memory */
        _BATCH_WAY_N,
} BatchWay;

typedef struct Batch {
        TAILQ_ENTRY(Batch) link; /* forming->open, then runner->batches */
        struct JobList jobs;
        size_t n_jobs;
        JobKind kind; /* of its jobs; .function NULL: it has one job */
        size_t n_rows;
        Stream *stream;     /* it must follow the work there; NULL while it is formed: any */
        bool is_behind;     /* its jobs follow something in flight */
        bool may_wait;      /* for scratch that other batches hold */
        uint64_t n_small;   /* bytes, of all jobs */
        uint64_t formed_ns; /* when its first job first entered a batch */

        BatchWay way;
        InPlace *in_place; /* of its kernel; NULL: the choice was not asked, and gets no result */
        InPlaceChoice choice;
        Ticket ticket;       /* in flight */
        CUdeviceptr scratch; /* its own, for copy engines */
        Graph *graph;
        Texture **textures; /* of its only job; NULL: none */
        size_t n_textures;
        CUevent begin, end;   /* if timed */
        uint32_t timeout_ms;  /* the shortest of its jobs'; 0: none */
        bool waits_elsewhere; /* it also waits for other streams */
        uint64_t issued_ns, started_ns;
} Batch;

TAILQ_HEAD(BatchList, Batch);

/**
 * batch_new() - a batch of one job, which must be in no list
 *
 * @stream: the one it must follow, or NULL.
 *
 * Return: NULL: out of memory.
 */
Batch *batch_new(Blocks *blocks, Job *job, Stream *stream, uint64_t now_ns);
/** batch_free() - it must have no jobs; NULL is fine. Return: NULL. */
Batch *batch_free(Batch *batch, Blocks *blocks);
/** batch_takes() - whether a job fits that must follow the work on @stream (NULL: no stream). */
bool batch_takes(const Batch *batch, const Job *job, const Stream *stream);
/** batch_add() - add a job that fits. */
void batch_add(Batch *batch, Job *job);
/**
 * batch_split() - move all jobs but the first to another batch
 *
 * Return: that batch; NULL: out of memory, nothing changed.
 */
Batch *batch_split(Batch *batch, Blocks *blocks);

typedef struct Forming {
        struct BatchList open; /* the oldest first */
        unsigned n_open;
} Forming;

/** forming_init() */
void forming_init(Forming *forming);
/** forming_find() - an open batch that takes the job, or NULL. */
Batch *forming_find(const Forming *forming, const Job *job, const Stream *stream);
/** forming_open() - keep a batch open for more jobs. Return: a batch to issue now in its place, or NULL. */
Batch *forming_open(Forming *forming, Batch *batch);
/** forming_close() - the batch is issued, full or not. */
void forming_close(Forming *forming, Batch *batch);
/** batch_is_full() - no further job of its kind fits. */
bool batch_is_full(const Batch *batch);

#endif

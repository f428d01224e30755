/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ISSUE_H
#define GPUQ_WORKER_ISSUE_H

/*
 * Issue
 *
 * Issues a batch on a stream, and finishes it when it is done. The order is: scratch, zeros,
 * copies in, the launch of all its jobs or the steps of its one job, copies out, free scratch,
 * done word.
 */

#include "worker/fence.h"
#include "worker/transfer.h"
#include "worker/twin.h"

#define ISSUE_EVENTS_MAX 64u

typedef struct IssueSettings {
        bool coalesce; /* jobs of several senders may be one launch */
        bool in_place; /* kernels may work on host memory */
} IssueSettings;

/* Counts since the worker started. */
typedef struct IssueCounters {
        uint64_t n_batches, n_coalesced;
        uint64_t n_by_way[_BATCH_WAY_N]; /* jobs */
} IssueCounters;

typedef struct Issuer {
        Context *context;
        Streams *streams;
        IssueSettings settings;
        Graphs graphs;
        Textures textures;
        Transfer transfer;
        TwinTable table;
        Fences fences;
        IssueCounters counters;
        CUevent events[ISSUE_EVENTS_MAX]; /* idle ones, with timing */
        unsigned n_events;
} Issuer;

/** issuer_init() - into zeroed @issuer. */
void issuer_init(Issuer *issuer, Context *context, Streams *streams, const IssueSettings *settings);
/** issuer_may_batch() - whether batches of several jobs can be issued now. */
bool issuer_may_batch(const Issuer *issuer);

/**
 * issue_choose() - choose the way of its data
 * @beside: what else is in flight
 *
 * batch->choice may ask to wait, or to issue only the first job: split the batch then.
 */
void issue_choose(const Issuer *issuer, Batch *batch, InPlaceBeside beside, uint64_t now_ns);
/**
 * issue_batch() - onto its stream, when its way was chosen; the caller has made the stream wait for what comes before
 *
 * Return: 0: it has a ticket, and ends when that is done (with a failure in its jobs, if one is
 * set by then); FAILURE_E_SET: refused, nothing is on the stream; FAILURE_E_WAIT: no
 * memory while others have some; FAILURE_E_FAULT. Its jobs' failures say why.
 */
int issue_batch(Issuer *issuer, Batch *batch);
/** issue_finish() - the batch's ticket is done: record its timing and free what it held. */
void issue_finish(Issuer *issuer, Batch *batch, uint64_t now_ns);

#endif

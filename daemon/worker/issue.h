/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_ISSUE_H
#define GPUQ_WORKER_ISSUE_H

/*
 * Issue
 *
 * Puts a checked job on a stream, whole, and takes it off when it is done. In
 * this order: scratch, zeros, copies in, steps, copies out, scratch away, done
 * word.
 */

#include "worker/job.h"

#define ISSUE_EVENTS_MAX 64u

typedef struct Issuer {
        Context *context;
        Streams *streams;
        Graphs graphs;
        CUevent events[ISSUE_EVENTS_MAX]; /* idle ones, with timing */
        unsigned n_events;
} Issuer;

/** issuer_init() */
void issuer_init(Issuer *issuer, Context *context, Streams *streams);

/**
 * issue_job() - onto a stream; the caller has made the stream wait for what comes before
 *
 * Return: 0: it has a ticket, and ends when that is done (with its failure, if one is set by
 * then); FAILURE_E_SET: refused, nothing is on the stream; FAILURE_E_WAIT: no
 * memory while others have some; FAILURE_E_FAULT; or -ENOMEM. The job's failure says why.
 */
int issue_job(Issuer *issuer, Job *job, Stream *stream);
/** issue_finish() - a job whose ticket is done: its timing; what it held is free again. */
void issue_finish(Issuer *issuer, Job *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FAULT_H
#define GPUQ_SUPERVISOR_FAULT_H

/*
 * Fault
 *
 * What becomes of each job that was in flight when its worker ended. Pure: from
 * what is known about the jobs to one verdict each.
 */

#include <stdbool.h>
#include <stddef.h>

#define FAULT_RETRIES_MAX                                                                          \
        8u /* a job that so many workers never came to run, or did not survive, is given up */

typedef enum FaultCause {
        FAULT_STOPPED,  /* the worker was asked to stop, or was killed by us */
        FAULT_DEVICE,   /* the context is spent: a kernel did something wrong */
        FAULT_CRASH,    /* the worker died without a word */
        FAULT_HARDWARE, /* the context is spent, and no kernel is to blame: the device failed */
} FaultCause;

typedef enum FaultPhase {
        FAULT_QUEUED,
        FAULT_ISSUED,
        FAULT_COMMITTING,
        FAULT_UNKNOWN, /* the worker could not say: anything up to committing */
} FaultPhase;

typedef struct FaultJob {
        FaultPhase phase;
        unsigned retries;
        bool repeatable;   /* its client says so */
        bool device_inout; /* changes a device arena in place */
        bool host_inout;   /* changes a host arena in place, on success */
        bool variables;    /* runs on module variables, which died with the worker */
        bool alone;        /* ran alone after an earlier fault */
        bool overtaken;    /* a job behind it that was in flight too writes what it reads */
        bool terminated;   /* the worker was stopped because of it */
} FaultJob;

typedef enum FaultVerdict {
        FAULT_AGAIN,        /* back to its queue */
        FAULT_AGAIN_ALONE,  /* back, to run with nothing beside it */
        FAULT_GUILTY,       /* it did it: the only one in flight */
        FAULT_GUILTY_ALONE, /* it did it: again, when alone */
        FAULT_TERMINATED,   /* ends with the failure it was terminated for */
        FAULT_HALF_WRITTEN, /* innocent, but cannot run twice */
        FAULT_GIVEN_UP, /* no worker ever came to run it, or each time the device failed under it */
} FaultVerdict;

/** fault_has_culprit() - whether one of the jobs did it. */
bool fault_has_culprit(FaultCause cause);
/** fault_triage() - one verdict for each job. */
void fault_triage(FaultCause cause, const FaultJob *jobs, size_t n_jobs, FaultVerdict *verdicts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FAULT_H
#define GPUQ_SUPERVISOR_FAULT_H

/*
 * Fault
 *
 * Decides what happens to each job that was in flight when its worker ended. Pure: facts about the
 * jobs go in, one verdict per job comes out.
 */

#include <stdbool.h>
#include <stddef.h>

#define FAULT_RETRIES_MAX                                                                          \
        8u /* attempts whose worker never started or did not survive, before the job fails */

typedef enum FaultCause {
        FAULT_STOPPED, /* the supervisor stopped or killed the worker */
        FAULT_DEVICE,  /* the context is unusable because of a kernel */
        FAULT_CRASH,   /* the worker died without a report */
        FAULT_HARDWARE, /* the context is unusable because the device failed; no kernel is to blame */
} FaultCause;

typedef enum FaultPhase {
        FAULT_QUEUED,
        FAULT_ISSUED,
        FAULT_COMMITTING,
        FAULT_UNKNOWN, /* the worker did not report it: any phase up to COMMITTING */
} FaultPhase;

typedef struct FaultJob {
        FaultPhase phase;
        unsigned retries;
        bool repeatable;   /* the client says that the job may run twice */
        bool device_inout; /* changes a device arena in place */
        bool host_inout;   /* changes a host arena in place, on success */
        bool variables;    /* runs on module variables, which died with the worker */
        bool alone;        /* ran alone after an earlier fault */
        bool overtaken;    /* a later job in flight writes what this job reads */
        bool terminated;   /* the worker was stopped in order to end this job */
} FaultJob;

typedef enum FaultVerdict {
        FAULT_AGAIN,        /* back to its queue */
        FAULT_AGAIN_ALONE,  /* back to its queue, to run alone */
        FAULT_GUILTY,       /* it caused the fault: no other job was in flight */
        FAULT_GUILTY_ALONE, /* it caused a second fault while running alone */
        FAULT_TERMINATED,   /* ends with the failure it was terminated for */
        FAULT_HALF_WRITTEN, /* not the cause, but it cannot run twice */
        FAULT_GIVEN_UP, /* no worker ever started for it, or the device failed under it each time */
} FaultVerdict;

/** fault_has_culprit() - whether one of the jobs caused the end. */
bool fault_has_culprit(FaultCause cause);
/** fault_triage() - one verdict per job. */
void fault_triage(FaultCause cause, const FaultJob *jobs, size_t n_jobs, FaultVerdict *verdicts);

#endif

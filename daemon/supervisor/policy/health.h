/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HEALTH_H
#define GPUQ_SUPERVISOR_HEALTH_H

/*
 * Health
 *
 * Whether one device takes jobs. An administrator can hold it, and the daemon drains it when it is
 * broken. A worker's word drains nothing, however many users' workers say it: they may have forged
 * it, or may lack a permission. It makes a health check due, by a process of the daemon's own, and
 * the check decides. A fault that the kernel's log confirms counts by itself: several in a short
 * time drain the device, although every check passes. An error that the driver writes to the
 * kernel's log as fatal needs no check, and no check returns the device to service: it may compute,
 * but wrongly. It stays condemned until an administrator has repaired it.
 *
 *     WELL --word--> DOUBTED --check: broken--> BROKEN --check: well--> WELL
 *                       +------check: well----> WELL
 *     any --condemned--> BROKEN --administrator--> WELL
 *
 * A device that is DOUBTED takes jobs like one that is WELL. Two checks of it start at least
 * HEALTH_CHECK_MIN_NS apart. Health checks of a broken device back off. If the device breaks again
 * soon after a passed check, the checks continue at the interval reached before. Only a device that
 * the daemon drained returns to service by itself. Pure: time comes in as an argument, nothing here
 * sleeps, logs or does I/O.
 */

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_REASON_MAX   256u /* bytes, with the end */
#define HEALTH_CHECK_MIN_NS 2000000000ull
#define HEALTH_CHECK_MAX_NS 600000000000ull
#define HEALTH_WINDOW_NS    600000000000ull /* in which faults count together */
#define HEALTH_FAULTS_MAX   3u

typedef enum HealthState {
        HEALTH_WELL,
        HEALTH_DOUBTED, /* a check is due or running */
        HEALTH_BROKEN,
} HealthState;

typedef enum HealthFinding {
        HEALTH_FOUND_WELL,
        HEALTH_FOUND_BROKEN,
        HEALTH_FOUND_FULL,    /* no memory for a context: no sign of a broken device */
        HEALTH_FOUND_NOTHING, /* the check itself failed */
} HealthFinding;

/* Zeroed: well and not held. Touched only by this module. */
typedef struct Health {
        HealthState state;
        bool is_held;      /* by an administrator */
        bool is_condemned; /* BROKEN, whatever a check finds */
        bool is_checking;
        uint64_t check_ns;   /* when the next check is due */
        uint64_t checked_ns; /* when the latest one began; 0: there was none */
        uint64_t delay_ns;   /* between checks */
        uint64_t well_ns;    /* when a check first passed after BROKEN; 0: it was never broken */
        uint64_t fault_ns;   /* when the first of n_faults happened */
        unsigned n_faults;
        char reason[HEALTH_REASON_MAX];      /* BROKEN: why */
        char hold_reason[HEALTH_REASON_MAX]; /* is_held */
} Health;

/** health_doubt() - a worker says that the device is broken, or has no memory: a check is due. */
void health_doubt(Health *health, uint64_t now_ns);
/** health_fault() - the kernel's log says that its hardware failed under a job. Return: true: it is now BROKEN. */
bool health_fault(Health *health, const char *why, uint64_t now_ns);
/** health_wants_check() - a check is due and none is running. */
bool health_wants_check(const Health *health, uint64_t now_ns);
/** health_begin_check() - a check starts. */
void health_begin_check(Health *health, uint64_t now_ns);
/** health_end_check() - the check's result. @why: for BROKEN. Return: true: BROKEN begins or ends with it. */
bool health_end_check(Health *health, HealthFinding finding, const char *why, uint64_t now_ns);

/** health_condemn() - the driver reports that the device is broken: @why. Return: true: it is now BROKEN. */
bool health_condemn(Health *health, const char *why, uint64_t now_ns);
/** health_hold() - an administrator drains it. @reason: "drained by …: …". */
void health_hold(Health *health, const char *reason);
/**
 * health_release() - an administrator returns the device to service, whatever drained it
 *
 * Return: true: it was drained.
 */
bool health_release(Health *health);

/** health_takes_jobs() - neither held nor broken. */
bool health_takes_jobs(const Health *health);
/** health_reason() - "drained by …: …". Return: NULL: the device takes jobs. */
const char *health_reason(const Health *health);

#endif

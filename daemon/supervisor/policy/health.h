/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HEALTH_H
#define GPUQ_SUPERVISOR_HEALTH_H

/*
 * Health
 *
 * Whether one device takes jobs. An administrator can hold it, and the daemon drains it when it is
 * broken. A worker's report alone drains nothing: its user may have forged it, or may lack a
 * permission. It is a sign that triggers a health check by a process of the daemon's own, and the
 * check decides. The one exception is repeated hardware faults under jobs although every check
 * passes: they drain the device if they come from more than one user, because one user alone must
 * not take the device from the others. An error that the driver writes to the kernel's log
 * needs no check, and no check returns the device to service: it may compute, but wrongly. It stays
 * condemned until an administrator has repaired it.
 *
 *     WELL --sign--> DOUBTED --check: broken--> BROKEN --check: well--> WELL
 *                       +------check: well----> WELL
 *     any --condemned--> BROKEN --administrator--> WELL
 *
 * Health checks of a broken device back off. If the device breaks again soon after a passed check,
 * the checks continue at the interval reached before. Only a device that the daemon drained
 * returns to service by itself. Pure: time comes in as an argument, nothing here sleeps, logs or
 * does I/O.
 */

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_REASON_MAX   256u /* bytes, with the end */
#define HEALTH_CHECK_MIN_NS 2000000000ull
#define HEALTH_CHECK_MAX_NS 600000000000ull
#define HEALTH_WINDOW_NS    600000000000ull /* in which faults count together */
#define HEALTH_FAULTS_MAX   3u
#define HEALTH_TRUSTED                                                                             \
        0u /* domain of root, and of users with isolation=shared: its reports are trusted */

typedef enum HealthState {
        HEALTH_WELL,
        HEALTH_DOUBTED, /* a check is due or running: takes jobs, but does not restart a failed worker */
        HEALTH_BROKEN,
} HealthState;

typedef enum HealthSign {
        HEALTH_NO_START, /* a worker did not start and blames the device */
        HEALTH_FAULT,    /* a worker ran, and the device failed under it */
} HealthSign;

typedef enum HealthFinding {
        HEALTH_FOUND_WELL,
        HEALTH_FOUND_BROKEN,
        HEALTH_FOUND_NOTHING, /* the check itself failed */
} HealthFinding;

/* Zeroed: well and not held. Touched only by this module. */
typedef struct Health {
        HealthState state;
        bool is_held;      /* by an administrator */
        bool is_condemned; /* BROKEN, whatever a check finds */
        bool is_checking;
        uint64_t check_ns; /* when the next check is due */
        uint64_t delay_ns; /* between checks */
        uint64_t well_ns;  /* when a check first passed after BROKEN; 0: it was never broken */
        uint64_t fault_ns; /* when the first of n_faults happened */
        unsigned n_faults;
        uint32_t fault_of;  /* the domain of the first fault */
        bool is_fault_sure; /* the faults come from several domains, or from a trusted one */
        char reason[HEALTH_REASON_MAX];      /* BROKEN: why; DOUBTED: the sign's text */
        char hold_reason[HEALTH_REASON_MAX]; /* is_held */
} Health;

/** health_sign() - a worker of @domain reports that the device is broken: @why. Return: true: it is now BROKEN. */
bool health_sign(Health *health, HealthSign sign, uint32_t domain, const char *why,
                 uint64_t now_ns);
/** health_wants_check() - a check is due and none is running. */
bool health_wants_check(const Health *health, uint64_t now_ns);
/** health_begin_check() - a check starts. */
void health_begin_check(Health *health);
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

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HEALTH_H
#define GPUQ_SUPERVISOR_HEALTH_H

/*
 * Health
 *
 * Whether one device takes jobs: held back by an administrator, or drained by itself
 * because it is broken. A worker's word alone drains nothing, for its user may have
 * made it up, or lack a right of its own: it is a sign, upon which a process of ours
 * has a look. What that finds decides. The one exception is a fault of the hardware
 * under jobs, several times although every look finds it well: of more users than one,
 * for one alone shall not take the device from all the others. What the driver itself says
 * of it in the kernel's log needs no look, and none gives the device back: it may compute,
 * and wrong. It is condemned until an administrator has done what is needed.
 *
 *     WELL --sign--> DOUBTED --look: broken--> BROKEN --look: well--> WELL
 *                       +------look: well----> WELL
 *     any --condemned--> BROKEN --administrator--> WELL
 *
 * A broken device is looked at again at a falling rate; one that breaks again soon after
 * it was well goes on from the rate it had. Only what was drained by itself comes back by
 * itself. Pure: time comes in as an argument, nothing here sleeps, logs or does I/O.
 */

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_REASON_MAX   256u /* bytes, with the end */
#define HEALTH_CHECK_MIN_NS 2000000000ull
#define HEALTH_CHECK_MAX_NS 600000000000ull
#define HEALTH_WINDOW_NS    600000000000ull /* in which faults count together */
#define HEALTH_FAULTS_MAX   3u
#define HEALTH_TRUSTED      0u /* domain of root, and of users who share one: its word is enough */

typedef enum HealthState {
        HEALTH_WELL,
        HEALTH_DOUBTED, /* a look is due or under way: takes jobs, starts no worker again that failed */
        HEALTH_BROKEN,
} HealthState;

typedef enum HealthSign {
        HEALTH_NO_START, /* a worker did not come up: the device, they say */
        HEALTH_FAULT,    /* a worker came up, and the device failed under it */
} HealthSign;

typedef enum HealthFinding {
        HEALTH_FOUND_WELL,
        HEALTH_FOUND_BROKEN,
        HEALTH_FOUND_NOTHING, /* the look itself came to nothing */
} HealthFinding;

/* Zeroed: well, and nobody holds it. Touched only by this module. */
typedef struct Health {
        HealthState state;
        bool is_held;      /* by an administrator */
        bool is_condemned; /* BROKEN, whatever a look finds */
        bool is_checking;
        uint64_t check_ns; /* the next look is due */
        uint64_t delay_ns; /* between looks */
        uint64_t well_ns;  /* when it was found well after it was broken; 0: never broken */
        uint64_t fault_ns; /* when the first of n_faults was */
        unsigned n_faults;
        uint32_t fault_of;              /* the domain of the first */
        bool is_fault_sure;             /* they are of several domains, or of one that is trusted */
        char reason[HEALTH_REASON_MAX]; /* BROKEN: why; DOUBTED: what the sign said */
        char hold_reason[HEALTH_REASON_MAX]; /* is_held */
} Health;

/** health_sign() - a worker of @domain says that the device is broken: @why. Return: true: now it is. */
bool health_sign(Health *health, HealthSign sign, uint32_t domain, const char *why,
                 uint64_t now_ns);
/** health_wants_check() - one is due, and none is under way. */
bool health_wants_check(const Health *health, uint64_t now_ns);
/** health_begin_check() - one is under way from now on. */
void health_begin_check(Health *health);
/** health_end_check() - what it found. @why: of BROKEN. Return: true: BROKEN begins or ends with it. */
bool health_end_check(Health *health, HealthFinding finding, const char *why, uint64_t now_ns);

/** health_condemn() - the driver says that it is broken: @why. Return: true: now it is. */
bool health_condemn(Health *health, const char *why, uint64_t now_ns);
/** health_hold() - an administrator drains it. @reason: "drained by …: …". */
void health_hold(Health *health, const char *reason);
/** health_release() - an administrator says that it is well, whoever drained it. Return: true: it was drained. */
bool health_release(Health *health);

/** health_takes_jobs() - neither held nor broken. */
bool health_takes_jobs(const Health *health);
/** health_reason() - "drained by …: …". Return: NULL: it takes jobs. */
const char *health_reason(const Health *health);

#endif

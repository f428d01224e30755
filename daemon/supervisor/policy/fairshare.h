/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FAIRSHARE_H
#define GPUQ_SUPERVISOR_FAIRSHARE_H

/*
 * Fair share
 *
 * Chooses which user runs next on one device, by start-time fair queueing. Each user has a tag on
 * a common virtual clock, and the smallest tag goes first. A dispatch advances the user's tag by
 * the expected GPU time over the user's weight. Pure: time comes in as an argument, nothing here
 * sleeps, logs or does I/O.
 *
 * Past use counts as well, and decays by half every half-life. A user who recently used much of the
 * device for their weight gets a lower rate than a user who did not, down to a
 * FAIRSHARE_YIELD_MAX-th. Users who compete all the time end with the same use per weight, so
 * weights hold unchanged in the long run. With a half-life of 0 past use does not count.
 *
 * A job's true cost is known only at its end. Each fairshare_charge() is therefore followed by
 * exactly one fairshare_settle(), also when the job never ran (actual 0). A job that is dispatched
 * again is charged again. Links with libm.
 *
 * A user is backlogged while it has jobs that could be dispatched now.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decay.h"
#include "util/macro.h"

#define FAIRSHARE_RECENT_NS  60000000000ull /* half-life of the recent share that is displayed */
#define FAIRSHARE_WEIGHT_MIN 1e-6
#define FAIRSHARE_YIELD_MAX                                                                        \
        4.0 /* the rate of a user who had the whole device for long is divided by this */

typedef struct FairShare FairShare;

/* One user on one device; embedded by its owner, touched only by this module. */
typedef struct ShareUser {
        double weight;
        double rate;   /* weight, reduced for recent use */
        double start;  /* tag of the next dispatch; the heap's key */
        double finish; /* virtual end of all jobs charged so far */
        double floor; /* virtual time when the user became backlogged; settling lowers no tag below it */
        Decay recent; /* GPU-ns, for display */
        Decay usage;  /* GPU-ns, for the rate */
        uint64_t rated_ns;
        uint64_t turn; /* of two equal tags the one that has waited longer goes first */
        size_t index;  /* in the heap; SIZE_MAX: not backlogged */
} ShareUser;

/** fairshare_new() - no user is backlogged, virtual time 0. Return: 0, or -ENOMEM. */
int fairshare_new(FairShare **ret_fs);
/** fairshare_free() - removes users that are still backlogged; NULL is fine. Return: NULL. */
FairShare *fairshare_free(FairShare *fs);
DEFINE_CLEANUP(FairShare, fairshare_free)
/**
 * fairshare_configure() - how much past use counts; without this call it does not
 * @half_life_ns: of a user's past use; 0: it does not count
 * @weight:       of an ordinary user, whose rate is lowest after using the whole device
 */
void fairshare_configure(FairShare *fs, uint64_t half_life_ns, double weight);

/** shareuser_init() - not backlogged, nothing used. Weights below FAIRSHARE_WEIGHT_MIN are raised to it. */
void shareuser_init(ShareUser *user, double weight);
/** fairshare_set_weight() - applies from the next charge on. */
void fairshare_set_weight(FairShare *fs, ShareUser *user, double weight);
/**
 * fairshare_wake() - the user becomes backlogged
 *
 * Its tag starts no earlier than the users being served: time without a backlog earns no credit.
 * For a backlogged user nothing happens.
 *
 * Return: 0, or -ENOMEM.
 */
int fairshare_wake(FairShare *fs, ShareUser *user);
/** fairshare_sleep() - the user has no backlog now; needed before its memory is freed. Repeating it is harmless. */
void fairshare_sleep(FairShare *fs, ShareUser *user);

/** fairshare_pick() - the user to serve next. Return: NULL: no user is backlogged. */
ShareUser *fairshare_pick(FairShare *fs);
/** fairshare_n_awake() - the number of backlogged users. */
size_t fairshare_n_awake(const FairShare *fs);
/** fairshare_charge() - a job of this user is dispatched, whether the user is backlogged or picked or not. */
void fairshare_charge(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t now_ns);
/** fairshare_advance() - a job in flight has taken @actual_ns, for which @expected_ns of its charge were meant. */
void fairshare_advance(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                       uint64_t now_ns);
/**
 * fairshare_settle() - the job took @actual_ns; @expected_ns must equal that of its charge, both
 * without what fairshare_advance() was given
 */
void fairshare_settle(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                      uint64_t now_ns);

/** shareuser_recent() - GPU-ns used, halved every FAIRSHARE_RECENT_NS. */
double shareuser_recent(const ShareUser *user, uint64_t now_ns);
/** fairshare_usage() - GPU-ns used, halved every configured half-life. */
double fairshare_usage(const FairShare *fs, const ShareUser *user, uint64_t now_ns);
/** shareuser_is_awake() - between fairshare_wake() and fairshare_sleep(). */
bool shareuser_is_awake(const ShareUser *user);
/** fairshare_n_compared() - tags compared so far, a measure of the cost. */
uint64_t fairshare_n_compared(const FairShare *fs);

#endif

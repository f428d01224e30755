/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_FAIRSHARE_H
#define GPUQ_SUPERVISOR_FAIRSHARE_H

/*
 * Fair share
 *
 * Chooses which user runs next on one device, by start-time fair queueing: each
 * user has a tag on a common virtual clock, the smallest goes first, and a
 * dispatch moves it on by the expected GPU time over the user's weight. Pure:
 * time comes in as an argument, nothing here sleeps, logs or does I/O.
 *
 * What a user had before counts as well, and is forgotten by half every half-life: who
 * used much of the device of late, for his weight, weighs less beside one who did not,
 * at the least a FAIRSHARE_YIELD_MAX-th. Users who compete all the time end with the
 * same use for their weights, so that weights hold as they are in the long run. With a
 * half-life of 0 only the present counts.
 *
 * The truth about a job is known only when it has ended, so each
 * fairshare_charge() is followed, once, by one fairshare_settle(), also when the
 * job never ran (actual 0). A job that is dispatched again is charged again.
 * Links with libm.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decay.h"
#include "util/macro.h"

#define FAIRSHARE_RECENT_NS  60000000000ull /* half-life of what is shown as the share of late */
#define FAIRSHARE_WEIGHT_MIN 1e-6
#define FAIRSHARE_YIELD_MAX                                                                        \
        4.0 /* who had the whole device to himself for long weighs so much less */

typedef struct FairShare FairShare;

/* One user on one device; embedded by its owner, touched only by this module. */
typedef struct ShareUser {
        double weight;
        double rate;   /* weight, less for what was used of late */
        double start;  /* tag of the next dispatch; the heap's key */
        double finish; /* end of what it was charged */
        double floor;  /* the virtual time when it woke: no correction goes below */
        Decay recent;  /* GPU-ns, to be shown */
        Decay usage;   /* GPU-ns, for the rate */
        uint64_t rated_ns;
        uint64_t turn; /* of two equal tags the one that waits longer goes first */
        size_t index;  /* in the heap, SIZE_MAX when asleep */
} ShareUser;

/** fairshare_new() - nobody awake, virtual time 0. Return: 0, or -ENOMEM. */
int fairshare_new(FairShare **ret_fs);
/** fairshare_free() - users still awake fall asleep; NULL is fine. Return: NULL. */
FairShare *fairshare_free(FairShare *fs);
DEFINE_CLEANUP(FairShare, fairshare_free)
/**
 * fairshare_configure() - how far the past counts; without it, not at all
 * @half_life_ns: of a user's use, 0: only the present counts
 * @weight:       of an ordinary user, whom having had the whole device costs the full yield
 */
void fairshare_configure(FairShare *fs, uint64_t half_life_ns, double weight);

/** shareuser_init() - asleep, nothing used. Weights below FAIRSHARE_WEIGHT_MIN count as that. */
void shareuser_init(ShareUser *user, double weight);
/** fairshare_set_weight() - counts from the next charge on. */
void fairshare_set_weight(FairShare *fs, ShareUser *user, double weight);
/**
 * fairshare_wake() - the user has jobs that can be dispatched now
 *
 * It starts no earlier than those who are served now: time spent asleep is no
 * credit. Nothing happens to a user that is awake.
 *
 * Return: 0, or -ENOMEM.
 */
int fairshare_wake(FairShare *fs, ShareUser *user);
/** fairshare_sleep() - it has none any more; needed before its memory goes. Twice is harmless. */
void fairshare_sleep(FairShare *fs, ShareUser *user);

/** fairshare_pick() - whose turn it is. Return: the user, or NULL if nobody is awake. */
ShareUser *fairshare_pick(FairShare *fs);
/** fairshare_n_awake() - how many have something that can be dispatched. */
size_t fairshare_n_awake(const FairShare *fs);
/** fairshare_charge() - a job of this user, awake or not, picked or not, is dispatched. */
void fairshare_charge(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t now_ns);
/** fairshare_settle() - that job took this long; with the same @expected_ns as its charge. */
void fairshare_settle(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                      uint64_t now_ns);

/** shareuser_recent() - GPU-ns used, half of it forgotten every FAIRSHARE_RECENT_NS. */
double shareuser_recent(const ShareUser *user, uint64_t now_ns);
/** fairshare_usage() - GPU-ns used, half of it forgotten every half-life that was configured. */
double fairshare_usage(const FairShare *fs, const ShareUser *user, uint64_t now_ns);
/** shareuser_is_awake() - between fairshare_wake() and fairshare_sleep(). */
bool shareuser_is_awake(const ShareUser *user);
/** fairshare_n_compared() - tags compared so far: what the choosing has cost. */
uint64_t fairshare_n_compared(const FairShare *fs);

#endif

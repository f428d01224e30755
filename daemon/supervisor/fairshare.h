/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FAIRSHARE_H
#define GPUQ_FAIRSHARE_H

/*
 * Fair share
 *
 * Chooses which user runs next on one device, by start-time fair queueing: each
 * user has a tag on a common virtual clock, the smallest goes first, and a
 * dispatch moves it on by the expected GPU time over the user's weight. Pure:
 * time comes in as an argument, nothing here sleeps, logs or does I/O.
 *
 * The truth about a job is known only when it has ended, so each
 * fairshare_charge() is followed, once, by one fairshare_settle(), also when the
 * job never ran (actual 0). A job that is dispatched again is charged again.
 * Links with libm.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

#define FAIRSHARE_HALF_LIFE_NS 60000000000ull
#define FAIRSHARE_WEIGHT_MIN   1e-6

typedef struct FairShare FairShare;

/* One user on one device; embedded by its owner, touched only by this module. */
typedef struct ShareUser {
        double weight;
        double start;  /* tag of the next dispatch; the heap's key */
        double finish; /* end of what it was charged */
        double floor;  /* the virtual time when it woke: no correction goes below */
        double usage;  /* GPU-ns, decayed up to usage_ns */
        uint64_t usage_ns;
        uint64_t turn; /* of two equal tags the one that waits longer goes first */
        size_t index;  /* in the heap, SIZE_MAX when asleep */
} ShareUser;

/** fairshare_new() - nobody awake, virtual time 0. Return: 0, or -ENOMEM. */
int fairshare_new(FairShare **ret_fs);
/** fairshare_free() - users still awake fall asleep; NULL is fine. Return: NULL. */
FairShare *fairshare_free(FairShare *fs);
DEFINE_CLEANUP(FairShare, fairshare_free)

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
/** fairshare_charge() - a job of this user, awake or not, is dispatched. */
void fairshare_charge(FairShare *fs, ShareUser *user, uint64_t expected_ns);
/** fairshare_settle() - that job took this long; with the same @expected_ns as its charge. */
void fairshare_settle(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                      uint64_t now_ns);

/** shareuser_usage() - GPU-ns used, half of it forgotten every FAIRSHARE_HALF_LIFE_NS. */
double shareuser_usage(const ShareUser *user, uint64_t now_ns);
/** shareuser_is_awake() - between fairshare_wake() and fairshare_sleep(). */
bool shareuser_is_awake(const ShareUser *user);
/** fairshare_n_compared() - tags compared so far: what the choosing has cost. */
uint64_t fairshare_n_compared(const FairShare *fs);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_REPORT_STATE_H
#define GPUQ_SUPERVISOR_REPORT_STATE_H

/*
 * Report state
 *
 * What the registry and each session keep of reports; for snapshot.c and listing.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

typedef struct Listing Listing;
typedef struct SnapshotAsk SnapshotAsk;

TAILQ_HEAD(Listings, Listing);
TAILQ_HEAD(SnapshotAsks, SnapshotAsk);

typedef struct Snapshot {
        struct SnapshotAsks waiting; /* for the next one */
        uv_timer_t timer;
        bool has_timer;
        uint64_t taken_ns; /* when the latest one was taken; 0: none yet */
        uint64_t n_taken;
        uint8_t *status; /* packed, of this one; NULL: nobody has needed it yet */
        size_t n_status;
} Snapshot;

/* The reports that a session asked for. */
typedef struct SessionReports {
        struct SnapshotAsks asks; /* the oldest first */
        unsigned n_asks;
        struct Listings listings; /* with pages left, the oldest first */
        unsigned n_listings;
        uint64_t last_listing;
} SessionReports;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TALLY_H
#define GPUQ_SUPERVISOR_TALLY_H

/*
 * Tally
 *
 * The jobs that ended and are not written to disk yet, in memory of a fixed size.
 *
 * A job that ran for TALLY_SHORT_US or failed has a row of its own. That is one row for each 100 ms of a
 * device, which a disk can take. Shorter jobs that went well share a row with those of the same user,
 * Slurm job, label, kernels, size and device in the same minute. Once a user has TALLY_USER_SINGLES
 * rows of single jobs in this minute, the user's other jobs share rows too, by the way they ended. A user with too many kinds of
 * jobs has the rest of them in one row for each state and Slurm job, without label and kernels.
 *
 * Minutes end when their rows have been taken. While the disk is slow they get longer, and no job is lost.
 * If there is no room for a row, the job is only counted. Pure: it reads no clock and logs nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs.h"

#define TALLY_SHORT_US     100000u
#define TALLY_MINUTE_MS    60000u
#define TALLY_SINGLES      1024u /* rows of single jobs until they are taken */
#define TALLY_ROWS         2048u /* shared ones in a minute; a power of two */
#define TALLY_ROWS_BITS    11u
#define TALLY_ROWS_MAX     (TALLY_ROWS / 4 * 3) /* so that searches stay short */
#define TALLY_USERS        256u
#define TALLY_USER_SINGLES 60u /* rows of single jobs, of one user in a minute */
#define TALLY_USER_ROWS    64u /* shared ones */
#define TALLY_KERNELS_MAX  128u
#define TALLY_REASON_MAX   200u

/* A row of the history. */
typedef struct TallyRow {
        uint64_t n_jobs;
        uint64_t waited_us; /* these are sums */
        uint64_t ran_us;
        uint64_t gpu_ns;
        uint64_t n_bytes;
        uint64_t n_retries;
        uint64_t id;    /* of the first job */
        uint64_t at_ms; /* since 1970: when it ended; of several: when their minute began */
        uint32_t uid;
        uint32_t person; /* whose rows are limited: its own uid, or that of its owner */
        uint32_t gid;
        int32_t device; /* -1: none */
        int32_t state;
        int32_t code;
        uint32_t slurm_job; /* 0: none */
        char label[LIMIT_JOB_LABEL + 1];
        char kernels[TALLY_KERNELS_MAX + 1]; /* separated by ", " */
        char reason[TALLY_REASON_MAX + 1];   /* of the first job that failed */
} TallyRow;

/* A row of several jobs. */
typedef struct TallyShare {
        uint64_t key; /* 0: unused */
        TallyRow row;
        Sketch waited;
        Sketch ran;
} TallyShare;

/* How many rows a person has in this minute. */
typedef struct TallyUser {
        uint32_t uid;
        uint16_t n_singles;
        uint16_t n_shares;
        bool is_used;
} TallyUser;

typedef struct Tally {
        TallyShare shares[TALLY_ROWS]; /* by key */
        TallyRow singles[TALLY_SINGLES];
        TallyUser users[TALLY_USERS]; /* by uid */
        uint16_t used[TALLY_ROWS];    /* the shares in use, in the order of their first job */
        size_t n_used;
        size_t n_singles;
        uint64_t factor;  /* random and odd, so that clients cannot choose which keys collide */
        uint64_t now_ms;  /* since 1970, by tally_tick() */
        uint64_t from_ms; /* when this minute began */
        uint64_t n_jobs;  /* counted since the last take */
        uint64_t n_lost;  /* jobs for which there was no room, ever */
} Tally;

/* Rows on their way to the disk. */
typedef struct TallyBatch {
        TallyRow *singles;
        size_t n_singles;
        TallyShare *shares;
        size_t n_shares;
        uint64_t n_jobs;
} TallyBatch;

/** tally_new() - Return: 0, or -ENOMEM. */
int tally_new(Tally **ret_tally);
/** tally_free() - NULL is fine. Return: NULL. */
Tally *tally_free(Tally *tally);
DEFINE_CLEANUP(Tally, tally_free)

/** tally_tick() - tell it the time since 1970. */
void tally_tick(Tally *tally, uint64_t now_ms);

/** tally_key() - of the row for jobs without a label that ended well. */
static inline uint64_t tally_key(const Tally *tally, uint64_t class, uint32_t uid,
                                 uint32_t slurm_job, uint32_t device) {
        return (class ^ ((uint64_t)uid << 32 | device) ^ (uint64_t)slurm_job << 16) * tally->factor;
}

/** tally_find() - the row of these jobs. Return: NULL: there is none. */
static inline TallyShare *tally_find(Tally *tally, uint64_t key, uint32_t uid, uint32_t slurm_job) {
        size_t i = key >> (64 - TALLY_ROWS_BITS);

        for (;; i = (i + 1) % TALLY_ROWS) {
                TallyShare *share = &tally->shares[i];

                if (share->key == key && share->row.uid == uid && share->row.slurm_job == slurm_job)
                        return share;
                if (!share->key)
                        return NULL;
        }
}

/** tally_count() - one more job in a row; @n_retries are the caller's. */
static inline void tally_count(Tally *tally, TallyShare *share, uint64_t waited_us, uint64_t ran_us,
                               uint64_t gpu_ns, uint64_t n_bytes) {
        tally->n_jobs++;
        share->row.n_jobs++;
        share->row.waited_us += waited_us;
        share->row.ran_us += ran_us;
        share->row.gpu_ns += gpu_ns;
        share->row.n_bytes += n_bytes;
        sketch_add(&share->waited, waited_us);
        sketch_add(&share->ran, ran_us);
}

/** tally_count_many() - likewise @n jobs; the times and bytes are sums. */
static inline void tally_count_many(Tally *tally, TallyShare *share, uint64_t n, uint64_t waited_us,
                                    uint64_t ran_us, uint64_t gpu_ns, uint64_t n_bytes) {
        tally->n_jobs += n;
        share->row.n_jobs += n;
        share->row.waited_us += waited_us;
        share->row.ran_us += ran_us;
        share->row.gpu_ns += gpu_ns;
        share->row.n_bytes += n_bytes;
        sketch_add_many(&share->waited, waited_us / n, n);
        sketch_add_many(&share->ran, ran_us / n, n);
}

/**
 * tally_add() - count a job that tally_find() had no row for, or that may deserve its own
 * @row:   a single job's row, or that of several that went well, all but at_ms
 * @class: a number for its kernels and size
 */
void tally_add(Tally *tally, const TallyRow *row, uint64_t class);
/**
 * tally_take() - move what was counted into a batch
 *
 * The minute ends if its time is over. Return: 0, or -ENOMEM: nothing has changed.
 */
int tally_take(Tally *tally, TallyBatch **ret_batch);
/** tally_batch_free() - NULL is fine. Return: NULL. */
TallyBatch *tally_batch_free(TallyBatch *batch);

#endif

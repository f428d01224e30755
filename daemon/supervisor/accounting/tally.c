/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <string.h>

int tally_new(Tally **ret_tally) {
        Tally *tally = calloc(1, sizeof(*tally)); /* pages that are never used take no memory */

        if (!tally)
                return -ENOMEM;
        tally->factor = table_factor;
        *ret_tally = tally;
        return 0;
}

Tally *tally_free(Tally *tally) {
        free(tally);
        return NULL;
}

/* ---- users ----------------------------------------------------------------- */

/* Return: NULL: there are too many in this minute. */
static TallyUser *tally_user(Tally *tally, uint32_t uid) {
        size_t i = table_hash(&uid, sizeof(uid)) % TALLY_USERS;
        TallyUser *user;

        for (size_t n = 0; n < TALLY_USERS; ++n, i = (i + 1) % TALLY_USERS) {
                user = &tally->users[i];
                if (user->is_used && user->uid == uid)
                        return user;
                if (user->is_used)
                        continue;
                *user = (TallyUser){.uid = uid, .is_used = true};
                return user;
        }
        return NULL;
}

/* ---- rows ------------------------------------------------------------------ */

static uint64_t key_text(uint64_t key, const char *text) {
        return *text ? duration_key(key, text, strlen(text)) : key;
}

/* A row for one kind of end of one kind of job; the same as tally_key() where that has one. */
static uint64_t share_key(const Tally *tally, const TallyRow *row, uint64_t class) {
        uint32_t ends[] = {(uint32_t)row->state, (uint32_t)row->code};
        uint64_t key = key_text(class, row->label);

        if (row->state != JOB_DONE)
                key = duration_key(key, ends, sizeof(ends));
        key = tally_key(tally, key, row->uid, row->slurm_job, (uint32_t)row->device);
        return key ? key : 1;
}

/* Return: NULL: there is no room. */
static TallyShare *share_new(Tally *tally, uint64_t key, const TallyRow *row) {
        size_t i = key >> (64 - TALLY_ROWS_BITS);
        TallyShare *share;

        if (tally->n_used == TALLY_ROWS_MAX)
                return NULL;
        if (!tally->n_used)
                tally->from_ms = tally->now_ms / TALLY_MINUTE_MS * TALLY_MINUTE_MS;
        while (tally->shares[i].key)
                i = (i + 1) % TALLY_ROWS;
        share = &tally->shares[i];
        tally->used[tally->n_used++] = (uint16_t)i;
        share->key = key;
        share->row = *row;
        share->row.at_ms = tally->from_ms;
        share->row.n_jobs = share->row.n_retries = 0;
        share->row.waited_us = share->row.ran_us = share->row.gpu_ns = share->row.n_bytes = 0;
        return share;
}

/* What a user with too many kinds of jobs has besides. */
static TallyShare *share_rest(Tally *tally, const TallyRow *row) {
        TallyRow rest = *row;
        TallyShare *share;
        uint64_t key;

        rest.uid = row->person;
        rest.device = -1;
        rest.code = 0;
        rest.label[0] = rest.kernels[0] = rest.reason[0] = '\0';
        key = share_key(tally, &rest, 0);
        share = tally_find(tally, key, rest.uid, rest.slurm_job);
        return share ? share : share_new(tally, key, &rest);
}

static TallyShare *share_get(Tally *tally, TallyUser *user, const TallyRow *row, uint64_t class) {
        uint64_t key = share_key(tally, row, class);
        TallyShare *share = tally_find(tally, key, row->uid, row->slurm_job);

        if (share)
                return share;
        if (!user || user->n_shares >= TALLY_USER_ROWS)
                return share_rest(tally, row);
        share = share_new(tally, key, row);
        user->n_shares += share != NULL;
        return share;
}

static bool row_deserves_its_own(const TallyRow *row) {
        return row->state != JOB_DONE || row->ran_us / row->n_jobs >= TALLY_SHORT_US ||
               row->n_retries;
}

static bool tally_add_single(Tally *tally, TallyUser *user, const TallyRow *row) {
        if (!user || user->n_singles >= TALLY_USER_SINGLES || tally->n_singles == TALLY_SINGLES)
                return false;
        user->n_singles++;
        tally->singles[tally->n_singles] = *row;
        tally->singles[tally->n_singles++].at_ms = tally->now_ms;
        tally->n_jobs++;
        return true;
}

void tally_add(Tally *tally, const TallyRow *row, uint64_t class) {
        TallyUser *user = tally_user(tally, row->person);
        TallyShare *share;

        if (row_deserves_its_own(row) && tally_add_single(tally, user, row))
                return;
        share = share_get(tally, user, row, class);
        if (!share) {
                tally->n_lost++;
                return;
        }
        tally_count_many(tally, share, row->n_jobs, row->waited_us, row->ran_us, row->gpu_ns,
                         row->n_bytes);
        share->row.n_retries += row->n_retries;
}

/* ---- to the disk ----------------------------------------------------------- */

static size_t tally_changed(const Tally *tally) {
        size_t n = 0;

        for (size_t i = 0; i < tally->n_used; ++i)
                n += tally->shares[tally->used[i]].row.n_jobs > 0;
        return n;
}

static void share_take(TallyShare *share, TallyShare *ret_share) {
        *ret_share = *share;
        share->row.n_jobs = share->row.n_retries = 0;
        share->row.waited_us = share->row.ran_us = share->row.gpu_ns = share->row.n_bytes = 0;
        memset(&share->waited, 0, sizeof(share->waited));
        memset(&share->ran, 0, sizeof(share->ran));
}

static void tally_end_minute(Tally *tally) {
        for (size_t i = 0; i < tally->n_used; ++i)
                tally->shares[tally->used[i]].key = 0;
        memset(tally->users, 0, sizeof(tally->users));
        tally->n_used = 0;
        tally->from_ms = tally->now_ms / TALLY_MINUTE_MS * TALLY_MINUTE_MS;
}

static bool tally_is_over(const Tally *tally) {
        return tally->now_ms < tally->from_ms || tally->now_ms - tally->from_ms >= TALLY_MINUTE_MS;
}

void tally_tick(Tally *tally, uint64_t now_ms) {
        tally->now_ms = now_ms;
        if (!tally->n_jobs && tally_is_over(tally))
                tally_end_minute(tally);
}

int tally_take(Tally *tally, TallyBatch **ret_batch) {
        size_t n_shares = tally_changed(tally);
        TallyBatch *batch;

        batch = calloc(1, sizeof(*batch) + n_shares * sizeof(*batch->shares) +
                                  tally->n_singles * sizeof(*batch->singles));
        if (!batch)
                return -ENOMEM;
        batch->shares = (TallyShare *)(batch + 1);
        batch->singles = (TallyRow *)(batch->shares + n_shares);
        batch->n_jobs = tally->n_jobs;
        batch->n_singles = tally->n_singles;
        memcpy(batch->singles, tally->singles, tally->n_singles * sizeof(*batch->singles));
        for (size_t i = 0; i < tally->n_used; ++i) {
                TallyShare *share = &tally->shares[tally->used[i]];

                if (share->row.n_jobs)
                        share_take(share, &batch->shares[batch->n_shares++]);
        }
        tally->n_singles = 0;
        tally->n_jobs = 0;
        if (tally_is_over(tally))
                tally_end_minute(tally);
        *ret_batch = batch;
        return 0;
}

TallyBatch *tally_batch_free(TallyBatch *batch) {
        free(batch);
        return NULL;
}

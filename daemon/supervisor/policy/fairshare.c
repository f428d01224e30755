/* SPDX-License-Identifier: Apache-2.0 */
#include "fairshare.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "util/macro.h"

#define ASLEEP SIZE_MAX

struct FairShare {
        ShareUser **heap; /* by (start, turn), smallest first */
        size_t n_heap;
        size_t size_heap;
        size_t n_in_flight; /* charged and not settled */
        double virtual;     /* tag of the latest dispatch; never goes back */
        double finish_max;
        uint64_t half_life_ns;
        double usage_full; /* a user of the default weight, alone on the device, approaches this */
        uint64_t turns;
        uint64_t n_compared;
};

/* ---- heap ---- */

static bool heap_is_less(FairShare *fs, const ShareUser *a, const ShareUser *b) {
        fs->n_compared++;
        if (a->start != b->start)
                return a->start < b->start;
        return a->turn < b->turn;
}

static void heap_put(FairShare *fs, size_t i, ShareUser *user) {
        fs->heap[i] = user;
        user->index = i;
}

static void heap_up(FairShare *fs, ShareUser *user) {
        size_t i = user->index;

        while (i > 0) {
                size_t parent = (i - 1) / 2;

                if (!heap_is_less(fs, user, fs->heap[parent]))
                        break;
                heap_put(fs, i, fs->heap[parent]);
                i = parent;
        }
        heap_put(fs, i, user);
}

static void heap_down(FairShare *fs, ShareUser *user) {
        size_t i = user->index;

        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= fs->n_heap)
                        break;
                if (child + 1 < fs->n_heap &&
                    heap_is_less(fs, fs->heap[child + 1], fs->heap[child]))
                        child++;
                if (!heap_is_less(fs, fs->heap[child], user))
                        break;
                heap_put(fs, i, fs->heap[child]);
                i = child;
        }
        heap_put(fs, i, user);
}

static void heap_fix(FairShare *fs, ShareUser *user) {
        heap_up(fs, user);
        heap_down(fs, user);
}

static int heap_reserve(FairShare *fs) {
        size_t size = fs->size_heap ? 2 * fs->size_heap : 16;
        ShareUser **heap;

        if (fs->n_heap < fs->size_heap)
                return 0;

        heap = reallocarray(fs->heap, size, sizeof(*heap));
        if (!heap)
                return -ENOMEM;

        fs->heap = heap;
        fs->size_heap = size;
        return 0;
}

/* ---- life ---- */

int fairshare_new(FairShare **ret_fs) {
        FairShare *fs = calloc(1, sizeof(*fs));

        if (!fs)
                return -ENOMEM;

        *ret_fs = fs;
        return 0;
}

FairShare *fairshare_free(FairShare *fs) {
        if (!fs)
                return NULL;

        for (size_t i = 0; i < fs->n_heap; i++)
                fs->heap[i]->index = ASLEEP;
        free(fs->heap);
        free(fs);
        return NULL;
}

static double weight_clamp(double weight) {
        return weight >= FAIRSHARE_WEIGHT_MIN ? weight : FAIRSHARE_WEIGHT_MIN; /* NaN too */
}

void shareuser_init(ShareUser *user, double weight) {
        weight = weight_clamp(weight);
        *user = (ShareUser){.weight = weight, .rate = weight, .index = ASLEEP};
}

void fairshare_configure(FairShare *fs, uint64_t half_life_ns, double weight) {
        fs->half_life_ns = half_life_ns;
        fs->usage_full = (double)half_life_ns / M_LN2 / weight_clamp(weight);
}

void fairshare_set_weight(FairShare *fs, ShareUser *user, double weight) {
        (void)fs;
        user->rate *= weight_clamp(weight) / user->weight;
        user->weight = weight_clamp(weight);
}

/* ---- the past -------------------------------------------------------------- */

/*
 * Only the ratio of two users' rates matters. It equals the ratio of their weights when both used
 * the same per weight, and competition leads there: a user who used more gets less. The rate does
 * not depend on which users are backlogged. Otherwise a user with one job at a time, without a
 * backlog between them, would be measured differently from a user who always waits.
 */
static void fairshare_rate(FairShare *fs, ShareUser *user, uint64_t now_ns) {
        double used;

        if (user->rated_ns && now_ns - user->rated_ns < fs->half_life_ns / DECAY_STEPS)
                return;

        user->rated_ns = now_ns;
        user->rate = user->weight;
        if (!fs->half_life_ns)
                return;
        used = fairshare_usage(fs, user, now_ns) / user->weight / fs->usage_full;
        user->rate /= fmin(1 + (FAIRSHARE_YIELD_MAX - 1) * used, FAIRSHARE_YIELD_MAX);
}

/* ---- the virtual clock ---- */

/*
 * When no user is backlogged and no job runs, the clock jumps to the end of everything that was
 * charged: the next user competes with no other user's past.
 */
static void fairshare_end_busy_period(FairShare *fs) {
        if (fs->n_heap == 0 && fs->n_in_flight == 0)
                fs->virtual = MAX(fs->virtual, fs->finish_max);
}

static void shareuser_set_finish(FairShare *fs, ShareUser *user, double finish) {
        user->finish = finish;
        user->start = MAX(finish, user->floor);
        fs->finish_max = MAX(fs->finish_max, user->start);
}

int fairshare_wake(FairShare *fs, ShareUser *user) {
        int r;

        if (shareuser_is_awake(user))
                return 0;

        r = heap_reserve(fs);
        if (r < 0)
                return r;

        user->floor = fs->virtual;
        user->start = MAX(user->finish, fs->virtual);
        user->turn = fs->turns++;
        user->index = fs->n_heap++;
        heap_up(fs, user);
        return 0;
}

void fairshare_sleep(FairShare *fs, ShareUser *user) {
        size_t i = user->index;
        ShareUser *last;

        if (!shareuser_is_awake(user))
                return;

        assert(i < fs->n_heap && fs->heap[i] == user);
        last = fs->heap[--fs->n_heap];
        user->index = ASLEEP;
        if (last != user) {
                heap_put(fs, i, last);
                heap_fix(fs, last);
        }
        fairshare_end_busy_period(fs);
}

ShareUser *fairshare_pick(FairShare *fs) {
        return fs->n_heap > 0 ? fs->heap[0] : NULL;
}

size_t fairshare_n_awake(const FairShare *fs) {
        return fs->n_heap;
}

void fairshare_charge(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t now_ns) {
        double start = user->start;

        fairshare_rate(fs, user, now_ns);

        /* Only backlogged users move the clock: a job run again for another user does not. Nor does
         * a user who runs before their turn, in their quantum, move it past the waiting users. A user
         * who became backlogged then would have to wait for that whole quantum. */
        if (shareuser_is_awake(user))
                fs->virtual = MAX(fs->virtual, fs->heap[0]->start);
        else
                start = user->floor = MAX(user->finish, fs->virtual);

        fs->n_in_flight++;
        shareuser_set_finish(fs, user, start + (double)expected_ns / user->rate);
        user->turn = fs->turns++;
        if (shareuser_is_awake(user))
                heap_down(fs, user);
}

void fairshare_advance(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                       uint64_t now_ns) {
        double error = ((double)actual_ns - (double)expected_ns) / user->rate;

        decay_add(&user->recent, FAIRSHARE_RECENT_NS, (double)actual_ns, now_ns);
        decay_add(&user->usage, fs->half_life_ns, (double)actual_ns, now_ns);

        shareuser_set_finish(fs, user, user->finish + error);
        if (shareuser_is_awake(user))
                heap_fix(fs, user);
}

void fairshare_settle(FairShare *fs, ShareUser *user, uint64_t expected_ns, uint64_t actual_ns,
                      uint64_t now_ns) {
        assert(fs->n_in_flight > 0);
        fs->n_in_flight--;
        fairshare_advance(fs, user, expected_ns, actual_ns, now_ns);
        fairshare_end_busy_period(fs);
}

/* ---- queries ---- */

double shareuser_recent(const ShareUser *user, uint64_t now_ns) {
        return decay_sum(&user->recent, FAIRSHARE_RECENT_NS, now_ns);
}

double fairshare_usage(const FairShare *fs, const ShareUser *user, uint64_t now_ns) {
        return decay_sum(&user->usage, fs->half_life_ns, now_ns);
}

bool shareuser_is_awake(const ShareUser *user) {
        return user->index != ASLEEP;
}

uint64_t fairshare_n_compared(const FairShare *fs) {
        return fs->n_compared;
}

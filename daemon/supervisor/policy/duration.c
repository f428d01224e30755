/* SPDX-License-Identifier: Apache-2.0 */
#include "duration.h"

#include <stdlib.h>

#include "util/table.h"

/* A job that takes this many times the expected time is not believed at first. */
#define DURATION_DOUBTED 8u

typedef struct DurationClass {
        uint64_t key;
        uint64_t ns;
        uint64_t last_ns; /* the latest sample */
        UT_hash_handle hh;
} DurationClass;

struct Duration {
        DurationClass *classes;
};

int duration_new(Duration **ret_duration) {
        Duration *duration;

        duration = calloc(1, sizeof(*duration));
        if (!duration)
                return -ENOMEM;

        *ret_duration = duration;
        return 0;
}

Duration *duration_free(Duration *duration) {
        DurationClass *class, *next;

        if (!duration)
                return NULL;

        HASH_ITER (hh, duration->classes, class, next) {
                HASH_DEL(duration->classes, class);
                free(class);
        }
        free(duration);
        return NULL;
}

uint64_t duration_key(uint64_t key, const void *data, size_t n_data) {
        const uint8_t *bytes = data;

        /* FNV-1a: classes that collide only share an estimate. */
        key = key ? key : 0xcbf29ce484222325ull;
        for (size_t i = 0; i < n_data; ++i)
                key = (key ^ bytes[i]) * 0x100000001b3ull;
        return key;
}

static DurationClass *duration_find(const Duration *duration, uint64_t key) {
        DurationClass *class;

        HASH_FIND(hh, duration->classes, &key, sizeof(key), class);
        return class;
}

uint64_t duration_expected(const Duration *duration, uint64_t key) {
        const DurationClass *class = duration_find(duration, key);

        return class ? class->ns : DURATION_UNKNOWN_NS;
}

static void duration_forget_oldest(Duration *duration) {
        DurationClass *oldest = duration->classes;

        HASH_DEL(duration->classes, oldest);
        free(oldest);
}

/*
 * With n jobs in flight each takes n times its part. A job that was stuck behind a long one is not
 * long itself: a sample above the average counts in full only if no other job ended meanwhile. Nor
 * are jobs short that end at the same moment as others.
 */
static uint64_t duration_part(const DurationClass *class, uint64_t said_ns, uint64_t busy_ns) {
        uint64_t known_ns = class ? class->ns : 0;

        return MIN(said_ns, MAX(busy_ns, known_ns));
}

/*
 * A pause of the driver is not the job's doing, and a short job that is taken for long has to wait
 * for truly long ones. So an outlier counts only when the next sample confirms it. A sample that
 * counts only in part, because other jobs ended with it, as in a batch, is no outlier.
 */
static void duration_move(DurationClass *class, uint64_t part_ns, bool is_whole) {
        uint64_t most_ns = MAX(class->ns, class->last_ns);
        uint64_t believed_ns = part_ns / DURATION_DOUBTED > most_ns ? most_ns : part_ns;

        class->ns = class->ns - class->ns / 4 + believed_ns / 4;
        if (is_whole || part_ns > class->last_ns)
                class->last_ns = part_ns;
}

void duration_learn(Duration *duration, uint64_t key, uint64_t ran_ns, uint32_t n_beside,
                    uint64_t busy_ns) {
        DurationClass *class = duration_find(duration, key);
        uint64_t said_ns = ran_ns / MAX(n_beside, 1u);
        uint64_t part_ns = duration_part(class, said_ns, busy_ns);

        if (class) {
                duration_move(class, part_ns, part_ns == said_ns);
                return;
        }

        class = calloc(1, sizeof(*class));
        if (!class)
                return;
        if (HASH_COUNT(duration->classes) >= DURATION_MAX)
                duration_forget_oldest(duration);

        class->key = key;
        class->ns = class->last_ns = part_ns;
        HASH_ADD(hh, duration->classes, key, sizeof(class->key), class);
        if (!class->hh.tbl)
                free(class);
}

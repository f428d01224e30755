/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct ring: what its three sides see of each other, positions that overflow, memory that is not such a ring, and two
 * threads that sleep.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/direct_ring.h"

/* The same memory, mapped by all three. */
typedef struct Sides {
        DirectRing gpuqd, client, reader;
        int fd;
} Sides;

static Sides sides_new(void) {
        Sides sides = {};

        assert_int_equal(direct_ring_make(&sides.gpuqd, &sides.fd), 0);
        assert_int_equal(direct_ring_adopt(&sides.client, sides.fd), 0);
        assert_int_equal(direct_ring_adopt(&sides.reader, sides.fd), 0);
        return sides;
}

/* As if so many entries had been written and taken. */
static Sides sides_at(uint32_t position) {
        Sides sides = sides_new();

        sides.client.position = position;
        sides.gpuqd.shared->n_written = position;
        sides.gpuqd.shared->n_taken = position;
        sides.reader.position = position;
        return sides;
}

static void sides_end(Sides *sides) {
        direct_ring_release(&sides->gpuqd);
        direct_ring_release(&sides->client);
        direct_ring_release(&sides->reader);
        close(sides->fd);
}

static void assert_taken(Sides *sides, uint32_t expected_tag, uint32_t expected_prepared) {
        uint32_t tag = 0, prepared = 0;

        assert_true(direct_ring_look(&sides->reader, &tag, &prepared));
        assert_int_equal(tag, expected_tag);
        assert_int_equal(prepared, expected_prepared);
        direct_ring_take(&sides->reader, tag);
}

static void assert_nothing_to_take(Sides *sides) {
        uint32_t tag = 0, prepared = 0;

        assert_false(direct_ring_look(&sides->reader, &tag, &prepared));
}

/* ---- jobs --------------------------------------------------------------------- */

static void jobs_are_taken_as_they_were_fired(void **state) {
        Sides sides = sides_new();

        assert_nothing_to_take(&sides);
        direct_ring_write(&sides.client, 7, 1);
        direct_ring_write(&sides.client, 9, 2);
        assert_taken(&sides, 7, 1);
        assert_taken(&sides, 9, 2);
        assert_nothing_to_take(&sides);
        assert_int_equal(sides.gpuqd.shared->n_taken, 2);
        assert_int_equal(sides.gpuqd.shared->last_tag, 9);
        sides_end(&sides);
}

static void looking_takes_nothing(void **state) {
        Sides sides = sides_new();
        uint32_t tag = 0, prepared = 0;

        direct_ring_write(&sides.client, 7, 1);
        for (unsigned i = 0; i < 3; ++i)
                assert_true(direct_ring_look(&sides.reader, &tag, &prepared));
        assert_int_equal(sides.gpuqd.shared->n_taken, 0);
        assert_taken(&sides, 7, 1);
        sides_end(&sides);
}

static void end_is_seen_in_its_entry_alone(void **state) {
        Sides sides = sides_new();
        DirectEntry *first = direct_ring_entry(&sides.client, 0);
        DirectEntry *second = direct_ring_entry(&sides.client, 1);

        direct_ring_write(&sides.client, 7, 1);
        direct_ring_write(&sides.client, 8, 1);
        assert_taken(&sides, 7, 1);
        assert_taken(&sides, 8, 1);
        assert_false(direct_ring_has_end(&sides.client, 0));

        direct_ring_end(&sides.reader, 1, 8, 30, 400);
        assert_false(direct_ring_is_done(first, 7));
        assert_true(direct_ring_is_done(second, 8));
        assert_int_equal(second->waited_us, 30);
        assert_int_equal(second->ran_us, 400);
        assert_true(direct_ring_has_end(&sides.client, 0));

        direct_ring_free(second);
        assert_false(direct_ring_has_end(&sides.client, 0));
        sides_end(&sides);
}

static void end_of_the_job_before_is_not_taken_for_that_of_the_next(void **state) {
        Sides sides = sides_new();

        for (uint32_t i = 0; i < 2 * DIRECT_RING_ENTRIES; ++i) {
                DirectEntry *entry = direct_ring_entry(&sides.client, i);

                assert_true(direct_ring_has_room(&sides.client));
                direct_ring_write(&sides.client, i + 1, 1);
                assert_false(direct_ring_is_done(entry, i + 1));
                assert_taken(&sides, i + 1, 1);
                direct_ring_end(&sides.reader, i, i + 1, 0, 0);
                assert_true(direct_ring_is_done(entry, i + 1));
                direct_ring_free(entry);
        }
        sides_end(&sides);
}

static void entry_has_room_only_once_the_client_has_freed_it(void **state) {
        Sides sides = sides_new();

        for (uint32_t i = 0; i < DIRECT_RING_ENTRIES; ++i) {
                assert_true(direct_ring_has_room(&sides.client));
                direct_ring_write(&sides.client, i + 1, 1);
        }
        assert_false(direct_ring_has_room(&sides.client));
        assert_taken(&sides, 1, 1);
        assert_false(direct_ring_has_room(&sides.client));
        direct_ring_end(&sides.reader, 0, 1, 0, 0);
        assert_false(direct_ring_has_room(&sides.client));

        direct_ring_free(direct_ring_entry(&sides.client, 1)); /* not the next one */
        assert_false(direct_ring_has_room(&sides.client));
        direct_ring_free(direct_ring_entry(&sides.client, 0));
        assert_true(direct_ring_has_room(&sides.client));
        sides_end(&sides);
}

static void full_ring_is_taken_to_its_last_job(void **state) {
        Sides sides = sides_at(1000);

        for (uint32_t i = 0; i < DIRECT_RING_ENTRIES; ++i)
                direct_ring_write(&sides.client, i + 1, i);
        for (uint32_t i = 0; i < DIRECT_RING_ENTRIES; ++i)
                assert_taken(&sides, i + 1, i);
        assert_nothing_to_take(&sides);
        sides_end(&sides);
}

static void positions_may_overflow(void **state) {
        Sides sides = sides_at(UINT32_MAX - 2);

        for (uint32_t i = 0; i < 6; ++i) {
                uint32_t index = sides.client.position;

                direct_ring_write(&sides.client, i + 1, 1);
                assert_taken(&sides, i + 1, 1);
                assert_false(direct_ring_has_end(&sides.client, UINT32_MAX - 2));
                direct_ring_end(&sides.reader, index, i + 1, 0, 0);
                assert_true(direct_ring_has_end(&sides.client, UINT32_MAX - 2));
                direct_ring_free(direct_ring_entry(&sides.client, index));
        }
        assert_int_equal(sides.gpuqd.shared->n_written, 3);
        assert_int_equal(sides.gpuqd.shared->n_taken, 3);
        assert_nothing_to_take(&sides);
        sides_end(&sides);
}

static void next_reader_continues_where_the_last_one_stopped(void **state) {
        Sides sides = sides_at(UINT32_MAX);
        uint32_t tag = 0, prepared = 0;

        for (uint32_t i = 1; i <= 3; ++i)
                direct_ring_write(&sides.client, i, 1);
        assert_taken(&sides, 1, 1);
        assert_taken(&sides, 2, 1);
        sides.gpuqd.position = sides.gpuqd.shared->n_taken;
        assert_true(direct_ring_look(&sides.gpuqd, &tag, &prepared));
        assert_int_equal(tag, 3);
        sides_end(&sides);
}

static void writer_learns_that_nobody_may_read(void **state) {
        Sides sides = sides_new();

        assert_false(direct_ring_write(&sides.client, 1, 1));
        direct_ring_lend(&sides.gpuqd, true);
        assert_true(direct_ring_write(&sides.client, 2, 1));
        assert_true(direct_ring_write(&sides.client, 3, 1));
        direct_ring_lend(&sides.gpuqd, false);
        assert_false(direct_ring_write(&sides.client, 4, 1));
        for (uint32_t i = 1; i <= 4; ++i)
                assert_taken(&sides, i, 1); /* gpuqd finds what was written then */
        sides_end(&sides);
}

/* ---- sleeping ------------------------------------------------------------------ */

static void reader_that_sleeps_is_woken_once(void **state) {
        Sides sides = sides_new();

        assert_false(direct_ring_must_wake_reader(&sides.client));
        assert_true(direct_ring_sleep(&sides.reader));
        direct_ring_write(&sides.client, 1, 1);
        assert_true(direct_ring_must_wake_reader(&sides.client));
        assert_false(direct_ring_must_wake_reader(&sides.client));

        assert_false(direct_ring_sleep(&sides.reader)); /* there is a job */
        assert_false(direct_ring_must_wake_reader(&sides.client));
        assert_taken(&sides, 1, 1);
        assert_true(direct_ring_sleep(&sides.reader));
        direct_ring_wake(&sides.reader);
        assert_false(direct_ring_must_wake_reader(&sides.client));
        sides_end(&sides);
}

static void client_that_sleeps_is_woken_once(void **state) {
        Sides sides = sides_new();

        direct_ring_write(&sides.client, 1, 1);
        assert_taken(&sides, 1, 1);
        assert_false(direct_ring_must_wake_client(&sides.reader));
        assert_true(direct_ring_doze(&sides.client, 0));
        direct_ring_end(&sides.reader, 0, 1, 0, 0);
        assert_true(direct_ring_must_wake_client(&sides.reader));
        assert_false(direct_ring_must_wake_client(&sides.reader));

        assert_false(direct_ring_doze(&sides.client, 0)); /* there is an end */
        direct_ring_rouse(&sides.client);
        assert_false(direct_ring_must_wake_client(&sides.reader));
        sides_end(&sides);
}

static bool hears(int fd) {
        return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static void bell_wakes_the_other_side_and_is_forgotten(void **state) {
        int bells[2];

        assert_int_equal(direct_bell_make(bells), 0);
        assert_false(hears(bells[1]));
        for (unsigned i = 0; i < 1000; ++i)
                direct_bell_ring(bells[0]);
        assert_true(hears(bells[1]));
        assert_false(hears(bells[0]));
        direct_bell_hear(bells[1]);
        assert_false(hears(bells[1]));
        close(bells[1]);
        direct_bell_ring(bells[0]); /* nobody is there: no signal either */
        close(bells[0]);
}

static void bell_that_nobody_hears_does_not_block(void **state) {
        int bells[2];

        assert_int_equal(direct_bell_make(bells), 0);
        for (unsigned i = 0; i < 1000000; ++i)
                direct_bell_ring(bells[0]);
        assert_true(hears(bells[1]));
        close(bells[0]);
        close(bells[1]);
}

/* ---- memory ---------------------------------------------------------------------- */

static int memory_new(size_t n_bytes, int seals) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)n_bytes), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

static void only_sealed_memory_of_the_right_size_is_adopted(void **state) {
        const struct {
                size_t n_bytes;
                int seals;
                int r;
        } cases[] = {
                {direct_ring_bytes(), F_SEAL_SHRINK | F_SEAL_GROW, 0},
                {direct_ring_bytes(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0},
                {direct_ring_bytes(), 0, -EINVAL},
                {direct_ring_bytes(), F_SEAL_SHRINK, -EINVAL},
                {direct_ring_bytes(), F_SEAL_GROW, -EINVAL},
                {direct_ring_bytes() - 4096, F_SEAL_SHRINK | F_SEAL_GROW, -EINVAL},
                {direct_ring_bytes() + 4096, F_SEAL_SHRINK | F_SEAL_GROW, -EINVAL},
                {0, F_SEAL_SHRINK | F_SEAL_GROW, -EINVAL},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
                int fd = memory_new(cases[i].n_bytes, cases[i].seals);
                DirectRing ring = {};

                assert_int_equal(direct_ring_adopt(&ring, fd), cases[i].r);
                assert_int_equal(ring.shared != NULL, cases[i].r == 0);
                direct_ring_release(&ring);
                close(fd);
        }
}

static void what_is_no_memory_is_not_adopted(void **state) {
        DirectRing ring = {};
        int bells[2];

        assert_int_equal(direct_bell_make(bells), 0);
        assert_int_equal(direct_ring_adopt(&ring, bells[0]), -EINVAL);
        assert_int_equal(direct_ring_adopt(&ring, -1), -EINVAL);
        assert_null(ring.shared);
        close(bells[0]);
        close(bells[1]);
}

static void its_memory_keeps_its_size(void **state) {
        Sides sides = sides_new();

        assert_int_equal(ftruncate(sides.fd, 0), -1);
        assert_int_equal(ftruncate(sides.fd, 1 << 20), -1);
        assert_int_equal(fcntl(sides.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
        sides_end(&sides);
}

static void releasing_twice_is_harmless(void **state) {
        DirectRing ring = {};
        int fd;

        direct_ring_release(&ring);
        assert_int_equal(direct_ring_make(&ring, &fd), 0);
        direct_ring_release(&ring);
        direct_ring_release(&ring);
        close(fd);
}

/* ---- two threads ------------------------------------------------------------------- */

#define N_JOBS      100000u
#define PATIENCE_MS 60000

typedef struct Pair {
        Sides sides;
        int bells[2];       /* of the client, of the reader */
        unsigned n_unwoken; /* sleeps that nobody ended */
} Pair;

static bool pair_is_stuck(const Pair *pair) {
        return __atomic_load_n(&pair->n_unwoken, __ATOMIC_RELAXED);
}

static void pair_sleep(Pair *pair, int bell) {
        if (poll(&(struct pollfd){.fd = bell, .events = POLLIN}, 1, PATIENCE_MS) != 1)
                __atomic_add_fetch(&pair->n_unwoken, 1, __ATOMIC_RELAXED);
        direct_bell_hear(bell);
}

/* Ends each job as soon as it is taken; sleeps whenever there is none. */
static void *pair_read(void *argument) {
        Pair *pair = argument;
        DirectRing *ring = &pair->sides.reader;
        uint32_t tag = 0, prepared = 0;

        while (ring->position != N_JOBS && !pair_is_stuck(pair)) {
                if (direct_ring_look(ring, &tag, &prepared)) {
                        direct_ring_take(ring, tag);
                        direct_ring_end(ring, ring->position - 1, tag, 0, prepared);
                        if (direct_ring_must_wake_client(ring))
                                direct_bell_ring(pair->bells[1]);
                } else if (direct_ring_sleep(ring)) {
                        pair_sleep(pair, pair->bells[1]);
                        direct_ring_wake(ring);
                }
        }
        return NULL;
}

/* Entries whose ends were not seen yet: from @first on. Return: the first that is not done. */
static uint32_t pair_see_ends(Pair *pair, uint32_t first) {
        DirectRing *ring = &pair->sides.client;

        for (; first != ring->position; ++first) {
                DirectEntry *entry = direct_ring_entry(ring, first);

                if (!direct_ring_is_done(entry, first + 1))
                        break;
                assert_int_equal(entry->ran_us, (first + 1) * 3);
                direct_ring_free(entry);
        }
        return first;
}

static void two_threads_that_sleep_lose_nothing(void **state) {
        Pair pair = {.sides = sides_new()};
        DirectRing *ring = &pair.sides.client;
        uint32_t first = 0;
        pthread_t thread;

        assert_int_equal(direct_bell_make(pair.bells), 0);
        assert_int_equal(pthread_create(&thread, NULL, pair_read, &pair), 0);
        while (first != N_JOBS && !pair_is_stuck(&pair)) {
                uint32_t before = first;

                /* Bursts of any length: one job, or as many as there is room for. */
                for (uint32_t n = 1 + ring->position * 7919 % (DIRECT_RING_ENTRIES + 9);
                     n > 0 && ring->position != N_JOBS && direct_ring_has_room(ring); --n) {
                        uint32_t tag = ring->position + 1;

                        direct_ring_write(ring, tag, tag * 3);
                        if (direct_ring_must_wake_reader(ring))
                                direct_bell_ring(pair.bells[0]);
                }
                first = pair_see_ends(&pair, first);
                if (first == before && direct_ring_doze(ring, first))
                        pair_sleep(&pair, pair.bells[0]);
                direct_ring_rouse(ring);
        }
        pthread_join(thread, NULL);
        assert_int_equal(pair.n_unwoken, 0);
        assert_int_equal(first, N_JOBS);
        assert_int_equal(pair.sides.reader.position, N_JOBS);
        close(pair.bells[0]);
        close(pair.bells[1]);
        sides_end(&pair.sides);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(jobs_are_taken_as_they_were_fired),
                cmocka_unit_test(looking_takes_nothing),
                cmocka_unit_test(end_is_seen_in_its_entry_alone),
                cmocka_unit_test(end_of_the_job_before_is_not_taken_for_that_of_the_next),
                cmocka_unit_test(entry_has_room_only_once_the_client_has_freed_it),
                cmocka_unit_test(full_ring_is_taken_to_its_last_job),
                cmocka_unit_test(positions_may_overflow),
                cmocka_unit_test(next_reader_continues_where_the_last_one_stopped),
                cmocka_unit_test(writer_learns_that_nobody_may_read),
                cmocka_unit_test(reader_that_sleeps_is_woken_once),
                cmocka_unit_test(client_that_sleeps_is_woken_once),
                cmocka_unit_test(bell_wakes_the_other_side_and_is_forgotten),
                cmocka_unit_test(bell_that_nobody_hears_does_not_block),
                cmocka_unit_test(only_sealed_memory_of_the_right_size_is_adopted),
                cmocka_unit_test(what_is_no_memory_is_not_adopted),
                cmocka_unit_test(its_memory_keeps_its_size),
                cmocka_unit_test(releasing_twice_is_harmless),
                cmocka_unit_test(two_threads_that_sleep_lose_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

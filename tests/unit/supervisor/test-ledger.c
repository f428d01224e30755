/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what one supervisor wrote, another reads; what was damaged is not used,
 * and what was being written when the writer was killed is as it was before.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "job.h"
#include "ledger.h"
#include "ledger_layout.h"

#define UID 1000u
/* What one user can have: seven sixteenths, the reserved part, and no more than whole grants of 64. */
#define SHARE                                                                                      \
        (((LEDGER_JOBS - LEDGER_ENDS_KEPT) * 7 / 16 +                                              \
          (LEDGER_JOBS - LEDGER_ENDS_KEPT) / QUOTA_OPEN_PARTS) /                                   \
         64 * 64)

static Ledger *a_ledger(void) {
        Ledger *ledger;

        assert_int_equal(ledger_new(&ledger), 0);
        return ledger;
}

/* As if its writer had been killed: only the memfd is left. */
static int left_behind(Ledger *ledger) {
        int fd = dup(ledger_fd(ledger));

        assert_true(fd >= 0);
        ledger_free(ledger);
        return fd;
}

static Ledger *next_supervisor(Ledger *ledger) {
        Ledger *next;

        assert_int_equal(ledger_open(left_behind(ledger), &next), 0);
        return next;
}

static LedgerOwner owner(uint64_t id) {
        return (LedgerOwner){.id = id, .uid = UID, .gid = UID};
}

static uint32_t sent(Ledger *ledger, uint64_t id) {
        LedgerOwner of = owner(id);
        uint32_t slot = ledger_job_sent(ledger, LEDGER_NONE, &of,
                                        &(LedgerSent){.is_sent = 1, .retries = 2});

        assert_int_not_equal(slot, LEDGER_NONE);
        return slot;
}

static uint32_t ended(Ledger *ledger, uint32_t slot, uint64_t id, const char *text) {
        LedgerEnd end = {.state = text ? JOB_FAILED : JOB_DONE, .code = text ? 7 : 0, .ran_us = id};
        LedgerOwner of = owner(id);

        slot = ledger_job_ended(ledger, slot, &of, &end, text);
        assert_int_not_equal(slot, LEDGER_NONE);
        return slot;
}

/* ---- what is found again --------------------------------------------------- */

static void records_and_numbers_are_there_for_the_next_supervisor(void **state) {
        LedgerSession session = {.id = 7, .uid = UID, .pid = 42, .start = 99, .client = "prog"};
        LedgerArena arena = {.id = 3, .size = 4096, .uid = UID, .place = 1, .device = "GPU-x"};
        Ledger *ledger = a_ledger();
        const LedgerSession *found;
        const LedgerArena *found_arena;
        uint32_t slot = LEDGER_NONE, dropped;

        ledger_note_id(ledger, LEDGER_SESSION, 12);
        dropped = ledger_add(ledger, LEDGER_SESSION, &(LedgerSession){.id = 6});
        ledger_add(ledger, LEDGER_SESSION, &session);
        ledger_add(ledger, LEDGER_ARENA, &arena);
        ledger_drop(ledger, LEDGER_SESSION, dropped);

        ledger = next_supervisor(ledger);
        assert_int_equal(ledger_last_id(ledger, LEDGER_SESSION), 12);
        assert_int_equal(ledger_last_id(ledger, LEDGER_MODULE), 0);
        found = ledger_next(ledger, LEDGER_SESSION, &slot);
        assert_memory_equal(found, &session, sizeof(session));
        assert_null(ledger_next(ledger, LEDGER_SESSION, &slot));
        slot = LEDGER_NONE;
        found_arena = ledger_next(ledger, LEDGER_ARENA, &slot);
        assert_memory_equal(found_arena, &arena, sizeof(arena));
        ledger_free(ledger);
}

static void what_is_written_after_it_was_left_is_not_there(void **state) {
        Ledger *ledger = a_ledger();
        uint32_t slot = ledger_add(ledger, LEDGER_SESSION, &(LedgerSession){.id = 6});
        uint32_t found = LEDGER_NONE;

        assert_int_equal(ledger_leave(ledger), 0);
        ledger_drop(ledger, LEDGER_SESSION, slot);
        ledger = next_supervisor(ledger);
        assert_non_null(ledger_next(ledger, LEDGER_SESSION, &found));
        ledger_free(ledger);
}

static void a_changed_record_is_there_once(void **state) {
        LedgerModule module = {.id = 5, .session = 1};
        Ledger *ledger = a_ledger();
        uint32_t slot = ledger_add(ledger, LEDGER_MODULE, &module), found = LEDGER_NONE;
        const LedgerModule *next;

        module.is_used = 1;
        slot = ledger_change(ledger, LEDGER_MODULE, slot, &module);
        ledger = next_supervisor(ledger);
        next = ledger_next(ledger, LEDGER_MODULE, &found);
        assert_int_equal(found, slot);
        assert_int_equal(next->is_used, 1);
        assert_null(ledger_next(ledger, LEDGER_MODULE, &found));
        ledger_free(ledger);
}

static void a_job_is_unknown_sent_or_ended(void **state) {
        Ledger *ledger = a_ledger();
        uint32_t slot;
        LedgerJob job;

        sent(ledger, 1);
        slot = sent(ledger, 2);
        ended(ledger, slot, 2, NULL);
        ended(ledger, LEDGER_NONE, 3, "no such kernel");
        ledger_job_dropped(ledger, sent(ledger, 4));

        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 1, &job));
        assert_int_equal(job.state, LEDGER_SENT);
        assert_int_equal(job.sent.is_sent, 1);
        assert_int_equal(job.sent.retries, 2);
        assert_int_equal(job.owner.uid, UID);
        assert_true(ledger_find_job(ledger, 2, &job));
        assert_int_equal(job.state, LEDGER_ENDED);
        assert_int_equal(job.end.state, JOB_DONE);
        assert_int_equal(job.end.ran_us, 2);
        assert_string_equal(job.text, "");
        assert_true(ledger_find_job(ledger, 3, &job));
        assert_string_equal(job.text, "no such kernel");
        assert_int_equal(job.end.code, 7);
        assert_false(ledger_find_job(ledger, 4, &job));
        assert_int_equal(job.state, LEDGER_UNKNOWN);
        ledger_free(ledger);
}

static void jobs_come_in_the_order_in_which_they_were_sent(void **state) {
        Ledger *ledger = a_ledger();
        LedgerJob job;
        size_t i = 0;

        ledger_job_dropped(ledger, sent(ledger, 9));
        for (uint64_t id = 5; id > 0; --id)
                sent(ledger, id);
        ledger = next_supervisor(ledger);
        for (uint64_t id = 5; id > 0; --id) {
                assert_true(ledger_next_job(ledger, &i, &job));
                assert_int_equal(job.owner.id, id);
        }
        assert_false(ledger_next_job(ledger, &i, &job));
        ledger_free(ledger);
}

static void jobs_of_one_session_are_found_by_it(void **state) {
        const uint64_t session = 7ull << 32;
        Ledger *ledger = a_ledger();
        LedgerJob job;
        size_t i;

        sent(ledger, session | 2);
        sent(ledger, (session - (1ull << 32)) | 9);
        ended(ledger, LEDGER_NONE, session | 1, NULL);
        sent(ledger, (session + (1ull << 32)) | 1);
        ledger = next_supervisor(ledger);
        i = ledger_first_job_of(ledger, 7);
        assert_true(ledger_next_job_of(ledger, 7, &i, &job));
        assert_int_equal(job.owner.id, session | 1);
        assert_int_equal(job.state, LEDGER_ENDED);
        assert_true(ledger_next_job_of(ledger, 7, &i, &job));
        assert_int_equal(job.owner.id, session | 2);
        assert_false(ledger_next_job_of(ledger, 7, &i, &job));
        i = ledger_first_job_of(ledger, 9);
        assert_false(ledger_next_job_of(ledger, 9, &i, &job));
        ledger_free(ledger);
}

static void a_long_text_is_cut_and_whole_again(void **state) {
        char text[LEDGER_TEXT_MAX + 100];
        Ledger *ledger = a_ledger();
        LedgerJob job;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        ended(ledger, LEDGER_NONE, 1, text);
        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 1, &job));
        assert_int_equal(strlen(job.text), LEDGER_TEXT_MAX);
        ledger_free(ledger);
}

static void a_job_that_waits_again_is_known_by_its_retries(void **state) {
        LedgerOwner of = owner(1), other = owner(2);
        Ledger *ledger = a_ledger();
        uint32_t slot;
        LedgerJob job;

        slot = ledger_job_waits(ledger, sent(ledger, 1), &of, 3);
        assert_int_not_equal(slot, LEDGER_NONE);
        assert_int_equal(ledger_job_waits(ledger, sent(ledger, 2), &other, 0), LEDGER_NONE);
        assert_int_equal(ledger_job_waits(ledger, LEDGER_NONE, &other, 0), LEDGER_NONE);

        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 1, &job));
        assert_int_equal(job.state, LEDGER_WAITING);
        assert_int_equal(job.sent.retries, 3);
        assert_int_equal(job.slot, slot);
        assert_false(ledger_find_job(ledger, 2, &job));
        ledger_free(ledger);
}

/* ---- room ------------------------------------------------------------------ */

static bool knows(Ledger **ledger, uint64_t id) {
        LedgerJob job;

        *ledger = next_supervisor(*ledger);
        return ledger_find_job(*ledger, id, &job);
}

static void an_end_makes_room_only_once_it_was_read_of(void **state) {
        Ledger *ledger = a_ledger();
        LedgerTold told;
        LedgerJob job;

        ledger_told_init(&told);
        for (uint64_t id = 1; id <= SHARE; ++id)
                ledger_job_told(ledger, ended(ledger, LEDGER_NONE, id, NULL), &told);
        ledger_told_seen(ledger, &told, 2);

        ended(ledger, LEDGER_NONE, SHARE + 1, NULL);
        ended(ledger, LEDGER_NONE, SHARE + 2, NULL);
        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 3, &job));
        assert_true(ledger_find_job(ledger, SHARE + 1, &job));
        ledger_free(ledger);
}

static void ends_read_of_are_kept_for_a_while(void **state) {
        const unsigned n = 3 * LEDGER_ENDS_KEPT;
        Ledger *ledger = a_ledger();
        LedgerTold told;
        LedgerJob job;

        ledger_told_init(&told);
        for (uint64_t id = 1; id <= n; ++id) {
                ledger_job_told(ledger, ended(ledger, sent(ledger, id), id, NULL), &told);
                ledger_told_seen(ledger, &told, (uint32_t)id);
        }
        assert_true(ledger->tables[LEDGER_JOB].n_touched <= LEDGER_ENDS_KEPT + 2);
        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, n - LEDGER_ENDS_KEPT + 1, &job));
        assert_false(ledger_find_job(ledger, n - LEDGER_ENDS_KEPT - 10, &job));
        ledger_free(ledger);
}

static void clients_that_never_say_what_they_read_cost_the_oldest_ends(void **state) {
        Ledger *ledger = a_ledger();
        LedgerTold told;

        ledger_told_init(&told);
        for (uint64_t id = 1; id <= SHARE + 1; ++id)
                ledger_job_told(ledger, ended(ledger, LEDGER_NONE, id, NULL), &told);
        ledger_told_close(ledger, &told);
        assert_false(knows(&ledger, 1));
        assert_true(knows(&ledger, 2));
        ledger_free(ledger);
}

static uint32_t ended_of(Ledger *ledger, uint32_t uid, uint64_t id) {
        return ledger_job_ended(ledger, LEDGER_NONE, &(LedgerOwner){.id = id, .uid = uid},
                                &(LedgerEnd){.state = 4}, NULL);
}

/* The oldest ends of all users made room: those of a user who had few, for one who never read any. */
static void one_who_never_reads_costs_nobody_else_an_end(void **state) {
        Ledger *ledger = a_ledger();
        LedgerTold told, flood;

        ledger_told_init(&told);
        ledger_told_init(&flood);
        ledger_job_told(ledger, ended_of(ledger, UID + 1, 1), &told);
        for (uint64_t id = 1; id <= 2 * LEDGER_JOBS; ++id)
                ledger_job_told(ledger, ended_of(ledger, UID, id << 8), &flood);
        ledger_job_told(ledger, ended_of(ledger, UID + 1, 2), &told);
        assert_int_equal(ledger->users->person->n, 2);
        ledger_told_close(ledger, &flood);
        ledger_told_close(ledger, &told);
        assert_true(knows(&ledger, 1));
        assert_true(knows(&ledger, 2));
        ledger_free(ledger);
}

/* Ends that no client has read belong to jobs, so they cannot be reused: others keep their part. */
static void unread_ends_of_one_leave_records_for_others(void **state) {
        Ledger *ledger = a_ledger();
        uint64_t id = 1;

        while (ended_of(ledger, UID, id << 8) != LEDGER_NONE)
                id++;
        assert_in_range(id, SHARE, SHARE + 2);
        for (unsigned i = 0; i < 1000; ++i)
                assert_int_not_equal(ended_of(ledger, UID + 1, i + 1), LEDGER_NONE);
        ledger_free(ledger);
}

static void subordinate_uids_share_their_owners_records(void **state) {
        Ledger *ledger = a_ledger();
        uint64_t id = 1;

        assert_int_equal(ledger_join(ledger, 100000, UID), 0);
        assert_int_equal(ledger_join(ledger, 100001, UID), 0);
        while (ended_of(ledger, 100000 + id % 2, id << 8) != LEDGER_NONE)
                id++;
        assert_in_range(id, SHARE, SHARE + 2);
        assert_int_equal(ended_of(ledger, UID, 5), LEDGER_NONE);
        assert_int_not_equal(ended_of(ledger, UID + 1, 6), LEDGER_NONE);
        ledger_forget(ledger, 100001);
        ledger_free(ledger);
}

static void records_that_are_given_back_are_there_for_others(void **state) {
        Ledger *ledger = a_ledger();
        LedgerTold told;

        for (uint32_t uid = 1; uid <= 20; ++uid) {
                ledger_told_init(&told);
                for (uint64_t id = 1; id <= 1000; ++id)
                        ledger_job_told(ledger, ended_of(ledger, uid, id << 8 | uid), &told);
                ledger_told_close(ledger, &told);
                ledger_forget(ledger, uid);
        }
        assert_null(ledger->users);
        assert_int_equal(ledger->quota.taken, 0);
        ledger_free(ledger);
}

static void jobs_in_workers_never_make_room(void **state) {
        Ledger *ledger = a_ledger();
        LedgerOwner of = owner(1);

        for (uint64_t id = 1; id <= SHARE; ++id)
                sent(ledger, id);
        assert_int_equal(ledger_job_sent(ledger, LEDGER_NONE, &of, &(LedgerSent){.is_sent = 1}),
                         LEDGER_NONE);
        assert_int_equal(ledger_job_ended(ledger, LEDGER_NONE, &of, &(LedgerEnd){}, NULL),
                         LEDGER_NONE);
        ledger_free(ledger);
}

static void a_count_beyond_what_was_told_is_ignored(void **state) {
        Ledger *ledger = a_ledger();
        LedgerTold told;

        ledger_told_init(&told);
        ledger_job_told(ledger, ended(ledger, LEDGER_NONE, 1, NULL), &told);
        ledger_told_seen(ledger, &told, 2);
        assert_false(TAILQ_EMPTY(&told.nodes));
        ledger_told_seen(ledger, &told, 1);
        assert_true(TAILQ_EMPTY(&told.nodes));
        ledger_free(ledger);
}

/* ---- damage ---------------------------------------------------------------- */

/* A file of any size with these bytes: a memfd that is sealed cannot be cut short. */
static int a_file(const void *data, size_t n_bytes) {
        int fd = memfd_create("damaged", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)n_bytes), 0);
        assert_int_equal(pwrite(fd, data, n_bytes, 0), n_bytes);
        return fd;
}

/* A ledger with something of everything, as bytes. */
static uint8_t *some_bytes(size_t *ret_n_bytes) {
        Ledger *ledger = a_ledger();
        struct stat st;
        uint8_t *bytes;

        ledger_note_id(ledger, LEDGER_ARENA, 3);
        ledger_add(ledger, LEDGER_SESSION, &(LedgerSession){.id = 1, .uid = UID});
        ledger_add(ledger, LEDGER_ARENA, &(LedgerArena){.id = 3, .uid = UID});
        ledger_add(ledger, LEDGER_MODULE, &(LedgerModule){.id = 4});
        sent(ledger, 1);
        ended(ledger, LEDGER_NONE, 2, "why");
        assert_int_equal(fstat(ledger_fd(ledger), &st), 0);
        bytes = malloc((size_t)st.st_size);
        assert_non_null(bytes);
        assert_int_equal(pread(ledger_fd(ledger), bytes, (size_t)st.st_size, 0), st.st_size);
        ledger_free(ledger);
        *ret_n_bytes = (size_t)st.st_size;
        return bytes;
}

static void one_cut_short_is_damaged(void **state) {
        size_t n_bytes;
        uint8_t *bytes = some_bytes(&n_bytes);
        const size_t lengths[] = {0, 8, 100, LEDGER_HEAD_BYTES, n_bytes / 2, n_bytes - 1};
        Ledger *ledger;

        for (size_t i = 0; i < ARRAY_SIZE(lengths); ++i)
                assert_int_equal(ledger_open(a_file(bytes, lengths[i]), &ledger), LEDGER_E_DAMAGED);
        assert_int_equal(ledger_open(a_file(bytes, n_bytes), &ledger), 0);
        ledger_free(ledger);
        free(bytes);
}

/* Return: LEDGER_E_…, with one bit of what was written another. */
static int open_flipped(const int fd, uint8_t *memory, size_t offset) {
        Ledger *ledger;
        int r;

        memory[offset] ^= 0x10;
        r = ledger_open(dup(fd), &ledger);
        if (r == 0)
                ledger_free(ledger);
        memory[offset] ^= 0x10;
        return r;
}

static void a_flipped_bit_is_seen_wherever_it_is(void **state) {
        size_t n_bytes, offset = LEDGER_HEAD_BYTES;
        uint8_t *bytes = some_bytes(&n_bytes), *memory;
        Ledger *layout = a_ledger();
        int fd = a_file(bytes, n_bytes);

        memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_true(memory != MAP_FAILED);
        for (size_t i = 0; i < offsetof(LedgerHead, writing); ++i)
                assert_int_not_equal(open_flipped(fd, memory, i), 0);
        for (size_t i = offsetof(LedgerHead, last_id); i < sizeof(LedgerHead); ++i)
                assert_int_equal(open_flipped(fd, memory, i), LEDGER_E_DAMAGED);

        for (unsigned kind = 0; kind < LEDGER_JOB; ++kind) {
                for (size_t i = 0; i < layout->tables[kind].n_bytes; ++i)
                        assert_int_equal(open_flipped(fd, memory, offset + i), LEDGER_E_DAMAGED);
                offset += (size_t)layout->tables[kind].n_bytes * layout->tables[kind].n_slots;
        }
        for (size_t i = 0; i < offsetof(LedgerJobSlot, end_order); ++i)
                assert_int_equal(open_flipped(fd, memory, offset + i), LEDGER_E_DAMAGED);
        for (size_t i = 0; i < offsetof(LedgerJobSlot, text) + 4; ++i)
                assert_int_equal(open_flipped(fd, memory, offset + sizeof(LedgerJobSlot) + i),
                                 LEDGER_E_DAMAGED);
        munmap(memory, n_bytes);
        close(fd);
        ledger_free(layout);
        free(bytes);
}

static void another_version_is_told_apart_from_damage(void **state) {
        Ledger *ledger = a_ledger(), *next;

        ledger->head->version = LEDGER_VERSION + 1;
        ledger->head->check =
                ledger_check(LEDGER_KINDS, 0, ledger->head, offsetof(LedgerHead, check));
        assert_int_equal(ledger_open(left_behind(ledger), &next), LEDGER_E_VERSION);
}

/* ---- half written ---------------------------------------------------------- */

static LedgerJobSlot *first_job(Ledger *ledger) {
        return (LedgerJobSlot *)(void *)ledger->tables[LEDGER_JOB].slots;
}

static void an_end_half_written_leaves_the_job_sent(void **state) {
        Ledger *ledger = a_ledger();
        LedgerJob job;

        ended(ledger, sent(ledger, 1), 1, "why");
        ledger_begin(ledger, LEDGER_JOB, 0);
        first_job(ledger)->end.ran_us++;
        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 1, &job));
        assert_int_equal(job.state, LEDGER_SENT);
        assert_int_equal(job.sent.is_sent, 1);
        assert_int_equal(job.sent.retries, 2);

        ended(ledger, job.slot, 1, NULL);
        ledger = next_supervisor(ledger);
        assert_true(ledger_find_job(ledger, 1, &job));
        assert_int_equal(job.state, LEDGER_ENDED);
        ledger_free(ledger);
}

static void a_sent_half_written_is_none(void **state) {
        Ledger *ledger = a_ledger();
        LedgerJob job;

        sent(ledger, 1);
        sent(ledger, 2);
        ledger_begin(ledger, LEDGER_JOB, 0);
        first_job(ledger)->sent.is_sent++;
        ledger = next_supervisor(ledger);
        assert_false(ledger_find_job(ledger, 1, &job));
        assert_true(ledger_find_job(ledger, 2, &job));
        assert_int_equal(sent(ledger, 3), 0); /* its room is used again */
        ledger_free(ledger);
}

static void any_other_record_half_written_is_none(void **state) {
        Ledger *ledger = a_ledger();
        LedgerSlot *at = (LedgerSlot *)(void *)ledger->tables[LEDGER_ARENA].slots;
        uint32_t slot = LEDGER_NONE;

        ledger_add(ledger, LEDGER_ARENA, &(LedgerArena){.id = 3});
        ledger_begin(ledger, LEDGER_ARENA, 0);
        at->record[0]++;
        ledger = next_supervisor(ledger);
        assert_null(ledger_next(ledger, LEDGER_ARENA, &slot));
        ledger_free(ledger);
}

static void a_number_half_written_is_not_given_again(void **state) {
        Ledger *ledger = a_ledger();

        ledger_note_id(ledger, LEDGER_ARENA, 41);
        ledger->head->writing = LEDGER_WRITING_COUNT;
        ledger->head->last_id[LEDGER_ARENA].value = 42;
        ledger = next_supervisor(ledger);
        assert_int_equal(ledger_last_id(ledger, LEDGER_ARENA), 42);
        ledger_free(ledger);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_and_numbers_are_there_for_the_next_supervisor),
                cmocka_unit_test(what_is_written_after_it_was_left_is_not_there),
                cmocka_unit_test(a_changed_record_is_there_once),
                cmocka_unit_test(a_job_is_unknown_sent_or_ended),
                cmocka_unit_test(a_job_that_waits_again_is_known_by_its_retries),
                cmocka_unit_test(jobs_come_in_the_order_in_which_they_were_sent),
                cmocka_unit_test(jobs_of_one_session_are_found_by_it),
                cmocka_unit_test(a_long_text_is_cut_and_whole_again),
                cmocka_unit_test(an_end_makes_room_only_once_it_was_read_of),
                cmocka_unit_test(ends_read_of_are_kept_for_a_while),
                cmocka_unit_test(clients_that_never_say_what_they_read_cost_the_oldest_ends),
                cmocka_unit_test(one_who_never_reads_costs_nobody_else_an_end),
                cmocka_unit_test(unread_ends_of_one_leave_records_for_others),
                cmocka_unit_test(subordinate_uids_share_their_owners_records),
                cmocka_unit_test(records_that_are_given_back_are_there_for_others),
                cmocka_unit_test(jobs_in_workers_never_make_room),
                cmocka_unit_test(a_count_beyond_what_was_told_is_ignored),
                cmocka_unit_test(one_cut_short_is_damaged),
                cmocka_unit_test(a_flipped_bit_is_seen_wherever_it_is),
                cmocka_unit_test(another_version_is_told_apart_from_damage),
                cmocka_unit_test(an_end_half_written_leaves_the_job_sent),
                cmocka_unit_test(a_sent_half_written_is_none),
                cmocka_unit_test(any_other_record_half_written_is_none),
                cmocka_unit_test(a_number_half_written_is_not_given_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

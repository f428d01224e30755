/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "duration.h"
#include "history.h"
#include "jobs.h"
#include "user.h"
#include "util/config.h"

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry);

static int lookup_error = ENOENT; /* 0: it is alice */
static unsigned n_lookups;

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry) {
        n_lookups++;
        *entry = (struct passwd){.pw_name = (char *)"alice", .pw_uid = uid, .pw_gid = 77};
        *ret_entry = lookup_error ? NULL : entry;
        return lookup_error;
}

static uid_t owner; /* of every uid without a name; 0: there is none */

int __wrap_subid_get_uid_owners(uid_t uid, uid_t **ret_owners);

int __wrap_subid_get_uid_owners(uid_t uid, uid_t **ret_owners) {
        if (!owner)
                return 0;
        *ret_owners = malloc(sizeof(**ret_owners));
        **ret_owners = owner;
        return 1;
}

static Config config = {
        .limits = {.weight = 1, .sessions = 2, .jobs = 10, .arena_bytes = 100},
        .gpu_window_s = 3600,
};

static Quota quotas[_USER_RESOURCE_N]; /* zeroed: nothing is divided */

static User *make_user(void) {
        LookupName nameless = {.naming = USER_NAMELESS};
        User *user;

        assert_int_equal(user_new(FAKE_UID, FAKE_UID, &nameless, &config, quotas, &user), 0);
        return user;
}

static void an_unknown_uid_is_its_own_name(void **state) {
        User *user = make_user();

        assert_string_equal(user->name, "4242");
        user_free(user);
}

/* Any failure of the name service counted as "no such user", for ever. */
static void a_lookup_that_failed_is_repeated(void **state) {
        ConfigUser alice = {.name = (char *)"alice", .limits = {.weight = 3}};
        Engine engine = {.config = &config, .now_ns = 1000};
        User *user;

        config.sections[CONFIG_USERS] = &alice;
        lookup_error = ETIMEDOUT;
        assert_int_equal(user_get(&engine, FAKE_UID, FAKE_UID, &user), 0);
        assert_string_equal(user->name, "4242");
        lookup_error = 0;
        engine.now_ns += USER_LOOK_UP_NS - 1;
        assert_false(user_is_awaited(&engine, FAKE_UID));
        assert_string_equal(user->name, "4242");
        engine.now_ns++;
        assert_false(user_is_awaited(&engine, FAKE_UID));
        assert_string_equal(user->name, "alice");
        assert_int_equal(user->gid, 77);
        assert_true(user->limits.weight == 3);

        n_lookups = 0;
        engine.now_ns = UINT64_MAX;
        assert_false(user_is_awaited(&engine, FAKE_UID));
        assert_int_equal(n_lookups, 0);
        jobs_fini(&engine);
        config.sections[CONFIG_USERS] = NULL;
        lookup_error = ENOENT;
}

static void an_unknown_uid_is_not_looked_up_again(void **state) {
        Engine engine = {.config = &config, .now_ns = 1000};
        User *user;

        assert_int_equal(user_get(&engine, FAKE_UID, FAKE_UID, &user), 0);
        n_lookups = 0;
        engine.now_ns = UINT64_MAX;
        assert_false(user_is_awaited(&engine, FAKE_UID));
        assert_int_equal(n_lookups, 0);
        jobs_fini(&engine);
}

static void what_is_over_a_limit_is_not_charged(void **state) {
        UserCharge first = {}, second = {};
        User *user = make_user();

        assert_int_equal(user_charge(user, &first, USER_ARENA_BYTES, 60), 0);
        assert_int_equal(user_charge(user, &second, USER_ARENA_BYTES, 41), USER_E_QUOTA);
        assert_int_equal(user_charge(user, &second, USER_ARENA_BYTES, UINT64_MAX), USER_E_QUOTA);
        assert_int_equal(user->used[USER_ARENA_BYTES], 60);
        assert_int_equal(user_charge(user, &second, USER_ARENA_BYTES, 40), 0);
        user_uncharge(&first);
        user_uncharge(&second);
        user_free(user);
}

static void undoing_a_charge_twice_is_harmless(void **state) {
        UserCharge first = {}, second = {};
        User *user = make_user();

        assert_int_equal(user_charge(user, &first, USER_JOBS, 1), 0);
        assert_int_equal(user_charge(user, &second, USER_JOBS, 1), 0);
        user_uncharge(&first);
        user_uncharge(&first);
        assert_int_equal(user->used[USER_JOBS], 1);
        user_uncharge(&second);
        user_free(user);
}

static void a_user_that_ends_with_a_charge_ends_the_program(void **state) {
        pid_t pid;
        int status;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                UserCharge charge = {};
                User *user = make_user();

                close(STDERR_FILENO);
                signal(SIGABRT, SIG_DFL);
                user_charge(user, &charge, USER_JOBS, 1);
                user_free(user);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void a_lower_limit_keeps_what_is_used(void **state) {
        UserCharge first = {}, second = {};
        User *user = make_user();
        Config less = config;

        assert_int_equal(user_charge(user, &first, USER_JOBS, 8), 0);
        less.limits.jobs = 5;
        user_configure(user, &less);
        assert_int_equal(user_charge(user, &second, USER_JOBS, 1), USER_E_QUOTA);
        user_uncharge(&first);
        assert_int_equal(user_charge(user, &second, USER_JOBS, 5), 0);
        user_uncharge(&second);
        user_free(user);
}

static void what_all_users_share_is_divided(void **state) {
        UserCharge first[64] = {}, second = {}, third = {};
        User *alice = make_user(), *bob = make_user();
        uint64_t n = 0;

        quota_init(&quotas[USER_ARENAS], 128);
        while (n < 64 && user_charge(alice, &first[n], USER_ARENAS, 1) == 0)
                n++;
        assert_int_equal(n, 128 / 4 + 1);
        assert_false(user_may_charge(alice, USER_ARENAS, 1));
        assert_int_equal(user_charge(bob, &second, USER_ARENAS, 16), 0);
        user_uncharge(&first[--n]);
        assert_false(user_may_charge(alice, USER_ARENAS, 1)); /* bob has some of it now */
        user_uncharge(&second);
        assert_true(user_may_charge(alice, USER_ARENAS, 1));
        assert_int_equal(user_charge(alice, &third, USER_ARENAS, 1), 0);

        user_uncharge(&third);
        while (n > 0)
                user_uncharge(&first[--n]);
        assert_int_equal(quotas[USER_ARENAS].taken, 0);
        quotas[USER_ARENAS] = (Quota){0};
        user_free(alice);
        user_free(bob);
}

static void the_error_tells_the_users_limit_from_what_all_share(void **state) {
        UserCharge charge = {};
        User *user = make_user();
        Failure *failure;

        assert_int_equal(user_charge(user, &charge, USER_ARENA_BYTES, 60), 0);
        failure = user_quota_failure(user, USER_ARENA_BYTES, 41);
        assert_string_equal(failure->text,
                            "over the limit arena_bytes of user 4242: 41 B requested, 60 B "
                            "of 100 B in use; see arena_bytes in gpuqd.conf");
        failure_free(failure);
        user_uncharge(&charge);

        quota_init(&quotas[USER_ARENAS], 128);
        assert_int_equal(user_charge(user, &charge, USER_ARENAS, 33), 0);
        failure = user_quota_failure(user, USER_ARENAS, 1);
        assert_string_equal(
                failure->text,
                "too few arenas are left for user 4242: 1 requested, 33 in use, at most 33 "
                "while all users have 33 of 128; free some, or try again later");
        failure_free(failure);
        user_uncharge(&charge);
        quotas[USER_ARENAS] = (Quota){0};
        user_free(user);
}

/* Eight uids of one person had eight times the limits of others. */
static void subordinate_uids_count_as_their_owner(void **state) {
        UserCharge first = {}, second = {}, third = {};
        User *person, *one, *two;
        Engine engine = {0};

        engine.config = &config;
        lookup_error = 0;
        assert_int_equal(user_get(&engine, 1000, 1000, &person), 0);
        lookup_error = ENOENT;
        owner = 1000;
        assert_int_equal(user_get(&engine, 100001, 100001, &one), 0);
        assert_int_equal(user_get(&engine, 100002, 100002, &two), 0);
        assert_ptr_equal(one->person, person);
        assert_ptr_equal(two->person, person);
        assert_string_equal(one->name, "100001 of alice");

        assert_int_equal(user_charge(one, &first, USER_JOBS, 6), 0);
        assert_int_equal(user_charge(two, &second, USER_JOBS, 5), USER_E_QUOTA);
        assert_int_equal(user_charge(two, &second, USER_JOBS, 4), 0);
        assert_int_equal(user_charge(person, &third, USER_JOBS, 1), USER_E_QUOTA);
        user_add_gpu_time(two, 100000000000ull, 1000);
        assert_true(user_window_seconds(person, 1000) > 99.9);

        user_uncharge(&first);
        user_uncharge(&second);
        owner = 0;
        jobs_fini(&engine);
}

/* A range of /etc/subuid that covers a real user takes nothing from that user. */
static void a_uid_with_a_name_is_a_person(void **state) {
        Engine engine = {0};
        User *user;

        engine.config = &config;
        lookup_error = 0;
        owner = 1000;
        assert_int_equal(user_get(&engine, 1001, 1001, &user), 0);
        assert_ptr_equal(user->person, user);
        owner = 0;
        lookup_error = ENOENT;
        jobs_fini(&engine);
}

/* Each of the 65,536 uids of a range stayed for ever. */
static void users_that_have_nothing_are_freed(void **state) {
        Engine engine = {0};
        User *person, *one;
        uint64_t now_ns = 1000;

        engine.config = &config;
        lookup_error = 0;
        assert_int_equal(user_get(&engine, 1000, 1000, &person), 0);
        lookup_error = ENOENT;
        owner = 1000;
        for (uid_t uid = 100000; uid < 100100; ++uid)
                assert_int_equal(user_get(&engine, uid, uid, &one), 0);
        owner = 0;
        assert_int_equal(HASH_COUNT(engine.users), 101);
        user_hold(one);
        user_add_gpu_time(one, 100000000000ull, now_ns);

        retire_users(&engine, now_ns);
        retire_users(&engine, now_ns + RETIRE_NS - 1);
        assert_int_equal(HASH_COUNT(engine.users), 101);
        now_ns += RETIRE_NS;
        retire_users(&engine, now_ns);
        assert_int_equal(HASH_COUNT(engine.users), 2); /* one that something points to */

        user_release(one);
        retire_users(&engine, ++now_ns);
        retire_users(&engine, now_ns += RETIRE_NS);
        assert_int_equal(HASH_COUNT(engine.users), 1); /* the person, who has used a device */
        assert_ptr_equal(engine.users, person);

        now_ns += 100 * person->half_life_ns;
        retire_users(&engine, now_ns);
        retire_users(&engine, now_ns + RETIRE_NS);
        assert_null(engine.users);
        jobs_fini(&engine);
}

/* In a user namespace one person can connect as 65,536 uids, each with a history of its own. */
static void a_person_has_few_subordinate_uids_at_once(void **state) {
        Engine engine = {0};
        User *person, *one;

        engine.config = &config;
        lookup_error = 0;
        assert_int_equal(user_get(&engine, 1000, 1000, &person), 0);
        lookup_error = ENOENT;
        owner = 1000;
        for (uid_t uid = 100000; uid < 101000; ++uid) {
                assert_int_equal(user_get(&engine, uid, uid, &one), 0);
                assert_true(retire_make_room(&engine, one, 1000));
                assert_in_range(HASH_COUNT(engine.users), 1, 1 + USER_PARTS_MAX);
        }

        for (uid_t uid = 200000; uid < 200000 + USER_PARTS_MAX; ++uid) {
                assert_int_equal(user_get(&engine, uid, uid, &one), 0);
                assert_true(retire_make_room(&engine, one, 1000));
                user_hold(one);
        }
        assert_int_equal(user_get(&engine, 300000, 300000, &one), 0);
        assert_false(retire_make_room(&engine, one, 1000));
        assert_int_equal(person->n_parts, USER_PARTS_MAX);
        assert_true(retire_make_room(&engine, person, 1000));
        assert_int_equal(user_get(&engine, 200000, 200000, &one), 0);
        assert_true(
                retire_make_room(&engine, one, 1000)); /* one more session of one that is there */

        user_release(one);
        assert_int_equal(user_get(&engine, 300000, 300000, &one), 0);
        assert_true(retire_make_room(&engine, one, 1000));
        for (uid_t uid = 200001; uid < 200000 + USER_PARTS_MAX; ++uid) {
                assert_int_equal(user_get(&engine, uid, uid, &one), 0);
                user_release(one);
        }
        owner = 0;
        jobs_fini(&engine);
}

/* Return: whether sessions and arenas leave descriptors for everything else. */
static bool leaves_descriptors(uint64_t n_files) {
        struct rlimit limit = {n_files, n_files};
        Quota parts[_USER_RESOURCE_N] = {0};
        uint64_t taken;

        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return false;
        resource_quotas_init(parts);
        taken = 2 * parts[USER_SESSIONS].capacity + parts[USER_ARENAS].capacity;
        return parts[USER_SESSIONS].capacity && parts[USER_ARENAS].capacity &&
               taken + MIN(n_files / 4, 128u) <= n_files;
}

/* Connections took all descriptors, and then nobody could connect or make an arena. */
static void sessions_and_arenas_leave_descriptors_whatever_the_limit(void **state) {
        const uint64_t limits[] = {4096, 1024, 512, 64}; /* a limit can only be lowered */
        int status;
        pid_t pid;

        pid = fork();
        if (pid == 0) {
                for (unsigned i = 0; i < ARRAY_SIZE(limits); i++)
                        if (!leaves_descriptors(limits[i]))
                                _exit(1 + (int)i);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void gpu_time_decays_over_the_window(void **state) {
        User *user = make_user();

        user_add_gpu_time(user, 100000000000ull, 1000);
        assert_true(user_window_seconds(user, 1000) > 99.9);
        assert_true(user_window_seconds(user, 1000 + user->window_ns) < 37);
        assert_int_equal(user->totals.gpu_ns, 100000000000ull);
        user_free(user);
}

static void a_steady_use_counts_as_it_is_in_one_window(void **state) {
        User *user = make_user();
        uint64_t now_ns = 0;

        while (now_ns < 10 * user->window_ns) { /* a tenth of the time */
                now_ns += 1000000000ull;
                user_add_gpu_time(user, 100000000ull, now_ns);
        }
        assert_true(user_window_seconds(user, now_ns) > 355);
        assert_true(user_window_seconds(user, now_ns) < 365);
        user_free(user);
}

static void over_the_limit_it_says_for_how_long(void **state) {
        User *user = make_user();
        uint64_t later_ns;

        user_add_gpu_time(user, 100000000000ull, 1000);
        assert_true(user_over_seconds(user, 1000) == 0); /* no limit */
        user->limits.gpu_seconds = 100;
        assert_true(user_over_seconds(user, 1000) == 0);
        user->limits.gpu_seconds = 50;
        later_ns = 1000 + (uint64_t)(user_over_seconds(user, 1000) * 1e9);
        assert_true(later_ns > 1000000000ull);
        assert_true(user_over_seconds(user, later_ns - 1000000000ull) > 0);
        assert_true(user_over_seconds(user, later_ns + 1000) == 0);
        user_free(user);
}

static void history_forgets_the_oldest_first(void **state) {
        char text[32];
        History *history;

        assert_int_equal(history_new(&history), 0);
        for (uint64_t id = 1; id <= 3 * HISTORY_MAX; ++id) {
                snprintf(text, sizeof(text), "text %u", (unsigned)id);
                history_add(history, &(HistoryEntry){.id = id, .state = JOB_FAILED, .text = text});
        }
        assert_null(history_find(history, 2 * HISTORY_MAX));
        assert_null(history_find(history, 3 * HISTORY_MAX + 1));
        for (uint64_t id = 2 * HISTORY_MAX + 1; id <= 3 * HISTORY_MAX; ++id) {
                const HistoryEntry *entry = history_find(history, id);

                assert_non_null(entry);
                snprintf(text, sizeof(text), "text %u", (unsigned)id);
                assert_string_equal(entry->text, text);
        }
        history_free(history);
}

/*
 * Ids that met in one bucket when the factor was known: each end then went through all of them.
 * By chance, 4,096 ids in 4,096 buckets, about 1 bucket in 10^15 has more than 16.
 */
static void history_has_short_chains_for_ids_that_a_client_chose(void **state) {
        uint64_t id = UINT64_C(5) << 32, known = UINT64_C(0x9e3779b97f4a7c15);
        History *history;

        assert_int_equal(history_new(&history), 0);
        for (unsigned i = 0; i < HISTORY_MAX; ++id)
                if (id * known >> 52 == 0) {
                        history_add(history, &(HistoryEntry){.id = id, .state = JOB_DONE});
                        i++;
                }
        assert_in_range(history_longest(history), 1, 17);
        history_free(history);
}

static void a_history_finds_the_jobs_of_a_class(void **state) {
        const HistoryEntry *entries[HISTORY_MAX];
        History *history;

        assert_int_equal(history_new(&history), 0);
        assert_int_equal(history_of_class(history, 7, JOB_DONE, entries), 0);
        history_add(history, &(HistoryEntry){.id = 1, .state = JOB_DONE, .times.class = 7});
        history_add(history, &(HistoryEntry){.id = 2, .state = JOB_FAILED, .times.class = 7});
        history_add(history, &(HistoryEntry){.id = 3, .state = JOB_DONE, .times.class = 8});
        assert_int_equal(history_of_class(history, 7, JOB_DONE, entries), 1);
        assert_int_equal(entries[0]->id, 1);
        for (uint64_t id = 4; id < 4 + HISTORY_MAX; ++id) /* the others are forgotten */
                history_add(history,
                            &(HistoryEntry){.id = id, .state = JOB_DONE, .times.class = 9});
        assert_int_equal(history_of_class(history, 7, JOB_DONE, entries), 0);
        assert_int_equal(history_of_class(history, 9, JOB_DONE, entries), HISTORY_MAX);
        history_free(history);
}

static void learn_alone(Duration *duration, uint64_t key, uint64_t ns) {
        duration_learn(duration, key, ns, 1, ns);
}

static void durations_are_learnt_by_class(void **state) {
        uint64_t add = duration_key(0, "add", 3), gemm = duration_key(0, "gemm", 4);
        Duration *duration;

        assert_int_equal(duration_new(&duration), 0);
        assert_int_equal(duration_expected(duration, add), DURATION_UNKNOWN_NS);
        learn_alone(duration, add, 20000);
        assert_int_equal(duration_expected(duration, add), 20000);
        assert_int_equal(duration_expected(duration, gemm), DURATION_UNKNOWN_NS);
        learn_alone(duration, add, 40000);
        assert_int_equal(duration_expected(duration, add), 25000);
        for (uint64_t i = 0; i < 2 * DURATION_MAX; ++i)
                learn_alone(duration, i, 1);
        assert_int_equal(duration_expected(duration, add), DURATION_UNKNOWN_NS);
        duration_free(duration);
}

/* 32 in flight, one ends every 5 us, each 160 us after it began. */
static void jobs_in_flight_together_count_a_part_each(void **state) {
        Duration *duration;

        assert_int_equal(duration_new(&duration), 0);
        for (unsigned i = 0; i < 100; ++i)
                duration_learn(duration, 1, 160000, 32, 5000);
        assert_in_range(duration_expected(duration, 1), 4900, 5000);

        /* They end in one launch, of all of which one hears in one moment. */
        for (unsigned i = 0; i < 320; ++i)
                duration_learn(duration, 1, 160000, 32, i % 32 ? 100 : 160000);
        assert_in_range(duration_expected(duration, 1), 4900, 5000);
        duration_free(duration);
}

static void a_short_job_stuck_behind_a_long_one_stays_short(void **state) {
        Duration *duration;

        assert_int_equal(duration_new(&duration), 0);
        learn_alone(duration, 1, 5000);
        duration_learn(duration, 1, 2000000000, 2, 10000);
        assert_in_range(duration_expected(duration, 1), 5000, 10000);
        duration_free(duration);
}

/* The driver may stand still for a while. */
static void a_class_is_not_long_for_one_job_that_was(void **state) {
        Duration *duration;

        assert_int_equal(duration_new(&duration), 0);
        for (unsigned i = 0; i < 10; ++i) {
                learn_alone(duration, 1, 5000);
                learn_alone(duration, 1, 2000000000);
                assert_int_equal(duration_expected(duration, 1), 5000);
        }

        /* But one that became long is known to be after the second. */
        learn_alone(duration, 1, 2000000000);
        assert_true(duration_expected(duration, 1) > 400000000);
        duration_free(duration);
}

/* Of those that end in one moment only the first says how long they took. */
static void a_class_that_became_long_is_known_to_be_though_its_jobs_end_together(void **state) {
        Duration *duration;

        assert_int_equal(duration_new(&duration), 0);
        learn_alone(duration, 1, 5000);
        for (unsigned i = 0; i < 32; ++i)
                duration_learn(duration, 1, 64000000, 32, i ? 0 : 64000000);
        assert_int_equal(duration_expected(duration, 1), 5000);
        for (unsigned i = 0; i < 32 * 20; ++i)
                duration_learn(duration, 1, 64000000, 32, i % 32 ? 0 : 64000000);
        assert_in_range(duration_expected(duration, 1), 1900000, 2000000);
        duration_free(duration);
}

/* Each device, and each subordinate uid, gave a user one more of everything. */
static void devices_and_subordinate_uids_share_their_persons_allowances(void **state) {
        Fake *fake = fake_new(2, NULL);
        Engine *engine = &fake->supervisor->engine;
        User *person, *one;
        Slot *first, *second, *third;
        unsigned n = 0;

        lookup_error = 0;
        assert_int_equal(user_get(engine, 1000, 1000, &person), 0);
        lookup_error = ENOENT;
        owner = 1000;
        assert_int_equal(user_get(engine, 100001, 100001, &one), 0);
        owner = 0;
        assert_ptr_equal(one->person, person);
        first = slot_get(engine, person, &engine->devices[0]);
        second = slot_get(engine, person, &engine->devices[1]);
        third = slot_get(engine, one, &engine->devices[0]);

        while (!slot_restart_ns(first, uv_hrtime()) && n++ < 100)
                slot_note_restart(n % 2 ? first : third);
        assert_true(n < 100);
        assert_true(slot_restart_ns(second, uv_hrtime()) > 0);
        assert_true(slot_restart_ns(third, uv_hrtime()) > 0);
        fake_free(fake);
}

/* Of 68 regions for all, one person with many subordinate uids could have each. */
static void subordinate_uids_share_their_persons_region(void **state) {
        Fake *fake = fake_new(1, (char *[]){"isolation=shared", "fence=yes", NULL});
        Engine *engine = &fake->supervisor->engine;
        FakeClient *person, *one;
        uint64_t first, second;

        lookup_error = 0;
        person = fake_client(fake, 1000);
        lookup_error = ENOENT;
        owner = 1000;
        one = fake_client(fake, 100001);
        owner = 0;
        first = arena_find(engine, fake_arena(person, GPUQ__V1__PLACE__DEVICE, 4096))->address;
        second = arena_find(engine, fake_arena(one, GPUQ__V1__PLACE__DEVICE, 4096))->address;
        assert_true(fixed_region_is(first) && fixed_region_is(second));
        assert_int_equal(fixed_region(first), fixed_region(second));
        fake_client_close(one);
        fake_client_close(person);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_unknown_uid_is_its_own_name),
                cmocka_unit_test(a_lookup_that_failed_is_repeated),
                cmocka_unit_test(an_unknown_uid_is_not_looked_up_again),
                cmocka_unit_test(what_is_over_a_limit_is_not_charged),
                cmocka_unit_test(undoing_a_charge_twice_is_harmless),
                cmocka_unit_test(a_user_that_ends_with_a_charge_ends_the_program),
                cmocka_unit_test(a_lower_limit_keeps_what_is_used),
                cmocka_unit_test(what_all_users_share_is_divided),
                cmocka_unit_test(the_error_tells_the_users_limit_from_what_all_share),
                cmocka_unit_test(subordinate_uids_count_as_their_owner),
                cmocka_unit_test(a_uid_with_a_name_is_a_person),
                cmocka_unit_test(devices_and_subordinate_uids_share_their_persons_allowances),
                cmocka_unit_test(subordinate_uids_share_their_persons_region),
                cmocka_unit_test(users_that_have_nothing_are_freed),
                cmocka_unit_test(a_person_has_few_subordinate_uids_at_once),
                cmocka_unit_test(sessions_and_arenas_leave_descriptors_whatever_the_limit),
                cmocka_unit_test(gpu_time_decays_over_the_window),
                cmocka_unit_test(a_steady_use_counts_as_it_is_in_one_window),
                cmocka_unit_test(over_the_limit_it_says_for_how_long),
                cmocka_unit_test(history_forgets_the_oldest_first),
                cmocka_unit_test(history_has_short_chains_for_ids_that_a_client_chose),
                cmocka_unit_test(a_history_finds_the_jobs_of_a_class),
                cmocka_unit_test(durations_are_learnt_by_class),
                cmocka_unit_test(jobs_in_flight_together_count_a_part_each),
                cmocka_unit_test(a_short_job_stuck_behind_a_long_one_stays_short),
                cmocka_unit_test(a_class_is_not_long_for_one_job_that_was),
                cmocka_unit_test(
                        a_class_that_became_long_is_known_to_be_though_its_jobs_end_together),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name service that is slow or never answers: who waits for it, and for how long.
 */
#include "fake.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "clients.h"
#include "jobs.h"

#define SLOW_UID  5000u /* this one and those above it wait for release() */
#define QUICK_UID 4000u

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry);
int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry);
int __wrap_getgrouplist(const char *name, gid_t own, gid_t *groups, int *n_groups);
int __wrap_subid_get_uid_owners(uid_t uid, uid_t **ret_owners);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool is_released;
static atomic_bool is_broken;
static unsigned n_asking, n_asked; /* of the slow ones */

static void ask_slowly(void) {
        pthread_mutex_lock(&lock);
        n_asked++;
        n_asking++;
        pthread_cond_broadcast(&cond);
        while (!is_released)
                pthread_cond_wait(&cond, &lock);
        n_asking--;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&lock);
}

/* SLOW_UID is alice; the uids above it have no name. */
int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry) {
        if (uid >= SLOW_UID)
                ask_slowly();
        *entry = (struct passwd){.pw_name = (char *)"alice", .pw_uid = uid, .pw_gid = 77};
        *ret_entry = uid <= SLOW_UID ? entry : NULL;
        return 0;
}

/* "slow" is one, and "broken" cannot be looked up while it is. */
int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry) {
        bool has_failed = is_broken && strcmp(name, "broken") == 0;

        if (strcmp(name, "slow") == 0)
                ask_slowly();
        *entry = (struct group){.gr_gid = 88};
        *ret_entry = has_failed ? NULL : entry;
        return has_failed ? EIO : 0;
}

int __wrap_getgrouplist(const char *name, gid_t own, gid_t *groups, int *n_groups) {
        if (*n_groups < 1) {
                *n_groups = 1;
                return -1;
        }
        *groups = own;
        return *n_groups = 1;
}

int __wrap_subid_get_uid_owners(uid_t uid, uid_t **ret_owners) {
        return 0;
}

/* Return: how many lookups there were. */
static unsigned release(void) {
        unsigned n;

        pthread_mutex_lock(&lock);
        is_released = true;
        pthread_cond_broadcast(&cond);
        while (n_asking)
                pthread_cond_wait(&cond, &lock);
        n = n_asked;
        pthread_mutex_unlock(&lock);
        return n;
}

static void wait_until_asked(unsigned n) {
        pthread_mutex_lock(&lock);
        while (n_asked < n)
                pthread_cond_wait(&cond, &lock);
        pthread_mutex_unlock(&lock);
}

static int begin(void **state) {
        pthread_mutex_lock(&lock);
        is_released = false;
        n_asked = 0;
        pthread_mutex_unlock(&lock);
        return 0;
}

static Clients *clients_of(const Fake *fake) {
        return &fake->supervisor->clients;
}

static Fake *serving_fake(char **settings) {
        Fake *fake = fake_new(0, settings);

        lookups_serve(fake->supervisor->engine.lookups);
        return fake;
}

/* Connected as through the listener. */
static FakeClient *arrive(Fake *fake, uint32_t uid) {
        FakeClient *client = calloc(1, sizeof(*client));
        Peer peer = {.uid = uid, .gid = uid, .pid = 1};
        int pair[2];

        assert_non_null(client);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                         0);
        client->fake = fake;
        client->fd = -1;
        assert_int_equal(wire_new(pair[1], true, &client->wire), 0);
        arrivals_add(clients_of(fake), pair[0], &peer);
        return client;
}

static void say_hello(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;

        hello.version_min = hello.version_max = 1;
        hello.client = "test";
        request.body_case = GPUQ__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        fake_send(client, &request);
}

static void expect_welcome(FakeClient *client) {
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_WELCOME);
}

static bool has_session(const Fake *fake, uid_t uid) {
        const Session *session;

        for (session = clients_of(fake)->sessions; session; session = session->hh.next)
                if (session->peer.uid == uid)
                        return true;
        return false;
}

/* As a tick does once their patience has ended. */
static void lose_patience(Fake *fake) {
        Engine *engine = &fake->supervisor->engine;

        do {
                clients_heed_answers(clients_of(fake));
                engine->now_ns = uv_hrtime() + LOOKUP_PATIENCE_NS;
                arrivals_run(clients_of(fake));
        } while (clients_of(fake)->arrivals.is_due);
        engine->now_ns = 0;
}

static User *user_of(const Fake *fake, uid_t uid) {
        User *user;

        HASH_FIND(hh, fake->supervisor->engine.users, &uid, sizeof(uid), user);
        return user;
}

static bool is_named(void *userdata) {
        return user_of(userdata, SLOW_UID)->naming == USER_NAMED;
}

static bool has_no_lookup(void *userdata) {
        const Fake *fake = userdata;

        for (uid_t uid = SLOW_UID; uid < SLOW_UID + LOOKUPS_MAX + 4; ++uid)
                if (lookups_is_awaited(fake->supervisor->engine.lookups, uid, 0))
                        return false;
        return !lookups_is_awaited(fake->supervisor->engine.lookups, LOOKUP_NAMES, 0);
}

/* A supervisor that ends during a lookup ends the program. */
static void end(Fake *fake, FakeClient **clients, size_t n_clients) {
        fake_wait(fake, has_no_lookup, fake);
        for (size_t i = 0; i < n_clients; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* ---- tests ----------------------------------------------------------------- */

/* The loop waited for the name service, and with it everybody. */
static void others_are_served_while_a_user_is_looked_up(void **state) {
        Fake *fake = serving_fake(NULL);
        FakeClient *clients[2] = {arrive(fake, SLOW_UID)};

        wait_until_asked(1);
        say_hello(clients[0]);
        clients[1] = arrive(fake, QUICK_UID);
        say_hello(clients[1]);
        expect_welcome(clients[1]);
        fake_submit(clients[1], (FakeJob){});
        assert_false(has_session(fake, SLOW_UID));
        assert_null(user_of(fake, SLOW_UID));

        release();
        expect_welcome(clients[0]);
        assert_string_equal(user_of(fake, SLOW_UID)->name, "alice");
        end(fake, clients, 2);
}

/* As a reload does. */
static const ConfigAdmission *allow(Fake *fake, const char *groups) {
        ConfigAdmission *admission = &fake->supervisor->config->admission;

        free(admission->allow_groups);
        admission->allow_groups = strdup(groups);
        assert_non_null(admission->allow_groups);
        supervisor_ask_names(fake->supervisor);
        return admission;
}

static bool is_known(void *userdata) {
        return !((const ConfigAdmission *)userdata)->is_unknown;
}

static bool is_asked_again_later(void *userdata) {
        return ((const Fake *)userdata)->supervisor->ask_names_ns != UINT64_MAX;
}

/* A reload waited for it, and with it everybody, until the keeper killed the supervisor. */
static void others_are_served_while_a_group_is_looked_up(void **state) {
        Fake *fake = serving_fake(NULL);
        const ConfigAdmission *admission = allow(fake, "quick slow");
        FakeClient *client;

        wait_until_asked(1);
        client = arrive(fake, QUICK_UID);
        say_hello(client);
        expect_welcome(client);
        assert_true(admission->is_unknown);

        allow(fake,
              "quick slow other"); /* another reload: its question waits for the first answer */
        release();
        fake_wait(fake, is_known, (void *)admission);
        assert_int_equal(admission->n_allowed, 3);
        assert_int_equal(admission->allowed[2], 88);
        end(fake, &client, 1);
}

static void a_lookup_of_groups_that_failed_is_made_again(void **state) {
        Fake *fake = serving_fake(NULL);
        const ConfigAdmission *admission;

        is_broken = true;
        admission = allow(fake, "quick broken");
        fake_wait(fake, is_asked_again_later, fake);
        assert_int_equal(admission->n_allowed, 1);
        assert_true(admission->is_unknown);

        is_broken = false;
        fake->supervisor->ask_names_ns = 0;
        fake_wait(fake, is_known, (void *)admission);
        assert_int_equal(admission->n_allowed, 2);

        is_broken = true; /* what was known of it holds */
        supervisor_ask_names(fake->supervisor);
        fake_wait(fake, is_asked_again_later, fake);
        assert_int_equal(admission->n_allowed, 2);
        assert_false(admission->is_unknown);
        is_broken = false;
        end(fake, NULL, 0);
}

static void without_an_answer_a_user_is_served_nameless_and_a_late_answer_counts(void **state) {
        Fake *fake = serving_fake(NULL);
        ConfigUser alice = {.name = (char *)"alice", .limits = {.weight = 3}};
        Config *config = fake->supervisor->config;
        FakeClient *clients[] = {arrive(fake, SLOW_UID), arrive(fake, SLOW_UID)};
        const User *user;

        config->sections[CONFIG_USERS] = &alice;
        wait_until_asked(1);
        lose_patience(fake);
        for (size_t i = 0; i < ARRAY_SIZE(clients); ++i) {
                say_hello(clients[i]);
                expect_welcome(clients[i]);
        }
        user = user_of(fake, SLOW_UID);
        assert_string_equal(user->name, "5000");
        assert_int_equal(user->naming, USER_NAME_UNKNOWN);
        assert_true(user->limits.weight == 1);

        assert_int_equal(release(), 1);
        fake_wait(fake, is_named, fake);
        assert_string_equal(user->name, "alice");
        assert_true(user->limits.weight == 3);
        config->sections[CONFIG_USERS] = NULL;
        end(fake, clients, 2);
}

/* However many never end, a uid waits no longer than any other, and those known do not wait at all. */
static void lookups_that_never_end_stop_nobody(void **state) {
        Fake *fake = serving_fake(NULL);
        FakeClient *clients[LOOKUPS_MAX + 4];
        size_t n = 0;

        clients[n++] = arrive(fake, QUICK_UID);
        say_hello(clients[0]);
        expect_welcome(clients[0]);
        while (n < LOOKUPS_MAX + 2) {
                clients[n] = arrive(fake, SLOW_UID + (uint32_t)n);
                n++;
        }
        wait_until_asked(LOOKUPS_MAX);
        clients[n++] = arrive(fake, QUICK_UID + 1); /* no thread is left for it */
        clients[n++] = arrive(fake, QUICK_UID);
        say_hello(clients[n - 1]);
        expect_welcome(clients[n - 1]);
        assert_false(has_session(fake, QUICK_UID + 1));

        lose_patience(fake);
        assert_int_equal(n, ARRAY_SIZE(clients));
        for (size_t i = 1; i < n - 1; ++i) {
                say_hello(clients[i]);
                expect_welcome(clients[i]);
        }
        assert_int_equal(release(), LOOKUPS_MAX);
        end(fake, clients, n);
}

static void connections_that_wait_are_bounded(void **state) {
        Fake *fake = serving_fake(NULL);
        static FakeClient *clients[ARRIVALS_MAX];
        Quota *quota = &clients_of(fake)->arrivals.quota;
        uint64_t most = quota_most(quota, 0);
        size_t n = 0;

        do
                clients[n] = arrive(fake, SLOW_UID);
        while (++n < ARRAY_SIZE(clients) && !has_session(fake, SLOW_UID));
        assert_in_range(n, 2, most + 1);
        fake_expect_error(clients[n - 1], GPUQ__V1__CODE__E_QUOTA, "who uid 5000 is");
        clients[n++] = arrive(fake, SLOW_UID + 1); /* its part is not taken */
        assert_false(has_session(fake, SLOW_UID + 1));
        release();
        for (size_t i = 0; i < n; ++i)
                if (i != n - 2) {
                        say_hello(clients[i]);
                        expect_welcome(clients[i]);
                }
        assert_int_equal(quota->taken, 0);
        end(fake, clients, n);
}

static void on_answer(void *userdata) {
        ++*(unsigned *)userdata;
}

static void the_end_does_not_wait_for_a_lookup(void **state) {
        unsigned n_answers = 0;
        Lookups *lookups;
        uv_loop_t loop;

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(lookups_new(&loop, on_answer, &n_answers, &lookups), 0);
        lookups_ask(lookups, SLOW_UID, true, 1);
        wait_until_asked(1);
        assert_true(lookups_close(lookups));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
        release();
        assert_int_equal(n_answers, 0);
}

/* The takeover makes users, and must not ask a dead service about each of them in turn. */
static void before_clients_are_served_all_waits_together_are_bounded(void **state) {
        unsigned n_answers = 0;
        LookupAnswer answer;
        Lookups *lookups;
        uv_loop_t loop;

        assert_int_equal(uv_loop_init(&loop), 0);
        assert_int_equal(lookups_new(&loop, on_answer, &n_answers, &lookups), 0);
        lookups_ask(lookups, QUICK_UID, true, 1);
        lookups_await(lookups, QUICK_UID);
        assert_true(lookups_take(lookups, QUICK_UID, &answer));
        assert_string_equal(answer.self.name, "alice");
        assert_int_equal(answer.self.n_groups, 1);
        lookup_answer_clear(&answer);

        lookups_ask(lookups, SLOW_UID, false, 1);
        lookups_serve(lookups); /* nothing is left */
        lookups_await(lookups, SLOW_UID);
        assert_false(lookups_take(lookups, SLOW_UID, &answer));
        release();
        while (!n_answers || !lookups_take(lookups, SLOW_UID, &answer))
                uv_run(&loop, UV_RUN_ONCE);
        assert_null(answer.self.groups);
        lookup_answer_clear(&answer);
        assert_false(lookups_close(lookups));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(others_are_served_while_a_user_is_looked_up),
                TEST(others_are_served_while_a_group_is_looked_up),
                TEST(a_lookup_of_groups_that_failed_is_made_again),
                TEST(without_an_answer_a_user_is_served_nameless_and_a_late_answer_counts),
                TEST(lookups_that_never_end_stop_nobody),
                TEST(connections_that_wait_are_bounded),
                TEST(the_end_does_not_wait_for_a_lookup),
                TEST(before_clients_are_served_all_waits_together_are_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

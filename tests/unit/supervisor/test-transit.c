/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transit: clients that ask for descriptors and do not read them, and the keeper that is behind.
 */
#include "fake.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper_link.h"
#include "proto/pass.h"
#include "transit.h"

#define OTHER_UID (FAKE_UID + 1)

/* ---- helpers --------------------------------------------------------------- */

static void ask(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        create.place = GPUQ__V1__PLACE__HOST;
        create.size = 4096;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake_send(client, &request);
}

static uint64_t in_transit(const Fake *fake) {
        return fake->supervisor->engine.quotas[USER_TRANSIT_FDS].taken;
}

static unsigned lingering(const Fake *fake) {
        return transits_count(fake->supervisor->clients.transits);
}

static uint64_t sessions(const Fake *fake) {
        return fake->supervisor->engine.quotas[USER_SESSIONS].taken;
}

static unsigned n_arenas(const Fake *fake) {
        return HASH_COUNT(fake->supervisor->engine.arenas.by_id);
}

/* Of one reply. Return: whether there was one. */
static bool read_one(FakeClient *client) {
        WireFrame frame;
        int r;

        r = wire_next(client->wire, &frame);
        if (r != 0 && wire_receive(client->wire) == 0)
                r = wire_next(client->wire, &frame);
        if (r == 0)
                close(frame.fd);
        return r == 0;
}

static size_t read_all(FakeClient *client) {
        size_t n = 0;

        do
                for (; read_one(client); n++)
                        ;
        while ((fake_turn(client->fake), read_one(client) && ++n));
        return n;
}

/* All replies arrive as descriptors; none is read. */
static FakeClient *client_with_unread(Fake *fake, unsigned n) {
        FakeClient *client = fake_client(fake, FAKE_UID);

        for (unsigned i = 0; i < n; ++i)
                ask(client);
        return client;
}

static bool session_is_gone(void *userdata) {
        const FakeClient *client = userdata;

        return !session_find(&client->fake->supervisor->clients, client->session);
}

static void end_session(FakeClient *client) {
        shutdown(wire_fd(client->wire), SHUT_WR);
        fake_wait(client->fake, session_is_gone, client);
}

/* ---- a connection ---------------------------------------------------------- */

static void what_is_read_is_not_charged(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);

        ask(client);
        assert_int_equal(in_transit(fake), 1);
        assert_true(read_one(client));
        fake_turn(fake);
        assert_int_equal(in_transit(fake), 0);
        fake_client_close(client);
        fake_free(fake);
}

static void requests_wait_behind_many_unread_replies(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *greedy = client_with_unread(fake, 3 * TRANSIT_MAX);
        FakeClient *other = fake_client(fake, OTHER_UID);
        size_t n_read;

        assert_int_equal(in_transit(fake), TRANSIT_MAX);
        assert_int_equal(n_arenas(fake), TRANSIT_MAX);
        fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);

        for (n_read = 0; n_read < 3 * TRANSIT_MAX;)
                n_read += read_all(greedy);
        fake_turn(fake);
        assert_int_equal(in_transit(fake), 0);
        assert_int_equal(n_arenas(fake), 3 * TRANSIT_MAX + 1);
        fake_client_close(greedy);
        fake_client_close(other);
        fake_free(fake);
}

/* Whoever looked first took the kernel's report away, and the requests waited for ever. */
static void
requests_go_on_though_the_supervisor_has_looked_before_the_kernel_reports(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *greedy = client_with_unread(fake, 2 * TRANSIT_MAX);
        Session *session = session_find(&fake->supervisor->clients, greedy->session);

        for (unsigned i = 0; i < TRANSIT_MAX; ++i)
                assert_true(read_one(greedy));
        assert_false(transit_is_full(session->transit));
        fake_turn(fake);
        assert_int_equal(n_arenas(fake), 2 * TRANSIT_MAX);
        assert_int_equal(read_all(greedy), TRANSIT_MAX);
        fake_client_close(greedy);
        fake_free(fake);
}

static void a_ring_is_held_up_as_well(void **state) {
        char *settings[] = {"poll_us=50", NULL};
        Fake *fake = fake_new(1, settings);
        FakeClient *greedy = fake_client(fake, FAKE_UID);
        size_t n_read;

        fake_ring(greedy);
        for (unsigned i = 0; i < 2 * TRANSIT_MAX; ++i)
                ask(greedy);
        assert_int_equal(n_arenas(fake), TRANSIT_MAX);
        for (n_read = 0; n_read < 2 * TRANSIT_MAX;)
                n_read += read_all(greedy);
        assert_int_equal(n_arenas(fake), 2 * TRANSIT_MAX);
        fake_client_close(greedy);
        fake_free(fake);
}

static void a_client_that_is_held_up_and_dies_leaves_nothing(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *greedy = client_with_unread(fake, 2 * TRANSIT_MAX);

        assert_int_equal(in_transit(fake), TRANSIT_MAX);
        fake_client_close(greedy);
        fake_turn(fake);
        assert_null(fake->supervisor->clients.sessions);
        assert_int_equal(in_transit(fake), 0);
        assert_int_equal(lingering(fake), 0);
        fake_free(fake);
}

/* ---- a user ---------------------------------------------------------------- */

static void a_user_takes_no_more_than_a_share(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *first, *second, *other;
        Quota *quota = &fake->supervisor->engine.quotas[USER_TRANSIT_FDS];

        quota_init(quota, QUOTA_PARTS); /* 1 guaranteed, and at most 32 + 1 for the first */
        first = client_with_unread(fake, TRANSIT_MAX);
        assert_int_equal(in_transit(fake), 33);
        second = fake_client(fake, FAKE_UID);
        ask(second);
        fake_expect_error(second, GPUQ__V1__CODE__E_QUOTA,
                          "has 33 unread replies with a descriptor");
        assert_int_equal(n_arenas(fake), 33);

        other = fake_client(fake, OTHER_UID);
        fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);
        assert_int_equal(read_all(first), TRANSIT_MAX);
        fake_arena(second, GPUQ__V1__PLACE__HOST, 4096);
        fake_client_close(first);
        fake_client_close(second);
        fake_client_close(other);
        fake_free(fake);
}

/* ---- afterwards ------------------------------------------------------------ */

static void a_socket_with_something_unread_counts_until_it_is_read(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_unread(fake, 3);

        end_session(client);
        fake_turn(fake);
        assert_int_equal(lingering(fake), 1);
        assert_int_equal(in_transit(fake), 3);
        assert_int_equal(sessions(fake), 1);
        assert_int_equal(n_arenas(fake), 0);

        assert_int_equal(read_all(client), 3);
        fake_turn(fake);
        assert_int_equal(lingering(fake), 0);
        assert_int_equal(in_transit(fake), 0);
        assert_int_equal(sessions(fake), 0);
        fake_client_close(client);
        fake_free(fake);
}

static void a_socket_counts_as_long_as_a_copy_of_its_other_end_is_open(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_unread(fake, 3);
        int copy = dup(wire_fd(client->wire));

        end_session(client);
        fake_client_close(client);
        assert_int_equal(lingering(fake), 1);
        assert_int_equal(in_transit(fake), 3);
        close(copy);
        fake_turn(fake);
        assert_int_equal(lingering(fake), 0);
        assert_int_equal(in_transit(fake), 0);
        fake_free(fake);
}

static void sockets_that_linger_use_up_their_users_sessions_only(void **state) {
        char *settings[] = {"sessions=4", NULL};
        Fake *fake = fake_new(1, settings);
        FakeClient *clients[4], *refused, *other;

        for (unsigned i = 0; i < 4; ++i) {
                clients[i] = client_with_unread(fake, 1);
                end_session(clients[i]);
        }
        assert_int_equal(lingering(fake), 4);
        refused = fake_client_raw(fake, FAKE_UID, false);
        fake_expect_error(refused, GPUQ__V1__CODE__E_QUOTA, "sessions");
        other = fake_client(fake, OTHER_UID);
        fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);
        fake_client_close(other);
        fake_client_close(refused);

        fake_client_close(clients[0]);
        fake_turn(fake);
        assert_int_equal(lingering(fake), 3);
        fake_client_close(fake_client(fake, FAKE_UID));
        for (unsigned i = 1; i < 4; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
}

/* fake_free() asserts that nothing is charged, and a leak checker that nothing is left. */
static void a_supervisor_that_ends_leaves_sockets_that_linger(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = client_with_unread(fake, 3);

        end_session(client);
        assert_int_equal(lingering(fake), 1);
        fake_client_close(client_with_unread(fake, 0));
        fake_stop(fake);
        fake_start(fake, NULL);
        fake_begin(fake);
        fake_client_close(client);
        fake_free(fake);
}

/* ---- the keeper ------------------------------------------------------------ */

static void fill_keeper(Fake *fake, FakeClient *client) {
        fake->is_deaf = true;
        while (keeper_link_has_sent(fake->supervisor->engine.keeper,
                                    keeper_link_position(fake->supervisor->engine.keeper))) {
                ask(client);
                read_all(client);
        }
}

/* Replies to everybody waited, as long as anybody's arena did. */
static void replies_that_name_no_new_arena_do_not_wait_for_the_keeper(void **state) {
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Fake *fake = fake_new(1, NULL);
        FakeClient *greedy = fake_client(fake, FAKE_UID), *other = fake_client(fake, OTHER_UID);
        uint64_t id = fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);
        Gpuq__V1__ArenaOpen open = GPUQ__V1__ARENA_OPEN__INIT;

        fill_keeper(fake, greedy);
        request.body_case = GPUQ__V1__REQUEST__BODY_STATUS_GET;
        request.status_get = &get;
        fake_send(other, &request);
        assert_true(read_one(other));
        open.arena = id;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_OPEN;
        request.arena_open = &open;
        fake_send(other, &request);
        assert_true(read_one(other));

        ask(other);
        assert_false(read_one(other));
        fake->is_deaf = false;
        fake_turn(fake);
        assert_true(read_one(other));
        assert_int_equal(read_all(greedy), 1);
        fake_client_close(greedy);
        fake_client_close(other);
        fake_free(fake);
}

static void a_connection_has_one_arena_at_most_that_waits_for_the_keeper(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *greedy = fake_client(fake, FAKE_UID);
        unsigned n_before;

        fill_keeper(fake, greedy);
        n_before = n_arenas(fake);
        for (unsigned i = 0; i < 20; ++i)
                ask(greedy);
        assert_int_equal(n_arenas(fake), n_before);
        fake->is_deaf = false;
        fake_turn(fake);
        assert_int_equal(read_all(greedy), 21);
        fake_client_close(greedy);
        fake_free(fake);
}

/* ---- the kernel refuses ---------------------------------------------------- */

#define SOMEBODY  54322
#define FILES_MAX 256

static void fill_kernel(int socket) {
        ssize_t n;

        do
                n = pass_send(socket, "", 1, &(int){STDERR_FILENO}, 1);
        while (n == 1);
        assert_int_equal(n, -ETOOMANYREFS);
}

static int held = -1; /* until somebody waits */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout) {
        if (!fds && held >= 0) {
                close(held);
                held = -1;
        }
        return __real_poll(fds, n, timeout);
}

/* What clients of an earlier supervisor have not read leaves less to divide. */
static void what_is_unread_of_others_is_measured(void **state) {
        struct rlimit before;
        int unread[2];

        if (geteuid() != 0)
                skip();
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, unread), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES_MAX, before.rlim_max});
        assert_int_equal(setresuid(SOMEBODY, SOMEBODY, 0), 0);

        assert_int_equal(transit_room_measure(FILES_MAX), FILES_MAX);
        for (unsigned i = 0; i < 100; ++i)
                assert_int_equal(pass_send(unread[0], "", 1, &(int){STDERR_FILENO}, 1), 1);
        assert_in_range(transit_room_measure(FILES_MAX), FILES_MAX - 100, FILES_MAX - 90);
        fill_kernel(unread[0]);
        assert_in_range(transit_room_measure(FILES_MAX), 1, 10);
        close(unread[0]);
        held = unread[1]; /* as by another supervisor that measures, too, and is done soon */
        assert_int_equal(transit_room_measure(FILES_MAX), FILES_MAX);
        assert_int_equal(held, -1);

        assert_int_equal(setresuid(0, 0, 0), 0);
        setrlimit(RLIMIT_NOFILE, &before);
}

static bool link_has_sent(void *userdata) {
        const KeeperLink *link = userdata;

        return keeper_link_has_sent(link, keeper_link_position(link));
}

static uint32_t next_kind(int keeper) {
        KeeperMessage message;
        size_t n_fds;
        int fd = -1;

        if (pass_receive(keeper, &message, sizeof(message), &fd, 1, &n_fds) != sizeof(message))
                return 0;
        if (n_fds)
                close(fd);
        return message.kind;
}

/* The supervisor was killed after 30 s, since its status waited behind a descriptor; so was the next one. */
static void the_link_to_the_keeper_outlasts_refusals(void **state) {
        KeeperMessage status = {.kind = KEEPER_STATUS};
        struct rlimit before;
        unsigned n_turns;
        uint64_t began_ns;
        KeeperLink *link;
        Fake *fake;
        int full[2];

        if (geteuid() != 0)
                skip();
        fake = fake_new(1, NULL);
        link = fake->supervisor->engine.keeper;
        fake->is_deaf = true;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, full), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES_MAX, before.rlim_max});
        assert_int_equal(setresuid(SOMEBODY, SOMEBODY, 0), 0);
        fill_kernel(full[0]);

        keeper_link_keep(link, "a-key", STDERR_FILENO);
        assert_false(link_has_sent(link));
        assert_int_equal(keeper_link_send(link, &status, NULL, 0), 0);
        assert_int_equal(next_kind(fake->keeper), KEEPER_STATUS);
        began_ns = uv_hrtime();
        for (n_turns = 0; uv_hrtime() - began_ns < 5 * KEEPER_LINK_RETRY_MS * 1000000ull; n_turns++)
                uv_run(fake->supervisor->engine.loop, UV_RUN_ONCE);
        assert_in_range(n_turns, 1, 100); /* it waits for a timer; a busy loop has thousands */
        assert_false(link_has_sent(link));

        close(full[0]);
        close(full[1]);
        fake_wait(fake, link_has_sent, link);
        assert_int_equal(setresuid(0, 0, 0), 0);
        setrlimit(RLIMIT_NOFILE, &before);
        assert_int_equal(next_kind(fake->keeper), KEEPER_KEEP);
        fake->is_deaf = false;
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_read_is_not_charged),
                cmocka_unit_test(requests_wait_behind_many_unread_replies),
                cmocka_unit_test(
                        requests_go_on_though_the_supervisor_has_looked_before_the_kernel_reports),
                cmocka_unit_test(a_ring_is_held_up_as_well),
                cmocka_unit_test(a_client_that_is_held_up_and_dies_leaves_nothing),
                cmocka_unit_test(a_user_takes_no_more_than_a_share),
                cmocka_unit_test(a_socket_with_something_unread_counts_until_it_is_read),
                cmocka_unit_test(a_socket_counts_as_long_as_a_copy_of_its_other_end_is_open),
                cmocka_unit_test(sockets_that_linger_use_up_their_users_sessions_only),
                cmocka_unit_test(a_supervisor_that_ends_leaves_sockets_that_linger),
                cmocka_unit_test(replies_that_name_no_new_arena_do_not_wait_for_the_keeper),
                cmocka_unit_test(what_is_unread_of_others_is_measured),
                cmocka_unit_test(the_link_to_the_keeper_outlasts_refusals),
                cmocka_unit_test(a_connection_has_one_arena_at_most_that_waits_for_the_keeper),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scarcity: what the supervisor does when memory or a system call is refused in the
 * middle of a change.
 */
#include "fake.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session.h"
#include "supervisor.h"
#include "worker.h"

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd);
int __real_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb);
int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb);

static bool is_memory_refused;
static unsigned n_memory_before_one_fails; /* 0: none does */
static unsigned n_polls_before_one_fails;  /* 0: none does */

static bool memory_fails(void) {
        return is_memory_refused || (n_memory_before_one_fails && --n_memory_before_one_fails == 0);
}

void *__wrap_malloc(size_t n) {
        return memory_fails() ? NULL : __real_malloc(n);
}

/* What a compiler makes of malloc() and memset(). */
void *__wrap_calloc(size_t n, size_t size) {
        return memory_fails() ? NULL : __real_calloc(n, size);
}

static bool poll_fails(void) {
        return n_polls_before_one_fails && --n_polls_before_one_fails == 0;
}

int __wrap_uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd) {
        return poll_fails() ? UV_EMFILE : __real_uv_poll_init(loop, poll, fd);
}

int __wrap_uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb cb) {
        return poll_fails() ? UV_EMFILE : __real_uv_poll_start(poll, events, cb);
}

static unsigned n_descriptors(void) {
        unsigned n = 0;
        DIR *folder;

        folder = opendir("/proc/self/fd");
        assert_non_null(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

/* worker_init_handles() and worker_listen() make two each. */
static void a_worker_that_cannot_be_watched_leaves_no_descriptor(void **state) {
        Fake *fake = fake_new(1, NULL);
        unsigned n_before = n_descriptors();
        Worker *worker;

        for (unsigned i = 1; i <= 4; ++i) {
                n_polls_before_one_fails = i;
                assert_int_equal(worker_new_probe(&fake->supervisor->workers, NULL, &worker),
                                 UV_EMFILE);
                assert_int_equal(n_polls_before_one_fails, 0);
                fake_turn(fake);
                assert_int_equal(n_descriptors(), n_before);
        }
        assert_null(fake->supervisor->workers.table);
        fake_free(fake);
}

/* Its old number did not go back into the table either, and closing it took it out once more. */
static void a_session_whose_new_number_finds_no_room_ends_well(void **state) {
        Fake *fake = fake_new(1, NULL);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Session *session = fake->supervisor->clients.sessions;

        is_memory_refused = true;
        assert_int_equal(session_rename(session, client->session + 1), -ENOMEM);
        is_memory_refused = false;
        assert_null(fake->supervisor->clients.sessions);
        session_close(session);
        fake_client_close(client);
        fake_free(fake);
}

/* One without an order was taken out of its user's list, in which it had never been. */
static void a_session_that_finds_no_memory_ends_well(void **state) {
        Peer peer = {.uid = FAKE_UID, .gid = FAKE_UID};
        Fake *fake = fake_new(1, NULL);
        int pair[2], r;

        for (unsigned i = 1; i <= 16; ++i) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
                n_memory_before_one_fails = i;
                r = session_new(&fake->supervisor->clients, pair[0], &peer, NULL);
                n_memory_before_one_fails = 0;
                if (r < 0)
                        close(pair[0]);
                else
                        clients_close(&fake->supervisor->clients);
                close(pair[1]);
                fake_turn(fake);
        }
        assert_null(fake->supervisor->clients.sessions);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_worker_that_cannot_be_watched_leaves_no_descriptor),
                cmocka_unit_test(a_session_that_finds_no_memory_ends_well),
                cmocka_unit_test(a_session_whose_new_number_finds_no_room_ends_well),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

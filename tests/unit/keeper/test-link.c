/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link: messages and descriptors to and from a supervisor, also a broken one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/link.h"

typedef struct Pair {
        Link *link;
        int peer;
} Pair;

static Pair pair_new(void) {
        Pair pair;

        assert_int_equal(link_new(&pair.link, &pair.peer), 0);
        return pair;
}

static void pair_end(Pair *pair) {
        link_free(pair->link);
        if (pair->peer >= 0)
                close(pair->peer);
}

static unsigned count_fds(void) {
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void peer_send(Pair *pair, const void *data, size_t n, unsigned n_fds) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
        struct iovec iov = {.iov_base = (void *)data, .iov_len = n};
        struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
        int fd = memfd_create("passed", MFD_CLOEXEC); /* closed at once where it is not wanted */

        if (n_fds) {
                struct cmsghdr *cmsg = (struct cmsghdr *)control;

                header.msg_control = control;
                header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                for (unsigned i = 0; i < n_fds; i++)
                        memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(int));
        }
        assert_int_equal(sendmsg(pair->peer, &header, 0), (ssize_t)n);
        close(fd);
}

static void message_and_descriptors_arrive(void **state) {
        KeeperMessage message = {.kind = KEEPER_SPAWN, .id = 7}, got;
        int fds[KEEPER_N_FDS];
        Pair pair = pair_new();
        unsigned n_fds;

        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_AGAIN);
        memset(message.text, 'x', sizeof(message.text));
        peer_send(&pair, &message, sizeof(message), KEEPER_N_FDS);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), 0);
        assert_int_equal(got.id, 7);
        assert_int_equal(strlen(got.text), sizeof(got.text) - 1);
        assert_int_equal(n_fds, KEEPER_N_FDS);
        for (unsigned i = 0; i < n_fds; i++) {
                assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
                close(fds[i]);
        }

        peer_send(&pair, &message, sizeof(message), 0);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), 0);
        assert_int_equal(n_fds, 0);
        assert_int_equal(fds[0], -1);
        close(pair.peer);
        pair.peer = -1;
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_CLOSED);
        pair_end(&pair);
}

/* The kernel tells that with a reset first. */
static void what_it_said_arrives_though_it_died_with_something_unread(void **state) {
        KeeperMessage message = {.kind = KEEPER_KEEP, .id = 7}, got;
        int fds[KEEPER_N_FDS];
        Pair pair = pair_new();
        unsigned n_fds;

        assert_int_equal(link_queue(pair.link, &message, -1), 0);
        assert_true(link_flush(pair.link) >= 0);
        peer_send(&pair, &message, sizeof(message), 1);
        close(pair.peer);
        pair.peer = -1;
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), 0);
        assert_int_equal(got.id, 7);
        assert_int_equal(n_fds, 1);
        close(fds[0]);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_CLOSED);
        pair_end(&pair);
}

static void packets_of_another_size_or_with_more_descriptors_are_broken(void **state) {
        char bytes[sizeof(KeeperMessage) + 1] = {};
        unsigned n_before = count_fds(), n_fds;
        int fds[KEEPER_N_FDS];
        KeeperMessage got;
        Pair pair = pair_new();

        peer_send(&pair, bytes, 1, 1);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_BROKEN);
        peer_send(&pair, bytes, sizeof(bytes), 0);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_BROKEN);
        peer_send(&pair, bytes, sizeof(KeeperMessage), KEEPER_N_FDS + 1);
        assert_int_equal(link_receive(pair.link, &got, fds, &n_fds), LINK_E_BROKEN);
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

static void supervisor_that_does_not_read_delays_nobody(void **state) {
        unsigned n_before = count_fds(), n_sent = 2000;
        KeeperMessage message = {.kind = KEEPER_EXITED}, got;
        Pair pair = pair_new();
        unsigned n = 0;

        for (unsigned i = 0; i < n_sent; i++) {
                message.id = i;
                assert_int_equal(link_queue(pair.link, &message, i % 100 ? -1 : 0), 0);
        }
        assert_true(link_is_waiting(pair.link));
        assert_int_equal(link_flush(pair.link), LINK_E_AGAIN);

        while (n < n_sent) {
                if (recv(pair.peer, &got, sizeof(got), MSG_DONTWAIT) < 0) {
                        assert_true(link_flush(pair.link) >= 0);
                        continue;
                }
                assert_int_equal(got.id, n);
                n++;
        }
        assert_false(link_is_waiting(pair.link));
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

static void what_waits_is_closed_with_the_link(void **state) {
        unsigned n_before = count_fds();
        KeeperMessage message = {.kind = KEEPER_HELD};
        Pair pair = pair_new();

        for (unsigned i = 0; i < 400; i++)
                assert_int_equal(link_queue(pair.link, &message, 0), 0);
        assert_true(link_is_waiting(pair.link));
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(message_and_descriptors_arrive),
                cmocka_unit_test(what_it_said_arrives_though_it_died_with_something_unread),
                cmocka_unit_test(packets_of_another_size_or_with_more_descriptors_are_broken),
                cmocka_unit_test(supervisor_that_does_not_read_delays_nobody),
                cmocka_unit_test(what_waits_is_closed_with_the_link),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

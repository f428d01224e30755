/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors sent and not read: each counts until the peer has read it or is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/pass.h"
#include "proto/gpuq.pb-c.h"
#include "proto/unread.h"
#include "proto/wire.h"

typedef struct Pair {
        int ours;
        int peer;
        Unread unread;
} Pair;

static Pair pair_new(void) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        return (Pair){.ours = fds[0], .peer = fds[1]};
}

static void pair_close(Pair *pair) {
        close(pair->ours);
        if (pair->peer >= 0)
                close(pair->peer);
}

static void send_some(Pair *pair, size_t n_bytes, bool with_fd) {
        char data[64] = {};

        assert_int_equal(pass_send(pair->ours, data, n_bytes, &(int){STDERR_FILENO}, with_fd),
                         n_bytes);
        unread_note(&pair->unread, with_fd);
}

/* One sendmsg() of the other side, at most. */
static void read_some(Pair *pair) {
        char data[64];
        size_t n_fds;
        int fd = -1;

        assert_true(pass_receive(pair->peer, data, sizeof(data), &fd, 1, &n_fds) > 0);
        if (n_fds)
                close(fd);
}

static unsigned look(Pair *pair) {
        return unread_look(&pair->unread, pair->ours);
}

static void nothing_counts_that_has_no_descriptor(void **state) {
        Pair pair = pair_new();

        send_some(&pair, 64, false);
        assert_int_equal(look(&pair), 0);
        pair_close(&pair);
}

static void a_descriptor_counts_until_it_is_read(void **state) {
        Pair pair = pair_new();

        for (unsigned i = 1; i <= 3; ++i) {
                send_some(&pair, 8, true);
                assert_int_equal(look(&pair), i);
        }
        read_some(&pair);
        read_some(&pair);
        assert_in_range(look(&pair), 1, 3);
        read_some(&pair);
        assert_int_equal(look(&pair), 0);
        send_some(&pair, 8, true);
        assert_int_equal(look(&pair), 1);
        pair_close(&pair);
}

/* What waits without a descriptor may be much, and be sent before it or after it. */
static void one_among_many_messages_counts_until_it_is_read(void **state) {
        Pair pair = pair_new();

        for (unsigned i = 0; i < 20; ++i)
                send_some(&pair, 1, false);
        send_some(&pair, 1, true);
        for (unsigned i = 0; i < 20; ++i)
                send_some(&pair, 1, false);
        for (char byte, i = 0; i < 20; ++i)
                assert_int_equal(read(pair.peer, &byte, 1), 1);
        assert_int_equal(look(&pair), 1);
        read_some(&pair); /* the kernel gives what is behind a descriptor another time */
        for (char byte; look(&pair);)
                assert_int_equal(read(pair.peer, &byte, 1), 1);
        assert_int_equal(look(&pair), 0);
        assert_true(read(pair.peer, &(char){0}, 1) == 1); /* all of it did not have to be read */
        pair_close(&pair);
}

static void a_peer_that_is_gone_reads_nothing_and_keeps_nothing(void **state) {
        Pair pair = pair_new();
        int copy;

        send_some(&pair, 8, true);
        copy = dup(pair.peer);
        close(pair.peer);
        pair.peer = -1;
        assert_int_equal(look(&pair), 1);
        shutdown(pair.ours, SHUT_RDWR);
        assert_int_equal(look(&pair), 1);
        close(copy);
        assert_int_equal(look(&pair), 0);
        pair_close(&pair);
}

/* ---- over the limit -------------------------------------------------------- */

#define SOMEBODY  54321
#define FILES_MAX 64

/* Root is not limited. */
static struct rlimit become_somebody(void) {
        struct rlimit before;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES_MAX, before.rlim_max}), 0);
        assert_int_equal(setresuid(SOMEBODY, SOMEBODY, 0), 0);
        return before;
}

static void become_root(struct rlimit before) {
        assert_int_equal(setresuid(0, 0, 0), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void fill(Pair *pair) {
        ssize_t n;

        do
                n = pass_send(pair->ours, "", 1, &(int){STDERR_FILENO}, 1);
        while (n == 1);
        assert_int_equal(n, -ETOOMANYREFS);
}

/* It ended the connection. */
static void a_wire_waits_while_the_kernel_refuses_descriptors(void **state) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Pair full = pair_new(), pair = pair_new();
        struct rlimit before;
        Wire *wire;

        if (geteuid() != 0)
                skip();
        reply.serial = 1;
        assert_int_equal(wire_new(dup(pair.ours), false, &wire), 0);
        before = become_somebody();
        fill(&full);
        assert_int_equal(wire_queue(wire, &reply.base, STDERR_FILENO), 0);
        assert_int_equal(wire_flush(wire), WIRE_E_AGAIN);
        assert_true(wire_is_refused(wire));
        assert_false(wire_wants_socket(wire)); /* there is room in it: a poll would not wait */
        assert_int_equal(wire_unread_fds(wire), 1);

        pair_close(&full);
        assert_int_equal(wire_flush(wire), 0);
        assert_false(wire_is_refused(wire));
        become_root(before);
        read_some(&pair);
        assert_int_equal(wire_unread_fds(wire), 0);
        wire_free(wire);
        pair_close(&pair);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_counts_that_has_no_descriptor),
                cmocka_unit_test(a_descriptor_counts_until_it_is_read),
                cmocka_unit_test(one_among_many_messages_counts_until_it_is_read),
                cmocka_unit_test(a_wire_waits_while_the_kernel_refuses_descriptors),
                cmocka_unit_test(a_peer_that_is_gone_reads_nothing_and_keeps_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

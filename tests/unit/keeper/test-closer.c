/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closer: what is closed is closed, and nobody waits for what is slow to close.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/closer.h"

#define LINGER_S 1000
#define ALARM_S  60u /* ends a test that waits for a slow descriptor */

/* Return: one end of a pipe, whose other end has ended once it is closed. */
static int open_pipe(int *ret_other) {
        int fds[2];

        assert_return_code(pipe(fds), errno);
        *ret_other = fds[0];
        return fds[1];
}

static bool has_ended(int other) {
        struct pollfd poll_fd = {.fd = other, .events = POLLIN};

        assert_return_code(poll(&poll_fd, 1, 0), errno);
        return poll_fd.revents & POLLHUP;
}

static void await_end(int other) {
        struct pollfd poll_fd = {.fd = other, .events = POLLIN};

        assert_int_equal(poll(&poll_fd, 1, (int)ALARM_S * 1000), 1);
        assert_true(poll_fd.revents & POLLHUP);
        close(other);
}

/* One end of a TCP connection that takes LINGER_S to close, or until its peer is closed. */
static int open_slow(int *ret_peer) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
        socklen_t n_address = sizeof(address);
        int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
        static char bytes[1 << 16];

        assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof(address)), errno);
        assert_return_code(listen(listener, 1), errno);
        assert_return_code(getsockname(listener, (struct sockaddr *)&address, &n_address), errno);
        assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof(address)), errno);
        *ret_peer = accept(listener, NULL, NULL);
        assert_return_code(*ret_peer, errno);
        close(listener);
        while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
                ;
        assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
        return fd;
}

static void all_are_closed_before_it_ends(void **state) {
        Closer *closer = NULL;
        int others[100];

        assert_int_equal(closer_new(1000, &closer), 0);
        for (unsigned i = 0; i < 100; i++)
                closer_close(closer, open_pipe(&others[i]));
        await_end(others[0]);
        closer_free(closer);
        for (unsigned i = 1; i < 100; i++)
                await_end(others[i]);
}

static void nobody_waits_for_what_is_slow(void **state) {
        Closer *closer = NULL;
        int peer, other;

        assert_int_equal(closer_new(2, &closer), 0);
        alarm(ALARM_S);
        closer_close(closer, open_slow(&peer));
        alarm(0);

        /* Behind it there is room for one more. */
        closer_close(closer, open_pipe(&other));
        assert_false(has_ended(other));
        close(peer);
        await_end(other);
        closer_free(closer);
}

static void what_there_is_no_room_for_is_closed_at_once(void **state) {
        Closer *closer = NULL;
        int other;

        assert_int_equal(closer_new(0, &closer), 0);
        closer_close(closer, open_pipe(&other));
        assert_true(has_ended(other));
        close(other);
        closer_close(NULL, open_pipe(&other));
        assert_true(has_ended(other));
        close(other);
        closer_free(closer);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_are_closed_before_it_ends),
                cmocka_unit_test(nobody_waits_for_what_is_slow),
                cmocka_unit_test(what_there_is_no_room_for_is_closed_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel: both ends in one process, descriptors in order, no wake-up lost.
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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/channel.h"

static unsigned n_refused; /* calls of send() for which the kernel has no memory */

ssize_t __real_send(int fd, const void *data, size_t n_bytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n_bytes, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t n_bytes, int flags) {
        if (!n_refused)
                return __real_send(fd, data, n_bytes, flags);
        n_refused--;
        errno = ENOBUFS;
        return -1;
}

typedef struct Ends {
        Channel *a;
        Channel *b;
} Ends;

static Ends ends_new(void) {
        Ends ends = {};
        int fds[CHANNEL_N_FDS];

        assert_int_equal(channel_new(&ends.a, fds), 0);
        assert_int_equal(channel_adopt(fds, &ends.b), 0);
        return ends;
}

static void ends_end(Ends *ends) {
        channel_free(ends->b);
        channel_free(ends->a);
}

static int send_number(Channel *channel, uint64_t number, int fd) {
        return channel_send(channel, (const uint8_t *)&number, sizeof(number), fd);
}

static uint64_t packed_number(const uint8_t *data, size_t n_data) {
        uint64_t number;

        assert_int_equal(n_data, sizeof(number));
        memcpy(&number, data, sizeof(number));
        return number;
}

static void assert_receives(Channel *channel, uint64_t number) {
        const uint8_t *data;
        size_t n_data;

        assert_int_equal(channel_receive(channel, &data, &n_data), 0);
        assert_int_equal(packed_number(data, n_data), number);
}

static unsigned count_fds(void) {
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static bool is_readable(int fd) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents & POLLIN;
}

static void messages_go_both_ways(void **state) {
        unsigned n_before = count_fds();
        Ends ends = ends_new();
        const uint8_t *data;
        size_t n_data;

        assert_int_equal(channel_receive(ends.b, &data, &n_data), CHANNEL_E_AGAIN);
        assert_int_equal(send_number(ends.a, 1, -1), 0);
        assert_int_equal(send_number(ends.b, 2, -1), 0);
        assert_int_equal(send_number(ends.a, 3, -1), 0);
        assert_receives(ends.b, 1);
        assert_receives(ends.b, 3);
        assert_receives(ends.a, 2);
        assert_int_equal(channel_receive(ends.a, &data, &n_data), CHANNEL_E_AGAIN);
        ends_end(&ends);
        assert_int_equal(count_fds(), n_before);
}

static void message_without_content_arrives(void **state) {
        Ends ends = ends_new();
        const uint8_t *data;
        size_t n_data = 1;

        assert_int_equal(channel_send(ends.a, NULL, 0, -1), 0);
        assert_int_equal(channel_receive(ends.b, &data, &n_data), 0);
        assert_int_equal(n_data, 0);
        ends_end(&ends);
}

static void descriptors_keep_the_order_of_their_messages(void **state) {
        Ends ends = ends_new();
        int pipes[3][2];

        for (unsigned i = 0; i < 3; i++) {
                assert_return_code(pipe(pipes[i]), errno);
                assert_int_equal(send_number(ends.a, 2 * i, -1), 0);
                assert_int_equal(send_number(ends.a, 2 * i + 1, pipes[i][1]), 0);
        }
        for (unsigned i = 0; i < 3; i++) {
                char byte = 0;
                int fd;

                assert_receives(ends.b, 2 * i);
                assert_receives(ends.b, 2 * i + 1);
                fd = channel_take_fd(ends.b);
                assert_true(fd >= 0);
                assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
                assert_int_equal(write(fd, "x", 1), 1);
                assert_int_equal(read(pipes[i][0], &byte, 1), 1);
                close(fd);
                close(pipes[i][0]);
                close(pipes[i][1]);
        }
        assert_int_equal(channel_take_fd(ends.b), -1);
        ends_end(&ends);
}

static void socket_full_of_descriptors_says_again_and_rings_later(void **state) {
        Ends ends = ends_new();
        const uint8_t *data;
        size_t n_data;
        uint64_t n = 0;
        int r;

        while ((r = send_number(ends.a, n, 0)) == 0)
                n++;
        assert_int_equal(r, CHANNEL_E_AGAIN);
        assert_in_range(n, 8, 32); /* unread, they count against the sender */
        channel_wake(ends.a);
        assert_true(channel_sleep(ends.a));
        assert_false(is_readable(channel_bell_fd(ends.a)));

        for (uint64_t i = 0; i < n; i++) {
                assert_receives(ends.b, i);
                close(channel_take_fd(ends.b));
        }
        assert_int_equal(channel_receive(ends.b, &data, &n_data), CHANNEL_E_AGAIN);
        assert_true(is_readable(channel_bell_fd(ends.a)));
        assert_int_equal(send_number(ends.a, n, 0), 0);
        ends_end(&ends);
}

static void full_ring_says_again_and_rings_later(void **state) {
        static uint8_t image[1 << 20];
        Ends ends = ends_new();
        const uint8_t *data;
        size_t n_data;
        int r;

        while ((r = channel_send(ends.a, image, sizeof(image), -1)) == 0)
                ;
        assert_int_equal(r, CHANNEL_E_AGAIN);
        while ((r = channel_receive(ends.b, &data, &n_data)) == 0)
                assert_int_equal(n_data, sizeof(image));
        assert_int_equal(r, CHANNEL_E_AGAIN);
        assert_true(is_readable(channel_bell_fd(ends.a)));
        assert_int_equal(channel_send(ends.a, image, sizeof(image), -1), 0);
        ends_end(&ends);
}

static void message_larger_than_the_ring_is_refused(void **state) {
        uint8_t *image = calloc(1, CHANNEL_CAPACITY);
        Ends ends = ends_new();

        assert_int_equal(channel_send(ends.a, image, CHANNEL_CAPACITY, 0), -EMSGSIZE);
        assert_int_equal(channel_take_fd(ends.b), -1);
        assert_int_equal(send_number(ends.a, 1, -1), 0);
        assert_receives(ends.b, 1);
        free(image);
        ends_end(&ends);
}

/* Flags belong to what both sides may hold: it could make a call block that is not to. */
static void no_call_blocks_whatever_flags_the_other_side_sets(void **state) {
        int fds[CHANNEL_N_FDS];
        Channel *a, *b;

        assert_int_equal(channel_new(&a, fds), 0);
        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i)
                assert_return_code(fcntl(fds[i], F_SETFL, O_APPEND), errno);
        assert_int_equal(channel_adopt(fds, &b), 0);

        (void)alarm(20);
        assert_int_equal(channel_wake(a), 0);
        assert_int_equal(channel_take_fd(a), -1);
        for (unsigned i = 0; i < 2000; ++i) { /* rings, and nobody answers the bell */
                (void)channel_sleep(b);
                assert_int_equal(send_number(a, i, -1), 0);
        }
        (void)alarm(0);
        channel_free(b);
        channel_free(a);
}

static void bell_of_another_side_that_is_gone_says_so(void **state) {
        Ends ends = ends_new();

        ends.b = channel_free(ends.b);
        assert_int_equal(channel_wake(ends.a), CHANNEL_E_CLOSED);
        ends_end(&ends);
}

static void bell_rings_only_for_a_sleeper(void **state) {
        Ends ends = ends_new();

        assert_int_equal(send_number(ends.a, 1, -1), 0);
        assert_false(is_readable(channel_bell_fd(ends.b)));
        assert_false(channel_sleep(ends.b));
        assert_receives(ends.b, 1);
        assert_true(channel_is_watched(ends.a));
        assert_true(channel_sleep(ends.b));
        assert_false(channel_is_watched(ends.a));
        assert_int_equal(send_number(ends.a, 2, -1), 0);
        assert_true(channel_is_watched(ends.a));
        assert_true(is_readable(channel_bell_fd(ends.b)));
        channel_wake(ends.b);
        assert_false(is_readable(channel_bell_fd(ends.b)));
        assert_receives(ends.b, 2);
        ends_end(&ends);
}

/* The other side slept for ever then. */
static void bell_that_the_kernel_refused_rings_before_the_ringer_sleeps(void **state) {
        Ends ends = ends_new();

        assert_true(channel_sleep(ends.b));
        n_refused = 2;
        assert_int_equal(send_number(ends.a, 1, -1), 0);
        assert_false(channel_sleep(ends.a));
        assert_false(is_readable(channel_bell_fd(ends.b)));
        assert_true(channel_sleep(ends.a));
        assert_true(is_readable(channel_bell_fd(ends.b)));
        channel_wake(ends.b);
        assert_receives(ends.b, 1);
        ends_end(&ends);
}

static void other_side_that_is_gone_is_noticed(void **state) {
        Ends ends = ends_new();
        struct pollfd poll_fd = {.fd = channel_socket_fd(ends.a)};

        ends.b = channel_free(ends.b);
        assert_int_equal(poll(&poll_fd, 1, 1000), 1);
        assert_true(poll_fd.revents & POLLHUP);
        assert_int_equal(send_number(ends.a, 1, 0), CHANNEL_E_CLOSED);
        ends_end(&ends);
}

/* … and no message. */
static void send_lone_fd(Channel *channel, int fd) {
        union {
                char bytes[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } control = {};
        char byte = 0;
        struct iovec iov = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control.bytes,
                .msg_controllen = sizeof(control.bytes),
        };
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);

        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
        assert_int_equal(sendmsg(channel_socket_fd(channel), &message, 0), 1);
}

static void descriptors_without_messages_are_closed(void **state) {
        unsigned n_before = count_fds();
        Ends ends = ends_new();

        for (unsigned i = 0; i < 40; ++i)
                assert_int_equal(send_number(ends.a, i, -1), 0);
        for (unsigned i = 0; i < 10; ++i)
                send_lone_fd(ends.a, 0);
        for (unsigned i = 0; i < 40; ++i)
                assert_receives(ends.b, i);
        ends_end(&ends);
        assert_int_equal(count_fds(), n_before);
}

static void writer_is_told_of_room_by_a_reader_that_falls_asleep(void **state) {
        static uint8_t image[CHANNEL_CAPACITY - 4096];
        Ends ends = ends_new();
        const uint8_t *data;
        size_t n_data;

        assert_int_equal(channel_send(ends.a, image, sizeof(image), -1), 0);
        assert_int_equal(channel_send(ends.a, image, sizeof(image), -1), CHANNEL_E_AGAIN);
        assert_int_equal(channel_receive(ends.b, &data, &n_data), 0);
        assert_false(is_readable(channel_bell_fd(ends.a)));
        assert_true(channel_sleep(ends.b));
        assert_true(is_readable(channel_bell_fd(ends.a)));
        assert_int_equal(channel_send(ends.a, image, sizeof(image), -1), 0);
        ends_end(&ends);
}

static void memory_that_could_shrink_or_is_short_is_not_adopted(void **state) {
        int fds[CHANNEL_N_FDS], other;
        Channel *a, *b = NULL;
        struct stat st;

        assert_int_equal(channel_new(&a, fds), 0);
        assert_return_code(fstat(fds[0], &st), errno);
        assert_int_equal(ftruncate(fds[0], 4096), -1);

        other = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_return_code(ftruncate(other, st.st_size), errno);
        assert_int_equal(channel_adopt((int[]){other, fds[1], fds[2]}, &b), -EINVAL);
        assert_return_code(ftruncate(other, 4096), errno);
        assert_return_code(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), errno);
        assert_int_equal(channel_adopt((int[]){other, fds[1], fds[2]}, &b), -EINVAL);
        assert_null(b);
        close(other);

        assert_int_equal(channel_adopt(fds, &b), 0);
        channel_free(b);
        channel_free(a);
}

#define N_MESSAGES 50000u

static void channel_wait(Channel *channel) {
        struct pollfd poll_fd = {.fd = channel_bell_fd(channel), .events = POLLIN};

        if (channel_sleep(channel))
                assert_int_equal(poll(&poll_fd, 1, 10000), 1);
        channel_wake(channel);
}

static void *echo(void *argument) {
        Channel *channel = argument;

        for (uint64_t i = 0; i < N_MESSAGES;) {
                const uint8_t *data;
                size_t n_data;
                int r = channel_receive(channel, &data, &n_data);

                if (r == CHANNEL_E_AGAIN) {
                        channel_wait(channel);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_int_equal(packed_number(data, n_data), i);
                assert_int_equal(send_number(channel, i, -1), 0);
                i++;
        }
        return NULL;
}

/* One at a time, so that each side sleeps before each message: a lost wake-up would hang. */
static void no_wake_up_is_lost_between_two_threads(void **state) {
        Ends ends = ends_new();
        const uint8_t *data;
        pthread_t thread;
        size_t n_data;
        int r;

        assert_int_equal(pthread_create(&thread, NULL, echo, ends.b), 0);
        for (uint64_t i = 0; i < N_MESSAGES; i++) {
                assert_int_equal(send_number(ends.a, i, -1), 0);
                while ((r = channel_receive(ends.a, &data, &n_data)) == CHANNEL_E_AGAIN)
                        channel_wait(ends.a);
                assert_int_equal(r, 0);
                assert_int_equal(packed_number(data, n_data), i);
        }
        pthread_join(thread, NULL);
        ends_end(&ends);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(messages_go_both_ways),
                cmocka_unit_test(message_without_content_arrives),
                cmocka_unit_test(descriptors_keep_the_order_of_their_messages),
                cmocka_unit_test(socket_full_of_descriptors_says_again_and_rings_later),
                cmocka_unit_test(full_ring_says_again_and_rings_later),
                cmocka_unit_test(message_larger_than_the_ring_is_refused),
                cmocka_unit_test(no_call_blocks_whatever_flags_the_other_side_sets),
                cmocka_unit_test(bell_of_another_side_that_is_gone_says_so),
                cmocka_unit_test(bell_rings_only_for_a_sleeper),
                cmocka_unit_test(bell_that_the_kernel_refused_rings_before_the_ringer_sleeps),
                cmocka_unit_test(other_side_that_is_gone_is_noticed),
                cmocka_unit_test(descriptors_without_messages_are_closed),
                cmocka_unit_test(writer_is_told_of_room_by_a_reader_that_falls_asleep),
                cmocka_unit_test(memory_that_could_shrink_or_is_short_is_not_adopted),
                cmocka_unit_test(no_wake_up_is_lost_between_two_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

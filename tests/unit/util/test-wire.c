/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire: frames over a socket pair, whole and broken.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"

typedef struct Pair {
        Wire *wire;
        int peer;
} Pair;

static Pair pair_new(bool accept_fds) {
        int fds[2];
        Pair pair = {};

        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), errno);
        assert_int_equal(wire_new(fds[0], accept_fds, &pair.wire), 0);
        pair.peer = fds[1];
        return pair;
}

static void pair_end(Pair *pair) {
        wire_free(pair->wire);
        if (pair->peer >= 0)
                close(pair->peer);
}

/* For a second Wire at the other end. */
static int pair_take_peer(Pair *pair) {
        int peer = pair->peer;

        pair->peer = -1;
        return peer;
}

static void peer_send(Pair *pair, const void *data, size_t n) {
        assert_int_equal(send(pair->peer, data, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void peer_send_with_fds(Pair *pair, const void *data, size_t n, const int *fds,
                               unsigned n_fds) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(32 * sizeof(int))] = {};
        struct iovec iov = {.iov_base = (void *)data, .iov_len = n};
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)),
        };
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);

        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        assert_int_equal(sendmsg(pair->peer, &message, MSG_NOSIGNAL), (ssize_t)n);
}

static int wire_receive_and_next(Wire *wire, WireFrame *frame) {
        int r = wire_receive(wire);

        return r ? r : wire_next(wire, frame);
}

static void assert_problem(Pair *pair, const char *problem) {
        WireFrame frame;
        int r;

        r = wire_receive(pair->wire);
        if (r == 0)
                r = wire_next(pair->wire, &frame);
        assert_int_equal(r, WIRE_E_PROTOCOL);
        assert_string_equal(wire_problem(pair->wire), problem);
        assert_int_equal(wire_receive(pair->wire), WIRE_E_PROTOCOL);
        assert_int_equal(wire_next(pair->wire, &frame), WIRE_E_PROTOCOL);
}

static unsigned count_fds(void) {
        unsigned n = 0;

        for (int fd = 0; fd < 256; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static Gpuq__V1__Error error_message(char *text) {
        Gpuq__V1__Error message = GPUQ__V1__ERROR__INIT;

        message.code = GPUQ__V1__CODE__E_QUOTA;
        message.text = text;
        return message;
}

static void message_arrives_whole(void **state) {
        Pair pair = pair_new(true);
        Gpuq__V1__Error message = error_message("too much"), *got;
        WireFrame frame;
        Wire *other;

        assert_int_equal(wire_new(pair_take_peer(&pair), false, &other), 0);
        assert_int_equal(wire_queue(other, &message.base, -1), 0);
        assert_true(wire_pending(other) > WIRE_HEADER_BYTES);
        assert_int_equal(wire_flush(other), 0);
        assert_int_equal(wire_pending(other), 0);

        assert_int_equal(wire_receive_and_next(pair.wire, &frame), 0);
        assert_int_equal(frame.fd, -1);
        got = gpuq__v1__error__unpack(NULL, frame.n_data, frame.data);
        assert_non_null(got);
        assert_string_equal(got->text, "too much");
        gpuq__v1__error__free_unpacked(got, NULL);
        assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_AGAIN);
        assert_int_equal(wire_receive(pair.wire), WIRE_E_AGAIN);

        wire_free(other);
        assert_int_equal(wire_receive(pair.wire), WIRE_E_CLOSED);
        pair_end(&pair);
}

static void frame_split_byte_by_byte_arrives(void **state) {
        static const uint8_t bytes[] = {3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
        Pair pair = pair_new(false);
        WireFrame frame;

        for (size_t i = 0; i < sizeof(bytes); i++) {
                peer_send(&pair, &bytes[i], 1);
                assert_int_equal(wire_receive(pair.wire), 0);
                assert_int_equal(wire_next(pair.wire, &frame),
                                 i + 1 < sizeof(bytes) ? WIRE_E_AGAIN : 0);
        }
        assert_int_equal(frame.n_data, 3);
        assert_memory_equal(frame.data, "abc", 3);
        pair_end(&pair);
}

static void many_frames_in_one_read_come_in_turn(void **state) {
        static const uint8_t bytes[] = {1, 0, 0, 0, 0, 0, 0, 0,   'a', 2,
                                        0, 0, 0, 0, 0, 0, 0, 'b', 'c'};
        Pair pair = pair_new(false);
        WireFrame frame;

        peer_send(&pair, bytes, sizeof(bytes));
        assert_int_equal(wire_receive(pair.wire), 0);
        assert_int_equal(wire_next(pair.wire, &frame), 0);
        assert_memory_equal(frame.data, "a", 1);
        assert_int_equal(wire_next(pair.wire, &frame), 0);
        assert_memory_equal(frame.data, "bc", 2);
        assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_AGAIN);
        pair_end(&pair);
}

static void largest_frame_arrives_and_one_byte_more_does_not(void **state) {
        size_t n_text = WIRE_FRAME_MAX - 16;
        char *text = malloc(n_text + 1);
        Gpuq__V1__Error message = error_message(text);
        Pair pair = pair_new(true);
        WireFrame frame;
        Wire *other;
        int r = 0;

        assert_non_null(text);
        memset(text, 'x', n_text);
        text[n_text] = '\0';
        wire_set_frame_max(pair.wire, WIRE_FRAME_MAX);
        assert_int_equal(wire_new(pair_take_peer(&pair), false, &other), 0);
        assert_int_equal(wire_queue(other, &message.base, -1), 0);
        do {
                if (wire_pending(other))
                        assert_true(wire_flush(other) >= 0);
                r = wire_receive(pair.wire);
                assert_int_equal(r, 0);
                r = wire_next(pair.wire, &frame);
        } while (r == WIRE_E_AGAIN);
        assert_int_equal(r, 0);
        assert_int_equal(frame.n_data, gpuq__v1__error__get_packed_size(&message));
        assert_int_equal(frame.data[frame.n_data - 1], 'x');
        assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_AGAIN);
        wire_free(other);
        pair_end(&pair);

        text = realloc(text, WIRE_FRAME_MAX + 1);
        memset(text, 'x', WIRE_FRAME_MAX);
        text[WIRE_FRAME_MAX] = '\0';
        message.text = text;
        pair = pair_new(false);
        assert_int_equal(wire_queue(pair.wire, &message.base, -1), -EMSGSIZE);
        assert_int_equal(wire_pending(pair.wire), 0);
        pair_end(&pair);
        free(text);
}

static void frame_too_long_is_told_from_its_header(void **state) {
        static const uint8_t bytes[] = {1, 0x10, 0, 0, 0, 0, 0, 0};
        Pair pair = pair_new(false);

        peer_send(&pair, bytes, sizeof(bytes));
        assert_problem(&pair, "a frame that is too long");
        pair_end(&pair);
}

static void longest_hello_is_taken(void **state) {
        uint8_t bytes[WIRE_HEADER_BYTES + WIRE_HELLO_MAX] = {0, 0x10};
        Pair pair = pair_new(false);
        WireFrame frame;

        peer_send(&pair, bytes, sizeof(bytes));
        assert_int_equal(wire_receive_and_next(pair.wire, &frame), 0);
        assert_int_equal(frame.n_data, WIRE_HELLO_MAX);
        pair_end(&pair);
}

static void empty_frame_is_a_protocol_error(void **state) {
        static const uint8_t bytes[8] = {};
        Pair pair = pair_new(false);

        peer_send(&pair, bytes, sizeof(bytes));
        assert_problem(&pair, "an empty frame");
        pair_end(&pair);
}

static void reserved_bytes_are_a_protocol_error(void **state) {
        for (size_t i = 5; i < 8; i++) {
                uint8_t bytes[] = {1, 0, 0, 0, 0, 0, 0, 0, 'a'};
                Pair pair = pair_new(true);

                bytes[i] = 1;
                peer_send(&pair, bytes, sizeof(bytes));
                assert_problem(&pair, "reserved bytes that are not zero");
                pair_end(&pair);
        }
}

static void frame_cut_short_is_a_protocol_error(void **state) {
        static const uint8_t bytes[] = {3, 0, 0, 0, 0, 0, 0, 0, 'a'};

        for (size_t n = 1; n <= sizeof(bytes); n++) {
                Pair pair = pair_new(false);
                WireFrame frame;

                peer_send(&pair, bytes, n);
                assert_int_equal(wire_receive_and_next(pair.wire, &frame), WIRE_E_AGAIN);
                close(pair.peer);
                pair.peer = -1;
                assert_problem(&pair, "a truncated frame");
                pair_end(&pair);
        }
}

static void descriptor_arrives_with_its_frame(void **state) {
        Gpuq__V1__Error message = error_message("with");
        unsigned n_before = count_fds();
        Pair pair = pair_new(true);
        WireFrame frame;
        Wire *other;
        int pipes[2][2];

        assert_int_equal(wire_new(pair_take_peer(&pair), false, &other), 0);
        for (int i = 0; i < 2; i++)
                assert_return_code(pipe(pipes[i]), errno);
        assert_int_equal(wire_queue(other, &message.base, -1), 0);
        assert_int_equal(wire_queue(other, &message.base, pipes[0][1]), 0);
        assert_int_equal(wire_queue(other, &message.base, -1), 0);
        assert_int_equal(wire_queue(other, &message.base, pipes[1][1]), 0);
        assert_int_equal(wire_flush(other), 0);

        for (int i = 0; i < 4; i++) {
                char byte = 0;
                int r;

                while ((r = wire_next(pair.wire, &frame)) == WIRE_E_AGAIN)
                        assert_int_equal(wire_receive(pair.wire), 0);
                assert_int_equal(r, 0);
                if (i % 2 == 0) {
                        assert_int_equal(frame.fd, -1);
                        continue;
                }
                assert_true(fcntl(frame.fd, F_GETFD) & FD_CLOEXEC);
                assert_int_equal(write(frame.fd, "x", 1), 1);
                assert_int_equal(read(pipes[i / 2][0], &byte, 1), 1);
                assert_int_equal(byte, 'x');
                close(frame.fd);
        }

        for (int i = 0; i < 4; i++)
                close(pipes[i / 2][i % 2]);
        wire_free(other);
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

static void descriptor_of_a_client_is_refused_and_never_installed(void **state) {
        static const uint8_t plain[] = {1, 0, 0, 0, 0, 0, 0, 0, 'a'};
        static const uint8_t announced[] = {1, 0, 0, 0, 1, 0, 0, 0, 'a'};
        unsigned n_before = count_fds();
        Pair pair = pair_new(false);
        int fd = 0;

        peer_send_with_fds(&pair, plain, sizeof(plain), &fd, 1);
        assert_problem(&pair, "an unexpected descriptor");
        assert_int_equal(count_fds(), n_before + 2);
        pair_end(&pair);

        pair = pair_new(false);
        peer_send(&pair, announced, sizeof(announced));
        assert_problem(&pair, "an unexpected descriptor");
        pair_end(&pair);
}

static void descriptors_and_frames_out_of_step_are_a_protocol_error(void **state) {
        static const uint8_t plain[] = {1, 0, 0, 0, 0, 0, 0, 0, 'a'};
        static const uint8_t announced[] = {1, 0, 0, 0, 1, 0, 0, 0, 'a'};
        int fds[32] = {};
        unsigned n_before = count_fds();
        WireFrame frame;
        Pair pair = pair_new(true);

        peer_send(&pair, announced, sizeof(announced));
        assert_problem(&pair, "a missing descriptor");
        pair_end(&pair);

        pair = pair_new(true);
        peer_send_with_fds(&pair, plain, sizeof(plain), fds, 1);
        assert_int_equal(wire_receive_and_next(pair.wire, &frame), 0);
        assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_PROTOCOL);
        assert_string_equal(wire_problem(pair.wire), "a descriptor that no frame announces");
        pair_end(&pair);

        pair = pair_new(true);
        peer_send_with_fds(&pair, announced, sizeof(announced), fds, 20);
        assert_problem(&pair, "too many descriptors at once, or no free descriptor");
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

static void peer_that_does_not_read_overflows_its_limit(void **state) {
        char text[1000];
        Gpuq__V1__Error message = error_message(text);
        Pair pair = pair_new(false);
        size_t before;
        int r;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        wire_set_output_max(pair.wire, 100000);
        while ((r = wire_queue(pair.wire, &message.base, -1)) == 0)
                assert_true(wire_flush(pair.wire) >= 0);
        assert_int_equal(r, WIRE_E_OVERFLOW);
        before = wire_pending(pair.wire);
        assert_in_range(before, 100000 - 1100, 100000);
        assert_int_equal(wire_queue(pair.wire, &message.base, -1), WIRE_E_OVERFLOW);
        assert_int_equal(wire_pending(pair.wire), before);
        assert_int_equal(wire_flush(pair.wire), WIRE_E_AGAIN);

        close(pair.peer);
        pair.peer = -1;
        assert_int_equal(wire_flush(pair.wire), WIRE_E_CLOSED);
        pair_end(&pair);
}

static void descriptors_that_wait_are_bounded_and_closed(void **state) {
        Gpuq__V1__Error message = error_message("with");
        unsigned n_before = count_fds(), n = 0;
        Pair pair = pair_new(false);
        int r;

        while ((r = wire_queue(pair.wire, &message.base, 0)) == 0)
                n++;
        assert_int_equal(r, WIRE_E_OVERFLOW);
        assert_in_range(n, 16, 1024);
        pair_end(&pair);
        assert_int_equal(count_fds(), n_before);
}

static void memory_of_half_a_frame_is_told_until_it_is_dropped(void **state) {
        const size_t n = 100000;
        Pair pair = pair_new(false);
        uint8_t *data = calloc(1, n);
        WireFrame frame;

        assert_int_equal(wire_buffered(pair.wire), 0);
        wire_set_frame_max(pair.wire, WIRE_FRAME_MAX);
        memcpy(data, (uint8_t[4]){(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16)}, 4);
        peer_send(&pair, data, n);
        while (wire_receive(pair.wire) == 0)
                assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_AGAIN);
        assert_int_equal(wire_buffered(pair.wire), n);
        /* The rest, and one byte of another: the memory is still held. */
        peer_send(&pair, data, WIRE_HEADER_BYTES + 1);
        assert_int_equal(wire_receive_and_next(pair.wire, &frame), 0);
        assert_int_equal(wire_next(pair.wire, &frame), WIRE_E_AGAIN);
        assert_true(wire_buffered(pair.wire) >= n);
        wire_drop_input(pair.wire);
        assert_int_equal(wire_buffered(pair.wire), 0);
        free(data);
        pair_end(&pair);
}

static void memory_of_output_is_told_until_it_is_read(void **state) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Pair pair = pair_new(false);
        char scratch[4096];
        size_t n_queued;

        reply.serial = 7;
        for (unsigned i = 0; i < 200000; ++i)
                assert_int_equal(wire_queue(pair.wire, &reply.base, -1), 0);
        n_queued = wire_pending(pair.wire);
        assert_int_equal(wire_buffered(pair.wire), n_queued);
        assert_int_equal(wire_flush(pair.wire), WIRE_E_AGAIN);
        assert_int_equal(wire_buffered(pair.wire), n_queued);
        while (wire_flush(pair.wire) == WIRE_E_AGAIN)
                assert_true(recv(pair.peer, scratch, sizeof(scratch), 0) > 0);
        assert_int_equal(wire_buffered(pair.wire), 0);
        pair_end(&pair);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(message_arrives_whole),
                cmocka_unit_test(frame_split_byte_by_byte_arrives),
                cmocka_unit_test(many_frames_in_one_read_come_in_turn),
                cmocka_unit_test(largest_frame_arrives_and_one_byte_more_does_not),
                cmocka_unit_test(frame_too_long_is_told_from_its_header),
                cmocka_unit_test(longest_hello_is_taken),
                cmocka_unit_test(empty_frame_is_a_protocol_error),
                cmocka_unit_test(reserved_bytes_are_a_protocol_error),
                cmocka_unit_test(frame_cut_short_is_a_protocol_error),
                cmocka_unit_test(descriptor_arrives_with_its_frame),
                cmocka_unit_test(descriptor_of_a_client_is_refused_and_never_installed),
                cmocka_unit_test(descriptors_and_frames_out_of_step_are_a_protocol_error),
                cmocka_unit_test(peer_that_does_not_read_overflows_its_limit),
                cmocka_unit_test(descriptors_that_wait_are_bounded_and_closed),
                cmocka_unit_test(memory_of_half_a_frame_is_told_until_it_is_dropped),
                cmocka_unit_test(memory_of_output_is_told_until_it_is_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire over rings: the same frames in shared memory, in order with what the socket
 * carries, whoever sleeps, and whatever the other side writes there.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"
#include "proto/wire_ring.h"

#define CAPACITY 16384u

/* Where the positions lie in a ring: part of no promise, but of an attacker's knowledge. */
#define RING_HEAD 0u
#define RING_TAIL 64u

typedef struct Pair {
        Wire *daemon;
        Wire *client;
        uint8_t *map; /* as an attacker has it: the daemon's ring, then the client's */
} Pair;

static Pair pair_new_socket(void) {
        int fds[2];
        Pair pair = {.map = MAP_FAILED};

        assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), errno);
        assert_int_equal(wire_new(fds[0], false, &pair.daemon), 0);
        assert_int_equal(wire_new(fds[1], true, &pair.client), 0);
        wire_set_frame_max(pair.daemon, WIRE_FRAME_MAX);
        wire_set_frame_max(pair.client, WIRE_FRAME_MAX);
        return pair;
}

static void pair_make_ring(Pair *pair, uint32_t capacity) {
        int fd;

        assert_int_equal(wire_make_ring(pair->daemon, capacity, &fd), 0);
        assert_int_equal(wire_adopt_ring(pair->client, fd, capacity), 0);
        pair->map =
                mmap(NULL, wire_ring_bytes(CAPACITY), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(pair->map, MAP_FAILED);
        close(fd);
}

/* The switch, as it is once both have said so. */
static Pair pair_new_of(uint32_t capacity) {
        Pair pair = pair_new_socket();

        pair_make_ring(&pair, capacity);
        wire_ring_output(pair.daemon);
        wire_ring_output(pair.client);
        wire_ring_input(pair.daemon);
        wire_ring_input(pair.client);
        return pair;
}

static Pair pair_new(void) {
        return pair_new_of(CAPACITY);
}

static void pair_end(Pair *pair) {
        wire_free(pair->daemon);
        wire_free(pair->client);
        if (pair->map != MAP_FAILED)
                munmap(pair->map, wire_ring_bytes(CAPACITY));
}

static void pair_poke(Pair *pair, bool of_client, size_t offset, uint32_t value) {
        size_t ring = of_client ? wire_ring_bytes(CAPACITY) / 2 : 0;

        memcpy(pair->map + ring + offset, &value, sizeof(value));
}

/* A frame of some length, which its number and length tell. */
static int queue_number(Wire *wire, uint32_t number, size_t n_text, int fd) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
        char *text = malloc(n_text + 1);
        int r;

        memset(text, 'a' + number % 26, n_text);
        text[n_text] = '\0';
        error.text = text;
        reply.serial = number;
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        r = wire_queue(wire, &reply.base, fd);
        free(text);
        return r;
}

/* Return: the frame's number. */
static uint32_t check_number(const WireFrame *frame, size_t n_text) {
        Gpuq__V1__Reply *reply = gpuq__v1__reply__unpack(NULL, frame->n_data, frame->data);
        uint32_t number;

        assert_non_null(reply);
        number = reply->serial;
        assert_int_equal(strlen(reply->error->text), n_text);
        for (size_t i = 0; i < n_text; i++)
                assert_int_equal(reply->error->text[i], 'a' + number % 26);
        gpuq__v1__reply__free_unpacked(reply, NULL);
        return number;
}

static bool is_rung(const Wire *wire) {
        struct pollfd fd = {.fd = wire_fd(wire), .events = POLLIN};

        return poll(&fd, 1, 0) > 0;
}

static void frames_pass_without_the_socket(void **state) {
        Pair pair = pair_new();
        WireFrame frame;

        assert_false(wire_has_input(pair.client));
        assert_int_equal(wire_look(pair.client), WIRE_E_AGAIN);
        for (uint32_t i = 1; i <= 3; i++)
                assert_int_equal(queue_number(pair.daemon, i, 10 * i, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_int_equal(wire_pending(pair.daemon), 0);
        assert_false(is_rung(pair.client));

        assert_true(wire_has_input(pair.client));
        assert_int_equal(wire_look(pair.client), 0);
        for (uint32_t i = 1; i <= 3; i++) {
                assert_int_equal(wire_next(pair.client, &frame), 0);
                assert_int_equal(check_number(&frame, 10 * i), i);
        }
        assert_int_equal(wire_next(pair.client, &frame), WIRE_E_AGAIN);
        assert_false(wire_has_input(pair.client));
        pair_end(&pair);
}

/* Of sizes that wrap everywhere, and some larger than all of the ring. */
static void every_frame_arrives_whole_and_in_order(void **state) {
        Pair pair = pair_new();
        uint32_t n_queued = 0, n_read = 0;
        WireFrame frame;
        int r;

        while (n_read < 3000) {
                for (unsigned i = 0; i < 5 && n_queued < 3000; i++, n_queued++)
                        assert_int_equal(
                                queue_number(pair.client, n_queued + 1,
                                             n_queued * 7919 % (n_queued % 50 ? 700 : 40000), -1),
                                0);
                r = wire_flush(pair.client);
                assert_true(r == 0 || r == WIRE_E_AGAIN);
                assert_false(wire_wants_socket(pair.client));
                r = wire_look(pair.daemon);
                assert_true(r == 0 || r == WIRE_E_AGAIN);
                for (; wire_next(pair.daemon, &frame) == 0; n_read++)
                        assert_int_equal(
                                check_number(&frame, n_read * 7919 % (n_read % 50 ? 700 : 40000)),
                                n_read + 1);
        }
        assert_int_equal(wire_pending(pair.client), 0);
        pair_end(&pair);
}

static void writer_who_waits_for_room_is_rung(void **state) {
        Pair pair = pair_new();
        WireFrame frame;

        while (wire_flush(pair.daemon) == 0)
                assert_int_equal(queue_number(pair.daemon, 1, 3000, -1), 0);
        assert_int_not_equal(wire_pending(pair.daemon), 0);
        assert_false(wire_wants_socket(pair.daemon));
        assert_false(is_rung(pair.daemon));

        while (wire_look(pair.client) == 0)
                while (wire_next(pair.client, &frame) == 0)
                        assert_int_equal(check_number(&frame, 3000), 1);
        assert_true(is_rung(pair.daemon));
        assert_int_equal(wire_receive(pair.daemon), 0);
        assert_int_equal(wire_next(pair.daemon, &frame), WIRE_E_AGAIN);
        assert_false(is_rung(pair.daemon));
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_int_equal(wire_look(pair.client), 0);
        pair_end(&pair);
}

/* Whoever only looks while there is something stops where the ring is just empty. */
static void writer_is_rung_wherever_its_reader_stops(void **state) {
        for (size_t n_text = 100; n_text < 12000; n_text += 97) {
                Pair pair = pair_new_of(4 * CAPACITY);
                WireFrame frame;

                while (wire_flush(pair.client) == 0)
                        assert_int_equal(queue_number(pair.client, 1, n_text, -1), 0);
                while (wire_has_input(pair.daemon)) {
                        assert_int_equal(wire_look(pair.daemon), 0);
                        while (wire_next(pair.daemon, &frame) == 0)
                                assert_int_equal(check_number(&frame, n_text), 1);
                }
                assert_true(is_rung(pair.client));
                pair_end(&pair);
        }
}

static void only_who_sleeps_is_rung_and_once(void **state) {
        Pair pair = pair_new();
        WireFrame frame;

        assert_true(wire_sleep(pair.client));
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_false(is_rung(pair.client)); /* nothing was said */

        assert_int_equal(queue_number(pair.daemon, 1, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_true(is_rung(pair.client));
        assert_int_equal(wire_hear(pair.client), 0);
        assert_int_equal(queue_number(pair.daemon, 2, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_false(is_rung(pair.client));

        wire_wake(pair.client);
        assert_false(wire_sleep(pair.client)); /* something is there */
        assert_int_equal(wire_receive(pair.client), 0);
        assert_int_equal(wire_next(pair.client, &frame), 0);
        assert_int_equal(wire_next(pair.client, &frame), 0);
        assert_true(wire_sleep(pair.client));
        wire_wake(pair.client);
        pair_end(&pair);
}

static void descriptor_comes_with_its_frame(void **state) {
        Pair pair = pair_new();
        struct stat sent, got;
        WireFrame frame;
        int fd = memfd_create("test", MFD_CLOEXEC);

        fstat(fd, &sent);
        assert_int_equal(queue_number(pair.daemon, 1, 5, -1), 0);
        assert_int_equal(queue_number(pair.daemon, 2, 5, fd), 0);
        assert_int_equal(queue_number(pair.daemon, 3, 5, -1), 0);
        assert_int_equal(queue_number(pair.daemon, 4, 5, STDERR_FILENO), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);

        while (wire_look(pair.client) == 0)
                ;
        for (uint32_t i = 1; i <= 4; i++) {
                assert_int_equal(wire_next(pair.client, &frame), 0);
                assert_int_equal(check_number(&frame, 5), i);
                assert_int_equal(frame.fd >= 0, i % 2 == 0);
                if (i == 2) {
                        fstat(frame.fd, &got);
                        assert_int_equal(got.st_ino, sent.st_ino);
                }
                if (frame.fd >= 0)
                        close(frame.fd);
        }
        close(fd);
        pair_end(&pair);
}

static void what_was_queued_before_the_switch_comes_first(void **state) {
        Pair pair = pair_new_socket();
        WireFrame frame;

        pair_make_ring(&pair, CAPACITY);
        assert_int_equal(queue_number(pair.daemon, 1, 5, -1), 0);
        wire_ring_output(pair.daemon);
        assert_int_equal(queue_number(pair.daemon, 2, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);

        assert_int_equal(wire_receive(pair.client), 0);
        assert_int_equal(wire_next(pair.client, &frame), 0);
        assert_int_equal(check_number(&frame, 5), 1);
        wire_ring_input(pair.client);
        assert_int_equal(wire_next(pair.client, &frame), WIRE_E_AGAIN);
        assert_int_equal(wire_look(pair.client), 0);
        assert_int_equal(wire_next(pair.client, &frame), 0);
        assert_int_equal(check_number(&frame, 5), 2);
        pair_end(&pair);
}

static void end_of_the_connection_comes_behind_what_is_in_the_ring(void **state) {
        Pair pair = pair_new();
        WireFrame frame;

        assert_int_equal(queue_number(pair.daemon, 1, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);
        pair.daemon = wire_free(pair.daemon);

        assert_int_equal(wire_receive(pair.client), 0);
        assert_int_equal(wire_next(pair.client, &frame), 0);
        assert_int_equal(check_number(&frame, 5), 1);
        assert_int_equal(wire_receive(pair.client), WIRE_E_CLOSED);
        assert_int_equal(queue_number(pair.client, 1, 5, -1), 0);
        pair_end(&pair);
}

/* One that is started again has the socket of the one before, and knows no ring. */
static void next_daemon_is_heard_on_the_socket(void **state) {
        static const uint8_t half[8] = {40};
        Pair pair = pair_new();
        WireFrame frame;
        Wire *next;

        assert_int_equal(queue_number(pair.daemon, 1, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);
        assert_int_equal(wire_new(dup(wire_fd(pair.daemon)), false, &next), 0);
        assert_int_equal(queue_number(next, 2, 5, -1), 0);
        assert_int_equal(wire_flush(next), 0);
        pair.daemon = wire_free(pair.daemon);

        assert_int_equal(wire_receive(pair.client), 0);
        for (uint32_t i = 1; i <= 2; i++) {
                assert_int_equal(wire_next(pair.client, &frame), 0);
                assert_int_equal(check_number(&frame, 5), i);
        }
        assert_int_equal(wire_next(pair.client, &frame), WIRE_E_AGAIN);
        assert_int_equal(send(wire_fd(next), half, sizeof(half), 0), sizeof(half));
        wire_free(next);
        pair_end(&pair);
}

static void client_may_not_go_on_by_the_socket(void **state) {
        static const uint8_t frame_bytes[] = {1, 0, 0, 0, 0, 0, 0, 0, 'x'},
                             odd_bell[] = {[6] = 1, [7] = 0};
        const struct {
                const uint8_t *data;
                size_t n;
        } wrong[] = {{frame_bytes, sizeof(frame_bytes)}, {odd_bell, sizeof(odd_bell)}};
        WireFrame frame;

        for (size_t i = 0; i < 2; i++) {
                Pair pair = pair_new();

                assert_int_equal(send(wire_fd(pair.client), wrong[i].data, wrong[i].n, 0),
                                 (ssize_t)wrong[i].n);
                assert_int_equal(wire_receive(pair.daemon), 0);
                assert_int_equal(wire_next(pair.daemon, &frame), WIRE_E_PROTOCOL);
                pair_end(&pair);
        }
}

static void nonsense_in_the_ring_is_noticed(void **state) {
        static const uint32_t heads[] = {4, 1, CAPACITY + 8, UINT32_MAX - 7};
        WireFrame frame;

        for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
                Pair pair = pair_new();

                pair_poke(&pair, true, RING_HEAD, heads[i]);
                assert_false(wire_sleep(pair.daemon));
                assert_int_equal(wire_look(pair.daemon), WIRE_E_PROTOCOL);
                assert_int_equal(wire_receive(pair.daemon), WIRE_E_PROTOCOL);
                assert_int_equal(wire_next(pair.daemon, &frame), WIRE_E_PROTOCOL);
                pair_end(&pair);
        }
}

static void chunk_that_is_too_large_is_noticed(void **state) {
        Pair pair = pair_new();

        pair_poke(&pair, true, (uint32_t)ring_bytes(0), CAPACITY / 2);
        pair_poke(&pair, true, RING_HEAD, CAPACITY);
        assert_int_equal(wire_look(pair.daemon), WIRE_E_PROTOCOL);
        pair_end(&pair);
}

static void last_words_go_by_the_socket_when_the_ring_is_broken(void **state) {
        Pair pair = pair_new();
        WireFrame frame;

        pair_poke(&pair, false, RING_TAIL, 4);
        assert_int_equal(queue_number(pair.daemon, 1, 5, STDERR_FILENO), 0);
        assert_int_equal(wire_flush(pair.daemon), WIRE_E_PROTOCOL);
        assert_int_equal(wire_pending(pair.daemon), 0);
        assert_int_equal(queue_number(pair.daemon, 2, 5, -1), 0);
        assert_int_equal(wire_flush(pair.daemon), 0);

        while (wire_next(pair.client, &frame) != 0)
                assert_int_equal(wire_receive(pair.client), 0);
        assert_int_equal(check_number(&frame, 5), 2);
        pair_end(&pair);
}

static void only_memory_of_the_right_kind_is_adopted(void **state) {
        Pair pair = pair_new_socket();
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_return_code(ftruncate(fd, (off_t)wire_ring_bytes(CAPACITY)), errno);
        assert_int_equal(wire_adopt_ring(pair.client, fd, CAPACITY), -EINVAL); /* not sealed */
        close(fd);

        assert_int_equal(wire_make_ring(pair.daemon, CAPACITY, &fd), 0);
        assert_int_equal(wire_adopt_ring(pair.client, fd, 2 * CAPACITY), -EINVAL);
        assert_int_equal(wire_adopt_ring(pair.client, fd, CAPACITY - 8), -EINVAL);
        assert_int_equal(wire_adopt_ring(pair.client, fd, 0), -EINVAL);
        assert_false(wire_has_ring(pair.client));
        assert_int_equal(wire_adopt_ring(pair.client, fd, CAPACITY), 0);
        assert_int_equal(wire_adopt_ring(pair.client, fd, CAPACITY), -EEXIST);
        close(fd);
        pair_end(&pair);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(frames_pass_without_the_socket),
                cmocka_unit_test(every_frame_arrives_whole_and_in_order),
                cmocka_unit_test(writer_who_waits_for_room_is_rung),
                cmocka_unit_test(writer_is_rung_wherever_its_reader_stops),
                cmocka_unit_test(only_who_sleeps_is_rung_and_once),
                cmocka_unit_test(descriptor_comes_with_its_frame),
                cmocka_unit_test(what_was_queued_before_the_switch_comes_first),
                cmocka_unit_test(end_of_the_connection_comes_behind_what_is_in_the_ring),
                cmocka_unit_test(next_daemon_is_heard_on_the_socket),
                cmocka_unit_test(client_may_not_go_on_by_the_socket),
                cmocka_unit_test(nonsense_in_the_ring_is_noticed),
                cmocka_unit_test(chunk_that_is_too_large_is_noticed),
                cmocka_unit_test(last_words_go_by_the_socket_when_the_ring_is_broken),
                cmocka_unit_test(only_memory_of_the_right_kind_is_adopted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

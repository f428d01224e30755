/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory, and sockets beside it, with a peer who writes what he likes where he likes: a ring
 * alone in memory that ends where it ends, a wire, a channel. While the peer of a ring is honest
 * all must come out as it went in; some runs have him change a word again and again from a
 * thread of his, while it is looked at.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"
#include "proto/ring.h"
#include "proto/wire.h"
#include "util/channel.h"

#define RING_STEPS_MAX 300u
#define RING_TEXT_MAX  5000u
#define WIRE_CAPACITY  2048u /* bytes each way, the least */
#define RING_HEAD_WORD 64u   /* bytes before, between and after the indices and flags of ring.c */

static void spoil_word(Input *input, uint8_t *memory, size_t n_memory) {
        size_t at = input_below(input, 4) ? input_below(input, 6) * RING_HEAD_WORD
                                          : input_u16(input) * 4u;
        uint32_t word;

        at += input_below(input, 2) * (n_memory / 2);
        if (at + sizeof(word) > n_memory)
                at %= n_memory - sizeof(word) + 1;
        memcpy(&word, memory + at, sizeof(word));
        word = input_below(input, 2) ? (uint32_t)input_edge(input)
                                     : word + input_u8(input) * 8u - 512u;
        memcpy(memory + at, &word, sizeof(word));
}

/* ---- a peer who never stops ----------------------------------------------------- */

typedef struct Hammer {
        pthread_t thread;
        _Atomic uint32_t *word;
        uint32_t values[2];
        atomic_bool is_ended;
        bool is_there;
} Hammer;

static void *hammer_run(void *userdata) {
        Hammer *hammer = userdata;

        for (unsigned i = 0; !atomic_load(&hammer->is_ended); ++i)
                atomic_store(hammer->word, hammer->values[i & 1]);
        return NULL;
}

static void hammer_start(Hammer *hammer, Input *input, uint8_t *memory, size_t n_memory) {
        if (hammer->is_there)
                return;
        hammer->word = (_Atomic uint32_t *)(void *)(memory + input_u8(input) * 8u % n_memory);
        hammer->values[0] = (uint32_t)input_edge(input);
        hammer->values[1] = atomic_load(hammer->word) + input_u8(input) * 8;
        atomic_store(&hammer->is_ended, false);
        hammer->is_there = pthread_create(&hammer->thread, NULL, hammer_run, hammer) == 0;
}

static void hammer_stop(Hammer *hammer) {
        atomic_store(&hammer->is_ended, true);
        if (hammer->is_there)
                pthread_join(hammer->thread, NULL);
        hammer->is_there = false;
}

/* ---- a ring ------------------------------------------------------------------------ */

/* What an honest ring must give out next: each text is its number, again and again. */
typedef struct Told {
        uint32_t sizes[4096];
        uint32_t n_written, n_read;
        bool is_honest;
} Told;

static void told_check(const Told *told, const uint8_t *text, uint32_t n_text) {
        uint32_t number = told->n_read;

        if (!told->is_honest)
                return;
        if (told->n_read == told->n_written || told->sizes[number % 4096] != n_text)
                abort();
        for (uint32_t i = 0; i < n_text; ++i)
                if (text[i] != (uint8_t)(number + i))
                        abort();
}

static void ring_say(Ring *ring, Told *told, uint32_t n_text) {
        uint8_t text[RING_TEXT_MAX];

        for (uint32_t i = 0; i < n_text; ++i)
                text[i] = (uint8_t)(told->n_written + i);
        if (ring_write(ring, text, n_text) == 0 && told->n_written - told->n_read < 4096)
                told->sizes[told->n_written++ % 4096] = n_text;
}

static void ring_hear(Ring *ring, Told *told, uint8_t *buffer, bool keep) {
        uint32_t n_text;
        int r = keep ? ring_take(ring, buffer, &n_text) : ring_read(ring, buffer, &n_text);

        if (r == RING_E_CORRUPT && told->is_honest)
                abort();
        if (r)
                return;
        if (n_text > ring->n_data_max)
                abort();
        told_check(told, buffer, n_text);
        told->n_read++;
}

static void try_ring(Input *input) {
        uint32_t capacity = 64u << input_below(input, 8), n_data_max;
        size_t n_memory = ring_bytes(capacity);
        uint8_t *memory = aligned_alloc(64, n_memory), *buffer;
        Told told = {.is_honest = true};
        Hammer hammer = {};
        Ring in, out;

        memset(memory, 0, n_memory);
        ring_init(&out, memory, capacity, RING_PRODUCER);
        ring_init(&in, memory, capacity, RING_CONSUMER);
        if (input_below(input, 2))
                in.n_data_max = out.n_data_max = capacity / 4;
        n_data_max = in.n_data_max;
        buffer = malloc(n_data_max);
        for (unsigned i = 0; i < RING_STEPS_MAX && input->n; ++i) {
                switch (input_below(input, 16)) {
                        case 0:
                                told.is_honest = false;
                                spoil_word(input, memory, n_memory);
                                break;
                        case 1:
                                told.is_honest = false;
                                hammer_start(&hammer, input, memory, n_memory);
                                break;
                        case 2:
                                hammer_stop(&hammer);
                                break;
                        case 3:
                                ring_sleep(&in);
                                break;
                        case 4:
                                ring_wake(&in);
                                break;
                        case 5:
                                ring_needs_bell(&out);
                                ring_has_waiter(&in);
                                break;
                        case 6:
                                ring_wait(&out);
                                (void)ring_room(&out, input_u16(input));
                                break;
                        case 7: /* the producer is replaced */
                                ring_init(&out, memory, capacity, RING_PRODUCER);
                                out.n_data_max = n_data_max;
                                break;
                        case 8: /* the consumer: what was taken comes again */
                                told.is_honest = false;
                                ring_init(&in, memory, capacity, RING_CONSUMER);
                                in.n_data_max = n_data_max;
                                break;
                        case 9:
                                ring_hear(&in, &told, buffer, true);
                                break;
                        case 10:
                                ring_release(&in);
                                break;
                        case 11:
                        case 12:
                                ring_hear(&in, &told, buffer, false);
                                break;
                        default:
                                ring_say(&out, &told, input_u16(input) % RING_TEXT_MAX % capacity);
                }
        }
        hammer_stop(&hammer);
        free(buffer);
        free(memory);
}

/* ---- a wire -------------------------------------------------------------------------- */

static void send_with_fds(Input *input, int fd) {
        union {
                char bytes[CMSG_SPACE(4 * sizeof(int))];
                struct cmsghdr align;
        } control = {};
        size_t n = input_u8(input), n_fds = input_below(input, 8) ? 0 : input_below(input, 5);
        struct iovec iov = {.iov_base = (void *)input_take(input, n, &n), .iov_len = n};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        struct cmsghdr *cmsg;
        int fds[4] = {fd, fd, fd, fd};

        iov.iov_len = n;
        if (n_fds) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }
        (void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void wire_take_all(Wire *wire) {
        WireFrame frame;
        uint8_t sum = 0;

        while (wire_next(wire, &frame) == 0) {
                for (size_t i = 0; i < frame.n_data; ++i)
                        sum ^= frame.data[i];
                if (frame.fd >= 0)
                        close(frame.fd);
        }
        __asm__ volatile("" : : "r"(sum));
}

static uint8_t *wire_get_ring(Input *input, Wire *wire, size_t *ret_n) {
        uint32_t capacity = WIRE_CAPACITY << input_below(input, 8);
        struct stat st = {};
        uint8_t *memory = NULL;
        int fd = -1;

        if (input_below(input, 2)) {
                if (wire_make_ring(wire, capacity, &fd) < 0)
                        return NULL;
        } else {
                fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                if (ftruncate(fd, (off_t)(2 * ((ring_bytes(capacity) + 4095) & ~(size_t)4095))) <
                            0 ||
                    (input_below(input, 8) &&
                     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) ||
                    wire_adopt_ring(wire, fd, capacity) < 0) {
                        close(fd);
                        return NULL;
                }
        }
        fstat(fd, &st);
        *ret_n = (size_t)st.st_size;
        memory = mmap(NULL, *ret_n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        return memory == MAP_FAILED ? NULL : memory;
}

static void wire_say(Input *input, Wire *wire) {
        static const uint8_t zeros[1 << 16];
        size_t n = input_below(input, 2) ? input_u8(input) : input_u16(input);
        uint8_t *payload;

        if (n && wire_begin(wire, n, &payload) == 0) {
                memcpy(payload, zeros, n);
                wire_end(wire, n);
        }
        (void)wire_flush(wire);
}

/* Bytes that a frame would have, in the peer's ring, as an honest library writes them. */
static void ring_say_frame(Input *input, uint8_t *memory, size_t n_memory) {
        size_t n = input_u8(input);
        const uint8_t *bytes = input_take(input, n, &n);
        uint32_t capacity = WIRE_CAPACITY;
        Ring out;

        while (2 * ((ring_bytes(capacity) + 4095) & ~(size_t)4095) < n_memory)
                capacity *= 2;
        ring_init(&out, memory + input_below(input, 2) * (n_memory / 2), capacity, RING_PRODUCER);
        (void)ring_write(&out, bytes, (uint32_t)n);
}

static void try_wire(Input *input) {
        uint8_t *memory = NULL;
        size_t n_memory = 0;
        Hammer hammer = {};
        int pair[2];
        Wire *wire;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
            wire_new(pair[0], input_below(input, 2), &wire) < 0)
                abort();
        for (unsigned i = 0; i < RING_STEPS_MAX && input->n; ++i) {
                switch (input_below(input, 14)) {
                        case 0:
                                if (!memory)
                                        memory = wire_get_ring(input, wire, &n_memory);
                                break;
                        case 1:
                                if (wire_has_ring(wire))
                                        wire_ring_output(wire);
                                break;
                        case 2:
                                if (wire_has_ring(wire))
                                        wire_ring_input(wire);
                                break;
                        case 3:
                                if (memory)
                                        spoil_word(input, memory, n_memory);
                                break;
                        case 4:
                                if (memory)
                                        ring_say_frame(input, memory, n_memory);
                                break;
                        case 5:
                                if (wire_is_ringed(wire) && wire_look(wire) == 0)
                                        wire_take_all(wire);
                                break;
                        case 6:
                                if (wire_hear(wire) == 0)
                                        wire_take_all(wire);
                                break;
                        case 7:
                                (void)wire_sleep(wire);
                                wire_wake(wire);
                                break;
                        case 8:
                                wire_set_frame_max(wire, input_u16(input));
                                break;
                        case 9:
                                wire_say(input, wire);
                                break;
                        case 10:
                                if (memory)
                                        hammer_start(&hammer, input, memory, n_memory);
                                break;
                        case 11:
                                send_with_fds(input, pair[1]);
                                break;
                        default:
                                send_with_fds(input, pair[1]);
                                if (wire_receive(wire) == 0)
                                        wire_take_all(wire);
                }
        }
        hammer_stop(&hammer);
        wire_free(wire);
        close(pair[1]);
        if (memory)
                munmap(memory, n_memory);
}

/* ---- a channel ------------------------------------------------------------------------- */

static void channel_hear(Channel *channel, Input *input) {
        const uint8_t *data;
        size_t n_data;
        uint8_t sum = 0;
        int fd;

        if (channel_receive(channel, &data, &n_data) != 0)
                return;
        for (size_t i = 0; i < n_data; ++i)
                sum ^= data[i];
        __asm__ volatile("" : : "r"(sum));
        fd = input_below(input, 2) ? channel_take_fd(channel) : -1;
        if (fd >= 0)
                close(fd);
}

static void channel_say(Channel *channel, Input *input) {
        size_t n = input_u8(input);
        const uint8_t *bytes = input_take(input, n, &n);

        (void)channel_send(channel, bytes, n, -1);
}

static void try_channel(Input *input) {
        int fds[CHANNEL_N_FDS], socket_fd;
        Channel *ours, *theirs;
        Hammer hammer = {};
        struct stat st;
        uint8_t *memory;

        if (channel_new(&ours, fds) < 0 || fstat(fds[0], &st) < 0)
                abort();
        memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        socket_fd = fcntl(fds[2], F_DUPFD_CLOEXEC, 3);
        if (channel_adopt(fds, &theirs) < 0)
                abort();
        for (unsigned i = 0; i < RING_STEPS_MAX && input->n; ++i) {
                switch (input_below(input, 8)) {
                        case 0:
                                spoil_word(input, memory, (size_t)st.st_size);
                                break;
                        case 1:
                                send_with_fds(input, socket_fd);
                                break;
                        case 2:
                                channel_say(theirs, input);
                                break;
                        case 3:
                                channel_say(ours, input);
                                break;
                        case 4:
                                channel_hear(theirs, input);
                                break;
                        case 5:
                                (void)channel_sleep(ours);
                                channel_wake(ours);
                                break;
                        case 6:
                                hammer_start(&hammer, input, memory, 4096);
                                break;
                        default:
                                channel_hear(ours, input);
                }
        }
        hammer_stop(&hammer);
        close(socket_fd);
        channel_free(theirs);
        channel_free(ours);
        munmap(memory, (size_t)st.st_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static void (*const what[])(Input * input) = {try_ring, try_ring, try_wire, try_wire,
                                                      try_channel};
        Input input = {data, n_data};

        what[input_below(&input, 5)](&input);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "liar.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "message.h"
#include "proto/gpuq.pb-c.h"
#include "proto/wire.h"

#define LIAR_SESSION   7u
#define LIAR_ASKED     64u /* requests that wait for an answer */
#define LIAR_BYTES_MAX 8192u
#define LIAR_SLEEPS    100u /* in a row, with nobody there: the wait will not end */

typedef struct Liar {
        Input *input;
        char path[64];
        int listen_fd;
        Wire *wire; /* NULL: nobody is connected */
        Gpuq__V1__Request *asked[LIAR_ASKED];
        unsigned n_asked;
        uint64_t last_arena;
        uint8_t *ring;
        size_t n_ring;
        unsigned n_sleeps;
        int timer_fd; /* the library's, by the clock of the run */
        uint64_t timer_ns;
} Liar;

static Liar liar = {.listen_fd = -1, .timer_fd = -1};

int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *was);

/* ---- connection ------------------------------------------------------------------ */

static void liar_forget_asked(unsigned i) {
        gpuq__v1__request__free_unpacked(liar.asked[i], NULL);
        liar.n_asked--;
        memmove(&liar.asked[i], &liar.asked[i + 1], (liar.n_asked - i) * sizeof(*liar.asked));
}

static void liar_hang_up(void) {
        while (liar.n_asked)
                liar_forget_asked(0);
        if (liar.ring)
                munmap(liar.ring, liar.n_ring);
        liar.ring = NULL;
        liar.wire = wire_free(liar.wire);
}

static void liar_stop_listening(void) {
        if (liar.listen_fd >= 0)
                close(liar.listen_fd);
        liar.listen_fd = -1;
        (void)unlink(liar.path);
}

static void liar_accept(void) {
        int fd = liar.listen_fd < 0
                         ? -1
                         : accept4(liar.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return;
        liar_hang_up();
        if (wire_new(fd, true, &liar.wire) < 0)
                abort();
        wire_set_frame_max(liar.wire, WIRE_FRAME_MAX);
}

/* What a library says is well formed, unless its ring was spoilt. */
static void liar_hear(void) {
        Gpuq__V1__Request *request;
        WireFrame frame;

        while (liar.wire && wire_next(liar.wire, &frame) == 0) {
                request = gpuq__v1__request__unpack(NULL, frame.n_data, frame.data);
                if (!request && !liar.ring)
                        abort();
                if (frame.fd >= 0)
                        close(frame.fd);
                if (!request)
                        continue;
                if (liar.n_asked == LIAR_ASKED)
                        liar_forget_asked(0);
                liar.asked[liar.n_asked++] = request;
        }
}

static void liar_read(void) {
        int r = liar.wire ? wire_receive(liar.wire) : 0;

        liar_hear();
        if (r == WIRE_E_CLOSED || r < 0)
                liar_hang_up();
}

/* ---- what it says ------------------------------------------------------------------ */

static int liar_memory(uint64_t size) {
        int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        (void)!ftruncate(fd, (off_t)size);
        return fd;
}

static void liar_send(Gpuq__V1__Reply *reply, int fd) {
        (void)wire_queue(liar.wire, &reply->base, fd);
        (void)wire_flush(liar.wire);
}

static void liar_complete(const Gpuq__V1__Request *request) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *list = &completion;
        const Gpuq__V1__Submit *submit =
                request->body_case == GPUQ__V1__REQUEST__BODY_SUBMIT ? request->submit : NULL;
        const Gpuq__V1__Fires *fires =
                request->body_case == GPUQ__V1__REQUEST__BODY_FIRES ? request->fires : NULL;
        size_t n = submit ? submit->n_jobs : fires ? fires->n_fires : 0;

        completions.completions = &list;
        completions.n_completions = 1;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &completions;
        completion.state = GPUQ__V1__STATE__DONE;
        for (size_t i = 0; i < n; ++i) {
                completion.id = (uint64_t)LIAR_SESSION << 32 |
                                (submit ? submit->jobs[i]->tag : fires->fires[i]->tag);
                liar_send(&reply, -1);
        }
        if (request->body_case != GPUQ__V1__REQUEST__BODY_WAIT)
                return;
        reply.serial = request->serial;
        completion.id = request->wait->id;
        liar_send(&reply, -1);
}

static void liar_give_arena(Gpuq__V1__Reply *reply, const Gpuq__V1__Request *request) {
        Gpuq__V1__ArenaReady ready = GPUQ__V1__ARENA_READY__INIT;
        const Gpuq__V1__ArenaCreate *create =
                request->body_case == GPUQ__V1__REQUEST__BODY_ARENA_CREATE ? request->arena_create
                                                                           : NULL;
        int fd;

        ready.arena = create ? ++liar.last_arena : request->arena_open->arena;
        ready.size = create ? create->size : 65536;
        ready.place = create ? create->place : GPUQ__V1__PLACE__HOST;
        reply->body_case = GPUQ__V1__REPLY__BODY_ARENA;
        reply->arena = &ready;
        fd = ready.place == GPUQ__V1__PLACE__DEVICE ? -1 : liar_memory(ready.size);
        liar_send(reply, fd);
        if (fd >= 0)
                close(fd);
}

static void liar_give_module(Gpuq__V1__Reply *reply) {
        Gpuq__V1__ModuleReady ready = GPUQ__V1__MODULE_READY__INIT;
        Gpuq__V1__KernelInfo kernel = GPUQ__V1__KERNEL_INFO__INIT, *kernels = &kernel;
        Gpuq__V1__Parameter parameters[3], *list[3];

        for (unsigned i = 0; i < 3; ++i) {
                gpuq__v1__parameter__init(&parameters[i]);
                parameters[i].kind = i < 2 ? GPUQ__V1__KIND__POINTER : GPUQ__V1__KIND__I64;
                parameters[i].size = 8;
                list[i] = &parameters[i];
        }
        kernel.name = "twice";
        kernel.kinds_known = true;
        kernel.parameters = list;
        kernel.n_parameters = 3;
        ready.module = 1;
        ready.kernels = &kernels;
        ready.n_kernels = 1;
        reply->body_case = GPUQ__V1__REPLY__BODY_MODULE;
        reply->module = &ready;
        liar_send(reply, -1);
}

static void liar_give_ring(Gpuq__V1__Reply *reply) {
        Gpuq__V1__RingReady ready = GPUQ__V1__RING_READY__INIT;
        struct stat st;
        int fd;

        if (wire_make_ring(liar.wire, 1 << 15, &fd) < 0)
                return;
        fstat(fd, &st);
        liar.n_ring = (size_t)st.st_size;
        liar.ring = mmap(NULL, liar.n_ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ready.capacity = 1 << 15;
        reply->body_case = GPUQ__V1__REPLY__BODY_RING_READY;
        reply->ring_ready = &ready;
        liar_send(reply, fd);
        close(fd);
}

static void liar_begin_ring(Gpuq__V1__Reply *reply) {
        Gpuq__V1__RingBegun begun = GPUQ__V1__RING_BEGUN__INIT;

        reply->body_case = GPUQ__V1__REPLY__BODY_RING_BEGUN;
        reply->ring_begun = &begun;
        liar_send(reply, -1);
        if (!wire_has_ring(liar.wire))
                return;
        wire_ring_output(liar.wire);
        wire_ring_input(liar.wire);
}

static void liar_welcome(Gpuq__V1__Reply *reply, const Gpuq__V1__Hello *hello) {
        Gpuq__V1__Welcome welcome = GPUQ__V1__WELCOME__INIT;

        welcome.version = 1;
        welcome.daemon = "liar";
        welcome.session = LIAR_SESSION;
        welcome.resumed = hello->resume != 0;
        welcome.n_devices = 2;
        welcome.poll_us = input_below(liar.input, 2) * 50;
        welcome.rings = true;
        reply->body_case = GPUQ__V1__REPLY__BODY_WELCOME;
        reply->welcome = &welcome;
        liar_send(reply, -1);
}

static uint64_t liar_number(Input *input, const ProtobufCFieldDescriptor *field, void *userdata) {
        if (strcmp(field->name, "serial") == 0)
                return input_u8(input) < 200 && liar.n_asked ? liar.asked[0]->serial
                                                             : input_u8(input);
        if (strcmp(field->name, "id") == 0)
                return (uint64_t)LIAR_SESSION << 32 | input_u8(input);
        if (strcmp(field->name, "version") == 0)
                return 1;
        if (strcmp(field->name, "session") == 0)
                return LIAR_SESSION + input_u8(input) / 250;
        return input_edge(input);
}

/* A reply of this kind, with whatever in it. */
static void liar_give_any(Gpuq__V1__Reply *reply, Gpuq__V1__Reply__BodyCase body) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
                &gpuq__v1__reply__descriptor, (unsigned)body);
        ProtobufCMessage *content = message_new(liar.input, field->descriptor, liar_number, NULL);

        reply->body_case = body;
        memcpy((uint8_t *)reply + field->offset, &content, sizeof(content));
        liar_send(reply, -1);
        protobuf_c_message_free_unpacked(content, NULL);
}

static void liar_give_number(Gpuq__V1__Reply *reply, Gpuq__V1__Request__BodyCase asked) {
        Gpuq__V1__Prepared prepared = GPUQ__V1__PREPARED__INIT;
        Gpuq__V1__Detached detached = GPUQ__V1__DETACHED__INIT;
        Gpuq__V1__Drained drained = GPUQ__V1__DRAINED__INIT;
        Gpuq__V1__Discarded discarded = GPUQ__V1__DISCARDED__INIT;
        Gpuq__V1__Cancelled cancelled = GPUQ__V1__CANCELLED__INIT;

        prepared.prepared = detached.id = 1;
        switch (asked) {
                case GPUQ__V1__REQUEST__BODY_PREPARE:
                        reply->body_case = GPUQ__V1__REPLY__BODY_PREPARED;
                        reply->prepared = &prepared;
                        break;
                case GPUQ__V1__REQUEST__BODY_DETACH:
                        reply->body_case = GPUQ__V1__REPLY__BODY_DETACHED;
                        reply->detached = &detached;
                        break;
                case GPUQ__V1__REQUEST__BODY_DISCARD:
                        reply->body_case = GPUQ__V1__REPLY__BODY_DISCARDED;
                        reply->discarded = &discarded;
                        break;
                case GPUQ__V1__REQUEST__BODY_CANCEL:
                        reply->body_case = GPUQ__V1__REPLY__BODY_CANCELLED;
                        reply->cancelled = &cancelled;
                        break;
                default:
                        reply->body_case = GPUQ__V1__REPLY__BODY_DRAINED;
                        reply->drained = &drained;
        }
        liar_send(reply, -1);
}

/* Return: of what somebody wants to read; 0: it asked for something else. */
static Gpuq__V1__Reply__BodyCase liar_readable(Gpuq__V1__Request__BodyCase asked) {
        switch (asked) {
                case GPUQ__V1__REQUEST__BODY_STATUS_GET:
                        return GPUQ__V1__REPLY__BODY_STATUS;
                case GPUQ__V1__REQUEST__BODY_QUEUE_GET:
                        return GPUQ__V1__REPLY__BODY_QUEUE;
                case GPUQ__V1__REQUEST__BODY_HISTORY_GET:
                        return GPUQ__V1__REPLY__BODY_HISTORY;
                case GPUQ__V1__REQUEST__BODY_REPORT_GET:
                        return GPUQ__V1__REPLY__BODY_REPORT;
                case GPUQ__V1__REQUEST__BODY_EXPLAIN_GET:
                        return GPUQ__V1__REPLY__BODY_EXPLANATION;
                case GPUQ__V1__REQUEST__BODY_TRACE_GET:
                        return GPUQ__V1__REPLY__BODY_TRACE;
                default:
                        return (Gpuq__V1__Reply__BodyCase)0;
        }
}

/* As a daemon would. */
static void liar_answer(const Gpuq__V1__Request *request) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;

        reply.serial = request->serial;
        switch (request->body_case) {
                case GPUQ__V1__REQUEST__BODY_HELLO:
                        liar_welcome(&reply, request->hello);
                        break;
                case GPUQ__V1__REQUEST__BODY_ARENA_CREATE:
                case GPUQ__V1__REQUEST__BODY_ARENA_OPEN:
                        liar_give_arena(&reply, request);
                        break;
                case GPUQ__V1__REQUEST__BODY_MODULE_LOAD:
                        liar_give_module(&reply);
                        break;
                case GPUQ__V1__REQUEST__BODY_SUBMIT:
                case GPUQ__V1__REQUEST__BODY_FIRES:
                case GPUQ__V1__REQUEST__BODY_WAIT:
                        liar_complete(request);
                        break;
                case GPUQ__V1__REQUEST__BODY_RING_OPEN:
                        liar_give_ring(&reply);
                        break;
                case GPUQ__V1__REQUEST__BODY_RING_BEGIN:
                        liar_begin_ring(&reply);
                        break;
                case GPUQ__V1__REQUEST__BODY_ARENA_CLOSE:
                case GPUQ__V1__REQUEST__BODY_MODULE_UNLOAD:
                case GPUQ__V1__REQUEST__BODY_UNPREPARE:
                case GPUQ__V1__REQUEST__BODY_RESUMED:
                        break;
                default:
                        if (liar_readable(request->body_case))
                                liar_give_any(&reply, liar_readable(request->body_case));
                        else
                                liar_give_number(&reply, request->body_case);
        }
}

static void liar_lie(bool is_spoilt) {
        Input *input = liar.input;
        Gpuq__V1__Reply *reply = (Gpuq__V1__Reply *)message_new(input, &gpuq__v1__reply__descriptor,
                                                                liar_number, NULL);
        int fd = input_below(input, 3) ? -1 : liar_memory(input_edge(input) * 64 % (1ull << 40));
        uint8_t packed[LIAR_BYTES_MAX], *payload;
        size_t n = gpuq__v1__reply__get_packed_size(reply);

        if (!is_spoilt && liar.n_asked && input_below(input, 8))
                reply->serial = liar.asked[0]->serial;
        if (!is_spoilt) {
                liar_send(reply, fd);
        } else if (n <= sizeof(packed)) {
                gpuq__v1__reply__pack(reply, packed);
                n = message_spoil(input, packed, n, sizeof(packed));
                if (n && wire_begin(liar.wire, n, &payload) == 0) {
                        memcpy(payload, packed, n);
                        wire_end(liar.wire, n);
                        (void)wire_flush(liar.wire);
                }
        }
        if (fd >= 0)
                close(fd);
        gpuq__v1__reply__free_unpacked(reply, NULL);
}

static void liar_say_bytes(void) {
        size_t n = input_u8(liar.input);
        const uint8_t *bytes = input_take(liar.input, n, &n);

        (void)!send(wire_fd(liar.wire), bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void liar_spoil_ring(void) {
        size_t at = input_below(liar.input, 2) * (liar.n_ring / 2) + input_u8(liar.input) * 4u;
        uint32_t word = (uint32_t)input_edge(liar.input);

        if (liar.ring)
                memcpy(liar.ring + at, &word, sizeof(word));
}

static void liar_act(void) {
        uint8_t what = input_u8(liar.input);

        if (what < 160 && liar.n_asked) {
                liar_answer(liar.asked[0]);
                liar_forget_asked(0);
        } else if (what < 210) {
                liar_lie(what >= 195);
                if (what % 2 && liar.n_asked)
                        liar_forget_asked(0);
        } else if (what < 220) {
                liar_say_bytes();
        } else if (what < 230) {
                liar_spoil_ring();
        } else if (what < 240) {
                liar_hang_up();
        } else if (what < 250) {
                clock_advance(UINT64_C(1000000) << input_below(liar.input, 16));
        } else if (what < 252) {
                liar_stop_listening();
        }
}

/* ---- the library sleeps -------------------------------------------------------------- */

static void liar_turn(void) {
        liar_accept();
        liar_read();
        if (!liar.input->n) {
                liar_hang_up();
                liar_stop_listening();
        } else if (liar.wire) {
                liar_act();
        }
        liar_read();
}

/* Through the library's view: its timer is one of the run's clock. */
static int liar_ready(struct pollfd *fds, nfds_t n_fds) {
        struct timespec now;
        int n = __real_poll(fds, n_fds, 0);

        clock_gettime(CLOCK_MONOTONIC, &now);
        for (nfds_t i = 0; i < n_fds; ++i)
                if (fds[i].fd >= 0 && fds[i].fd == liar.timer_fd && liar.timer_ns &&
                    (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec >= liar.timer_ns) {
                        n += !fds[i].revents;
                        fds[i].revents |= POLLIN;
                }
        return n;
}

int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms) {
        int n = liar_ready(fds, n_fds);

        if (n)
                return n;
        liar_turn();
        n = liar_ready(fds, n_fds);
        if (n || timeout_ms == 0) {
                liar.n_sleeps = 0;
                return n;
        }
        if (!liar.input->n && !liar.wire && ++liar.n_sleeps > LIAR_SLEEPS)
                abort();
        clock_advance((timeout_ms < 0 ? 100u : (uint64_t)timeout_ms) * 1000000);
        return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *was) {
        liar.timer_fd = fd;
        liar.timer_ns = (uint64_t)at->it_value.tv_sec * 1000000000 + (uint64_t)at->it_value.tv_nsec;
        return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

void liar_start(Input *input) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        clock_reset();
        liar = (Liar){.input = input, .timer_fd = -1};
        snprintf(liar.path, sizeof(liar.path), "/tmp/gpuq-fuzz-%d.sock", (int)getpid());
        (void)unlink(liar.path);
        strcpy(address.sun_path, liar.path);
        liar.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (liar.listen_fd < 0 ||
            bind(liar.listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            listen(liar.listen_fd, 8) < 0)
                abort();
}

const char *liar_path(void) {
        return liar.path;
}

void liar_stop(void) {
        liar_hang_up();
        liar_stop_listening();
}

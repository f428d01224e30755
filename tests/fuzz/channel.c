/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that its user owns: what it writes into its ring, what it does to the memory and the
 * sockets of its channel, what it passes as device memory, and when. Beside it a worker that is
 * honest runs the jobs of another user, who must not notice. The supervisor is one for all runs; each
 * run has a worker, a session and jobs of its own, and when it has ended none of them may be left.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fake.h>

#include "clock.h"
#include "input.h"
#include "loan.h"
#include "message.h"
#include "slot.h"
#include "util/log.h"
#include "word.h"

#define PLAY_STEPS_MAX 60u
#define PLAY_BYTES_MAX 8192u /* of a message that is spoilt */
#define PLAY_WAIT_MAX                                                                              \
        400u /* seconds that the other user's job may wait, of which most is a probe */
#define PLAY_JOBS         4u
#define PLAY_SETTLE_TURNS 20u
#define PLAY_LOAN_FIRST   108u /* steps from here on are of direct rings */

typedef struct Play {
        Input input;
        Fake *fake;
        FakeClient *owner, *victim;
        uint64_t jobs[PLAY_JOBS];
        uint64_t arena;
        Loan loan;          /* of the owner */
        FakeWorker *worker; /* the hostile one; NULL: it has ended */
        uint8_t *memory;    /* of its channel */
        size_t n_memory;
} Play;

static Play play;

/* ---- around it ------------------------------------------------------------------ */

static void play_on_keep(Fake *fake, const char *key, int fd) {
}

static void play_on_drop(Fake *fake, const char *key) {
}

static void play_forget_memory(void) {
        if (play.memory)
                munmap(play.memory, play.n_memory);
        play.memory = NULL;
}

static void play_on_spawn(Fake *fake, FakeWorker *worker, const int *fds) {
        if (worker->uid != FAKE_UID)
                return;
        play_forget_memory();
        play.worker = worker;
        play.n_memory = (size_t)lseek(fds[0], 0, SEEK_END);
        play.memory = mmap(NULL, play.n_memory, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        if (play.memory == MAP_FAILED)
                abort();
}

static void play_must(bool is_so) {
        if (!is_so)
                abort();
}

static void play_begin(void) {
        static const FakeHooks hooks = {play_on_keep, play_on_drop, play_on_spawn};

        clock_reset();
        log_open("fuzz", 0);
        play.fake = calloc(1, sizeof(*play.fake));
        play.fake->is_lax = true;
        play.fake->hooks = &hooks;
        play.fake->n_devices = 1;
        fake_start(play.fake, (char *[]){"job_timeout_s=5", "quantum_ms=3", "poll_us=0", NULL});
        fake_begin(play.fake);
        play.victim = fake_client(play.fake, FAKE_UID + 1);
        fake_module(play.victim);
}

/* As if the device and the slots were new: what a run has done to them is not the next one's. */
static void play_forget(void) {
        Engine *engine = &play.fake->supervisor->engine;
        Slot *slot;

        for (slot = engine->slots; slot; slot = slot->hh.next) {
                uv_timer_stop(&slot->retry);
                slot_set_problem(slot, NULL);
                slot->retry_ns = 0;
                slot->n_failures = 0;
                slot->claim = CLAIM_NONE;
                slot->pressure = (Pressure){};
                slot->evictions = (Allowance){};
                *slot->allowances = (Allowances){};
        }
        play.fake->start_error = NULL;
        play.fake->hold_ready = play.fake->hold_modules = false;
        play.fake->n_held = 0;
}

/* Without waiting for its worker, which may never answer. */
static void play_load_module(void) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(play.owner, &request);
        play.owner->module = play.fake->supervisor->engine.last.module;
}

static void play_prepare(const uint8_t *data, size_t n_data) {
        uint8_t how;

        play.input = (Input){data, n_data};
        play_forget();
        how = input_u8(&play.input);
        play.owner = fake_client(play.fake, FAKE_UID);
        play.fake->hold_ready = how & 1;
        play.fake->hold_modules = how & 2;
        play.fake->has_variables = how & 4;
        play.arena = fake_arena(play.owner, GPUQ__V1__PLACE__HOST, 4096);
        play_load_module();
        for (unsigned i = 0; i < PLAY_JOBS; ++i)
                play.jobs[i] = fake_submit_unseen(play.owner,
                                                  (FakeJob){
                                                          .arena = i & 1 ? play.arena : 0,
                                                          .length = 64,
                                                          .direction = GPUQ__V1__DIRECTION__OUT,
                                                          .timeout_ms = how & 8 ? 20 : 0,
                                                  });
        fake_turn(play.fake);
}

/* ---- what it says ------------------------------------------------------------------ */

static FakeWorker *play_worker(void) {
        return play.worker && !play.worker->is_ended ? play.worker : NULL;
}

static uint64_t play_job(void *userdata) {
        Input *input = userdata;
        uint8_t choice = input_u8(input);

        return choice < 240 ? play.jobs[choice % PLAY_JOBS] : input_edge(input);
}

static void play_make_word(Word *word) {
        const Engine *engine = &play.fake->supervisor->engine;
        const WordNames names = {
                .job = play_job,
                .userdata = &play.input,
                .last_arena = engine->last.arena,
                .last_module = engine->last.module,
        };

        word_make(&play.input, &names, word);
}

static int play_some_fd(void) {
        int pair[2];

        switch (input_below(&play.input, 8)) {
                case 0:
                        return memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                case 1:
                        return open("/dev/null", O_RDWR | O_CLOEXEC);
                case 2:
                        return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                case 3:
                        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                                return -1;
                        close(pair[1]);
                        return pair[0];
                default:
                        return -1;
        }
}

static void play_word(void) {
        FakeWorker *worker = play_worker();
        Word word;
        int fd;

        if (!worker)
                return;
        play_make_word(&word);
        fd = play_some_fd();
        (void)protocol_send(worker->channel, &word.message, fd);
        if (fd >= 0)
                close(fd);
}

static void play_spoilt_word(void) {
        FakeWorker *worker = play_worker();
        uint8_t spoilt[PLAY_BYTES_MAX];
        const uint8_t *data;
        Word word;
        size_t n;

        if (!worker)
                return;
        play_make_word(&word);
        if (protocol_pack(worker->channel, &word.message, &data, &n) != 0 || n > sizeof(spoilt))
                return;
        memcpy(spoilt, data, n);
        n = message_spoil(&play.input, spoilt, n, sizeof(spoilt));
        (void)channel_send(worker->channel, spoilt, n, -1);
}

static void play_noise(void) {
        FakeWorker *worker = play_worker();
        size_t n = input_u8(&play.input);
        const uint8_t *bytes = input_take(&play.input, n, &n);

        if (worker)
                (void)channel_send(worker->channel, bytes, n, -1);
}

/* Many times the same, beyond what it may send in a turn and in all. */
static void play_flood(void) {
        FakeWorker *worker = play_worker();
        unsigned n = input_u8(&play.input) * 8u;
        Word word;

        if (!worker)
                return;
        play_make_word(&word);
        while (n-- && protocol_send(worker->channel, &word.message, -1) == 0)
                ;
}

static void play_end_job(void) {
        FakeWorker *worker = play_worker();

        if (worker)
                fake_end(worker, play_job(&play.input),
                         input_below(&play.input, 4) ? 0 : input_below(&play.input, 24));
}

static void play_device_arena(void) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        create.size = 4096;
        create.place = GPUQ__V1__PLACE__DEVICE;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        (void)wire_queue(play.owner->wire, &request.base, -1);
        (void)wire_flush(play.owner->wire);
}

static void play_submit(void) {
        unsigned i = input_below(&play.input, PLAY_JOBS);

        if (wire_pending(play.owner->wire) == 0)
                play.jobs[i] =
                        fake_submit_unseen(play.owner, (FakeJob){.after = play_job(&play.input)});
}

static void play_cancel(void) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        uint64_t id = play_job(&play.input);

        cancel.ids = &id;
        cancel.n_ids = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        (void)wire_queue(play.owner->wire, &request.base, -1);
        (void)wire_flush(play.owner->wire);
}

/* ---- what it does to its channel -------------------------------------------------- */

/* The indices and flags of both rings are at their beginnings, with the first messages behind them. */
static void play_spoil_memory(void) {
        Input *input = &play.input;
        size_t at = input_below(input, 2) * (play.n_memory / 2);
        uint32_t word;

        at += input_below(input, 4) ? input_u8(input) * 4u : input_u32(input) / 4 * 4;
        if (!play_worker())
                return;
        at %= play.n_memory - sizeof(word);
        memcpy(&word, play.memory + at, sizeof(word));
        word = input_below(input, 2) ? (uint32_t)input_edge(input)
                                     : word + input_u8(input) * 8u - 512u;
        memcpy(play.memory + at, &word, sizeof(word));
}

static void play_bell(void) {
        FakeWorker *worker = play_worker();
        uint8_t bytes[256] = {};
        uint8_t how = input_u8(&play.input);

        if (!worker)
                return;
        if (how < 250)
                (void)!send(channel_bell_fd(worker->channel), bytes, how,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        else
                shutdown(channel_bell_fd(worker->channel), how % 3);
}

/* Descriptors of which no message tells, and bytes without one. */
static void play_socket(void) {
        FakeWorker *worker = play_worker();
        uint8_t how = input_u8(&play.input);
        union {
                char bytes[CMSG_SPACE(4 * sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec iov = {.iov_base = &how, .iov_len = how % 2};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        size_t n_fds = how / 2 % 5;
        struct cmsghdr *cmsg;
        int fd;

        if (!worker)
                return;
        if (how >= 250) {
                shutdown(channel_socket_fd(worker->channel), how % 3);
                return;
        }
        fd = n_fds ? play_some_fd() : -1;
        if (fd >= 0) {
                int fds[4] = {fd, fd, fd, fd};

                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }
        (void)!sendmsg(channel_socket_fd(worker->channel), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (fd >= 0)
                close(fd);
}

/* ---- the owner's direct ring ------------------------------------------------------- */

static void play_hear_owner(void) {
        Gpuq__V1__Reply *reply;
        WireFrame frame;

        while (wire_receive(play.owner->wire) == 0)
                while (wire_next(play.owner->wire, &frame) == 0) {
                        reply = gpuq__v1__reply__unpack(NULL, frame.n_data, frame.data);
                        play_must(reply);
                        loan_hear(&play.loan, reply, frame.fd);
                        if (reply->body_case == GPUQ__V1__REPLY__BODY_COMPLETIONS)
                                play.owner->n_seen += reply->completions->n_completions;
                        gpuq__v1__reply__free_unpacked(reply, NULL);
                        if (frame.fd >= 0)
                                close(frame.fd);
                }
}

/* The worker is honest for a moment. */
static void play_settle(void *userdata) {
        bool any = true;

        for (unsigned i = 0; i < PLAY_SETTLE_TURNS && any; ++i) {
                fake_turn(play.fake);
                any = play_worker() && loan_end_jobs(play.fake, play.worker);
                fake_turn(play.fake);
                play_hear_owner();
        }
}

static void play_lend(void) {
        uint8_t how = input_u8(&play.input);

        loan_go(&play.loan, play.owner, how & 1 ? play.arena : 0, !(how & 2), play_settle, NULL);
}

static void play_loan_request(void) {
        uint8_t choice = input_u8(&play.input);

        loan_request(play.owner, GPUQ__V1__REQUEST__BODY_DIRECT_OPEN + choice % 3);
}

static void play_loan_fire(void) {
        uint8_t how = input_u8(&play.input);

        loan_fire(&play.loan, play.owner, 1 + how % 64, how < 192);
}

static void play_loan_take(void) {
        loan_take(&play.loan, input_u8(&play.input));
}

static void play_loan_spoil(void) {
        loan_spoil(&play.loan, play.owner, &play.input);
}

static void play_loan_return(void) {
        if (play_worker())
                loan_return(&play.loan, play.owner, play.worker, &play.input);
}

static void play_loan_count(void) {
        if (play_worker())
                loan_count(play.owner, play.worker, &play.input);
}

/* ---- the rest ---------------------------------------------------------------------- */

static void play_exit(void) {
        FakeWorker *worker = play_worker();

        if (worker)
                fake_crash(play.fake, worker, input_below(&play.input, 2) ? 9 : 1 << 8);
}

static void play_pass_time(void) {
        static const uint64_t units_ns[] = {1000, 1000000, 50000000, 1000000000};
        uint8_t choice = input_u8(&play.input);

        clock_advance((uint64_t)(choice / 4) * units_ns[choice % 4]);
}

typedef void (*PlayStep)(void);

static const PlayStep steps[] = {
        play_word,   play_word,   play_word,         play_word,         play_spoilt_word,
        play_noise,  play_flood,  play_end_job,      play_end_job,      play_device_arena,
        play_submit, play_cancel, play_spoil_memory, play_spoil_memory, play_bell,
        play_socket, play_exit,   play_pass_time,
};

static const PlayStep loan_steps[] = {
        play_lend,      play_lend,        play_loan_request, play_loan_fire,  play_loan_spoil,
        play_loan_take, play_loan_return, play_loan_return,  play_loan_count, play_loan_count,
};

/* Bytes of older inputs mean what they did. */
static PlayStep play_step(uint8_t choice) {
        return choice < PLAY_LOAN_FIRST
                       ? steps[choice % ARRAY_SIZE(steps)]
                       : loan_steps[(choice - PLAY_LOAN_FIRST) % ARRAY_SIZE(loan_steps)];
}

/* ---- what is left ------------------------------------------------------------------ */

static void play_close(void) {
        bool was_held = play.fake->hold_ready || play.fake->hold_modules;

        loan_free(&play.loan);
        fake_client_close(play.owner);
        if (play_worker())
                fake_crash(play.fake, play.worker, 9);
        play.fake->hold_ready = play.fake->hold_modules = false;
        for (size_t i = 0; was_held && i < play.fake->n_workers; ++i) /* the other user's as well */
                if (!play.fake->workers[i].is_ended)
                        fake_crash(play.fake, &play.fake->workers[i], 9);
        fake_turn(play.fake);
}

/* The worker that runs the other user's jobs ends them. */
static void play_end_honestly(void) {
        for (size_t i = 0; i < play.fake->n_workers; ++i) {
                FakeWorker *worker = &play.fake->workers[i];

                for (size_t k = 0;
                     !worker->is_ended && worker->uid != FAKE_UID && k < worker->n_jobs; ++k)
                        fake_end(worker, worker->jobs[k], 0);
                worker->n_jobs = 0;
        }
}

static bool play_hears_of(uint64_t id) {
        Gpuq__V1__Reply *reply;
        bool is_there = false;
        WireFrame frame;

        if (wire_receive(play.victim->wire) != 0)
                return false;
        while (wire_next(play.victim->wire, &frame) == 0) {
                reply = gpuq__v1__reply__unpack(NULL, frame.n_data, frame.data);
                play_must(reply && reply->body_case == GPUQ__V1__REPLY__BODY_COMPLETIONS);
                for (size_t i = 0; i < reply->completions->n_completions; ++i) {
                        const Gpuq__V1__Completion *end = reply->completions->completions[i];

                        play_must(end->state == GPUQ__V1__STATE__DONE);
                        is_there |= end->id == id;
                }
                gpuq__v1__reply__free_unpacked(reply, NULL);
        }
        return is_there;
}

static void play_check_victim(void) {
        uint64_t id = fake_submit_unseen(play.victim, (FakeJob){});

        for (unsigned i = 0;; ++i) {
                fake_turn(play.fake);
                play_end_honestly();
                fake_turn(play.fake);
                if (play_hears_of(id))
                        return;
                play_must(i < PLAY_WAIT_MAX);
                clock_advance(1000000000);
        }
}

/* A worker may start once more, for what its user had asked for before leaving. */
static bool play_is_over(const Supervisor *supervisor) {
        if (supervisor->engine.arenas.by_id || supervisor->engine.jobs)
                return false;
        if (play_worker())
                fake_crash(play.fake, play.worker, 9);
        return HASH_COUNT(supervisor->workers.table) <= 1;
}

static void play_check_rest(void) {
        const Supervisor *supervisor = play.fake->supervisor;

        for (unsigned i = 0; !play_is_over(supervisor) && i < PLAY_WAIT_MAX; ++i) {
                clock_advance(1000000000);
                fake_turn(play.fake);
        }
        play_must(HASH_COUNT(supervisor->clients.sessions) == 1);
        play_must(HASH_COUNT(supervisor->workers.table) <= 1);
        play_must(!supervisor->engine.arenas.by_id && !supervisor->engine.jobs);
        play_must(HASH_COUNT(supervisor->engine.modules) == 1);
        play_must(health_takes_jobs(&supervisor->engine.devices[0].health));
        play_forget_memory();
        play.worker = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        uint8_t choice;

        if (!play.fake)
                play_begin();
        play_prepare(data, n_data);
        for (unsigned i = 0; i < PLAY_STEPS_MAX && play.input.n; ++i) {
                choice = input_u8(&play.input);
                play_step(choice % 128)();
                if (choice < 128) /* else the next one comes at once */
                        fake_turn(play.fake);
                loan_check(play.fake);
        }
        play_close();
        play_check_victim();
        play_check_rest();
        return 0;
}

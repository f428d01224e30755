/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_FAKE_H
#define GPUQ_TEST_FAKE_H

/*
 * A supervisor with everything around it played by the test, in one process and
 * one thread: the keeper at the other end of its socket, workers at the other end
 * of their channels, clients at the other end of their connections.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/wire.h"
#include "job.h"
#include "session.h"
#include "supervisor.h"
#include "worker.h"
#include "worker/protocol.h"

#define FAKE_WORKERS      16u
#define FAKE_SETTINGS_MAX 24u
#define FAKE_JOBS         256u
#define FAKE_UID          4242u

typedef struct FakeWorker {
        uint32_t id;
        uint32_t uid;
        uint32_t device;
        Channel *channel;
        uint64_t jobs[FAKE_JOBS]; /* given to it, in order */
        size_t n_jobs;
        size_t n_lists;            /* messages they came in */
        uint64_t after[FAKE_JOBS]; /* the first it is to run after, 0 if none */
        size_t n_alone;            /* of its jobs, those that it need not hold for others */
        size_t n_arenas;
        size_t n_dropped;
        size_t n_modules;
        size_t n_modules_dropped;
        size_t n_lent, n_recalled; /* direct rings */
        uint64_t lent_at;          /* WORKER_TAKEN() of the last one lent */
        bool is_stopping;
        bool is_killed;
        bool is_ended;
        bool is_deaf;  /* it reads nothing */
        bool is_spare; /* it has no user yet */
        Sms sms;       /* that its kernels may use */
        bool is_lax;   /* as of its Fake */
} FakeWorker;

typedef struct Fake Fake;

/* What else a test wants to know of what the keeper does. */
typedef struct FakeHooks {
        void (*keep)(Fake *fake, const char *key, int fd); /* not the callee's */
        void (*drop)(Fake *fake, const char *key);
        void (*spawn)(Fake *fake, FakeWorker *worker, const int *fds); /* nor these */
} FakeHooks;

struct Fake {
        Supervisor *supervisor;
        int keeper;
        FakeWorker workers[FAKE_WORKERS];
        size_t n_workers;
        size_t n_kept;
        size_t n_dropped;
        unsigned n_devices;      /* that a probe finds; 0: it finds none */
        int arena_fd;            /* handed up as each device arena; 0: a memfd */
        bool hold_ready;         /* workers say nothing at their start */
        bool hold_modules;       /* modules stay unanswered */
        bool has_variables;      /* modules have them */
        const char *start_error; /* workers do not come up */
        bool start_broken;       /* and say that it is the device */
        bool start_crowded;      /* or that it has no room */
        const char *check_error; /* what a check of one device finds broken; NULL: it is well */
        bool check_finds_room;   /* a check finds memory where workers say that there is none */
        bool hold_checks;        /* checks stay unanswered, until fake_release_check() */
        bool hold_probe;         /* the probe for devices does, until fake_release_probe() */
        Channel *check;          /* one that was held */
        uint32_t check_id;
        unsigned n_checks;
        uint64_t held[FAKE_JOBS]; /* modules that wait for fake_release_modules() */
        size_t n_held;
        unsigned n_spawned;
        bool is_ready;
        bool is_deaf;           /* the keeper reads nothing */
        const FakeHooks *hooks; /* NULL: none */
        bool is_lax; /* what a test would fail by is passed over: anything may be said, to anybody */
};

typedef struct FakeClient {
        Fake *fake;
        Wire *wire;
        uint32_t session;
        uint32_t tag;
        uint64_t module;
        uint32_t n_seen; /* completions that it read and counted */
        bool is_closed;
        bool is_unseen;         /* requests are written without a turn of the loop */
        Gpuq__V1__Reply *reply; /* the last one */
        int fd;                 /* that came with it */
} FakeClient;

/* What a new fake logs; tests of the first lines change it. */
extern int fake_log_level;
/* The devices that each device of a new fake can access, a bit for each; a test sets it, and back to 0. */
extern uint64_t fake_peers;

/** fake_new() - with settings as on the command line, NULL-terminated, or NULL. */
Fake *fake_new(unsigned n_devices, char **settings);
/** fake_restart() - another supervisor, to which the keeper hands a memfd of this text under this key. */
void fake_restart(Fake *fake, const char *key, const char *text);
/** fake_start() - a supervisor, once there is none; then what it is handed, then fake_begin(). */
void fake_start(Fake *fake, char **settings);
/** fake_begin() - the keeper has handed over all that it held. */
void fake_begin(Fake *fake);
/** fake_hand_over() - the keeper held this. */
void fake_hand_over(Fake *fake, const char *key, int fd);
/** fake_stop() - the supervisor ends as if it had been killed; the keeper kills its workers. */
void fake_stop(Fake *fake);
/** fake_free() - also asserts that nothing is left charged. */
void fake_free(Fake *fake);
/** fake_kept_in_time() - all that a deaf keeper finds in its socket. Return: how much of that it is to keep. */
size_t fake_kept_in_time(Fake *fake);
/** fake_step() - keeper and workers hear one message each. Return: whether there was one. */
bool fake_step(Fake *fake);
/** fake_turn() - let everybody do what can be done without waiting. */
void fake_turn(Fake *fake);
/** fake_wait() - turns, until @done is true; fails the test after 60 s. */
void fake_wait(Fake *fake, bool (*done)(void *userdata), void *userdata);

/** fake_client() - connected and greeted; its work waits while there is no device. */
FakeClient *fake_client(Fake *fake, uint32_t uid);
/** fake_client_impatient() - the same, but its work fails then. */
FakeClient *fake_client_impatient(Fake *fake, uint32_t uid);
/** fake_client_raw() - connected only. @is_admin: of the admin group. */
FakeClient *fake_client_raw(Fake *fake, uint32_t uid, bool is_admin);
/** fake_ring() - its messages go by a ring from now on; it never sleeps. Needs poll_us. */
void fake_ring(FakeClient *client);
void fake_client_close(FakeClient *client);
/** fake_send() - one request; serial 7. */
void fake_send(FakeClient *client, Gpuq__V1__Request *request);
/** fake_receive() - the next reply, the client's until the next one. NULL: it was closed. */
Gpuq__V1__Reply *fake_receive(FakeClient *client);
/** fake_expect_error() - the next reply is an error with this code and these words. */
void fake_expect_error(FakeClient *client, int code, const char *words);

/** fake_arena() - Return: its id. */
uint64_t fake_arena(FakeClient *client, Gpuq__V1__Place place, uint64_t size);
/** fake_module() - loads the built-in one. */
void fake_module(FakeClient *client);

typedef struct FakeJob {
        uint64_t arena; /* 0: no buffer */
        uint64_t offset;
        uint64_t length;
        Gpuq__V1__Direction direction;
        uint64_t after; /* 0: none */
        size_t n_after; /* so many jobs from `after` on; 0: it alone */
        int priority;
        uint32_t timeout_ms;
        uint32_t device; /* index + 1 */
        const char *label;
        bool repeatable;
        bool is_copy;        /* it has operations, but no kernel */
        uint64_t word_arena; /* 0: no completion word */
        uint64_t word_offset;
} FakeJob;

/** fake_submit() - one job with kernel "add". Return: its id. */
uint64_t fake_submit(FakeClient *client, FakeJob job);
/** fake_submit_many() - in as few messages as may be, the same job. Return: the id of the first. */
uint64_t fake_submit_many(FakeClient *client, FakeJob job, size_t n);
/** fake_submit_unseen() - the same, and nobody has read it yet. */
uint64_t fake_submit_unseen(FakeClient *client, FakeJob job);
/** fake_completion() - receive until the end of this job comes; valid until the next receive. */
Gpuq__V1__Completion *fake_completion(FakeClient *client, uint64_t id);
/** fake_expect_end() - it ends in this state, with this code and these words in its error. */
void fake_expect_end(FakeClient *client, uint64_t id, Gpuq__V1__State state, int code,
                     const char *words);

/** fake_worker() - the n-th that was started, no probes counted; waits for it to have @n_jobs jobs. */
FakeWorker *fake_worker(Fake *fake, size_t index, size_t n_jobs);
/** fake_come_up() - its context is there, or it has become its user's. */
void fake_come_up(Fake *fake, FakeWorker *worker);
/** fake_say() - a message of this worker. */
void fake_say(FakeWorker *worker, WorkerMessage message, int fd);
/** fake_end() - the worker says the job is done, or failed with @code. */
void fake_end(FakeWorker *worker, uint64_t id, int code);
/** fake_last_word() - @fault NULL: it was asked to. Its process lives on. */
void fake_last_word(FakeWorker *worker, const char *fault, bool device_failed, const uint64_t *jobs,
                    const WorkerPhase *phases, size_t n_jobs);
/** fake_stopped() - its last word; @fault NULL: it was asked to. Then it exits. */
void fake_stopped(Fake *fake, FakeWorker *worker, const char *fault, const uint64_t *jobs,
                  const WorkerPhase *phases, size_t n_jobs);
/** fake_broke() - its last word: the device failed under it. Then it exits. */
void fake_broke(Fake *fake, FakeWorker *worker, const char *why, const uint64_t *jobs,
                const WorkerPhase *phases, size_t n_jobs);
/** fake_release_check() - answer the one that was held. */
void fake_release_check(Fake *fake);
/** fake_release_probe() - show the devices. */
void fake_release_probe(Fake *fake);
/** fake_die() - it exits without a word, by signal 9. */
void fake_die(Fake *fake, FakeWorker *worker);
/** fake_crash() - the same, by this signal. */
void fake_crash(Fake *fake, FakeWorker *worker, int signal);
/** fake_late() - a job of it ran past its timeout. */
void fake_late(FakeWorker *worker, uint64_t id);
/** fake_release_modules() - answer those that were held. */
void fake_release_modules(Fake *fake, FakeWorker *worker, int code);
/** fake_device_status() - as gpuq status has it; the client's until its next reply. */
const Gpuq__V1__DeviceStatus *fake_device_status(FakeClient *client, size_t device);
/** fake_reason() - why this job waits, as the queue says. */
const char *fake_reason(FakeClient *client, uint64_t id);

#endif

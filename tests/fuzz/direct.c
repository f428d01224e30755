/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct rings as a worker reads them, whose clients write there what they like. gpuqd, which lends the rings and counts
 * what it is told, is honest, and so are the worker's messages to it: each job that was taken is told once, in a sum or
 * by an end; none runs twice, or before one that it must follow; no more are in flight than were allowed; and the worker
 * writes nothing in a ring but its own words.
 */

#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h> /* does nothing without it */
#else
#define ASAN_POISON_MEMORY_REGION(at, n)   ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fake_device.h"
#include "input.h"
#include "job_message.h"
#include "util/log.h"
#include "util/table.h"
#include "worker/report.h"
#include "worker/worker.h"

#define PLAY_STEPS_MAX  200u
#define PLAY_OWNERS     3u
#define PLAY_ARENAS     3u
#define PLAY_PARTS      4u  /* of memory, of which templates have some */
#define PLAY_FIRES_MAX  48u /* in one step */
#define PLAY_BEFORE_MAX (PLAY_STEPS_MAX + WORKER_DIRECT_JOBS) /* jobs that are known at once */
#define PLAY_DRAIN_MAX  5000u
#define PREPARED_FIRST  10u
#define MODULE          5u

/* A prepared job. */
typedef struct Shape {
        uint8_t parts; /* a bit each */
        uint8_t manner;
        int8_t priority;
        uint8_t timeout_ms;
        uint32_t n_taken, n_counted; /* in this loan, and of those in sums */
} Shape;

/* A session: its client, and gpuqd's part. */
typedef struct Owner {
        uint32_t id;
        DirectRing ring; /* the client's */
        int ring_fd;
        int bells[2]; /* gpuqd's copy of the worker's end, and the client's end */
        uint32_t tag;
        DirectShared before; /* the ring, at the begin of a turn */

        bool is_lent; /* as gpuqd knows */
        bool is_recalled;
        uint32_t n_taken, last_tag;
        uint32_t last_seen; /* tag of the job that the worker took last */
        uint32_t n_seen;    /* entries taken, as n_taken will be */
        unsigned n_max;
        Shape shapes[WORKER_TEMPLATES_MAX];
        unsigned n_shapes;
} Owner;

/* A job that the worker has, or had. */
typedef struct Had {
        UT_hash_handle hh;
        uint64_t id;
        const Job *job;
        Owner *owner;
        unsigned shape;
        uint8_t parts;
        uint32_t entry; /* where it was taken */
        bool is_known;  /* gpuqd gave it, or was told of it, and awaits its end */
        bool is_issued, is_done, is_ended;
} Had;

typedef struct Play {
        Input input;
        Worker worker;
        WorkerOptions options;
        FakeDevice device;
        Channel *channel; /* gpuqd's end */
        Arena arenas[PLAY_ARENAS];
        Module module;
        Owner owners[PLAY_OWNERS];
        Had *jobs;
        bool is_over; /* the worker has stopped: what comes is not told any more */
} Play;

_Static_assert(offsetof(DirectShared, entries) % sizeof(DirectEntry) == 0, "lines are entries");

static Play play;

#define must(is_so) play_must(is_so, #is_so)

static void play_must(bool is_so, const char *what) {
        if (is_so)
                return;
        fprintf(stderr, "not so: %s\n", what);
        abort();
}

static Owner *play_owner(void) {
        return &play.owners[input_below(&play.input, PLAY_OWNERS)];
}

static Had *had_find(uint64_t id) {
        Had *had;

        HASH_FIND(hh, play.jobs, &id, sizeof(id), had);
        return had;
}

static Had *had_add(Owner *owner, uint32_t tag, unsigned shape) {
        Had *had = calloc(1, sizeof(*had));

        must(had);
        *had = (Had){
                .id = (uint64_t)owner->id << 32 | tag,
                .owner = owner,
                .shape = shape,
                .parts = owner->shapes[shape].parts,
        };
        must(!had_find(had->id));
        HASH_ADD(hh, play.jobs, id, sizeof(had->id), had);
        return had;
}

static Owner *owner_find(uint64_t id) {
        must(id && id <= PLAY_OWNERS);
        return &play.owners[id - 1];
}

/* The worker has taken it from a ring. */
static Had *had_take(const WorkerJob *message, unsigned shape) {
        Owner *owner = owner_find(message->id >> 32);
        uint32_t tag = (uint32_t)message->id;
        Had *had;

        must(owner->is_lent && tag > owner->last_seen && shape < owner->n_shapes);
        owner->last_seen = tag;
        owner->shapes[shape].n_taken++;
        had = had_add(owner, tag, shape);
        had->entry = owner->n_seen++;
        return had;
}

/* ---- the device -------------------------------------------------------------------- */

/* Jobs of other sessions are of other memory here. */
static bool had_is_before(const Had *had, const Had *later) {
        return had != later && had->owner == later->owner && (had->parts & later->parts) &&
               (uint32_t)had->id < (uint32_t)later->id && !had->is_ended;
}

static void play_on_issue(const Job *job) {
        Had *had = had_find(job->id);

        must(had && !had->is_issued && !had->is_ended);
        had->is_issued = true;
}

static bool had_was_refused(const Had *had) {
        return !had->is_issued && had->job && failure_is_set(&had->job->failure);
}

static void play_on_done(const Job *job) {
        Had *had = had_find(job->id), *other;

        must(had->is_issued && !had->is_done);
        for (other = play.jobs; other; other = other->hh.next)
                must(play.is_over || !had_is_before(other, had) || other->is_done ||
                     had_was_refused(other));
        had->is_done = true;
}

/* ---- the worker's objects ------------------------------------------------------------- */

static Arena *play_find_arena(void *userdata, uint64_t id) {
        return id && id <= PLAY_ARENAS ? &play.arenas[id - 1] : NULL;
}

static Module *play_find_module(void *userdata, uint64_t id) {
        return id == MODULE ? &play.module : NULL;
}

/* The worker's own mapping: what is behind the ring is not to be read. */
int __real_direct_ring_adopt(DirectRing *ring, int fd);
int __wrap_direct_ring_adopt(DirectRing *ring, int fd);
int __wrap_direct_ring_adopt(DirectRing *ring, int fd) {
        must(__real_direct_ring_adopt(ring, fd) == 0);
        ASAN_POISON_MEMORY_REGION(ring->shared + 1, direct_ring_bytes() - sizeof(DirectShared));
        return 0;
}

void __real_direct_ring_release(DirectRing *ring);
void __wrap_direct_ring_release(DirectRing *ring);
void __wrap_direct_ring_release(DirectRing *ring) {
        if (ring->shared)
                ASAN_UNPOISON_MEMORY_REGION(ring->shared + 1,
                                            direct_ring_bytes() - sizeof(DirectShared));
        __real_direct_ring_release(ring);
}

void __wrap_worker_exit(const Worker *worker, int status);
void __wrap_worker_exit(const Worker *worker, int status) {
        abort(); /* gpuqd is honest */
}

void __wrap_worker_check_sent(const Worker *worker, int r);
void __wrap_worker_check_sent(const Worker *worker, int r) {
        must(r == 0);
}

int __real_runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts,
                      Job **ret_job);
int __wrap_runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts,
                      Job **ret_job);
int __wrap_runner_add(Runner *runner, const WorkerJob *message, const WorkerJobParts *parts,
                      Job **ret_job) {
        Had *had = had_find(message->id);
        Job *job;

        must(__real_runner_add(runner, message, parts, &job) == 0);
        if (!had)
                had = had_take(message, parts->operations[1]);
        must(!had->job);
        had->job = job;
        if (ret_job)
                *ret_job = job;
        return 0;
}

static void play_begin_worker(void) {
        static const JobTables tables = {play_find_arena, play_find_module, NULL};
        const RunnerSettings settings = {.issue.coalesce = true, .coalesce_ns = 10000};
        Worker *worker = &play.worker;
        int fds[CHANNEL_N_FDS];

        must(channel_new(&play.channel, fds) == 0);
        must(channel_adopt(fds, &worker->channel) == 0);
        worker->options = &play.options;
        outbox_init(&worker->outbox, worker->channel);
        must(uv_loop_init(&worker->loop) == 0);
        quiesce_init(&worker->quiesce);
        must(runner_init(&worker->runner, &play.device.context, &play.device.streams,
                         &worker->quiesce, &worker->output, &tables, &settings) == 0);
        directs_init(&worker->directs, &worker->runner, &worker->outbox, &worker->loop);
        runner_open(&worker->runner, NULL);
}

/* Entries that were taken before, and tags. */
static void play_begin_owner(Owner *owner, uint32_t id, uint32_t n_taken, uint32_t last_tag) {
        *owner = (Owner){.id = id, .n_taken = n_taken, .last_tag = last_tag};
        must(direct_ring_make(&owner->ring, &owner->ring_fd) == 0);
        must(direct_bell_make(owner->bells) == 0);
        owner->ring.shared->n_taken = owner->ring.shared->n_written = n_taken;
}

static void play_begin(const uint8_t *data, size_t n_data) {
        clock_reset();
        log_open("fuzz", 0);
        play = (Play){.input = {data, n_data}};
        fake_device_init(&play.device, play_on_issue, play_on_done);
        for (unsigned i = 0; i < PLAY_ARENAS; ++i)
                play.arenas[i] = (Arena){.id = i + 1, .size = 4096, .state = ARENA_READY};
        play.module = (Module){.id = MODULE, .state = MODULE_READY};
        play_begin_worker();
        play_begin_owner(&play.owners[0], 1, 0, 0);
        play_begin_owner(&play.owners[1], 2, DIRECT_RING_ENTRIES - 5, 1000);
        play_begin_owner(&play.owners[2], 3, UINT32_MAX - 20, UINT32_MAX - 60);
}

/* ---- gpuqd hears ------------------------------------------------------------------- */

static Shape *owner_shape(Owner *owner, uint32_t prepared) {
        must(prepared >= PREPARED_FIRST && prepared < PREPARED_FIRST + owner->n_shapes);
        return &owner->shapes[prepared - PREPARED_FIRST];
}

static void play_hear_taken(Owner *owner, const WorkerMessage *message) {
        const WorkerTaken *taken = message->items;
        uint32_t tag = owner->last_tag;
        Had *had;

        must(message->head.n_items <= owner->n_max);
        for (uint32_t i = 0; i < message->head.n_items; ++i) {
                must(taken[i].tag > tag);
                tag = taken[i].tag;
                had = had_find((uint64_t)owner->id << 32 | tag);
                must(had && !had->is_known && !had->is_ended);
                must(owner_shape(owner, taken[i].prepared) == &owner->shapes[had->shape]);
                had->is_known = true;
                owner->shapes[had->shape].n_counted++;
        }
        must(tag <= message->head.number >> 32);
}

/* Each job is in a sum, or in this message. */
static void play_hear_returned(const WorkerMessage *message) {
        Owner *owner = owner_find(message->head.id);
        uint32_t n_taken = (uint32_t)message->head.number, n = 0;

        must(owner->is_lent);
        play_hear_taken(owner, message);
        for (unsigned i = 0; i < owner->n_shapes; ++i) {
                must(owner->shapes[i].n_counted == owner->shapes[i].n_taken);
                n += owner->shapes[i].n_taken;
        }
        must(n_taken - owner->n_taken == n && n_taken == owner->n_seen);
        must(owner->last_seen == message->head.number >> 32);
        owner->n_taken = n_taken;
        owner->last_tag = owner->last_seen;
        owner->is_lent = false;
        direct_ring_lend(&owner->ring, false);
}

static void play_hear_lent(const WorkerMessage *message) {
        const WorkerLent *lent = message->items;
        size_t n = message->head.n_items / sizeof(*lent);
        Owner *owner;
        Shape *shape;

        must(message->head.n_items % sizeof(*lent) == 0);
        for (size_t i = 0; i < n; ++i) {
                owner = owner_find(lent[i].session);
                must(owner->is_lent && lent[i].n_done > 0);
                shape = owner_shape(owner, lent[i].prepared);
                shape->n_counted += (uint32_t)lent[i].n_done;
                must(shape->n_counted <= shape->n_taken);
        }
}

static Had *play_hear_of(uint64_t id) {
        Had *had = had_find(id);

        must(had && had->is_known && !had->is_ended);
        return had;
}

static void play_hear_ends(const WorkerMessage *message) {
        const WorkerEnd *ends = message->items;
        Had *had;

        for (uint32_t i = 0; i < message->head.n_items; ++i) {
                had = play_hear_of(ends[i].id);
                must(had->is_done || (!had->is_issued && message->head.code));
                had->is_ended = true;
                had->job = NULL;
        }
}

/* What the worker has not read yet is in no message of it. */
static void play_hear_stopped(const WorkerMessage *message) {
        const WorkerInFlight *left = message->items;
        uint32_t n = 0;
        const Had *had;

        for (uint32_t i = 0; i < message->head.n_items; ++i)
                (void)play_hear_of(left[i].id);
        for (had = play.jobs; had; had = had->hh.next)
                n += had->is_known && !had->is_ended && had->job;
        must(n == message->head.n_items);
        must(TAILQ_EMPTY(&play.worker.directs.lent));
}

static void play_hear_message(const WorkerMessage *message) {
        switch (message->head.kind) {
                case FROM_WORKER_RETURNED:
                        play_hear_returned(message);
                        break;
                case FROM_WORKER_LENT:
                        play_hear_lent(message);
                        break;
                case FROM_WORKER_ENDS:
                        play_hear_ends(message);
                        break;
                case FROM_WORKER_LATE:
                        (void)play_hear_of(message->head.id);
                        break;
                case FROM_WORKER_STOPPED:
                        play_hear_stopped(message);
                        break;
                default:
                        abort();
        }
}

static void play_hear(void) {
        WorkerMessage message;
        const uint8_t *data;
        size_t n_data;

        while (channel_receive(play.channel, &data, &n_data) == 0) {
                must(protocol_read(data, n_data, &message));
                play_hear_message(&message);
        }
}

/* ---- a turn of the worker -------------------------------------------------------------- */

static void play_count(const struct JobList *jobs, unsigned n[PLAY_OWNERS]) {
        const Job *job;

        TAILQ_FOREACH (job, jobs, link)
                if (job->fired.direct)
                        n[owner_find(job->id >> 32) - play.owners]++;
}

static void play_check_in_flight(void) {
        const Worker *worker = &play.worker;
        unsigned n[PLAY_OWNERS] = {}, n_all = 0, load = 0;

        play_count(&worker->runner.waiting, n);
        play_count(&worker->runner.in_flight, n);
        play_count(&worker->runner.ended, n);
        for (unsigned i = 0; i < PLAY_OWNERS; ++i) {
                must(n[i] <= play.owners[i].n_max);
                n_all += n[i];
                load += n[i] ? n[i] * (DIRECTS_FULL / play.owners[i].n_max) : 0;
        }
        must(n_all == worker->directs.n_in_flight);
        must(load == worker->directs.load && load < 2 * DIRECTS_FULL);
}

static void play_stop_worker(void) {
        Worker *worker = &play.worker;
        bool any;

        (void)runner_collect(&worker->runner, uv_hrtime(), &any);
        must(directs_end(&worker->directs, uv_hrtime()) == 0);
        must(directs_give_back_all(&worker->directs) == 0);
        must(report_ends(&worker->outbox, &worker->runner.ended) == 0);
        runner_free_ended(&worker->runner);
        must(report_stopped(&worker->outbox, &worker->runner, &(Failure){0}, NULL) == 0);
        play_hear();
        play.is_over = true;
}

static void play_tell_ends(void) {
        Worker *worker = &play.worker;

        must(directs_end(&worker->directs, uv_hrtime()) == 0);
        must(play.is_over || report_ends(&worker->outbox, &worker->runner.ended) == 0);
        runner_free_ended(&worker->runner);
}

static void play_tell_late(uint64_t now_ns) {
        Worker *worker = &play.worker;
        Job *job;

        while (!play.is_over && (job = runner_next_late(&worker->runner, now_ns))) {
                must(directs_late(&worker->directs, job) == 0);
                must(report_late(&worker->outbox, job) == 0);
        }
}

/* As worker.c has it. Return: as runner_turn(). */
static int play_work(void) {
        Worker *worker = &play.worker;
        uint64_t now_ns = uv_hrtime();
        bool any = false, has_message = !play.is_over;
        int r;

        r = runner_collect(&worker->runner, now_ns, &any);
        if (r)
                return r;
        play_tell_ends();
        while (has_message)
                must(worker_receive(worker, &has_message) == 0);
        must(directs_take(&worker->directs, now_ns, &any) == 0);
        play_check_in_flight();
        r = runner_turn(&worker->runner, now_ns, &any);
        if (r)
                return r;
        play_tell_late(now_ns);
        play_tell_ends();
        return 0;
}

/* One that the worker has changed. @at: bytes from the begin of the ring. */
static void play_check_word(const Owner *owner, size_t at, uint32_t word) {
        const Had *had = had_find((uint64_t)owner->id << 32 | word);
        size_t in_entry = at % sizeof(DirectEntry);

        if (at < offsetof(DirectShared, entries)) {
                must(at == offsetof(DirectShared, client_sleeps)
                             ? word == 0
                             : at >= offsetof(DirectShared, n_taken) &&
                                       at <= offsetof(DirectShared, reader_sleeps));
                return;
        }
        must(in_entry != offsetof(DirectEntry, tag) && in_entry != offsetof(DirectEntry, prepared));
        must(in_entry < offsetof(DirectEntry, _padding));
        if (in_entry == offsetof(DirectEntry, taken) || in_entry == offsetof(DirectEntry, done))
                must(had && had->entry % DIRECT_RING_ENTRIES ==
                                    (at - offsetof(DirectShared, entries)) / sizeof(DirectEntry));
        if (in_entry != offsetof(DirectEntry, done))
                return;
        must(had->is_done);
        must(!owner->is_lent || !owner->ring.shared->client_sleeps); /* it was woken */
}

static void play_check_ring(const Owner *owner, bool was_lent) {
        const uint8_t *before = (const uint8_t *)&owner->before,
                      *now = (const uint8_t *)owner->ring.shared;
        uint32_t word;

        if (memcmp(before + sizeof(DirectEntry), now + sizeof(DirectEntry),
                   sizeof(DirectShared) - sizeof(DirectEntry)) == 0)
                return;
        for (size_t line = sizeof(DirectEntry); line < sizeof(DirectShared);
             line += sizeof(DirectEntry)) {
                if (memcmp(before + line, now + line, sizeof(DirectEntry)) == 0)
                        continue;
                must(was_lent);
                for (size_t at = line; at < line + sizeof(DirectEntry); at += sizeof(word)) {
                        memcpy(&word, now + at, sizeof(word));
                        if (memcmp(before + at, now + at, sizeof(word)) != 0)
                                play_check_word(owner, at, word);
                }
        }
}

static void play_turn(void) {
        bool was_lent[PLAY_OWNERS];

        for (unsigned i = 0; i < PLAY_OWNERS; ++i) {
                was_lent[i] = play.owners[i].is_lent;
                play.owners[i].before = *play.owners[i].ring.shared;
        }
        directs_wake(&play.worker.directs);
        if (play_work() != 0 && !play.is_over)
                play_stop_worker();
        uv_run(&play.worker.loop, UV_RUN_NOWAIT);
        must(!play.worker.directs.has_failed);
        if (!play.is_over)
                play_hear();
        for (unsigned i = 0; i < PLAY_OWNERS; ++i)
                play_check_ring(&play.owners[i], was_lent[i]);
}

/* ---- gpuqd speaks ---------------------------------------------------------------------- */

static uint8_t *play_write_job(uint8_t *p, const Owner *owner, const Shape *shape, uint64_t id,
                               const uint64_t *after, uint32_t n_after) {
        const uint64_t module = MODULE;
        WorkerBuffer buffers[PLAY_PARTS];
        uint8_t operations[] = {shape->manner, (uint8_t)(shape - owner->shapes)};
        const WorkerJobParts parts = {buffers, &module, after, "f", operations};
        WorkerJob job = {
                .id = id,
                .priority = shape->priority,
                .timeout_ms = shape->timeout_ms,
                .n_kernels = 1,
                .n_names = sizeof("f"),
                .n_operations = sizeof(operations),
                .n_after = n_after,
        };

        for (unsigned i = 0; i < PLAY_PARTS; ++i)
                if (shape->parts & 1 << i)
                        buffers[job.n_buffers++] =
                                (WorkerBuffer){1 + (owner->id + i) % PLAY_ARENAS, 64 * i, 64,
                                               GPUQ__V1__DIRECTION__INOUT};
        return job_message_write(p, job, &parts);
}

static void play_make_shapes(Owner *owner) {
        Input *input = &play.input;

        owner->n_shapes = 1 + input_below(input, 6);
        if (owner->n_shapes == 6)
                owner->n_shapes = WORKER_TEMPLATES_MAX;
        for (unsigned i = 0; i < owner->n_shapes; ++i) {
                uint8_t how = input_u8(input);

                owner->shapes[i] = (Shape){
                        .parts = how % 16,
                        .manner = how & 128 ? input_below(input, 16) : MANNER_JOINS,
                        .priority = (int8_t)(how & 64 ? input_below(input, 3) - 1 : 0),
                        .timeout_ms = how & 32 ? 1 : 0,
                };
        }
}

static size_t play_write_templates(const Owner *owner, uint8_t *data) {
        uint64_t after[WORKER_TEMPLATES_MAX];
        uint8_t *p = data;

        for (unsigned i = 0; i < owner->n_shapes; ++i) {
                uint32_t n_after = 0;

                for (unsigned k = 0; k < owner->n_shapes; ++k)
                        if (k == i || owner->shapes[k].parts & owner->shapes[i].parts)
                                after[n_after++] = PREPARED_FIRST + k;
                p = play_write_job(p, owner, &owner->shapes[i], PREPARED_FIRST + i, after, n_after);
        }
        return (size_t)(p - data);
}

static bool owner_has_jobs(const Owner *owner) {
        const Had *had;

        for (had = play.jobs; had; had = had->hh.next)
                if (had->owner == owner && had->is_known && !had->is_ended)
                        return true;
        return false;
}

static void play_lend(void) {
        Owner *owner = play_owner();
        uint64_t data[WORKER_TEMPLATES_MAX * 96];
        WorkerMessage message = {{.kind = TO_WORKER_DIRECT_RING, .id = owner->id}, .items = data};

        if (owner->is_lent || owner_has_jobs(owner))
                return;
        must(protocol_send(play.channel, &message, owner->ring_fd) == 0);
        message.head.kind = TO_WORKER_DIRECT_BELL;
        must(protocol_send(play.channel, &message, owner->bells[0]) == 0);

        play_make_shapes(owner);
        owner->n_max = 1 + input_u8(&play.input) % WORKER_DIRECT_JOBS;
        message.head = (WorkerHead){
                .kind = TO_WORKER_LEND,
                .id = owner->id,
                .number = WORKER_TAKEN(owner->n_taken, owner->last_tag),
                .detail = owner->n_max,
                .n_items = (uint32_t)play_write_templates(owner, (uint8_t *)data),
        };
        must(message.head.n_items <= sizeof(data));
        must(protocol_send(play.channel, &message, -1) == 0);
        owner->is_lent = true;
        owner->is_recalled = false;
        owner->last_seen = owner->last_tag;
        owner->n_seen = owner->n_taken;
        direct_ring_lend(&owner->ring, true);
}

static void owner_recall(Owner *owner) {
        if (!owner->is_lent || owner->is_recalled)
                return;
        owner->is_recalled = true;
        must(protocol_send(play.channel,
                           &(WorkerMessage){{.kind = TO_WORKER_RECALL, .id = owner->id}}, -1) == 0);
}

static void play_recall(void) {
        owner_recall(play_owner());
}

/* One that came by a message, while the ring is not lent. */
static void play_ordinary(void) {
        Owner *owner = play_owner();
        uint64_t data[PLAY_BEFORE_MAX + 64], after[PLAY_BEFORE_MAX];
        uint32_t n_after = 0;
        Had *had, *other;
        uint8_t *end;

        if (owner->is_lent || owner->last_tag == UINT32_MAX || !owner->n_shapes)
                return;
        had = had_add(owner, ++owner->last_tag, input_u8(&play.input) % owner->n_shapes);
        had->is_known = true;
        for (other = play.jobs; other; other = other->hh.next)
                if (had_is_before(other, had) && other->is_known) {
                        must(n_after < PLAY_BEFORE_MAX);
                        after[n_after++] = other->id;
                }
        end = play_write_job((uint8_t *)data, owner, &owner->shapes[had->shape], had->id, after,
                             n_after);
        must(protocol_send(play.channel,
                           &(WorkerMessage){{.kind = TO_WORKER_JOBS,
                                             .n_items = (uint32_t)(end - (uint8_t *)data)},
                                            .items = data},
                           -1) == 0);
}

/* ---- clients --------------------------------------------------------------------------- */

static void owner_ring_bell(Owner *owner) {
        if (direct_ring_must_wake_reader(&owner->ring) && owner->bells[1] >= 0)
                direct_bell_ring(owner->bells[1]);
}

/* As libgpuq does. */
static void play_fire(void) {
        Owner *owner = play_owner();
        unsigned n = input_u8(&play.input) % PLAY_FIRES_MAX;

        owner->tag = MAX(owner->tag, owner->last_tag);
        owner->ring.position = owner->ring.shared->n_written;
        for (unsigned i = 0; i <= n && owner->n_shapes && direct_ring_has_room(&owner->ring); ++i)
                (void)direct_ring_write(&owner->ring, ++owner->tag,
                                        PREPARED_FIRST +
                                                (i + input_u8(&play.input)) % owner->n_shapes);
        owner_ring_bell(owner);
}

static void play_see_ends(void) {
        Owner *owner = play_owner();

        for (uint32_t i = 0; i < DIRECT_RING_ENTRIES; ++i) {
                DirectEntry *entry = direct_ring_entry(&owner->ring, i);

                if (entry->tag && direct_ring_is_done(entry, entry->tag))
                        direct_ring_free(entry);
        }
        if (input_below(&play.input, 2))
                (void)direct_ring_doze(&owner->ring, owner->ring.position - PLAY_FIRES_MAX);
}

/* Most lie where the worker reads next. */
static uint32_t *play_some_word(const Owner *owner) {
        DirectShared *shared = owner->ring.shared;
        Input *input = &play.input;
        uint32_t index = shared->n_taken + input_u8(input) % 16;
        DirectEntry *entry = direct_ring_entry(&owner->ring, index);

        switch (input_below(input, 8)) {
                case 0:
                        return &shared->n_written;
                case 1:
                        return &entry->tag;
                case 2:
                        return &entry->prepared;
                case 3:
                        return &entry->done;
                case 4:
                        return &entry->taken;
                case 5:
                        return (uint32_t *)shared + 16 * input_below(input, 3) +
                               input_below(input, 3);
                default:
                        return (uint32_t *)shared +
                               input_u16(input) % (direct_ring_bytes() / sizeof(uint32_t));
        }
}

static uint32_t play_some_value(const Owner *owner, uint32_t old) {
        Input *input = &play.input;

        switch (input_below(input, 6)) {
                case 0:
                        return (uint32_t)input_edge(input);
                case 1:
                        return owner->tag + input_u8(input) - 64;
                case 2:
                        return PREPARED_FIRST + input_below(input, 8);
                case 3:
                        return owner->ring.shared->n_taken + input_u8(input) * 8u - 1024;
                case 4:
                        return 0;
                default:
                        return old + input_u8(input) - 128;
        }
}

static void play_spoil(void) {
        Owner *owner = play_owner();
        uint32_t *word = play_some_word(owner);

        *word = play_some_value(owner, *word);
        owner->tag = MAX(owner->tag, owner->ring.shared->last_tag);
}

static void play_bell(void) {
        Owner *owner = play_owner();
        uint8_t how = input_u8(&play.input);

        if (owner->bells[1] < 0)
                return;
        if (how < 200) {
                for (unsigned i = 0; i <= how; ++i)
                        direct_bell_ring(owner->bells[1]);
        } else if (how < 240) {
                shutdown(owner->bells[1], how % 3);
        } else {
                close(owner->bells[1]);
                owner->bells[1] = -1;
        }
}

/* ---- the rest -------------------------------------------------------------------------- */

static void play_end_batch(void) {
        const Runner *runner = &play.worker.runner;
        const Batch *batch = TAILQ_FIRST(&runner->batches);

        for (unsigned i = input_u8(&play.input); i && batch; --i)
                batch = TAILQ_NEXT(batch, link);
        if (batch)
                fake_device_end(runner, batch);
        else
                fake_device_end_all(runner);
}

static void play_trouble(void) {
        play.device.trouble = input_below(&play.input, _TROUBLE_N);
}

static void play_pass_time(void) {
        static const uint64_t units_ns[] = {1000, 100000, 1000000, 20000000};
        uint8_t choice = input_u8(&play.input);

        clock_advance((choice / 4) * units_ns[choice % 4]);
}

static void play_doze(void) {
        Directs *directs = &play.worker.directs;
        if (directs_sleep(directs))
                owner_ring_bell(play_owner());
        else
                must(!TAILQ_EMPTY(&directs->lent));
}

static void play_prepare(void) {
        static const ArenaState arenas[] = {ARENA_PREPARING, ARENA_READY, ARENA_READY,
                                            ARENA_FAILED};
        static const ModuleState modules[] = {MODULE_LOADING, MODULE_READY, MODULE_READY,
                                              MODULE_FAILED};
        uint8_t how = input_u8(&play.input);

        if (how & 128)
                play.module.state = modules[how % 4];
        else
                play.arenas[how / 4 % PLAY_ARENAS].state = arenas[how % 4];
        runner_changed(&play.worker.runner);
}

static void play_fault(void) {
        if (input_u8(&play.input) >= 192)
                play_stop_worker();
}

typedef void (*PlayStep)(void);

static const PlayStep steps[] = {
        play_lend,      play_lend,      play_fire,     play_fire,     play_fire,  play_fire,
        play_end_batch, play_end_batch, play_see_ends, play_see_ends, play_spoil, play_spoil,
        play_spoil,     play_spoil,     play_recall,   play_ordinary, play_bell,  play_trouble,
        play_pass_time, play_pass_time, play_doze,     play_prepare,  play_fault,
};

/* ---- the end --------------------------------------------------------------------------- */

static bool play_is_idle(void) {
        for (unsigned i = 0; i < PLAY_OWNERS; ++i)
                if (!play.is_over && play.owners[i].is_lent)
                        return false;
        return runner_is_idle(&play.worker.runner) && TAILQ_EMPTY(&play.worker.runner.ended);
}

static void play_drain(void) {
        for (unsigned i = 0; i < PLAY_ARENAS; ++i)
                play.arenas[i].state = ARENA_READY;
        play.module.state = MODULE_READY;
        play.device.trouble = TROUBLE_NONE;
        for (unsigned i = 0; i < PLAY_OWNERS && !play.is_over; ++i)
                owner_recall(&play.owners[i]);
        for (unsigned i = 0; !play_is_idle(); ++i) {
                must(i < PLAY_DRAIN_MAX);
                runner_changed(&play.worker.runner);
                play_turn();
                fake_device_end_all(&play.worker.runner);
                clock_advance(1000000);
        }
}

static void play_check_rest(void) {
        const Had *had;

        for (unsigned i = 0; i < PLAY_ARENAS; ++i)
                must(play.arenas[i].n_uses == 0);
        must(play.module.n_uses == 0 && play.worker.directs.n_in_flight == 0);
        must(TAILQ_EMPTY(&play.worker.directs.lent));
        for (had = play.jobs; had && !play.is_over; had = had->hh.next)
                must(had->is_known ? had->is_ended : had->is_done);
}

static void play_free_owner(Owner *owner) {
        direct_ring_release(&owner->ring);
        close(owner->ring_fd);
        close(owner->bells[0]);
        if (owner->bells[1] >= 0)
                close(owner->bells[1]);
}

static void play_free(void) {
        Worker *worker = &play.worker;
        Had *had;

        while ((had = play.jobs)) {
                HASH_DELETE(hh, play.jobs, had);
                free(had);
        }
        blocks_clear(&worker->runner.blocks);
        bump_free(worker->runner.programs.bump);
        uv_close((uv_handle_t *)&worker->directs.timer, NULL);
        uv_run(&worker->loop, UV_RUN_DEFAULT);
        must(uv_loop_close(&worker->loop) == 0);
        for (unsigned i = 0; i < PLAY_OWNERS; ++i)
                play_free_owner(&play.owners[i]);
        channel_free(worker->channel);
        channel_free(play.channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        uint8_t choice;

        play_begin(data, n_data);
        for (unsigned i = 0; i < PLAY_STEPS_MAX && play.input.n && !play.is_over; ++i) {
                choice = input_u8(&play.input);
                steps[choice % 128 % ARRAY_SIZE(steps)]();
                if (choice < 128 && !play.is_over) /* else the next one comes at once */
                        play_turn();
        }
        play_drain();
        play_check_rest();
        play_free();
        return 0;
}

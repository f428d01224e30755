/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake
 *
 * The thread polls without the lock and acts with it; what a test asks for is
 * done in the test's own thread, with the lock.
 */

#include "fake.h"

#include "util/macro.h"

#undef NDEBUG /* the fake works inside its assertions */
#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FAKE_N_PEERS  64
#define FAKE_N_ARENAS 256
#define FAKE_N_JOBS   8192

typedef struct FakeArena {
        uint64_t id, size;
        int fd;
        uint8_t *data;
} FakeArena;

typedef struct FakeJob {
        unsigned peer;
        uint64_t id;
} FakeJob;

/* What outlives it. */
typedef struct FakeRecord {
        uint64_t id;
        bool ended;
} FakeRecord;

struct Fake {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t cond;
        char folder[64], path[96];
        int listen_fd, wake_fd;
        bool stop;

        FakeManners manners;
        FakeCounts counts;
        Wire *peers[FAKE_N_PEERS]; /* NULL: gone */
        unsigned n_peers;
        uint32_t sessions[FAKE_N_PEERS];
        uint32_t held_hello[FAKE_N_PEERS]; /* serial of a Hello that is not answered, 0: none */
        uint32_t held_resume[FAKE_N_PEERS];
        unsigned n_prepared;
        FakeRecord records[FAKE_N_JOBS];
        unsigned n_records;
        char heard[1u << 17];
        size_t n_heard;
        FakeArena arenas[FAKE_N_ARENAS];
        unsigned n_arenas;
        FakeJob jobs[FAKE_N_JOBS];
        unsigned n_jobs;
        uint8_t *last_job;
        size_t n_last_job;
};

static void fake_reply(Fake *fake, unsigned peer, Gpuq__V1__Reply *reply, int fd) {
        if (!fake->peers[peer])
                return;

        assert(wire_queue(fake->peers[peer], &reply->base, fd) == 0);
        wire_flush(fake->peers[peer]);
}

static void fake_error(Fake *fake, unsigned peer, uint32_t serial, int code, const char *text) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        error.code = (Gpuq__V1__Code)code;
        error.text = (char *)text;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ERROR;
        reply.error = &error;
        fake_reply(fake, peer, &reply, -1);
}

static void _printf_(2, 3) fake_hear(Fake *fake, const char *format, ...) {
        size_t room = sizeof(fake->heard) - fake->n_heard;
        va_list args;
        int n;

        if (fake->n_heard > 0)
                fake->heard[fake->n_heard++] = ' ';
        va_start(args, format);
        n = vsnprintf(fake->heard + fake->n_heard, room - 1, format, args);
        va_end(args);
        assert(n > 0 && (size_t)n < room - 1);
        fake->n_heard += (size_t)n;
}

static void fake_drop(Fake *fake, unsigned peer) {
        fake->peers[peer] = wire_free(fake->peers[peer]);
}

/* ---- requests ---------------------------------------------------------------------- */

static void fake_welcome(Fake *fake, unsigned peer, uint32_t serial, uint32_t resume) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Welcome welcome = GPUQ__V1__WELCOME__INIT;

        fake->sessions[peer] = resume ? resume : FAKE_SESSION + peer;
        welcome.resumed = resume != 0;
        welcome.version = fake->manners.version;
        welcome.daemon = "fake 1";
        welcome.session = fake->sessions[peer];
        welcome.n_devices = 2;
        reply.serial = serial;
        welcome.poll_us = fake->manners.poll_us;
        reply.body_case = GPUQ__V1__REPLY__BODY_WELCOME;
        reply.welcome = &welcome;
        fake_reply(fake, peer, &reply, -1);
        wire_set_frame_max(fake->peers[peer], WIRE_FRAME_MAX);
}

static void fake_hello(Fake *fake, unsigned peer, uint32_t serial, uint32_t resume) {
        fake->counts.n_hellos++;
        fake->n_heard = 0;
        fake_hear(fake, "hello:%u", resume);
        if (fake->manners.hello_hang_up || fake->manners.n_hello_deaths > 0) {
                fake->manners.n_hello_deaths -= fake->manners.n_hello_deaths > 0;
                fake_drop(fake, peer);
                return;
        }
        if (resume && fake->manners.resume_code) {
                fake_error(fake, peer, serial, fake->manners.resume_code, "who are you?");
                fake_drop(fake, peer);
                return;
        }
        if (fake->manners.hello_code) {
                fake_error(fake, peer, serial, fake->manners.hello_code, fake->manners.hello_text);
                fake_drop(fake, peer);
                return;
        }

        if (fake->manners.hello_hold) {
                fake->held_hello[peer] = serial;
                fake->held_resume[peer] = resume;
                return;
        }

        fake_welcome(fake, peer, serial, fake->manners.forgetful ? 0 : resume);
}

static void fake_welcome_held(Fake *fake) {
        for (unsigned i = 0; i < fake->n_peers; i++) {
                if (fake->held_hello[i] && fake->peers[i])
                        fake_welcome(fake, i, fake->held_hello[i], fake->held_resume[i]);
                fake->held_hello[i] = 0;
        }
}

static void fake_tell_arena(Fake *fake, unsigned peer, uint32_t serial, const FakeArena *arena,
                            Gpuq__V1__Place place, uint32_t device) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ArenaReady ready = GPUQ__V1__ARENA_READY__INIT;

        ready.arena = arena->id;
        ready.size = arena->size;
        ready.place = place;
        ready.device = device;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_ARENA;
        reply.arena = &ready;
        fake_reply(fake, peer, &reply, arena->fd);
}

static void fake_arena_create(Fake *fake, unsigned peer, uint32_t serial,
                              const Gpuq__V1__ArenaCreate *create) {
        FakeArena *arena = &fake->arenas[fake->n_arenas];
        uint64_t n_bytes_max = fake->manners.arena_bytes_max;

        fake_hear(fake, "create");
        if (fake->manners.arena_hold) {
                fake->counts.n_asked++;
                return;
        }
        if (fake->manners.arena_code) {
                fake_error(fake, peer, serial, fake->manners.arena_code, "no arena for you");
                return;
        }
        if (n_bytes_max && fake->counts.arena_bytes + create->size > n_bytes_max) {
                fake_error(fake, peer, serial, GPUQ__V1__CODE__E_QUOTA, "no more arenas for you");
                return;
        }

        assert(fake->n_arenas < FAKE_N_ARENAS);
        *arena = (FakeArena){.id = ++fake->n_arenas + 100, .size = create->size, .fd = -1};
        if (create->place == GPUQ__V1__PLACE__IMAGE)
                fake->counts.n_images++;
        else
                fake->counts.n_arenas++;
        fake->counts.last_arena_size = create->size;
        fake->counts.arena_bytes += create->size;

        if (create->place != GPUQ__V1__PLACE__DEVICE) {
                arena->fd = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                assert(arena->fd >= 0 && ftruncate(arena->fd, (off_t)create->size) == 0);
                assert(fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
        }
        if (create->place == GPUQ__V1__PLACE__HOST) {
                arena->data =
                        mmap(NULL, arena->size, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
                assert(arena->data != MAP_FAILED);
        }
        fake_tell_arena(fake, peer, serial, arena, create->place,
                        create->device ? create->device - 1 : 1);
}

static FakeArena *fake_find_arena(Fake *fake, uint64_t id) {
        return id > 100 && id <= 100 + fake->n_arenas ? &fake->arenas[id - 101] : NULL;
}

static void fake_arena_open(Fake *fake, unsigned peer, uint32_t serial,
                            const Gpuq__V1__ArenaOpen *open) {
        FakeArena *arena = fake_find_arena(fake, open->arena);

        fake_hear(fake, "%s:%u", open->resume ? "again" : "open", (unsigned)open->arena);
        fake->counts.n_opens += !open->resume;
        if (open->resume && arena) {
                FakeArena without = {.id = arena->id, .size = arena->size, .fd = -1};

                fake_tell_arena(fake, peer, serial, &without, GPUQ__V1__PLACE__HOST, 0);
                return;
        }
        if (!arena)
                fake_error(fake, peer, serial, GPUQ__V1__CODE__E_NOT_FOUND, "no such arena");
        else
                fake_tell_arena(fake, peer, serial, arena, GPUQ__V1__PLACE__HOST, 0);
}

static void fake_arena_close(Fake *fake, uint64_t id) {
        const FakeArena *arena = fake_find_arena(fake, id);

        fake->counts.n_closes++;
        if (arena)
                fake->counts.arena_bytes -= arena->size;
}

/* What "other" takes: every kind, and structs whose lengths take one, two and three bytes. */
static const struct {
        Gpuq__V1__Kind kind;
        uint32_t size;
} fake_kinds[FAKE_N_KINDS] = {
        {GPUQ__V1__KIND__BYTES, 0},     {GPUQ__V1__KIND__POINTER, 8}, {GPUQ__V1__KIND__I32, 4},
        {GPUQ__V1__KIND__I64, 8},       {GPUQ__V1__KIND__F32, 4},     {GPUQ__V1__KIND__F64, 8},
        {GPUQ__V1__KIND__I8, 1},        {GPUQ__V1__KIND__I16, 2},     {GPUQ__V1__KIND__WORD64, 8},
        {GPUQ__V1__KIND__WORD64, 8},    {GPUQ__V1__KIND__BYTES, 127}, {GPUQ__V1__KIND__BYTES, 300},
        {GPUQ__V1__KIND__BYTES, 20000},
};

static void fake_module_load(Fake *fake, unsigned peer, uint32_t serial,
                             const Gpuq__V1__ModuleLoad *load) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__ModuleReady ready = GPUQ__V1__MODULE_READY__INIT;
        Gpuq__V1__KernelInfo twice = GPUQ__V1__KERNEL_INFO__INIT, other = twice;
        Gpuq__V1__KernelInfo *kernels[] = {&twice, &other};
        Gpuq__V1__Parameter pointer = GPUQ__V1__PARAMETER__INIT, count = pointer;
        Gpuq__V1__Parameter *parameters[] = {&pointer, &pointer, &count};
        Gpuq__V1__Parameter every[FAKE_N_KINDS], *kinds[FAKE_N_KINDS];
        FakeArena *image = fake_find_arena(fake, load->image);

        fake_hear(fake, "load:%u,%u", (unsigned)load->module, (unsigned)load->image);
        if (fake->manners.load_hold) {
                fake->counts.n_asked++;
                return;
        }
        fake->counts.n_loads++;
        if (image) {
                fake->counts.image_seals = fcntl(image->fd, F_GET_SEALS);
                fake->counts.image_length = load->length;
        }
        if (load->n_options > 0 && strcmp(load->options[0], "-DWRONG=1") == 0) {
                fake_error(fake, peer, serial, GPUQ__V1__CODE__E_COMPILE,
                           "a.cu:1: error: all wrong");
                return;
        }

        pointer.kind = GPUQ__V1__KIND__POINTER;
        count.kind = GPUQ__V1__KIND__I64;
        pointer.size = count.size = 8;
        twice.name = "twice";
        for (unsigned i = 0; i < FAKE_N_KINDS; i++) {
                gpuq__v1__parameter__init(&every[i]);
                every[i].kind = fake_kinds[i].kind;
                every[i].size = fake_kinds[i].size;
                kinds[i] = &every[i];
        }
        other.name = "other";
        other.n_parameters = FAKE_N_KINDS;
        other.parameters = kinds;
        twice.n_parameters = 3;
        twice.parameters = parameters;
        twice.kinds_known = other.kinds_known = true;
        twice.max_block = 1024;
        ready.module = load->module ? load->module : 900 + fake->counts.n_loads;
        ready.n_kernels = 2;
        ready.kernels = kernels;
        ready.log = "a.cu:2: warning: odd";
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_MODULE;
        reply.module = &ready;
        fake_reply(fake, peer, &reply, -1);
}

static uint64_t *fake_word(Fake *fake, const Gpuq__V1__Buffer *buffer) {
        FakeArena *arena = fake_find_arena(fake, buffer->arena);

        return arena && arena->data ? (uint64_t *)(arena->data + buffer->offset) : NULL;
}

static void fake_run(Fake *fake, const Gpuq__V1__Job *job) {
        uint64_t *from, *to;

        if (job->n_buffers < 2)
                return;

        from = fake_word(fake, job->buffers[0]);
        to = fake_word(fake, job->buffers[job->n_buffers - 1]);
        if (from && to)
                *to = 2 * *from;
}

static unsigned fake_complete_locked(Fake *fake) {
        unsigned n_done = fake->n_jobs;

        for (unsigned peer = 0; peer < fake->n_peers; peer++) {
                Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
                Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
                Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
                Gpuq__V1__Completion *space = calloc(fake->n_jobs + 1, sizeof(*space));
                Gpuq__V1__Completion **pointers = calloc(fake->n_jobs + 1, sizeof(*pointers));

                error.code = fake->manners.job_code;
                error.text = "the kernel \"twice\" went wrong";
                for (unsigned i = 0; i < fake->n_jobs; i++) {
                        Gpuq__V1__Completion *c = &space[completions.n_completions];

                        if (fake->jobs[i].peer != peer)
                                continue;
                        *c = (Gpuq__V1__Completion)GPUQ__V1__COMPLETION__INIT;
                        c->id = fake->jobs[i].id;
                        c->state = error.code ? GPUQ__V1__STATE__FAILED : GPUQ__V1__STATE__DONE;
                        c->error = error.code ? &error : NULL;
                        c->output = "said the kernel";
                        c->waited_us = 11;
                        c->ran_us = 22;
                        c->device = 1;
                        pointers[completions.n_completions++] = c;
                }

                completions.completions = pointers;
                reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
                reply.completions = &completions;
                if (completions.n_completions > 0)
                        fake_reply(fake, peer, &reply, -1);
                free(space);
                free(pointers);
        }

        fake->n_jobs = 0;
        return n_done;
}

static void fake_store_word(Fake *fake, const Gpuq__V1__Job *job) {
        const FakeArena *arena;

        if (!job->word_arena)
                return;

        fake->counts.n_words++;
        arena = fake_find_arena(fake, job->word_arena);
        assert(arena && job->word_offset % 4 == 0 && job->word_offset <= arena->size - 4);
        if (fake->manners.words && !fake->manners.job_code)
                __atomic_store_n((uint32_t *)(arena->data + job->word_offset), job->tag,
                                 __ATOMIC_RELEASE);
}

/* Return: its record; a job that has one is not run again. */
static FakeRecord *fake_record(Fake *fake, uint64_t id, bool *ret_known) {
        FakeRecord *record = NULL;

        for (unsigned i = 0; i < fake->n_records && !record; i++)
                if (fake->records[i].id == id)
                        record = &fake->records[i];
        *ret_known = record != NULL;
        if (record)
                return record;

        assert(fake->n_records < FAKE_N_JOBS);
        record = &fake->records[fake->n_records++];
        *record = (FakeRecord){.id = id};
        fake->counts.n_runs++;
        return record;
}

static void fake_hold_job(Fake *fake, unsigned peer, uint64_t id) {
        assert(fake->n_jobs < FAKE_N_JOBS);
        fake->jobs[fake->n_jobs++] = (FakeJob){.peer = peer, .id = id};
}

/* Of what ended before it died the end is told now. */
static void fake_complete_ended(Fake *fake) {
        FakeJob held[FAKE_N_JOBS];
        unsigned n_held = 0, n_ended = 0;
        bool known;

        for (unsigned i = 0; i < fake->n_jobs; i++) {
                if (fake_record(fake, fake->jobs[i].id, &known)->ended)
                        fake->jobs[n_ended++] = fake->jobs[i];
                else
                        held[n_held++] = fake->jobs[i];
        }

        fake->n_jobs = n_ended;
        fake_complete_locked(fake);
        memcpy(fake->jobs, held, n_held * sizeof(*held));
        fake->n_jobs = n_held;
}

static void fake_prepare(Fake *fake, unsigned peer, uint32_t serial,
                         const Gpuq__V1__Prepare *prepare) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Prepared prepared = GPUQ__V1__PREPARED__INIT;

        fake_hear(fake, "prepare:%u", prepare->prepared);
        assert(prepare->job->n_kernels > 0 && prepare->job->tag == 0);
        prepared.prepared = prepare->prepared ? prepare->prepared : ++fake->n_prepared;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_PREPARED;
        reply.prepared = &prepared;
        fake_reply(fake, peer, &reply, -1);
}

static void fake_fires(Fake *fake, unsigned peer, const Gpuq__V1__Fires *fires) {
        bool known;

        fake_hear(fake, "fires:%u", fires->fires[0]->tag);
        for (size_t i = 0; i < fires->n_fires; i++) {
                uint64_t id = (uint64_t)fake->sessions[peer] << 32 | fires->fires[i]->tag;

                assert(fires->fires[i]->prepared > 0);
                fake->counts.n_jobs++;
                fake_record(fake, id, &known);
                fake_hold_job(fake, peer, id);
        }
        if (!fake->manners.hold)
                fake_complete_locked(fake);
        else
                fake_complete_ended(fake);
}

static void fake_submit(Fake *fake, unsigned peer, const Gpuq__V1__Submit *submit) {
        bool known;

        fake_hear(fake, "submit:%u+%zu", submit->jobs[0]->tag, submit->n_jobs - 1);
        fake->counts.n_submits++;
        for (size_t i = 0; i < submit->n_jobs; i++) {
                const Gpuq__V1__Job *job = submit->jobs[i];
                uint64_t id = (uint64_t)fake->sessions[peer] << 32 | job->tag;

                fake->counts.n_jobs++;
                assert(fake->n_peers > 1 || job->tag > fake->counts.last_tag);
                fake->counts.last_tag = job->tag;
                fake_record(fake, id, &known);
                if (!known) {
                        fake_run(fake, job);
                        fake_store_word(fake, job);
                }
                fake_hold_job(fake, peer, id);

                free(fake->last_job);
                fake->n_last_job = gpuq__v1__job__get_packed_size(job);
                fake->last_job = malloc(fake->n_last_job + 1);
                gpuq__v1__job__pack(job, fake->last_job);
        }

        if (!fake->manners.hold)
                fake_complete_locked(fake);
        else
                fake_complete_ended(fake);
}

static void fake_cancel(Fake *fake, unsigned peer, uint32_t serial,
                        const Gpuq__V1__Cancel *cancel) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Cancelled cancelled = GPUQ__V1__CANCELLED__INIT;
        Gpuq__V1__Code code = fake->manners.job_code;

        fake_hear(fake, "cancel:%u", cancel->n_ids > 0 ? (uint32_t)cancel->ids[0] : 0);
        fake->counts.n_cancels++;
        if (fake->manners.hold && fake->manners.arena_hold) /* it keeps all to itself */
                return;
        cancelled.n_ids = cancel->n_ids;
        cancelled.ids = cancel->ids;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_CANCELLED;
        reply.cancelled = &cancelled;
        fake_reply(fake, peer, &reply, -1);

        fake->manners.job_code = GPUQ__V1__CODE__E_CANCELLED;
        fake_complete_locked(fake);
        fake->manners.job_code = code;
}

/* Job 1.1 never ends, 1.2 failed, and there are no others. */
static void fake_wait(Fake *fake, unsigned peer, uint32_t serial, uint64_t id) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Completions completions = GPUQ__V1__COMPLETIONS__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT, *pointer = &completion;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        fake_hear(fake, "wait");
        fake->counts.n_waits++;
        if (id == (UINT64_C(1) << 32 | 1))
                return;
        if (id != (UINT64_C(1) << 32 | 2)) {
                fake_error(fake, peer, serial, GPUQ__V1__CODE__E_NOT_FOUND, "no such job");
                return;
        }

        error.code = GPUQ__V1__CODE__E_FAULT;
        error.text = "it faulted";
        completion.id = id;
        completion.state = GPUQ__V1__STATE__FAILED;
        completion.error = &error;
        completion.output = "last words";
        completions.n_completions = 1;
        completions.completions = &pointer;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_COMPLETIONS;
        reply.completions = &completions;
        fake_reply(fake, peer, &reply, -1);
}

static void fake_discard(Fake *fake, unsigned peer, uint32_t serial) {
        fake->counts.n_discards++;
        if (!fake->manners.discard_hold)
                fake_error(fake, peer, serial, GPUQ__V1__CODE__E_NOT_FOUND, "no such job");
}

static void fake_status(Fake *fake, unsigned peer, uint32_t serial) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Status status = GPUQ__V1__STATUS__INIT;
        Gpuq__V1__DeviceStatus device = GPUQ__V1__DEVICE_STATUS__INIT,
                               *devices[] = {&device, &device};
        Gpuq__V1__WorkerStatus worker = GPUQ__V1__WORKER_STATUS__INIT, *workers[] = {&worker};
        Gpuq__V1__UserStatus user = GPUQ__V1__USER_STATUS__INIT, *users[] = {&user};

        device.name = "Fake 9000";
        worker.state = "idle";
        worker.contexts = 1;
        worker.memory = 5u << 20;
        user.user = "somebody";
        user.share = 0.25;
        status.daemon = "fake 1";
        status.driver = "cpu";
        status.state = "ready";
        status.n_devices = 2;
        status.devices = devices;
        status.n_workers = 1;
        status.workers = workers;
        status.n_users = 1;
        status.users = users;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_STATUS;
        reply.status = &status;
        fake_reply(fake, peer, &reply, -1);
}

static void fake_queue(Fake *fake, unsigned peer, uint32_t serial, const Gpuq__V1__QueueGet *get) {
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Queue queue = GPUQ__V1__QUEUE__INIT;
        Gpuq__V1__QueueEntry entry = GPUQ__V1__QUEUE_ENTRY__INIT, *entries[] = {&entry};

        entry.id = UINT64_C(3) << 32 | 4;
        entry.uid = get->one_user ? get->uid : 0;
        entry.user = "somebody";
        entry.reason = "queued";
        entry.priority = -5;
        queue.n_entries = 1;
        queue.entries = entries;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_QUEUE;
        reply.queue = &queue;
        fake_reply(fake, peer, &reply, -1);
}

static void fake_request(Fake *fake, unsigned peer, const Gpuq__V1__Request *request) {
        uint32_t serial = request->serial;

        switch (request->body_case) {
                case GPUQ__V1__REQUEST__BODY_HELLO:
                        fake_hello(fake, peer, serial, request->hello->resume);
                        break;
                case GPUQ__V1__REQUEST__BODY_ARENA_CREATE:
                        fake_arena_create(fake, peer, serial, request->arena_create);
                        break;
                case GPUQ__V1__REQUEST__BODY_ARENA_OPEN:
                        fake_arena_open(fake, peer, serial, request->arena_open);
                        break;
                case GPUQ__V1__REQUEST__BODY_ARENA_CLOSE:
                        fake_arena_close(fake, request->arena_close->arena);
                        break;
                case GPUQ__V1__REQUEST__BODY_MODULE_LOAD:
                        fake_module_load(fake, peer, serial, request->module_load);
                        break;
                case GPUQ__V1__REQUEST__BODY_MODULE_UNLOAD:
                        fake->counts.n_unloads++;
                        break;
                case GPUQ__V1__REQUEST__BODY_SUBMIT:
                        fake_submit(fake, peer, request->submit);
                        break;
                case GPUQ__V1__REQUEST__BODY_PREPARE:
                        fake_prepare(fake, peer, serial, request->prepare);
                        break;
                case GPUQ__V1__REQUEST__BODY_UNPREPARE:
                        fake->counts.n_unprepares++;
                        break;
                case GPUQ__V1__REQUEST__BODY_FIRES:
                        fake_fires(fake, peer, request->fires);
                        break;
                case GPUQ__V1__REQUEST__BODY_RESUMED:
                        fake_hear(fake, "resumed:%u", request->resumed->seen);
                        fake->counts.n_resumed++;
                        break;
                case GPUQ__V1__REQUEST__BODY_CANCEL:
                        fake_cancel(fake, peer, serial, request->cancel);
                        break;
                case GPUQ__V1__REQUEST__BODY_WAIT:
                        fake_wait(fake, peer, serial, request->wait->id);
                        break;
                case GPUQ__V1__REQUEST__BODY_DISCARD:
                        fake_discard(fake, peer, serial);
                        break;
                case GPUQ__V1__REQUEST__BODY_STATUS_GET:
                        fake_status(fake, peer, serial);
                        break;
                case GPUQ__V1__REQUEST__BODY_QUEUE_GET:
                        fake_queue(fake, peer, serial, request->queue_get);
                        break;
                default:
                        assert(!"a request of a kind that nobody knows");
        }
        pthread_cond_broadcast(&fake->cond);
}

/* ---- the thread -------------------------------------------------------------------- */

static void fake_read(Fake *fake, unsigned peer) {
        WireFrame frame;
        int r;

        r = wire_receive(fake->peers[peer]);
        if (r == WIRE_E_CLOSED || r == WIRE_E_PROTOCOL || r < 0) {
                fake_drop(fake, peer);
                fake->counts.n_ends++;
                pthread_cond_broadcast(&fake->cond);
                return;
        }

        while (fake->peers[peer] && wire_next(fake->peers[peer], &frame) == 0) {
                Gpuq__V1__Request *request =
                        gpuq__v1__request__unpack(NULL, frame.n_data, frame.data);

                assert(request);
                fake_request(fake, peer, request);
                gpuq__v1__request__free_unpacked(request, NULL);
        }
}

static void fake_accept(Fake *fake) {
        int fd = accept4(fake->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        assert(fd >= 0 && fake->n_peers < FAKE_N_PEERS);
        assert(wire_new(fd, false, &fake->peers[fake->n_peers]) == 0);
        fake->n_peers++;
}

static unsigned fake_fill_polls(Fake *fake, struct pollfd *fds, unsigned *peers) {
        unsigned n = 0;

        fds[n++] = (struct pollfd){.fd = fake->wake_fd, .events = POLLIN};
        fds[n++] =
                (struct pollfd){.fd = fake->manners.busy ? -1 : fake->listen_fd, .events = POLLIN};
        for (unsigned i = 0; i < fake->n_peers && !fake->manners.deaf; i++) {
                if (!fake->peers[i])
                        continue;
                peers[n] = i;
                fds[n++] = (struct pollfd){
                        .fd = wire_fd(fake->peers[i]),
                        .events = (short)(POLLIN | (wire_pending(fake->peers[i]) ? POLLOUT : 0)),
                };
        }
        return n;
}

static void *fake_main(void *userdata) {
        struct pollfd fds[FAKE_N_PEERS + 2];
        unsigned peers[FAKE_N_PEERS + 2], n;
        Fake *fake = userdata;
        eventfd_t value;

        pthread_mutex_lock(&fake->lock);
        while (!fake->stop) {
                n = fake_fill_polls(fake, fds, peers);
                pthread_mutex_unlock(&fake->lock);
                assert(poll(fds, n, -1) > 0);
                pthread_mutex_lock(&fake->lock);

                if (fds[0].revents)
                        eventfd_read(fake->wake_fd, &value);
                if (fds[1].revents && !fake->manners.busy)
                        fake_accept(fake);
                for (unsigned i = 2; i < n; i++) {
                        if (fake->peers[peers[i]] && fds[i].revents & POLLOUT)
                                wire_flush(fake->peers[peers[i]]);
                        if (fake->peers[peers[i]] && fds[i].revents & ~POLLOUT)
                                fake_read(fake, peers[i]);
                }
        }
        pthread_mutex_unlock(&fake->lock);
        return NULL;
}

/* With all signals blocked: those that a test has come are the test's own. */
static void fake_start(Fake *fake) {
        sigset_t all, before;

        sigfillset(&all);
        assert(pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
        assert(pthread_create(&fake->thread, NULL, fake_main, fake) == 0);
        assert(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

Fake *fake_new(void) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        Fake *fake = calloc(1, sizeof(*fake));

        assert(fake);
        pthread_mutex_init(&fake->lock, NULL);
        pthread_cond_init(&fake->cond, NULL);
        fake->manners.version = 1;
        strcpy(fake->folder, "/tmp/gpuq-fake-XXXXXX");
        assert(mkdtemp(fake->folder));
        snprintf(fake->path, sizeof(fake->path), "%s/socket", fake->folder);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", fake->path);

        fake->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        fake->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert(bind(fake->listen_fd, (struct sockaddr *)&address, sizeof(address)) == 0);
        assert(listen(fake->listen_fd, 64) == 0);
        fake_start(fake);
        return fake;
}

static void fake_wake(Fake *fake) {
        eventfd_write(fake->wake_fd, 1);
}

void fake_free(Fake *fake) {
        pthread_mutex_lock(&fake->lock);
        fake->stop = true;
        fake_wake(fake);
        pthread_mutex_unlock(&fake->lock);
        pthread_join(fake->thread, NULL);

        for (unsigned i = 0; i < fake->n_peers; i++)
                wire_free(fake->peers[i]);
        for (unsigned i = 0; i < fake->n_arenas; i++) {
                if (fake->arenas[i].data)
                        munmap(fake->arenas[i].data, fake->arenas[i].size);
                if (fake->arenas[i].fd >= 0)
                        close(fake->arenas[i].fd);
        }
        unlink(fake->path);
        rmdir(fake->folder);
        close(fake->listen_fd);
        close(fake->wake_fd);
        free(fake->last_job);
        free(fake);
}

const char *fake_path(const Fake *fake) {
        return fake->path;
}

/* ---- asked by the test ----------------------------------------------------------------- */

void fake_set(Fake *fake, FakeManners manners) {
        pthread_mutex_lock(&fake->lock);
        fake->manners = manners;
        if (fake->manners.version == 0)
                fake->manners.version = 1;
        if (!fake->manners.hello_hold)
                fake_welcome_held(fake);
        assert(listen(fake->listen_fd, fake->manners.busy ? 0 : 64) == 0);
        fake_wake(fake);
        pthread_mutex_unlock(&fake->lock);
}

FakeCounts fake_counts(Fake *fake) {
        FakeCounts counts;

        pthread_mutex_lock(&fake->lock);
        counts = fake->counts;
        pthread_mutex_unlock(&fake->lock);
        return counts;
}

void fake_await_at(Fake *fake, size_t offset, unsigned n) {
        const unsigned *field = (const unsigned *)((const char *)&fake->counts + offset);

        pthread_mutex_lock(&fake->lock);
        while (*field < n)
                pthread_cond_wait(&fake->cond, &fake->lock);
        pthread_mutex_unlock(&fake->lock);
}

Gpuq__V1__Job *fake_last_job(Fake *fake) {
        Gpuq__V1__Job *job;

        pthread_mutex_lock(&fake->lock);
        job = gpuq__v1__job__unpack(NULL, fake->n_last_job, fake->last_job);
        pthread_mutex_unlock(&fake->lock);
        assert(job);
        return job;
}

unsigned fake_complete(Fake *fake) {
        unsigned n;

        pthread_mutex_lock(&fake->lock);
        n = fake_complete_locked(fake);
        pthread_mutex_unlock(&fake->lock);
        return n;
}

void fake_send(Fake *fake, Gpuq__V1__Reply *reply) {
        pthread_mutex_lock(&fake->lock);
        fake_reply(fake, fake->n_peers - 1, reply, -1);
        pthread_mutex_unlock(&fake->lock);
}

void fake_send_bytes(Fake *fake, const void *bytes, size_t n_bytes) {
        pthread_mutex_lock(&fake->lock);
        assert(send(wire_fd(fake->peers[fake->n_peers - 1]), bytes, n_bytes, MSG_NOSIGNAL) ==
               (ssize_t)n_bytes);
        pthread_mutex_unlock(&fake->lock);
}

void fake_die(Fake *fake, bool ends) {
        bool known;

        pthread_mutex_lock(&fake->lock);
        for (unsigned i = 0; i < fake->n_jobs; i++)
                if (ends)
                        fake_record(fake, fake->jobs[i].id, &known)->ended = true;
        fake->n_jobs = 0;
        for (unsigned i = 0; i < fake->n_peers; i++)
                if (fake->peers[i])
                        fake_drop(fake, i);
        fake_wake(fake);
        pthread_mutex_unlock(&fake->lock);
}

char *fake_heard(Fake *fake) {
        char *heard;

        pthread_mutex_lock(&fake->lock);
        heard = strndup(fake->heard, fake->n_heard);
        pthread_mutex_unlock(&fake->lock);
        assert(heard);
        return heard;
}

void fake_hang_up(Fake *fake) {
        pthread_mutex_lock(&fake->lock);
        unlink(fake->path);
        for (unsigned i = 0; i < fake->n_peers; i++)
                if (fake->peers[i])
                        fake_drop(fake, i);
        fake_wake(fake);
        pthread_mutex_unlock(&fake->lock);
}

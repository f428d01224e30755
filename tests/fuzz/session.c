/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients, workers, the disk and time do what a run says, in its order, to a whole supervisor:
 * messages that are understood and some that are not, by sockets and rings, with and without
 * descriptors; memory that is shared is spoilt; workers lie and die; the supervisor is killed,
 * and the next one takes over from what the keeper held.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "fake_disk.h"
#include "message.h"
#include "handover.h"
#include "loan.h"
#include "store.h"
#include "word.h"
#include "world.h"

#define PLAY_STEPS_MAX    120u
#define PLAY_BYTES_MAX    8192u /* of a message that is spoilt */
#define PLAY_RESTARTS_MAX 5u    /* they take longest */
#define PLAY_SETTLE_TURNS 20u
#define PLAY_LOAN_FIRST   112u /* steps from here on are of direct rings */

typedef struct Speaker {
        World *world;
        WorldClient *client; /* NULL: it is a worker who speaks */
        FakeWorker *worker;
} Speaker;

/* ---- numbers that name something --------------------------------------------- */

static bool field_is(const ProtobufCFieldDescriptor *field, const char *name) {
        return strcmp(field->name, name) == 0;
}

/* A job of somebody's, or one that was given to the worker who speaks. */
static uint64_t play_job_id(Speaker *speaker) {
        Input *input = &speaker->world->input;
        const WorldClient *client;
        uint8_t choice = input_u8(input);

        if (choice >= 250)
                return input_edge(input);
        if (speaker->worker && speaker->worker->n_jobs)
                return speaker->worker->jobs[choice % speaker->worker->n_jobs];
        client = &speaker->world->clients[choice % WORLD_CLIENTS];
        if (choice / WORLD_CLIENTS % 8 == 7) /* a detached one */
                return choice / 32;
        if (!client->fake)
                return choice;
        return (uint64_t)client->fake->session << 32 |
               (client->fake->tag - choice / WORLD_CLIENTS % 8);
}

static uint64_t play_last(Speaker *speaker, uint64_t last) {
        uint8_t choice = input_u8(&speaker->world->input);

        return choice < 250 ? last - choice % 8 : input_edge(&speaker->world->input);
}

static uint64_t play_tag(Speaker *speaker) {
        Input *input = &speaker->world->input;
        uint8_t choice = input_u8(input);

        if (choice < 240 && speaker->client)
                return ++speaker->client->fake->tag;
        return choice < 250 && speaker->client ? speaker->client->fake->tag - choice % 4
                                               : input_edge(input);
}

static uint64_t play_number(Input *input, const ProtobufCFieldDescriptor *field, void *userdata) {
        Speaker *speaker = userdata;
        const Supervisor *supervisor = speaker->world->fake->supervisor;

        if (field_is(field, "arena") || field_is(field, "image") || field_is(field, "word_arena"))
                return play_last(speaker, supervisor->engine.last.arena);
        if (field_is(field, "module"))
                return play_last(speaker, supervisor->engine.last.module);
        if (field_is(field, "tag"))
                return play_tag(speaker);
        if (field_is(field, "id") || field_is(field, "ids") || field_is(field, "after"))
                return play_job_id(speaker);
        if (field_is(field, "device"))
                return input_below(input, 4);
        if (field_is(field, "trace"))
                return play_last(speaker, supervisor->engine.ends.last_trace);
        if (field_is(field, "prepared"))
                return play_last(speaker, speaker->client && supervisor->clients.sessions ? 2 : 0);
        if (field_is(field, "version_min") || field_is(field, "version_max"))
                return 1 + input_u8(input) / 250;
        if (field_is(field, "seen"))
                return speaker->client ? speaker->client->fake->n_seen + input_u8(input) / 200 : 0;
        if (field_is(field, "resume"))
                return speaker->world->sessions[input_below(input, WORLD_CLIENTS)];
        return input_edge(input);
}

/* ---- clients ------------------------------------------------------------------- */

static WorldClient *play_pick_client(World *world) {
        WorldClient *client = &world->clients[input_below(&world->input, WORLD_CLIENTS)];

        return client->fake ? client : NULL;
}

static void play_connect(World *world) {
        unsigned i = input_below(&world->input, WORLD_CLIENTS);
        uint8_t how = input_u8(&world->input);
        static const uint32_t uids[] = {FAKE_UID, FAKE_UID + 1, 0, FAKE_UID + 2};

        world_connect(world, i, uids[how % 4], how & 4, how & 8);
}

static int play_some_fd(World *world) {
        return input_u8(&world->input) < 250 ? -1 : memfd_create("fuzz", MFD_CLOEXEC);
}

static void play_send(World *world, WorldClient *client, const ProtobufCMessage *message) {
        int fd = play_some_fd(world);

        (void)wire_queue(client->fake->wire, message, fd);
        (void)wire_flush(client->fake->wire);
        if (fd >= 0)
                close(fd);
}

static Gpuq__V1__Request *play_make_request(World *world, WorldClient *client) {
        Speaker speaker = {.world = world, .client = client};

        return (Gpuq__V1__Request *)message_new(&world->input, &gpuq__v1__request__descriptor,
                                                play_number, &speaker);
}

static void play_request(World *world) {
        WorldClient *client = play_pick_client(world);
        Gpuq__V1__Request *request;

        if (!client)
                return;
        request = play_make_request(world, client);
        play_send(world, client, &request->base);
        gpuq__v1__request__free_unpacked(request, NULL);
}

static void play_request_spoilt(World *world) {
        WorldClient *client = play_pick_client(world);
        uint8_t packed[PLAY_BYTES_MAX], *payload;
        Gpuq__V1__Request *request;
        size_t n;

        if (!client)
                return;
        request = play_make_request(world, client);
        n = gpuq__v1__request__get_packed_size(request);
        if (n && n <= sizeof(packed)) {
                gpuq__v1__request__pack(request, packed);
                n = message_spoil(&world->input, packed, n, sizeof(packed));
                if (n && wire_begin(client->fake->wire, n, &payload) == 0) {
                        memcpy(payload, packed, n);
                        wire_end(client->fake->wire, n);
                        (void)wire_flush(client->fake->wire);
                }
        }
        gpuq__v1__request__free_unpacked(request, NULL);
}

static void play_raw(World *world) {
        WorldClient *client = play_pick_client(world);
        size_t n = input_u8(&world->input);
        const uint8_t *bytes = input_take(&world->input, n, &n);

        if (client)
                (void)!send(wire_fd(client->fake->wire), bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A job that is well made, of which there are many in a run. */
static void play_submit(World *world) {
        WorldClient *client = play_pick_client(world);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Submit submit = GPUQ__V1__SUBMIT__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT, *jobs = &job;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Input *input = &world->input;
        Speaker speaker = {.world = world, .client = client};
        uint8_t how = input_u8(input);
        uint64_t after;

        if (!client)
                return;
        kernel.module = client->fake->module;
        kernel.name = "add";
        buffer.arena = play_last(&speaker, world->fake->supervisor->engine.last.arena);
        buffer.offset = input_below(input, 4) * 64;
        buffer.length = 64;
        buffer.direction = input_below(input, 4);
        job.tag = ++client->fake->tag;
        job.kernels = &kernels;
        job.n_kernels = kernel.module != 0;
        job.buffers = &buffers;
        job.n_buffers = how & 1;
        after = how & 2 ? play_job_id(&speaker) : 0;
        job.after = &after;
        job.n_after = after != 0;
        job.repeatable = how & 4;
        job.timeout_ms = how & 8 ? 20 : 0;
        job.priority = how & 16 ? input_below(input, 200) - 100 : 0;
        submit.jobs = &jobs;
        submit.n_jobs = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_SUBMIT;
        request.submit = &submit;
        play_send(world, client, &request.base);
}

static void play_set_up(World *world) {
        WorldClient *client = play_pick_client(world);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;
        Gpuq__V1__RingOpen open = GPUQ__V1__RING_OPEN__INIT;
        uint8_t how = input_u8(&world->input);

        if (!client)
                return;
        create.size = 4096;
        create.place = how / 4 % 3;
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        if (how % 4 == 0) {
                request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
                request.module_load = &load;
        } else if (how % 4 == 1) {
                request.body_case = GPUQ__V1__REQUEST__BODY_RING_OPEN;
                request.ring_open = &open;
        } else {
                request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
                request.arena_create = &create;
        }
        play_send(world, client, &request.base);
        fake_turn(world->fake);
        world_read(world, client);
}

static void play_read_all(World *world) {
        WorldClient *client = play_pick_client(world);

        if (client)
                world_read(world, client);
}

static void play_end_client(World *world) {
        WorldClient *client = play_pick_client(world);

        if (client && input_below(&world->input, 2))
                shutdown(wire_fd(client->fake->wire), (int)input_below(&world->input, 3));
        else if (client)
                world_disconnect(world, client);
}

static void play_spoil_ring(World *world) {
        WorldClient *client = play_pick_client(world);

        if (client && client->ring)
                world_spoil_memory(world, client->ring, client->n_ring);
}

/* ---- direct rings ---------------------------------------------------------------- */

typedef struct Settling {
        World *world;
        WorldClient *client;
} Settling;

/* Workers are honest for a moment. */
static void play_settle(void *userdata) {
        const Settling *settling = userdata;
        Fake *fake = settling->world->fake;

        bool any = true;

        for (unsigned i = 0; i < PLAY_SETTLE_TURNS && any; ++i) {
                fake_turn(fake);
                any = false;
                for (size_t k = 0; k < fake->n_workers; ++k)
                        any |= loan_end_jobs(fake, &fake->workers[k]);
                fake_turn(fake);
                world_read(settling->world, settling->client);
        }
}

static void play_lend(World *world) {
        WorldClient *client = play_pick_client(world);
        Settling settling = {world, client};
        Speaker speaker = {.world = world, .client = client};
        uint64_t arena = 0;
        uint8_t how;

        if (!client)
                return;
        how = input_u8(&world->input);
        if (how & 1)
                arena = play_last(&speaker, world->fake->supervisor->engine.last.arena);
        loan_go(&client->loan, client->fake, arena, !(how & 2), play_settle, &settling);
}

static void play_loan_request(World *world) {
        static const Gpuq__V1__Request__BodyCase requests[] = {
                GPUQ__V1__REQUEST__BODY_DIRECT_OPEN,  GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN,
                GPUQ__V1__REQUEST__BODY_DIRECT_BEGIN, GPUQ__V1__REQUEST__BODY_DIRECT_END,
                GPUQ__V1__REQUEST__BODY_DIRECT_END,   GPUQ__V1__REQUEST__BODY_DIRECT_END,
        };
        WorldClient *client = play_pick_client(world);
        uint8_t choice = input_u8(&world->input);

        if (client)
                loan_request(client->fake, requests[choice % ARRAY_SIZE(requests)]);
}

static void play_loan_fire(World *world) {
        WorldClient *client = play_pick_client(world);
        uint8_t how = input_u8(&world->input);

        if (client)
                loan_fire(&client->loan, client->fake, 1 + how % 64, how < 192);
}

static void play_loan_take(World *world) {
        WorldClient *client = play_pick_client(world);

        if (client)
                loan_take(&client->loan, input_u8(&world->input));
}

static void play_loan_spoil(World *world) {
        WorldClient *client = play_pick_client(world);

        if (client)
                loan_spoil(&client->loan, client->fake, &world->input);
}

/* ---- workers ------------------------------------------------------------------- */

static FakeWorker *play_pick_worker(World *world) {
        Fake *fake = world->fake;
        FakeWorker *worker;

        if (!fake->n_workers)
                return NULL;
        /* the later ones are the more likely to live */
        worker = &fake->workers[fake->n_workers - 1 -
                                input_u8(&world->input) % MIN(fake->n_workers, (size_t)6)];
        return worker->is_ended ? NULL : worker;
}

static uint64_t play_job_of_worker(void *userdata) {
        return play_job_id(userdata);
}

static void play_make_word(World *world, FakeWorker *worker, Word *word) {
        Speaker speaker = {.world = world, .worker = worker};
        const Engine *engine = &world->fake->supervisor->engine;
        const WordNames names = {
                .job = play_job_of_worker,
                .userdata = &speaker,
                .last_arena = engine->last.arena,
                .last_module = engine->last.module,
        };

        word_make(&world->input, &names, word);
}

static void play_word(World *world) {
        FakeWorker *worker = play_pick_worker(world);
        Word word;
        int fd;

        if (!worker)
                return;
        play_make_word(world, worker, &word);
        fd = input_below(&world->input, 2) ? memfd_create("fuzz", MFD_CLOEXEC) : -1;
        (void)protocol_send(worker->channel, &word.message, fd);
        if (fd >= 0)
                close(fd);
}

static void play_word_spoilt(World *world) {
        FakeWorker *worker = play_pick_worker(world);
        uint8_t spoilt[PLAY_BYTES_MAX];
        const uint8_t *data;
        size_t n;
        Word word;

        if (!worker)
                return;
        play_make_word(world, worker, &word);
        if (protocol_pack(worker->channel, &word.message, &data, &n) != 0 || n > sizeof(spoilt))
                return;
        memcpy(spoilt, data, n);
        n = message_spoil(&world->input, spoilt, n, sizeof(spoilt));
        (void)channel_send(worker->channel, spoilt, n, -1);
}

static void play_end_job(World *world) {
        FakeWorker *worker = play_pick_worker(world);
        uint8_t choice = input_u8(&world->input);

        if (worker && worker->n_jobs)
                fake_end(worker, worker->jobs[choice / 4 % worker->n_jobs],
                         choice % 4 ? 0 : input_below(&world->input, 24));
}

static void play_stop_worker(World *world) {
        FakeWorker *worker = play_pick_worker(world);
        WorkerPhase phases[FAKE_JOBS];
        uint8_t how = input_u8(&world->input);
        size_t n;

        if (!worker)
                return;
        n = MIN(worker->n_jobs, (size_t)(how / 8));
        for (size_t i = 0; i < n; ++i)
                phases[i] = input_below(&world->input, 3);
        switch (how % 8) {
                case 0:
                        fake_die(world->fake, worker);
                        break;
                case 1:
                        fake_crash(world->fake, worker, 6);
                        break;
                case 2:
                        fake_broke(world->fake, worker, "ECC", worker->jobs, phases, n);
                        break;
                case 3:
                        fake_stopped(world->fake, worker, NULL, worker->jobs, phases, n);
                        break;
                default:
                        fake_stopped(world->fake, worker, "illegal address", worker->jobs, phases,
                                     n);
        }
}

static void play_loan_return(World *world) {
        const WorldClient *client = play_pick_client(world);
        FakeWorker *worker = play_pick_worker(world);

        if (client && worker)
                loan_return(&client->loan, client->fake, worker, &world->input);
}

static void play_loan_count(World *world) {
        const WorldClient *client = play_pick_client(world);
        FakeWorker *worker = play_pick_worker(world);

        if (client && worker)
                loan_count(client->fake, worker, &world->input);
}

static void play_spoil_channel(World *world) {
        FakeWorker *worker = play_pick_worker(world);
        uint8_t *channel = worker ? world->channels[worker - world->fake->workers] : NULL;

        if (channel)
                world_spoil_memory(world, channel, world->n_channel);
}

static void play_change_manners(World *world) {
        Fake *fake = world->fake;
        uint8_t flags = input_u8(&world->input);

        fake->has_variables = flags & 1;
        fake->start_error = flags & 2 && flags & 4 ? "no context" : NULL;
        fake->start_broken = flags & 8;
        fake->check_error = flags & 16 ? "broken" : NULL;
        fake->hold_modules = flags & 32;
        fake->hold_checks = flags & 64;
        if (!fake->hold_checks && fake->check)
                fake_release_check(fake);
}

static void play_release(World *world) {
        FakeWorker *worker = play_pick_worker(world);

        if (worker)
                fake_release_modules(world->fake, worker, (int)input_below(&world->input, 10));
}

/* ---- the rest ------------------------------------------------------------------ */

static void play_pass_time(World *world) {
        static const uint64_t units_ns[] = {1000, 1000000, 50000000, 1000000000};
        uint8_t choice = input_u8(&world->input);

        clock_advance((uint64_t)(choice / 4) * units_ns[choice % 4]);
}

static void play_disk(World *world) {
        for (unsigned n = 1 + input_below(&world->input, 4); n && disk_turn(); --n)
                fake_turn(world->fake);
}

static void play_spoil_ledger(World *world) {
        int fd = world_kept(world, KEEPER_KEY_LEDGER);
        size_t n_bytes;
        uint8_t *memory;

        n_bytes = fd < 0 ? 0 : world_bytes(fd);
        memory = n_bytes ? mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                         : MAP_FAILED;
        if (memory == MAP_FAILED)
                return;
        world_spoil_memory(world, memory, n_bytes);
        munmap(memory, n_bytes);
}

/* A job as none of ours was. */
static StoredJob play_forge_detached(World *world) {
        Speaker speaker = {.world = world};
        StoredJob job = {.number = input_u8(&world->input) + 1u, .uid = FAKE_UID};
        Gpuq__V1__Job *what;

        job.record = (Gpuq__Detached__Record *)message_new(
                &world->input, &gpuq__detached__record__descriptor, play_number, &speaker);
        if (input_below(&world->input, 2))
                job.end = (Gpuq__Detached__End *)message_new(
                        &world->input, &gpuq__detached__end__descriptor, play_number, &speaker);
        what = job.record->detach ? job.record->detach->job : NULL;
        if (!what || !input_below(&world->input, 8))
                return job;
        for (size_t i = 0; i < what->n_buffers; ++i)
                what->buffers[i]->arena = 0;
        for (size_t i = 0; i < what->n_kernels && job.record->n_modules; ++i)
                what->kernels[i]->module %= job.record->n_modules;
        return job;
}

static StoredJob play_forged; /* added once the supervisor is gone, with the right checksums */

static void play_add_forged(World *world) {
        StoreContent content;
        char path[64];
        Store *store;

        snprintf(path, sizeof(path), "%s/jobs", world->folder);
        if (store_open(path, &store, &content) != 0)
                return;
        if (store_add(store, &play_forged, NULL, 0) == 0 && play_forged.end)
                (void)store_end(store, &play_forged, NULL, 0);
        store_content_clear(&content);
        store_free(store);
}

/* Bytes of the database, or of a payload, are others. */
static void play_spoil_detached(World *world) {
        static const char *const names[] = {"jobs.sqlite", "1.1000.in", "1.1000.out",
                                            "jobs.sqlite-journal"};
        uint8_t bytes[4] = {input_u8(&world->input), input_u8(&world->input),
                            input_u8(&world->input), input_u8(&world->input)};
        char path[96];
        int fd;

        snprintf(path, sizeof(path), "%s/jobs/%s", world->folder, names[bytes[0] % 4]);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        if (bytes[1] == 255)
                (void)!ftruncate(fd, bytes[2] * 256 + bytes[3]);
        else
                (void)!pwrite(fd, &bytes[0], 1, bytes[2] * 256 + bytes[3]);
        close(fd);
}

static void play_restart(World *world) {
        uint8_t how = input_u8(&world->input);

        if (world->n_restarts++ == PLAY_RESTARTS_MAX)
                world->input.n = 0;
        if (!world->input.n)
                return;
        if (how & 1)
                handover_begin(&world->fake->supervisor->handover);
        if (how & 2)
                fake_turn(world->fake);
        if (how & 4)
                play_spoil_ledger(world);
        if (how & 16 && world->n_kept > 1) { /* one is lost */
                size_t i = input_u8(&world->input) % world->n_kept;

                close(world->kept[i].fd);
                world->kept[i] = world->kept[--world->n_kept];
        }
        if (how & 8)
                play_forged = play_forge_detached(world);
        world_restart(world, !world->folder[0] ? NULL
                             : how & 8         ? play_add_forged
                             : how & 64        ? play_spoil_detached
                                               : NULL);
        stored_job_clear(&play_forged);
}

typedef void (*PlayStep)(World *world);

static const PlayStep steps[] = {
        play_connect,       play_request,        play_request,  play_request,
        play_submit,        play_submit,         play_set_up,   play_set_up,
        play_raw,           play_request_spoilt, play_read_all, play_read_all,
        play_end_client,    play_spoil_ring,     play_word,     play_word,
        play_word_spoilt,   play_end_job,        play_end_job,  play_stop_worker,
        play_spoil_channel, play_change_manners, play_release,  play_pass_time,
        play_pass_time,     play_disk,           play_disk,     play_restart,
};

static const PlayStep loan_steps[] = {
        play_lend,       play_lend,      play_loan_request, play_loan_fire,
        play_loan_spoil, play_loan_take, play_loan_return,  play_loan_count,
};

/* Bytes of older inputs mean what they did. */
static PlayStep play_step(uint8_t choice) {
        return choice < PLAY_LOAN_FIRST
                       ? steps[choice % ARRAY_SIZE(steps)]
                       : loan_steps[(choice - PLAY_LOAN_FIRST) % ARRAY_SIZE(loan_steps)];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static World world; /* large */
        uint8_t choice;

        world_new(&world, data, n_data);
        for (unsigned i = 0; i < PLAY_STEPS_MAX && world.input.n; ++i) {
                choice = input_u8(&world.input);
                play_step(choice % 128)(&world);
                if (choice < 128) /* else the next one comes at once */
                        fake_turn(world.fake);
                loan_check(world.fake);
        }
        world_free(&world);
        return 0;
}

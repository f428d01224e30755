/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fake_disk.h"
#include "detached.h"
#include "util/log.h"

#define WORLD_TURNS_MAX 8u

static World *world_of_fake; /* there is one at a time */

/* ---- what the keeper does ---------------------------------------------------- */

static size_t world_find_kept(const World *world, const char *key) {
        size_t i = 0;

        while (i < world->n_kept && strcmp(world->kept[i].key, key) != 0)
                i++;
        return i;
}

int world_kept(const World *world, const char *key) {
        size_t i = world_find_kept(world, key);

        return i < world->n_kept ? world->kept[i].fd : -1;
}

static void world_on_drop(Fake *fake, const char *key) {
        World *world = world_of_fake;
        size_t i = world_find_kept(world, key);

        if (i == world->n_kept)
                return;
        close(world->kept[i].fd);
        world->kept[i] = world->kept[--world->n_kept];
}

static void world_on_keep(Fake *fake, const char *key, int fd) {
        World *world = world_of_fake;
        WorldKept *kept;

        world_on_drop(fake, key);
        if (world->n_kept == WORLD_KEPT)
                return;
        kept = &world->kept[world->n_kept++];
        snprintf(kept->key, sizeof(kept->key), "%s", key);
        kept->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

size_t world_bytes(int fd) {
        struct stat st;

        return fstat(fd, &st) < 0 ? 0 : (size_t)st.st_size;
}

static void world_on_spawn(Fake *fake, FakeWorker *worker, const int *fds) {
        uint8_t **channel = &world_of_fake->channels[worker - fake->workers];

        world_of_fake->n_channel = world_bytes(fds[0]);
        if (*channel)
                munmap(*channel, world_of_fake->n_channel);
        *channel =
                mmap(NULL, world_of_fake->n_channel, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        if (*channel == MAP_FAILED)
                abort();
}

/* Which may be anywhere; most is where the indices are and the first records. */
void world_spoil_memory(World *world, uint8_t *memory, size_t n_bytes) {
        Input *input = &world->input;
        size_t at = input_below(input, 2) * (n_bytes / 2);
        uint32_t word;

        at += input_below(input, 4) ? input_u8(input) * 4u : input_u32(input) / 4 * 4;
        if (at > n_bytes - sizeof(word))
                at %= n_bytes - sizeof(word);
        memcpy(&word, memory + at, sizeof(word));
        word = input_below(input, 2) ? (uint32_t)input_edge(input)
                                     : word + input_u8(input) * 8u - 512u;
        memcpy(memory + at, &word, sizeof(word));
}

/* ---- clients ------------------------------------------------------------------- */

WorldClient *world_connect(World *world, unsigned i, uint32_t uid, bool is_admin, bool resume) {
        WorldClient *client = &world->clients[i];
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;

        world_disconnect(world, client);
        client->fake = fake_client_raw(world->fake, uid, is_admin);
        client->fake->is_unseen = true; /* nobody waits for what it sends to be read */
        client->uid = uid;
        hello.version_min = hello.version_max = 1;
        hello.client = "fuzz";
        hello.resume = resume ? world->sessions[i] : 0;
        request.body_case = GPUQ__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        fake_send(client->fake, &request);
        fake_turn(world->fake);
        world_read(world, client);
        return client;
}

void world_disconnect(World *world, WorldClient *client) {
        if (client->ring)
                munmap(client->ring, client->n_ring);
        loan_free(&client->loan);
        if (client->fake)
                fake_client_close(client->fake);
        *client = (WorldClient){};
}

/* As a library does; what is in it does not matter here. */
static void world_seal_image(int fd) {
        if (pwrite(fd, "image", 5, 0) == 5)
                (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
}

static void world_take_ring(WorldClient *client, int fd, uint32_t capacity) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__RingBegin begin = GPUQ__V1__RING_BEGIN__INIT;

        if (client->ring || wire_adopt_ring(client->fake->wire, fd, capacity) != 0)
                return;
        client->n_ring = world_bytes(fd);
        client->ring = mmap(NULL, client->n_ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (client->ring == MAP_FAILED)
                abort();
        request.body_case = GPUQ__V1__REQUEST__BODY_RING_BEGIN;
        request.ring_begin = &begin;
        (void)wire_queue(client->fake->wire, &request.base, -1);
        (void)wire_flush(client->fake->wire);
        wire_ring_output(client->fake->wire);
}

static void world_hear(World *world, WorldClient *client, const WireFrame *frame) {
        Gpuq__V1__Reply *reply = gpuq__v1__reply__unpack(NULL, frame->n_data, frame->data);

        if (!reply) { /* its ring was spoilt; what comes by the socket is the supervisor's own */
                if (!client->ring)
                        abort();
                return;
        }
        loan_hear(&client->loan, reply, frame->fd);
        switch (reply->body_case) {
                case GPUQ__V1__REPLY__BODY_WELCOME:
                        client->fake->session = reply->welcome->session;
                        world->sessions[client - world->clients] = reply->welcome->session;
                        break;
                case GPUQ__V1__REPLY__BODY_ARENA:
                        if (reply->arena->place == GPUQ__V1__PLACE__IMAGE && frame->fd >= 0)
                                world_seal_image(frame->fd);
                        break;
                case GPUQ__V1__REPLY__BODY_MODULE:
                        client->fake->module = reply->module->module;
                        break;
                case GPUQ__V1__REPLY__BODY_COMPLETIONS:
                        client->fake->n_seen += reply->completions->n_completions;
                        break;
                case GPUQ__V1__REPLY__BODY_RING_READY:
                        world_take_ring(client, frame->fd, reply->ring_ready->capacity);
                        break;
                case GPUQ__V1__REPLY__BODY_RING_BEGUN:
                        if (client->ring && !wire_is_ringed(client->fake->wire))
                                wire_ring_input(client->fake->wire);
                        break;
                default:
                        break;
        }
        gpuq__v1__reply__free_unpacked(reply, NULL);
}

void world_read(World *world, WorldClient *client) {
        Wire *wire = client->fake->wire;
        WireFrame frame;

        for (unsigned i = 0; i < WORLD_TURNS_MAX && wire_receive(wire) == 0; ++i)
                while (wire_next(wire, &frame) == 0) {
                        world_hear(world, client, &frame);
                        if (frame.fd >= 0)
                                close(frame.fd);
                }
        (void)wire_flush(wire);
}

/* ---- the state_dir ---------------------------------------------------------------- */

static void world_remove(int parent, const char *name) {
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct dirent *entry;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        while (dir && (entry = readdir(dir)))
                if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
                    unlinkat(fd, entry->d_name, 0) < 0)
                        world_remove(fd, entry->d_name);
        if (dir)
                closedir(dir);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void world_make_folder(World *world) {
        char jobs[64];

        snprintf(world->folder, sizeof(world->folder), "%s/gpuq-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(world->folder))
                abort();
        snprintf(jobs, sizeof(jobs), "%s/jobs", world->folder);
        if (mkdir(jobs, 0700) < 0)
                abort();
        snprintf(world->state_setting, sizeof(world->state_setting), "state_dir=%s", world->folder);
}

/* ---- whole ------------------------------------------------------------------------- */

static void world_configure(World *world) {
        Input *input = &world->input;
        uint8_t flags = input_u8(input);
        char **setting = world->settings;

        *setting++ = "job_timeout_s=5";
        *setting++ = "takeover_s=1";
        *setting++ = flags & 1 ? "poll_us=50" : "poll_us=0";
        *setting++ = flags & 2 ? "jobs=6" : "jobs=1000";
        *setting++ = flags & 4 ? "isolation=shared" : "isolation=user";
        *setting++ = flags & 8 ? "quantum_ms=0" : "quantum_ms=3";
        *setting++ = flags & 16 ? "sessions=2" : "sessions=20";
        *setting++ = flags & 32 ? "gpu_seconds=1" : "gpu_seconds=0";
        *setting++ = flags & 64 ? "worker_idle_s=0" : "worker_idle_s=60";
        if (flags & 128) {
                world_make_folder(world);
                *setting++ = world->state_setting;
        }
        *setting = NULL;
}

/* Until the disk has nothing more to do and the supervisor listens. */
static void world_begin(World *world) {
        fake_begin(world->fake);
        while (world->folder[0] && !detached_is_known(world->fake->supervisor->clients.detached) &&
               disk_turn())
                ;
        fake_turn(world->fake);
}

/* Names are looked up in its own thread: otherwise a run would depend on time, and a supervisor that
 * ends meanwhile ends the program. */
static void world_start(World *world) {
        Engine *engine;

        fake_start(world->fake, world->settings);
        engine = &world->fake->supervisor->engine;
        (void)lookups_close(engine->lookups);
        engine->lookups = NULL;
}

void world_new(World *world, const uint8_t *data, size_t n_data) {
        clock_reset();
        *world = (World){.input = {data, n_data}};
        world_of_fake = world;
        world->hooks = (FakeHooks){world_on_keep, world_on_drop, world_on_spawn};
        world_configure(world);

        log_open("fuzz", 0);
        world->fake = calloc(1, sizeof(*world->fake));
        if (!world->fake)
                abort();
        world->fake->is_lax = true;
        world->fake->hooks = &world->hooks;
        world->fake->n_devices = 1 + input_below(&world->input, 2);
        world_start(world);
        world_begin(world);
}

void world_restart(World *world, void (*meanwhile)(World *world)) {
        for (unsigned i = 0; i < WORLD_CLIENTS; ++i)
                world_disconnect(world, &world->clients[i]);
        fake_turn(world->fake);
        fake_stop(world->fake);
        if (meanwhile)
                meanwhile(world);
        world_start(world);
        for (size_t i = 0; i < world->n_kept; ++i)
                fake_hand_over(world->fake, world->kept[i].key, world->kept[i].fd);
        world_begin(world);
}

void world_free(World *world) {
        for (unsigned i = 0; i < WORLD_CLIENTS; ++i)
                world_disconnect(world, &world->clients[i]);
        fake_free(world->fake);
        for (size_t i = 0; i < FAKE_WORKERS; ++i)
                if (world->channels[i])
                        munmap(world->channels[i], world->n_channel);
        for (size_t i = 0; i < world->n_kept; ++i)
                close(world->kept[i].fd);
        if (world->folder[0])
                world_remove(AT_FDCWD, world->folder);
        world_of_fake = NULL;
}

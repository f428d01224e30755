/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_WORLD_H
#define GPUQ_FUZZ_WORLD_H

/*
 * World
 *
 * The supervisor with all around it played by a run: tests/unit/supervisor/fake.h, with
 * what the keeper holds, the memory that workers share, a disk and a clock.
 */

#include <fake.h>

#include "input.h"
#include "loan.h"

#define WORLD_CLIENTS 4u
#define WORLD_KEPT    512u

/* What the keeper holds. */
typedef struct WorldKept {
        char key[80];
        int fd;
} WorldKept;

/* A client, with the ring that it shares. */
typedef struct WorldClient {
        FakeClient *fake; /* NULL: nobody */
        uint32_t uid;
        uint8_t *ring; /* mapped; NULL: none */
        size_t n_ring;
        Loan loan;
} WorldClient;

typedef struct World {
        Input input;
        Fake *fake;
        FakeHooks hooks;
        char *settings[16];
        char state_setting[64], folder[48]; /* of detached jobs; "": none */
        WorldClient clients[WORLD_CLIENTS];
        uint32_t sessions[WORLD_CLIENTS]; /* that there were, to be resumed */
        uint8_t *channels[FAKE_WORKERS];  /* of each worker, mapped; NULL: none */
        size_t n_channel;                 /* bytes of each */
        WorldKept kept[WORLD_KEPT];
        size_t n_kept;
        unsigned n_restarts;
} World;

/** world_new() - as the first bytes of the input say. The supervisor has its devices. */
void world_new(World *world, const uint8_t *data, size_t n_data);
/** world_free() - all of it must come to an end, and leave nothing. */
void world_free(World *world);

/** world_connect() - its Hello is said. @resume: the session that this client had. */
WorldClient *world_connect(World *world, unsigned i, uint32_t uid, bool is_admin, bool resume);
/** world_disconnect() - if it is there. */
void world_disconnect(World *world, WorldClient *client);
/** world_read() - what it was sent; takes up a ring, and fills and seals images. */
void world_read(World *world, WorldClient *client);
/** world_restart() - the supervisor is killed, and the next one takes over. @meanwhile: NULL: nothing happens. */
void world_restart(World *world, void (*meanwhile)(World *world));
/** world_bytes() - of a descriptor's memory. */
size_t world_bytes(int fd);
/** world_kept() - what the keeper holds under this key. Return: -1: nothing. */
int world_kept(const World *world, const char *key);
/** world_spoil_memory() - change a byte or a word anywhere. */
void world_spoil_memory(World *world, uint8_t *memory, size_t n_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare
 *
 * One list, the oldest spare first. Spares are not inherited through fork(): the child has no use
 * for them, and its mapping would keep the pages after all other processes have unmapped them.
 */

#include "spare.h"

#include <sys/mman.h>

static void spare_unlink(gpuq_client *client, Arena *arena) {
        const Arena *first;

        TAILQ_REMOVE(&client->memory->spares, arena, arenas);
        client->memory->n_spares--;
        client->memory->n_spare_bytes -= arena->size;

        first = TAILQ_FIRST(&client->memory->spares);
        client->memory->spares_due_us = first ? first->spare_since_us + SPARE_MAX_US : 0;
}

static void spare_close(gpuq_client *client, Arena *arena) {
        spare_unlink(client, arena);
        arena_end(client, arena);
}

bool spare_put(gpuq_client *client, Arena *arena) {
        if (arena->size > SPARE_MAX_BYTES)
                return false;

        while (client->memory->n_spares >= SPARE_MAX_N ||
               client->memory->n_spare_bytes > SPARE_MAX_BYTES - arena->size)
                spare_close(client, TAILQ_FIRST(&client->memory->spares));

        (void)madvise(arena->data, arena->size, MADV_DONTFORK);
        arena->spare_since_us = client_now_us();
        if (client->memory->n_spares == 0)
                client->memory->spares_due_us = arena->spare_since_us + SPARE_MAX_US;
        TAILQ_INSERT_TAIL(&client->memory->spares, arena, arenas);
        client->memory->n_spares++;
        client->memory->n_spare_bytes += arena->size;
        return true;
}

/* At most a quarter may stay unused, so that a large spare is not spent on a small buffer. */
static bool spare_fits(const Arena *arena, uint64_t size) {
        return arena->size >= size && arena->size - size <= arena->size / 4;
}

Arena *spare_take(gpuq_client *client, uint64_t size) {
        Arena *arena, *best = NULL;

        TAILQ_FOREACH (arena, &client->memory->spares, arenas)
                if (spare_fits(arena, size) && (!best || arena->size <= best->size))
                        best = arena; /* the newest of equal size: its pages are in the caches */

        if (!best)
                return NULL;

        spare_unlink(client, best);
        (void)madvise(best->data, best->size, MADV_DOFORK);
        return best;
}

bool spare_release(gpuq_client *client) {
        bool any = client->memory->n_spares > 0;

        while (client->memory->n_spares > 0)
                spare_close(client, TAILQ_FIRST(&client->memory->spares));

        return any;
}

void spare_expire(gpuq_client *client) {
        int64_t now_us;

        if (client->memory->n_spares == 0)
                return;

        now_us = client_now_us();
        while (client->memory->n_spares > 0 && client->memory->spares_due_us <= now_us)
                spare_close(client, TAILQ_FIRST(&client->memory->spares));
}

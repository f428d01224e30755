/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space
 *
 * Boundary tags: every extent, taken or free, is in one list by offset, so that
 * giving one back joins it with free neighbours at once. Gaps are also in lists
 * by the power of two of their size. A request looks through its own class, then
 * takes any gap of a higher one: no walk over all gaps, and small requests do
 * not eat into the untouched end while older gaps serve.
 */

#include "space.h"

#include <assert.h>
#include <stdlib.h>

#include "util/macro.h"

static unsigned space_class(uint64_t size) {
        return 63u - (unsigned)__builtin_clzll(size);
}

static void space_link_gap(Space *space, Extent *extent) {
        unsigned class = space_class(extent->size);

        extent->free = true;
        LIST_INSERT_HEAD(&space->gaps[class], extent, gaps);
        space->classes |= UINT64_C(1) << class;
}

static void space_unlink_gap(Space *space, Extent *extent) {
        unsigned class = space_class(extent->size);

        extent->free = false;
        LIST_REMOVE(extent, gaps);
        if (LIST_EMPTY(&space->gaps[class]))
                space->classes &= ~(UINT64_C(1) << class);
}

int space_init(Space *space, uint64_t size) {
        Extent *extent;

        *space = (Space){.extents = TAILQ_HEAD_INITIALIZER(space->extents)};
        size -= size % SPACE_ALIGN;
        if (size == 0)
                return 0;

        extent = calloc(1, sizeof(*extent));
        if (!extent)
                return -ENOMEM;

        extent->size = size;
        TAILQ_INSERT_HEAD(&space->extents, extent, neighbours);
        space_link_gap(space, extent);
        return 0;
}

void space_finish(Space *space) {
        Extent *extent;

        while ((extent = TAILQ_FIRST(&space->extents))) {
                TAILQ_REMOVE(&space->extents, extent, neighbours);
                free(extent);
        }
}

static Extent *space_find_gap(Space *space, uint64_t size) {
        unsigned class = space_class(size);
        uint64_t higher;
        Extent *extent;

        LIST_FOREACH (extent, &space->gaps[class], gaps)
                if (extent->size >= size)
                        return extent;

        higher = class == 63 ? 0 : space->classes >> (class + 1);
        if (higher == 0)
                return NULL;

        return LIST_FIRST(&space->gaps[class + 1 + (unsigned)__builtin_ctzll(higher)]);
}

/* Cut the end off a gap and leave it as a gap of its own. */
static int space_split(Space *space, Extent *extent, uint64_t size) {
        Extent *rest;

        rest = calloc(1, sizeof(*rest));
        if (!rest)
                return -ENOMEM;

        space_unlink_gap(space, extent);
        rest->offset = extent->offset + size;
        rest->size = extent->size - size;
        extent->size = size;
        TAILQ_INSERT_AFTER(&space->extents, extent, rest, neighbours);
        space_link_gap(space, rest);
        space_link_gap(space, extent);
        return 0;
}

int space_take(Space *space, uint64_t size, Extent **ret_extent) {
        Extent *extent;
        int r;

        assert(size > 0);
        if (size > UINT64_MAX - SPACE_ALIGN)
                return SPACE_E_FULL;

        size = (size + SPACE_ALIGN - 1) / SPACE_ALIGN * SPACE_ALIGN;
        extent = space_find_gap(space, size);
        if (!extent)
                return SPACE_E_FULL;

        if (extent->size > size) {
                r = space_split(space, extent, size);
                if (r < 0)
                        return r;
        }

        space_unlink_gap(space, extent);
        extent->dirty =
                space->fresh > extent->offset ? MIN(size, space->fresh - extent->offset) : 0;
        space->fresh = MAX(space->fresh, extent->offset + size);
        space->n_taken++;
        *ret_extent = extent;
        return 0;
}

/* Append @next, which follows @extent, to it. Neither is in a list of gaps. */
static void space_join(Space *space, Extent *extent, Extent *next) {
        extent->size += next->size;
        TAILQ_REMOVE(&space->extents, next, neighbours);
        free(next);
}

void space_give(Space *space, Extent *extent) {
        Extent *previous = TAILQ_PREV(extent, SpaceExtents, neighbours);
        Extent *next = TAILQ_NEXT(extent, neighbours);

        assert(!extent->free && space->n_taken > 0);
        space->n_taken--;

        if (next && next->free) {
                space_unlink_gap(space, next);
                space_join(space, extent, next);
        }
        if (previous && previous->free) {
                space_unlink_gap(space, previous);
                space_join(space, previous, extent);
                extent = previous;
        }

        space_link_gap(space, extent);
}

void space_retire(Space *space, Extent *extent) {
        assert(!extent->free && space->n_taken > 0);
        space->n_taken--;
        space->n_retired++;
}

bool space_idle(const Space *space) {
        return space->n_taken == 0;
}

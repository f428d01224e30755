/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffer
 */

#include "buffer.h"

#include <inttypes.h>

#include "error.h"
#include "place.h"

gpuq_buffer *buffer_ref(gpuq_buffer *buffer) {
        buffer->refs++;
        return buffer;
}

void buffer_unref(gpuq_buffer *buffer) {
        gpuq_client *client = buffer->client;

        if (--buffer->refs > 0)
                return;

        if (buffer->whole)
                buffer_unref(buffer->whole);
        else
                place_give(client, buffer->arena, buffer->extent, buffer->named);
        free(buffer);
        client_unref(client);
}

static int buffer_new(gpuq_client *client, Arena *arena, uint64_t offset, uint64_t size,
                      gpuq_buffer **ret_buffer) {
        gpuq_buffer *buffer;

        buffer = calloc(1, sizeof(*buffer));
        if (!buffer)
                return error_memory();

        buffer->refs = 1;
        buffer->client = client_ref(client);
        buffer->arena = arena;
        buffer->offset = offset;
        buffer->size = size;
        *ret_buffer = buffer;
        return 0;
}

int buffer_take(gpuq_client *client, size_t size, int device, bool clear,
                gpuq_buffer **ret_buffer) {
        gpuq_buffer *buffer;
        Extent *extent;
        Arena *arena;
        int r;

        if (size == 0)
                return error_set(GPUQ_E_INVALID, "a buffer must have at least one byte");

        r = place_take(client, size, device, clear, &arena, &extent);
        if (r < 0)
                return r;

        r = buffer_new(client, arena, extent->offset, size, &buffer);
        if (r < 0) {
                place_give(client, arena, extent, false);
                return r;
        }

        buffer->extent = extent;
        *ret_buffer = buffer;
        return 0;
}

int gpuq_buffer_new(gpuq_client *client, size_t size, gpuq_buffer **ret_buffer) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, buffer_take(client, size, ARENA_HOST, true, ret_buffer));
}

int gpuq_buffer_new_uninitialized(gpuq_client *client, size_t size, gpuq_buffer **ret_buffer) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, buffer_take(client, size, ARENA_HOST, false, ret_buffer));
}

int gpuq_buffer_new_device(gpuq_client *client, size_t size, int device, gpuq_buffer **ret_buffer) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, buffer_take(client, size, device < 0 ? ARENA_ANY : device, true,
                                                ret_buffer));
}

static int buffer_slice(gpuq_buffer *buffer, size_t offset, size_t size, gpuq_buffer **ret_slice) {
        gpuq_buffer *slice;
        int r;

        if (size == 0 || offset > buffer->size || size > buffer->size - offset)
                return error_set(
                        GPUQ_E_INVALID,
                        "a slice of %zu bytes at offset %zu does not fit in a buffer of %" PRIu64
                        " bytes",
                        size, offset, buffer->size);

        r = buffer_new(buffer->client, buffer->arena, buffer->offset + offset, size, &slice);
        if (r < 0)
                return r;

        slice->whole = buffer_ref(buffer->whole ? buffer->whole : buffer);
        *ret_slice = slice;
        return 0;
}

int gpuq_buffer_slice(gpuq_buffer *buffer, size_t offset, size_t size, gpuq_buffer **ret_slice) {
        gpuq_client *client = buffer ? buffer->client : NULL;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, buffer_slice(buffer, offset, size, ret_slice));
}

int gpuq_buffer_get_ref(gpuq_buffer *buffer, gpuq_buffer_ref *ret_ref) {
        gpuq_client *client = buffer ? buffer->client : NULL;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        (buffer->whole ? buffer->whole : buffer)->named = true;
        *ret_ref = (gpuq_buffer_ref){
                .arena = buffer->arena->id,
                .offset = buffer->offset,
                .length = buffer->size,
        };
        return client_leave(client, 0);
}

static int buffer_open(gpuq_client *client, const gpuq_buffer_ref *ref, gpuq_buffer **ret_buffer) {
        Arena *arena;
        int r;

        r = place_open(client, ref->arena, &arena);
        if (r < 0)
                return r;

        if (ref->length == 0 || ref->offset > arena->size ||
            ref->length > arena->size - ref->offset)
                r = error_set(GPUQ_E_INVALID,
                              "a buffer of %" PRIu64 " bytes at offset %" PRIu64
                              " does not fit in arena %" PRIu64 ", which has %" PRIu64 " bytes",
                              ref->length, ref->offset, ref->arena, arena->size);
        else
                r = buffer_new(client, arena, ref->offset, ref->length, ret_buffer);

        if (r < 0)
                place_give(client, arena, NULL, false);
        return r;
}

int gpuq_buffer_open(gpuq_client *client, const gpuq_buffer_ref *ref, gpuq_buffer **ret_buffer) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, buffer_open(client, ref, ret_buffer));
}

void *gpuq_buffer_data(gpuq_buffer *buffer) {
        if (!buffer)
                return NULL;
        if (client_forked(buffer->client)) {
                error_remember("this buffer belongs to the parent process and cannot be used after "
                               "fork()");
                return NULL;
        }

        return buffer->arena->data ? buffer->arena->data + buffer->offset : NULL;
}

size_t gpuq_buffer_size(const gpuq_buffer *buffer) {
        return buffer ? buffer->size : 0;
}

int gpuq_buffer_device(const gpuq_buffer *buffer) {
        return buffer ? buffer->arena->device
                      : error_set(GPUQ_E_INVALID, "gpuq_buffer_device(): the buffer is NULL");
}

int gpuq_buffer_address(const gpuq_buffer *buffer, uint64_t *ret_address) {
        const Arena *arena;

        if (!buffer)
                return error_set(GPUQ_E_INVALID, "gpuq_buffer_address(): the buffer is NULL");
        arena = buffer->arena;
        if (arena->device == ARENA_HOST)
                return error_set(GPUQ_E_INVALID, "a buffer in host memory has no address on a "
                                                 "device; use gpuq_buffer_new_device()");
        if (!arena->address)
                return error_set(GPUQ_E_MEMORY,
                                 "this device memory has no fixed address: an older gpuqd made it, "
                                 "its place is taken in a worker, or all addresses are in use; "
                                 "free it and allocate it again");
        *ret_address = arena->address + buffer->offset;
        return 0;
}

/* Memory that the parent's jobs and slices hold stays mapped in the child, which does not learn
 * when they end. */
static void buffer_unref_forked(gpuq_buffer *buffer) {
        gpuq_client *client = buffer->client;

        if (--buffer->refs > 0)
                return;

        if (buffer->whole)
                buffer_unref_forked(buffer->whole);
        else
                place_give_forked(buffer->arena);
        free(buffer);
        client_unref(client);
}

void gpuq_buffer_free(gpuq_buffer *buffer) {
        gpuq_client *client;

        if (!buffer)
                return;
        if (client_forked(buffer->client)) {
                buffer_unref_forked(buffer);
                return;
        }

        client = client_ref(buffer->client);
        pthread_mutex_lock(&client->lock);
        buffer_unref(buffer);
        client_leave(client, 0);
}

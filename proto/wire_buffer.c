/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire buffer
 */

#include "proto/wire_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WIRE_BUFFER_MIN 4096u

/* Moves what is used to the front, then doubles until @room bytes are free behind it. */
int wire_buffer_reserve(WireBuffer *buffer, size_t room) {
        size_t used = wire_buffer_used(buffer), capacity = buffer->capacity;
        uint8_t *data;

        if (buffer->capacity - buffer->end >= room)
                return 0;

        if (used && buffer->start)
                memmove(buffer->data, buffer->data + buffer->start, used);
        buffer->start = 0;
        buffer->end = used;

        if (capacity < WIRE_BUFFER_MIN)
                capacity = WIRE_BUFFER_MIN;
        while (capacity - used < room)
                capacity *= 2;
        if (capacity == buffer->capacity)
                return 0;

        data = realloc(buffer->data, capacity);
        if (!data)
                return -ENOMEM;

        buffer->data = data;
        buffer->capacity = capacity;
        return 0;
}

void wire_buffer_extend(WireBuffer *buffer, size_t n) {
        buffer->end += n;
        if (buffer->end > buffer->reach)
                buffer->reach = buffer->end;
}

void wire_buffer_trim(WireBuffer *buffer) {
        if (buffer->capacity > WIRE_BUFFER_KEEP)
                wire_buffer_release(buffer);
        else
                buffer->start = buffer->end = 0;
}

void wire_buffer_release(WireBuffer *buffer) {
        free(buffer->data);
        *buffer = (WireBuffer){};
}

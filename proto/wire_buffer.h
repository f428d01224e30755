/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_WIRE_BUFFER_H
#define GPUQ_PROTO_WIRE_BUFFER_H

/*
 * Wire buffer
 *
 * Bytes of a stream, appended at the end and used from the front. Private to Wire.
 */

#include <stddef.h>
#include <stdint.h>

#define WIRE_BUFFER_KEEP                                                                           \
        (16u << 10) /* an idle connection keeps at most so much of each, mostly untouched */

typedef struct WireBuffer {
        uint8_t *data;
        size_t start; /* first byte not used yet */
        size_t end;   /* behind the last byte */
        size_t reach; /* the highest end so far: memory beyond it was never touched */
        size_t capacity;
} WireBuffer;

/** wire_buffer_used() - bytes that wait in it. */
static inline size_t wire_buffer_used(const WireBuffer *buffer) {
        return buffer->end - buffer->start;
}

/** wire_buffer_reserve() - make room for so many bytes at its end. Return: 0, or -ENOMEM. */
int wire_buffer_reserve(WireBuffer *buffer, size_t room);
/** wire_buffer_extend() - so many were written at its end. */
void wire_buffer_extend(WireBuffer *buffer, size_t n);
/** wire_buffer_trim() - if the buffer is empty and large, free its memory. */
void wire_buffer_trim(WireBuffer *buffer);
/** wire_buffer_release() - empty, without memory. */
void wire_buffer_release(WireBuffer *buffer);

#endif

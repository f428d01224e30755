/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_WIRE_RING_H
#define GPUQ_PROTO_WIRE_RING_H

/*
 * Wire ring
 *
 * Shared memory that carries a Wire's bytes instead of its socket: a ring in each direction in one
 * memfd, sealed against shrinking and growing. The rings carry a stream in chunks, which do not
 * follow the borders of frames. Private to Wire.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/ring.h"
#include "proto/wire_buffer.h"

#define WIRE_RING_MIN   4096u /* bytes each way, a power of two */
#define WIRE_RING_MAX   (1u << 20)
#define WIRE_RING_CHUNK (8u << 10) /* at most, in one message of a ring */

typedef struct WireRing {
        Ring in;
        Ring out;
        uint8_t *map; /* NULL: there is none */
        size_t n_map;
} WireRing;

/** wire_ring_bytes() - of memory for both rings. */
size_t wire_ring_bytes(uint32_t capacity);
/** wire_ring_make() - the first ring is ours to write. Return: 0 and the memory's descriptor, the caller's, or a negative errno. */
int wire_ring_make(WireRing *ring, uint32_t capacity, int *ret_fd);
/** wire_ring_adopt() - the other side's; @fd stays the caller's. Return: 0, or a negative errno: -EINVAL: it is not such memory. */
int wire_ring_adopt(WireRing *ring, int fd, uint32_t capacity);
/** wire_ring_release() - unmap it; NULL map is fine. */
void wire_ring_release(WireRing *ring);

/** wire_ring_read() - add the next chunk to the buffer. Return: as ring_read(), or -ENOMEM. */
int wire_ring_read(WireRing *ring, WireBuffer *buffer);

#endif

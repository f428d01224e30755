/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wire ring
 */

#include "proto/wire_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t ring_pages(uint32_t capacity) {
        return (ring_bytes(capacity) + 4095) & ~(size_t)4095;
}

size_t wire_ring_bytes(uint32_t capacity) {
        return 2 * ring_pages(capacity);
}

static int wire_ring_map(WireRing *ring, int fd, uint32_t capacity, bool is_ours) {
        size_t n_map = wire_ring_bytes(capacity), n_first = ring_pages(capacity);
        uint32_t chunk = capacity / 4 < WIRE_RING_CHUNK ? capacity / 4 : WIRE_RING_CHUNK;
        uint8_t *map;

        map = mmap(NULL, n_map, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;

        ring->map = map;
        ring->n_map = n_map;
        ring_init(&ring->out, map + (is_ours ? 0 : n_first), capacity, RING_PRODUCER);
        ring_init(&ring->in, map + (is_ours ? n_first : 0), capacity, RING_CONSUMER);
        ring->in.n_data_max = ring->out.n_data_max = chunk;
        return 0;
}

static int wire_ring_fill(WireRing *ring, int fd, uint32_t capacity) {
        if (ftruncate(fd, (off_t)wire_ring_bytes(capacity)) < 0)
                return -errno;
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;
        return wire_ring_map(ring, fd, capacity, true);
}

int wire_ring_make(WireRing *ring, uint32_t capacity, int *ret_fd) {
        int fd, r;

        fd = memfd_create("gpuq-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;

        r = wire_ring_fill(ring, fd, capacity);
        if (r < 0) {
                close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

/* If the peer could shrink the memory, an access to it would raise SIGBUS later. */
static int wire_ring_check(int fd, uint32_t capacity) {
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
        struct stat st;
        int have;

        if (capacity < WIRE_RING_MIN || capacity > WIRE_RING_MAX || capacity & (capacity - 1))
                return -EINVAL;
        have = fcntl(fd, F_GET_SEALS);
        if (have < 0 || (have & seals) != seals)
                return -EINVAL;
        if (fstat(fd, &st) < 0)
                return -errno;
        return st.st_size == (off_t)wire_ring_bytes(capacity) ? 0 : -EINVAL;
}

int wire_ring_adopt(WireRing *ring, int fd, uint32_t capacity) {
        int r;

        r = wire_ring_check(fd, capacity);
        if (r < 0)
                return r;
        return wire_ring_map(ring, fd, capacity, false);
}

void wire_ring_release(WireRing *ring) {
        if (ring->map)
                munmap(ring->map, ring->n_map);
        *ring = (WireRing){};
}

int wire_ring_read(WireRing *ring, WireBuffer *buffer) {
        uint32_t n_data;
        int r;

        r = wire_buffer_reserve(buffer, ring->in.n_data_max);
        if (r < 0)
                return r;
        r = ring_read(&ring->in, buffer->data + buffer->end, &n_data);
        if (r)
                return r;

        wire_buffer_extend(buffer, n_data);
        return 0;
}

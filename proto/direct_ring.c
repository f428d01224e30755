/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct ring
 */

#include "proto/direct_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(DirectEntry) == 64, "an entry is a cache line");

/* ---- memory -------------------------------------------------------------------- */

size_t direct_ring_bytes(void) {
        return (sizeof(DirectShared) + 4095) & ~(size_t)4095;
}

static int direct_ring_map(DirectRing *ring, int fd) {
        void *map = mmap(NULL, direct_ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (map == MAP_FAILED)
                return -errno;
        *ring = (DirectRing){.shared = map};
        return 0;
}

int direct_ring_make(DirectRing *ring, int *ret_fd) {
        int fd, r = 0;

        fd = memfd_create("gpuq-direct", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;

        if (ftruncate(fd, (off_t)direct_ring_bytes()) < 0 ||
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                r = -errno;
        if (r == 0)
                r = direct_ring_map(ring, fd);
        if (r < 0) {
                close(fd);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

/* If the peer could shrink the memory, an access to it would raise SIGBUS later. */
int direct_ring_adopt(DirectRing *ring, int fd) {
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
        int have = fcntl(fd, F_GET_SEALS);
        struct stat st;

        if (have < 0 || (have & seals) != seals)
                return -EINVAL;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size != (off_t)direct_ring_bytes())
                return -EINVAL;
        return direct_ring_map(ring, fd);
}

void direct_ring_release(DirectRing *ring) {
        if (ring->shared)
                munmap(ring->shared, direct_ring_bytes());
        *ring = (DirectRing){};
}

/* ---- the client ---------------------------------------------------------------- */

/* gpuqd says that the ring is not lent any more and then reads it; here it is written and then asked. So one of both
 * sees the other. */
bool direct_ring_write(DirectRing *ring, uint32_t tag, uint32_t prepared) {
        DirectEntry *entry = direct_ring_entry(ring, ring->position);

        __atomic_store_n(&entry->prepared, prepared, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->tag, tag, __ATOMIC_RELAXED);
        /* Another thread of the client may look for ends meanwhile. */
        __atomic_store_n(&ring->position, ring->position + 1, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->shared->n_written, ring->position, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return __atomic_load_n(&ring->shared->is_lent, __ATOMIC_SEQ_CST);
}

bool direct_ring_has_end(const DirectRing *ring, uint32_t first) {
        for (uint32_t i = first; i != __atomic_load_n(&ring->position, __ATOMIC_RELAXED); i++) {
                const DirectEntry *entry = direct_ring_entry(ring, i);
                uint32_t tag = __atomic_load_n(&entry->tag, __ATOMIC_RELAXED);

                if (tag && direct_ring_is_done(entry, tag))
                        return true;
        }
        return false;
}

bool direct_ring_doze(DirectRing *ring, uint32_t first) {
        __atomic_store_n(&ring->shared->client_sleeps, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return !direct_ring_has_end(ring, first);
}

void direct_ring_rouse(DirectRing *ring) {
        if (__atomic_load_n(&ring->shared->client_sleeps, __ATOMIC_RELAXED))
                __atomic_store_n(&ring->shared->client_sleeps, 0, __ATOMIC_RELAXED);
}

static bool direct_ring_clear(uint32_t *sleeps) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return __atomic_load_n(sleeps, __ATOMIC_SEQ_CST) &&
               __atomic_exchange_n(sleeps, 0, __ATOMIC_SEQ_CST);
}

bool direct_ring_must_wake_reader(DirectRing *ring) {
        return direct_ring_clear(&ring->shared->reader_sleeps);
}

/* ---- gpuqd ------------------------------------------------------------------------ */

void direct_ring_lend(DirectRing *ring, bool is_lent) {
        __atomic_store_n(&ring->shared->is_lent, is_lent, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- the reader -------------------------------------------------------------------- */

void direct_ring_end(DirectRing *ring, uint32_t index, uint32_t tag, uint32_t waited_us,
                     uint32_t ran_us) {
        DirectEntry *entry = direct_ring_entry(ring, index);

        __atomic_store_n(&entry->waited_us, waited_us, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->ran_us, ran_us, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->done, tag, __ATOMIC_RELEASE);
}

bool direct_ring_must_wake_client(DirectRing *ring) {
        return direct_ring_clear(&ring->shared->client_sleeps);
}

bool direct_ring_sleep(DirectRing *ring) {
        __atomic_store_n(&ring->shared->reader_sleeps, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ring->shared->n_written, __ATOMIC_SEQ_CST) == ring->position)
                return true;
        direct_ring_wake(ring);
        return false;
}

void direct_ring_wake(DirectRing *ring) {
        if (__atomic_load_n(&ring->shared->reader_sleeps, __ATOMIC_RELAXED))
                __atomic_store_n(&ring->shared->reader_sleeps, 0, __ATOMIC_RELAXED);
}

/* ---- bells --------------------------------------------------------------------------- */

int direct_bell_make(int ret_fds[static 2]) {
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0
                       ? -errno
                       : 0;
}

/* A full socket wakes the other side, too. */
void direct_bell_ring(int fd) {
        (void)send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool direct_bell_hear(int fd) {
        char scratch[256];
        ssize_t n;

        do
                n = recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT);
        while (n == sizeof(scratch));
        return n != 0;
}

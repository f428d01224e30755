/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel
 *
 * The memfd holds two rings: from the side that made it, then to it. Each side
 * sleeps on its end of the bells, and rings by sending a byte to the other. A descriptor is
 * one byte with SCM_RIGHTS on a SOCK_SEQPACKET pair, sent only when its message is
 * known to fit. Neither side holds an end of the other, so flags and offsets of descriptors are
 * its own.
 */

#include "util/channel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "util/macro.h"
#include "proto/pass.h"
#include "proto/ring.h"

#define CHANNEL_RINGS_MAX 512 /* bytes read from the bell at once: more than the socket can hold */

/*
 * What the socket takes of descriptors that a worker does not read: the kernel charges each packet
 * with 768 bytes, so about 20 go in. They count against the supervisor, as long as they are unread.
 */
#define CHANNEL_SOCKET_BYTES 8192

#define CHANNEL_KEEP (1u << 20) /* bytes that each buffer keeps after a big message */

struct Channel {
        Ring out;
        Ring in;
        uint8_t *map;
        int bell; /* this side sleeps on it, and writes to it to wake the other side */
        int socket;
        bool is_unrung; /* the kernel refused the last ring for want of memory */

        uint8_t *packed; /* for channel_reserve() */
        size_t n_packed;
        uint8_t *received; /* CHANNEL_CAPACITY bytes of address space, touched as needed */
        size_t n_received;
};

DEFINE_CLEANUP(Channel, channel_free)

static size_t channel_ring_bytes(void) {
        return (ring_bytes(CHANNEL_CAPACITY) + 4095) & ~(size_t)4095;
}

static int channel_alloc(Channel **ret_channel) {
        Channel *channel;

        channel = calloc(1, sizeof(*channel));
        if (!channel)
                return -ENOMEM;

        channel->map = channel->received = MAP_FAILED;
        channel->bell = channel->socket = -1;
        *ret_channel = channel;
        return 0;
}

/* @first: this side writes the ring at the start of the memory. */
static int channel_map(Channel *channel, int memfd, bool first) {
        size_t n_ring = channel_ring_bytes();

        channel->map = mmap(NULL, 2 * n_ring, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
        if (channel->map == MAP_FAILED)
                return -errno;
        channel->received = mmap(NULL, CHANNEL_CAPACITY, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (channel->received == MAP_FAILED)
                return -errno;

        ring_init(&channel->out, channel->map + (first ? 0 : n_ring), CHANNEL_CAPACITY,
                  RING_PRODUCER);
        ring_init(&channel->in, channel->map + (first ? n_ring : 0), CHANNEL_CAPACITY,
                  RING_CONSUMER);
        return 0;
}

static int channel_make_memfd(int *ret_memfd) {
        _cleanup_(closep) int memfd = -1;

        memfd = memfd_create("gpuq-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (memfd < 0)
                return -errno;
        if (ftruncate(memfd, (off_t)(2 * channel_ring_bytes())) < 0)
                return -errno;
        if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
                return -errno;

        *ret_memfd = TAKE_FD(memfd);
        return 0;
}

/* @ret_ours stays in the channel; @ret_theirs is sent to the other side. */
static int channel_make_pair(int type, int *ret_ours, int *ret_theirs) {
        int pair[2];

        if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return -errno;
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return 0;
}

int channel_new(Channel **ret_channel, int ret_fds[static CHANNEL_N_FDS]) {
        _cleanup_(channel_freep) Channel *channel = NULL;
        _cleanup_(closep) int memfd = -1, bell = -1, socket = -1;
        int r;

        r = channel_alloc(&channel);
        if (r < 0)
                return r;
        r = channel_make_memfd(&memfd);
        if (r < 0)
                return r;
        r = channel_map(channel, memfd, true);
        if (r < 0)
                return r;
        r = channel_make_pair(SOCK_STREAM, &channel->bell, &bell);
        if (r < 0)
                return r;
        r = channel_make_pair(SOCK_SEQPACKET, &channel->socket, &socket);
        if (r < 0)
                return r;
        if (setsockopt(channel->socket, SOL_SOCKET, SO_SNDBUF, &(int){CHANNEL_SOCKET_BYTES},
                       sizeof(int)) < 0)
                return -errno;

        ret_fds[0] = TAKE_FD(memfd);
        ret_fds[1] = TAKE_FD(bell);
        ret_fds[2] = TAKE_FD(socket);
        *ret_channel = TAKE_PTR(channel);
        return 0;
}

/* If the other side could shrink the memory, an access to it would raise SIGBUS later. */
static int channel_check_memfd(int memfd) {
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
        struct stat st;
        int have;

        have = fcntl(memfd, F_GET_SEALS);
        if (have < 0 || (have & seals) != seals)
                return -EINVAL;
        if (fstat(memfd, &st) < 0)
                return -errno;
        return st.st_size == (off_t)(2 * channel_ring_bytes()) ? 0 : -EINVAL;
}

int channel_adopt(const int fds[static CHANNEL_N_FDS], Channel **ret_channel) {
        _cleanup_(channel_freep) Channel *channel = NULL;
        int r;

        r = channel_check_memfd(fds[0]);
        if (r < 0)
                return r;
        r = channel_alloc(&channel);
        if (r < 0)
                return r;
        r = channel_map(channel, fds[0], false);
        if (r < 0)
                return r;

        close(fds[0]); /* the mapping holds the memory */
        channel->bell = fds[1];
        channel->socket = fds[2];
        *ret_channel = TAKE_PTR(channel);
        return 0;
}

Channel *channel_free(Channel *channel) {
        if (!channel)
                return NULL;

        free(channel->packed);
        if (channel->received != MAP_FAILED)
                munmap(channel->received, CHANNEL_CAPACITY);
        if (channel->map != MAP_FAILED)
                munmap(channel->map, 2 * channel_ring_bytes());
        closep(&channel->socket);
        closep(&channel->bell);
        free(channel);
        return NULL;
}

int channel_bell_fd(const Channel *channel) {
        return channel->bell;
}

int channel_socket_fd(const Channel *channel) {
        return channel->socket;
}

static void channel_ring_bell(Channel *channel) {
        ssize_t n = send(channel->bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);

        /* Of other errors, EAGAIN says that the socket is full, so the bell rings already. */
        channel->is_unrung = n < 0 && (errno == ENOBUFS || errno == ENOMEM);
}

static int channel_from_ring(int r) {
        switch (r) {
                case RING_E_AGAIN:
                        return CHANNEL_E_AGAIN;
                case RING_E_CORRUPT:
                        return CHANNEL_E_CORRUPT;
                case RING_E_TOO_BIG:
                        return -EMSGSIZE;
                default:
                        return r;
        }
}

static int channel_send_fd(Channel *channel, int fd) {
        ssize_t n;

        n = pass_send(channel->socket, "", 1, &fd, 1);
        if (n >= 0)
                return 0;
        /* The latter: too many of this user that others have not read; it may pass. */
        if (n == -EAGAIN || n == -ETOOMANYREFS)
                return CHANNEL_E_AGAIN;
        if (n == -EPIPE || n == -ECONNRESET)
                return CHANNEL_E_CLOSED;
        return (int)n;
}

/* The socket is full. As for a full ring: set the flag of a waiting producer, then try once
 * more. */
static int channel_send_fd_or_wait(Channel *channel, int fd) {
        int r;

        r = channel_send_fd(channel, fd);
        if (r != CHANNEL_E_AGAIN)
                return r;

        ring_wait(&channel->out);
        return channel_send_fd(channel, fd);
}

int channel_reserve(Channel *channel, size_t n_data, uint8_t **ret_data) {
        if (n_data > CHANNEL_CAPACITY)
                return -EMSGSIZE;
        if (n_data > channel->n_packed ||
            (channel->n_packed > CHANNEL_KEEP && n_data <= CHANNEL_KEEP)) {
                size_t n_packed = MAX(n_data, MIN(2 * channel->n_packed, CHANNEL_KEEP));

                free(channel->packed);
                channel->n_packed = 0;
                channel->packed = malloc(n_packed);
                if (!channel->packed)
                        return -ENOMEM;
                channel->n_packed = n_packed;
        }

        *ret_data = channel->packed;
        return 0;
}

int channel_begin(Channel *channel, size_t n_data) {
        if (n_data > CHANNEL_CAPACITY)
                return -EMSGSIZE;
        return channel_from_ring(ring_begin(&channel->out, (uint32_t)n_data));
}

void channel_add(Channel *channel, const void *data, size_t n_data) {
        ring_add(&channel->out, data, (uint32_t)n_data);
}

void channel_end(Channel *channel) {
        ring_end(&channel->out);
        if (ring_needs_bell(&channel->out))
                channel_ring_bell(channel);
}

int channel_send(Channel *channel, const uint8_t *data, size_t n_data, int fd) {
        int r;

        if (n_data > CHANNEL_CAPACITY)
                return -EMSGSIZE;
        if (fd >= 0) {
                r = channel_from_ring(ring_room(&channel->out, (uint32_t)n_data));
                if (r)
                        return r;
                r = channel_send_fd_or_wait(channel, fd);
                if (r)
                        return r;
        }

        r = channel_begin(channel, n_data);
        if (r)
                return r;
        channel_add(channel, data, n_data);
        channel_end(channel);
        return 0;
}

int channel_receive(Channel *channel, const uint8_t **ret_data, size_t *ret_n_data) {
        uint32_t n_data;
        int r;

        if (channel->n_received > CHANNEL_KEEP) /* free the pages of a big message */
                (void)madvise(channel->received, CHANNEL_CAPACITY, MADV_DONTNEED);
        channel->n_received = 0;

        r = ring_take(&channel->in, channel->received, &n_data);
        if (r == RING_E_AGAIN && ring_has_waiter(&channel->in))
                channel_ring_bell(channel);
        if (r)
                return channel_from_ring(r);

        channel->n_received = n_data;
        *ret_data = channel->received;
        *ret_n_data = n_data;
        return 0;
}

int channel_take_fd(Channel *channel) {
        size_t n_fds = 0;
        char byte;
        int fd;

        return pass_receive(channel->socket, &byte, 1, &fd, 1, &n_fds) >= 0 && n_fds ? fd : -1;
}

bool channel_sleep(Channel *channel) {
        bool may_sleep = ring_sleep(&channel->in);

        /* That released the last message, and the producer may wait for its space. */
        if (ring_has_waiter(&channel->in))
                channel_ring_bell(channel);
        /* The other side may sleep until it hears the bell. */
        if (channel->is_unrung)
                channel_ring_bell(channel);
        if (!channel->is_unrung)
                return may_sleep;
        ring_wake(&channel->in);
        return false;
}

uint32_t channel_written(const Channel *channel) {
        return channel->out.position;
}

bool channel_is_dealt_with(const Channel *channel, uint32_t position) {
        return ring_has_passed(&channel->out, position);
}

bool channel_is_watched(const Channel *channel) {
        return ring_is_watched(&channel->out);
}

int channel_wake(Channel *channel) {
        char rings[CHANNEL_RINGS_MAX];

        ring_wake(&channel->in);
        return recv(channel->bell, rings, sizeof(rings), MSG_DONTWAIT) == 0 ? CHANNEL_E_CLOSED : 0;
}

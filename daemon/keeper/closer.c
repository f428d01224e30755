/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closer
 *
 * See closer.h. The numbers of the descriptors go through a pipe, which is a queue that needs no
 * memory of the keeper's.
 */

#include "keeper/closer.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "util/macro.h"

struct Closer {
        pthread_t thread;
        int from, to; /* the ends of the pipe */
        size_t n_max;
        atomic_size_t n_waiting;
};

static void *closer_run(void *userdata) {
        Closer *closer = userdata;
        int fd;

        while (read(closer->from, &fd, sizeof(fd)) == sizeof(fd)) {
                close(fd);
                atomic_fetch_sub(&closer->n_waiting, 1);
        }
        return NULL;
}

static int closer_start(Closer *closer) {
        sigset_t all, before;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&closer->thread, NULL, closer_run, closer);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return -r;
}

int closer_new(size_t n_max, Closer **ret_closer) {
        Closer *closer;
        int fds[2], r;

        closer = calloc(1, sizeof(*closer));
        if (!closer)
                return -ENOMEM;
        if (pipe2(fds, O_CLOEXEC) < 0) {
                r = -errno;
                free(closer);
                return r;
        }
        closer->from = fds[0];
        closer->to = fds[1];
        closer->n_max = n_max;
        r = fcntl(closer->to, F_SETFL, O_NONBLOCK) < 0 ? -errno : closer_start(closer);
        if (r < 0) {
                close(fds[0]);
                close(fds[1]);
                free(closer);
                return r;
        }
        *ret_closer = closer;
        return 0;
}

Closer *closer_free(Closer *closer) {
        if (!closer)
                return NULL;

        close(closer->to);
        pthread_join(closer->thread, NULL);
        close(closer->from);
        free(closer);
        return NULL;
}

/* They have numbers meanwhile, of which there are not too many. */
static bool closer_take(Closer *closer, int fd) {
        if (!closer || atomic_load(&closer->n_waiting) >= closer->n_max)
                return false;
        atomic_fetch_add(&closer->n_waiting, 1);
        if (write(closer->to, &fd, sizeof(fd)) == sizeof(fd))
                return true;
        atomic_fetch_sub(&closer->n_waiting, 1);
        return false;
}

void closer_close(Closer *closer, int fd) {
        if (!closer_take(closer, fd))
                close(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not uv_queue_work(): libuv starts its threads with the first call and aborts where it cannot, and
 * there is no way to ask before. A limit of tasks that is reached costs detached jobs alone with
 * these; there it would cost one supervisor after the other, and with the third the ledger.
 */
#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#define DISK_THREADS 2u /* one waits for the disk while the other computes a checksum */

STAILQ_HEAD(DiskCalls, DiskCall);

struct Disk {
        uv_async_t async;
        pthread_t threads[DISK_THREADS];
        size_t n_threads;
        pthread_mutex_t lock; /* of these: */
        pthread_cond_t cond;
        struct DiskCalls waiting;
        struct DiskCalls done;
        bool is_ended;
        /* the loop's: */
        size_t n_calls; /* not done */
        bool is_closing;
};

/* ---- threads --------------------------------------------------------------- */

static DiskCall *calls_take(struct DiskCalls *calls) {
        DiskCall *call = STAILQ_FIRST(calls);

        if (call)
                STAILQ_REMOVE_HEAD(calls, link);
        return call;
}

static void *disk_thread(void *userdata) {
        Disk *disk = userdata;
        DiskCall *call;

        pthread_mutex_lock(&disk->lock);
        while (!disk->is_ended) {
                call = calls_take(&disk->waiting);
                if (!call) {
                        pthread_cond_wait(&disk->cond, &disk->lock);
                        continue;
                }
                pthread_mutex_unlock(&disk->lock);
                call->run(call->userdata);
                pthread_mutex_lock(&disk->lock);
                STAILQ_INSERT_TAIL(&disk->done, call, link);
                uv_async_send(&disk->async);
        }
        pthread_mutex_unlock(&disk->lock);
        return NULL;
}

static int disk_start(Disk *disk) {
        sigset_t all, before;
        int r = 0;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (disk->n_threads < DISK_THREADS && r == 0) {
                r = -pthread_create(&disk->threads[disk->n_threads], NULL, disk_thread, disk);
                disk->n_threads += r == 0;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return disk->n_threads ? 0 : r;
}

static void disk_end(Disk *disk) {
        pthread_mutex_lock(&disk->lock);
        disk->is_ended = true;
        pthread_cond_broadcast(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
        while (disk->n_threads)
                pthread_join(disk->threads[--disk->n_threads], NULL);
}

/* ---- the loop -------------------------------------------------------------- */

static void disk_settle(Disk *disk) {
        if (disk->n_calls)
                return;
        uv_unref((uv_handle_t *)&disk->async);
        if (disk->is_closing && !uv_is_closing((uv_handle_t *)&disk->async))
                uv_close((uv_handle_t *)&disk->async, NULL);
}

static DiskCall *disk_next_done(Disk *disk) {
        DiskCall *call;

        pthread_mutex_lock(&disk->lock);
        call = calls_take(&disk->done);
        pthread_mutex_unlock(&disk->lock);
        return call;
}

static void disk_on_done(uv_async_t *async) {
        Disk *disk = async->data;
        DiskCall *call;

        while ((call = disk_next_done(disk))) {
                disk->n_calls--;
                call->done(call->userdata);
        }
        disk_settle(disk);
}

void disk_call(Disk *disk, DiskCall *call) {
        if (disk->n_calls++ == 0)
                uv_ref((uv_handle_t *)&disk->async);
        pthread_mutex_lock(&disk->lock);
        STAILQ_INSERT_TAIL(&disk->waiting, call, link);
        pthread_cond_signal(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
}

/* ---- life ------------------------------------------------------------------ */

static Disk *disk_destroy(Disk *disk) {
        disk_end(disk);
        pthread_cond_destroy(&disk->cond);
        pthread_mutex_destroy(&disk->lock);
        free(disk);
        return NULL;
}

int disk_new(uv_loop_t *loop, Disk **ret_disk) {
        Disk *disk;
        int r;

        disk = calloc(1, sizeof(*disk));
        if (!disk)
                return -ENOMEM;
        pthread_mutex_init(&disk->lock, NULL);
        pthread_cond_init(&disk->cond, NULL);
        STAILQ_INIT(&disk->waiting);
        STAILQ_INIT(&disk->done);

        r = disk_start(disk);
        if (r == 0)
                r = uv_async_init(loop, &disk->async, disk_on_done);
        if (r < 0) {
                disk_destroy(disk);
                return r;
        }
        disk->async.data = disk;
        uv_unref((uv_handle_t *)&disk->async);
        *ret_disk = disk;
        return 0;
}

void disk_close(Disk *disk) {
        if (!disk)
                return;
        disk->is_closing = true;
        disk_settle(disk);
}

Disk *disk_free(Disk *disk) {
        return disk ? disk_destroy(disk) : NULL;
}

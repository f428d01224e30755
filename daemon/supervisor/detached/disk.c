/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not uv_queue_work(): libuv starts its threads with the first call and aborts if it cannot, and a
 * caller cannot check before. Here a limit of tasks costs detached jobs only. With libuv it would
 * end one supervisor after the other, and with the third the ledger.
 */
#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#define DISK_THREADS 2u /* a large job occupies one of them */

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
};

static DiskCall *disk_take(Disk *disk, struct DiskCalls *calls) {
        DiskCall *call;

        pthread_mutex_lock(&disk->lock);
        while (calls == &disk->waiting && STAILQ_EMPTY(calls) && !disk->is_ended)
                pthread_cond_wait(&disk->cond, &disk->lock);
        call = STAILQ_FIRST(calls);
        if (call)
                STAILQ_REMOVE_HEAD(calls, link);
        pthread_mutex_unlock(&disk->lock);
        return call;
}

static void disk_put(Disk *disk, struct DiskCalls *calls, DiskCall *call) {
        pthread_mutex_lock(&disk->lock);
        STAILQ_INSERT_TAIL(calls, call, link);
        pthread_cond_signal(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
}

static void *disk_thread(void *userdata) {
        Disk *disk = userdata;
        DiskCall *call;

        while ((call = disk_take(disk, &disk->waiting))) {
                call->run(call->userdata);
                disk_put(disk, &disk->done, call);
                uv_async_send(&disk->async);
        }
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

static void disk_on_done(uv_async_t *async) {
        Disk *disk = async->data;
        DiskCall *call;

        while ((call = disk_take(disk, &disk->done)))
                call->done(call->userdata);
}

void disk_call(Disk *disk, DiskCall *call) {
        disk_put(disk, &disk->waiting, call);
}

static void disk_on_close(uv_handle_t *handle) {
        Disk *disk = handle->data;

        pthread_cond_destroy(&disk->cond);
        pthread_mutex_destroy(&disk->lock);
        free(disk);
}

int disk_new(uv_loop_t *loop, Disk **ret_disk) {
        Disk *disk;
        int r;

        disk = calloc(1, sizeof(*disk));
        if (!disk)
                return -ENOMEM;
        r = uv_async_init(loop, &disk->async, disk_on_done);
        if (r < 0) {
                free(disk);
                return r;
        }
        disk->async.data = disk;
        pthread_mutex_init(&disk->lock, NULL);
        pthread_cond_init(&disk->cond, NULL);
        STAILQ_INIT(&disk->waiting);
        STAILQ_INIT(&disk->done);

        r = disk_start(disk);
        if (r < 0) {
                disk_close(disk);
                return r;
        }
        *ret_disk = disk;
        return 0;
}

/* The last calls may lead to more: none is started once all threads have ended. */
void disk_close(Disk *disk) {
        if (!disk)
                return;
        pthread_mutex_lock(&disk->lock);
        disk->is_ended = true;
        pthread_cond_broadcast(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
        while (disk->n_threads)
                pthread_join(disk->threads[--disk->n_threads], NULL);
        disk_on_done(&disk->async);
        uv_close((uv_handle_t *)&disk->async, disk_on_close);
}

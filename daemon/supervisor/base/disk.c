/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not uv_queue_work(): libuv starts its threads with the first call and aborts if it cannot, and a
 * caller cannot check before. Here a limit of tasks costs detached jobs and history only. With libuv it
 * would end one supervisor after the other, and with the third the ledger.
 */
#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/activity.h"
#include "util/macro.h"

#define DISK_DONE_MAX 4u /* calls whose end is handled in one turn of the loop */

STAILQ_HEAD(DiskCalls, DiskCall);

struct Disk {
        uv_async_t async;
        pthread_t threads[DISK_THREADS_MAX];
        size_t n_threads;
        pthread_mutex_t lock; /* of these: */
        pthread_cond_t cond;
        TAILQ_HEAD(, DiskLine) lines; /* with calls that wait; the next one first */
        unsigned n_running;
        struct DiskCalls done;
        bool is_ended;
};

/* ---- lines, under the lock ------------------------------------------------- */

/* A line's first call needs a free thread; more of them only as many as leave half of the threads. */
static bool disk_may_start(const Disk *disk, const DiskLine *line) {
        return line->n_running == 0 || disk->n_running < disk->n_threads / 2 || disk->is_ended;
}

static void disk_wait(Disk *disk, DiskLine *line) {
        line->is_waiting = true;
        TAILQ_INSERT_TAIL(&disk->lines, line, link);
}

static DiskCall *disk_next(Disk *disk) {
        DiskLine *line;
        DiskCall *call;

        TAILQ_FOREACH (line, &disk->lines, link)
                if (disk_may_start(disk, line))
                        break;
        if (!line)
                return NULL;

        call = STAILQ_FIRST(&line->calls);
        STAILQ_REMOVE_HEAD(&line->calls, link);
        TAILQ_REMOVE(&disk->lines, line, link);
        line->is_waiting = false;
        if (!STAILQ_EMPTY(&line->calls))
                disk_wait(disk, line);
        line->n_running++;
        disk->n_running++;
        return call;
}

/* ---- threads --------------------------------------------------------------- */

/* Return: NULL: the disk is closed, and no call waits. */
static DiskCall *disk_take(Disk *disk) {
        DiskCall *call;

        pthread_mutex_lock(&disk->lock);
        while (!(call = disk_next(disk)) && !disk->is_ended)
                pthread_cond_wait(&disk->cond, &disk->lock);
        pthread_mutex_unlock(&disk->lock);
        return call;
}

static void disk_finish(Disk *disk, DiskCall *call) {
        pthread_mutex_lock(&disk->lock);
        call->line->n_running--;
        disk->n_running--;
        STAILQ_INSERT_TAIL(&disk->done, call, link);
        pthread_cond_broadcast(&disk->cond); /* another call of this line may start now */
        pthread_mutex_unlock(&disk->lock);
}

static void *disk_thread(void *userdata) {
        Disk *disk = userdata;
        DiskCall *call;

        while ((call = disk_take(disk))) {
                call->run(call->userdata);
                disk_finish(disk, call);
                uv_async_send(&disk->async);
        }
        return NULL;
}

static int disk_start(Disk *disk, size_t n_threads) {
        sigset_t all, before;
        int r = 0;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_mutex_lock(&disk->lock); /* the threads read how many they are */
        while (disk->n_threads < n_threads && r == 0) {
                r = -pthread_create(&disk->threads[disk->n_threads], NULL, disk_thread, disk);
                disk->n_threads += r == 0;
        }
        pthread_mutex_unlock(&disk->lock);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return disk->n_threads ? 0 : r;
}

static DiskCall *disk_take_done(Disk *disk) {
        DiskCall *call;

        pthread_mutex_lock(&disk->lock);
        call = STAILQ_FIRST(&disk->done);
        if (call)
                STAILQ_REMOVE_HEAD(&disk->done, link);
        pthread_mutex_unlock(&disk->lock);
        return call;
}

/* The threads may be quicker than the loop: without a bound it would do nothing else. */
static void disk_on_done(uv_async_t *async) {
        Disk *disk = async->data;
        DiskCall *call;

        activity_shift(ACTIVITY_DISK);
        for (unsigned i = 0; i < DISK_DONE_MAX; ++i) {
                call = disk_take_done(disk);
                if (!call)
                        return;
                call->done(call->userdata);
        }
        uv_async_send(async); /* there may be more */
}

void disk_call(Disk *disk, DiskLine *line, DiskCall *call) {
        call->line = line;
        pthread_mutex_lock(&disk->lock);
        if (!line->is_waiting) {
                STAILQ_INIT(&line->calls);
                disk_wait(disk, line);
        }
        STAILQ_INSERT_TAIL(&line->calls, call, link);
        pthread_cond_signal(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
}

static void disk_on_close(uv_handle_t *handle) {
        Disk *disk = handle->data;

        pthread_cond_destroy(&disk->cond);
        pthread_mutex_destroy(&disk->lock);
        free(disk);
}

int disk_new(uv_loop_t *loop, size_t n_threads, Disk **ret_disk) {
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
        TAILQ_INIT(&disk->lines);
        STAILQ_INIT(&disk->done);

        r = disk_start(disk, MIN(n_threads, DISK_THREADS_MAX));
        if (r < 0) {
                disk_close(disk);
                return r;
        }
        *ret_disk = disk;
        return 0;
}

/* The last calls may lead to more: none is started once all threads have ended. */
void disk_close(Disk *disk) {
        DiskCall *call;

        if (!disk)
                return;
        pthread_mutex_lock(&disk->lock);
        disk->is_ended = true;
        pthread_cond_broadcast(&disk->cond);
        pthread_mutex_unlock(&disk->lock);
        for (size_t i = 0; i < disk->n_threads; ++i)
                pthread_join(disk->threads[i], NULL);
        disk->n_threads = 0;
        while ((call = disk_take_done(disk)))
                call->done(call->userdata);
        uv_close((uv_handle_t *)&disk->async, disk_on_close);
}

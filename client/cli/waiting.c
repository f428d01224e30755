/* SPDX-License-Identifier: Apache-2.0 */
#include "waiting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gpuq.h>

#define WAITING_S 1

/* Shared by the thread and its starter: the last one to leave frees it. */
struct Waiting {
        const char *socket;
        uint64_t job;
        pthread_mutex_t lock;
        pthread_cond_t over;
        bool is_over; /* the wait */
        bool is_told; /* the thread has left */
};

static void waiting_tell_job(gpuq_client *client, uint64_t job) {
        gpuq_queue *queue = NULL;
        char id[24];

        if (gpuq_get_queue(client, (int64_t)getuid(), &queue) < 0)
                return;
        for (size_t i = 0; i < queue->n_entries; i++) {
                const gpuq_queue_entry *entry = &queue->entries[i];

                if (entry->id != job)
                        continue;
                if (strcmp(entry->state, "waiting") == 0)
                        fprintf(stderr, "gpuq: job %s is waiting: %s\n", gpuq_id_format(job, id),
                                entry->reason);
                else
                        fprintf(stderr, "gpuq: job %s is running\n", gpuq_id_format(job, id));
        }
        gpuq_queue_free(queue);
}

static const gpuq_device_status *waiting_ready_device(const gpuq_status *status) {
        for (size_t i = 0; i < status->n_devices; i++)
                if (strcmp(status->devices[i].state, "ready") == 0)
                        return &status->devices[i];
        return NULL;
}

/* A device that takes jobs is starting a worker or compiling. */
static void waiting_tell_module(gpuq_client *client) {
        gpuq_status *status = NULL;

        if (gpuq_get_status(client, &status) < 0)
                return;
        if (status->n_devices == 0)
                fprintf(stderr, "gpuq: the module is waiting: no device: %s\n", status->state);
        else if (waiting_ready_device(status))
                fprintf(stderr, "gpuq: the module is being compiled and loaded\n");
        else
                fprintf(stderr, "gpuq: the module is waiting: device %u is %s\n",
                        status->devices[0].index, status->devices[0].state);
        gpuq_status_free(status);
}

static void waiting_tell(const Waiting *waiting) {
        gpuq_client *client = NULL;

        if (gpuq_connect(waiting->socket, &client) < 0)
                return;
        if (waiting->job)
                waiting_tell_job(client, waiting->job);
        else
                waiting_tell_module(client);
        gpuq_client_free(client);
}

static Waiting *waiting_free(Waiting *waiting) {
        pthread_cond_destroy(&waiting->over);
        pthread_mutex_destroy(&waiting->lock);
        free(waiting);
        return NULL;
}

/* Return: the wait is over. */
static bool waiting_for_a_second(Waiting *waiting) {
        struct timespec until;
        int r = 0;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += WAITING_S;
        pthread_mutex_lock(&waiting->lock);
        while (!waiting->is_over && r != ETIMEDOUT)
                r = pthread_cond_timedwait(&waiting->over, &waiting->lock, &until);
        r = waiting->is_over;
        pthread_mutex_unlock(&waiting->lock);
        return r;
}

static void *waiting_run(void *userdata) {
        Waiting *waiting = userdata;
        bool is_last;

        if (!waiting_for_a_second(waiting))
                waiting_tell(waiting);
        pthread_mutex_lock(&waiting->lock);
        waiting->is_told = true;
        is_last = waiting->is_over;
        pthread_mutex_unlock(&waiting->lock);
        if (is_last)
                waiting_free(waiting);
        return NULL;
}

/* Signals are for the thread that waits. */
static int waiting_start_thread(Waiting *waiting) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        sigfillset(&all);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, waiting_run, waiting);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        return -r;
}

Waiting *waiting_begin(const char *socket, uint64_t job) {
        Waiting *waiting = calloc(1, sizeof(*waiting));
        pthread_condattr_t clock;

        if (!waiting)
                return NULL;

        waiting->socket = socket;
        waiting->job = job;
        pthread_mutex_init(&waiting->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&waiting->over, &clock);
        pthread_condattr_destroy(&clock);
        return waiting_start_thread(waiting) < 0 ? waiting_free(waiting) : waiting;
}

void waiting_end(Waiting *waiting) {
        bool is_last;

        if (!waiting)
                return;

        pthread_mutex_lock(&waiting->lock);
        waiting->is_over = true;
        is_last = waiting->is_told;
        pthread_cond_signal(&waiting->over);
        pthread_mutex_unlock(&waiting->lock);
        if (is_last)
                waiting_free(waiting);
}

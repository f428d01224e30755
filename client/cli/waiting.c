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
        char *module; /* its name; NULL: it waits for the job */
        uint64_t job;
        pthread_mutex_t lock;
        pthread_cond_t over;
        bool is_over; /* the wait */
        bool is_told; /* the thread has left */
};

static void waiting_tell_job(const gpuq_queue *queue, uint64_t job) {
        char id[24];

        for (size_t i = 0; i < queue->n_entries; i++) {
                const gpuq_queue_entry *entry = &queue->entries[i];

                if (entry->id != job)
                        continue;
                if (strcmp(entry->state, "waiting") == 0)
                        fprintf(stderr, "gpuq: job %s is waiting: %s\n", gpuq_id_format(job, id),
                                entry->reason);
                else if (*entry->reason)
                        fprintf(stderr, "gpuq: job %s is running: %s\n", gpuq_id_format(job, id),
                                entry->reason);
                else
                        fprintf(stderr, "gpuq: job %s is running\n", gpuq_id_format(job, id));
        }
}

/* Its id is not known before it is loaded; another one of this name waits for the same. */
static void waiting_tell_module(const gpuq_queue *queue, const char *name) {
        for (size_t i = 0; i < queue->n_modules; i++)
                if (strcmp(queue->modules[i].name, name) == 0) {
                        fprintf(stderr, "gpuq: %s is not loaded yet: %s\n", name,
                                queue->modules[i].reason);
                        return;
                }
}

/* Jobs and modules that have ended meanwhile are not in the queue. */
static int waiting_tell(const Waiting *waiting) {
        gpuq_client *client = NULL;
        gpuq_queue *queue = NULL;
        int r;

        r = gpuq_connect(waiting->socket, &client);
        if (r < 0)
                return r;
        r = gpuq_get_queue(client, (int64_t)getuid(), &queue);
        if (r >= 0 && waiting->module)
                waiting_tell_module(queue, waiting->module);
        else if (r >= 0)
                waiting_tell_job(queue, waiting->job);
        gpuq_queue_free(queue);
        gpuq_client_free(client);
        return r;
}

/* The daemon does not tell, perhaps because this user has too many connections. */
static void waiting_tell_less(const Waiting *waiting) {
        char id[24];

        if (waiting->module)
                fprintf(stderr, "gpuq: %s is not loaded yet\n", waiting->module);
        else
                fprintf(stderr, "gpuq: job %s has not ended yet\n",
                        gpuq_id_format(waiting->job, id));
}

static Waiting *waiting_free(Waiting *waiting) {
        pthread_cond_destroy(&waiting->over);
        pthread_mutex_destroy(&waiting->lock);
        free(waiting->module);
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

        if (!waiting_for_a_second(waiting) && waiting_tell(waiting) < 0)
                waiting_tell_less(waiting);
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

Waiting *waiting_begin(const char *socket, const char *module, uint64_t job) {
        Waiting *waiting = calloc(1, sizeof(*waiting));
        pthread_condattr_t clock;

        if (!waiting)
                return NULL;

        waiting->socket = socket;
        waiting->module = module ? strdup(module) : NULL;
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

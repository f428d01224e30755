/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_DIRECT_H
#define GPUQ_WORKER_DIRECT_H

/*
 * Direct
 *
 * The direct rings (proto/direct_ring.h) that gpuqd lends to this worker: their clients fire prepared jobs in them, and
 * the worker takes them without asking. It has a template of each prepared job of the session, and orders the jobs that
 * it makes of them as gpuqd would: a job follows the latest job of each template whose buffers overlap with its own.
 *
 * Each ring has a most number of jobs in flight, which gpuqd derives from their durations. Jobs of different rings share
 * that time: each counts as its part of what its ring alone may have.
 *
 * A job that is done is told in its entry, and gpuqd gets sums. A job that fails, prints, is late or long is gpuqd's
 * business: the worker gives the ring back, which makes ordinary jobs of those that it has taken, and then reports.
 */

#include <stdbool.h>
#include <sys/queue.h>

#include <uv.h>

#include "proto/direct_ring.h"
#include "worker/outbox.h"
#include "worker/runner.h"

#define DIRECTS_FULL (1u << 20)

typedef struct DirectTemplate {
        WorkerJob *
                message; /* with its parts, in one block; its id is the number of the prepared job */
        WorkerJobParts parts;
        uint64_t prepared;                   /* its number */
        uint8_t after[WORKER_TEMPLATES_MAX]; /* places of the templates whose jobs its own follow */
        uint32_t n_after;
        uint64_t last;   /* the latest job made of it, which may have ended; 0: none */
        uint32_t n_done; /* since the last report, and their times: */
        uint64_t waited_us, ran_us;
} DirectTemplate;

typedef struct Direct Direct;

typedef struct Directs {
        Runner *runner;
        Outbox *outbox;
        uv_loop_t *loop;
        uv_timer_t timer; /* of the next report, if there is something to report */
        TAILQ_HEAD(DirectList, Direct) lent;
        struct DirectList partial; /* its bell, or its templates, have yet to come */
        unsigned n_in_flight;      /* jobs */
        unsigned load;             /* of them all, in parts of DIRECTS_FULL */
        bool was_busy;
        uint64_t turned_ns; /* the last turn */
        uint64_t busy_ns;   /* with jobs in flight, since the last report */
        uint64_t watch_ns;  /* when to look for long jobs next */
        bool has_failed;    /* a report could not be sent */
} Directs;

/** directs_init() - into zeroed @directs. */
void directs_init(Directs *directs, Runner *runner, Outbox *outbox, uv_loop_t *loop);
/** directs_open() - a session's ring, @fd, which is the caller's. Return: 0, or a negative errno. */
int directs_open(Directs *directs, uint32_t session, int fd);
/** directs_set_bell() - of that ring; @fd is consumed in any case. Return: as directs_open(). */
int directs_set_bell(Directs *directs, uint32_t session, int fd);
/** directs_lend() - take jobs from that ring, by the templates in the message. Return: 0, or a negative errno: -EBADMSG: not a list of jobs. */
int directs_lend(Directs *directs, uint32_t session, const WorkerMessage *message);
/** directs_recall() - give it back; it may have been given back already. Return: as outbox_send(). */
int directs_recall(Directs *directs, uint32_t session);
/** directs_give_back_all() - the worker ends. Return: as outbox_send(). */
int directs_give_back_all(Directs *directs);

/**
 * directs_take() - jobs that were fired
 * @ret_any: set to true if there were any
 *
 * Return: 0, -ENOMEM, or as outbox_send().
 */
int directs_take(Directs *directs, uint64_t now_ns, bool *ret_any);
/** directs_end() - tell the ends in runner->ended that are theirs to tell; the others stay there. Return: as outbox_send(). */
int directs_end(Directs *directs, uint64_t now_ns);
/** directs_late() - this job is reported to gpuqd. Return: as outbox_send(). */
int directs_late(Directs *directs, Job *job);

/** directs_sleep() - the worker will sleep. Return: false: a ring has a job: do not. */
bool directs_sleep(Directs *directs);
/** directs_wake() - it does not sleep any more. */
void directs_wake(Directs *directs);

#endif

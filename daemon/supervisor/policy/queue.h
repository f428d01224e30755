/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_QUEUE_H
#define GPUQ_SUPERVISOR_QUEUE_H

/*
 * Queue
 *
 * The jobs of one user that could run on one device now. Bands of priority; within a band the
 * sessions take turns; within a session first come, first served. Pure. The cost of adding, picking
 * and removing a job does not grow with the number of jobs or sessions. Visiting costs the same for
 * each job.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define QUEUE_LOOK_MAX 32u  /* sessions asked in one pick, so that many misfits cost little */
#define QUEUE_DEEP_MAX 256u /* entries asked in one deep pick, QUEUE_LOOK_MAX of each session */

typedef struct QueueTurn QueueTurn;

/* Embedded in a job. */
typedef struct QueueEntry {
        uint64_t key; /* ascending within a session */
        uint32_t session;
        int priority;
        QueueTurn *turn; /* NULL: in no queue */
        TAILQ_ENTRY(QueueEntry) link;
} QueueEntry;

TAILQ_HEAD(QueueBandList, QueueBand);
TAILQ_HEAD(QueueEntryList, QueueEntry);

typedef struct Queue {
        struct QueueBandList bands; /* highest priority first */
        QueueTurn *turns;           /* by session and priority */
        QueueTurn *last; /* the turn of the entry added last, likely that of the next one too */
        size_t n_entries;
        uint64_t n_steps; /* of all searches so far: a measure of the cost */
} Queue;

typedef bool (*QueueFits)(QueueEntry *entry, void *userdata);
typedef void (*QueueVisit)(QueueEntry *entry, size_t n_before, void *userdata);

/** queue_init() - empty. */
void queue_init(Queue *queue);
/**
 * queue_push() - sorted by key within its session: a job that comes back goes where it was
 *
 * Return: 0, or -ENOMEM.
 */
int queue_push(Queue *queue, QueueEntry *entry);
/** queue_priority() - the highest one of its entries; not of an empty queue. */
int queue_priority(const Queue *queue);
/** queue_pick() - the first entry in turn that fits; it stays in the queue. Return: the entry, or NULL. */
QueueEntry *queue_pick(Queue *queue, QueueFits fits, void *userdata);
/**
 * queue_pick_deep() - the same, but an entry may overtake up to QUEUE_DEEP_MAX of its own session that
 * do not fit
 */
QueueEntry *queue_pick_deep(Queue *queue, QueueFits fits, void *userdata);
/** queue_take() - remove an entry that runs: its session's turn is over. */
void queue_take(Queue *queue, QueueEntry *entry);
/** queue_remove() - remove an entry at any position. */
void queue_remove(Queue *queue, QueueEntry *entry);
/**
 * queue_visit() - visit the first @n_max entries in the order of turns, with the number of entries before
 * each at present
 *
 * Return: how many were visited.
 */
size_t queue_visit(Queue *queue, size_t n_max, QueueVisit visit, void *userdata);

#endif

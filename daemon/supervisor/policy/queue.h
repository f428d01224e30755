/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_QUEUE_H
#define GPUQ_SUPERVISOR_QUEUE_H

/*
 * Queue
 *
 * The jobs of one user that could run on one device now: bands of priority, in a
 * band the sessions in turn, in a session first come first served. Pure; what it costs
 * to add, pick and remove one does not grow with the number of jobs or sessions; visiting
 * costs the same for each.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define QUEUE_LOOK_MAX 32u /* sessions asked in one pick, so that many misfits cost little */

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
        QueueTurn *last; /* where the last one was added, most often the next one's too */
        size_t n_entries;
        uint64_t n_steps; /* of all searches so far: what adding, picking and visiting has cost */
} Queue;

typedef bool (*QueueFits)(QueueEntry *entry, void *userdata);
typedef void (*QueueVisit)(QueueEntry *entry, size_t n_before, void *userdata);

/** queue_init() - empty. */
void queue_init(Queue *queue);
/** queue_push() - by its key among those of its session: one that comes back goes where it was. Return: 0, or -ENOMEM. */
int queue_push(Queue *queue, QueueEntry *entry);
/** queue_pick() - the first whose turn it is and that fits; it stays. Return: the entry, or NULL. */
QueueEntry *queue_pick(Queue *queue, QueueFits fits, void *userdata);
/** queue_take() - remove it because it runs: its session's turn is over. */
void queue_take(Queue *queue, QueueEntry *entry);
/** queue_remove() - remove it, wherever it is. */
void queue_remove(Queue *queue, QueueEntry *entry);
/** queue_visit() - every entry in the order of their turns, with how many go before it as things are now. */
void queue_visit(Queue *queue, QueueVisit visit, void *userdata);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <uthash.h>

#include "util/macro.h"

typedef struct QueueBand {
        int priority;
        TAILQ_HEAD(, QueueTurn) turns; /* whose turn it is first */
        TAILQ_ENTRY(QueueBand) link;   /* queue->bands */
} QueueBand;

struct QueueTurn {
        struct {
                uint32_t session;
                int priority;
        } key;
        QueueBand *band;
        size_t n_entries;
        struct QueueEntryList entries;
        TAILQ_ENTRY(QueueTurn) link; /* band->turns */
        UT_hash_handle hh;           /* queue->turns */
};

void queue_init(Queue *queue) {
        TAILQ_INIT(&queue->bands);
        queue->turns = NULL;
        queue->n_entries = 0;
}

static QueueBand *queue_band(Queue *queue, int priority) {
        QueueBand *at, *band;

        TAILQ_FOREACH(at, &queue->bands, link) {
                if (at->priority == priority)
                        return at;
                if (at->priority < priority)
                        break;
        }

        band = calloc(1, sizeof(*band));
        if (!band)
                return NULL;
        band->priority = priority;
        TAILQ_INIT(&band->turns);
        if (at)
                TAILQ_INSERT_BEFORE(at, band, link);
        else
                TAILQ_INSERT_TAIL(&queue->bands, band, link);
        return band;
}

static void queue_drop_band(Queue *queue, QueueBand *band) {
        if (!TAILQ_EMPTY(&band->turns))
                return;
        TAILQ_REMOVE(&queue->bands, band, link);
        free(band);
}

static QueueTurn *queue_turn(Queue *queue, uint32_t session, int priority) {
        QueueBand *band;
        QueueTurn *turn;
        __typeof__(turn->key) key = {.session = session, .priority = priority};

        HASH_FIND(hh, queue->turns, &key, sizeof(key), turn);
        if (turn)
                return turn;

        band = queue_band(queue, priority);
        if (!band)
                return NULL;
        turn = calloc(1, sizeof(*turn));
        if (!turn) {
                queue_drop_band(queue, band);
                return NULL;
        }
        turn->key = key;
        turn->band = band;
        TAILQ_INIT(&turn->entries);
        TAILQ_INSERT_TAIL(&band->turns, turn, link);
        HASH_ADD(hh, queue->turns, key, sizeof(turn->key), turn);
        return turn;
}

static void queue_drop_turn(Queue *queue, QueueTurn *turn) {
        QueueBand *band = turn->band;

        TAILQ_REMOVE(&band->turns, turn, link);
        HASH_DEL(queue->turns, turn);
        free(turn);
        queue_drop_band(queue, band);
}

static void queue_turn_insert(QueueTurn *turn, QueueEntry *entry) {
        QueueEntry *at = TAILQ_FIRST(&turn->entries);

        /* New jobs go last and those that come back go first: both without a search. */
        if (!at || entry->key < at->key) {
                TAILQ_INSERT_HEAD(&turn->entries, entry, link);
                return;
        }
        at = TAILQ_LAST(&turn->entries, QueueEntryList);
        while (at->key > entry->key)
                at = TAILQ_PREV(at, QueueEntryList, link);
        TAILQ_INSERT_AFTER(&turn->entries, at, entry, link);
}

int queue_push(Queue *queue, QueueEntry *entry) {
        QueueTurn *turn;

        assert(!entry->turn);

        turn = queue_turn(queue, entry->session, entry->priority);
        if (!turn)
                return -ENOMEM;

        queue_turn_insert(turn, entry);
        entry->turn = turn;
        turn->n_entries++;
        queue->n_entries++;
        return 0;
}

QueueEntry *queue_pick(Queue *queue, QueueFits fits, void *userdata) {
        unsigned n_looked = 0;
        QueueEntry *entry;
        QueueBand *band;
        QueueTurn *turn;

        TAILQ_FOREACH(band, &queue->bands, link) {
                TAILQ_FOREACH(turn, &band->turns, link) {
                        entry = TAILQ_FIRST(&turn->entries);
                        if (!fits || fits(entry, userdata))
                                return entry;
                        if (++n_looked >= QUEUE_LOOK_MAX)
                                return NULL;
                }
        }
        return NULL;
}

void queue_take(Queue *queue, QueueEntry *entry) {
        QueueTurn *turn = entry->turn;

        TAILQ_REMOVE(&turn->band->turns, turn, link);
        TAILQ_INSERT_TAIL(&turn->band->turns, turn, link);
        queue_remove(queue, entry);
}

void queue_remove(Queue *queue, QueueEntry *entry) {
        QueueTurn *turn = entry->turn;

        TAILQ_REMOVE(&turn->entries, entry, link);
        entry->turn = NULL;
        turn->n_entries--;
        queue->n_entries--;
        if (turn->n_entries == 0)
                queue_drop_turn(queue, turn);
}

/* With sessions in turn, the i-th of a session comes after i of each other, and
 * one more of those whose turn comes first. */
static size_t queue_turn_before(QueueTurn *turn, size_t i) {
        bool comes_first = true;
        QueueTurn *other;
        size_t n = 0;

        TAILQ_FOREACH(other, &turn->band->turns, link) {
                if (other == turn) {
                        comes_first = false;
                        n += i;
                } else {
                        n += MIN(other->n_entries, i + comes_first);
                }
        }
        return n;
}

void queue_visit(Queue *queue, QueueVisit visit, void *userdata) {
        QueueEntry *entry;
        QueueBand *band;
        QueueTurn *turn;
        size_t n_above = 0;

        TAILQ_FOREACH(band, &queue->bands, link) {
                size_t n_band = 0;

                TAILQ_FOREACH(turn, &band->turns, link) {
                        size_t i = 0;

                        TAILQ_FOREACH(entry, &turn->entries, link)
                        visit(entry, n_above + queue_turn_before(turn, i++), userdata);
                        n_band += turn->n_entries;
                }
                n_above += n_band;
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "util/macro.h"
#include "util/pool.h"
#include "util/table.h"

#define BAND_SPARES 16
#define TURN_SPARES 64

typedef struct QueueBand {
        int priority;
        TAILQ_HEAD(, QueueTurn) turns; /* in the order of turns */
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
        STAILQ_ENTRY(QueueTurn) round_link;
        QueueEntry *next;  /* to be visited */
        QueueEntry *added; /* the entry added last, or one before it; NULL: none */
        UT_hash_handle hh; /* queue->turns */
};

static Pool band_pool = POOL(sizeof(QueueBand), BAND_SPARES);
static Pool turn_pool = POOL(sizeof(struct QueueTurn), TURN_SPARES);

void queue_init(Queue *queue) {
        TAILQ_INIT(&queue->bands);
        queue->turns = queue->last = NULL;
        queue->n_entries = 0;
        queue->n_steps = 0;
}

static QueueBand *queue_band(Queue *queue, int priority) {
        QueueBand *at, *band;

        TAILQ_FOREACH (at, &queue->bands, link) {
                queue->n_steps++;
                if (at->priority == priority)
                        return at;
                if (at->priority < priority)
                        break;
        }

        band = pool_get(&band_pool);
        if (!band)
                return NULL;
        *band = (QueueBand){.priority = priority};
        TAILQ_INIT(&band->turns);
        if (at)
                TAILQ_INSERT_BEFORE(at, band, link);
        else
                TAILQ_INSERT_TAIL(&queue->bands, band, link);
        return band;
}

int queue_priority(const Queue *queue) {
        return TAILQ_FIRST(&queue->bands)->priority;
}

static void queue_drop_band(Queue *queue, QueueBand *band) {
        if (!TAILQ_EMPTY(&band->turns))
                return;
        TAILQ_REMOVE(&queue->bands, band, link);
        pool_put(&band_pool, band);
}

static QueueTurn *queue_turn(Queue *queue, uint32_t session, int priority) {
        QueueTurn *turn = queue->last;
        QueueBand *band;
        __typeof__(turn->key) key = {.session = session, .priority = priority};

        if (turn && turn->key.session == session && turn->key.priority == priority)
                return turn;
        HASH_FIND(hh, queue->turns, &key, sizeof(key), turn);
        if (turn)
                return turn;

        band = queue_band(queue, priority);
        if (!band)
                return NULL;
        turn = pool_get(&turn_pool);
        if (!turn) {
                queue_drop_band(queue, band);
                return NULL;
        }
        *turn = (QueueTurn){0};
        turn->key = key;
        HASH_ADD(hh, queue->turns, key, sizeof(turn->key), turn);
        if (!turn->hh.tbl) {
                pool_put(&turn_pool, turn);
                queue_drop_band(queue, band);
                return NULL;
        }
        turn->band = band;
        TAILQ_INIT(&turn->entries);
        TAILQ_INSERT_TAIL(&band->turns, turn, link);
        return turn;
}

static void queue_drop_turn(Queue *queue, QueueTurn *turn) {
        QueueBand *band = turn->band;

        if (queue->last == turn)
                queue->last = NULL;
        TAILQ_REMOVE(&band->turns, turn, link);
        HASH_DEL(queue->turns, turn);
        pool_put(&turn_pool, turn);
        queue_drop_band(queue, band);
}

/* Jobs that come back in a row go one behind the other. */
static bool queue_turn_continue(Queue *queue, QueueTurn *turn, QueueEntry *entry) {
        QueueEntry *below = turn->added, *above;

        if (!below || below->key > entry->key)
                return false;
        above = TAILQ_NEXT(below, link);
        if (above && above->key < entry->key)
                return false;
        queue->n_steps++;
        TAILQ_INSERT_AFTER(&turn->entries, below, entry, link);
        return true;
}

/* New jobs go last, and jobs that come back go among the first, in any order: a search from both
 * ends at once finds either in a few steps. */
static void queue_turn_insert(Queue *queue, QueueTurn *turn, QueueEntry *entry) {
        QueueEntry *above = TAILQ_FIRST(&turn->entries);
        QueueEntry *below = TAILQ_LAST(&turn->entries, QueueEntryList);

        while (above && above->key < entry->key && below->key > entry->key) {
                queue->n_steps++;
                above = TAILQ_NEXT(above, link);
                below = TAILQ_PREV(below, QueueEntryList, link);
        }

        queue->n_steps++;
        if (!above)
                TAILQ_INSERT_TAIL(&turn->entries, entry, link);
        else if (above->key > entry->key)
                TAILQ_INSERT_BEFORE(above, entry, link);
        else
                TAILQ_INSERT_AFTER(&turn->entries, below, entry, link);
}

int queue_push(Queue *queue, QueueEntry *entry) {
        QueueTurn *turn;

        assert(!entry->turn);

        turn = queue_turn(queue, entry->session, entry->priority);
        if (!turn)
                return -ENOMEM;

        if (!queue_turn_continue(queue, turn, entry))
                queue_turn_insert(queue, turn, entry);
        turn->added = entry;
        entry->turn = queue->last = turn;
        turn->n_entries++;
        queue->n_entries++;
        return 0;
}

QueueEntry *queue_pick(Queue *queue, QueueFits fits, void *userdata) {
        unsigned n_looked = 0;
        QueueEntry *entry;
        QueueBand *band;
        QueueTurn *turn;

        TAILQ_FOREACH (band, &queue->bands, link) {
                TAILQ_FOREACH (turn, &band->turns, link) {
                        entry = TAILQ_FIRST(&turn->entries);
                        queue->n_steps++;
                        if (!fits || fits(entry, userdata))
                                return entry;
                        if (++n_looked >= QUEUE_LOOK_MAX)
                                return NULL;
                }
        }
        return NULL;
}

/* Return: NULL: none of its first entries fits. */
static QueueEntry *queue_turn_pick(Queue *queue, QueueTurn *turn, QueueFits fits, void *userdata,
                                   unsigned *n_left) {
        unsigned n_here = QUEUE_LOOK_MAX;
        QueueEntry *entry;

        TAILQ_FOREACH (entry, &turn->entries, link) {
                if (!*n_left || !n_here--)
                        return NULL;
                --*n_left;
                queue->n_steps++;
                if (fits(entry, userdata))
                        return entry;
        }
        return NULL;
}

QueueEntry *queue_pick_deep(Queue *queue, QueueFits fits, void *userdata) {
        unsigned n_left = QUEUE_DEEP_MAX;
        QueueEntry *entry;
        QueueBand *band;
        QueueTurn *turn;

        TAILQ_FOREACH (band, &queue->bands, link) {
                TAILQ_FOREACH (turn, &band->turns, link) {
                        entry = queue_turn_pick(queue, turn, fits, userdata, &n_left);
                        if (entry || !n_left)
                                return entry;
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

        if (turn->added == entry)
                turn->added = TAILQ_PREV(entry, QueueEntryList, link);
        TAILQ_REMOVE(&turn->entries, entry, link);
        entry->turn = NULL;
        turn->n_entries--;
        queue->n_entries--;
        if (turn->n_entries == 0)
                queue_drop_turn(queue, turn);
}

STAILQ_HEAD(QueueRound, QueueTurn);

typedef struct QueueTour {
        Queue *queue;
        size_t n_max;
        size_t n; /* entries visited */
        QueueVisit visit;
        void *userdata;
} QueueTour;

/* Round by round, as they will be taken; a session without more jobs drops out of the next round. */
static void queue_tour_rounds(QueueTour *tour, struct QueueRound *round) {
        QueueTurn *turn;

        while (tour->n < tour->n_max && (turn = STAILQ_FIRST(round))) {
                tour->queue->n_steps++;
                tour->visit(turn->next, tour->n++, tour->userdata);
                turn->next = TAILQ_NEXT(turn->next, link);
                STAILQ_REMOVE_HEAD(round, round_link);
                if (turn->next)
                        STAILQ_INSERT_TAIL(round, turn, round_link);
        }
}

static void queue_tour_band(QueueTour *tour, QueueBand *band) {
        size_t n_left = tour->n_max - tour->n; /* more sessions have no turn in this tour */
        struct QueueRound round;
        QueueTurn *turn;

        STAILQ_INIT(&round);
        TAILQ_FOREACH (turn, &band->turns, link) {
                if (!n_left--)
                        break;
                turn->next = TAILQ_FIRST(&turn->entries);
                STAILQ_INSERT_TAIL(&round, turn, round_link);
        }
        queue_tour_rounds(tour, &round);
}

size_t queue_visit(Queue *queue, size_t n_max, QueueVisit visit, void *userdata) {
        QueueTour tour = {.queue = queue, .n_max = n_max, .visit = visit, .userdata = userdata};
        QueueBand *band;

        TAILQ_FOREACH (band, &queue->bands, link) {
                if (tour.n >= n_max)
                        break;
                queue_tour_band(&tour, band);
        }
        return tour.n;
}

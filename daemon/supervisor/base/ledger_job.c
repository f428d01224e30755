/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger: what is written for each job. See ledger.h.
 */

#include <string.h>

#include "ledger_layout.h"
#include "proto/text.h"

/* The bytes that sent_check and end_check cover. */
#define LEDGER_SENT_AT    offsetof(LedgerJobSlot, owner)
#define LEDGER_SENT_BYTES (offsetof(LedgerJobSlot, end_check) - LEDGER_SENT_AT)
#define LEDGER_END_AT     offsetof(LedgerJobSlot, end_order)

static LedgerJobSlot *ledger_job(const Ledger *ledger, uint32_t slot) {
        return (LedgerJobSlot *)(void *)ledger->tables[LEDGER_JOB].slots + slot;
}

static uint64_t ledger_sent_check(uint32_t slot, const LedgerJobSlot *job) {
        return ledger_check(LEDGER_JOB, slot, (const char *)job + LEDGER_SENT_AT,
                            LEDGER_SENT_BYTES);
}

/* Covers only the bytes that the text has. It includes sent_check, so it fits this record alone. */
static uint64_t ledger_end_check(uint32_t slot, const LedgerJobSlot *job) {
        size_t n_text = MIN(job->n_text, LEDGER_TEXT_MAX);
        size_t n_bytes = offsetof(LedgerJobSlot, text) - LEDGER_END_AT + n_text;
        uint64_t check;

        check = ledger_check(LEDGER_JOB, slot, (const char *)job + LEDGER_END_AT,
                             (n_bytes + 7) / 8 * 8) ^
                job->sent_check;
        return check ? check : 1;
}

/* ---- room ------------------------------------------------------------------ */

static LedgerNode *ledger_node(const Ledger *ledger, uint32_t slot) {
        return &ledger->nodes[slot];
}

static LedgerUser *ledger_user_of(Ledger *ledger, uint32_t slot) {
        return ledger_users_get(ledger, ledger_job(ledger, slot)->owner.uid);
}

static void ledger_node_leave(Ledger *ledger, LedgerNode *node) {
        if (node->place == LEDGER_UNSEEN) {
                TAILQ_REMOVE(&node->user->unseen, node, link);
                TAILQ_REMOVE(&node->told->nodes, node, told_link);
                node->told = NULL;
        } else if (node->place == LEDGER_SEEN) {
                TAILQ_REMOVE(&ledger->seen, node, link);
                ledger->n_seen--;
        }
        node->place = LEDGER_HELD;
}

static void ledger_node_seen(Ledger *ledger, LedgerNode *node) {
        ledger_node_leave(ledger, node);
        ledger_users_give(ledger, node);
        TAILQ_INSERT_TAIL(&ledger->seen, node, link);
        ledger->n_seen++;
        node->place = LEDGER_SEEN;
}

/* For a user who may have one more: the quota leaves more records than acknowledged ends need. */
static LedgerNode *ledger_take_spare(Ledger *ledger) {
        LedgerNode *node = TAILQ_FIRST(&ledger->seen);
        uint32_t slot;

        if (ledger->n_seen <= LEDGER_ENDS_KEPT) {
                slot = ledger_take_slot(ledger, LEDGER_JOB);
                if (slot != LEDGER_NONE)
                        return ledger_node(ledger, slot);
        }
        if (node)
                ledger_node_leave(ledger, node);
        return node;
}

static uint32_t ledger_take_job(Ledger *ledger, uint32_t uid) {
        LedgerUser *user = ledger_users_get(ledger, uid);
        LedgerNode *node = NULL;

        if (ledger_users_may_take(ledger, user))
                node = ledger_take_spare(ledger);
        if (node) {
                ledger_users_take(user, node);
        } else {
                node = TAILQ_FIRST(&user->unseen);
                if (!node)
                        return LEDGER_NONE;
                ledger_node_leave(ledger, node);
        }
        node->place = LEDGER_HELD;
        return (uint32_t)(node - ledger->nodes);
}

/* ---- what happens to a job ------------------------------------------------- */

static void ledger_write_sent(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                              const LedgerSent *sent) {
        LedgerJobSlot *job = ledger_job(ledger, slot);

        ledger_begin(ledger, LEDGER_JOB, slot);
        job->sent_check = 0;
        ledger_barrier();
        job->end_check = 0;
        job->owner = *owner;
        job->order = ++ledger->order;
        job->sent = *sent;
        ledger_barrier();
        job->sent_check = ledger_sent_check(slot, job);
        ledger_end(ledger);
}

uint32_t ledger_job_sent(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                         const LedgerSent *sent) {
        if (slot == LEDGER_NONE)
                slot = ledger_take_job(ledger, owner->uid);
        if (slot != LEDGER_NONE)
                ledger_write_sent(ledger, slot, owner, sent);
        return slot;
}

void ledger_job_dropped(Ledger *ledger, uint32_t slot) {
        if (slot == LEDGER_NONE)
                return;
        ledger_node_leave(ledger, ledger_node(ledger, slot));
        ledger_users_give(ledger, ledger_node(ledger, slot));
        ledger_node(ledger, slot)->place = LEDGER_FREE;
        ledger_put_slot(ledger, LEDGER_JOB, slot);
}

uint32_t ledger_job_waits(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          uint32_t retries) {
        if (slot != LEDGER_NONE && retries)
                return ledger_job_sent(ledger, slot, owner, &(LedgerSent){.retries = retries});
        ledger_job_dropped(ledger, slot);
        return LEDGER_NONE;
}

static void ledger_write_end(Ledger *ledger, uint32_t slot, const LedgerEnd *end,
                             const char *text) {
        LedgerJobSlot *job = ledger_job(ledger, slot);
        size_t n_text = text ? text_cut(text, LEDGER_TEXT_MAX) : 0;

        ledger_begin(ledger, LEDGER_JOB, slot);
        job->end_order = ++ledger->order;
        job->end = *end;
        job->n_text = (uint32_t)n_text;
        if (n_text)
                memcpy(job->text, text, n_text);
        memset(job->text + n_text, 0, LEDGER_TEXT_PAD);
        ledger_barrier();
        job->end_check = ledger_end_check(slot, job);
        ledger_end(ledger);
}

uint32_t ledger_job_ended(Ledger *ledger, uint32_t slot, const LedgerOwner *owner,
                          const LedgerEnd *end, const char *text) {
        if (slot == LEDGER_NONE)
                slot = ledger_job_sent(ledger, slot, owner, &(LedgerSent){});
        if (slot != LEDGER_NONE)
                ledger_write_end(ledger, slot, end, text);
        return slot;
}

void ledger_job_forgone(Ledger *ledger, uint32_t slot) {
        if (slot != LEDGER_NONE)
                ledger_node_seen(ledger, ledger_node(ledger, slot));
}

/* ---- acknowledgements ------------------------------------------------------ */

void ledger_told_init(LedgerTold *told) {
        TAILQ_INIT(&told->nodes);
        told->n_told = 0;
}

void ledger_job_told(Ledger *ledger, uint32_t slot, LedgerTold *told) {
        LedgerNode *node;

        told->n_told++;
        if (slot == LEDGER_NONE)
                return;

        node = ledger_node(ledger, slot);
        ledger_node_leave(ledger, node);
        if (!node->user)
                ledger_users_take(ledger_user_of(ledger, slot), node);
        node->place = LEDGER_UNSEEN;
        node->told = told;
        node->number = told->n_told;
        TAILQ_INSERT_TAIL(&node->user->unseen, node, link);
        TAILQ_INSERT_TAIL(&told->nodes, node, told_link);
}

/* Counts wrap after 2^32. */
void ledger_told_seen(Ledger *ledger, LedgerTold *told, uint32_t n_seen) {
        LedgerNode *node;

        if ((int32_t)(told->n_told - n_seen) < 0)
                return; /* more than was sent */
        while ((node = TAILQ_FIRST(&told->nodes)) && (int32_t)(n_seen - node->number) >= 0)
                ledger_node_seen(ledger, node);
}

void ledger_told_close(Ledger *ledger, LedgerTold *told) {
        LedgerNode *node;

        while ((node = TAILQ_FIRST(&told->nodes)))
                ledger_node_seen(ledger, node);
}

/* ---- open ------------------------------------------------------------------ */

/* Return: 0, or LEDGER_E_DAMAGED. A record that was being written counts as it was before. */
static int ledger_job_repair(const Ledger *ledger, uint32_t slot, LedgerJobSlot *job) {
        bool is_half = ledger->head->writing == LEDGER_WRITING(LEDGER_JOB, slot);

        if (!job->sent_check)
                return 0;
        if (job->sent_check != ledger_sent_check(slot, job)) {
                if (!is_half)
                        return LEDGER_E_DAMAGED;
                job->sent_check = 0;
                return 0;
        }
        if (job->end_check &&
            (job->n_text > LEDGER_TEXT_MAX || job->end_check != ledger_end_check(slot, job))) {
                if (!is_half)
                        return LEDGER_E_DAMAGED;
                job->end_check = 0;
        }
        return 0;
}

static int ledger_found_by_id(const void *a, const void *b) {
        const LedgerFound *one = a, *other = b;

        return one->id < other->id ? -1 : one->id > other->id;
}

static int ledger_found_by_order(const void *a, const void *b) {
        const LedgerFound *one = a, *other = b;

        return one->order < other->order ? -1 : one->order > other->order;
}

/* Records of ended jobs may be reused, oldest first; those of jobs in workers are held. */
static int ledger_index(Ledger *ledger, size_t n_found) {
        size_t n_bytes = n_found * sizeof(*ledger->by_id);

        ledger->n_found = n_found;
        qsort(ledger->by_order, n_found, sizeof(*ledger->by_order), ledger_found_by_order);
        ledger->by_id = malloc(n_bytes + 1);
        if (!ledger->by_id)
                return -ENOMEM;
        memcpy(ledger->by_id, ledger->by_order, n_bytes);
        qsort(ledger->by_id, n_found, sizeof(*ledger->by_id), ledger_found_by_id);

        for (size_t i = 0; i < n_found; ++i) {
                const LedgerFound *found = &ledger->by_order[i];

                ledger->order = MAX(ledger->order, found->order);
                ledger_node(ledger, found->slot)->place = LEDGER_HELD;
                ledger_users_take(ledger_user_of(ledger, found->slot),
                                  ledger_node(ledger, found->slot));
                if (ledger_job(ledger, found->slot)->end_check)
                        ledger_node_seen(ledger, ledger_node(ledger, found->slot));
        }
        return 0;
}

int ledger_jobs_open(Ledger *ledger) {
        LedgerTable *table = &ledger->tables[LEDGER_JOB];
        size_t n_found = 0;
        int r;

        ledger->by_order = malloc(table->n_touched * sizeof(*ledger->by_order) + 1);
        if (!ledger->by_order)
                return -ENOMEM;

        for (uint32_t slot = table->n_touched; slot-- > 0;) {
                LedgerJobSlot *job = ledger_job(ledger, slot);

                r = ledger_job_repair(ledger, slot, job);
                if (r)
                        return r;
                if (!job->sent_check) {
                        table->free[table->n_free++] = slot;
                        continue;
                }
                ledger->by_order[n_found++] = (LedgerFound){
                        .id = job->owner.id,
                        .order = job->end_check ? job->end_order : job->order,
                        .slot = slot,
                };
        }
        return ledger_index(ledger, n_found);
}

/* ---- taking over ----------------------------------------------------------- */

static LedgerJobState ledger_state(const LedgerJobSlot *job) {
        if (job->end_check)
                return LEDGER_ENDED;
        return job->sent.is_sent ? LEDGER_SENT : LEDGER_WAITING;
}

static bool ledger_describe(const Ledger *ledger, const LedgerFound *found, LedgerJob *ret_job) {
        const LedgerJobSlot *job = ledger_job(ledger, found->slot);

        if (!job->sent_check || job->owner.id != found->id)
                return false; /* its slot was reused meanwhile */
        *ret_job = (LedgerJob){
                .owner = job->owner,
                .slot = found->slot,
                .state = ledger_state(job),
                .sent = job->sent,
                .order = found->order,
                .end = job->end_check ? job->end : (LedgerEnd){},
                .text = job->end_check ? job->text : "",
        };
        return true;
}

bool ledger_find_job(const Ledger *ledger, uint64_t id, LedgerJob *ret_job) {
        const LedgerFound *found = NULL;

        *ret_job = (LedgerJob){.owner.id = id, .slot = LEDGER_NONE, .text = ""};
        if (ledger->n_found)
                found = bsearch(&(LedgerFound){.id = id}, ledger->by_id, ledger->n_found,
                                sizeof(*ledger->by_id), ledger_found_by_id);
        return found && ledger_describe(ledger, found, ret_job);
}

bool ledger_next_job(const Ledger *ledger, size_t *i, LedgerJob *ret_job) {
        while (*i < ledger->n_found)
                if (ledger_describe(ledger, &ledger->by_order[(*i)++], ret_job))
                        return true;
        return false;
}

size_t ledger_first_job_of(const Ledger *ledger, uint32_t session) {
        size_t from = 0, to = ledger->n_found;

        while (from < to) {
                size_t middle = from + (to - from) / 2;

                if (ledger->by_id[middle].id >> 32 < session)
                        from = middle + 1;
                else
                        to = middle;
        }
        return from;
}

bool ledger_next_job_of(const Ledger *ledger, uint32_t session, size_t *i, LedgerJob *ret_job) {
        while (*i < ledger->n_found && ledger->by_id[*i].id >> 32 == session)
                if (ledger_describe(ledger, &ledger->by_id[(*i)++], ret_job))
                        return true;
        return false;
}

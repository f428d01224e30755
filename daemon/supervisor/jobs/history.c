/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <string.h>

#include "proto/text.h"
#include "util/table.h"

/*
 * A ring of entries, and buckets that chain them by index. 0 ends a chain, so index i is stored as
 * i + 1. After the ring is allocated, only the texts of failed jobs need memory.
 */
/* Tags of a session's jobs. */
typedef struct HistoryLoan {
        uint32_t session, first, last;
} HistoryLoan;

struct History {
        HistoryEntry entries[HISTORY_MAX];
        uint16_t next[HISTORY_MAX];
        uint16_t buckets[HISTORY_MAX];
        uint16_t bucket_of[HISTORY_MAX]; /* each entry's, which is not computed again */
        uint32_t n_added;                /* in all */
        HistoryLoan loans[HISTORY_LOANS];
        uint32_t n_loans; /* in all */
};

/* Clients choose half of an id, so which ones meet in a bucket must be a secret of this process. */
unsigned history_hash(uint64_t id) {
        return table_hash(&id, sizeof(id));
}

int history_new(History **ret_history) {
        History *history;

        history = calloc(1, sizeof(*history));
        if (!history)
                return -ENOMEM;

        *ret_history = history;
        return 0;
}

History *history_free(History *history) {
        if (!history)
                return NULL;

        for (size_t i = 0; i < HISTORY_MAX; ++i)
                free(history->entries[i].text);
        free(history);
        return NULL;
}

static void history_forget(History *history, uint32_t index) {
        HistoryEntry *entry = &history->entries[index];
        uint16_t *link = &history->buckets[history->bucket_of[index]];

        while (*link != index + 1)
                link = &history->next[*link - 1];
        *link = history->next[index];
        free(entry->text);
}

HistoryEntry *history_enter(History *history, uint64_t id, unsigned hash, const char *text) {
        uint32_t index = history->n_added % HISTORY_MAX;
        uint32_t bucket = hash % HISTORY_MAX;
        HistoryEntry *entry = &history->entries[index];

        if (history->n_added >= HISTORY_MAX)
                history_forget(history, index);
        /* Keep the counter's remainder right when it wraps. */
        history->n_added = history->n_added + 1 ? history->n_added + 1 : HISTORY_MAX;

        entry->id = id;
        entry->text = text ? strndup(text, text_cut(text, HISTORY_TEXT_MAX)) : NULL;
        history->bucket_of[index] = (uint16_t)bucket;
        history->next[index] = history->buckets[bucket];
        history->buckets[bucket] = (uint16_t)(index + 1);
        return entry;
}

void history_add(History *history, const HistoryEntry *entry) {
        HistoryEntry *copy =
                history_enter(history, entry->id, history_hash(entry->id), entry->text);
        char *text = copy->text;

        *copy = *entry;
        copy->text = text;
}

const HistoryEntry *history_find(const History *history, uint64_t id) {
        uint16_t link = history->buckets[history_hash(id) % HISTORY_MAX];

        while (link && history->entries[link - 1].id != id)
                link = history->next[link - 1];
        return link ? &history->entries[link - 1] : NULL;
}

size_t history_of_class(const History *history, uint32_t class, int state,
                        const HistoryEntry **entries) {
        size_t n_held = MIN(history->n_added, HISTORY_MAX), n = 0;

        for (size_t i = 0; i < n_held; ++i) {
                const HistoryEntry *entry = &history->entries[i];

                if (entry->times.class == class && entry->state == state)
                        entries[n++] = entry;
        }
        return n;
}

size_t history_longest(const History *history) {
        size_t longest = 0;

        for (size_t i = 0; i < HISTORY_MAX; ++i) {
                size_t n = 0;

                for (uint16_t link = history->buckets[i]; link; link = history->next[link - 1])
                        n++;
                longest = MAX(longest, n);
        }
        return longest;
}

void history_add_loan(History *history, uint32_t session, uint32_t first, uint32_t last) {
        if (first <= last)
                history->loans[history->n_loans++ % HISTORY_LOANS] =
                        (HistoryLoan){session, first, last};
}

bool history_was_leased(const History *history, uint64_t id) {
        uint32_t session = (uint32_t)(id >> 32), tag = (uint32_t)id;

        for (uint32_t i = 0; i < MIN(history->n_loans, HISTORY_LOANS); ++i) {
                const HistoryLoan *loan = &history->loans[i];

                if (loan->session == session && tag >= loan->first && tag <= loan->last)
                        return true;
        }
        return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HISTORY_H
#define GPUQ_SUPERVISOR_HISTORY_H

/*
 * History
 *
 * How a user's last jobs ended, for processes that wait for or depend on another process's job
 * (the one on disk is accounting/).
 * Bounded: a new entry replaces the oldest. The cost of a search does not depend on the number of
 * entries.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/macro.h"

#define HISTORY_MAX      4096u
#define HISTORY_LOANS    256u
#define HISTORY_TEXT_MAX 1024u /* bytes of an error's text that are remembered */

typedef struct History History;

/* Where its time went, as far as waited_us and ran_us do not say. 0: not known, or nothing. */
typedef struct HistoryTimes {
        uint32_t class;     /* of its kernels and size; 0: not known */
        uint32_t n_beside;  /* most jobs in its worker, itself included */
        uint64_t behind_ns; /* time until the jobs before it ended */
        uint64_t parked_ns; /* for its modules */
        uint64_t worker_ns; /* from its hand-over to its worker until its end */
        uint64_t gpu_ns;    /* if it was timed */
        uint64_t n_moved;   /* bytes */
        bool is_prepared;
        bool is_pinned;
} HistoryTimes;

typedef struct HistoryEntry {
        uint64_t id;
        int state;     /* a JobState */
        int code;      /* 0 when done */
        uint32_t root; /* as in Failure */
        uint32_t device;
        uint64_t waited_us;
        uint64_t ran_us;
        char *text; /* NULL when done */
        HistoryTimes times;
} HistoryEntry;

/** history_new() - empty. Return: 0, or -ENOMEM. */
int history_new(History **ret_history);
/** history_free() - NULL is fine. Return: NULL. */
History *history_free(History *history);
DEFINE_CLEANUP(History, history_free)
/** history_hash() - of an id; the same as a table by id has. */
unsigned history_hash(uint64_t id);
/**
 * history_enter() - a new entry, with at most HISTORY_TEXT_MAX bytes of @text
 * @hash: history_hash() of @id
 *
 * Return: the entry, of which the caller sets all but id and text.
 */
HistoryEntry *history_enter(History *history, uint64_t id, unsigned hash, const char *text);
/** history_add() - store a copy of @entry, with at most HISTORY_TEXT_MAX bytes of its text. */
void history_add(History *history, const HistoryEntry *entry);
/** history_find() - Return: the entry until the next add, or NULL when unknown or forgotten. */
const HistoryEntry *history_find(const History *history, uint64_t id);
/** history_add_loan() - jobs of a session with tags from @first to @last were done by a lease, unless they have entries. */
void history_add_loan(History *history, uint32_t session, uint32_t first, uint32_t last);
/** history_was_leased() - of the last HISTORY_LOANS. */
bool history_was_leased(const History *history, uint64_t id);
/**
 * history_of_class() - entries of jobs of a class that ended in one state
 * @entries: at least HISTORY_MAX; valid until the next add
 *
 * Return: how many.
 */
size_t history_of_class(const History *history, uint32_t class, int state,
                        const HistoryEntry **entries);
/** history_longest() - the most steps of a search; for tests. */
size_t history_longest(const History *history);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LEDGER_LAYOUT_H
#define GPUQ_SUPERVISOR_LEDGER_LAYOUT_H

/*
 * How a ledger lies in memory: for ledger.c and ledger_job.c alone.
 *
 * One writer, who may be killed between any two stores. It says which record it is
 * at before it touches it, and the check is the last word it writes.
 */

#include "ledger.h"

#define LEDGER_MAGIC      "gpuqledg"
#define LEDGER_HEAD_BYTES 4096u
#define LEDGER_KINDS      (_LEDGER_KIND_N + 1) /* with jobs */
#define LEDGER_JOB        _LEDGER_KIND_N
#define LEDGER_TEXT_PAD   8u /* zeros behind a text: its end, and up to the next word */
#define LEDGER_CHECK_SEED 0x9e3779b97f4a7c15ull

/* A number that grows; written twice, so that a flipped bit shows. */
typedef struct LedgerCount {
        uint64_t value;
        uint64_t inverse;
} LedgerCount;

typedef struct LedgerHead {
        char magic[8];
        uint32_t version;
        uint32_t n_bytes[LEDGER_KINDS]; /* of one record */
        uint32_t n_slots[LEDGER_KINDS];
        uint32_t spare;
        uint64_t check; /* of all above, which never changes */

        uint64_t writing; /* LEDGER_WRITING() of what is being written; 0: nothing */
        LedgerCount last_id[_LEDGER_KIND_N];
        LedgerCount n_touched[LEDGER_KINDS]; /* slots that ever had a record: those before are 0 */
} LedgerHead;

#define LEDGER_WRITING(kind, slot) (((uint64_t)(kind) + 1) << 32 | (slot))
#define LEDGER_WRITING_COUNT       (((uint64_t)LEDGER_KINDS + 1) << 32)

/* What every record but a job's begins with. */
typedef struct LedgerSlot {
        uint64_t check; /* 0: free */
        uint64_t record[];
} LedgerSlot;

/* Two checks, so that what was there before the end is still there when the end is half written. */
typedef struct LedgerJobSlot {
        uint64_t sent_check; /* of what is up to end_check; 0: free */
        LedgerOwner owner;
        uint64_t order;
        LedgerSent sent;

        uint64_t end_check; /* of all but sent_check; 0: it has not ended */
        uint64_t end_order;
        LedgerEnd end;
        uint32_t n_text;
        uint32_t spare; /* 0 */
        char text[LEDGER_TEXT_MAX + LEDGER_TEXT_PAD];
} LedgerJobSlot;

typedef enum LedgerPlace {
        LEDGER_FREE,
        LEDGER_HELD,   /* by a job that knows of it */
        LEDGER_UNSEEN, /* ledger->unseen: its session was told */
        LEDGER_SEEN,   /* ledger->seen: may be used for another */
} LedgerPlace;

/* Of one job's record; not shared. */
struct LedgerNode {
        TAILQ_ENTRY(LedgerNode) link;      /* see place */
        TAILQ_ENTRY(LedgerNode) told_link; /* told->nodes */
        LedgerTold *told;                  /* NULL: none */
        uint32_t number;                   /* of told->n_told */
        LedgerPlace place;
};

/* Slots of one kind. */
typedef struct LedgerTable {
        uint8_t *slots;
        uint32_t n_bytes; /* of one */
        uint32_t n_slots;
        uint32_t n_touched;
        uint32_t *free; /* of the touched ones */
        uint32_t n_free;
} LedgerTable;

/* What there was when the ledger was opened. */
typedef struct LedgerFound {
        uint64_t id;
        uint64_t order;
        uint32_t slot;
} LedgerFound;

struct Ledger {
        int fd;
        LedgerHead *head;
        LedgerTable tables[LEDGER_KINDS];
        LedgerNode *nodes;
        struct LedgerNodes unseen;
        struct LedgerNodes seen;
        uint32_t n_seen;
        uint64_t order;
        LedgerFound *by_id;
        LedgerFound *by_order;
        size_t n_found;
};

/** ledger_check() - of @n_bytes, a multiple of 8, at slot @slot of @kind. Return: never 0. */
uint64_t ledger_check(unsigned kind, uint32_t slot, const void *data, size_t n_bytes);
/** ledger_begin() - this record is being written from now on. */
void ledger_begin(Ledger *ledger, unsigned kind, uint32_t slot);
/** ledger_end() - no more. */
void ledger_end(Ledger *ledger);
/** ledger_set_count() - of the head. */
void ledger_set_count(Ledger *ledger, LedgerCount *count, uint64_t value);
/** ledger_take_slot() - a free one. Return: LEDGER_NONE: there is none. */
uint32_t ledger_take_slot(Ledger *ledger, unsigned kind);
/** ledger_put_slot() - it is free again, and says so. */
void ledger_put_slot(Ledger *ledger, unsigned kind, uint32_t slot);
/** ledger_jobs_open() - check all records of jobs, find those that there are. Return: as ledger_open(). */
int ledger_jobs_open(Ledger *ledger);

/* Stores before it are made before those after it, as whoever comes next will see them: it is this
 * process alone that stops, not the machine. */
static inline void ledger_barrier(void) {
        __asm__ __volatile__("" ::: "memory");
}

#endif

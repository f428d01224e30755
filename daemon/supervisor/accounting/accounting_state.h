/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ACCOUNTING_STATE_H
#define GPUQ_SUPERVISOR_ACCOUNTING_STATE_H

/*
 * What the files of the room share
 *
 * The thread makes one call at a time, in order. `archive` is the thread's; the loop touches the rest,
 * and of a call that is under way nothing.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "accounting.h"
#include "archive.h"
#include "tally.h"

#define ACCOUNTING_PROBLEM_MAX 512u

typedef struct AccountingQuery AccountingQuery;

/* One visit of the thread to the database: open it, write a batch, remove old rows. */
typedef struct AccountingWork {
        DiskCall call;
        Accounting *accounting;
        TallyBatch *batch; /* NULL: nothing to write */
        uint64_t before_ms;
        bool removes;   /* the history is off: delete the file */
        bool closes;    /* no call follows */
        bool set_aside; /* it was damaged, and a new one begun */
        bool has_more;  /* old rows are left to be removed */
        int r;
} AccountingWork;

struct Accounting {
        EndObserver observer;
        Engine *engine;
        Tally *tally;
        Disk *disk; /* NULL: there is no thread */
        DiskLine line;
        Archive *archive; /* NULL: not open */
        char *path;       /* NULL: there is no state_dir */
        char *slurm_dir;  /* where the accounts of Slurm's jobs are; NULL: nowhere */

        AccountingWork work;
        AccountingWork last; /* when the program ends */
        bool is_busy;        /* the thread has `work` */
        bool is_on;          /* history_keep_days is not 0 */
        uint64_t write_ns;   /* when to write again */
        uint64_t visit_ns;   /* when to remove old rows although nothing is to be written */
        char problem[ACCOUNTING_PROBLEM_MAX]; /* "": none */
        bool has_told_lost;                   /* in the log */

        TAILQ_HEAD(, AccountingQuery) queries; /* the oldest first */
};

/** accounting_write() - have the thread write what has ended, unless it is busy. */
void accounting_write(Accounting *accounting);
/** queries_serve() - start the queries that may start. */
void queries_serve(Accounting *accounting);

/** accounting_note_set_aside() - log it. */
void accounting_note_set_aside(const Accounting *accounting);

/* For the table in accounting.c. */
void accounting_on_history(Accounting *accounting, Session *session, uint32_t serial,
                           const Gpuq__V1__HistoryGet *get);
void accounting_on_report(Accounting *accounting, Session *session, uint32_t serial,
                          const Gpuq__V1__ReportGet *get);
void accounting_forget(Accounting *accounting, const Session *session);

#endif

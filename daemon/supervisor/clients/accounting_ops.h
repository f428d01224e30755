/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_ACCOUNTING_OPS_H
#define GPUQ_SUPERVISOR_ACCOUNTING_OPS_H

/*
 * The history of ended jobs, as clients see it
 *
 * The room of accounting provides this table, and clients call it without knowing that room. Each
 * request sends its own answer, usually later.
 */

#include <stdint.h>

#include "base.h"

typedef struct Accounting Accounting;
typedef struct Session Session;

typedef struct AccountingOps {
        void (*history)(Accounting *accounting, Session *session, uint32_t serial,
                        const Gpuq__V1__HistoryGet *get);
        void (*report)(Accounting *accounting, Session *session, uint32_t serial,
                       const Gpuq__V1__ReportGet *get);
        /* why no history is being written; "": it is */
        const char *(*problem)(const Accounting *accounting);
        /* jobs since the start that are missing in it */
        uint64_t (*n_lost)(const Accounting *accounting);
        /* the session ends: its requests get no answer */
        void (*forget)(Accounting *accounting, const Session *session);
} AccountingOps;

#endif

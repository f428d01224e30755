/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quiesce
 */
#include "worker/quiesce.h"

#include <stddef.h>

void quiesce_init(Quiesce *quiesce) {
        STAILQ_INIT(&quiesce->tasks);
}

void quiesce_add(Quiesce *quiesce, QuiesceTask *task) {
        if (task->waiting)
                return;
        task->waiting = true;
        STAILQ_INSERT_TAIL(&quiesce->tasks, task, link);
        quiesce->n_tasks++;
}

void quiesce_remove(Quiesce *quiesce, QuiesceTask *task) {
        if (!task->waiting)
                return;
        STAILQ_REMOVE(&quiesce->tasks, task, QuiesceTask, link);
        task->waiting = false;
        quiesce->n_tasks--;
        if (quiesce->n_tasks == 0)
                quiesce->since_ns = 0;
}

int quiesce_run(Quiesce *quiesce) {
        QuiesceTask *task;
        int r;

        while ((task = STAILQ_FIRST(&quiesce->tasks))) {
                STAILQ_REMOVE_HEAD(&quiesce->tasks, link);
                task->waiting = false;
                quiesce->n_tasks--;
                r = task->func(task, task->userdata);
                if (r)
                        return r;
        }
        quiesce->since_ns = 0;
        return 0;
}

bool quiesce_holds(Quiesce *quiesce, uint64_t oldest_ns, uint64_t now_ns) {
        bool is_older;

        if (quiesce->n_tasks == 0)
                return false;
        if (!quiesce->since_ns)
                quiesce->since_ns = now_ns;
        is_older = oldest_ns && oldest_ns < quiesce->since_ns;
        return !is_older || now_ns - oldest_ns < QUIESCE_LONG_NS ||
               quiesce->n_tasks >= QUIESCE_TASKS_MAX;
}

bool quiesce_is_wanted(const Quiesce *quiesce) {
        return quiesce->n_tasks > 0;
}

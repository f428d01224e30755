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
}

void quiesce_remove(Quiesce *quiesce, QuiesceTask *task) {
        if (!task->waiting)
                return;
        STAILQ_REMOVE(&quiesce->tasks, task, QuiesceTask, link);
        task->waiting = false;
}

int quiesce_run(Quiesce *quiesce) {
        QuiesceTask *task;
        int r;

        while ((task = STAILQ_FIRST(&quiesce->tasks))) {
                STAILQ_REMOVE_HEAD(&quiesce->tasks, link);
                task->waiting = false;
                r = task->func(task, task->userdata);
                if (r)
                        return r;
        }
        return 0;
}

const char *quiesce_waiting(const Quiesce *quiesce) {
        const QuiesceTask *task = STAILQ_FIRST(&quiesce->tasks);

        return task ? task->what : NULL;
}

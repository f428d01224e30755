/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drain
 */
#include "worker/drain.h"

#include <stddef.h>

void drain_init(Drain *drain) {
        STAILQ_INIT(&drain->tasks);
}

void drain_add(Drain *drain, DrainTask *task) {
        if (task->waiting)
                return;
        task->waiting = true;
        STAILQ_INSERT_TAIL(&drain->tasks, task, link);
}

void drain_remove(Drain *drain, DrainTask *task) {
        if (!task->waiting)
                return;
        STAILQ_REMOVE(&drain->tasks, task, DrainTask, link);
        task->waiting = false;
}

int drain_run(Drain *drain) {
        DrainTask *task;
        int r;

        while ((task = STAILQ_FIRST(&drain->tasks))) {
                STAILQ_REMOVE_HEAD(&drain->tasks, link);
                task->waiting = false;
                r = task->func(task, task->userdata);
                if (r)
                        return r;
        }
        return 0;
}

const char *drain_waiting(const Drain *drain) {
        const DrainTask *task = STAILQ_FIRST(&drain->tasks);

        return task ? task->what : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "submitter.h"

#include "device.h"
#include "util/list.h"

int submitter_init(Submitter *submitter, Engine *engine, User *user, uint32_t id,
                   const SubmitterOps *ops) {
        int r;

        submitter->id = id;
        submitter->engine = engine;
        submitter->ops = ops;
        TAILQ_INIT(&submitter->jobs);
        TAILQ_INIT(&submitter->gaps);
        LIST_INIT(&submitter->modules);
        LIST_INIT(&submitter->making);
        r = order_new(&submitter->order);
        if (r < 0)
                return r;
        submitter->user = user; /* a session with a user is in that user's list */
        return 0;
}

void submitter_move(Submitter *submitter, Lane *home) {
        if (submitter->home)
                submitter->home->n_homes--;
        submitter->home = home;
        submitter->is_settled = false;
        if (home)
                home->n_homes++;
}

void submitter_fini(Submitter *submitter) {
        submitter_move(submitter, NULL);
        order_free(submitter->order);
        submitter->order = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "submitter.h"

#include "util/list.h"

int submitter_init(Submitter *submitter, Engine *engine, User *user, uint32_t id,
                   const SubmitterOps *ops) {
        submitter->id = id;
        submitter->engine = engine;
        submitter->user = user;
        submitter->ops = ops;
        TAILQ_INIT(&submitter->jobs);
        LIST_INIT(&submitter->modules);
        LIST_INIT(&submitter->making);
        return order_new(&submitter->order);
}

void submitter_fini(Submitter *submitter) {
        order_free(submitter->order);
        submitter->order = NULL;
}

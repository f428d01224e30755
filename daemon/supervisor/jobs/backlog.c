/* SPDX-License-Identifier: Apache-2.0 */
#include "backlog.h"

#include "ending.h"
#include "follow.h"
#include "policy.h"
#include "provision.h"
#include "submission.h"
#include "user.h"
#include "util/list.h"

#define BACKLOG_SEGMENTS_STEP 16u /* segments of an order that cost one step to free */

/* One step of each kind, so that no kind waits for all of another. Return: false: none is left. */
static bool backlog_step(User *person) {
        bool has_ended = ending_step(person);
        bool has_followed = follow_step(person);
        bool has_closed = submission_step(person);

        return has_ended || has_followed || has_closed;
}

static void backlog_run_person(Engine *engine, size_t n_max) {
        User *person = TAILQ_FIRST(&engine->backlog);
        uint64_t from = engine->n_steps;
        bool goes_on = true;

        TAILQ_REMOVE(&engine->backlog, person, backlog.link);
        person->backlog.is_listed = false;
        while (goes_on && engine->n_steps - from < n_max)
                goes_on = backlog_step(person);
        if (goes_on)
                (void)user_has_backlog(person, engine);
}

static void backlog_run_slot(Engine *engine, size_t n_max) {
        Slot *slot = TAILQ_FIRST(&engine->giving_up);
        uint64_t from = engine->n_steps;

        while (engine->n_steps - from < n_max)
                if (!provision_step(slot))
                        return;
        provision_give_way(slot);
}

static void backlog_free_orders(Engine *engine) {
        size_t n_freed = order_sweep_freed(BACKLOG_PART * BACKLOG_SEGMENTS_STEP);

        engine->n_steps += n_freed / BACKLOG_SEGMENTS_STEP + 1;
}

size_t backlog_run(Engine *engine, size_t n_max) {
        uint64_t from = engine->n_steps, n = 0;

        while (n < n_max && !backlog_is_empty(engine)) {
                if (!TAILQ_EMPTY(&engine->backlog))
                        backlog_run_person(engine, MIN(n_max - n, (size_t)BACKLOG_PART));
                if (!TAILQ_EMPTY(&engine->giving_up))
                        backlog_run_slot(engine, BACKLOG_PART);
                if (order_has_freed())
                        backlog_free_orders(engine);
                n = engine->n_steps - from;
        }
        return n;
}

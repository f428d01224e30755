/* SPDX-License-Identifier: Apache-2.0 */
#include "serving.h"

#include <errno.h>
#include <stdlib.h>

#include "util/list.h"
#include "util/macro.h"

void serving_init(Serving *serving) {
        *serving = (Serving){.part = SERVING_TURN_STEPS, .left = SERVING_TURN_STEPS};
        TAILQ_INIT(&serving->waiting);
}

void serving_fini(Serving *serving) {
        ServingPerson *person, *next;

        HASH_ITER (hh, serving->persons, person, next) {
                HASH_DEL(serving->persons, person);
                free(person);
        }
}

static ServingPerson *serving_person(Serving *serving, uid_t uid) {
        ServingPerson *person;

        HASH_FIND(hh, serving->persons, &uid, sizeof(uid), person);
        if (person)
                return person;

        person = calloc(1, sizeof(*person));
        if (!person)
                return NULL;
        person->uid = uid;
        TAILQ_INIT(&person->waiting);
        HASH_ADD(hh, serving->persons, uid, sizeof(person->uid), person);
        if (!person->hh.tbl) {
                free(person);
                return NULL;
        }
        return person;
}

int serving_join(Serving *serving, ServingMember *member, uid_t uid) {
        ServingPerson *person = serving_person(serving, uid);

        if (!person)
                return -ENOMEM;
        member->person = person;
        return 0;
}

static void serving_stop_waiting(Serving *serving, ServingMember *member) {
        ServingPerson *person = member->person;

        member->is_waiting = false;
        TAILQ_REMOVE(&person->waiting, member, link);
        if (!TAILQ_EMPTY(&person->waiting))
                return;
        TAILQ_REMOVE(&serving->waiting, person, link);
        serving->n_waiting--;
}

void serving_leave(Serving *serving, ServingMember *member) {
        ServingPerson *person = member->person;

        serving_leave_off(serving, member);
        if (!person)
                return;
        if (member->is_waiting)
                serving_stop_waiting(serving, member);
        member->person = NULL;
}

void serving_begin_turn(Serving *serving, bool gives_parts) {
        serving->left = SERVING_TURN_STEPS;
        if (!gives_parts)
                return;
        serving->n_parts++;
        if (serving->n_active > 1)
                serving->n_shared = SERVING_SHARED_PARTS;
        else if (serving->n_shared > 0)
                serving->n_shared--;
        serving->n_active = 0;
        serving->part = (int64_t)MAX(SERVING_TURN_STEPS / MAX(serving->n_waiting, (size_t)1),
                                     (size_t)SERVING_LEAST_STEPS);
}

/* Parts that were given while nobody asked pay debts, too, but nothing is saved for later. */
static void serving_top_up(const Serving *serving, ServingPerson *person) {
        uint64_t n_parts = serving->n_parts - person->n_parts;
        int64_t part = serving->part;

        if (!n_parts)
                return;
        person->n_parts = serving->n_parts;
        if (person->left >= 0 || n_parts > (uint64_t)(-person->left / part + 1))
                person->left = part;
        else
                person->left = MIN(person->left + (int64_t)n_parts * part, part);
}

static void serving_note_active(Serving *serving, ServingPerson *person) {
        if (person->active_part == serving->n_parts)
                return;
        person->active_part = serving->n_parts;
        serving->n_active++;
}

void serving_visit(Serving *serving, ServingMember *member) {
        ServingPerson *person = member->person;

        serving_leave_off(serving, member);
        if (!person)
                return;
        serving_top_up(serving, person);
        if (member->is_waiting || person->left <= 0 || serving->left <= 0)
                return;
        member->granted = member->visit = MIN(person->left, (int64_t)SERVING_VISIT_STEPS);
        person->left -= member->granted;
}

void serving_leave_off(Serving *serving, ServingMember *member) {
        int64_t n_taken = member->granted - member->visit;
        ServingPerson *person = member->person;

        serving->n_steps += (uint64_t)n_taken;
        serving->left -= n_taken;
        if (person) {
                serving_top_up(serving, person); /* what was given before does not pay for this */
                person->left += member->visit;
        }
        if (person && n_taken > 0)
                serving_note_active(serving, person);
        member->granted = member->visit = 0;
}

void serving_wait(Serving *serving, ServingMember *member) {
        ServingPerson *person = member->person;

        serving_leave_off(serving, member);
        if (!person || member->is_waiting)
                return;
        if (TAILQ_EMPTY(&person->waiting)) {
                TAILQ_INSERT_TAIL(&serving->waiting, person, link);
                serving->n_waiting++;
        }
        member->is_waiting = true;
        TAILQ_INSERT_TAIL(&person->waiting, member, link);
}

bool serving_has_ready(const Serving *serving) {
        ServingPerson *person;

        TAILQ_FOREACH (person, &serving->waiting, link) {
                serving_top_up(serving, person);
                if (person->left > 0)
                        return true;
        }
        return false;
}

/* A person without steps left keeps its place for the next turn. */
ServingMember *serving_next(Serving *serving) {
        ServingMember *member;
        ServingPerson *person;

        if (serving->left <= 0)
                return NULL;
        TAILQ_FOREACH (person, &serving->waiting, link) {
                serving_top_up(serving, person);
                if (person->left > 0)
                        break;
        }
        if (!person)
                return NULL;

        TAILQ_REMOVE(&serving->waiting, person, link);
        TAILQ_INSERT_TAIL(&serving->waiting, person, link);
        member = TAILQ_FIRST(&person->waiting);
        serving_stop_waiting(serving, member);
        serving_visit(serving, member);
        return member;
}

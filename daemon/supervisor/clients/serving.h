/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SERVING_H
#define GPUQ_SUPERVISOR_SERVING_H

/*
 * Serving
 *
 * Divides the loop's time among the people who have requests. Work is counted in steps, about a
 * microsecond each. A turn has SERVING_TURN_STEPS. Each turn gives everybody who waits an equal part of
 * them. What a request takes beyond that is paid from later parts, and shortens this turn: when all of
 * its steps are taken, the others wait for the next one. A session that may not go on waits for the
 * next turn, in which it goes before new requests. Of one person's sessions, the one that has waited
 * longest goes first.
 *
 * The caller may also give parts in some turns only. Then a person who has used up a part waits for
 * the next one, while the other people go on. The supervisor does so while other programs want the
 * cores and several people have requests: a loop that always has work loses its core to those
 * programs, and then everybody waits. Pure: it knows sessions as members and never reads the clock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "util/table.h"

#define SERVING_TURN_STEPS  512u
#define SERVING_LEAST_STEPS 64u  /* of one person in a turn, however many people wait */
#define SERVING_VISIT_STEPS 256u /* of one session before the next one of its person is served */
/* So many times parts are given before the loop counts as one person's again. */
#define SERVING_SHARED_PARTS 32u

typedef struct Serving Serving;
typedef struct ServingMember ServingMember;
typedef struct ServingPerson ServingPerson;

/* Embedded in a session. */
struct ServingMember {
        ServingPerson *person;           /* NULL: in no table, and never served */
        TAILQ_ENTRY(ServingMember) link; /* person->waiting */
        bool is_waiting;                 /* in that list */
        int64_t visit;                   /* steps left in this visit */
        int64_t granted;                 /* steps that its person gave for it */
        uint64_t joined_ns;              /* the caller's, for sessions that do not say hello */
};

TAILQ_HEAD(ServingMembers, ServingMember);

/* Kept until the end, like users: a debt is not forgotten with the last session. */
struct ServingPerson {
        uid_t uid;
        uint64_t n_parts;              /* serving->n_parts when `left` was last topped up */
        uint64_t active_part;          /* serving->n_parts when it last took steps */
        int64_t left;                  /* steps of its part; below 0: to be paid from later parts */
        struct ServingMembers waiting; /* for the next turn */
        TAILQ_ENTRY(ServingPerson) link; /* serving->waiting, if any of its members waits */
        UT_hash_handle hh;               /* serving->persons */
};

struct Serving {
        ServingPerson *persons;
        TAILQ_HEAD(, ServingPerson) waiting; /* they take turns */
        size_t n_waiting;
        uint64_t n_parts;  /* so many times everybody was given a part */
        unsigned n_active; /* persons who took steps since then */
        unsigned n_shared; /* from SERVING_SHARED_PARTS down to 0 */
        int64_t part;      /* of each person */
        int64_t left;      /* steps of this turn; below 0: a request took more */
        uint64_t n_steps;  /* ever taken, for tests */
};

/** serving_init() - nobody is there. */
void serving_init(Serving *serving);
/** serving_fini() - all sessions must have left. */
void serving_fini(Serving *serving);
/** serving_join() - a session of person @uid, with all of a visit left. Return: 0, or -ENOMEM. */
int serving_join(Serving *serving, ServingMember *member, uid_t uid);
/** serving_leave() - the session ends; repeating it is harmless. */
void serving_leave(Serving *serving, ServingMember *member);

/**
 * serving_begin_turn() - a new turn
 * @gives_parts: everybody gets a part of it; otherwise they have what is left of the last one
 */
void serving_begin_turn(Serving *serving, bool gives_parts);
/** serving_is_shared() - have several people had requests lately? */
static inline bool serving_is_shared(const Serving *serving) {
        return serving->n_shared > 0;
}
/** serving_visit() - serving this session begins: it gets a part of what its person has left. */
void serving_visit(Serving *serving, ServingMember *member);
/** serving_leave_off() - serving it stops for now: what it did not need goes back, what it owes is owed. */
void serving_leave_off(Serving *serving, ServingMember *member);
/** serving_goes_on() - whether the session may be served on. */
static inline bool serving_goes_on(const ServingMember *member) {
        return member->visit > 0;
}
/** serving_pay() - the session's work took so many steps. */
static inline void serving_pay(ServingMember *member, size_t n_steps) {
        member->visit -= (int64_t)n_steps;
}
/** serving_wait() - the session has work for the next turn, whether or not it may go on. */
void serving_wait(Serving *serving, ServingMember *member);
/**
 * serving_next() - take the session that goes next out of its list
 *
 * Return: NULL: no waiting person has steps left in this turn.
 */
ServingMember *serving_next(Serving *serving);
/** serving_has_waiting() - somebody waits: the loop must not sleep beyond the next parts. */
static inline bool serving_has_waiting(const Serving *serving) {
        return serving->n_waiting > 0;
}
/** serving_has_ready() - somebody who waits has steps left: the loop must not sleep at all. */
bool serving_has_ready(const Serving *serving);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LOADS_H
#define GPUQ_SUPERVISOR_LOADS_H

/*
 * Loads
 *
 * How many modules load at once in all workers, since each load may be a compile. A person always
 * has LOADS_FIRST of them, whatever the others do, so nobody can keep others from loading, not even
 * with a worker that never answers. Up to LOADS_PERSON_MAX of a person load at once while the
 * machine has cores for it. The others wait, and the persons take turns. Subordinate uids and
 * several devices multiply nothing: what counts is the person. Pure.
 */

#include <stdbool.h>
#include <sys/queue.h>

#define LOADS_FIRST      1u
#define LOADS_PERSON_MAX 2u

typedef struct Load Load;
typedef struct LoadPerson LoadPerson;

TAILQ_HEAD(LoadList, Load);
TAILQ_HEAD(LoadPersonList, LoadPerson);

typedef enum LoadState {
        LOAD_NONE,
        LOAD_WAITING,
        LOAD_RUNNING,
} LoadState;

/* Zeroed: LOAD_NONE. */
struct Load {
        LoadPerson *person;
        LoadState state;
        TAILQ_ENTRY(Load) link; /* person->waiting */
};

struct LoadPerson {
        unsigned n_running;
        struct LoadList waiting;
        TAILQ_ENTRY(LoadPerson) link; /* loads->waiting, while it has any */
};

typedef struct Loads {
        unsigned n_running;
        unsigned n_max;                /* while so many run, a person starts no second one */
        struct LoadPersonList waiting; /* the next one in turn is first */
        bool has_free; /* for the owner: a load has ended, one that waits may start */
} Loads;

/** loads_init() - for a machine with so many cores. */
void loads_init(Loads *loads, unsigned n_cores);
/** load_person_init() - in zeroed memory. */
void load_person_init(LoadPerson *person);
/** loads_begin() - Return: whether the load starts now; else loads_next() returns it in its turn. */
bool loads_begin(Loads *loads, LoadPerson *person, Load *load);
/** loads_put_back() - it could not start: it waits again, as its person's first. */
void loads_put_back(Loads *loads, Load *load);
/** loads_end() - it has ended or is given up. Repeating it is harmless. */
void loads_end(Loads *loads, Load *load);
/** loads_next() - Return: the next load that starts now, or NULL. */
Load *loads_next(Loads *loads);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "loads.h"

#include <stddef.h>

void loads_init(Loads *loads, unsigned n_cores) {
        *loads = (Loads){.n_max = n_cores / 2 + 1};
        TAILQ_INIT(&loads->waiting);
}

void load_person_init(LoadPerson *person) {
        TAILQ_INIT(&person->waiting);
}

static bool loads_may_run(const Loads *loads, const LoadPerson *person) {
        if (person->n_running < LOADS_FIRST)
                return true;
        return person->n_running < LOADS_PERSON_MAX && loads->n_running < loads->n_max;
}

static void loads_start(Loads *loads, Load *load) {
        load->state = LOAD_RUNNING;
        load->person->n_running++;
        loads->n_running++;
}

static void loads_stop(Loads *loads, Load *load) {
        load->state = LOAD_NONE;
        load->person->n_running--;
        loads->n_running--;
}

static void loads_stop_waiting(Loads *loads, Load *load) {
        LoadPerson *person = load->person;

        load->state = LOAD_NONE;
        TAILQ_REMOVE(&person->waiting, load, link);
        if (TAILQ_EMPTY(&person->waiting))
                TAILQ_REMOVE(&loads->waiting, person, link);
}

bool loads_begin(Loads *loads, LoadPerson *person, Load *load) {
        bool is_first = TAILQ_EMPTY(&person->waiting);

        load->person = person;
        if (is_first && loads_may_run(loads, person)) {
                loads_start(loads, load);
                return true;
        }
        load->state = LOAD_WAITING;
        if (is_first)
                TAILQ_INSERT_TAIL(&loads->waiting, person, link);
        TAILQ_INSERT_TAIL(&person->waiting, load, link);
        return false;
}

void loads_put_back(Loads *loads, Load *load) {
        LoadPerson *person = load->person;

        loads_stop(loads, load);
        load->state = LOAD_WAITING;
        if (TAILQ_EMPTY(&person->waiting))
                TAILQ_INSERT_HEAD(&loads->waiting, person, link);
        TAILQ_INSERT_HEAD(&person->waiting, load, link);
}

void loads_end(Loads *loads, Load *load) {
        if (load->state == LOAD_WAITING)
                loads_stop_waiting(loads, load);
        else if (load->state == LOAD_RUNNING)
                loads_stop(loads, load);
}

static LoadPerson *loads_next_person(const Loads *loads) {
        LoadPerson *person;

        TAILQ_FOREACH (person, &loads->waiting, link)
                if (loads_may_run(loads, person))
                        return person;
        return NULL;
}

Load *loads_next(Loads *loads) {
        LoadPerson *person = loads_next_person(loads);
        Load *load;

        if (!person)
                return NULL;
        load = TAILQ_FIRST(&person->waiting);
        loads_stop_waiting(loads, load);
        loads_start(loads, load);
        if (!TAILQ_EMPTY(&person->waiting)) { /* the other persons come first now */
                TAILQ_REMOVE(&loads->waiting, person, link);
                TAILQ_INSERT_TAIL(&loads->waiting, person, link);
        }
        return load;
}

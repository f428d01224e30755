/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place
 */
#include "worker/in_place.h"

#include "util/macro.h"

/* A trial that is so many times slower says enough. */
#define IN_PLACE_HOPELESS 4

/*
 * So much slower it is as good: half as long again. Beside other batches a trial waits for what they move, while those
 * wait for nothing of its; with 16 clients and 32 additions of each in flight an H200 did 378,000 jobs/s where nearly
 * all were in place, 285,000 to 339,000 where few were.
 */
#define IN_PLACE_GRACE(ns) ((ns) / 2)

static unsigned in_place_class(uint64_t n_bytes) {
        unsigned class = 63u - (unsigned)__builtin_clzll(n_bytes | 1);

        return MIN(class, IN_PLACE_CLASSES - 1);
}

static uint64_t in_place_per_kib(uint64_t took_ns, uint64_t n_bytes) {
        return (took_ns << 10) / MAX(n_bytes, 1);
}

static void class_try(InPlaceClass *class) {
        class->state = IN_PLACE_TRYING;
        class->n_told[false] = class->n_told[true] = 0;
        class->best_ns[false] = class->best_ns[true] = UINT64_MAX;
}

static void class_decide(InPlaceClass *class, uint64_t now_ns) {
        uint64_t staged_ns = class->best_ns[false];
        bool won = class->best_ns[true] <= staged_ns + IN_PLACE_GRACE(staged_ns);

        if (class->again_gap_ns > 0 && won == class->won)
                class->again_gap_ns = MIN(2 * class->again_gap_ns, IN_PLACE_AGAIN_MAX_NS);
        else
                class->again_gap_ns = IN_PLACE_AGAIN_NS;
        class->again_at_ns = now_ns + class->again_gap_ns;
        class->won = won;
        class->state = won ? IN_PLACE_WON : IN_PLACE_LOST;
}

/* Whether @n_jobs at once may be tried, going by what one alone took. */
static bool in_place_may_try(const InPlace *in_place, size_t n_jobs) {
        return n_jobs == 1 ||
               (in_place->alone_ns > 0 && in_place->alone_ns <= IN_PLACE_TRIAL_NS / n_jobs);
}

InPlaceChoice in_place_choose(InPlace *in_place, uint64_t n_bytes, size_t n_jobs, uint64_t now_ns) {
        InPlaceClass *class = &in_place->classes[in_place_class(n_bytes)];

        if (class->state == IN_PLACE_UNTRIED ||
            (class->state != IN_PLACE_TRYING && now_ns >= class->again_at_ns))
                class_try(class);
        if (class->state != IN_PLACE_TRYING)
                return (InPlaceChoice){.in_place = class->state == IN_PLACE_WON};

        /* The staged way first: it is the safe one, and what a trial is measured by. */
        if (in_place->in_trial || class->n_told[true] >= class->n_told[false])
                return (InPlaceChoice){0};
        if (!in_place_may_try(in_place, n_jobs) && in_place->alone_ns > 0) {
                class->best_ns[true] = UINT64_MAX;
                class_decide(class, now_ns);
                return (InPlaceChoice){0};
        }

        in_place->in_trial = true;
        return (InPlaceChoice){
                .in_place = true,
                .trial = true,
                .only_one = !in_place_may_try(in_place, n_jobs),
        };
}

void in_place_told(InPlace *in_place, const InPlaceChoice *choice, uint64_t n_bytes, size_t n_jobs,
                   uint64_t took_ns, uint64_t now_ns) {
        InPlaceClass *class = &in_place->classes[in_place_class(n_bytes)];
        bool way = choice->in_place;

        in_place_forget(in_place, choice);
        if (choice->trial && n_jobs == 1)
                in_place->alone_ns =
                        in_place->alone_ns ? MIN(in_place->alone_ns, took_ns) : MAX(took_ns, 1);
        if (class->state != IN_PLACE_TRYING)
                return;
        /* As many of each, since the best of many is better than the best of few. */
        if (!way && class->n_told[false] > class->n_told[true])
                return;

        class->n_told[way] = MIN(class->n_told[way] + 1, IN_PLACE_TRIALS);
        class->best_ns[way] = MIN(class->best_ns[way], in_place_per_kib(took_ns, n_bytes));
        if (class->n_told[true] == 0 || class->n_told[false] == 0)
                return;
        if (class->best_ns[true] / IN_PLACE_HOPELESS > class->best_ns[false] ||
            (class->n_told[true] == IN_PLACE_TRIALS && class->n_told[false] == IN_PLACE_TRIALS))
                class_decide(class, now_ns);
}

void in_place_forget(InPlace *in_place, const InPlaceChoice *choice) {
        if (choice->trial)
                in_place->in_trial = false;
}

InPlaceState in_place_state(const InPlace *in_place, uint64_t n_bytes) {
        return in_place->classes[in_place_class(n_bytes)].state;
}

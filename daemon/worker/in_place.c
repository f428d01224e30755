/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place
 */
#include "worker/in_place.h"

#include "util/macro.h"

/* Two trials slower by the first factor decide, and so does one slower by the second. */
#define IN_PLACE_HOPELESS         4
#define IN_PLACE_HOPELESS_AT_ONCE 32

/* From a quiet window without a decision to the next one; doubles each time. */
#define IN_PLACE_HOLD_GAP_NS UINT64_C(100000000)

/*
 * A way slower by this factor counts as equal: half as long again, for the launches that it saves. With an
 * H200 full of 16 clients' additions, 378,000 jobs/s ran with nearly all in place, 285,000 to 339,000
 * with few.
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
        class->kept = class->state;
        class->state = IN_PLACE_TRYING;
        class->until_ns = class->hold_gap_ns = 0;
        class->n_told[false] = class->n_told[true] = 0;
        class->best_ns[false] = class->best_ns[true] = UINT64_MAX;
}

static void class_decide(InPlaceClass *class, uint64_t now_ns) {
        uint64_t staged_ns = class->best_ns[false];
        bool won = class->best_ns[true] <= staged_ns + IN_PLACE_GRACE(staged_ns);

        class->state = won ? IN_PLACE_WON : IN_PLACE_LOST;
        if (class->state == class->kept)
                class->again_gap_ns = MIN(2 * class->again_gap_ns, IN_PLACE_AGAIN_MAX_NS);
        else
                class->again_gap_ns = IN_PLACE_AGAIN_NS;
        class->again_at_ns = now_ns + class->again_gap_ns;
}

/* Whether other work may wait for this class now; less and less often if that led to no decision. */
static bool class_may_hold(InPlaceClass *class, uint64_t now_ns) {
        if (now_ns >= class->until_ns + class->hold_gap_ns) {
                class->until_ns = now_ns + QUIET_NS;
                class->hold_gap_ns = class->hold_gap_ns
                                             ? MIN(2 * class->hold_gap_ns, IN_PLACE_AGAIN_MAX_NS)
                                             : IN_PLACE_HOLD_GAP_NS;
        }
        return now_ns < class->until_ns;
}

static InPlaceState class_decided(const InPlaceClass *class) {
        return class->state == IN_PLACE_TRYING ? class->kept : class->state;
}

/* As decided for this class; before that, as for the next smaller one that was, or else the next larger one. */
static InPlaceChoice in_place_kept(const InPlace *in_place, const InPlaceClass *class) {
        size_t own = (size_t)(class - in_place->classes);
        InPlaceState state = class_decided(class);

        for (size_t i = own; i-- > 0 && state == IN_PLACE_UNTRIED;)
                state = class_decided(&in_place->classes[i]);
        for (size_t i = own + 1; i < IN_PLACE_CLASSES && state == IN_PLACE_UNTRIED; ++i)
                state = class_decided(&in_place->classes[i]);
        return (InPlaceChoice){.in_place = state == IN_PLACE_WON};
}

/* Whether @n_jobs at once may be tried, based on the time of a lone job. */
static bool in_place_may_try(const InPlace *in_place, size_t n_jobs) {
        return n_jobs == 1 ||
               (in_place->alone_ns > 0 && in_place->alone_ns <= IN_PLACE_TRIAL_NS / n_jobs);
}

InPlaceChoice in_place_choose(InPlace *in_place, uint64_t n_bytes, size_t n_jobs,
                              InPlaceBeside beside, uint64_t now_ns) {
        InPlaceClass *class = &in_place->classes[in_place_class(n_bytes)];
        bool way, may_hold;

        if (class->state != IN_PLACE_TRYING && now_ns >= class->again_at_ns)
                class_try(class);
        if (class->state != IN_PLACE_TRYING || in_place->in_trial)
                return in_place_kept(in_place, class);
        if (beside == IN_PLACE_BESIDE_OLD)
                return in_place_kept(in_place, class);
        may_hold = class_may_hold(class, now_ns);
        if (beside == IN_PLACE_BESIDE_NEW)
                return may_hold ? (InPlaceChoice){.wait = true, .quiet_ns = class->until_ns}
                                : in_place_kept(in_place, class);

        /* The staged way first: it is safe, and trials are compared with it. */
        way = class->n_told[true] < class->n_told[false];
        if (way && in_place->alone_ns > 0 && !in_place_may_try(in_place, n_jobs)) {
                class->best_ns[true] = UINT64_MAX;
                class_decide(class, now_ns);
                return in_place_kept(in_place, class);
        }

        in_place->in_trial = true;
        return (InPlaceChoice){
                .in_place = way,
                .trial = true,
                .only_one = way && !in_place_may_try(in_place, n_jobs),
                .quiet_ns = may_hold ? class->until_ns : 0,
        };
}

void in_place_told(InPlace *in_place, const InPlaceChoice *choice, uint64_t n_bytes, size_t n_jobs,
                   uint64_t took_ns, uint64_t now_ns) {
        InPlaceClass *class = &in_place->classes[in_place_class(n_bytes)];
        bool way = choice->in_place;

        if (!choice->trial)
                return;
        in_place->in_trial = false;
        if (way && n_jobs == 1)
                in_place->alone_ns =
                        in_place->alone_ns ? MIN(in_place->alone_ns, took_ns) : MAX(took_ns, 1);
        if (class->state != IN_PLACE_TRYING)
                return;

        ++class->n_told[way];
        class->best_ns[way] = MIN(class->best_ns[way], in_place_per_kib(took_ns, n_bytes));
        if (class->n_told[true] == 0)
                return;
        if ((class->n_told[true] > 1 &&
             class->best_ns[true] / IN_PLACE_HOPELESS > class->best_ns[false]) ||
            class->best_ns[true] / IN_PLACE_HOPELESS_AT_ONCE > class->best_ns[false] ||
            (class->n_told[true] >= IN_PLACE_TRIALS && class->n_told[false] >= IN_PLACE_TRIALS))
                class_decide(class, now_ns);
}

void in_place_forget(InPlace *in_place, const InPlaceChoice *choice) {
        if (choice->trial)
                in_place->in_trial = false;
}

InPlaceState in_place_state(const InPlace *in_place, uint64_t n_bytes) {
        return in_place->classes[in_place_class(n_bytes)].state;
}

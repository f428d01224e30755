/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contention
 */
#include "util/contention.h"

#include "util/macro.h"

void contention_init(Contention *contention) {
        *contention = (Contention){.count_ns = CONTENTION_COUNT_NS};
}

bool contention_is_busy(const Contention *contention) {
        return contention->is_busy;
}

static void contention_set(Contention *contention, bool is_busy, uint64_t now_ns) {
        contention->is_busy = is_busy;
        contention->since_ns = now_ns;
        contention->next_ns = is_busy ? now_ns + contention->count_ns : now_ns;
        contention->sampled_ns = 0;
}

/* ---- idle: does the thread wait for a core? ------------------------------------------------- */

void contention_lost(Contention *contention, uint64_t now_ns) {
        uint64_t idle_ns = now_ns - contention->since_ns;

        if (contention->is_busy)
                return;
        if (idle_ns >= CONTENTION_TRIAL_NS)
                contention->count_ns = CONTENTION_COUNT_NS;
        else if (contention->was_counted)
                contention->count_ns = MIN(2 * contention->count_ns, CONTENTION_COUNT_MAX_NS);
        contention_set(contention, true, now_ns);
}

bool contention_wants_sample(const Contention *contention, uint64_t now_ns) {
        return !contention->is_busy && now_ns >= contention->next_ns;
}

void contention_sample(Contention *contention, uint64_t n_waited_ns, uint64_t now_ns) {
        uint64_t waited_ns = n_waited_ns - contention->n_waited_ns;
        uint64_t past_ns = now_ns - contention->sampled_ns;
        bool is_first = contention->sampled_ns == 0;

        contention->n_waited_ns = n_waited_ns;
        contention->sampled_ns = now_ns;
        contention->next_ns = now_ns + CONTENTION_SAMPLE_NS;
        /* After a long sleep, many short waits add up. */
        if (!is_first && waited_ns >= MAX(CONTENTION_WAIT_NS, past_ns / CONTENTION_PART))
                contention_lost(contention, now_ns);
}

/* ---- busy: is a core free? ------------------------------------------------------------------ */

bool contention_wants_count(const Contention *contention, uint64_t now_ns) {
        return contention->is_busy && now_ns >= contention->next_ns;
}

void contention_count(Contention *contention, unsigned n_runnable, unsigned n_cores,
                      uint64_t now_ns) {
        bool is_trial = now_ns - contention->since_ns >= CONTENTION_TRIAL_NS;

        contention->next_ns = now_ns + contention->count_ns;
        if (n_runnable > n_cores && !is_trial)
                return;
        contention->was_counted = n_runnable <= n_cores;
        contention_set(contention, false, now_ns);
}

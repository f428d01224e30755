/* SPDX-License-Identifier: Apache-2.0 */
#include "quanta.h"

#include <assert.h>

#include "util/macro.h"

static QuantaTurn quanta_grant(Quanta *quanta, uint64_t now_ns) {
        quanta->granted_ns = now_ns;
        quanta->drained_ns = 0;
        quanta->n_quanta++;
        return (QuantaTurn){.domain = quanta->holder};
}

static QuantaTurn quanta_hand_over(Quanta *quanta, QuantaDomain *domain, uint64_t now_ns) {
        QuantaDomain *before = quanta->holder;

        if (before == domain)
                return quanta_grant(quanta, now_ns);
        if (before)
                before->held_ns = now_ns - quanta->handed_ns;
        quanta->holder = domain;
        quanta->handed_ns = now_ns;
        quanta->is_handed = before != NULL;
        return quanta_grant(quanta, now_ns);
}

static uint64_t quanta_end_ns(const Quanta *quanta, const QuantaDomain *pick) {
        uint64_t part_ns = quanta->quantum_ns / QUANTA_PARTS;
        bool is_light = pick != quanta->holder && pick->held_ns < part_ns;

        return quanta->granted_ns + (is_light ? part_ns : quanta->quantum_ns);
}

/* Two jobs of any length, so that the device does not wait for the supervisor between them. */
static bool quanta_is_full(const Quanta *quanta) {
        const QuantaDomain *holder = quanta->holder;

        return holder->n_in_flight >= 2 &&
               holder->in_flight_ns >= quanta->quantum_ns / QUANTA_PARTS;
}

static bool quanta_is_shared(const Quanta *quanta, uint64_t now_ns) {
        return quanta->is_handed && now_ns < quanta->handed_ns + QUANTA_SHARED * quanta->quantum_ns;
}

/* By the end of the quantum, or by their expected end, all jobs in flight should have ended. The
 * expected time shrinks with each job that ends, so a stuck job is found even when the first
 * question comes long after it began. */
static uint64_t quanta_due_ns(const QuantaDomain *holder, uint64_t end_ns) {
        return MAX(end_ns, holder->progress_ns + holder->in_flight_ns);
}

static uint64_t quanta_overrun_ns(const Quanta *quanta, uint64_t end_ns) {
        uint64_t due_ns = quanta_due_ns(quanta->holder, end_ns);

        return MIN(due_ns + quanta->quantum_ns,
                   quanta->drained_ns + QUANTA_LATE_MAX * quanta->quantum_ns);
}

static QuantaTurn quanta_overrun(Quanta *quanta, QuantaDomain *pick, uint64_t now_ns) {
        QuantaDomain *overran = quanta->holder;
        QuantaTurn turn;

        overran->round++;
        overran->n_in_flight = 0;
        overran->in_flight_ns = 0;
        quanta->n_overruns++;
        turn = quanta_hand_over(quanta, pick, now_ns);
        turn.overran = overran;
        return turn;
}

static QuantaTurn quanta_drain(Quanta *quanta, QuantaDomain *pick, uint64_t end_ns,
                               uint64_t now_ns) {
        uint64_t overrun_ns;

        if (!quanta->holder->n_in_flight)
                return quanta_hand_over(quanta, pick, now_ns);
        if (!quanta->drained_ns)
                quanta->drained_ns = quanta_due_ns(quanta->holder, end_ns);

        overrun_ns = quanta_overrun_ns(quanta, end_ns);
        if (now_ns >= overrun_ns)
                return quanta_overrun(quanta, pick, now_ns);
        return (QuantaTurn){.until_ns = overrun_ns};
}

/* The holder has the next turn too: the quantum is renewed without waiting for jobs in flight. A
 * holder without competitors is not renewed, so a newcomer finds a quantum that is over. */
static QuantaTurn quanta_go_on(Quanta *quanta, bool is_contended, uint64_t now_ns) {
        uint64_t end_ns = quanta_end_ns(quanta, quanta->holder);

        if ((is_contended || quanta_is_shared(quanta, now_ns)) && quanta_is_full(quanta))
                return quanta_drain(quanta, quanta->holder, end_ns, now_ns);

        quanta->drained_ns = 0;
        if (is_contended && now_ns >= end_ns)
                return quanta_grant(quanta, now_ns);
        return (QuantaTurn){.domain = quanta->holder};
}

QuantaTurn quanta_turn(Quanta *quanta, QuantaDomain *pick, bool holder_works, bool is_contended,
                       uint64_t now_ns) {
        const QuantaDomain *holder = quanta->holder;
        uint64_t end_ns;

        if (!quanta->quantum_ns)
                return (QuantaTurn){.domain = pick};
        if (!holder)
                return quanta_hand_over(quanta, pick, now_ns);
        if (holder == pick)
                return quanta_go_on(quanta, is_contended, now_ns);

        end_ns = quanta_end_ns(quanta, pick);
        if (now_ns >= end_ns || !holder_works)
                return quanta_drain(quanta, pick, end_ns, now_ns);

        quanta->drained_ns = 0;
        if (now_ns + holder->in_flight_ns < end_ns && !quanta_is_full(quanta))
                return (QuantaTurn){.domain = quanta->holder};
        return (QuantaTurn){.until_ns = end_ns};
}

bool quanta_enter(Quanta *quanta, QuantaDomain *domain, QuantaJob *job, uint64_t expected_ns,
                  uint64_t now_ns) {
        assert(!job->is_holding);

        if (quanta->quantum_ns && expected_ns > QUANTA_LONG * quanta->quantum_ns)
                return false;

        *job = (QuantaJob){
                .expected_ns = expected_ns,
                .round = domain->round,
                .is_holding = true,
        };
        if (!domain->n_in_flight++)
                domain->progress_ns = now_ns;
        domain->in_flight_ns += expected_ns;
        return true;
}

void quanta_leave(QuantaDomain *domain, QuantaJob *job, uint64_t now_ns) {
        if (!job->is_holding)
                return;
        job->is_holding = false;
        if (job->round != domain->round)
                return;

        assert(domain->n_in_flight > 0 && domain->in_flight_ns >= job->expected_ns);
        domain->n_in_flight--;
        domain->in_flight_ns -= job->expected_ns;
        domain->progress_ns = now_ns;
}

bool quanta_holds(const QuantaDomain *domain, const QuantaJob *job) {
        return job->is_holding && job->round == domain->round;
}

void quanta_forget(Quanta *quanta, const QuantaDomain *domain) {
        if (quanta->holder == domain)
                quanta->holder = NULL;
}

bool quanta_is_shut(const Quanta *quanta, const QuantaDomain *domain) {
        return quanta->quantum_ns && quanta->holder && quanta->holder != domain;
}

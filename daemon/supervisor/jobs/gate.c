/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <assert.h>

#include "engine.h"
#include "inflight.h"
#include "slot.h"
#include "util/list.h"

#define GATE_GRACE_MAX_NS 50000000ull /* longest time that a long job may hold the gate */

static void gate_on_timer(uv_timer_t *timer) {
        Device *device = timer->data;

        device->is_dirty = true;
}

static uint64_t gate_grace_ns(const Device *device, const Job *job) {
        uint64_t grace_ns = MAX(engine_inflight_ns(device->engine), 2 * job->cost.expected_ns);

        return MIN(grace_ns, GATE_GRACE_MAX_NS);
}

static void gate_uncount(Device *device, Job *job) {
        device->counted_ns -= job->cost.counted_ns;
        job->cost.counted_ns = 0;
}

/* Removes overdue jobs of one executor from the gate. Return: when the next one is overdue, UINT64_MAX:
 * none. */
static uint64_t gate_age_executor(Device *device, Executor *executor, uint64_t now_ns) {
        uint64_t next_ns = UINT64_MAX;
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link) {
                uint64_t due_ns = job->clock.started_ns + gate_grace_ns(device, job);

                if (!job->cost.counted_ns)
                        continue;
                if (due_ns > now_ns) {
                        next_ns = MIN(next_ns, due_ns);
                        continue;
                }
                /* Nor does it block other jobs of its own user. */
                gate_uncount(device, job);
                inflight_unbound(executor, job);
        }
        return next_ns;
}

static uint64_t gate_age(Device *device, uint64_t now_ns) {
        uint64_t next_ns = UINT64_MAX;
        const Slot *slot;

        for (slot = device->engine->slots; slot; slot = slot->hh.next) {
                if (slot->device != device)
                        continue;
                if (slot->executor)
                        next_ns = MIN(next_ns, gate_age_executor(device, slot->executor, now_ns));
                if (slot->express)
                        next_ns = MIN(next_ns, gate_age_executor(device, slot->express, now_ns));
        }
        return next_ns;
}

bool gate_is_open(Device *device) {
        uint64_t now_ns, next_ns;

        if (device->counted_ns < engine_inflight_ns(device->engine))
                return true;
        /* The timer is armed: an earlier call found no overdue job. */
        if (uv_is_active((uv_handle_t *)&device->gate))
                return false;

        now_ns = uv_hrtime();
        next_ns = gate_age(device, now_ns);
        if (device->counted_ns < engine_inflight_ns(device->engine))
                return true;
        uv_timer_start(&device->gate, gate_on_timer, (next_ns - now_ns) / 1000000 + 1, 0);
        return false;
}

/* ---- quanta ---------------------------------------------------------------- */

static Slot *gate_slot_of(QuantaDomain *domain) {
        return container_of(domain, Slot, domain);
}

/* A slot has several lanes only where all share one context, without quanta. */
static Lane *gate_lane_of(QuantaDomain *domain) {
        return LIST_FIRST(&gate_slot_of(domain)->lanes);
}

static bool gate_holder_works(const Device *device) {
        QuantaDomain *holder = device->quanta.holder;

        return holder && gate_lane_of(holder)->is_awake;
}

/* Jobs that overran their quantum block no other job, not even of their own user. */
static void gate_let_by(Device *device, Executor *executor) {
        Job *job;

        if (!executor)
                return;
        TAILQ_FOREACH (job, &executor->inflight, link) {
                gate_uncount(device, job);
                inflight_unbound(executor, job);
        }
}

/* The user of an executor's jobs pays for their time; place_leave() charges the rest at their end. */
static void gate_charge(Executor *executor, uint64_t now_ns) {
        Device *device = executor->device;
        Job *first = TAILQ_FIRST(&executor->inflight);
        uint64_t held_ns, owed_ns, since_ns;
        Lane *lane;

        if (!first)
                return;
        lane = job_lane(first);
        since_ns = MAX(executor->last_end_ns, executor->charged_ns);
        held_ns = now_ns - MAX(first->clock.started_ns, since_ns);
        owed_ns = MIN(held_ns, first->cost.owed_ns);
        first->cost.owed_ns -= owed_ns;
        executor->charged_ns = now_ns;
        fairshare_advance(device->share, &lane->payer->share, owed_ns, held_ns, now_ns);
        user_add_gpu_time(lane->user, held_ns, now_ns);
        device->gpu_ns += held_ns;
}

/* The others waited for it, whether or not its jobs did anything: a job may wait in its worker for
 * one that never ends. */
static void gate_charge_overrun(QuantaDomain *domain, uint64_t now_ns) {
        Executor *executor = gate_slot_of(domain)->executor;

        if (executor)
                gate_charge(executor, now_ns);
}

/* Where users share a worker, whose job its time goes to is known at the ends alone. */
void gate_tick(Executor *executor) {
        const Job *first = TAILQ_FIRST(&executor->inflight);

        if (first && !first->delivery.is_queued && !executor->engine->config->isolation.shared)
                gate_charge(executor, engine_now(executor->engine));
}

static void gate_ask_again(Device *device, uint64_t until_ns, uint64_t now_ns) {
        if (uv_is_active((uv_handle_t *)&device->turn) && device->turn_ns <= until_ns)
                return;
        device->turn_ns = until_ns;
        uv_timer_start(&device->turn, gate_on_timer, (until_ns - now_ns) / 1000000 + 1, 0);
}

Lane *gate_turn(Device *device, Lane *pick, uint64_t now_ns) {
        bool is_contended = device->n_awake > 1;
        QuantaTurn turn = quanta_turn(&device->quanta, &pick->slot->domain,
                                      gate_holder_works(device), is_contended, now_ns);

        if (turn.overran) {
                gate_let_by(device, gate_slot_of(turn.overran)->executor);
                gate_let_by(device, gate_slot_of(turn.overran)->express);
                gate_charge_overrun(turn.overran, now_ns);
        }
        if (turn.domain == &pick->slot->domain)
                return pick;
        if (turn.domain)
                return gate_lane_of(turn.domain);
        gate_ask_again(device, turn.until_ns, now_ns);
        return NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

/* Nobody waits for a job that itself waits, in its worker, for one that overran. */
static bool gate_is_behind_overrun(const Job *job, const QuantaDomain *domain) {
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                const Job *before = job->edges.order[i].before;

                if (before && before->state == JOB_RUNNING &&
                    !quanta_holds(domain, &before->cost.quantum))
                        return true;
        }
        return false;
}

/* A job too long to wait for at a quantum's end does not hold the gate either, nor one that would be
 * let by anyway. */
void gate_enter(Device *device, Job *job) {
        QuantaDomain *domain = &job_lane(job)->slot->domain;

        assert(!job->cost.counted_ns);
        if (device->quanta.quantum_ns && gate_is_behind_overrun(job, domain))
                return;
        if (!quanta_enter(&device->quanta, domain, &job->cost.quantum, job->cost.expected_ns,
                          job->clock.started_ns) ||
            job->cost.expected_ns > GATE_GRACE_MAX_NS)
                return;
        job->cost.counted_ns =
                MAX(MIN(job->cost.expected_ns, engine_inflight_ns(device->engine)), 1u);
        device->counted_ns += job->cost.counted_ns;
}

void gate_leave(Device *device, Job *job, uint64_t now_ns) {
        gate_uncount(device, job);
        quanta_leave(&job_lane(job)->slot->domain, &job->cost.quantum, now_ns);
}

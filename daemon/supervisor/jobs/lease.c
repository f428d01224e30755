/* SPDX-License-Identifier: Apache-2.0 */
#include "lease.h"

#include "arena.h"
#include "ending.h"
#include "engine.h"
#include "express.h"
#include "inflight.h"
#include "module.h"
#include "place.h"
#include "slot.h"
#include "submission.h"

#define LEASE_IDLE_NS 1000000000ull /* not used for so long, it comes back */

/* ---- templates -------------------------------------------------------------- */

static bool lease_overlaps(const JobBuffer *a, const JobBuffer *b) {
        return a->arena == b->arena && (a->direction != JOB_IN || b->direction != JOB_IN) &&
               a->offset < b->offset + b->length && b->offset < a->offset + a->length;
}

static bool lease_is_behind(const Job *job, const Job *before) {
        for (size_t i = 0; i < job->work.n_buffers; ++i)
                for (size_t k = 0; k < before->work.n_buffers; ++k)
                        if (lease_overlaps(&job->work.buffers[i], &before->work.buffers[k]))
                                return true;
        return false;
}

static void lease_order(Lease *lease, LeaseTemplate *template) {
        for (unsigned i = 0; i < lease->n_templates; ++i) {
                LeaseTemplate *other = &lease->templates[i];

                if (other != template && !lease_is_behind(template->job, other->job))
                        continue;
                template->after[template->n_after++] = other->prepared;
                if (other != template)
                        other->after[other->n_after++] = template->prepared;
        }
}

/* Variables, times and checks are told with each job's end, which a leased job has none of. */
static bool lease_takes(const JobSpec *spec) {
        if (spec->timed || spec->n_buffers > LEASE_BUFFERS_MAX)
                return false;
        for (size_t i = 0; i < spec->n_kernels; ++i)
                if (spec->kernels[i].module->has_variables ||
                    spec->kernels[i].module->state != MODULE_READY)
                        return false;
        return true;
}

bool lease_add(Lease *lease, uint32_t prepared, const JobSpec *spec) {
        LeaseTemplate *template = &lease->templates[lease->n_templates];
        Submitter *submitter = lease->submitter;
        Job *job;

        if (lease->n_templates == LEASE_TEMPLATES_MAX || !lease_takes(spec))
                return false;
        if (job_new(submitter->engine, spec, submitter->user, &job) < 0)
                return false;

        job->work.slurm_job = submitter->slurm_job;
        *template = (LeaseTemplate){
                .job = job, .prepared = prepared, .texts = spec->texts, .n_moved = spec->n_moved};
        lease->priority =
                lease->n_templates ? MIN(lease->priority, spec->priority) : spec->priority;
        lease->n_templates++;
        lease_order(lease, template);
        return true;
}

void lease_clear(Lease *lease) {
        assert(!lease->executor);
        while (lease->n_templates > 0)
                job_free(lease->templates[--lease->n_templates].job);
        lease->device = NULL;
}

/* ---- where it may be ---------------------------------------------------------- */

static bool lease_lane_is_idle(const Slot *slot) {
        const Lane *lane;

        LIST_FOREACH (lane, &slot->lanes, slot_link)
                if (lane->queue.n_entries)
                        return false;
        return TAILQ_EMPTY(&slot->alone);
}

static bool lease_executor_is_idle(const Executor *executor) {
        return !executor ||
               (!executor->n_inflight && !executor->n_parked && TAILQ_EMPTY(&executor->leases));
}

/* No other domain has work on the device. */
static bool lease_is_lone(const Slot *own) {
        const Slot *slot;

        for (slot = own->engine->slots; slot; slot = slot->hh.next)
                if (slot != own && slot->device == own->device &&
                    !(lease_lane_is_idle(slot) && lease_executor_is_idle(slot->executor) &&
                      lease_executor_is_idle(slot->express)))
                        return false;
        return true;
}

static bool lease_suits_user(const User *user, uint64_t now_ns) {
        return !user->is_held && !user->suspects.n_keys &&
               (!user->person->limits.gpu_seconds || user_over_seconds(user->person, now_ns) <= 0);
}

/* Whether the worker may have leases of this user now. */
static bool lease_suits(const Executor *executor, const User *user) {
        Engine *engine = executor->engine;
        const Slot *slot = executor->slot;

        return executor->is_ready && !executor->is_outdated && slot && slot->executor == executor &&
               !express_is_used(slot) && !executor->n_long && TAILQ_EMPTY(&slot->alone) &&
               !engine->is_paused && !engine->is_closing && engine->config->rings.direct &&
               !engine->config->isolation.shared && LIST_EMPTY(&engine->ends.traces) &&
               health_takes_jobs(&executor->device->health) &&
               lease_suits_user(user, engine_now(engine)) && lease_is_lone(slot);
}

/* A job of its user that waits there is to run before its own. */
static bool lease_is_overtaken(const Lease *lease, const Executor *executor) {
        const Lane *lane = user_lane(lease->submitter->user, executor->device->index);

        return lane && lane->queue.n_entries && queue_priority(&lane->queue) > lease->priority;
}

/* No template has its memory elsewhere. */
static bool lease_fits(const Lease *lease, const Device *device) {
        for (unsigned i = 0; i < lease->n_templates; ++i) {
                int wanted = lease->templates[i].job->work.device;

                if (wanted >= 0 && (unsigned)wanted != device->index)
                        return false;
        }
        return true;
}

static bool lease_has_modules(const Job *job, const Executor *executor) {
        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                const Instance *instance =
                        module_find_instance(job->work.kernels[i].module, executor);

                if (!instance || instance->state != INSTANCE_READY)
                        return false;
        }
        return true;
}

/* Otherwise a worker that ran none of its jobs yet would be chosen, and the lease be empty. */
static bool lease_has_a_job_for(const Lease *lease, const Executor *executor) {
        for (unsigned i = 0; i < lease->n_templates; ++i)
                if (lease_has_modules(lease->templates[i].job, executor))
                        return true;
        return false;
}

static Executor *lease_executor(const Lease *lease, Device *device) {
        const Submitter *submitter = lease->submitter;
        const Slot *slot = slot_find(submitter->engine, submitter->user, device);
        Executor *executor = slot ? slot->executor : NULL;

        return executor && lease_fits(lease, device) && lease_suits(executor, submitter->user) &&
                               !lease_is_overtaken(lease, executor) &&
                               lease_has_a_job_for(lease, executor)
                       ? executor
                       : NULL;
}

static unsigned lease_count_beside(const Executor *executor) {
        const Lease *lease;
        unsigned n = 0;

        TAILQ_FOREACH (lease, &executor->leases, link)
                ++n;
        return n;
}

/* Of several workers the one with the fewest leases, so that a user's sessions are divided among the devices. */
static Executor *lease_find_executor(const Lease *lease) {
        Engine *engine = lease->submitter->engine;
        Executor *executor, *best = NULL;

        if (lease->device)
                return lease_executor(lease, lease->device);
        for (size_t i = 0; i < engine->n_devices; ++i) {
                executor = lease_executor(lease, &engine->devices[i]);
                if (executor && (!best || lease_count_beside(executor) < lease_count_beside(best)))
                        best = executor;
        }
        return best;
}

bool lease_is_possible(const Submitter *submitter) {
        Engine *engine = submitter->engine;
        const Slot *slot;

        for (size_t i = 0; i < engine->n_devices; ++i) {
                slot = slot_find(engine, submitter->user, &engine->devices[i]);
                if (slot && slot->executor && lease_suits(slot->executor, submitter->user))
                        return true;
        }
        return false;
}

uint64_t lease_n_jobs(const Lease *lease) {
        uint64_t longest_ns = 1;

        for (unsigned i = 0; i < lease->n_templates; ++i) {
                const Job *job = lease->templates[i].job;

                longest_ns =
                        MAX(longest_ns, duration_expected(job->user->duration, job->cost.class));
        }
        return MAX(engine_inflight_ns(lease->submitter->engine) / longest_ns, 1u);
}

static bool lease_is_short(const Job *job) {
        uint64_t expected_ns = duration_expected(job->user->duration, job->cost.class);

        return duration_is_known(expected_ns) && expected_ns <= LEASE_SHORT_NS;
}

/* @executor: NULL: it is not known yet. */
static void lease_keep_ready(Lease *lease, const Executor *executor) {
        unsigned n = 0;

        for (unsigned i = 0; i < lease->n_templates; ++i) {
                Job *job = lease->templates[i].job;

                if (lease_is_short(job) && (!executor || lease_has_modules(job, executor)))
                        lease->templates[n++] = lease->templates[i];
                else
                        job_free(job);
        }
        lease->n_templates = n;
}

Executor *lease_choose(Lease *lease) {
        Executor *executor;

        lease_keep_ready(lease, NULL);
        executor = lease_find_executor(lease);
        if (!executor)
                return NULL;
        lease->device = executor->device;
        lease_keep_ready(lease, executor);
        return lease->n_templates ? executor : NULL;
}

/* ---- out and back ------------------------------------------------------------ */

static int lease_give_arenas(const Job *job, Executor *executor) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < job->work.n_buffers; ++i)
                r = arena_give(job->work.buffers[i].arena, executor);
        return r;
}

int lease_begin(Lease *lease, Executor *executor) {
        Engine *engine = executor->engine;
        int r = 0;

        if (!slot_lane(executor->device, lease->submitter->user)) /* it pays */
                return -ENOMEM;
        for (unsigned i = 0; r == 0 && i < lease->n_templates; ++i)
                r = lease_give_arenas(lease->templates[i].job, executor);
        if (r == 0)
                r = engine->executor_ops->lend(executor, lease);
        if (r < 0)
                return r;

        for (unsigned i = 0; i < lease->n_templates; ++i)
                lease->templates[i].job->device = executor->device;
        lease->executor = executor;
        lease->recalled_ns = 0;
        lease->used_ns = engine_now(engine);
        TAILQ_INSERT_TAIL(&executor->leases, lease, link);
        return 0;
}

void lease_recall(Lease *lease) {
        Engine *engine = lease->submitter->engine;

        if (!lease->executor || lease->recalled_ns)
                return;
        lease->recalled_ns = engine_now(engine);
        engine->executor_ops->recall(lease->executor, lease);
}

static Executor *lease_take_back(Lease *lease) {
        Executor *executor = lease->executor;

        TAILQ_REMOVE(&executor->leases, lease, link);
        executor->idle_ns = engine_now(executor->engine);
        lease->executor = NULL;
        return executor;
}

void lease_drop(Lease *lease) {
        if (lease->executor)
                (void)lease_take_back(lease);
        lease_clear(lease);
}

void lease_returned(Lease *lease, const LeaseTaken *jobs, size_t n_jobs) {
        Executor *executor = lease_take_back(lease);

        if (executor->slot)
                slot_wake(executor->slot); /* for a job that must run alone */
        lease->ops->returned(lease, executor, jobs, n_jobs);
}

void leases_lost(Executor *executor) {
        Lease *lease;

        while ((lease = TAILQ_FIRST(&executor->leases)))
                lease->ops->lost(lease, lease_take_back(lease));
}

Lease *lease_find(const Executor *executor, uint32_t submitter) {
        Lease *lease;

        TAILQ_FOREACH (lease, &executor->leases, link)
                if (lease->submitter->id == submitter)
                        return lease;
        return NULL;
}

bool lease_holds(const Lease *lease) {
        return lease_suits(lease->executor, lease->submitter->user) &&
               !lease_is_overtaken(lease, lease->executor) &&
               engine_now(lease->submitter->engine) - lease->used_ns <= LEASE_IDLE_NS;
}

uint64_t leases_oldest_ns(const Executor *executor) {
        uint64_t oldest_ns = 0;
        const Lease *lease;

        TAILQ_FOREACH (lease, &executor->leases, link)
                if (lease->recalled_ns && (!oldest_ns || lease->recalled_ns < oldest_ns))
                        oldest_ns = lease->recalled_ns;
        return oldest_ns;
}

/* ---- jobs --------------------------------------------------------------------- */

static LeaseTemplate *lease_find_template(Lease *lease, uint32_t prepared) {
        for (unsigned i = 0; i < lease->n_templates; ++i)
                if (lease->templates[i].prepared == prepared)
                        return &lease->templates[i];
        return NULL;
}

int lease_adopt(Lease *lease, Executor *executor, uint32_t prepared, uint32_t tag) {
        const LeaseTemplate *template = lease_find_template(lease, prepared);
        const Job *job = template ? template->job : NULL;
        JobSpec spec;

        if (!job)
                return -ENOENT;
        spec = (JobSpec){
                .id = (uint64_t)lease->submitter->id << 32 | tag,
                .priority = job->entry.priority,
                .timeout_ms = job->work.timeout_ms,
                .label = job->label,
                .device = job->work.device,
                .may_move = job->work.may_move,
                .repeatable = job->work.repeatable,
                .by_address = job->work.by_address,
                .buffers = job->work.buffers,
                .n_buffers = job->work.n_buffers,
                .n_moved = template->n_moved,
                .kernels = job->work.kernels,
                .n_kernels = job->work.n_kernels,
                .texts = template->texts,
                .operations = job->work.operations,
                .n_operations = job->work.n_operations,
        };
        return submission_adopt(lease->submitter, &spec, executor);
}

bool lease_count(Lease *lease, uint32_t prepared, uint64_t n, uint64_t waited_us, uint64_t ran_us,
                 uint64_t busy_ns) {
        const LeaseTemplate *template = lease_find_template(lease, prepared);
        const Job *job;

        if (!template)
                return false;
        job = template->job;
        lease->used_ns = engine_now(lease->submitter->engine);
        duration_learn(job->user->duration, job->cost.class, ran_us * 1000 / n, 2, busy_ns);
        ending_leased(job, n, waited_us, ran_us);
        return true;
}

/*
 * All are of one domain, and share its lane. From the start of a job that the supervisor knows, that job pays for the
 * device until it ends.
 */
void leases_pay(Executor *executor, uint64_t busy_ns) {
        const Lease *lease = TAILQ_FIRST(&executor->leases);
        const Job *first = TAILQ_FIRST(&executor->inflight);
        uint64_t now_ns = engine_now(executor->engine), until_ns;
        Device *device = executor->device;
        const Lane *lane;

        until_ns = first ? MIN(first->clock.started_ns, now_ns) : now_ns;
        if (!lease || until_ns <= executor->last_end_ns)
                return;
        busy_ns = MIN(busy_ns, until_ns - executor->last_end_ns);
        lane = lease->submitter->user->lanes[device->index];
        fairshare_advance(device->share, &lane->payer->share, 0, busy_ns, now_ns);
        user_add_gpu_time(lease->submitter->user, busy_ns, now_ns);
        device->gpu_ns += busy_ns;
        executor->last_end_ns = until_ns;
}

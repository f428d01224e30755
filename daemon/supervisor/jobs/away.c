/* SPDX-License-Identifier: Apache-2.0 */
#include "away.h"

#include "arena.h"
#include "choice.h"
#include "engine.h"
#include "executor.h"
#include "module.h"
#include "slot.h"
#include "util/list.h"

#define AWAY_PARTS_MAX 32u /* a job of more kernels or buffers stays */
#define AWAY_FREE_PART 8u  /* of the other device's memory that must be free */

static bool away_is_elsewhere(const JobBuffer *buffer, const Device *device) {
        return buffer->arena->place == ARENA_DEVICE && buffer->arena->device != device;
}

static bool away_is_near(const Job *job, const Device *device) {
        for (size_t i = 0; i < job->work.n_buffers; ++i)
                if (away_is_elsewhere(&job->work.buffers[i], device) &&
                    !device_is_near(device, job->work.buffers[i].arena->device))
                        return false;
        return true;
}

static uint64_t away_bytes(const Job *job, const Device *device) {
        uint64_t n_bytes = 0;

        for (size_t i = 0; i < job->work.n_buffers; ++i)
                if (away_is_elsewhere(&job->work.buffers[i], device))
                        n_bytes += job->work.buffers[i].length;
        return n_bytes;
}

/* Learnt apart: some kernels are much slower there than their data let expect. */
uint64_t away_expected_ns(const Job *job, const Device *device) {
        uint64_t learnt_ns =
                duration_expected(job->user->duration, job_away_class(job->cost.class));

        if (duration_is_known(learnt_ns))
                return learnt_ns;
        return duration_expected(job->user->duration, job->cost.class) +
               placement_peer_ns(away_bytes(job, device));
}

/* ---- sites ----------------------------------------------------------------- */

static uint64_t away_module_ns(const Job *job, const Executor *executor) {
        uint64_t n_ns = 0;

        for (size_t i = 0; i < job->work.n_kernels; ++i) {
                const Instance *instance =
                        executor ? module_find_instance(job->work.kernels[i].module, executor)
                                 : NULL;

                if (!instance || instance->state != INSTANCE_READY)
                        n_ns += PLACEMENT_MODULE_NS;
        }
        return n_ns;
}

static uint64_t away_start_ns(const Job *job, const Device *device, uint64_t now_ns) {
        const Slot *slot = slot_find(job->engine, job->user, device);
        const Executor *executor = slot ? slot->executor : NULL;
        bool has_spare = job->engine->config->spare_workers && now_ns >= device->spare_ns &&
                         sms_are_all(job->user->limits.sms);
        uint64_t module_ns = away_module_ns(job, executor);

        if (executor && executor->is_ready)
                return module_ns;
        return module_ns + (has_spare ? PLACEMENT_START_SPARE_NS : PLACEMENT_START_NS);
}

static PlacementSite away_site(const Job *job, Device *device, uint64_t now_ns) {
        uint64_t work_ns = choice_work_ns(device, now_ns);
        uint64_t own_ns = MIN(choice_own_ns(device, job->user, now_ns), work_ns);

        return (PlacementSite){
                .own_ns = own_ns,
                .others_ns = work_ns - own_ns,
                .n_others = MAX(device->n_awake, 2u) - 1,
                .quantum_ns = device->quanta.quantum_ns,
        };
}

static uint64_t away_home_ns(const Job *job, Device *home, uint64_t now_ns) {
        PlacementSite site = away_site(job, home, now_ns);

        site.run_ns = duration_expected(job->user->duration, job->cost.class);
        return placement_home_ns(&site);
}

static uint64_t away_there_ns(const Job *job, Device *device, uint64_t now_ns) {
        PlacementSite site = away_site(job, device, now_ns);

        site.start_ns = away_start_ns(job, device, now_ns);
        site.run_ns = away_expected_ns(job, device);
        return placement_away_ns(&site);
}

/* ---- the choice ------------------------------------------------------------ */

static bool away_may_leave(const Job *job, const Device *home) {
        return job->work.may_move && job->work.n_kernels && !job->retries && !job->is_alone &&
               job->work.n_kernels <= AWAY_PARTS_MAX && job->work.n_buffers <= AWAY_PARTS_MAX &&
               health_takes_jobs(&home->health) && !job_has_variables(job);
}

/* Its order is kept by the worker that it follows into, or it would wait for those jobs' ends. */
static bool away_is_tied(const Job *job, const Device *home) {
        for (size_t i = 0; i < job->edges.n_order; ++i) {
                const Job *before = job->edges.order[i].before;

                if (before && before->state == JOB_RUNNING && before->device == home)
                        return true;
        }
        return false;
}

static bool away_has_memory(const Device *device) {
        uint64_t used_bytes = MAX(device->used_bytes, device->arena_bytes);

        return used_bytes <= device->memory_total - device->memory_total / AWAY_FREE_PART;
}

static bool away_has_worker(const Job *job, const Device *device) {
        const Slot *slot = slot_find(job->engine, job->user, device);

        return (slot && slot->executor) || user_may_charge(job->user, USER_WORKERS, 1);
}

static bool away_may_go(const Job *job, Device *device, uint64_t now_ns) {
        return choice_takes(device, job->user, now_ns) && away_has_memory(device) &&
               away_has_worker(job, device) && away_is_near(job, device);
}

/* With each job on device memory, so what most often decides comes first. */
Device *away_device(const Job *job, Device *home) {
        Engine *engine = job->engine;
        uint64_t now_ns = engine_now(engine), work_ns, best_ns = UINT64_MAX;
        Device *best = home;

        if (engine->n_devices == 1 || !home->load_ns)
                return home;
        work_ns = choice_work_ns(home, now_ns);
        if (work_ns < PLACEMENT_GAIN_NS || !away_may_leave(job, home) || away_is_tied(job, home))
                return home;
        for (size_t i = 0; i < engine->n_devices; ++i) {
                Device *device = &engine->devices[i];
                uint64_t away_ns;

                if (device == home || choice_work_ns(device, now_ns) > work_ns / 2 ||
                    !away_may_go(job, device, now_ns))
                        continue;
                away_ns = away_there_ns(job, device, now_ns);
                if (away_ns >= best_ns || !placement_pays(away_home_ns(job, home, now_ns), away_ns))
                        continue;
                best = device;
                best_ns = away_ns;
        }
        return best;
}

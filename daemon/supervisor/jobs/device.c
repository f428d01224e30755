/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <assert.h>
#include <string.h>

#include "util/list.h"
#include "slot.h"
#include "engine.h"
#include "executor.h"

static int device_init_timers(Device *device) {
        int r;

        r = uv_timer_init(device->engine->loop, &device->gate);
        if (r < 0)
                return r;
        r = uv_timer_init(device->engine->loop, &device->turn);
        if (r < 0) {
                uv_close((uv_handle_t *)&device->gate, NULL);
                return r;
        }
        device->gate.data = device->turn.data = device;
        device->has_timers = true;
        return 0;
}

int device_init(Device *device, Engine *engine, unsigned index, const char *name, const char *uuid,
                const char *pci, uint64_t memory_total) {
        int r;

        device->engine = engine;
        device->index = index;
        device->memory_total = memory_total;
        device->name = strdup(name);
        device->uuid = strdup(uuid);
        device->pci = strdup(pci);
        if (!device->name || !device->uuid || !device->pci)
                return -ENOMEM;

        r = fairshare_new(&device->share);
        if (r < 0)
                return r;
        device_configure(device);
        return device_init_timers(device);
}

void device_configure(Device *device) {
        const Config *config = device->engine->config;

        fairshare_configure(device->share, config->usage_half_life_s * 1000000000ull,
                            config->limits.weight);
        /* In one context there is nothing to switch between. */
        device->quanta.quantum_ns = config->isolation_shared ? 0 : config->quantum_ms * 1000000ull;
        device->is_dirty = true;
}

void device_close(Device *device) {
        if (!device->has_timers)
                return;
        uv_close((uv_handle_t *)&device->gate, NULL);
        uv_close((uv_handle_t *)&device->turn, NULL);
        device->has_timers = false;
}

void device_fini(Device *device) {
        assert(!device->has_timers);
        fairshare_free(device->share);
        free(device->problem);
        free(device->pci);
        free(device->uuid);
        free(device->name);
}

void device_set_problem(Device *device, const char *problem) {
        free(device->problem);
        device->problem = problem ? strdup(problem) : NULL;
}

const char *device_state(const Device *device) {
        const char *reason = health_reason(&device->health);

        if (reason)
                return reason;
        return device->problem ? device->problem : "ready";
}

/* ---- choosing -------------------------------------------------------------- */

static Slot *device_slot(Device *device, User *user) {
        const Lane *lane = device->index < user->n_lanes ? user->lanes[device->index] : NULL;

        return lane ? lane->slot : slot_find(device->engine, user, device);
}

/* Where a worker has to be started first, that is counted, so that short jobs do
 * not wake every device of the machine. */
static uint64_t device_cost(Device *device, User *user, uint64_t now_ns) {
        Slot *slot = device_slot(device, user);
        uint64_t cost_ns = device->load_ns;
        Executor *executor;

        if (slot && pressure_is_on(&slot->pressure, now_ns))
                return cost_ns + DEVICE_BROKEN_NS;
        if (!slot || !slot->executor)
                return cost_ns + DEVICE_START_NS + (device->problem ? DEVICE_BROKEN_NS : 0);

        executor = slot->executor;
        if (!TAILQ_EMPTY(&executor->inflight))
                cost_ns += now_ns - TAILQ_FIRST(&executor->inflight)->started_ns;
        return cost_ns;
}

static uint64_t device_penalty_ns(const Device *device) {
        if (!health_takes_jobs(&device->health))
                return DEVICE_DRAINED_NS;
        return device->health.state == HEALTH_DOUBTED ? DEVICE_BROKEN_NS : 0;
}

Device *device_choose(Engine *engine, User *user) {
        uint64_t now_ns, best_ns = UINT64_MAX;
        Device *best = &engine->devices[0];

        if (engine->n_devices == 1)
                return best;
        now_ns = engine_now(engine);
        for (size_t i = 0; i < engine->n_devices; ++i) {
                Device *device = &engine->devices[i];
                uint64_t cost_ns = device_cost(device, user, now_ns) + device_penalty_ns(device);

                if (cost_ns < best_ns) {
                        best = device;
                        best_ns = cost_ns;
                }
        }
        return best;
}

static int device_grow_lanes(Device *device, User *user) {
        size_t n_lanes = device->engine->n_devices;
        Lane **lanes;

        if (user->n_lanes >= n_lanes)
                return 0;
        lanes = realloc(user->lanes, n_lanes * sizeof(*lanes));
        if (!lanes)
                return -ENOMEM;

        memset(lanes + user->n_lanes, 0, (n_lanes - user->n_lanes) * sizeof(*lanes));
        user->lanes = lanes;
        user->n_lanes = n_lanes;
        return 0;
}

Lane *device_lane(Device *device, User *user) {
        Slot *slot;
        Lane *lane;

        if (device_grow_lanes(device, user) < 0)
                return NULL;
        if (user->lanes[device->index])
                return user->lanes[device->index];

        slot = slot_get(device->engine, user, device);
        if (!slot)
                return NULL;
        lane = calloc(1, sizeof(*lane));
        if (!lane)
                return NULL;

        lane->user = user;
        lane->device = device;
        lane->slot = slot;
        queue_init(&lane->queue);
        shareuser_init(&lane->share, user->limits.weight);
        LIST_INSERT_HEAD(&slot->lanes, lane, slot_link);
        user->lanes[device->index] = lane;
        return lane;
}

/* ---- gate ------------------------------------------------------------------ */

static void device_on_timer(uv_timer_t *timer) {
        Device *device = timer->data;

        device->is_dirty = true;
}

static uint64_t device_inflight_ns(const Device *device) {
        return MAX(device->engine->config->inflight_ms, 1u) * 1000000ull;
}

static uint64_t device_grace_ns(const Device *device, const Job *job) {
        uint64_t grace_ns = MAX(device_inflight_ns(device), 2 * job->expected_ns);

        return MIN(grace_ns, DEVICE_GRACE_MAX_NS);
}

static void device_gate_leave(Device *device, Job *job) {
        device->counted_ns -= job->counted_ns;
        job->counted_ns = 0;
}

/* Lets those of one slot out that are overdue. Return: when the next one will be, UINT64_MAX: none. */
static uint64_t device_gate_age_slot(Device *device, const Slot *slot, uint64_t now_ns) {
        uint64_t next_ns = UINT64_MAX;
        Job *job;

        TAILQ_FOREACH (job, &slot->executor->inflight, link) {
                uint64_t due_ns = job->started_ns + device_grace_ns(device, job);

                if (!job->counted_ns)
                        continue;
                if (due_ns > now_ns) {
                        next_ns = MIN(next_ns, due_ns);
                        continue;
                }
                /* Nor does it keep its own user's other jobs out. */
                device_gate_leave(device, job);
                executor_unbound(slot->executor, job);
        }
        return next_ns;
}

static uint64_t device_gate_age(Device *device, uint64_t now_ns) {
        uint64_t next_ns = UINT64_MAX;
        const Slot *slot;

        for (slot = device->engine->slots; slot; slot = slot->hh.next)
                if (slot->device == device && slot->executor)
                        next_ns = MIN(next_ns, device_gate_age_slot(device, slot, now_ns));
        return next_ns;
}

bool device_gate_is_open(Device *device) {
        uint64_t now_ns, next_ns;

        if (device->counted_ns < device_inflight_ns(device))
                return true;
        /* Armed: somebody asked before, and nobody in there is overdue yet. */
        if (uv_is_active((uv_handle_t *)&device->gate))
                return false;

        now_ns = uv_hrtime();
        next_ns = device_gate_age(device, now_ns);
        if (device->counted_ns < device_inflight_ns(device))
                return true;
        uv_timer_start(&device->gate, device_on_timer, (next_ns - now_ns) / 1000000 + 1, 0);
        return false;
}

/* ---- quanta ---------------------------------------------------------------- */

static Slot *device_slot_of(QuantaDomain *domain) {
        return container_of(domain, Slot, domain);
}

/* There is more than one lane in a slot only where all are in one, and no quanta. */
static Lane *device_lane_of(QuantaDomain *domain) {
        return LIST_FIRST(&device_slot_of(domain)->lanes);
}

static bool device_holder_works(const Device *device) {
        QuantaDomain *holder = device->quanta.holder;

        return holder && shareuser_is_awake(&device_lane_of(holder)->share);
}

/* What overran its quantum keeps nobody out, its own user's other jobs neither. */
static void device_let_by(Device *device, QuantaDomain *domain) {
        Executor *executor = device_slot_of(domain)->executor;
        Job *job;

        if (!executor)
                return;
        TAILQ_FOREACH (job, &executor->inflight, link) {
                device_gate_leave(device, job);
                executor_unbound(executor, job);
        }
}

static void device_ask_again(Device *device, uint64_t until_ns, uint64_t now_ns) {
        if (uv_is_active((uv_handle_t *)&device->turn) && device->turn_ns <= until_ns)
                return;
        device->turn_ns = until_ns;
        uv_timer_start(&device->turn, device_on_timer, (until_ns - now_ns) / 1000000 + 1, 0);
}

Lane *device_turn(Device *device, Lane *pick, uint64_t now_ns) {
        bool is_contended = fairshare_n_awake(device->share) > 1;
        QuantaTurn turn = quanta_turn(&device->quanta, &pick->slot->domain,
                                      device_holder_works(device), is_contended, now_ns);

        if (turn.overran)
                device_let_by(device, turn.overran);
        if (turn.domain == &pick->slot->domain)
                return pick;
        if (turn.domain)
                return device_lane_of(turn.domain);
        device_ask_again(device, turn.until_ns, now_ns);
        return NULL;
}

/* ---- jobs ------------------------------------------------------------------ */

static QuantaDomain *device_domain(const Device *device, const Job *job) {
        return &job->user->lanes[device->index]->slot->domain;
}

/* One that nobody waits for at a quantum's end keeps nobody out of the gate either. */
void device_enter(Device *device, Job *job) {
        assert(!job->counted_ns);
        if (!quanta_enter(&device->quanta, device_domain(device, job), &job->quantum,
                          job->expected_ns, job->started_ns))
                return;
        job->counted_ns = MAX(MIN(job->expected_ns, device_inflight_ns(device)), 1u);
        device->counted_ns += job->counted_ns;
}

void device_leave(Device *device, Job *job, uint64_t now_ns) {
        device_gate_leave(device, job);
        quanta_leave(device_domain(device, job), &job->quantum, now_ns);
}

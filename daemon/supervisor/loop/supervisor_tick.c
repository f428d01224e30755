/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Periodic work: jobs, workers and sessions whose time is up, and the status for the keeper.
 */

#include <stdio.h>

#include "accounting.h"
#include "detached.h"
#include "devices.h"
#include "jobs.h"
#include "clients.h"
#include "supervisor.h"
#include "restart.h"
#include "workers.h"
#include "util/activity.h"

static void supervisor_tell_keeper(Supervisor *supervisor, uint64_t now_ns) {
        KeeperMessage message = {.kind = KEEPER_STATUS};

        if (now_ns - supervisor->status_ns < (KEEPER_STATUS_S * 1000000000ull) * 4 / 5)
                return;
        supervisor->status_ns = now_ns;
        if (supervisor->engine.n_devices)
                snprintf(message.text, sizeof(message.text), "%zu devices, %u workers, %u jobs",
                         supervisor->engine.n_devices, HASH_COUNT(supervisor->workers.table),
                         HASH_COUNT(supervisor->engine.jobs));
        else
                snprintf(message.text, sizeof(message.text), "%s",
                         engine_state(&supervisor->engine));
        keeper_link_send(supervisor->engine.keeper, &message, NULL, 0);
}

static void supervisor_trim(Supervisor *supervisor, uint64_t now_ns) {
        const Engine *engine = &supervisor->engine;
        bool is_busy = supervisor->is_polling || !backlog_is_empty(engine) ||
                       clients_has_waiting(&supervisor->clients);

        (void)trim_tick(&supervisor->trim, engine->quotas[USER_QUEUED_BYTES].taken, is_busy,
                        now_ns);
}

void supervisor_on_tick(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;
        uint64_t now_ns;

        activity_shift(ACTIVITY_TICK);
        supervisor->engine.now_ns = 0;
        now_ns = engine_now(&supervisor->engine);

        if (now_ns >= supervisor->ask_names_ns)
                supervisor_ask_names(supervisor);
        clients_tick(&supervisor->clients, now_ns);
        workers_tick(&supervisor->workers, now_ns);
        scheduler_tick(&supervisor->engine, now_ns);
        monitor_tick(&supervisor->monitor, now_ns);
        detached_tick(supervisor->clients.detached, now_ns);
        accounting_tick(supervisor->clients.accounting, now_ns);
        supervisor_tell_keeper(supervisor, now_ns);
        supervisor_trim(supervisor, now_ns);
}

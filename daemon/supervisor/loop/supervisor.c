/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor.h"

#include <assert.h>
#include <string.h>

#include "accounting.h"
#include "detached.h"
#include "devices.h"
#include "jobs.h"
#include "clients.h"
#include "restart.h"
#include "workers.h"
#include "util/activity.h"
#include "util/config-seal.h"
#include "util/log.h"

/* ---- configuration --------------------------------------------------------- */

void supervisor_reload(Supervisor *supervisor, int fd) {
        Config *config, *old;
        int r;

        r = config_unseal(fd, &config);
        if (r < 0) {
                log_error("cannot reload the configuration: %s; the old one stays in force",
                          strerror(-r));
                return;
        }

        /* The uid of a domain's worker cannot change under running jobs. */
        if (config->isolation.shared != supervisor->config->isolation.shared) {
                log_warning("the change of isolation takes effect when gpuqd is restarted");
                config->isolation.shared = supervisor->config->isolation.shared;
        }
        config->isolation.fence =
                supervisor->config->isolation.fence; /* as modules that are loaded have it or not */
        old = supervisor->config;
        supervisor->config = config;
        supervisor_ask_names(supervisor);
        jobs_configure(&supervisor->engine, config);
        config_free(old);
        workers_configure(&supervisor->workers);
        log_info("configuration reloaded");
}

/* ---- life ------------------------------------------------------------------ */

static void supervisor_on_devices(void *userdata) {
        Supervisor *supervisor = userdata;

        pace_init(&supervisor->pace, device_is_on_cpu(&supervisor->engine));
        activity_shift(ACTIVITY_TAKEOVER);
        if (supervisor->takeover)
                takeover_on_devices(supervisor->takeover);
}

/* The keeper starts a fresh supervisor. */
static void supervisor_on_no_devices(void *userdata, int r) {
        Supervisor *supervisor = userdata;

        supervisor->r = r;
        uv_stop(&supervisor->loop);
}

static const DeviceMonitorOwner supervisor_monitor_owner = {
        .found = supervisor_on_devices,
        .failed = supervisor_on_no_devices,
};

static void supervisor_on_handed_over(void *userdata) {
        Supervisor *supervisor = userdata;

        uv_stop(&supervisor->loop);
}

static void supervisor_may_listen(void *userdata) {
        supervisor_listen(userdata);
}

static int supervisor_init_detached(Supervisor *supervisor) {
        DetachedHost host = {
                .clients = &supervisor->clients,
                .may_listen = supervisor_may_listen,
                .userdata = supervisor,
        };

        supervisor->clients.detached_ops = &detached_ops;
        return detached_new(&host, &supervisor->clients.detached);
}

static int supervisor_init_accounting(Supervisor *supervisor) {
        supervisor->clients.accounting_ops = &accounting_ops;
        return accounting_new(&supervisor->engine, &supervisor->clients.accounting);
}

static int supervisor_init_loop(Supervisor *supervisor) {
        int r;

        r = uv_loop_init(&supervisor->loop);
        if (r < 0)
                return r;
        r = stall_start(&supervisor->stall, &supervisor->loop);
        if (r < 0)
                return r;
        uv_prepare_init(&supervisor->loop, &supervisor->prepare);
        uv_idle_init(&supervisor->loop, &supervisor->idle);
        uv_timer_init(&supervisor->loop, &supervisor->tick);
        uv_timer_init(&supervisor->loop, &supervisor->quit_timer);
        uv_timer_init(&supervisor->loop, &supervisor->part_timer);
        supervisor->prepare.data = supervisor->idle.data = supervisor->tick.data = supervisor;
        supervisor->quit_timer.data = supervisor;
        uv_prepare_start(&supervisor->prepare, supervisor_on_prepare);
        uv_timer_start(&supervisor->tick, supervisor_on_tick, SUPERVISOR_TICK_MS,
                       SUPERVISOR_TICK_MS);
        monitor_init(&supervisor->monitor, &supervisor->engine, &supervisor_monitor_owner,
                     supervisor);
        handover_init(&supervisor->handover, &supervisor->engine, &supervisor->clients,
                      supervisor_on_handed_over, supervisor);
        return 0;
}

static void supervisor_on_answers(void *userdata) {
        Supervisor *supervisor = userdata;

        supervisor_heed_names(supervisor);
        clients_heed_answers(&supervisor->clients);
}

static int supervisor_init(Supervisor *supervisor) {
        int r;

        r = config_unseal(supervisor->options.config_fd, &supervisor->config);
        if (r < 0) {
                log_error("cannot read the keeper's configuration: %s", strerror(-r));
                return r;
        }
        r = lookups_new(&supervisor->loop, supervisor_on_answers, supervisor,
                        &supervisor->engine.lookups);
        if (r < 0)
                return r;
        supervisor_await_names(supervisor);
        if (!supervisor->options.is_private)
                resource_divide_arenas(supervisor->engine.quotas, supervisor->config->arenas_bytes);
        jobs_configure(&supervisor->engine, supervisor->config);
        pace_init(&supervisor->pace, device_is_on_cpu(&supervisor->engine));
        r = workers_init(&supervisor->workers, &supervisor->engine);
        if (r < 0)
                return r;
        r = clients_init(&supervisor->clients, &supervisor->engine);
        if (r < 0)
                return r;
        supervisor->clients.resume_ops = &takeover_resume_ops;
        supervisor->clients.is_private = supervisor->options.is_private;
        supervisor->clients.private_uid = supervisor->options.private_uid;
        r = ledger_new(&supervisor->engine.ledger);
        if (r < 0) {
                log_error("cannot open the ledger: %s", strerror(-r));
                return r;
        }
        r = supervisor_init_detached(supervisor);
        if (r == 0)
                r = supervisor_init_accounting(supervisor);
        if (r < 0)
                return r;
        if (supervisor->options.keeper_fd < 0)
                return 0;
        r = takeover_new(&supervisor->engine, &supervisor->clients, supervisor_may_listen,
                         supervisor, &supervisor->takeover);
        if (r < 0)
                return r;
        supervisor->clients.takeover = supervisor->takeover;
        return keeper_link_new(&supervisor->loop, supervisor->options.keeper_fd,
                               supervisor_on_keeper, supervisor_on_keeper_end, supervisor,
                               &supervisor->engine.keeper);
}

int supervisor_new(const SupervisorOptions *options, Supervisor **ret_supervisor) {
        Supervisor *supervisor;
        bool may_raise;
        int r;

        supervisor = calloc(1, sizeof(*supervisor));
        if (!supervisor)
                return -ENOMEM;

        activity_shift(ACTIVITY_START);
        supervisor->options = *options;
        supervisor->engine.started_ns = uv_hrtime();
        may_raise = cores_open(&supervisor->cores, true);
        engine_init(&supervisor->engine);
        if (options->transit_room)
                resource_set_transit_room(supervisor->engine.quotas, options->transit_room);
        supervisor->engine.loop = &supervisor->loop;
        r = supervisor_init_loop(supervisor);
        if (r < 0) {
                cores_close(&supervisor->cores);
                free(supervisor);
                return r;
        }
        r = supervisor_init(supervisor);
        if (r < 0) {
                supervisor_free(supervisor);
                return r;
        }

        supervisor->clients.lacks_priority = !may_raise;
        *ret_supervisor = supervisor;
        return 0;
}

int supervisor_run(Supervisor *supervisor) {
        uv_run(&supervisor->loop, UV_RUN_DEFAULT);
        activity_shift(ACTIVITY_END);
        return supervisor->r;
}

static void supervisor_on_quit_timer(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;

        /* Not before clients have their last messages and workers have exited, or time is up. */
        if (uv_hrtime() - supervisor->quit_ns >= SUPERVISOR_QUIT_MS * 1000000ull ||
            (!supervisor->workers.table && !supervisor->clients.sessions))
                uv_stop(&supervisor->loop);
}

void supervisor_quit(Supervisor *supervisor) {

        if (supervisor->engine.is_closing)
                return;

        supervisor->engine.is_closing = true;
        supervisor->quit_ns = uv_hrtime();
        clients_refuse(&supervisor->clients, FAILURE_SHUTDOWN, "gpuqd is shutting down");
        workers_stop(&supervisor->workers);
        uv_timer_start(&supervisor->quit_timer, supervisor_on_quit_timer, SUPERVISOR_QUIT_STEP_MS,
                       SUPERVISOR_QUIT_STEP_MS);
}

static void supervisor_end_work(Supervisor *supervisor) {
        Slot *slot;

        supervisor->engine.is_closing = true;
        supervisor->takeover = supervisor->clients.takeover = takeover_free(supervisor->takeover);
        clients_close(&supervisor->clients);
        detached_stop(supervisor->clients.detached);
        workers_close(&supervisor->workers);
        for (slot = supervisor->engine.slots; slot; slot = slot->hh.next)
                slot_abandon(slot);
        backlog_run(&supervisor->engine, SIZE_MAX);
        slot_close_all(&supervisor->engine);
}

/* Return: whether a lookup is still running. */
static bool supervisor_close_handles(Supervisor *supervisor) {
        bool is_asking = supervisor->engine.lookups && lookups_close(supervisor->engine.lookups);

        clients_close_handles(&supervisor->clients);
        supervisor->engine.keeper = keeper_link_close(supervisor->engine.keeper);
        detached_close(supervisor->clients.detached);
        accounting_close(supervisor->clients.accounting);
        for (size_t i = 0; i < supervisor->engine.n_devices; ++i)
                device_close(&supervisor->engine.devices[i]);
        monitor_close(&supervisor->monitor);
        handover_close(&supervisor->handover);
        stall_stop(&supervisor->stall);
        uv_close((uv_handle_t *)&supervisor->prepare, NULL);
        uv_close((uv_handle_t *)&supervisor->idle, NULL);
        uv_close((uv_handle_t *)&supervisor->tick, NULL);
        uv_close((uv_handle_t *)&supervisor->quit_timer, NULL);
        uv_close((uv_handle_t *)&supervisor->part_timer, NULL);
        uv_run(&supervisor->loop, UV_RUN_DEFAULT);
        return is_asking;
}

/* The end of main() would unload what the thread is using. */
static void supervisor_exit(int r) {
        log_info("ended while the name service was being asked: %s",
                 r < 0 ? strerror(-r) : "as requested");
        log_flush();
        _exit(r < 0);
}

/* This end was not requested: to the next supervisor it looks as if this one had been killed. */
static void supervisor_leave(Supervisor *supervisor) {
        if (supervisor->engine.ledger && ledger_leave(supervisor->engine.ledger) < 0) {
                log_flush();
                _exit(1);
        }
        supervisor->engine.keeper = keeper_link_close(supervisor->engine.keeper);
}

Supervisor *supervisor_free(Supervisor *supervisor) {
        bool is_asking;
        int r;

        if (!supervisor)
                return NULL;

        if (!supervisor->engine.is_closing)
                supervisor_leave(supervisor);
        supervisor_end_work(supervisor);
        is_asking = supervisor_close_handles(supervisor);
        supervisor->clients.detached = detached_free(supervisor->clients.detached);
        supervisor->clients.accounting = accounting_free(supervisor->clients.accounting);
        monitor_fini(&supervisor->monitor);
        clients_fini(&supervisor->clients);
        jobs_fini(&supervisor->engine);
        workers_fini(&supervisor->workers);
        ledger_free(supervisor->engine.ledger);
        config_names_free(supervisor->names);
        config_free(supervisor->config);
        uv_loop_close(&supervisor->loop);
        cores_close(&supervisor->cores);
        r = supervisor->r;
        free(supervisor);
        if (is_asking)
                supervisor_exit(r);
        return NULL;
}

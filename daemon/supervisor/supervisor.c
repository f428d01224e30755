/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/supervisor.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/drain.h"
#include "supervisor/ending.h"
#include "supervisor/list.h"
#include "supervisor/listener.h"
#include "supervisor/probe.h"
#include "supervisor/scheduler.h"
#include "supervisor/session.h"
#include "supervisor/slot.h"
#include "supervisor/worker.h"
#include "util/config-seal.h"
#include "util/log.h"

#define SUPERVISOR_ROUNDS_MAX 64u /* of ending and dispatching in one turn */

/* ---- one turn -------------------------------------------------------------- */

static void supervisor_settle(Supervisor *supervisor) {
        for (unsigned i = 0; i < SUPERVISOR_ROUNDS_MAX; ++i) {
                ending_run(supervisor);
                scheduler_run(supervisor);
                if (TAILQ_EMPTY(&supervisor->doomed))
                        return;
        }
}

void supervisor_event(Supervisor *supervisor) {
        supervisor->is_eventful = true;
}

/* Whether to look again rather than sleep. */
static bool supervisor_is_polling(Supervisor *supervisor) {
        uint64_t poll_ns = supervisor->config->poll_us * 1000ull, now_ns;

        if (!poll_ns || (!supervisor->is_eventful && !supervisor->event_ns))
                return false;

        now_ns = uv_hrtime();
        if (supervisor->is_eventful)
                supervisor->event_ns = now_ns;
        else if (now_ns - supervisor->event_ns >= poll_ns)
                supervisor->event_ns = 0;
        supervisor->is_eventful = false;
        return supervisor->event_ns != 0;
}

/* Return: false: one is awake, or has more to say already. */
static bool supervisor_flush_workers(Supervisor *supervisor, bool may_sleep) {
        bool all_sleep = may_sleep;
        Worker *worker, *next;

        HASH_ITER(hh, supervisor->workers, worker, next) {
                worker_flush(worker);
                if (may_sleep)
                        all_sleep &= worker_sleep(worker);
                else if (worker->n_inflight)
                        worker_wake(worker);
        }
        return all_sleep;
}

static void supervisor_on_idle(uv_idle_t *idle) {
        Supervisor *supervisor = idle->data;
        Worker *worker, *next;

        HASH_ITER(hh, supervisor->workers, worker, next)
        if (worker->is_awake)
                worker_read(worker);
}

/* A request deferred in one turn is served when every connection was read in the next. */
static void supervisor_serve_deferred(Supervisor *supervisor) {
        Session *session, *next;

        supervisor->turn++;
        TAILQ_FOREACH_SAFE(session, &supervisor->deferring, deferred_link, next)
        if (supervisor->turn >= session->deferred_turn + 2)
                session_serve_deferred(session);
}

static void supervisor_on_prepare(uv_prepare_t *prepare) {
        Supervisor *supervisor = prepare->data;
        bool may_sleep;
        Session *session;

        supervisor->is_stirred = false;
        supervisor_serve_deferred(supervisor);
        supervisor_settle(supervisor);
        may_sleep = supervisor_flush_workers(supervisor, !supervisor_is_polling(supervisor));
        if (may_sleep && TAILQ_EMPTY(&supervisor->doomed) && TAILQ_EMPTY(&supervisor->deferring))
                uv_idle_stop(&supervisor->idle);
        else
                uv_idle_start(&supervisor->idle, supervisor_on_idle);
        while ((session = TAILQ_FIRST(&supervisor->flushing)))
                session_flush(session);
        if (supervisor->is_stirred)
                uv_idle_start(&supervisor->idle, supervisor_on_idle);
}

/* ---- now and then ---------------------------------------------------------- */

static void supervisor_check_orphan(Job *job, uint64_t now_ns) {
        if (job->orphan_ns && now_ns - job->orphan_ns > SUPERVISOR_ORPHAN_MS * 1000000ull)
                ending_doom(job, JOB_CANCELLED,
                            failure_new(FAILURE_CANCELLED, "its client is gone"));
}

/* The worker counts a job's timeout itself; one that does not is not waited for. */
static void supervisor_check_backstop(Worker *worker, uint64_t now_ns) {
        const Job *job = TAILQ_FIRST(&worker->inflight);
        uint64_t limit_ms;

        if (!job || !job->timeout_ms)
                return;
        limit_ms = job->timeout_ms * 2 + 5000;
        if ((now_ns - MAX(job->started_ns, worker->last_end_ns)) / 1000000 > limit_ms)
                worker_overdue(worker, TAILQ_FIRST(&worker->inflight));
}

static void supervisor_check_idle(Worker *worker, uint64_t now_ns) {
        uint64_t idle_ns = worker->supervisor->config->worker_idle_s * 1000000000ull;

        /* Whoever drained it wants it free. */
        if (worker->device && !health_takes_jobs(&worker->device->health))
                idle_ns = 0;

        if (worker->state != WORKER_READY || worker->n_inflight || worker_is_loading(worker) ||
            worker_holds_variables(worker))
                return;
        if (now_ns - worker->idle_ns > idle_ns)
                worker_stop(worker);
}

static void supervisor_check_start(Worker *worker, uint64_t now_ns) {
        _cleanup_(failure_freep) Failure *late = NULL;

        if (worker->state != WORKER_STARTING ||
            now_ns - worker->idle_ns <= WORKER_START_MS * 1000000ull)
                return;

        worker->idle_ns = now_ns; /* once is enough */
        late = failure_new(FAILURE_NO_DEVICE, "the driver did not answer within %u s",
                           WORKER_START_MS / 1000);
        worker_kill(worker);
        if (worker->device)
                drain_sign(worker->device, HEALTH_NO_START, late->text);
        else /* a driver that hangs may not let it end either */
                worker_lost(worker, FAULT_CRASH, late, NULL);
}

static void supervisor_check_worker(Worker *worker, uint64_t now_ns) {
        Job *job;

        TAILQ_FOREACH(job, &worker->inflight, link)
        supervisor_check_orphan(job, now_ns);
        supervisor_check_backstop(worker, now_ns);
        supervisor_check_idle(worker, now_ns);
        supervisor_check_start(worker, now_ns);
}

static void supervisor_tell_keeper(Supervisor *supervisor, uint64_t now_ns) {
        KeeperMessage message = {.kind = KEEPER_STATUS};

        if (now_ns - supervisor->status_ns < (KEEPER_STATUS_S * 1000000000ull) * 4 / 5)
                return;
        supervisor->status_ns = now_ns;
        if (supervisor->n_devices)
                snprintf(message.text, sizeof(message.text), "%zu devices, %u workers, %u jobs",
                         supervisor->n_devices, HASH_COUNT(supervisor->workers),
                         HASH_COUNT(supervisor->jobs));
        else
                snprintf(message.text, sizeof(message.text), "%s", supervisor_state(supervisor));
        keeper_link_send(supervisor->keeper, &message, NULL, 0);
}

static void supervisor_on_tick(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;
        uint64_t now_ns = uv_hrtime();
        Session *session, *next_session;
        Worker *worker, *next_worker;

        HASH_ITER(hh, supervisor->sessions, session, next_session)
        session_tick(session, now_ns);
        HASH_ITER(hh, supervisor->workers, worker, next_worker)
        supervisor_check_worker(worker, now_ns);
        scheduler_tick(supervisor, now_ns);
        drain_tick(supervisor, now_ns);
        supervisor_tell_keeper(supervisor, now_ns);
}

/* ---- keeper ---------------------------------------------------------------- */

static void supervisor_close_fds(const int *fds, size_t n_fds) {
        for (size_t i = 0; i < n_fds; ++i)
                close(fds[i]);
}

static void supervisor_on_listener(Supervisor *supervisor, int *fds, size_t n_fds) {
        int r;

        if (n_fds != 1 || supervisor->listener) {
                supervisor_close_fds(fds, n_fds);
                return;
        }
        r = listener_new(supervisor, fds[0], &supervisor->listener);
        if (r < 0) {
                log_error("cannot listen: %s", strerror(-r));
                close(fds[0]);
                supervisor->r = r;
                uv_stop(&supervisor->loop);
        }
}

/* What a supervisor before us held. Its jobs are gone, so clients are told and
 * connect again; their numbers must not come back while they may still name them. */
static void supervisor_on_held(Supervisor *supervisor, const char *key, int *fds, size_t n_fds) {
        Peer peer = {.uid = (uid_t)-1};
        unsigned number;

        if (n_fds == 1 && drain_on_held(supervisor, key, fds[0]))
                return;
        keeper_link_drop(supervisor->keeper, key);
        if (n_fds != 1 || sscanf(key, "session-%u", &number) != 1) {
                supervisor_close_fds(fds, n_fds);
                return;
        }
        supervisor->last_session = MAX(supervisor->last_session, number);
        if (session_new(supervisor, fds[0], &peer,
                        failure_new(FAILURE_SHUTDOWN,
                                    "gpuqd was restarted; connect again and submit again")) < 0)
                close(fds[0]);
}

static void supervisor_on_held_end(Supervisor *supervisor) {
        KeeperMessage ready = {.kind = KEEPER_READY};

        if (!supervisor->is_taking_over)
                return;
        supervisor->is_taking_over = false;
        if (supervisor->listener)
                listener_start(supervisor->listener);
        keeper_link_send(supervisor->keeper, &ready, NULL, 0);
        probe_start(supervisor);
}

static Worker *supervisor_find_worker(Supervisor *supervisor, uint32_t id) {
        Worker *worker;

        HASH_FIND(hh, supervisor->workers, &id, sizeof(id), worker);
        return worker;
}

static void supervisor_on_keeper(const KeeperMessage *message, int *fds, size_t n_fds,
                                 void *userdata) {
        Supervisor *supervisor = userdata;
        Worker *worker = supervisor_find_worker(supervisor, message->id);

        switch (message->kind) {
                case KEEPER_LISTENER:
                        supervisor_on_listener(supervisor, fds, n_fds);
                        return;
                case KEEPER_HELD:
                        supervisor_on_held(supervisor, message->text, fds, n_fds);
                        return;
                case KEEPER_HELD_END:
                        supervisor_on_held_end(supervisor);
                        break;
                case KEEPER_SPAWNED:
                        if (worker)
                                worker_spawned(worker, message->pid);
                        break;
                case KEEPER_EXITED:
                        if (worker)
                                worker_exited(worker, message->status, message->text);
                        break;
                case KEEPER_RELOAD:
                        if (n_fds == 1)
                                supervisor_reload(supervisor, fds[0]);
                        break;
                case KEEPER_QUIT:
                        supervisor_quit(supervisor);
                        break;
        }
        supervisor_close_fds(fds, n_fds);
}

static void supervisor_on_keeper_end(void *userdata) {
        Supervisor *supervisor = userdata;

        log_error("the keeper is gone");
        supervisor->r = -EPIPE;
        uv_stop(&supervisor->loop);
}

/* ---- configuration --------------------------------------------------------- */

void supervisor_reload(Supervisor *supervisor, int fd) {
        Config *config;
        User *user;
        int r;

        r = config_unseal(fd, &config);
        if (r < 0) {
                log_error("the configuration stays as it was: %s", strerror(-r));
                return;
        }

        /* Which worker serves whom cannot change under running jobs. */
        if (config->isolation_shared != supervisor->config->isolation_shared) {
                log_warning("isolation changes with the next start");
                config->isolation_shared = supervisor->config->isolation_shared;
        }
        config_free(supervisor->config);
        supervisor->config = config;
        for (size_t i = 0; i < supervisor->n_devices; ++i)
                device_configure(&supervisor->devices[i]);
        for (user = supervisor->users; user; user = user->hh.next) {
                user_configure(user, config);
                for (size_t i = 0; i < user->n_lanes; ++i)
                        if (user->lanes[i])
                                fairshare_set_weight(user->lanes[i]->device->share,
                                                     &user->lanes[i]->share, user->limits.weight);
        }
        log_info("configuration read again");
}

/* ---- life ------------------------------------------------------------------ */

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
        uv_timer_init(&supervisor->loop, &supervisor->probe_timer);
        uv_timer_init(&supervisor->loop, &supervisor->quit_timer);
        supervisor->prepare.data = supervisor->idle.data = supervisor->tick.data = supervisor;
        supervisor->probe_timer.data = supervisor->quit_timer.data = supervisor;
        uv_prepare_start(&supervisor->prepare, supervisor_on_prepare);
        uv_timer_start(&supervisor->tick, supervisor_on_tick, SUPERVISOR_TICK_MS,
                       SUPERVISOR_TICK_MS);
        return 0;
}

static int supervisor_init(Supervisor *supervisor) {
        int r;

        r = config_unseal(supervisor->options.config_fd, &supervisor->config);
        if (r < 0) {
                log_error("no configuration from the keeper: %s", strerror(-r));
                return r;
        }
        r = bump_new(&supervisor->bump);
        if (r < 0)
                return r;
        if (supervisor->options.keeper_fd < 0)
                return 0;
        return keeper_link_new(&supervisor->loop, supervisor->options.keeper_fd,
                               supervisor_on_keeper, supervisor_on_keeper_end, supervisor,
                               &supervisor->keeper);
}

int supervisor_new(const SupervisorOptions *options, Supervisor **ret_supervisor) {
        Supervisor *supervisor;
        int r;

        supervisor = calloc(1, sizeof(*supervisor));
        if (!supervisor)
                return -ENOMEM;

        supervisor->options = *options;
        supervisor->is_taking_over = true;
        supervisor->started_ns = uv_hrtime();
        TAILQ_INIT(&supervisor->doomed);
        TAILQ_INIT(&supervisor->unplaced);
        TAILQ_INIT(&supervisor->unplaced_modules);
        TAILQ_INIT(&supervisor->flushing);
        TAILQ_INIT(&supervisor->deferring);
        r = supervisor_init_loop(supervisor);
        if (r < 0) {
                free(supervisor);
                return r;
        }
        r = supervisor_init(supervisor);
        if (r < 0) {
                supervisor_free(supervisor);
                return r;
        }

        *ret_supervisor = supervisor;
        return 0;
}

int supervisor_run(Supervisor *supervisor) {
        uv_run(&supervisor->loop, UV_RUN_DEFAULT);
        return supervisor->r;
}

static void supervisor_on_quit_timer(uv_timer_t *timer) {
        Supervisor *supervisor = timer->data;

        /* Not before clients have their last words and workers have said goodbye, or time is up. */
        if (supervisor->quit_ms >= SUPERVISOR_QUIT_MS ||
            (!supervisor->workers && !supervisor->sessions))
                uv_stop(&supervisor->loop);
        supervisor->quit_ms += SUPERVISOR_QUIT_STEP_MS;
}

void supervisor_quit(Supervisor *supervisor) {
        Session *session, *next_session;
        Worker *worker, *next_worker;

        if (supervisor->is_quitting)
                return;

        supervisor->is_quitting = true;
        supervisor->listener = listener_close(supervisor->listener);
        HASH_ITER(hh, supervisor->sessions, session, next_session)
        session_refuse(session, failure_new(FAILURE_SHUTDOWN, "gpuqd ends"));
        HASH_ITER(hh, supervisor->workers, worker, next_worker)
        worker_stop(worker);
        uv_timer_start(&supervisor->quit_timer, supervisor_on_quit_timer, SUPERVISOR_QUIT_STEP_MS,
                       SUPERVISOR_QUIT_STEP_MS);
}

static void supervisor_end_work(Supervisor *supervisor) {
        Session *session, *next_session;
        Worker *worker, *next_worker;
        Slot *slot, *next_slot;

        supervisor->is_quitting = true;
        HASH_ITER(hh, supervisor->sessions, session, next_session)
        session_close(session);
        HASH_ITER(hh, supervisor->workers, worker, next_worker) {
                worker_lost(worker, FAULT_STOPPED, NULL, NULL);
                worker_close(worker);
        }
        for (slot = supervisor->slots; slot; slot = slot->hh.next)
                slot_abandon(slot);
        ending_run(supervisor);
        HASH_ITER(hh, supervisor->slots, slot, next_slot)
        slot_close(slot);
}

static void supervisor_close_handles(Supervisor *supervisor) {
        listener_close(supervisor->listener);
        keeper_link_close(supervisor->keeper);
        for (size_t i = 0; i < supervisor->n_devices; ++i)
                device_close(&supervisor->devices[i]);
        stall_stop(&supervisor->stall);
        uv_close((uv_handle_t *)&supervisor->prepare, NULL);
        uv_close((uv_handle_t *)&supervisor->idle, NULL);
        uv_close((uv_handle_t *)&supervisor->tick, NULL);
        uv_close((uv_handle_t *)&supervisor->probe_timer, NULL);
        uv_close((uv_handle_t *)&supervisor->quit_timer, NULL);
        uv_run(&supervisor->loop, UV_RUN_DEFAULT);
}

Supervisor *supervisor_free(Supervisor *supervisor) {
        User *user, *next;

        if (!supervisor)
                return NULL;

        supervisor_end_work(supervisor);
        supervisor_close_handles(supervisor);
        for (size_t i = 0; i < supervisor->n_devices; ++i)
                device_fini(&supervisor->devices[i]);
        free(supervisor->devices);
        drain_free(supervisor);
        HASH_ITER(hh, supervisor->users, user, next) {
                HASH_DEL(supervisor->users, user);
                user_free(user);
        }
        assert(!supervisor->jobs && !supervisor->arenas && !supervisor->modules);
        bump_free(supervisor->bump);
        free(supervisor->driver_version);
        free(supervisor->problem);
        config_free(supervisor->config);
        uv_loop_close(&supervisor->loop);
        free(supervisor);
        return NULL;
}

/* ---- tables ---------------------------------------------------------------- */

int supervisor_get_user(Supervisor *supervisor, uid_t uid, gid_t gid, User **ret_user) {
        User *user;
        int r;

        HASH_FIND(hh, supervisor->users, &uid, sizeof(uid), user);
        if (!user) {
                r = user_new(uid, gid, supervisor->config, &user);
                if (r < 0)
                        return r;
                HASH_ADD(hh, supervisor->users, uid, sizeof(user->uid), user);
        }
        *ret_user = user;
        return 0;
}

Job *supervisor_find_job(Supervisor *supervisor, uint64_t id) {
        Job *job;

        HASH_FIND(hh, supervisor->jobs, &id, sizeof(id), job);
        return job;
}

Arena *supervisor_find_arena(Supervisor *supervisor, uint64_t id) {
        Arena *arena;

        HASH_FIND(hh, supervisor->arenas, &id, sizeof(id), arena);
        return arena;
}

Module *supervisor_find_module(Supervisor *supervisor, uint64_t id) {
        Module *module;

        HASH_FIND(hh, supervisor->modules, &id, sizeof(id), module);
        return module;
}

const char *supervisor_state(const Supervisor *supervisor) {
        if (supervisor->n_devices)
                return "ready";
        return supervisor->problem ? supervisor->problem : "looking for devices";
}

/* With device=auto the keeper chose, which shows in what was found: the CPU driver
 * puts its devices in a PCI domain that no real one is in. */
const char *supervisor_driver(const Supervisor *supervisor) {
        bool is_cpu = supervisor->n_devices && strncmp(supervisor->devices[0].pci, "ffff:", 5) == 0;

        switch (supervisor->config->device) {
                case CONFIG_DRIVER_CPU:
                        return "cpu";
                case CONFIG_DRIVER_GPU:
                        return "cuda";
                case CONFIG_DRIVER_AUTO:
                        break;
        }
        return is_cpu ? "cpu" : "cuda";
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUPERVISOR_H
#define GPUQ_SUPERVISOR_SUPERVISOR_H

/*
 * Supervisor
 *
 * Owns the loop and every table. One turn of the loop: events change objects;
 * then, before it sleeps, doomed jobs end, what can be dispatched is, and what
 * came together goes out together, one message to each worker and each session.
 *
 * For poll_us after a job came or ended, and less with none in flight, it does not
 * sleep, or for a nap: workers, seeing it awake, ring no bell. Nor do sessions with a
 * ring from which something came lately; the others are not looked at.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <uv.h>

#include "clients.h"
#include "devices.h"
#include "jobs.h"
#include "restart.h"
#include "workers.h"
#include "util/bump.h"
#include "base.h"
#include "util/config.h"
#include "util/list.h"
#include "util/pace.h"

#define SUPERVISOR_TICK_MS      250u
#define SUPERVISOR_QUIT_MS      1500u /* workers may take so long to stop */
#define SUPERVISOR_QUIT_STEP_MS 10u

typedef struct Supervisor Supervisor;
typedef struct Takeover Takeover;

typedef struct SupervisorOptions {
        int config_fd;   /* sealed, read at start; stays the caller's */
        bool is_private; /* serves private_uid alone */
        uid_t private_uid;
        int keeper_fd; /* -1: none, for tests */
} SupervisorOptions;

struct Supervisor {
        Engine engine;
        Clients clients;
        Workers workers;
        DeviceMonitor monitor;
        uv_loop_t loop;
        Stall stall;
        uv_prepare_t prepare;
        uv_idle_t idle; /* runs while a worker has more to say */
        uv_timer_t tick;
        uv_timer_t quit_timer;
        SupervisorOptions options;
        Config *config;
        Takeover *takeover;      /* NULL: without a keeper, for tests */
        Handover handover;

        uint64_t status_ns; /* when the keeper last heard of us */
        Pace pace;          /* an event is a job that came or ended */
        uint64_t polled_ns; /* when it last thought of looking again rather than sleeping */
        uint64_t quit_ns;   /* when the keeper told us to end */
        int r;              /* how the run ended */
        bool is_polling;    /* it looks again rather than sleep */
        bool is_started;    /* the keeper has handed over what it held */
};

/** supervisor_new() - configuration, loop, keeper. Return: 0, or a negative errno that was logged. */
int supervisor_new(const SupervisorOptions *options, Supervisor **ret_supervisor);
/** supervisor_run() - until the keeper says quit. Return: 0, or a negative errno. */
int supervisor_run(Supervisor *supervisor);
/** supervisor_free() - ends whatever is left; NULL is fine. Return: NULL. */
Supervisor *supervisor_free(Supervisor *supervisor);
DEFINE_CLEANUP(Supervisor, supervisor_free)

/** supervisor_quit() - tell clients, stop workers, then leave the loop. */
void supervisor_quit(Supervisor *supervisor);
/** supervisor_reload() - another configuration holds, sealed in @fd, which stays the caller's. */
void supervisor_reload(Supervisor *supervisor, int fd);

/** supervisor_listen() - let clients in, if all is known that they may ask for. */
void supervisor_listen(Supervisor *supervisor);
/** supervisor_of() - whose engine it is. */
static inline Supervisor *supervisor_of(const Engine *engine) {
        return container_of(engine, Supervisor, engine);
}

/* for supervisor.c, which registers them */

/** supervisor_on_prepare() - the end of a turn of the loop, see supervisor_turn.c. */
void supervisor_on_prepare(uv_prepare_t *prepare);
/** supervisor_on_tick() - each SUPERVISOR_TICK_MS, see supervisor_tick.c. */
void supervisor_on_tick(uv_timer_t *timer);
/** supervisor_on_keeper() - it said this, see supervisor_keeper.c; @fds are consumed. */
void supervisor_on_keeper(const KeeperMessage *message, int *fds, size_t n_fds, void *userdata);
/** supervisor_on_keeper_end() - it is gone, and so shall we be. */
void supervisor_on_keeper_end(void *userdata);

#endif

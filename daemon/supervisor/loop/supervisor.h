/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SUPERVISOR_H
#define GPUQ_SUPERVISOR_SUPERVISOR_H

/*
 * Loop: the room's public header, and the Supervisor
 *
 * Owns the event loop and one object of each other room. It is the only room that knows all of them,
 * and connects their tables of callbacks. It promises an order. Within one turn events change
 * objects. Before the loop sleeps, decided ends of jobs take effect, runnable jobs are dispatched,
 * and each worker and each session gets one message with the turn's output.
 *
 * For poll_us after a job arrived or ended the loop polls instead of sleeping, with short naps.
 * Workers see that it polls and do not ring their bell, and neither do sessions whose ring had a
 * recent request. With nothing in flight the loop sleeps sooner (util/pace.h), and while other
 * programs want the cores at once (util/cores.h).
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
#include "util/cores.h"
#include "util/list.h"
#include "util/pace.h"

#define SUPERVISOR_TICK_MS      250u
#define SUPERVISOR_QUIT_MS      1500u /* for workers to stop */
#define SUPERVISOR_QUIT_STEP_MS 10u
#define SUPERVISOR_PART_NS      1000000ull     /* between two parts of a person, by the clock */
#define SUPERVISOR_TIMED_NS     200000000ull   /* by the clock after the cores were last busy */
#define SUPERVISOR_NAMES_NS     10000000000ull /* after a lookup that failed */
#define SUPERVISOR_NAMES_AGAIN_NS                                                                  \
        1000000000ull /* while the last question about names has no answer */

typedef struct Supervisor Supervisor;

typedef struct SupervisorOptions {
        int config_fd;   /* sealed, read at start; stays the caller's */
        bool is_private; /* serves private_uid alone */
        uid_t private_uid;
        int keeper_fd;         /* -1: none, for tests */
        uint64_t transit_room; /* for descriptors that are sent and not read; 0: not measured */
} SupervisorOptions;

struct Supervisor {
        Engine engine;
        Clients clients;
        Workers workers;
        DeviceMonitor monitor;
        uv_loop_t loop;
        Stall stall;
        uv_prepare_t prepare;
        uv_idle_t idle; /* runs while the loop must not sleep */
        uv_timer_t tick;
        uv_timer_t quit_timer;
        uv_timer_t part_timer; /* ends a sleep when people are given their parts again */
        SupervisorOptions options;
        Config *config;
        ConfigNames *names;    /* what the system last said of them; NULL: nothing yet */
        uint64_t ask_names_ns; /* when to ask again; UINT64_MAX: at the next configuration */
        Takeover *takeover;    /* NULL: without a keeper, for tests */
        Handover handover;

        LimitLog turn_log_limit;
        uint64_t status_ns; /* when the status was last sent to the keeper */
        Pace pace;          /* its events are jobs that arrived or ended */
        Cores cores;
        Trim trim;               /* of memory after a peak of jobs */
        uint64_t timed_until_ns; /* parts are given by the clock if several people have requests */
        uint64_t given_ns;       /* when people were last given their parts */
        uint64_t polled_ns;      /* when the loop last decided whether to poll */
        size_t backlog_left;     /* steps of the backlog that this turn may still do */
        uint64_t quit_ns;        /* when the keeper asked the supervisor to end */
        int r;                   /* the result of the run */
        bool have_names_failed;  /* the last lookup of them, and the log says so */
        bool is_polling;         /* instead of sleeping */
        bool is_timed;           /* people are given their parts by the clock, not in each turn */
        bool is_started;         /* the keeper has handed over everything it held */
};

/** supervisor_new() - configuration, loop, keeper. Return: 0, or a negative errno that was logged. */
int supervisor_new(const SupervisorOptions *options, Supervisor **ret_supervisor);
/** supervisor_run() - run until the keeper sends quit. Return: 0, or a negative errno. */
int supervisor_run(Supervisor *supervisor);
/** supervisor_free() - free everything; NULL is fine. Return: NULL. */
Supervisor *supervisor_free(Supervisor *supervisor);
DEFINE_CLEANUP(Supervisor, supervisor_free)

/** supervisor_quit() - tell clients, stop workers, then leave the loop. */
void supervisor_quit(Supervisor *supervisor);
/** supervisor_reload() - apply the configuration sealed in @fd, which stays the caller's. */
void supervisor_reload(Supervisor *supervisor, int fd);

/** supervisor_listen() - let clients connect as soon as the objects that they may name are known. */
void supervisor_listen(Supervisor *supervisor);
/* for supervisor.c, which registers them */

/** supervisor_ask_names() - of a new configuration, or again, see supervisor_names.c; the last answer holds meanwhile. */
void supervisor_ask_names(Supervisor *supervisor);
/** supervisor_await_names() - the same at the start, for as long as it is worth waiting. */
void supervisor_await_names(Supervisor *supervisor);
/** supervisor_heed_names() - there may be an answer. */
void supervisor_heed_names(Supervisor *supervisor);
/** supervisor_on_prepare() - the end of a turn of the loop, see supervisor_turn.c. */
void supervisor_on_prepare(uv_prepare_t *prepare);
/** supervisor_on_tick() - runs every SUPERVISOR_TICK_MS, see supervisor_tick.c. */
void supervisor_on_tick(uv_timer_t *timer);
/** supervisor_on_keeper() - handles a message from the keeper, see supervisor_keeper.c; @fds are consumed. */
void supervisor_on_keeper(const KeeperMessage *message, int *fds, size_t n_fds, void *userdata);
/** supervisor_on_keeper_end() - the keeper is gone: the supervisor must end. */
void supervisor_on_keeper_end(void *userdata);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's messages: where to listen, what an earlier supervisor held, the workers' starts and ends,
 * and when to end.
 */

#include <string.h>
#include <unistd.h>

#include "detached.h"
#include "devices.h"
#include "restart.h"
#include "clients.h"
#include "supervisor.h"
#include "workers.h"
#include "util/activity.h"
#include "util/log.h"

static void supervisor_close_fds(const int *fds, size_t n_fds) {
        for (size_t i = 0; i < n_fds; ++i)
                close(fds[i]);
}

static void supervisor_on_listener(Supervisor *supervisor, int *fds, size_t n_fds) {
        int r;

        if (n_fds != 1 || supervisor->clients.listener) {
                supervisor_close_fds(fds, n_fds);
                return;
        }
        r = listener_new(&supervisor->clients, fds[0], &supervisor->clients.listener);
        if (r < 0) {
                log_error("cannot listen: %s", strerror(-r));
                close(fds[0]);
                supervisor->r = r;
                uv_stop(&supervisor->loop);
        }
}

/* Without the log Xids stay unknown, and everything else works. */
static void supervisor_on_kernel_log(Supervisor *supervisor, int *fds, size_t n_fds) {
        if (n_fds != 1 || monitor_read_kernel_log(&supervisor->monitor, fds[0]) < 0)
                supervisor_close_fds(fds, n_fds);
}

/* Something that the keeper held for an earlier supervisor. */
static void supervisor_on_held(Supervisor *supervisor, const char *key, int *fds, size_t n_fds) {
        if (n_fds != 1)
                supervisor_close_fds(fds, n_fds);
        else if (!monitor_on_held(&supervisor->monitor, key, fds[0]))
                takeover_on_held(supervisor->takeover, key, fds[0]);
}

void supervisor_listen(Supervisor *supervisor) {
        if (supervisor->clients.listener && !supervisor->engine.is_closing &&
            takeover_lets_in(supervisor->takeover) &&
            detached_is_known(supervisor->clients.detached)) {
                if (supervisor->engine.lookups)
                        lookups_serve(supervisor->engine.lookups);
                listener_start(supervisor->clients.listener);
        }
}

static void supervisor_on_held_end(Supervisor *supervisor) {
        KeeperMessage ready = {.kind = KEEPER_READY};
        int r;

        if (supervisor->is_started)
                return;
        supervisor->is_started = true;
        activity_shift(ACTIVITY_TAKEOVER);
        r = takeover_begin(supervisor->takeover);
        if (r < 0) {
                log_error("cannot take over from the previous supervisor: %s", strerror(-r));
                supervisor->r = r;
                uv_stop(&supervisor->loop);
                return;
        }
        detached_begin(supervisor->clients.detached);
        supervisor_listen(supervisor);
        keeper_link_send(supervisor->engine.keeper, &ready, NULL, 0);
        monitor_start(&supervisor->monitor);
}

void supervisor_on_keeper(const KeeperMessage *message, int *fds, size_t n_fds, void *userdata) {
        Supervisor *supervisor = userdata;

        activity_begin(ACTIVITY_KEEPER, message->kind, ACTIVITY_NOBODY, 0);
        switch (message->kind) {
                case KEEPER_LISTENER:
                        supervisor_on_listener(supervisor, fds, n_fds);
                        return;
                case KEEPER_KERNEL_LOG:
                        supervisor_on_kernel_log(supervisor, fds, n_fds);
                        return;
                case KEEPER_HELD:
                        supervisor_on_held(supervisor, message->text, fds, n_fds);
                        return;
                case KEEPER_HELD_END:
                        supervisor_on_held_end(supervisor);
                        break;
                case KEEPER_SPAWNED:
                        workers_spawned(&supervisor->workers, message->id, message->pid);
                        break;
                case KEEPER_EXITED:
                        workers_exited(&supervisor->workers, message->id, message->status,
                                       message->text);
                        break;
                case KEEPER_RELOAD:
                        if (n_fds == 1)
                                supervisor_reload(supervisor, fds[0]);
                        break;
                case KEEPER_QUIT:
                        supervisor_quit(supervisor);
                        break;
                case KEEPER_HANDOVER:
                        handover_begin(&supervisor->handover);
                        break;
        }
        supervisor_close_fds(fds, n_fds);
}

void supervisor_on_keeper_end(void *userdata) {
        Supervisor *supervisor = userdata;

        log_error("the keeper process ended");
        supervisor->r = -EPIPE;
        uv_stop(&supervisor->loop);
}

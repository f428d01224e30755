/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper
 *
 * One poll() over the signals and the link to the supervisor, with the nearest of a few deadlines
 * as timeout. The link is read before deadlines are checked, so that the supervisor is not blamed
 * for time that the keeper itself lost.
 */

#include "keeper/keeper.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "keeper/budget.h"
#include "keeper/held.h"
#include "keeper/kernel_log.h"
#include "keeper/notify.h"
#include "keeper/orphans.h"
#include "keeper/passed.h"
#include "keeper/settings.h"
#include "keeper/succession.h"
#include "keeper/unit.h"
#include "keeper/worker.h"
#include "util/log.h"

#define QUIT_MS   5000u /* for clients and workers to end */
#define KILLED_MS 2000u /* and for what was killed then: a driver may hold it for long */
#define CLEAR_MS                                                                                   \
        15000u /* the workers of a dead supervisor may take so long to end; clients wait 45 s in all */

/* Of the supervisor. All clients together cause far less; one that is owned waits. */
#define MESSAGES_MAX    16384u
#define MESSAGES_PER_S  16384u
#define MESSAGES_A_TURN 256u /* then signals and deadlines */
#define EXITS_A_TURN    64u  /* processes that are reaped, then messages and deadlines */
#define STATUS_PER_S    2u   /* that are passed on to systemd */
#define CLOSERS_MAX     16u
#define CLOSERS_PER_S   4u
#define ORPHANS_MS      20u /* until the next look, while some are left */

struct Keeper {
        Settings settings;
        Listener *listener;
        Held *held;
        Workers *workers;
        Orphans *orphans;
        size_t n_orphans;       /* that were there at the last look */
        uint64_t orphans_at_ms; /* the next one; NEVER: when a child has ended */
        Succession supervisor;
        Budget messages;
        Budget statuses;
        Budget closers; /* children that close what the supervisor passed */
        uint64_t
                clear_by_ms; /* the next one starts by then, even if workers of the last one are left */
        int signals;
        bool has_exits; /* there may be processes to reap */
        int kernel_log; /* -1: it is not read */

        uint64_t watchdog_ms; /* 0: none */
        uint64_t ping_at_ms;
        uint64_t quit_at_ms; /* NEVER: nobody asked */
        bool is_hurried;     /* asked to end a second time */
        bool is_killing;     /* it was time: what is left is only waited for */
        bool is_done;
        int result;
};

DEFINE_CLEANUP(Keeper, keeper_free)

static bool keeper_is_quitting(const Keeper *keeper) {
        return keeper->quit_at_ms != NEVER;
}

/* ---- life ------------------------------------------------------------------ */

static int keeper_open_signals(Keeper *keeper) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return keeper->signals < 0 ? -errno : 0;
}

static void keeper_tell_of_worker(const KeeperMessage *message, void *userdata) {
        Keeper *keeper = userdata;

        succession_tell(&keeper->supervisor, message, -1);
}

int keeper_new(Options *options, Config *config, Listener *listener, Keeper **ret_keeper) {
        _cleanup_(keeper_freep) Keeper *keeper = NULL;
        int r;

        keeper = calloc(1, sizeof(*keeper));
        if (!keeper)
                return -ENOMEM;

        keeper->settings = (Settings)SETTINGS_NULL;
        keeper->listener = listener;
        keeper->signals = keeper->kernel_log = -1;
        keeper->quit_at_ms = keeper->orphans_at_ms = NEVER;
        keeper->messages = (Budget){.n_max = MESSAGES_MAX, .per_s = MESSAGES_PER_S};
        keeper->statuses = (Budget){.n_max = STATUS_PER_S, .per_s = STATUS_PER_S};
        keeper->closers = (Budget){.n_max = CLOSERS_MAX, .per_s = CLOSERS_PER_S};
        keeper->watchdog_ms = notify_watchdog_ms();
        succession_init(&keeper->supervisor, &keeper->settings);

        r = held_new(&keeper->held);
        if (r < 0)
                return r;
        r = workers_new(options->libexec, options->is_private, keeper_tell_of_worker, keeper,
                        &keeper->workers);
        if (r < 0)
                return r;
        r = orphans_new(&keeper->orphans);
        if (r < 0)
                return r;
        r = keeper_open_signals(keeper);
        if (r < 0)
                return r;
        r = settings_init(&keeper->settings, options, config); /* last: it consumes */
        if (r < 0)
                return r;
        keeper->kernel_log = kernel_log_open(config, options->is_private);

        *ret_keeper = TAKE_PTR(keeper);
        return 0;
}

Keeper *keeper_free(Keeper *keeper) {
        if (!keeper)
                return NULL;

        succession_finish(&keeper->supervisor);
        closep(&keeper->signals);
        closep(&keeper->kernel_log);
        settings_finish(&keeper->settings);
        orphans_free(keeper->orphans);
        workers_free(keeper->workers);
        held_free(keeper->held);
        free(keeper);
        return NULL;
}

/* ---- the supervisor's life ------------------------------------------------- */

static void keeper_tell(Keeper *keeper, const KeeperMessage *message, int fd) {
        succession_tell(&keeper->supervisor, message, fd);
}

static int keeper_tell_held(const char *key, int fd, void *userdata) {
        KeeperMessage message = {.kind = KEEPER_HELD};

        strncpy(message.text, key, KEEPER_KEY_MAX);
        keeper_tell(userdata, &message, fd);
        return 0;
}

static void keeper_tell_what_is_held(Keeper *keeper) {
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_LISTENER},
                    listener_fd(keeper->listener));
        if (keeper->kernel_log >= 0)
                keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_KERNEL_LOG},
                            keeper->kernel_log);
        (void)held_each(keeper->held, keeper_tell_held, keeper);
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_HELD_END}, -1);
}

static void keeper_give_up(Keeper *keeper) {
        keeper->is_done = true;
        keeper->result = -ECHILD;
}

static void keeper_start_supervisor(Keeper *keeper) {
        size_t n_left = workers_count(keeper->workers) + keeper->n_orphans;
        int r;

        if (n_left)
                log_warning("%zu workers and processes that they left behind were killed %u s ago "
                            "but have not ended: the supervisor starts without waiting for them",
                            n_left, CLEAR_MS / 1000);
        r = succession_start(&keeper->supervisor);
        if (r == 0)
                keeper_tell_what_is_held(keeper);
        else if (r == SUCCESSION_E_IN_VAIN)
                keeper_give_up(keeper);
}

static void describe_status(int status, char *text, size_t n_text) {
        if (WIFSIGNALED(status))
                snprintf(text, n_text, "was killed by signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
        else
                snprintf(text, n_text, "exited with status %d", WEXITSTATUS(status));
}

static void keeper_log_exit(const Succession *supervisor, const char *how) {
        char doing[192];

        succession_describe(supervisor, doing, sizeof(doing));
        if (supervisor->is_killed)
                log_error("the supervisor %s: restarting it", how);
        else
                log_error("the supervisor %s: restarting it; what it was doing: %s", how, doing);
}

static void keeper_drain_store(Keeper *keeper);

static void keeper_on_supervisor_exit(Keeper *keeper, int status) {
        _cleanup_(freep) char *error = NULL;
        bool was_started;
        char text[96];

        keeper_drain_store(keeper); /* what it gave us before it died is still in the socket */
        was_started = succession_on_exit(&keeper->supervisor, &error);
        workers_kill_all(keeper->workers);
        keeper->clear_by_ms = now_ms() + CLEAR_MS;
        if (keeper_is_quitting(keeper))
                return;
        /* One that ends by its own mistake as soon as it has taken over may do so again and again. */
        if (was_started && succession_doubts(&keeper->supervisor, status))
                (void)held_drop(keeper->held, KEEPER_KEY_LEDGER);

        describe_status(status, text, sizeof(text));
        if (was_started)
                keeper_log_exit(&keeper->supervisor, text);
        else
                log_error("%s", error ? error : text);
        if (succession_plan(&keeper->supervisor) == SUCCESSION_E_IN_VAIN)
                keeper_give_up(keeper);
}

/* ---- from the supervisor --------------------------------------------------- */

static bool keeper_on_ready(Keeper *keeper) {
        if (keeper->supervisor.is_up)
                return false;
        keeper->supervisor.is_up = true;

        if (!keeper->supervisor.is_ready) {
                log_info("serving at %s", listener_path(keeper->listener));
                notify_ready();
        } else {
                log_info("the supervisor is running again");
        }
        keeper->supervisor.is_ready = true;
        return true;
}

static void keeper_on_status(Keeper *keeper, const char *text) {
        if (budget_take(&keeper->statuses, now_ms()))
                notify_status(text);
}

/* Return: false: it broke the rules. */
static bool keeper_on_message(Keeper *keeper, const KeeperMessage *message,
                              int fds[static KEEPER_N_FDS]) {
        switch (message->kind) {
                case KEEPER_READY:
                        return keeper_on_ready(keeper);
                case KEEPER_STATUS:
                        keeper_on_status(keeper, message->text);
                        return true;
                case KEEPER_KEEP:
                        return held_keep(keeper->held, message->text, &fds[0]);
                case KEEPER_DROP:
                        return held_drop(keeper->held, message->text);
                case KEEPER_SPAWN:
                        return workers_spawn(keeper->workers, keeper->settings.config, message, fds,
                                             now_ms());
                case KEEPER_ASSIGN:
                        return workers_assign(keeper->workers, keeper->settings.config, message,
                                              now_ms());
                case KEEPER_KILL:
                        workers_kill(keeper->workers, message->id);
                        return true;
                default:
                        return false;
        }
}

/* The next message. Return: as link_receive(); descriptors are taken or closed. */
static int keeper_receive(Keeper *keeper, bool store_only) {
        int fds[KEEPER_N_FDS], r;
        KeeperMessage message;
        unsigned n_fds;

        r = link_receive(keeper->supervisor.link, &message, fds, &n_fds);
        if (r)
                return r;

        succession_heard(&keeper->supervisor);
        if (store_only && message.kind != KEEPER_KEEP && message.kind != KEEPER_DROP)
                r = 0;
        else if (!keeper_on_message(keeper, &message, fds))
                r = LINK_E_BROKEN;
        /* No supervisor of ours passes what may be slow to close. */
        if (passed_discard(fds, KEEPER_N_FDS) && !budget_take(&keeper->closers, now_ms()))
                r = LINK_E_BROKEN;
        return r;
}

/* A process that it left behind may still send: no more than may be there at once. */
static void keeper_drain_store(Keeper *keeper) {
        for (unsigned i = 0; keeper->supervisor.link && i < MESSAGES_MAX; i++)
                if (keeper_receive(keeper, true) != 0)
                        return;
}

static void keeper_on_link(Keeper *keeper) {
        int r = 0;

        for (unsigned i = 0; r == 0 && i < MESSAGES_A_TURN; i++) {
                if (!budget_take(&keeper->messages, now_ms()))
                        return;
                r = keeper_receive(keeper, false);
        }
        if (r != 0 && r != LINK_E_AGAIN)
                succession_unlink(&keeper->supervisor, r);
}

/* ---- signals --------------------------------------------------------------- */

static bool keeper_is_own(pid_t pid, void *userdata) {
        const Keeper *keeper = userdata;

        return pid == keeper->supervisor.process.pid || workers_has(keeper->workers, pid);
}

/* Those that the orphans leave behind in turn are found by the next look. */
static void keeper_kill_orphans(Keeper *keeper) {
        keeper->n_orphans = orphans_kill(keeper->orphans, keeper_is_own, keeper);
        keeper->orphans_at_ms = keeper->n_orphans ? now_ms() + ORPHANS_MS : NEVER;
}

static void keeper_on_exit(Keeper *keeper, pid_t pid, int status) {
        if (pid == keeper->supervisor.process.pid)
                keeper_on_supervisor_exit(keeper, status);
        else if (workers_has(keeper->workers, pid))
                workers_reaped(keeper->workers, pid, status);
        else
                return; /* an orphan: the next look is planned */
        keeper->orphans_at_ms = 0;
}

/* A user's processes that end faster than they are reaped must not keep us from everything else. */
static void keeper_reap(Keeper *keeper) {
        siginfo_t info = {};
        int status;

        for (unsigned i = 0; i < EXITS_A_TURN; i++) {
                pid_t pid;

                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid) {
                        keeper->has_exits = false;
                        return;
                }
                pid = info.si_pid;

                /* While it is not reaped, its number is its own: end what it left in its group. */
                if (getpgid(pid) == pid)
                        (void)kill(-pid, SIGKILL);
                if (waitpid(pid, &status, 0) == pid)
                        keeper_on_exit(keeper, pid, status);
                info.si_pid = 0;
        }
}

static void keeper_reload(Keeper *keeper) {
        _cleanup_(freep) char *error = NULL;
        int r;

        r = settings_reload(&keeper->settings, &error);
        if (r < 0) {
                log_error("cannot reload the configuration: %s; the old one stays in force",
                          error ? error : strerror(-r));
                return;
        }
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_RELOAD}, keeper->settings.fd);
}

/*
 * A restart leaves everything with systemd for the next keeper: clients notice a pause. A
 * supervisor that is just dead has handed over what it could.
 */
static void keeper_hand_over(Keeper *keeper) {
        log_info("handing over to the next gpuqd");
        keeper->quit_at_ms = now_ms() + KEEPER_HANDOVER_S * 1000u + QUIT_MS;
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_HANDOVER}, -1);
}

static void keeper_end(Keeper *keeper) {
        log_info("ending");
        keeper->quit_at_ms = now_ms() + QUIT_MS;
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_QUIT}, -1);
}

static void keeper_quit(Keeper *keeper) {
        if (keeper_is_quitting(keeper)) {
                log_info("second signal: exiting at once");
                keeper->quit_at_ms = now_ms();
                keeper->is_hurried = true;
                return;
        }

        notify_stopping();
        if (!keeper->supervisor.process.pid)
                workers_kill_all(keeper->workers);
        if (unit_is_restarting())
                keeper_hand_over(keeper);
        else
                keeper_end(keeper);
}

static void keeper_on_signals(Keeper *keeper) {
        struct signalfd_siginfo info;

        while (read(keeper->signals, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGCHLD)
                        keeper->has_exits = true;
                else if (info.ssi_signo == SIGHUP)
                        keeper_reload(keeper);
                else
                        keeper_quit(keeper);
        }
}

/* ---- deadlines ------------------------------------------------------------- */

/* Not before the workers of the last one have ended: until then they may write into arenas. */
static uint64_t keeper_start_at(const Keeper *keeper) {
        uint64_t at = keeper->supervisor.start_at_ms;
        bool is_clear = !workers_count(keeper->workers) && !keeper->n_orphans;

        return is_clear ? at : MAX(at, keeper->clear_by_ms);
}

/* To the supervisor, which has a link and has not sent too much of late. */
static bool keeper_is_listening(const Keeper *keeper, uint64_t now) {
        return !keeper->supervisor.link || budget_free_at(&keeper->messages) <= now;
}

static int keeper_timeout(const Keeper *keeper, uint64_t now) {
        uint64_t at = MIN(keeper->quit_at_ms, succession_due_at(&keeper->supervisor));

        at = MIN(at, keeper->orphans_at_ms);
        at = MIN(at, workers_hear_at(keeper->workers));
        if (!keeper_is_listening(keeper, now))
                at = MIN(at, budget_free_at(&keeper->messages));
        if (!keeper->supervisor.process.pid && !keeper_is_quitting(keeper))
                at = MIN(at, keeper_start_at(keeper));
        if (keeper->watchdog_ms)
                at = MIN(at, keeper->ping_at_ms);
        if (keeper->supervisor.link && link_is_refused(keeper->supervisor.link))
                at = MIN(at, now + LINK_RETRY_MS);
        if (keeper->has_exits)
                at = now;
        if (at == NEVER)
                return -1;
        return at <= now ? 0 : (int)MIN(at - now, (uint64_t)INT_MAX);
}

static void keeper_kill_all(Keeper *keeper, uint64_t now) {
        if (keeper->supervisor.process.pid)
                log_warning("supervisor killed: it had not exited %s",
                            keeper->is_hurried ? "yet" : "in time");
        workers_kill_all(keeper->workers);
        if (keeper->supervisor.process.pid)
                (void)kill(-keeper->supervisor.process.pid, SIGKILL);
        keeper->is_killing = true;
        keeper->quit_at_ms = now + KILLED_MS;
}

/* Whoever waits for our end may take what they had, a folder's lock or a GPU's memory, for free then. */
static void keeper_on_quitting(Keeper *keeper, uint64_t now) {
        if (now >= keeper->quit_at_ms) {
                if (keeper->is_killing)
                        keeper->is_done = true;
                else
                        keeper_kill_all(keeper, now);
        }
        if (!keeper->supervisor.process.pid && !workers_count(keeper->workers) &&
            !keeper->n_orphans)
                keeper->is_done = true;
}

static void keeper_on_deadlines(Keeper *keeper) {
        uint64_t now = now_ms();

        if (keeper->watchdog_ms && now >= keeper->ping_at_ms) {
                notify_alive();
                keeper->ping_at_ms = now + keeper->watchdog_ms;
        }
        if (now >= keeper->orphans_at_ms)
                keeper_kill_orphans(keeper);
        workers_hear_muted(keeper->workers, now);
        succession_on_time(&keeper->supervisor, now);
        if (keeper_is_quitting(keeper))
                keeper_on_quitting(keeper, now);
        else if (!keeper->supervisor.process.pid && !keeper->is_done &&
                 now >= keeper_start_at(keeper))
                keeper_start_supervisor(keeper);
}

/* ---- loop ------------------------------------------------------------------ */

/* Reads the clock once: if it advanced in between, the keeper would neither listen nor wake up. */
int keeper_turn(Keeper *keeper) {
        Link *link = keeper->supervisor.link;
        uint64_t now = now_ms();
        bool is_listening = keeper_is_listening(keeper, now);
        struct pollfd fds[] = {
                {.fd = keeper->signals, .events = POLLIN},
                {.fd = link && is_listening ? link_fd(link) : -1, .events = POLLIN},
                {.fd = workers_fd(keeper->workers), .events = POLLIN},
        };

        if (link && link_is_waiting(link))
                fds[1].events |= POLLOUT;
        if (poll(fds, ARRAY_SIZE(fds), keeper_timeout(keeper, now)) < 0 && errno != EINTR)
                return -errno;

        if (link && (fds[1].revents & POLLOUT || link_is_refused(link)))
                (void)link_flush(link);
        if (fds[1].revents & ~POLLOUT)
                keeper_on_link(keeper);
        if (fds[2].revents)
                workers_on_started(keeper->workers);
        if (fds[0].revents)
                keeper_on_signals(keeper);
        if (keeper->has_exits)
                keeper_reap(keeper);
        keeper_on_deadlines(keeper);
        return keeper->is_done ? KEEPER_E_DONE : 0;
}

int keeper_run(Keeper *keeper) {
        int r;

        do
                r = keeper_turn(keeper);
        while (r == 0);
        return r < 0 ? r : keeper->result;
}

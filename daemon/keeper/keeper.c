/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeper
 *
 * One poll() over the signals and the link to the supervisor, with the nearest
 * of a few deadlines as timeout. The link is read before deadlines are looked
 * at, so that time which the keeper itself lost is not held against the
 * supervisor.
 */

#include "keeper/keeper.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "keeper/identity.h"
#include "keeper/link.h"
#include "keeper/notify.h"
#include "keeper/store.h"
#include "keeper/supervisor.h"
#include "keeper/worker.h"
#include "util/config-seal.h"
#include "util/log.h"

#define DELAY_MIN_MS 100u /* before a dead supervisor is started again, doubling */
#define DELAY_MAX_MS 5000u
#define DELAY_RESET_MS                                                                             \
        10000u            /* of life, after which its death starts at the shortest delay again */
#define FIRST_TRIES 3u    /* of a supervisor that never came up: then it is the installation */
#define QUIT_MS     5000u /* for clients and workers to end */
#define NEVER       UINT64_MAX
#define STORE_SPARE 256u /* descriptors that the store leaves for everything else */

struct Keeper {
        Options *options;
        Config *config;
        int config_fd; /* the same, sealed: the last that was right, for every supervisor */
        Listener *listener;
        Store *store;
        Workers *workers;
        int signals;

        Link *link;       /* NULL: no supervisor */
        pid_t supervisor; /* 0: none */
        uint64_t started_ms;
        uint64_t heard_ms; /* something from it */
        uint64_t start_at_ms;
        uint64_t delay_ms;
        unsigned n_tries;

        uint64_t watchdog_ms; /* 0: none */
        uint64_t ping_at_ms;
        uint64_t quit_at_ms; /* NEVER: nobody asked */
        bool is_ready;       /* some supervisor was */
        bool is_store_full;  /* told */
        bool is_done;
        int result;
};

DEFINE_CLEANUP(Keeper, keeper_free)
DEFINE_CLEANUP(Config, config_free)

static uint64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool keeper_is_quitting(const Keeper *keeper) {
        return keeper->quit_at_ms != NEVER;
}

/* ---- life ------------------------------------------------------------------ */

/*
 * Every client and arena is a descriptor here, so: as many as we may have. Half of
 * them for the store: a new supervisor gets a duplicate of each, which waits here
 * until it reads.
 */
static size_t keeper_raise_fd_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 0;
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        return limit.rlim_max > STORE_SPARE ? (limit.rlim_max - STORE_SPARE) / 2 : 0;
}

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

int keeper_new(Options *options, Config *config, Listener *listener, Keeper **ret_keeper) {
        _cleanup_(keeper_freep) Keeper *keeper = NULL;
        int r;

        keeper = calloc(1, sizeof(*keeper));
        if (!keeper)
                return -ENOMEM;

        keeper->options = options;
        keeper->listener = listener;
        keeper->signals = keeper->config_fd = -1;
        keeper->quit_at_ms = NEVER;
        keeper->delay_ms = DELAY_MIN_MS;
        keeper->watchdog_ms = notify_watchdog_ms();

        r = store_new(keeper_raise_fd_limit(), &keeper->store);
        if (r < 0)
                return r;
        r = workers_new(options->libexec, options->is_private, &keeper->workers);
        if (r < 0)
                return r;
        r = config_seal(config, &keeper->config_fd);
        if (r < 0)
                return r;
        r = keeper_open_signals(keeper);
        if (r < 0)
                return r;
        /* What a dead worker leaves behind becomes our child, not init's, and is reaped here. */
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);

        keeper->config = config; /* consumed only on success */
        *ret_keeper = TAKE_PTR(keeper);
        return 0;
}

Keeper *keeper_free(Keeper *keeper) {
        if (!keeper)
                return NULL;

        link_free(keeper->link);
        closep(&keeper->signals);
        closep(&keeper->config_fd);
        workers_free(keeper->workers);
        store_free(keeper->store);
        config_free(keeper->config);
        free(keeper);
        return NULL;
}

/* ---- to the supervisor ----------------------------------------------------- */

static void keeper_kill_supervisor(Keeper *keeper, const char *why) {
        if (!keeper->supervisor)
                return;
        log_error("killing the supervisor: %s", why);
        (void)kill(keeper->supervisor, SIGKILL);
}

static void keeper_tell(Keeper *keeper, const KeeperMessage *message, int fd) {
        int r;

        if (!keeper->link)
                return;
        r = link_queue(keeper->link, message, fd);
        if (r < 0)
                keeper_kill_supervisor(keeper, strerror(-r));
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
        (void)store_each(keeper->store, keeper_tell_held, keeper);
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_HELD_END}, -1);
}

/* ---- the supervisor's life ------------------------------------------------- */

static int keeper_try_supervisor(Keeper *keeper) {
        _cleanup_(closep) int peer = -1;
        _cleanup_(freep) char *error = NULL;
        int r;

        r = link_new(&keeper->link, &peer);
        if (r < 0)
                return r;
        r = supervisor_start(keeper->options, keeper->config, peer, keeper->config_fd,
                             &keeper->supervisor, &error);
        if (r < 0) {
                log_error("%s", error ? error : strerror(-r));
                keeper->supervisor = 0;
                keeper->link = link_free(keeper->link);
        }
        return r;
}

static void keeper_plan_restart(Keeper *keeper) {
        if (!keeper->is_ready && ++keeper->n_tries >= FIRST_TRIES) {
                log_error("the supervisor does not come up: giving up");
                keeper->is_done = true;
                keeper->result = -ECHILD;
                return;
        }

        keeper->start_at_ms = now_ms() + keeper->delay_ms;
        keeper->delay_ms = MIN(2 * keeper->delay_ms, DELAY_MAX_MS);
}

static void keeper_start_supervisor(Keeper *keeper) {
        int r;

        keeper->start_at_ms = NEVER;
        r = keeper_try_supervisor(keeper);
        if (r < 0) {
                keeper_plan_restart(keeper);
                return;
        }

        keeper->started_ms = keeper->heard_ms = now_ms();
        keeper_tell_what_is_held(keeper);
}

static void describe_status(int status, char *text, size_t n_text) {
        if (WIFSIGNALED(status))
                snprintf(text, n_text, "was killed by signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
        else
                snprintf(text, n_text, "exited with status %d", WEXITSTATUS(status));
}

static void keeper_drain_store(Keeper *keeper);

static void keeper_on_supervisor_exit(Keeper *keeper, int status) {
        char text[96];

        keeper_drain_store(keeper); /* what it gave us before it died is still in the socket */
        keeper->link = link_free(keeper->link);
        keeper->supervisor = 0;
        workers_kill_all(keeper->workers);
        if (keeper_is_quitting(keeper))
                return;

        describe_status(status, text, sizeof(text));
        log_error("the supervisor %s; starting it again", text);
        if (now_ms() - keeper->started_ms >= DELAY_RESET_MS)
                keeper->delay_ms = DELAY_MIN_MS;
        keeper_plan_restart(keeper);
}

/* ---- from the supervisor --------------------------------------------------- */

static void keeper_on_ready(Keeper *keeper) {
        if (!keeper->is_ready) {
                log_info("serving at %s", listener_path(keeper->listener));
                notify_ready();
        } else {
                log_info("the supervisor is up again");
        }
        keeper->is_ready = true;
}

static bool keeper_on_keep(Keeper *keeper, const KeeperMessage *message, int *fd) {
        int r;

        if (*fd < 0)
                return false;
        r = store_keep(keeper->store, message->text, *fd);
        if (r == STORE_E_KEY)
                return false;
        if (r == 0) {
                *fd = -1;
                return true;
        }

        if (!keeper->is_store_full)
                log_warning("cannot hold more than %zu descriptors; what is beyond them would not "
                            "survive a restart of the supervisor",
                            store_count(keeper->store));
        keeper->is_store_full = true;
        return true;
}

static bool keeper_on_spawn(Keeper *keeper, const KeeperMessage *message,
                            const int fds[static KEEPER_N_FDS]) {
        KeeperMessage answer = {.kind = KEEPER_SPAWNED, .id = message->id};
        _cleanup_(freep) char *error = NULL;
        pid_t pid;
        int r;

        if (fds[KEEPER_N_FDS - 1] < 0)
                return false;
        r = workers_spawn(keeper->workers, keeper->config, message, fds, &pid, &error);
        if (r == 0) {
                answer.pid = pid;
        } else {
                log_error("no worker for uid %u: %s", message->uid, error ? error : strerror(-r));
                answer.kind = KEEPER_EXITED;
                answer.status = 127 << 8;
                strncpy(answer.text, error ? error : strerror(-r), sizeof(answer.text) - 1);
        }
        keeper_tell(keeper, &answer, -1);
        return true;
}

/* Return: false: it broke the rules. */
static bool keeper_on_message(Keeper *keeper, const KeeperMessage *message,
                              int fds[static KEEPER_N_FDS]) {
        switch (message->kind) {
                case KEEPER_READY:
                        keeper_on_ready(keeper);
                        return true;
                case KEEPER_STATUS:
                        notify_status(message->text);
                        return true;
                case KEEPER_KEEP:
                        return keeper_on_keep(keeper, message, &fds[0]);
                case KEEPER_DROP:
                        store_drop(keeper->store, message->text);
                        return true;
                case KEEPER_SPAWN:
                        return keeper_on_spawn(keeper, message, fds);
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

        r = link_receive(keeper->link, &message, fds, &n_fds);
        if (r)
                return r;

        keeper->heard_ms = now_ms();
        if (store_only && message.kind != KEEPER_KEEP && message.kind != KEEPER_DROP)
                r = 0;
        else if (!keeper_on_message(keeper, &message, fds))
                r = LINK_E_BROKEN;
        for (unsigned i = 0; i < KEEPER_N_FDS; i++)
                closep(&fds[i]);
        return r;
}

static void keeper_drain_store(Keeper *keeper) {
        while (keeper->link && keeper_receive(keeper, true) == 0)
                ;
}

static void keeper_on_link(Keeper *keeper) {
        int r;

        do
                r = keeper_receive(keeper, false);
        while (r == 0);
        if (r == LINK_E_AGAIN)
                return;

        /* Its exit, if that is what happened, comes as SIGCHLD; without the link it is of no use. */
        if (r != LINK_E_CLOSED)
                keeper_kill_supervisor(keeper, r < 0 ? strerror(-r) : "it sent nonsense");
        else if (keeper->supervisor)
                (void)kill(keeper->supervisor, SIGKILL);
        keeper->link = link_free(keeper->link);
}

/* ---- signals --------------------------------------------------------------- */

static void keeper_on_exit(Keeper *keeper, pid_t pid, int status) {
        KeeperMessage message = {.kind = KEEPER_EXITED, .status = status};

        if (pid == keeper->supervisor)
                keeper_on_supervisor_exit(keeper, status);
        else if (workers_reaped(keeper->workers, pid, &message.id))
                keeper_tell(keeper, &message, -1);
}

static void keeper_reap(Keeper *keeper) {
        siginfo_t info = {};
        int status;

        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
                pid_t pid = info.si_pid;

                /* While it is not reaped, its number is its own: end what it left in its group. */
                if (getpgid(pid) == pid)
                        (void)kill(-pid, SIGKILL);
                if (waitpid(pid, &status, 0) == pid)
                        keeper_on_exit(keeper, pid, status);
                info.si_pid = 0;
        }
}

/* What the supervisor has been told, or what is bound, holds until the next start. */
static void keeper_hold_fixed(const Keeper *keeper, Config *config) {
        const Config *old = keeper->config;

        if (strcmp(config->socket, old->socket) != 0 || config->device != old->device ||
            config->cpu_devices != old->cpu_devices)
                log_warning("socket, device and cpu_devices stay as they were until a restart");
        config->device = old->device;
        config->cpu_devices = old->cpu_devices;
}

/* The whole of a reload that may fail; the keeper changes only on success. */
static int keeper_read_config(Keeper *keeper, char **ret_error) {
        _cleanup_(config_freep) Config *config = NULL;
        int fd, r;

        r = options_load_config(keeper->options, &config, ret_error);
        if (r < 0)
                return r;
        if (!keeper->options->is_private) {
                r = identity_check(config, ret_error);
                if (r < 0)
                        return r;
        }
        keeper_hold_fixed(keeper, config);
        r = config_seal(config, &fd);
        if (r < 0)
                return r;

        closep(&keeper->config_fd);
        keeper->config_fd = fd;
        config_free(keeper->config);
        keeper->config = TAKE_PTR(config);
        return 0;
}

static void keeper_reload(Keeper *keeper) {
        _cleanup_(freep) char *error = NULL;
        int r;

        r = keeper_read_config(keeper, &error);
        if (r < 0) {
                log_error("the configuration stays as it was: %s", error ? error : strerror(-r));
                return;
        }
        log_info("the configuration was read again");
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_RELOAD}, keeper->config_fd);
}

static void keeper_quit(Keeper *keeper) {
        if (keeper_is_quitting(keeper)) {
                keeper->quit_at_ms = now_ms(); /* asked twice: at once */
                return;
        }

        log_info("ending");
        notify_stopping();
        keeper->quit_at_ms = now_ms() + QUIT_MS;
        keeper_tell(keeper, &(KeeperMessage){.kind = KEEPER_QUIT}, -1);
}

static void keeper_on_signals(Keeper *keeper) {
        struct signalfd_siginfo info;

        while (read(keeper->signals, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGCHLD)
                        keeper_reap(keeper);
                else if (info.ssi_signo == SIGHUP)
                        keeper_reload(keeper);
                else
                        keeper_quit(keeper);
        }
}

/* ---- deadlines ------------------------------------------------------------- */

static uint64_t keeper_silence_at(const Keeper *keeper) {
        return keeper->supervisor ? keeper->heard_ms + KEEPER_SILENCE_S * 1000 : NEVER;
}

static int keeper_timeout(const Keeper *keeper) {
        uint64_t at = MIN(keeper->quit_at_ms, keeper_silence_at(keeper)), now = now_ms();

        if (!keeper->supervisor && !keeper_is_quitting(keeper))
                at = MIN(at, keeper->start_at_ms);
        if (keeper->watchdog_ms)
                at = MIN(at, keeper->ping_at_ms);
        if (at == NEVER)
                return -1;
        return at <= now ? 0 : (int)MIN(at - now, (uint64_t)INT_MAX);
}

static void keeper_on_quitting(Keeper *keeper, uint64_t now) {
        if (now >= keeper->quit_at_ms) {
                if (keeper->supervisor)
                        log_warning("the supervisor did not end within %u s", QUIT_MS / 1000);
                workers_kill_all(keeper->workers);
                if (keeper->supervisor)
                        (void)kill(-keeper->supervisor, SIGKILL);
                keeper->is_done = true;
        }
        if (!keeper->supervisor && !workers_count(keeper->workers))
                keeper->is_done = true;
}

static void keeper_on_deadlines(Keeper *keeper) {
        uint64_t now = now_ms();

        if (keeper->watchdog_ms && now >= keeper->ping_at_ms) {
                notify_alive();
                keeper->ping_at_ms = now + keeper->watchdog_ms;
        }
        if (now >= keeper_silence_at(keeper)) {
                keeper_kill_supervisor(keeper, "it was silent for too long");
                keeper->heard_ms = now;
        }
        if (keeper_is_quitting(keeper))
                keeper_on_quitting(keeper, now);
        else if (!keeper->supervisor && !keeper->is_done && now >= keeper->start_at_ms)
                keeper_start_supervisor(keeper);
}

/* ---- loop ------------------------------------------------------------------ */

int keeper_run(Keeper *keeper) {
        keeper_start_supervisor(keeper);
        while (!keeper->is_done) {
                struct pollfd fds[2] = {
                        {.fd = keeper->signals, .events = POLLIN},
                        {.fd = keeper->link ? link_fd(keeper->link) : -1, .events = POLLIN},
                };

                if (keeper->link && link_is_waiting(keeper->link))
                        fds[1].events |= POLLOUT;
                if (poll(fds, ARRAY_SIZE(fds), keeper_timeout(keeper)) < 0 && errno != EINTR)
                        return -errno;

                if (fds[1].revents & POLLOUT)
                        (void)link_flush(keeper->link);
                if (fds[1].revents & ~POLLOUT)
                        keeper_on_link(keeper);
                if (fds[0].revents)
                        keeper_on_signals(keeper);
                keeper_on_deadlines(keeper);
        }
        return keeper->result;
}

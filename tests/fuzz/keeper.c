/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor that is owned, against the keeper: messages of every kind and length, with forged ids, keys
 * and uids and with descriptors of every kind, while it reads its own messages or does not;
 * workers that start, fail and end; signals and time. No process is started: processes, their ends and
 * systemd are played here.
 */

#include <fcntl.h>
#include <signal.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "input.h"
#include "keeper/keeper.h"
#include "keeper/listener.h"
#include "keeper/orphans.h"
#include "keeper/process.h"
#include "keeper/protocol.h"
#include "keeper/store.h"
#include "util/config-load.h"
#include "util/log.h"

#define PLAY_STEPS_MAX   80u
#define PLAY_WORKERS_MAX 1024u   /* as in keeper/worker.c */
#define PLAY_FIRST_PID   4000001 /* above any that the kernel gives, by default */

typedef struct Play {
        Input input;
        int peer;     /* the supervisor's end of its link; -1: none was started */
        pid_t latest; /* process that was started */
        pid_t supervisor;
        pid_t ended; /* that is to be reaped; 0: none */
        int status;
        int listener;
        unsigned n_workers;
        bool fails; /* what is started from now on */
} Play;

static Play play;

static void play_must(bool is_so) {
        if (!is_so)
                abort();
}

/* ---- processes ------------------------------------------------------------------- */

int __wrap_process_start(ProcessMake make, const void *what, const int *fds, unsigned n_fds,
                         Process *ret_process);
int __wrap_process_check(Process *process, char **ret_error);
int __wrap_kill(pid_t pid, int number);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_orphans_new(Orphans **ret_orphans);
Orphans *__wrap_orphans_free(Orphans *orphans);
size_t __wrap_orphans_kill(const Orphans *orphans, OrphansIsOwn is_own, void *userdata);
int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms);
void __wrap_notify_keep(const char *key, int fd);
void __wrap_notify_drop(const char *key);
int __wrap_listener_fd(const Listener *listener);
const char *__wrap_listener_path(const Listener *listener);
int __wrap_identity_check(const Config *config, char **ret_error);
bool __wrap_unit_is_restarting(void);
bool __wrap_passed_discard(int *fds, size_t n_fds);

/* The supervisor's descriptors are its link, its configuration and its page. */
int __wrap_process_start(ProcessMake make, const void *what, const int *fds, unsigned n_fds,
                         Process *ret_process) {
        for (unsigned i = 0; i < n_fds; ++i)
                play_must(fcntl(fds[i], F_GETFD) >= 0);
        *ret_process = (Process){.pid = ++play.latest, .report = eventfd(1, EFD_CLOEXEC)};
        if (play.supervisor) {
                /* A spare worker has one more; the lookup of its user has none. */
                play_must(n_fds == 0 || n_fds == KEEPER_N_FDS || n_fds == KEEPER_N_FDS + 1);
                play_must(n_fds == 0 || ++play.n_workers <= PLAY_WORKERS_MAX);
                return 0;
        }
        play.supervisor = play.latest;
        play.peer = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
        return 0;
}

int __wrap_process_check(Process *process, char **ret_error) {
        *ret_error = NULL;
        process_finish(process);
        return play.fails ? -ENOENT : 0;
}

int __wrap_kill(pid_t pid, int number) {
        play_must(pid >= PLAY_FIRST_PID || pid <= -PLAY_FIRST_PID);
        return 0;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
        info->si_pid = play.ended;
        return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
        play_must(pid == play.ended);
        play.ended = 0;
        *status = play.status;
        return pid;
}

int __wrap_orphans_new(Orphans **ret_orphans) {
        *ret_orphans = NULL;
        return 0;
}

Orphans *__wrap_orphans_free(Orphans *orphans) {
        return NULL;
}

size_t __wrap_orphans_kill(const Orphans *orphans, OrphansIsOwn is_own, void *userdata) {
        return 0;
}

/* ---- the rest of the machine ----------------------------------------------------- */

/* Time passes by a step of the run alone. */
int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms) {
        return __real_poll(fds, n_fds, 0);
}

void __wrap_notify_keep(const char *key, int fd) {
        play_must(store_is_key(key) && fcntl(fd, F_GETFD) >= 0);
}

void __wrap_notify_drop(const char *key) {
        play_must(store_is_key(key));
}

int __wrap_listener_fd(const Listener *listener) {
        return play.listener;
}

const char *__wrap_listener_path(const Listener *listener) {
        return "fuzz";
}

int __wrap_identity_check(const Config *config, char **ret_error) {
        return 0;
}

bool __wrap_unit_is_restarting(void) {
        return input_below(&play.input, 2);
}

/* At once, so that the run can tell what is left. */
bool __wrap_passed_discard(int *fds, size_t n_fds) {
        for (size_t i = 0; i < n_fds; ++i)
                closep(&fds[i]);
        return false;
}

/* ---- what it sends ----------------------------------------------------------------- */

static int play_some_fd(void) {
        int pair[2];

        switch (input_below(&play.input, 8)) {
                case 0:
                        return open("/dev/null", O_RDWR | O_CLOEXEC);
                case 1:
                        return open("/", O_PATH | O_CLOEXEC);
                case 2:
                        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                                return -1;
                        close(pair[1]);
                        return pair[0];
                case 3:
                        return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
                case 4:
                        return eventfd(0, EFD_CLOEXEC);
                default:
                        return memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        }
}

static void play_send_bytes(const void *data, size_t n_data, size_t n_fds) {
        union {
                char bytes[CMSG_SPACE(8 * sizeof(int))];
                struct cmsghdr align;
        } control = {};
        struct iovec iov = {.iov_base = (void *)data, .iov_len = n_data};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
        struct cmsghdr *cmsg;
        int fds[8];

        if (play.peer < 0)
                return;
        for (size_t i = 0; i < n_fds; ++i)
                fds[i] = play_some_fd();
        if (n_fds) {
                message.msg_control = control.bytes;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg = CMSG_FIRSTHDR(&message);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }
        (void)!sendmsg(play.peer, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        for (size_t i = 0; i < n_fds; ++i)
                close(fds[i]);
}

static void play_text(char text[static 256]) {
        static const char *const texts[] = {"ledger", "arena-1",     "arena-2", "GPU-00000000-1",
                                            "",       "a\nFDNAME=b", "-x",      "../../etc"};
        uint8_t choice = input_u8(&play.input);
        const uint8_t *bytes;
        size_t n;

        if (choice < 200) {
                strcpy(text, texts[choice % 8]);
                return;
        }
        bytes = input_take(&play.input, choice == 255 ? 256 : choice % 64, &n);
        if (n)
                memcpy(text, bytes, n);
        if (choice == 254) /* no end */
                memset(text, 'a', 256);
}

/* As many descriptors as the kind has, in most messages. */
static KeeperMessage play_message(size_t *ret_n_fds) {
        static const uint8_t n_fds[16] = {[KEEPER_KEEP] = 1, [KEEPER_SPAWN] = 3};
        Input *input = &play.input;
        uint8_t choice = input_u8(input), more = input_u8(input);
        KeeperMessage message = {
                .kind = choice < 240 ? KEEPER_READY + choice % 7u : (uint32_t)input_edge(input),
                .id = input_u8(input),
        };

        *ret_n_fds = more < 224 ? n_fds[message.kind % 16] : more % 9u;
        message.uid = more & 1 ? 1000 + more % 4u : (uint32_t)input_edge(input);
        message.device = more & 2 ? 0 : (uint32_t)input_edge(input);
        message.probe = more / 4 % 2u;
        message.spare = more / 8 % 4u;
        message.sms = (Sms){.n = more / 32 * 25u, .is_percent = more / 16 % 2u};
        play_text(message.text);
        return message;
}

static void play_say(void) {
        size_t n_fds;
        KeeperMessage message = play_message(&n_fds);

        play_send_bytes(&message, sizeof(message), n_fds);
}

/* With another id and another key each time. */
static void play_flood(void) {
        unsigned n = input_u8(&play.input) * 2u;
        size_t n_fds;
        KeeperMessage message = play_message(&n_fds);

        for (unsigned i = 0; i < n; ++i) {
                message.id++;
                message.text[0] = message.text[0] ? (char)('a' + i % 26) : '\0';
                play_send_bytes(&message, sizeof(message), n_fds);
        }
}

static void play_noise(void) {
        size_t n = input_u8(&play.input) * 2u;
        const uint8_t *bytes = input_take(&play.input, n, &n);

        play_send_bytes(bytes, n, input_below(&play.input, 9));
}

static void play_read(void) {
        KeeperMessage message;

        for (unsigned i = 0; i < 64 && play.peer >= 0; ++i)
                if (recv(play.peer, &message, sizeof(message), MSG_DONTWAIT) <= 0)
                        return;
}

static void play_hang_up(void) {
        if (play.peer >= 0)
                shutdown(play.peer, (int)input_below(&play.input, 3));
}

/* ---- what happens beside it --------------------------------------------------------- */

static void play_reap(pid_t pid) {
        play.ended = pid;
        play.status = input_below(&play.input, 2) ? (int)input_below(&play.input, 16)
                                                  : (int)input_below(&play.input, 256) << 8;
        if (pid == play.supervisor) {
                play.supervisor = 0;
                closep(&play.peer);
                play.peer = -1;
        }
        raise(SIGCHLD);
}

static void play_end_worker(void) {
        unsigned back = input_u8(&play.input);

        if (play.latest - (pid_t)back >= PLAY_FIRST_PID &&
            play.latest - (pid_t)back != play.supervisor)
                play_reap(play.latest - (pid_t)back);
}

static void play_end_supervisor(void) {
        if (play.supervisor)
                play_reap(play.supervisor);
}

static void play_signal(void) {
        uint8_t choice = input_u8(&play.input);

        raise(choice < 250 ? SIGHUP : SIGTERM);
}

static void play_pass_time(void) {
        static const uint64_t units_ns[] = {1000000, 10000000, 100000000, 1000000000};
        uint8_t choice = input_u8(&play.input);

        clock_advance((uint64_t)(choice / 4) * units_ns[choice % 4]);
}

static void play_change(void) {
        play.fails = input_below(&play.input, 2);
}

typedef void (*PlayStep)(void);

static const PlayStep steps[] = {
        play_say,    play_say,       play_say,       play_say,
        play_say,    play_say,       play_flood,     play_noise,
        play_read,   play_read,      play_hang_up,   play_end_worker,
        play_signal, play_pass_time, play_pass_time, play_end_supervisor,
        play_change,
};

/* ---- a run --------------------------------------------------------------------------- */

static Keeper *play_keeper(Options *options) {
        Config *config;
        Keeper *keeper;
        char *error;

        if (config_load("/dev/null", NULL, &config, &error) != 0 ||
            keeper_new(options, config, NULL, &keeper) != 0)
                abort();
        return keeper;
}

static void play_run(Keeper *keeper) {
        uint8_t choice;
        int r = keeper_turn(keeper); /* starts a supervisor */

        for (unsigned i = 0; r == 0 && i < PLAY_STEPS_MAX && play.input.n; ++i) {
                choice = input_u8(&play.input);
                steps[choice % 128 % ARRAY_SIZE(steps)]();
                if (choice >= 128) /* the next one comes at once */
                        continue;
                r = keeper_turn(keeper);
                play_must(r >= 0);
        }
}

/* Signals that nobody took would be the next run's. */
static void play_drop_signals(void) {
        const struct timespec none = {};
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGHUP);
        sigaddset(&set, SIGTERM);
        while (sigtimedwait(&set, NULL, &none) > 0)
                ;
}

static int play_lowest_fd(void) {
        int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

        close(fd);
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static Options options = {.config = (char *)"/dev/null", .libexec = (char *)"/nonexistent"};
        int fd, listener = play.listener ? play.listener : eventfd(0, EFD_CLOEXEC);
        Keeper *keeper;

        clock_reset();
        log_open("fuzz", 0);
        play = (Play){
                .input = {data, n_data},
                .peer = -1,
                .latest = PLAY_FIRST_PID - 1,
                .listener = listener,
        };
        fd = play_lowest_fd();
        keeper = play_keeper(&options);
        play_run(keeper);
        keeper_free(keeper);
        closep(&play.peer);
        play_drop_signals();
        play_must(play_lowest_fd() == fd);
        return 0;
}

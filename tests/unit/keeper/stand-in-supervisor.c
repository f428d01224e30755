/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for gpuqd-supervisor: does to the keeper what a client of its socket
 * asks for, one command a connection, and answers with what came of it.
 */

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper/protocol.h"
#include "util/activity.h"

typedef struct Held {
        char key[KEEPER_KEY_MAX + 1];
        int fd;
} Held;

static Held held[16];
static unsigned n_held;
static int listener = -1;
static bool is_hanging;
static bool has_left; /* the keeper: who knows the socket can still talk to it */
static int kernel_log = -1;
static char answer[8192];

static void say(const KeeperMessage *message, const int *fds, unsigned n_fds) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(KEEPER_N_FDS * sizeof(int))] = {};
        struct iovec iov = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
        struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

        if (n_fds) {
                struct cmsghdr *cmsg = (struct cmsghdr *)control;

                header.msg_control = control;
                header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
        }
        if (sendmsg(KEEPER_FD, &header, 0) < 0)
                _exit(1);
}

/* The keeper's next message; its descriptor or -1. */
static int hear(KeeperMessage *message) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct iovec iov = {.iov_base = message, .iov_len = sizeof(*message)};
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
        };
        struct cmsghdr *cmsg;
        int fd = -1;

        if (recvmsg(KEEPER_FD, &header, 0) != sizeof(*message))
                _exit(1);
        cmsg = CMSG_FIRSTHDR(&header);
        if (cmsg)
                memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
        return fd;
}

/* Past everything else, to one of these. */
static KeeperMessage hear_kind(KeeperKind one, KeeperKind other) {
        KeeperMessage message;

        do
                hear(&message);
        while (message.kind != one && message.kind != other);
        return message;
}

static void take_over(void) {
        KeeperMessage message;

        for (;;) {
                int fd = hear(&message);

                if (message.kind == KEEPER_LISTENER)
                        listener = fd;
                else if (message.kind == KEEPER_KERNEL_LOG)
                        kernel_log = fd;
                else if (message.kind == KEEPER_HELD && n_held < 16) {
                        snprintf(held[n_held].key, sizeof(held[n_held].key), "%.64s", message.text);
                        held[n_held++].fd = fd;
                } else if (message.kind == KEEPER_HELD)
                        close(fd);
                else if (message.kind == KEEPER_HELD_END)
                        return;
                else
                        _exit(1);
        }
}

static int reports = -1; /* of the last worker */

static void do_spawn(uint32_t id, uint32_t uid, bool probe, bool spare) {
        KeeperMessage message = {.kind = KEEPER_SPAWN,
                                 .id = id,
                                 .uid = uid,
                                 .device = 5,
                                 .probe = probe,
                                 .spare = spare};
        char report[8192] = "";
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
                _exit(1);
        say(&message, (int[]){0, 1, pair[1]}, 3);
        close(pair[1]);
        message = hear_kind(KEEPER_SPAWNED, KEEPER_EXITED);
        if (message.kind == KEEPER_SPAWNED) {
                (void)!recv(pair[0], report, sizeof(report) - 1, 0);
                snprintf(answer, sizeof(answer), "pid %d\n%.8000s", message.pid, report);
        } else {
                snprintf(answer, sizeof(answer), "status %d: %s", message.status, message.text);
        }
        if (reports >= 0)
                close(reports);
        reports = pair[0];
}

/* The answer is what the worker tells of it, or how it ended. */
static void do_assign(uint32_t id, uint32_t uid) {
        const KeeperMessage message = {.kind = KEEPER_ASSIGN, .id = id, .uid = uid};
        struct pollfd fds[] = {{.fd = reports, .events = POLLIN},
                               {.fd = KEEPER_FD, .events = POLLIN}};
        KeeperMessage ended;

        say(&message, NULL, 0);
        if (poll(fds, 2, -1) < 0)
                _exit(1);
        if (recv(reports, answer, sizeof(answer) - 1, MSG_DONTWAIT) > 0)
                return;
        ended = hear_kind(KEEPER_EXITED, KEEPER_EXITED);
        snprintf(answer, sizeof(answer), "status %d: %s", ended.status, ended.text);
}

static void do_about(char **argv) {
        gid_t groups[64];

        snprintf(answer, sizeof(answer), "uid %u groups %d no_new_privs %d args", getuid(),
                 getgroups(64, groups), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        for (argv++; *argv; argv++) {
                strncat(answer, " ", sizeof(answer) - strlen(answer) - 1);
                strncat(answer, *argv, sizeof(answer) - strlen(answer) - 1);
        }
}

static void do_held(void) {
        for (unsigned i = 0; i < n_held; i++) {
                char text[64] = "";

                (void)!pread(held[i].fd, text, sizeof(text) - 1, 0);
                snprintf(answer + strlen(answer), sizeof(answer) - strlen(answer), "%s=%s ",
                         held[i].key, text);
        }
}

static void do_keep(const char *key) {
        KeeperMessage message = {.kind = KEEPER_KEEP};
        char text[64];
        int fd = memfd_create("kept", 0);

        snprintf(text, sizeof(text), "bytes-of-%.40s", key);
        (void)!write(fd, text, strlen(text));
        strncpy(message.text, key, sizeof(message.text) - 1);
        say(&message, &fd, 1);
        close(fd);
}

static void do_nonsense(void) {
        (void)!send(KEEPER_FD, "x", 1, 0);
        pause();
}

static void obey(const char *command, char **argv) {
        KeeperMessage message = {};
        unsigned id = 1000, uid;
        char key[64];

        memset(answer, 0, sizeof(answer));
        if (sscanf(command, "spawn %u %u", &id, &uid) == 2) {
                do_spawn(id, uid, false, false);
        } else if (sscanf(command, "spare %u", &id) == 1) {
                do_spawn(id, 0, false, true);
        } else if (sscanf(command, "assign %u %u", &id, &uid) == 2) {
                do_assign(id, uid);
        } else if (sscanf(command, "probe %u", &id) == 1) {
                do_spawn(id, 0, true, false);
        } else if (sscanf(command, "kill %u", &id) == 1) {
                say(&(KeeperMessage){.kind = KEEPER_KILL, .id = id}, NULL, 0);
                message = hear_kind(KEEPER_EXITED, KEEPER_EXITED);
                snprintf(answer, sizeof(answer), "id %u status %d", message.id, message.status);
        } else if (sscanf(command, "keep %63s", key) == 1) {
                do_keep(key);
        } else if (sscanf(command, "fill %u", &id) == 1) {
                for (unsigned i = 0; i < id; i++) {
                        snprintf(key, sizeof(key), "key-%u", i);
                        do_keep(key);
                }
        } else if (sscanf(command, "drop %63s", key) == 1) {
                message.kind = KEEPER_DROP;
                strncpy(message.text, key, sizeof(message.text) - 1);
                say(&message, NULL, 0);
        } else if (strcmp(command, "about") == 0) {
                do_about(argv);
        } else if (strcmp(command, "held") == 0) {
                do_held();
        } else if (strcmp(command, "log") == 0) {
                (void)!read(kernel_log, answer, sizeof(answer) - 2);
        } else if (strcmp(command, "reload") == 0) {
                hear_kind(KEEPER_RELOAD, KEEPER_RELOAD);
                strcpy(answer, "reloaded");
        } else if (strcmp(command, "inject") == 0) {
                do_keep("x\nMAINPID=1");
                pause();
        } else if (strcmp(command, "socket") == 0) {
                message.kind = KEEPER_KEEP;
                strcpy(message.text, "socket");
                say(&message, &listener, 1);
                pause();
        } else if (strcmp(command, "ready") == 0) {
                say(&(KeeperMessage){.kind = KEEPER_READY}, NULL, 0);
                pause();
        } else if (strcmp(command, "flood") == 0) {
                int memory = memfd_create("flood", MFD_CLOEXEC);

                for (;;) /* and never reads */
                        say(&(KeeperMessage){.kind = KEEPER_SPAWN, .id = id++},
                            (int[]){memory, memory, memory}, KEEPER_N_FDS);
        } else if (strcmp(command, "litter") == 0) {
                int ends[2];

                if (pipe(ends) < 0)
                        _exit(1);
                for (;;)
                        say(&(KeeperMessage){.kind = KEEPER_DROP, .text = "key"}, ends, 1);
        } else if (strcmp(command, "nonsense") == 0) {
                do_nonsense();
        } else if (sscanf(command, "busy %u", &uid) == 1) {
                if (activity_adopt(KEEPER_ACTIVITY_FD) < 0)
                        _exit(1);
                activity_begin(ACTIVITY_REQUEST, 10, uid, 5);
                activity_sample(1); /* since the machine started */
                do_nonsense();
        } else if (strcmp(command, "rubbish") == 0) {
                if (activity_adopt(KEEPER_ACTIVITY_FD) < 0)
                        _exit(1);
                memset(activity_page, 0xff, ACTIVITY_PAGE_BYTES);
                if (ftruncate(KEEPER_ACTIVITY_FD, 0) == 0)
                        _exit(1);
                do_nonsense();
        } else if (strcmp(command, "hang") == 0) {
                is_hanging = true; /* once it has answered */
        } else if (strcmp(command, "leave") == 0) {
                close(KEEPER_FD);
                has_left = true;
        } else if (strcmp(command, "die") == 0) {
                _exit(9);
        } else if (strcmp(command, "heirs") == 0) { /* it ends, and a child of its sends on */
                if (fork() == 0)
                        for (;;)
                                say(&(KeeperMessage){.kind = KEEPER_DROP, .text = "key"}, NULL, 0);
                _exit(9);
        } else if (strcmp(command, "killed") == 0) {
                raise(SIGKILL);
        }
        strcat(answer, ".");
}

static void serve_one(char **argv) {
        char command[256] = "";
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
                return;
        if (recv(fd, command, sizeof(command) - 1, 0) > 0) {
                obey(command, argv);
                (void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
        }
        close(fd);
        while (is_hanging)
                pause();
}

int main(int argc, char **argv) {
        KeeperMessage message;

        take_over();
        say(&(KeeperMessage){.kind = KEEPER_READY}, NULL, 0);
        for (;;) {
                struct pollfd fds[] = {{.fd = has_left ? -1 : KEEPER_FD, .events = POLLIN},
                                       {.fd = listener, .events = POLLIN}};

                if (poll(fds, 2, -1) < 0)
                        return 1;
                if (fds[0].revents) {
                        hear(&message);
                        if (message.kind == KEEPER_QUIT)
                                return 0;
                }
                if (fds[1].revents)
                        serve_one(argv);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves many connections at once, so that one that is slow or silent delays nobody. When there are
 * too many, the oldest one that does not wait for its text makes room: whoever sends a request at
 * once is served, whatever others do.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "http-request.h"
#include "http-state.h"
#include "util/list.h"
#include "util/macro.h"

#define HTTP_REQUEST_MAX 8192u
#define HTTP_TEXT_MAX    (4u << 20)
#define HTTP_DRAIN_MAX   65536u
#define HTTP_PEERS_MAX   64u
#define HTTP_ACCEPT_MAX  16u /* connections in one turn */
#define HTTP_PAUSE_MS    100 /* after the machine had no descriptor or memory */

/* What is sent to all peers that waited for it. */
typedef struct Text {
        unsigned n_users;
        size_t size;
        char data[];
} Text;

typedef enum PeerState {
        PEER_READING, /* its request */
        PEER_WAITING, /* for the text */
        PEER_SENDING,
        PEER_DRAINING, /* until it closes: bytes left unread would make the kernel drop the answer */
} PeerState;

typedef struct Peer {
        TAILQ_ENTRY(Peer) link; /* server->peers */
        int fd;
        PeerState state;
        int64_t until_ms; /* READING, SENDING, DRAINING */
        bool is_asked;    /* WAITING: the child makes the text for it */
        char request[HTTP_REQUEST_MAX + 1];
        size_t n_request;
        char head[256];
        size_t n_head;
        Text *text;
        size_t n_sent; /* of head and text */
        size_t n_drained;
} Peer;

typedef struct Server {
        const Http *http;
        TAILQ_HEAD(, Peer) peers; /* the oldest first */
        size_t n_peers;
        pid_t child; /* makes a text; 0: none */
        int child_fd;
        int64_t child_until_ms;
        int64_t accept_ms; /* not before */
        char *data;        /* of the child */
        size_t n_data;
        struct pollfd
                polls[3 + HTTP_PEERS_MAX]; /* signals, listener, child, peers in their order */
} Server;

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- texts ----------------------------------------------------------------------- */

static Text *text_new(const char *data, size_t size) {
        Text *text = malloc(sizeof(*text) + size);

        if (!text)
                return NULL;
        text->n_users = 1;
        text->size = size;
        memcpy(text->data, data, size);
        return text;
}

static void text_unref(Text *text) {
        if (text && --text->n_users == 0)
                free(text);
}

/* ---- one connection -------------------------------------------------------------- */

static void peer_free(Server *server, Peer *peer) {
        TAILQ_REMOVE(&server->peers, peer, link);
        server->n_peers--;
        text_unref(peer->text);
        shutdown(peer->fd, SHUT_RDWR); /* a child that makes a text has it open, too */
        close(peer->fd);
        free(peer);
}

static const char *status_words(int status) {
        switch (status) {
                case 200:
                        return "OK";
                case 404:
                        return "Not Found";
                case 405:
                        return "Method Not Allowed";
                case 408:
                        return "Request Timeout";
                case 431:
                        return "Request Header Fields Too Large";
                case 503:
                        return "Service Unavailable";
                default:
                        return "Bad Request";
        }
}

/* Return: false: the peer has gone. */
static bool peer_send(Server *server, Peer *peer) {
        ssize_t n;

        while (peer->n_sent < peer->n_head + peer->text->size) {
                bool is_head = peer->n_sent < peer->n_head;
                const char *data = is_head ? peer->head + peer->n_sent
                                           : peer->text->data + (peer->n_sent - peer->n_head);
                size_t end = is_head ? peer->n_head : peer->n_head + peer->text->size;

                n = send(peer->fd, data, end - peer->n_sent, MSG_NOSIGNAL);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        return true;
                if (n < 0) {
                        peer_free(server, peer);
                        return false;
                }
                peer->n_sent += (size_t)n;
        }
        shutdown(peer->fd, SHUT_WR);
        peer->state = PEER_DRAINING;
        return true;
}

/* Return: as peer_send(). */
static bool peer_reply(Server *server, Peer *peer, int status, Text *text) {
        peer->state = PEER_SENDING;
        peer->until_ms = now_ms() + HTTP_PEER_MS;
        peer->text = text;
        text->n_users++;
        peer->n_head =
                (size_t)snprintf(peer->head, sizeof(peer->head),
                                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                                 "Connection: close\r\n\r\n",
                                 status, status_words(status),
                                 status == 200 ? server->http->type : "text/plain; charset=utf-8",
                                 text->size, status == 405 ? "Allow: GET\r\n" : "");
        return peer_send(server, peer);
}

static bool peer_refuse(Server *server, Peer *peer, int status) {
        char words[80];
        int n = snprintf(words, sizeof(words), "%s\n",
                         status == 404 ? "the metrics are at /metrics" : status_words(status));
        Text *text = text_new(words, (size_t)n);
        bool is_there;

        if (!text) {
                peer_free(server, peer);
                return false;
        }
        is_there = peer_reply(server, peer, status, text);
        text_unref(text);
        return is_there;
}

static bool peer_read(Server *server, Peer *peer) {
        ssize_t n;
        int status;

        n = recv(peer->fd, peer->request + peer->n_request, HTTP_REQUEST_MAX - peer->n_request, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return true;
        if (n <= 0) {
                peer_free(server, peer);
                return false;
        }
        peer->n_request += (size_t)n;
        peer->request[peer->n_request] = '\0';
        if (!strstr(peer->request, "\r\n\r\n"))
                return peer->n_request < HTTP_REQUEST_MAX || peer_refuse(server, peer, 431);
        status = http_request_check(server->http->target, peer->request);
        if (status != 200)
                return peer_refuse(server, peer, status);
        peer->state = PEER_WAITING;
        return true;
}

static bool peer_drain(Server *server, Peer *peer) {
        char rest[4096];
        ssize_t n = recv(peer->fd, rest, sizeof(rest), 0);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return true;
        peer->n_drained += n > 0 ? (size_t)n : 0;
        if (n > 0 && peer->n_drained < HTTP_DRAIN_MAX)
                return true;
        peer_free(server, peer);
        return false;
}

static void peer_act(Server *server, Peer *peer) {
        if (peer->state == PEER_READING)
                peer_read(server, peer);
        else if (peer->state == PEER_SENDING)
                peer_send(server, peer);
        else if (peer->state == PEER_DRAINING)
                peer_drain(server, peer);
}

static void peer_is_late(Server *server, Peer *peer) {
        if (peer->state == PEER_READING)
                peer_refuse(server, peer, 408);
        else
                peer_free(server, peer);
}

/* ---- the text -------------------------------------------------------------------- */

static _Noreturn void child_run(const Http *http, int fd) {
        FILE *stream = fdopen(fd, "w");
        int r;

        sigprocmask(SIG_SETMASK, &http->saved, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!stream)
                _exit(1);
        r = http->answer(stream, http->userdata);
        if (fclose(stream) != 0)
                _exit(1);
        _exit(r ? 1 : 0);
}

/* To all that were there when it began. */
static void server_reply(Server *server, int status, const char *data, size_t size) {
        Text *text = text_new(data, size);
        Peer *peer, *next;

        TAILQ_FOREACH_SAFE (peer, &server->peers, link, next) {
                if (peer->state != PEER_WAITING || !peer->is_asked)
                        continue;
                if (text)
                        peer_reply(server, peer, status, text);
                else
                        peer_free(server, peer);
        }
        text_unref(text);
}

static void server_reply_words(Server *server, const char *words) {
        char line[160];
        int n = snprintf(line, sizeof(line), "%s\n", words);

        server_reply(server, 503, line, MIN((size_t)n, sizeof(line) - 1));
}

/* Return: how it ended. */
static int server_end_child(Server *server, bool kills) {
        int outcome = 0;

        if (kills)
                kill(server->child, SIGKILL);
        while (waitpid(server->child, &outcome, 0) < 0 && errno == EINTR)
                ;
        close(server->child_fd);
        server->child_fd = -1;
        server->child = 0;
        return outcome;
}

static void server_ask(Server *server) {
        int fds[2] = {-1, -1};
        pid_t pid = -1;
        Peer *peer;
        bool is_wanted = false;

        TAILQ_FOREACH (peer, &server->peers, link) {
                peer->is_asked = peer->state == PEER_WAITING;
                is_wanted |= peer->is_asked;
        }
        if (!is_wanted)
                return;
        if (pipe2(fds, O_CLOEXEC) == 0)
                pid = fork();
        if (pid == 0)
                child_run(server->http, fds[1]);
        if (pid < 0) {
                server_reply_words(server, strerror(errno));
                closep(&fds[0]);
                closep(&fds[1]);
                return;
        }
        close(fds[1]);
        server->child = pid;
        server->child_fd = fds[0];
        server->child_until_ms = now_ms() + HTTP_ANSWER_MS;
        server->n_data = 0;
}

static void server_hear_child(Server *server) {
        ssize_t n;
        int outcome;

        if (server->n_data == HTTP_TEXT_MAX) {
                server_end_child(server, true);
                server_reply_words(server, strerror(EFBIG));
                return;
        }
        n = read(server->child_fd, server->data + server->n_data, HTTP_TEXT_MAX - server->n_data);
        if (n < 0 && errno == EINTR)
                return;
        server->n_data += n > 0 ? (size_t)n : 0;
        if (n > 0)
                return;
        outcome = server_end_child(server, n < 0);
        if (outcome && !server->n_data)
                server_reply_words(server, "gpuq ended unexpectedly");
        else
                server_reply(server, outcome ? 503 : 200, server->data, server->n_data);
}

static void server_child_is_late(Server *server) {
        server_end_child(server, true);
        server_reply_words(server, "gpuqd did not answer in time");
}

/* ---- new connections -------------------------------------------------------------- */

static void server_make_room(Server *server) {
        Peer *peer;

        if (server->n_peers < HTTP_PEERS_MAX)
                return;
        TAILQ_FOREACH (peer, &server->peers, link)
                if (peer->state != PEER_WAITING)
                        break;
        if (peer)
                peer_free(server, peer);
}

static int server_add(Server *server, int fd) {
        Peer *peer = calloc(1, sizeof(*peer));

        if (!peer) {
                close(fd);
                return -ENOMEM;
        }
        peer->fd = fd;
        peer->until_ms = now_ms() + HTTP_PEER_MS;
        TAILQ_INSERT_TAIL(&server->peers, peer, link);
        server->n_peers++;
        peer_read(server, peer); /* its request may be there */
        return 0;
}

/* A client that has gone is no reason to end, nor is a machine that lacks something for a moment. */
static int server_skip(Server *server, int error) {
        switch (error) {
                case EAGAIN:
                case EINTR:
                case ECONNABORTED:
                        return 0;
                case EMFILE:
                case ENFILE:
                case ENOBUFS:
                case ENOMEM:
                        server->accept_ms = now_ms() + HTTP_PAUSE_MS;
                        return 0;
                default:
                        return -error;
        }
}

/* Return: false: all of them wait for the text, which is on its way. */
static bool server_has_room(const Server *server) {
        const Peer *peer;

        TAILQ_FOREACH (peer, &server->peers, link)
                if (peer->state != PEER_WAITING)
                        return true;
        return server->n_peers < HTTP_PEERS_MAX;
}

static int server_accept(Server *server) {
        int fd;

        for (unsigned i = 0; i < HTTP_ACCEPT_MAX && server_has_room(server); i++) {
                fd = accept4(server->http->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd < 0)
                        return server_skip(server, errno);
                server_make_room(server);
                if (server_add(server, fd) < 0)
                        return server_skip(server, ENOMEM);
        }
        return 0;
}

/* ---- turns ------------------------------------------------------------------------- */

/* Return: when something is due although nothing happens; INT64_MAX: never. */
static int64_t server_prepare(Server *server, size_t *ret_n) {
        bool accepts = server_has_room(server) && now_ms() >= server->accept_ms;
        int64_t due_ms = server_has_room(server) && !accepts ? server->accept_ms : INT64_MAX;
        const Peer *peer;
        size_t n = 0;

        server->polls[n++] = (struct pollfd){.fd = server->http->signal_fd, .events = POLLIN};
        server->polls[n++] =
                (struct pollfd){.fd = accepts ? server->http->fd : -1, .events = POLLIN};
        server->polls[n++] = (struct pollfd){.fd = server->child_fd, .events = POLLIN};
        if (server->child)
                due_ms = MIN(due_ms, server->child_until_ms);
        TAILQ_FOREACH (peer, &server->peers, link) {
                bool waits = peer->state == PEER_WAITING;

                server->polls[n++] = (struct pollfd){
                        .fd = waits ? -1 : peer->fd,
                        .events = peer->state == PEER_SENDING ? POLLOUT : POLLIN,
                };
                if (!waits)
                        due_ms = MIN(due_ms, peer->until_ms);
        }
        *ret_n = n;
        return due_ms;
}

static void server_act(Server *server) {
        const struct pollfd *polled = &server->polls[3];
        int64_t now = now_ms();
        Peer *peer, *next;

        TAILQ_FOREACH_SAFE (peer, &server->peers, link, next) {
                if (polled->revents)
                        peer_act(server, peer);
                else if (peer->state != PEER_WAITING && now >= peer->until_ms)
                        peer_is_late(server, peer);
                polled++;
        }
        if (server->child && server->polls[2].revents)
                server_hear_child(server);
        else if (server->child && now >= server->child_until_ms)
                server_child_is_late(server);
}

static int server_turn(Server *server) {
        int64_t due_ms;
        size_t n;

        if (!server->child)
                server_ask(server);
        due_ms = server_prepare(server, &n);
        if (poll(server->polls, n,
                 due_ms == INT64_MAX ? -1 : (int)MAX(due_ms - now_ms(), INT64_C(0))) < 0)
                return errno == EINTR ? 0 : -errno;
        if (server->polls[0].revents)
                return -EINTR;
        server_act(server);
        return server->polls[1].revents ? server_accept(server) : 0;
}

int http_serve(Http *http, const char *path, const char *type, HttpAnswer answer, void *userdata) {
        Server server = {.http = http, .child_fd = -1, .data = malloc(HTTP_TEXT_MAX)};
        int r;

        if (!server.data)
                return -ENOMEM;
        TAILQ_INIT(&server.peers);
        http->target = path;
        http->type = type;
        http->answer = answer;
        http->userdata = userdata;
        do
                r = server_turn(&server);
        while (r == 0);
        if (server.child)
                server_end_child(&server, true);
        while (!TAILQ_EMPTY(&server.peers))
                peer_free(&server, TAILQ_FIRST(&server.peers));
        free(server.data);
        return r == -EINTR ? 0 : r;
}

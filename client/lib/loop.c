/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop
 */

#include "loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "error.h"

static int loop_add(int epoll_fd, int fd) {
        struct epoll_event event = {.events = EPOLLIN};

        return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int loop_watch(gpuq_client *client) {
        client->epolling_out = false;
        return client->epoll_fd < 0 ? 0 : loop_add(client->epoll_fd, wire_fd(client->wire));
}

void loop_unwatch(gpuq_client *client) {
        if (client->epoll_fd >= 0 && client->wire)
                (void)epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, wire_fd(client->wire), NULL);
}

int loop_watch_timer(gpuq_client *client) {
        if (client->epoll_fd < 0 || client->resume.timer_fd < 0)
                return 0;

        return loop_add(client->epoll_fd, client->resume.timer_fd);
}

static bool loop_wants_out(const gpuq_client *client) {
        return !client->deaf && client->wire && wire_wants_socket(client->wire);
}

void loop_update(gpuq_client *client) {
        bool out = loop_wants_out(client);
        struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0)};

        if (client->epoll_fd < 0 || client->epolling_out == out || !client->wire)
                return;

        if (epoll_ctl(client->epoll_fd, EPOLL_CTL_MOD, wire_fd(client->wire), &event) == 0)
                client->epolling_out = out;
}

void loop_close(gpuq_client *client) {
        closep(&client->epoll_fd);
        closep(&client->notify_fd);
        client->epoll_fd = client->notify_fd = -1;
}

/* What there is to poll now. Return: 0, or a negative errno. */
static int loop_fill(gpuq_client *client) {
        int r;

        r = loop_add(client->epoll_fd, client->notify_fd);
        if (r == 0 && client->wire)
                r = loop_watch(client);
        return r == 0 ? loop_watch_timer(client) : r;
}

static int loop_open(gpuq_client *client) {
        int r;

        client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (client->epoll_fd < 0)
                return error_system("epoll_create1");

        client->notify_fd = eventfd(!TAILQ_EMPTY(&client->callbacks), EFD_CLOEXEC | EFD_NONBLOCK);
        if (client->notify_fd < 0) {
                r = error_system("eventfd");
                loop_close(client);
                return r;
        }

        r = loop_fill(client);
        if (r < 0) {
                loop_close(client);
                return error_set(GPUQ_E_SYSTEM, "epoll_ctl: %s", strerror(-r));
        }

        loop_update(client);
        client_arm(client);
        return 0;
}

int gpuq_client_fd(gpuq_client *client) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        r = client->epoll_fd >= 0 ? 0 : loop_open(client);
        return client_leave(client, r < 0 ? r : client->epoll_fd);
}

int gpuq_client_events(gpuq_client *client) {
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;

        return client_leave(client, POLLIN | (loop_wants_out(client) ? POLLOUT : 0));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop
 */

#include "loop.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "error.h"

void loop_init(Loop *loop) {
        *loop = (Loop){.epoll_fd = -1, .notify_fd = -1, .timer_fd = -1, .bell_fd = -1};
}

static int loop_add(const Loop *loop, int fd) {
        struct epoll_event event = {.events = EPOLLIN};

        if (loop->epoll_fd < 0 || fd < 0)
                return 0;

        return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int loop_watch(Loop *loop, Wire *wire) {
        loop->is_polled_out = false;
        return loop_add(loop, wire_fd(wire));
}

void loop_unwatch(Loop *loop, Wire *wire) {
        if (loop->epoll_fd >= 0 && wire)
                (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, wire_fd(wire), NULL);
}

void loop_poll_out(Loop *loop, Wire *wire, bool out) {
        struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0)};

        if (loop->epoll_fd < 0 || loop->is_polled_out == out || !wire)
                return;

        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, wire_fd(wire), &event) == 0)
                loop->is_polled_out = out;
}

void loop_close(Loop *loop) {
        closep(&loop->epoll_fd);
        closep(&loop->notify_fd);
        loop->epoll_fd = loop->notify_fd = -1;
}

void loop_finish(Loop *loop) {
        loop_close(loop);
        closep(&loop->timer_fd);
        closep(&loop->bell_fd);
        loop->timer_fd = loop->bell_fd = -1;
}

/* What there is to poll now. Return: 0, or a negative errno. */
static int loop_fill(Loop *loop, Wire *wire) {
        int r;

        r = loop_add(loop, loop->notify_fd);
        if (r == 0 && wire)
                r = loop_watch(loop, wire);
        if (r == 0)
                r = loop_add(loop, loop->bell_fd);
        return r == 0 ? loop_add(loop, loop->timer_fd) : r;
}

int loop_open(Loop *loop, Wire *wire) {
        int r;

        loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll_fd < 0)
                return error_system("epoll_create1");

        loop->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (loop->notify_fd < 0) {
                r = error_system("eventfd");
                loop_close(loop);
                return r;
        }

        r = loop_fill(loop, wire);
        if (r < 0) {
                loop_close(loop);
                return error_set(GPUQ_E_SYSTEM, "epoll_ctl: %s", strerror(-r));
        }
        return 0;
}

int loop_set_bell(Loop *loop, int fd) {
        int r;

        if (loop->bell_fd >= 0 && loop->epoll_fd >= 0) /* a child may hold a copy of it */
                (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->bell_fd, NULL);
        closep(&loop->bell_fd);
        loop->bell_fd = fd;
        r = loop_add(loop, fd);
        if (r < 0) {
                close(fd);
                loop->bell_fd = -1;
        }
        return r;
}

/* ---- timer ------------------------------------------------------------------------- */

int loop_make_timer(Loop *loop) {
        if (loop->timer_fd >= 0)
                return 0;

        loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (loop->timer_fd < 0)
                return -errno;

        return loop_add(loop, loop->timer_fd);
}

void loop_set_timer(Loop *loop, int64_t at_us) {
        struct itimerspec at = {
                .it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000},
        };

        if (loop->timer_fd >= 0)
                (void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- notifying ------------------------------------------------------------------------ */

void loop_notify(Loop *loop) {
        if (loop->notify_fd >= 0)
                eventfd_write(loop->notify_fd, 1);
}

void loop_notified(Loop *loop) {
        eventfd_t n;

        loop->is_notified = false;
        if (loop->notify_fd >= 0)
                eventfd_read(loop->notify_fd, &n);
}

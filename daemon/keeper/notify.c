/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify
 *
 * See notify.h.
 */

#include "keeper/notify.h"

#include "util/macro.h"

#if HAVE_SYSTEMD
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

static bool notify_is_listener(int fd) {
        return sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0;
}

/* What else there is was left by a keeper before us. */
int notify_take_socket(int *ret_fd) {
        int n = sd_listen_fds(0), found = -1;

        if (n < 0)
                return n;
        for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
                if (!notify_is_listener(fd))
                        continue;
                if (found >= 0)
                        return -EINVAL;
                found = fd;
        }
        if (found < 0)
                return n == 1 ? -EINVAL : NOTIFY_E_NONE;

        *ret_fd = found;
        return 0;
}

int notify_take_held(NotifyHeld visit, void *userdata) {
        char **names = NULL;
        int n = sd_listen_fds_with_names(1, &names);

        if (n < 0)
                return n;
        for (int i = 0; i < n; i++) {
                if (!notify_is_listener(SD_LISTEN_FDS_START + i))
                        visit(names[i], SD_LISTEN_FDS_START + i, userdata);
                free(names[i]);
        }
        free(names);
        return 0;
}

/* Without FDPOLL=0 systemd would drop a socket as soon as its other end hangs up. */
void notify_keep(const char *key, int fd) {
        char line[128];

        snprintf(line, sizeof(line), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", key);
        (void)sd_pid_notify_with_fds(0, 0, line, &fd, 1);
}

void notify_drop(const char *key) {
        (void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", key);
}

void notify_ready(void) {
        (void)sd_notify(0, "READY=1");
}

void notify_status(const char *text) {
        char line[256];
        size_t n = 0;

        /* A line break would begin another assignment. */
        for (; text[n] && n < sizeof(line) - 1; n++)
                line[n] = (unsigned char)text[n] < ' ' ? ' ' : text[n];
        line[n] = '\0';
        (void)sd_notifyf(0, "STATUS=%s", line);
}

void notify_stopping(void) {
        (void)sd_notify(0, "STOPPING=1");
}

uint64_t notify_watchdog_ms(void) {
        uint64_t interval_us = 0;

        if (sd_watchdog_enabled(0, &interval_us) <= 0)
                return 0;
        return MAX(interval_us / 2000, (uint64_t)1); /* half of it, as systemd advises */
}

void notify_alive(void) {
        (void)sd_notify(0, "WATCHDOG=1");
}
#else
int notify_take_socket(int *ret_fd) {
        return NOTIFY_E_NONE;
}

int notify_take_held(NotifyHeld visit, void *userdata) {
        return 0;
}

void notify_keep(const char *key, int fd) {
}

void notify_drop(const char *key) {
}

void notify_ready(void) {
}

void notify_status(const char *text) {
}

void notify_stopping(void) {
}

uint64_t notify_watchdog_ms(void) {
        return 0;
}

void notify_alive(void) {
}
#endif

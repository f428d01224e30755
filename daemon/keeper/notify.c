/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notify
 *
 * See notify.h.
 */

#include "keeper/notify.h"

#include "util/macro.h"

#if HAVE_SYSTEMD
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

int notify_take_socket(int *ret_fd) {
        int n = sd_listen_fds(1);

        if (n < 0)
                return n;
        if (n == 0)
                return NOTIFY_E_NONE;
        if (n != 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, NULL, 0) <= 0)
                return -EINVAL;

        *ret_fd = SD_LISTEN_FDS_START;
        return 0;
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

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_NOTIFY_H
#define GPUQ_KEEPER_NOTIFY_H

/*
 * Notify
 *
 * What gpuqd and systemd tell each other. Without systemd, or in a build without
 * libsystemd, nothing is there and nothing is told.
 */

#include <stdint.h>

enum {
        _NOTIFY_E_SUCCESS,
        NOTIFY_E_NONE,
};

/** notify_take_socket() - the one passed by activation. Return: 0, NOTIFY_E_NONE, or -EINVAL if it is no such socket. */
int notify_take_socket(int *ret_fd);
/** notify_ready() - up. */
void notify_ready(void);
/** notify_status() - a line for `systemctl status`. */
void notify_status(const char *text);
/** notify_stopping() - on the way down. */
void notify_stopping(void);
/** notify_watchdog_ms() - how often systemd wants to hear notify_alive(); 0: never. */
uint64_t notify_watchdog_ms(void);
/** notify_alive() - ping. */
void notify_alive(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_NOTIFY_H
#define GPUQ_KEEPER_NOTIFY_H

/*
 * Notify
 *
 * Messages between gpuqd and systemd. Without systemd, or in a build without
 * libsystemd, these functions do nothing.
 */

#include <stdint.h>

enum {
        _NOTIFY_E_SUCCESS,
        NOTIFY_E_NONE,
};

/** notify_take_socket() - the one passed by activation. Return: 0, NOTIFY_E_NONE, or -EINVAL if what was passed is no such socket. */
int notify_take_socket(int *ret_fd);
/** NotifyHeld: a descriptor that we left with systemd, its to take. */
typedef void (*NotifyHeld)(const char *key, int fd, void *userdata);

/** notify_take_held() - take the descriptors that a previous keeper stored; after notify_take_socket(). Return: 0 or a negative errno. */
int notify_take_held(NotifyHeld visit, void *userdata);
/** notify_keep() - store a descriptor in systemd for the next keeper. */
void notify_keep(const char *key, int fd);
/** notify_drop() - remove a stored descriptor. */
void notify_drop(const char *key);
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

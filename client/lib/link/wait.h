/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_WAIT_H
#define GPUQ_LINK_WAIT_H

/*
 * Wait
 *
 * How threads wait for messages of the daemon: one leads, the others follow (client.h).
 */

#include "client.h"

/* Is the condition met? Called with the lock, again after each turn; may give up the lock. */
typedef bool (*ClientDone)(gpuq_client *client, void *userdata);

/**
 * client_wait() - read and write until @done, until the deadline, or until the connection ends
 * @deadline_us: of client_now_us(); CLIENT_NOW: poll once
 *
 * Gives up the lock while it waits. Return: 0; GPUQ_E_AGAIN (also after a signal
 * handler ran, if interruptible); or why the connection ended. No error text is set.
 */
int client_wait(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                bool interruptible);
/**
 * client_wait_word() - the same for a job whose completion word may change first
 * @word: polled before the thread sleeps; @done must check it too. NULL: there is none
 */
int client_wait_word(gpuq_client *client, ClientDone done, void *userdata, int64_t deadline_us,
                     bool interruptible, const uint32_t *word, uint32_t value);
/** client_make_room() - wait, bounded, until at most @n_bytes wait to be sent. Return: 0, GPUQ_E_AGAIN, … */
int client_make_room(gpuq_client *client, size_t n_bytes, int timeout_ms);

#endif

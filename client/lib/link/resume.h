/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_RESUME_H
#define GPUQ_LINK_RESUME_H

/*
 * Resume
 *
 * The daemon's supervisor may die and be started again. The client's socket ends
 * then without an error message, and the client connects again to the same path, asks
 * for its session, and sends again what is unfinished (retell.h). Waiting threads go
 * on waiting; requests and jobs of the meantime are kept and sent then.
 *
 *     CONNECTED -> HELLO -> CONNECTED
 *              \   ^  |
 *               v  |  v
 *               LATER       -> the client fails, from HELLO and LATER
 *
 * There is no thread for it: the leading thread (client.h) reconnects, or the
 * user's event loop, woken by a timer.
 */

#include "client.h"

/** resume_allow() - the client has a session, to be resumed at @path. Return: 0, or GPUQ_E_SYSTEM. */
int resume_allow(gpuq_client *client, const char *path);

/** resume_lost() - the socket ended without an error message. Return: false: the client ends too. */
bool resume_lost(gpuq_client *client);
/** resume_turn() - the timer expired, or a thread wants to read while there is no socket. */
void resume_turn(gpuq_client *client);
/** resume_answered() - the reply to the client's Hello arrived. */
void resume_answered(gpuq_client *client, const Gpuq__V1__Reply *reply);

#endif

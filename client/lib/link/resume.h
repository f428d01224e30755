/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_RESUME_H
#define GPUQ_LINK_RESUME_H

/*
 * Resume
 *
 * The daemon's supervisor may die and be started again. The client's socket ends
 * then without a last word, and the client connects again to the same path, asks
 * for its session, and says again what is unfinished (retell.h). Who waits goes on
 * waiting; what is asked or submitted meanwhile is only noted, and said then.
 *
 *     CONNECTED -> HELLO -> CONNECTED
 *              \   ^  |
 *               v  |  v
 *               LATER       -> the client fails, from HELLO and LATER
 *
 * There is no thread for it: whoever leads (client.h) does what is to be done, and
 * a user's event loop is told when that is.
 */

#include "client.h"

/** resume_allow() - the client has a session, to be resumed at @path. Return: 0, or GPUQ_E_SYSTEM. */
int resume_allow(gpuq_client *client, const char *path);

/** resume_lost() - the socket ended without a last word. Return: false: so does the client. */
bool resume_lost(gpuq_client *client);
/** resume_turn() - the timer rang, or somebody would read where there is no socket. */
void resume_turn(gpuq_client *client);
/** resume_answered() - the reply to its Hello came. */
void resume_answered(gpuq_client *client, const Gpuq__V1__Reply *reply);

#endif

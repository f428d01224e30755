/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LINK_SIBLINGS_H
#define GPUQ_LINK_SIBLINGS_H

/*
 * Siblings
 *
 * The other clients of this process at the same daemon. A restarted daemon waits for all its
 * sessions. While a thread waits for a job of one client, it must also reconnect the clients that
 * no thread serves.
 */

#include "client.h"

#define SIBLINGS_LOOK_MS 20 /* between two visits by a waiting thread */

/** siblings_add() - @client has a session. */
void siblings_add(gpuq_client *client);
/** siblings_remove() - it is about to be freed. Without its lock. */
void siblings_remove(gpuq_client *client);
/**
 * siblings_visit() - read for the siblings without a leading thread, as their own threads would
 * @lost_us: when @client lost the daemon that is started again
 *
 * Without any client's lock. Return: whether some have not come back yet.
 */
bool siblings_visit(gpuq_client *client, int64_t lost_us);

#endif

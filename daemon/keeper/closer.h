/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_CLOSER_H
#define GPUQ_KEEPER_CLOSER_H

/*
 * Closer
 *
 * Closes descriptors in a thread of its own. Whoever closes the last descriptor of memory gives its
 * pages back, which takes the kernel 0.1 to 0.3 s for each GiB, or waits for a driver. Everybody
 * whose arenas, workers or probes the keeper has to do with would wait meanwhile.
 *
 * The thread calls nothing but read() and close(), so a forked child of the keeper may still call
 * any function.
 */

#include <stddef.h>

typedef struct Closer Closer;

/** closer_new() - @n_max: descriptors that may wait to be closed. Return: 0 or a negative errno. */
int closer_new(size_t n_max, Closer **ret_closer);
/** closer_free() - once all are closed; NULL is fine. Return: NULL. */
Closer *closer_free(Closer *closer);
/** closer_close() - soon; at once if too many wait or @closer is NULL. */
void closer_close(Closer *closer, int fd);

#endif

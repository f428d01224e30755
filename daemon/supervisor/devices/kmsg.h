/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KMSG_H
#define GPUQ_SUPERVISOR_KMSG_H

/*
 * Kmsg
 *
 * Reads the kernel's log line by line from the descriptor's position; never blocks. Each read() of
 * /dev/kmsg returns a record, whose text is the first line. A file or fifo in the same form works as
 * well; its lines come in pieces, and several at once.
 */

#include <stdint.h>

#define KMSG_LINE_MAX 8192u /* bytes: the kernel writes no longer record */

typedef struct Kmsg Kmsg;

/** kmsg_new() - on @fd, which must not block, consumed on success. Return: 0 or -ENOMEM. */
int kmsg_new(int fd, Kmsg **ret_kmsg);
/** kmsg_free() - NULL is fine. Return: NULL. */
Kmsg *kmsg_free(Kmsg *kmsg);
/**
 * kmsg_read() - the next line
 * @ret_line: without its end, valid until the next call; "" where records were lost
 *
 * Return: 1; 0: no more lines for now; or a negative errno: no more lines ever.
 */
int kmsg_read(Kmsg *kmsg, const char **ret_line);
/** kmsg_n_lost() - how often records were overwritten before they were read, or were too long. */
uint64_t kmsg_n_lost(const Kmsg *kmsg);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_KMSG_H
#define GPUQ_SUPERVISOR_KMSG_H

/*
 * Kmsg
 *
 * The kernel's log, line by line, from where the descriptor stands; never blocks. Of
 * /dev/kmsg each read() is a record, its text the first line. A file or a fifo of the same
 * form does as well: there lines come cut, and several at once.
 */

#include <stdint.h>

#define KMSG_LINE_MAX                                                                              \
        8192u /* bytes: no record of the kernel is longer with all that belongs to it */

typedef struct Kmsg Kmsg;

/** kmsg_new() - on @fd, which must not block, consumed on success. Return: 0 or -ENOMEM. */
int kmsg_new(int fd, Kmsg **ret_kmsg);
/** kmsg_free() - NULL is fine. Return: NULL. */
Kmsg *kmsg_free(Kmsg *kmsg);
/**
 * kmsg_read() - the next line
 * @ret_line: without its end, until the next call; "" where something was lost
 *
 * Return: 1; 0: there is no more for now; or a negative errno: there never will be.
 */
int kmsg_read(Kmsg *kmsg, const char **ret_line);
/** kmsg_n_lost() - how often records were overwritten before we came to them, or too long. */
uint64_t kmsg_n_lost(const Kmsg *kmsg);

#endif

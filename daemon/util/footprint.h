/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_FOOTPRINT_H
#define GPUQ_UTIL_FOOTPRINT_H

/*
 * Footprint
 *
 * How much memory of gpuqd itself one user can take with its limits, so that an administrator sees
 * it before a user does. It holds the limits that no key sets, and what one object of a kind takes
 * at most; the supervisor asserts the latter where it makes such objects. Arenas are the user's own
 * memory and not counted; neither are its workers.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/config.h"

/* Fixed limits of each user, in bytes. */
#define FOOTPRINT_PREPARED (16u << 20) /* prepared jobs */
#define FOOTPRINT_RINGS    (32u << 20) /* rings of all connections */
#define FOOTPRINT_BUFFERS  (64u << 20) /* unfinished and unread messages of all connections */
#define FOOTPRINT_RECORDS  (64u << 20) /* texts and records without a limit of their own */
#define FOOTPRINT_WAITS    (8u << 20)  /* requests that wait for the end of a job */

/* What one takes at most, in bytes. */
#define FOOTPRINT_SESSION (40u << 10) /* with the buffers that are not counted */
#define FOOTPRINT_SOCKET                                                                           \
        (208u << 10) /* the kernel's buffer of what is unread: net.core.wmem_default */
#define FOOTPRINT_ARENA    768u
#define FOOTPRINT_MODULE   1024u
#define FOOTPRINT_DETACHED 1024u
#define FOOTPRINT_HISTORY  (5u << 20) /* ends that a user's processes may still ask for */
#define FOOTPRINT_PARTS    16u        /* subordinate uids of one user, each with a history */

#define FOOTPRINT_ARENAS 16896u /* most arenas of one user, of all there may be */
#define FOOTPRINT_LINES  9u

typedef struct FootprintLine {
        const char *what;
        const char *key; /* in gpuqd.conf; NULL: the limit is fixed */
        uint64_t n_bytes;
} FootprintLine;

/** footprint_lines() - where that memory goes. */
void footprint_lines(const ConfigLimits *limits, FootprintLine lines[FOOTPRINT_LINES]);
/** footprint_sum() - Return: of all lines; UINT64_MAX: there is no bound. */
uint64_t footprint_sum(const ConfigLimits *limits);

#endif

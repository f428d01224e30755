/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_LIST_H
#define GPUQ_UTIL_LIST_H

/*
 * Macros that glibc's sys/queue.h lacks, and container_of().
 */

#include <stddef.h>
#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, next)                                                 \
        for ((var) = TAILQ_FIRST(head); (var) && ((next) = TAILQ_NEXT(var, field), 1);             \
             (var) = (next))
#endif

#ifndef LIST_FOREACH_SAFE
#define LIST_FOREACH_SAFE(var, head, field, next)                                                  \
        for ((var) = LIST_FIRST(head); (var) && ((next) = LIST_NEXT(var, field), 1); (var) = (next))
#endif

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif

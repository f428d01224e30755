/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_MACRO_H
#define GPUQ_UTIL_MACRO_H

/*
 * The few macros of the project: ownership that ends with its scope, and sizes.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#ifndef MIN /* sys/param.h, which uv.h includes, has the same */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

/* Hands the value over and leaves nothing to clean up. */
#define TAKE_PTR(p)                                                                                \
        ({                                                                                         \
                __typeof__(p) _p = (p);                                                            \
                (p) = NULL;                                                                        \
                _p;                                                                                \
        })
#define TAKE_FD(fd)                                                                                \
        ({                                                                                         \
                int _fd = (fd);                                                                    \
                (fd) = -1;                                                                         \
                _fd;                                                                               \
        })

static inline void freep(void *p) {
        free(*(void **)p);
}

static inline void closep(int *fd) {
        if (*fd >= 0)
                close(*fd);
}

#define DEFINE_CLEANUP(type, func)                                                                 \
        static inline void func##p(type **p) {                                                     \
                if (*p)                                                                            \
                        func(*p);                                                                  \
        }

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_WRITE_ALL_H
#define GPUQ_UTIL_WRITE_ALL_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

#define WRITE_ALL_ON (-1) /* as an offset: where the descriptor is */

/** write_all() - Return: 0, or a negative errno: a part may have been written. */
static inline int write_all(int fd, const void *data, size_t n_data, off_t offset) {
        const char *p = data;
        ssize_t n;

        for (size_t done = 0; done < n_data; done += (size_t)n) {
                n = offset == WRITE_ALL_ON
                            ? write(fd, p + done, n_data - done)
                            : pwrite(fd, p + done, n_data - done, offset + (off_t)done);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return -ENOSPC;
                if (n < 0)
                        n = 0;
        }
        return 0;
}

#endif

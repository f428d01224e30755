/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_PASS_H
#define GPUQ_PROTO_PASS_H

/*
 * Pass
 *
 * Sends bytes on a Unix socket, with descriptors that accompany the first byte. Neither function
 * waits. Needs only the C library, so that the keeper can use it.
 */

#include <stddef.h>
#include <sys/types.h>

#define PASS_FDS_MAX 8u /* in one message */

/** pass_send() - Return: how many bytes the socket took, or a negative errno. */
ssize_t pass_send(int socket, const void *data, size_t n_bytes, const int *fds, size_t n_fds);
/**
 * pass_receive() - receive bytes and all descriptors that come with them, close-on-exec
 *
 * @fds: space for @n_fds_max. With 0 the kernel installs none.
 *
 * Return: how many bytes; 0: the end; -EBADMSG: a message or its descriptors did not fit, and the
 * descriptors are closed; or another negative errno.
 */
ssize_t pass_receive(int socket, void *data, size_t n_max, int *fds, size_t n_fds_max,
                     size_t *ret_n_fds);

#endif

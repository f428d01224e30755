/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_PASSED_H
#define GPUQ_KEEPER_PASSED_H

/*
 * Passed
 *
 * Descriptors that the supervisor passed, of which the keeper knows nothing: an owned supervisor
 * may pass a file on FUSE or a socket that lingers, where most calls, close() among them, take as
 * long as its owner likes. No function here waits for anybody.
 */

#include <stdbool.h>
#include <stddef.h>

/** passed_is_memory() - memory, or what a driver gave for memory of its device. */
bool passed_is_memory(int fd);
/**
 * passed_discard() - close those that are open, and set all to -1
 *
 * Return: whether that took a child process: one of them was neither memory nor a Unix socket.
 */
bool passed_discard(int *fds, size_t n_fds);

#endif

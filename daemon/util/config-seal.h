/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_SEAL_H
#define GPUQ_UTIL_CONFIG_SEAL_H

/*
 * Sealed configuration
 *
 * A Config as a sealed memfd. The keeper passes the last valid configuration in this form, so that
 * other processes do not read files that may be invalid now. It holds every key of the table and
 * every user and class, as "name\0value\0". A pair "user\0NAME\0" or "class\0NAME\0" starts the keys
 * of one.
 */

#include "util/config.h"

/** config_seal() - @ret_fd: the memfd, the caller's, read with config_unseal(). Return: 0 or a negative errno. */
int config_seal(const Config *config, int *ret_fd);
/**
 * config_unseal() - the same configuration again
 * @fd: from config_seal(); stays the caller's, its offset too
 *
 * Return: 0, -EINVAL if it is none, or another negative errno.
 */
int config_unseal(int fd, Config **ret_config);

#endif

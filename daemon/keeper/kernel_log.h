/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_KERNEL_LOG_H
#define GPUQ_KEEPER_KERNEL_LOG_H

/*
 * Kernel log
 *
 * Opened here, since it may take CAP_SYSLOG (kernel.dmesg_restrict), and read by every
 * supervisor, which has no right to open it: the kernel asks for the right at open() alone.
 * They share one position, so that each goes on where the previous one stopped.
 */

#include "util/config.h"

/**
 * kernel_log_open() - open the log at its end
 * @is_private: else CAP_SYSLOG is given up
 *
 * Failure is not fatal: it is logged once if there is a GPU.
 * Return: a descriptor, the caller's, or -1.
 */
int kernel_log_open(const Config *config, bool is_private);

#endif

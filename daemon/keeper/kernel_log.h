/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_KERNEL_LOG_H
#define GPUQ_KEEPER_KERNEL_LOG_H

/*
 * Kernel log
 *
 * The keeper opens it, because that may take CAP_SYSLOG (kernel.dmesg_restrict), which the kernel
 * checks only at open(). Every supervisor reads it without that right. They share one position, so
 * that each continues where the previous one stopped.
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

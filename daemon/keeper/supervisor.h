/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_SUPERVISOR_H
#define GPUQ_KEEPER_SUPERVISOR_H

/*
 * Supervisor
 *
 * How the keeper starts a supervisor process: its user and its command line. The keeper handles
 * its restarts.
 */

#include "keeper/options.h"
#include "keeper/process.h"

/**
 * supervisor_start() - start gpuqd-supervisor
 * @link_fd:   its end of the link, which becomes KEEPER_FD; the caller keeps its own
 * @config_fd: @config sealed, which becomes KEEPER_CONFIG_FD; the caller keeps its own
 * @activity_fd: of activity_new(), which becomes KEEPER_ACTIVITY_FD; the caller keeps its own
 *
 * Return: 0 or a negative errno; later failures as by process_check().
 */
int supervisor_start(const Options *options, const Config *config, int link_fd, int config_fd,
                     int activity_fd, Process *ret_process);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STATUS_H
#define GPUQ_SUPERVISOR_STATUS_H

/*
 * Status
 *
 * Devices, workers and users, the same for all who ask.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct Clients Clients;

/** status_pack() - a packed Status, the caller's to free. Return: 0, or -ENOMEM. */
int status_pack(Clients *clients, uint8_t **ret_data, size_t *ret_n_data);

#endif

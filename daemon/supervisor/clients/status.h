/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_STATUS_H
#define GPUQ_SUPERVISOR_STATUS_H

/*
 * Status
 *
 * The status has devices, workers and users, which every client gets alike, and what is of the client's user: limits and
 * jobs of Slurm.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Clients Clients;
typedef struct User User;

/** status_pack() - a packed Status, the caller's to free. Return: 0, or -ENOMEM. */
int status_pack(Clients *clients, uint8_t **ret_data, size_t *ret_n_data);
/**
 * status_pack_own() - the fields of a Status that are for one user: its limits and jobs of Slurm, or those of all users unless they are very many
 *
 * Packed, to follow what status_pack() made. Its memory is clients->bump. Return: 0, or -ENOMEM.
 */
int status_pack_own(Clients *clients, const User *user, bool of_all, uint8_t **ret_data,
                    size_t *ret_n_data);

#endif

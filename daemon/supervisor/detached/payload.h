/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_PAYLOAD_H
#define GPUQ_SUPERVISOR_PAYLOAD_H

/*
 * Payload files
 *
 * A detached job's input or output: a file of the bytes alone, with its checksum in the store's
 * database. Calls block on the disk, and use 256 KiB of memory however large a file is.
 */

#include <stddef.h>
#include <stdint.h>

#define PAYLOAD_DAMAGE_MAX 200u

enum {
        _PAYLOAD_E_SUCCESS,
        PAYLOAD_E_DAMAGED, /* the content of the disk is not what was written there */
};

/* A range of a descriptor's bytes. */
typedef struct PayloadPart {
        int fd;
        uint64_t offset;
        uint64_t length;
} PayloadPart;

/** payload_check() - a checksum, or its continuation; only the last of several calls may end within a word. */
uint64_t payload_check(uint64_t check, const void *data, size_t n_data);
/**
 * payload_write() - write the parts' bytes into a new file, and sync it and its folder
 *
 * Return: 0, or a negative errno.
 */
int payload_write(int folder, const char *name, const PayloadPart *parts, size_t n_parts,
                  uint64_t *ret_check);
/**
 * payload_read() - read a file's bytes into the parts, and check them
 *
 * Return: 0, PAYLOAD_E_DAMAGED with @damage, or a negative errno.
 */
int payload_read(int folder, const char *name, const PayloadPart *parts, size_t n_parts,
                 uint64_t check, char damage[PAYLOAD_DAMAGE_MAX]);

#endif

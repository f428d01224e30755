/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SPOOL_FILE_H
#define GPUQ_SUPERVISOR_SPOOL_FILE_H

/*
 * Spool files
 *
 * Two kinds of file in a job's folder. A sealed one is a packed message behind a
 * head with magic, version, length and SHA-256. A data file is bytes alone, whose
 * SHA-256 a sealed one holds. Everything written is synced before it counts as
 * written. Calls block, and use a bounded amount of memory however large a file is.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util/macro.h"

#define SPOOL_VERSION      1u
#define SPOOL_DIGEST_BYTES 32u
#define SPOOL_SEALED_MAX   (8u << 20) /* bytes of a sealed file's message */
#define SPOOL_PROBLEM_MAX  300u

enum {
        _SPOOL_E_SUCCESS,
        SPOOL_E_DAMAGED, /* what is on disk is not what was written there */
};

/* Why something came to nothing, for a person. */
typedef struct SpoolProblem {
        char text[SPOOL_PROBLEM_MAX];
} SpoolProblem;

/* A stretch of a descriptor's bytes. */
typedef struct SpoolPart {
        int fd;
        uint64_t offset;
        uint64_t length;
} SpoolPart;

/** spool_file_init() - before any thread calls any other; twice is harmless. Return: 0, or -ENOSYS. */
int spool_file_init(void);

/** spool_write_sealed() - a new file, which replaces one of that name as a whole. Return: 0, or a negative errno. */
int spool_write_sealed(int folder, const char *name, const void *data, size_t n_data);
/**
 * spool_read_sealed() - check it and read it whole
 * @ret_data: the caller's
 *
 * Return: 0, -ENOENT: there is none, SPOOL_E_DAMAGED, or a negative errno: it may be in order.
 */
int spool_read_sealed(int folder, const char *name, uint8_t **ret_data, size_t *ret_n_data,
                      SpoolProblem *problem);

/** spool_write_data() - the parts' bytes, one after the other, into a new file. Return: 0, or a negative errno. */
int spool_write_data(int folder, const char *name, const SpoolPart *parts, size_t n_parts,
                     uint8_t ret_digest[SPOOL_DIGEST_BYTES]);
/** spool_read_data() - a file's bytes into the parts, checked. Return: as spool_read_sealed(), a missing file is DAMAGED. */
int spool_read_data(int folder, const char *name, const SpoolPart *parts, size_t n_parts,
                    const uint8_t digest[SPOOL_DIGEST_BYTES], SpoolProblem *problem);

/** spool_is_passing() - an errno that says nothing about what is on disk: try again later. */
int spool_is_passing(int error);

#endif

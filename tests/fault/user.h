/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_USER_H
#define GPUQ_TEST_USER_H

/*
 * User: what the programs share that use the service as anybody would. They know
 * the results of mix.cu without the service.
 */

#include <stdbool.h>
#include <stdint.h>

#define USER_N_ROUNDS 24u /* of mix.cu, for every job */

/** user_mix_one() - what mix.cu makes of a number. */
uint32_t user_mix_one(uint32_t v, uint32_t key);
/** user_mix() - the same for @n numbers. */
void user_mix(const uint32_t *in, uint32_t *out, unsigned n, uint32_t key);
/** user_read_source() - Return: the text of the file. Ends the process if it cannot be read. */
char *user_read_source(const char *path);
/** user_is_lost() - with this code of libgpuq the session is lost: connect anew. */
bool user_is_lost(int code);

#endif

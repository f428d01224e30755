/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_NUMBER_H
#define GPUQ_CLI_NUMBER_H

/*
 * Numbers as people type them. Strict: the whole text must be the number, without blanks, and a
 * value that does not fit is rejected, not wrapped. Decimal, or hexadecimal after 0x; a leading
 * zero does not mean octal.
 *
 * All return 0, -EINVAL (not a number) or -ERANGE (does not fit).
 */

#include <stdint.h>

/** number_unsigned() - 0 to @max. */
int number_unsigned(const char *text, uint64_t max, uint64_t *ret_value);
/** number_signed() - @min to @max. */
int number_signed(const char *text, int64_t min, int64_t max, int64_t *ret_value);
/** number_float() - a float or, @narrow, one that fits 32 bits; inf and nan are numbers. */
int number_float(const char *text, int narrow, double *ret_value);
/** number_bytes() - a size in bytes, with K, M or G for powers of 1024. */
int number_bytes(const char *text, uint64_t max, uint64_t *ret_bytes);
/** number_ms() - seconds with decimals, above 0, as milliseconds, rounded up. */
int number_ms(const char *text, uint32_t *ret_ms);
/** number_dims() - "X[,Y[,Z]]", each at least 1; what is not given becomes 1. */
int number_dims(const char *text, unsigned ret_dims[3]);

#endif

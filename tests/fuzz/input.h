/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_INPUT_H
#define GPUQ_FUZZ_INPUT_H

/*
 * Input
 *
 * The bytes of one run, taken from the front, each choice by as few as may be, so that
 * a byte that is changed changes one choice. Where there are no more, all are 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/macro.h"

typedef struct Input {
        const uint8_t *data;
        size_t n;
} Input;

/** LLVMFuzzerTestOneInput() - one run; each target has one, for libFuzzer and replay.c. Return: 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data);

/** input_take() - up to @n bytes. Return: where they are; @ret_n: how many. */
static inline const uint8_t *input_take(Input *input, size_t n, size_t *ret_n) {
        const uint8_t *data = input->data;

        *ret_n = MIN(n, input->n);
        input->data += *ret_n;
        input->n -= *ret_n;
        return data;
}

static inline uint64_t input_number(Input *input, size_t n_bytes) {
        uint64_t number = 0;
        size_t n;
        const uint8_t *data = input_take(input, n_bytes, &n);

        memcpy(&number, data, n);
        return number;
}

static inline uint8_t input_u8(Input *input) {
        return (uint8_t)input_number(input, 1);
}

static inline uint16_t input_u16(Input *input) {
        return (uint16_t)input_number(input, 2);
}

static inline uint32_t input_u32(Input *input) {
        return (uint32_t)input_number(input, 4);
}

/** input_below() - by one byte. @n: 1 to 256. */
static inline unsigned input_below(Input *input, unsigned n) {
        return input_u8(input) % n;
}

/** input_edge() - a number that often lies where something begins or ends. */
static inline uint64_t input_edge(Input *input) {
        uint8_t choice = input_u8(input);

        switch (choice) {
                case 255:
                        return input_number(input, 8);
                case 254:
                        return UINT64_MAX - input_u8(input);
                case 253:
                        return (UINT64_C(1) << 63) - input_u8(input);
                case 252:
                        return (UINT64_C(1) << 32) - input_u8(input);
                case 251:
                        return (UINT64_C(1) << 31) - input_u8(input);
                case 250:
                        return input_u32(input);
                case 249:
                        return input_u16(input);
                default:
                        return choice < 160 ? choice : (uint64_t)(choice - 159) * 64;
        }
}

#endif

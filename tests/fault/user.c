/* SPDX-License-Identifier: Apache-2.0 */
#include "user.h"

#include <err.h>
#include <stdio.h>

#include <gpuq.h>

/* mix.cu has the same. */
uint32_t user_mix_one(uint32_t v, uint32_t key) {
        for (uint32_t i = 0; i < USER_N_ROUNDS; i++) {
                v ^= key + i;
                v ^= v >> 16;
                v *= 0x7feb352du;
                v ^= v >> 15;
                v *= 0x846ca68bu;
                v ^= v >> 16;
        }
        return v;
}

void user_mix(const uint32_t *in, uint32_t *out, unsigned n, uint32_t key) {
        for (unsigned i = 0; i < n; i++)
                out[i] = user_mix_one(in[i], key);
}

char *user_read_source(const char *path) {
        static char source[1 << 16];
        FILE *file = fopen(path, "r");

        if (!file)
                err(2, "%s", path);
        if (fread(source, 1, sizeof(source) - 1, file) == 0)
                errx(2, "%s is empty", path);
        fclose(file);
        return source;
}

bool user_is_lost(int code) {
        return code == GPUQ_E_CLOSED || code == GPUQ_E_SHUTDOWN || code == GPUQ_E_CONNECT ||
               code == GPUQ_E_SYSTEM || code == GPUQ_E_PROTOCOL;
}

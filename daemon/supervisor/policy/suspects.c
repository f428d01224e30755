/* SPDX-License-Identifier: Apache-2.0 */
#include "suspects.h"

#include <string.h>

#include "duration.h"

uint64_t suspects_key(const char *module, const char *kernel) {
        uint64_t key;

        /* Includes the end of the text: "a", "bc" differs from "ab", "c". */
        key = duration_key(0, module, strlen(module) + 1);
        return duration_key(key, kernel, strlen(kernel) + 1);
}

static size_t suspects_find(const Suspects *suspects, uint64_t key) {
        size_t i = 0;

        while (i < suspects->n_keys && suspects->keys[i] != key)
                ++i;
        return i;
}

static void suspects_remove_at(Suspects *suspects, size_t i) {
        suspects->n_keys--;
        memmove(&suspects->keys[i], &suspects->keys[i + 1],
                (suspects->n_keys - i) * sizeof(suspects->keys[0]));
}

void suspects_add(Suspects *suspects, uint64_t key) {
        suspects_clear(suspects, key);
        if (suspects->n_keys == SUSPECTS_MAX)
                suspects_remove_at(suspects, 0);
        suspects->keys[suspects->n_keys++] = key;
}

bool suspects_has(const Suspects *suspects, uint64_t key) {
        return suspects_find(suspects, key) < suspects->n_keys;
}

void suspects_clear(Suspects *suspects, uint64_t key) {
        size_t i = suspects_find(suspects, key);

        if (i < suspects->n_keys)
                suspects_remove_at(suspects, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept
 */

#include "kept.h"

#include "error.h"

int kept_new(Pool *pool, size_t n_max, Kept **ret_kept) {
        bool pooled = sizeof(Kept) + n_max <= KEPT_BLOCK_BYTES;
        Kept *kept;

        kept = pooled ? pool_get(pool) : malloc(sizeof(*kept) + n_max);
        if (!kept)
                return error_memory();

        *kept = (Kept){.pool = pooled ? pool : NULL};
        *ret_kept = kept;
        return 0;
}

Kept *kept_free(Kept *kept) {
        if (kept && kept->pool)
                pool_put(kept->pool, kept);
        else
                free(kept);
        return NULL;
}

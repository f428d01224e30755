/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept
 */

#include "kept.h"

#include "error.h"

int kept_new(gpuq_client *client, size_t n_max, Kept **ret_kept) {
        bool pooled = sizeof(Kept) + n_max <= KEPT_BLOCK_BYTES;
        Kept *kept;

        kept = pooled ? pool_get(&client->kept) : malloc(sizeof(*kept) + n_max);
        if (!kept)
                return error_memory();

        *kept = (Kept){.pooled = pooled};
        *ret_kept = kept;
        return 0;
}

Kept *kept_free(gpuq_client *client, Kept *kept) {
        if (kept && kept->pooled)
                pool_put(&client->kept, kept);
        else
                free(kept);
        return NULL;
}

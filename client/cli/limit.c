/* SPDX-License-Identifier: Apache-2.0 */
#include "limit.h"

#include <inttypes.h>
#include <string.h>

#include "util/human.h"

static const struct {
        const char *key;
        const char *meaning;
} limit_meanings[] = {
        {"sessions", "connections to gpuqd"},
        {"jobs", "unfinished jobs"},
        {"queued_bytes", "gpuqd's memory for waiting jobs"},
        {"arena_bytes", "host memory in buffers"},
        {"device_bytes", "device memory in buffers"},
        {"modules", "loaded modules"},
        {"detached_jobs", "detached jobs on disk"},
        {"detached_bytes", "size of detached jobs on disk"},
        {"gpu_seconds", "GPU time in one window"},
};

static const char *limit_meaning(const char *key) {
        for (size_t i = 0; i < ARRAY_SIZE(limit_meanings); i++)
                if (strcmp(limit_meanings[i].key, key) == 0)
                        return limit_meanings[i].meaning;
        return "";
}

static bool limit_ends_in(const char *key, const char *end) {
        size_t n = strlen(key), n_end = strlen(end);

        return n >= n_end && strcmp(key + n - n_end, end) == 0;
}

/* In the unit that the key names. */
static void limit_cell(Table *table, const char *key, uint64_t value) {
        if (value == UINT64_MAX)
                table_cell(table, "unlimited");
        else if (limit_ends_in(key, "_bytes"))
                table_cell(table, "%s", human_bytes(value).text);
        else if (limit_ends_in(key, "_seconds"))
                table_cell(table, "%" PRIu64 " s", value);
        else
                table_cell(table, "%" PRIu64, value);
}

void limit_cells(Table *table, const gpuq_user_limit *limit) {
        table_cell(table, "%s", limit->key);
        limit_cell(table, limit->key, limit->used);
        limit_cell(table, limit->key, limit->limit);
        limit_cell(table, limit->key, limit->left);
        table_cell(table, "%s", limit_meaning(limit->key));
}

/* What is left counts, and not the limit: other users may have what they share. */
double limit_part(const gpuq_user_limit *limit) {
        if (limit->left == UINT64_MAX || !limit->limit)
                return -1;
        if (!limit->left)
                return 1;
        return (double)limit->used / ((double)limit->used + (double)limit->left);
}

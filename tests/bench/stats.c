/* SPDX-License-Identifier: Apache-2.0 */

#include "stats.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

static int compare_u32(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

static double stats_us(const uint32_t *samples, size_t i) {
        return samples[i] * (LOOP_SAMPLE_NS / 1e3);
}

void stats_make(const LoopReport *reports, unsigned n, Stats *ret_stats) {
        _cleanup_(freep) uint32_t *all = malloc((size_t)n * sizeof(reports->samples));
        uint64_t first = UINT64_MAX, last = 0, n_jobs = 0;
        size_t n_all = 0;

        if (!all)
                err(1, "malloc");
        for (unsigned i = 0; i < n; i++) {
                const LoopReport *r = &reports[i];
                size_t n_samples = r->n_jobs < LOOP_SAMPLES_MAX ? r->n_jobs : LOOP_SAMPLES_MAX;

                first = r->first_ns < first ? r->first_ns : first;
                last = r->last_ns > last ? r->last_ns : last;
                n_jobs += r->n_jobs;
                memcpy(all + n_all, r->samples, n_samples * sizeof(*all));
                n_all += n_samples;
        }
        qsort(all, n_all, sizeof(*all), compare_u32);
        *ret_stats = (Stats){
                .n_jobs = n_jobs,
                .seconds = (double)(last - first) / 1e9,
                .p50_us = stats_us(all, n_all / 2),
                .p99_us = stats_us(all, n_all * 99 / 100),
        };
}

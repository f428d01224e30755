/* SPDX-License-Identifier: Apache-2.0 */

#include "loop.h"

#include <err.h>
#include <stdlib.h>
#include <time.h>

struct Loop {
        const Contender *contender;
        const BenchOptions *options;
        void *state;
        BenchData data;
        float *b[BENCH_SLOTS_MAX];
        float *a[BENCH_SLOTS_MAX];
        uint64_t started_ns[BENCH_SLOTS_MAX];
        uint64_t number; /* of the next job */
};

uint64_t bench_now_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void loop_fill(Loop *loop, unsigned slot, unsigned process) {
        loop->contender->inputs(loop->state, slot, &loop->a[slot], &loop->b[slot]);
        for (size_t i = 0; i < loop->options->n; i++) {
                loop->a[slot][i] = (float)(i % 4096) * 0.5f + (float)process;
                loop->b[slot][i] = (float)(i % 1021) + (float)slot;
        }
}

Loop *loop_new(const Contender *contender, const BenchOptions *options, unsigned process) {
        Loop *loop = calloc(1, sizeof(*loop));

        if (!loop)
                err(1, "calloc");
        loop->contender = contender;
        loop->options = options;
        loop->number = process * 7919u;
        if (contender->open(options, &loop->state) < 0)
                errx(1, "%s: cannot open", contender->name);
        for (unsigned slot = 0; slot < options->n_slots; slot++)
                loop_fill(loop, slot, process);
        return loop;
}

void loop_prepare(Loop *loop, BenchData data) {
        loop->data = data;
        if (loop->contender->prepare(loop->state, data) < 0)
                errx(1, "%s: inputs could not be placed", loop->contender->name);
}

static void loop_start(Loop *loop, unsigned slot) {
        if (loop->data != BENCH_DEVICE)
                loop->b[slot][0] = (float)(++loop->number % 1000000);

        loop->started_ns[slot] = bench_now_ns();
        if (loop->contender->start(loop->state, slot) < 0)
                errx(1, "%s: a job could not be started", loop->contender->name);
}

/* Every value on the way is an integer or a half below 2^24: the sum is exact in any order. */
static void loop_check(Loop *loop, unsigned slot, bool whole) {
        const float *c = loop->contender->result(loop->state, slot);
        float times = (float)loop->options->n_launches;
        size_t n = loop->options->n;
        size_t step = whole ? 1 : (n > 2 ? (n - 1) / 2 : 1);

        if (!c)
                errx(1, "%s: no result", loop->contender->name);
        for (size_t i = 0; i < n; i += step)
                if (c[i] != loop->a[slot][i] + times * loop->b[slot][i])
                        errx(1, "%s: element %zu is %g, not %g", loop->contender->name, i, c[i],
                             loop->a[slot][i] + times * loop->b[slot][i]);
}

static void loop_take(Loop *loop, unsigned slot, uint64_t t, LoopReport *report) {
        uint64_t took = (t - loop->started_ns[slot]) / LOOP_SAMPLE_NS;

        report->samples[report->n_jobs++ % LOOP_SAMPLES_MAX] = (uint32_t)took;
        report->last_ns = t;
}

void loop_run(Loop *loop, unsigned n_in_flight, uint64_t until_ns, LoopReport *report) {
        unsigned n_left = n_in_flight, slot;

        for (slot = 0; slot < n_in_flight; slot++)
                loop_start(loop, slot);

        while (n_left) {
                uint64_t t;

                if (loop->contender->next(loop->state, &slot) < 0)
                        errx(1, "%s: a job failed", loop->contender->name);
                t = bench_now_ns();
                if (report)
                        loop_take(loop, slot, t, report);
                /* reading device data back is no part of the job */
                if (loop->data != BENCH_DEVICE)
                        loop_check(loop, slot, !report || report->n_jobs % 256 == 1);

                if (t < until_ns)
                        loop_start(loop, slot);
                else
                        n_left--;
        }

        for (slot = 0; loop->data == BENCH_DEVICE && slot < n_in_flight; slot++)
                loop_check(loop, slot, true);
}

void loop_free(Loop *loop) {
        loop->contender->close(loop->state);
        free(loop);
}

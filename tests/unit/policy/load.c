/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What order costs a job whose session repeats the same slices: `ninja -C BUILD benchmark`.
 *
 *     load-order [JOBS IN FLIGHT] [JOBS]
 *
 * Each job reads two slices of an arena and writes one, its own; the oldest ends when the next comes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "order.h"

#define LOAD_SLICE 4096u

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int load_add(Order *order, uint64_t job, uint64_t slot, OrderNode **ret_node) {
        OrderAccess accesses[3];

        for (unsigned i = 0; i < 3; i++)
                accesses[i] = (OrderAccess){
                        .object = 1,
                        .offset = (3 * slot + i) * LOAD_SLICE,
                        .length = LOAD_SLICE,
                        .write = i == 2,
                };
        return order_add(order, job, accesses, 3, ret_node);
}

int main(int argc, char **argv) {
        uint64_t n_inflight = argc > 1 ? strtoull(argv[1], NULL, 10) : 32;
        uint64_t n_jobs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000, begin_ns;
        OrderNode **nodes;
        Order *order;

        nodes = calloc(n_inflight, sizeof(*nodes));
        if (n_inflight == 0 || !nodes || order_new(&order) < 0)
                return 1;

        begin_ns = now_ns();
        for (uint64_t job = 1; job <= n_jobs; job++) {
                OrderNode **node = &nodes[job % n_inflight];

                order_remove(order, *node);
                if (load_add(order, job, job % n_inflight, node) < 0)
                        return 1;
        }
        printf("%llu in flight: %.0f ns a job\n", (unsigned long long)n_inflight,
               (double)(now_ns() - begin_ns) / (double)n_jobs);
        order_free(order);
        free(nodes);
        return 0;
}

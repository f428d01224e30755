/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/gang.h"

#include <time.h>

#include "driver/cpu/context.h"
#include "util/macro.h"

#define GANG_LOOK_NS 5000000 /* how often a waiting block checks whether its context failed */

typedef struct GangBarrier {
        uint32_t n, n_arrived;
        uint64_t n_met; /* times that all were there */
} GangBarrier;

struct Gang {
        Context *context;
        uint32_t n, cluster;
        bool grid;
        uint64_t grid_words;
        pthread_mutex_t lock;
        pthread_cond_t met;
        GangBarrier grid_barrier, joined;
        GangBarrier *clusters;
        Engine **engines;
};

Gang *gang_free(Gang *gang) {
        if (!gang)
                return NULL;

        pthread_cond_destroy(&gang->met);
        pthread_mutex_destroy(&gang->lock);
        free(gang->engines);
        free(gang->clusters);
        free(gang);
        return NULL;
}

Gang *gang_new(Context *context, uint32_t n, uint32_t cluster, bool grid) {
        Gang *gang;

        gang = calloc(1, sizeof(*gang));
        if (!gang)
                return NULL;

        gang->context = context;
        gang->n = n;
        gang->cluster = cluster;
        gang->grid = grid;
        pthread_mutex_init(&gang->lock, NULL);
        pthread_cond_init(&gang->met, NULL);
        gang->grid_barrier.n = gang->joined.n = n;
        gang->engines = calloc(n, sizeof(*gang->engines));
        gang->clusters = calloc(n / cluster, sizeof(*gang->clusters));
        if (!gang->engines || !gang->clusters)
                return gang_free(gang);

        for (uint32_t i = 0; i < n / cluster; i++)
                gang->clusters[i].n = cluster;
        return gang;
}

/* With the lock held. */
static void gang_sleep(Gang *gang) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += GANG_LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&gang->met, &gang->lock, &until);
}

static void gang_wait(Gang *gang, GangBarrier *barrier) {
        uint64_t before;

        pthread_mutex_lock(&gang->lock);
        before = barrier->n_met;
        if (++barrier->n_arrived == barrier->n) {
                barrier->n_arrived = 0;
                barrier->n_met++;
                pthread_cond_broadcast(&gang->met);
        }
        while (barrier->n_met == before && !gang->context->error)
                gang_sleep(gang);
        pthread_mutex_unlock(&gang->lock);
}

void gang_join(Gang *gang, uint32_t rank, Engine *engine) {
        pthread_mutex_lock(&gang->lock);
        gang->engines[rank] = engine;
        pthread_mutex_unlock(&gang->lock);
        gang_wait(gang, &gang->joined);
}

void gang_meet(Gang *gang, GpuqCpuBarrier scope, uint32_t rank) {
        gang_wait(gang, scope == GPUQ_CPU_BARRIER_GRID ? &gang->grid_barrier
                                                       : &gang->clusters[rank / gang->cluster]);
}

bool gang_is_grid(const Gang *gang) {
        return gang && gang->grid;
}

void *gang_grid_words(Gang *gang) {
        return gang_is_grid(gang) ? &gang->grid_words : NULL;
}

const Engine *gang_engine(const Gang *gang, uint32_t rank, uint32_t other) {
        if (!gang || other >= gang->cluster)
                return NULL;

        return gang->engines[rank / gang->cluster * gang->cluster + other];
}

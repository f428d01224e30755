/* SPDX-License-Identifier: Apache-2.0 */
#include "spares.h"

#include "jobs.h"
#include "util/list.h"
#include "util/log.h"
#include "worker.h"

typedef struct SpareCount {
        unsigned n_spare;
        unsigned n_starting; /* spares and others */
} SpareCount;

/* It has no user and was not told to end. */
static bool spare_is_free(const Worker *worker) {
        return worker->is_spare && !worker->executor.slot && worker->state <= WORKER_SPARE &&
               !worker->evicted_ns;
}

/* A user can stop their own worker before it is ready, which must not keep spares from others. */
static bool spares_wait_for(const Worker *worker) {
        return worker->state == WORKER_STARTING &&
               engine_now(worker->executor.engine) - worker->executor.idle_ns < SPARES_WAIT_NS;
}

static SpareCount spares_count(const Workers *workers, const Device *device) {
        SpareCount count = {};
        const Worker *worker;

        for (worker = workers->table; worker; worker = worker->hh.next) {
                if (worker->executor.device != device)
                        continue;
                count.n_spare += spare_is_free(worker);
                count.n_starting += spares_wait_for(worker);
        }
        return count;
}

/* ---- how many there are -------------------------------------------------------- */

static void spares_put_off(Device *device, uint64_t n_ns) {
        device->spare_ns = MAX(device->spare_ns, engine_now(device->engine) + n_ns);
}

static bool spares_may_start(const Device *device, uint64_t now_ns) {
        const Engine *engine = device->engine;

        return !engine->is_closing && !engine->is_paused && now_ns >= device->spare_ns &&
               health_takes_jobs(&device->health);
}

static void spares_start(Workers *workers, Device *device, uint64_t now_ns) {
        SpareCount count = spares_count(workers, device);
        Worker *worker;

        if (count.n_spare >= workers->engine->config->spare_workers || count.n_starting ||
            !spares_may_start(device, now_ns))
                return;
        if (worker_new_spare(workers, device, &worker) < 0)
                spares_put_off(device, SPARES_RETRY_NS);
}

static void spare_end(Worker *worker) {
        worker->evicted_ns = engine_now(worker->executor.engine);
        worker_kill(worker);
}

/* Those of a drained device, and those above spare_workers. */
static void spares_end_surplus(Workers *workers) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next) {
                Device *device = worker->executor.device;

                if (spare_is_free(worker) && (!health_takes_jobs(&device->health) ||
                                              spares_count(workers, device).n_spare >
                                                      workers->engine->config->spare_workers))
                        spare_end(worker);
        }
}

void spares_tick(Workers *workers, uint64_t now_ns) {
        spares_end_surplus(workers);
        for (size_t i = 0; i < workers->engine->n_devices; ++i)
                spares_start(workers, &workers->engine->devices[i], now_ns);
}

void spares_restart(Workers *workers) {
        Worker *worker, *next;

        HASH_ITER (hh, workers->table, worker, next)
                if (spare_is_free(worker))
                        spare_end(worker);
}

/* ---- one of them ----------------------------------------------------------------- */

Worker *spares_take(Workers *workers, Slot *slot) {
        Worker *worker, *best = NULL;

        if (!sms_are_all(slot_sms(slot)))
                return NULL;
        for (worker = workers->table; worker; worker = worker->hh.next)
                if (spare_is_free(worker) && worker->executor.device == slot->device &&
                    (!best || worker->state > best->state))
                        best = worker;
        if (!best)
                return NULL;
        worker_adopt(best, slot);
        spares_put_off(slot->device, SPARES_LATER_NS);
        return best;
}

void spares_ready(Worker *worker, uint64_t n_free) {
        Device *device = worker->executor.device;

        if (!n_free || n_free >= device->memory_total / SPARES_FREE_PART)
                return;
        log_info("device %u has little free memory (%llu MiB): no spare worker", device->index,
                 (unsigned long long)(n_free >> 20));
        spares_give_way(worker);
}

void spares_lost(Worker *worker, const Failure *failure) {
        if (worker->evicted_ns || worker->executor.engine->is_closing)
                return;
        log_warning("device %u: a spare worker ended: %s; the next one starts in %u s",
                    worker->executor.device->index, failure ? failure->text : "unknown reason",
                    (unsigned)(SPARES_RETRY_NS / 1000000000));
        spares_put_off(worker->executor.device, SPARES_RETRY_NS);
}

void spares_give_way(Worker *worker) {
        spares_put_off(worker->executor.device, SPARES_RETRY_NS);
        spare_end(worker);
}

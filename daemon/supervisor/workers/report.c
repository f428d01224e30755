/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All workers, for `gpuq status`.
 */

#include "report.h"

#include "pool.h"
#include "worker.h"

static void report_worker(const Worker *worker, Gpuq__V1__WorkerStatus *to) {
        gpuq__v1__worker_status__init(to);
        to->pid = (uint32_t)worker->executor.pid;
        to->device = worker->executor.device->index;
        to->uid = worker->domain;
        to->state = (char *)worker_state_name(worker);
        to->memory = worker->memory;
        to->running = worker->executor.n_inflight;
        to->jobs = worker->n_jobs;
        to->express = worker->executor.is_express;
        to->contexts = worker->state != WORKER_STARTING && worker->state != WORKER_LOST;
        if (worker->counters.base.descriptor)
                to->counters = (Gpuq__V1__WorkerCounters *)&worker->counters;
}

int report_workers(const Workers *workers, ProtobufCAllocator *allocator,
                   Gpuq__V1__Status *status) {
        size_t n = HASH_COUNT(workers->table), i = 0;
        Gpuq__V1__WorkerStatus **list, *entries;
        const Worker *worker;

        list = allocator->alloc(allocator->allocator_data, n * sizeof(*list) + 1);
        entries = allocator->alloc(allocator->allocator_data, n * sizeof(*entries) + 1);
        if (!list || !entries)
                return -ENOMEM;
        for (worker = workers->table; worker; worker = worker->hh.next) {
                if (!worker->executor.device)
                        continue; /* a probe */
                report_worker(worker, &entries[i]);
                list[i] = &entries[i];
                i++;
        }
        status->workers = list;
        status->n_workers = i;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report
 */
#include "worker/report.h"

#include <string.h>

#include "proto/pack.h"

/* Bytes of texts, so that no message outgrows a frame to a client. */
#define REPORT_LOG_MAX (256u << 10)

static int report_send(Outbox *outbox, Gpuq__Worker__FromWorker__BodyCase what, void *body,
                       int fd) {
        Gpuq__Worker__FromWorker message = GPUQ__WORKER__FROM_WORKER__INIT;

        message.body_case = what;
        message.ready = body; /* a union of pointers */
        return outbox_send(outbox, &message, fd);
}

int report_ready(Outbox *outbox, const Failure *failure) {
        Gpuq__Worker__Ready ready = GPUQ__WORKER__READY__INIT;
        Gpuq__V1__Error error;

        ready.error = failure_pack(failure, &error);
        ready.device_failed = failure->is_device;
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_READY, &ready, -1);
}

/* ---- arenas and modules ------------------------------------------------------------- */

static int report_arena_made(Outbox *outbox, Arena *arena) {
        Gpuq__Worker__ArenaMade made = GPUQ__WORKER__ARENA_MADE__INIT;
        Gpuq__V1__Error error;
        int r;

        made.id = arena->id;
        made.error = failure_pack(&arena->failure, &error);
        r = report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_ARENA_MADE, &made,
                        made.error ? -1 : arena->fd);

        /* The supervisor holds it from now on. */
        if (arena->fd >= 0)
                close(arena->fd);
        arena->fd = -1;
        return r;
}

int report_arena(Outbox *outbox, Arena *arena) {
        Gpuq__Worker__ArenaAdded added = GPUQ__WORKER__ARENA_ADDED__INIT;
        Gpuq__V1__Error error;

        if (arena->made)
                return report_arena_made(outbox, arena);
        if (arena->state == ARENA_READY)
                return 0;

        added.id = arena->id;
        added.error = failure_pack(&arena->failure, &error);
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_ARENA_ADDED, &added, -1);
}

/* Of a compiler's log, its beginning says most. */
static char *report_cut(char *text) {
        if (strlen(text) <= REPORT_LOG_MAX)
                return text;
        text[REPORT_LOG_MAX] = '\0';
        return text_clean(text);
}

int report_module_failed(Outbox *outbox, uint64_t id, const Failure *failure) {
        Gpuq__Worker__ModuleAdded added = GPUQ__WORKER__MODULE_ADDED__INIT;
        Gpuq__V1__Error error;

        added.id = id;
        added.error = failure_pack(failure, &error);
        if (added.error)
                error.text = report_cut(error.text);
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED, &added, -1);
}

typedef struct ReportKernels {
        Gpuq__V1__KernelInfo *infos;
        Gpuq__V1__KernelInfo **info_pointers;
        Gpuq__V1__Parameter *parameters;
        Gpuq__V1__Parameter **parameter_pointers;
} ReportKernels;

static void report_kernels_free(ReportKernels *kernels) {
        free(kernels->infos);
        free(kernels->info_pointers);
        free(kernels->parameters);
        free(kernels->parameter_pointers);
}

static int report_kernels_allocate(ReportKernels *kernels, const Image *image) {
        size_t n = image->n_functions + 1, n_parameters = 1;

        for (size_t i = 0; i < image->n_functions; ++i)
                n_parameters += image->functions[i].n_parameters;

        kernels->infos = calloc(n, sizeof(*kernels->infos));
        kernels->info_pointers = calloc(n, sizeof(*kernels->info_pointers));
        kernels->parameters = calloc(n_parameters, sizeof(*kernels->parameters));
        kernels->parameter_pointers = calloc(n_parameters, sizeof(*kernels->parameter_pointers));
        if (!kernels->infos || !kernels->info_pointers || !kernels->parameters ||
            !kernels->parameter_pointers)
                return -ENOMEM;
        return 0;
}

static void report_fill_kernels(ReportKernels *kernels, const Image *image) {
        Gpuq__V1__Parameter *parameter = kernels->parameters;
        Gpuq__V1__Parameter **pointer = kernels->parameter_pointers;

        for (size_t i = 0; i < image->n_functions; ++i) {
                const Function *function = &image->functions[i];
                Gpuq__V1__KernelInfo *info = &kernels->infos[i];

                gpuq__v1__kernel_info__init(info);
                kernels->info_pointers[i] = info;
                info->name = (char *)function->name;
                info->text = (char *)function->text;
                info->kinds_known = function->kinds_known;
                info->max_block = function->max_threads;
                info->parameters = pointer;
                info->n_parameters = function->n_parameters;
                for (size_t k = 0; k < function->n_parameters; ++k) {
                        gpuq__v1__parameter__init(parameter);
                        parameter->kind = function->parameters[k].kind;
                        parameter->size = (uint32_t)function->parameters[k].size;
                        *pointer++ = parameter++;
                }
        }
}

static int report_module_ready(Outbox *outbox, const Module *module) {
        Gpuq__Worker__ModuleAdded added = GPUQ__WORKER__MODULE_ADDED__INIT;
        _cleanup_(report_kernels_free) ReportKernels kernels = {0};
        int r;

        r = report_kernels_allocate(&kernels, module->image);
        if (r < 0)
                return r;
        report_fill_kernels(&kernels, module->image);

        added.id = module->id;
        added.kernels = kernels.info_pointers;
        added.n_kernels = module->image->n_functions;
        added.has_variables = module->image->has_variables;
        if (module->log)
                added.log = report_cut(module->log);
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED, &added, -1);
}

int report_module(Outbox *outbox, const Module *module) {
        Failure failure = {0};
        int r;

        if (module->state == MODULE_FAILED)
                return report_module_failed(outbox, module->id, &module->failure);

        r = report_module_ready(outbox, module);
        if (r != -EMSGSIZE && r != -ENOMEM)
                return r;
        failure_set(&failure, GPUQ__V1__CODE__E_IMAGE, "the module has too many kernels to list");
        r = report_module_failed(outbox, module->id, &failure);
        failure_clear(&failure);
        return r;
}

/* ---- jobs --------------------------------------------------------------------------------- */

#define REPORT_ENDS_MAX  64u                                        /* of one message */
#define REPORT_END_BYTES (PACK_PREFIX_BYTES + 3 * PACK_FIELD_BYTES) /* of a plain one, at most */

/* It ran well and printed nothing, as nearly all do. */
static bool report_is_plain(const Job *job) {
        return !failure_is_set(&job->failure) && !job->output;
}

/* The numbers are worker.proto's. */
static uint8_t *report_pack_end(uint8_t *p, const Job *job) {
        uint8_t *begin = p = pack_open(p, 1);

        p = pack_number(p, 1, job->id);
        p = pack_number(p, 4, job->gpu_ns);
        p = pack_number(p, 5, job->ran_us);
        return pack_close(begin, p);
}

/* From the first one, which is plain. @ret_next: the first that was not told. */
static int report_plain_ends(Outbox *outbox, const Job *job, const Job **ret_next) {
        uint8_t packed[PACK_PREFIX_BYTES + REPORT_ENDS_MAX * REPORT_END_BYTES];
        uint8_t *begin = pack_begin(packed, GPUQ__WORKER__FROM_WORKER__BODY_ENDS), *p = begin;

        for (unsigned n = 0; job && n < REPORT_ENDS_MAX && report_is_plain(job); ++n) {
                p = report_pack_end(p, job);
                job = TAILQ_NEXT(job, link);
        }
        pack_end(begin, p);
        *ret_next = job;
        return outbox_send_packed(outbox, packed, (size_t)(p - packed));
}

static int report_end(Outbox *outbox, const Job *job) {
        Gpuq__Worker__JobEnds ends = GPUQ__WORKER__JOB_ENDS__INIT;
        Gpuq__Worker__JobEnd end = GPUQ__WORKER__JOB_END__INIT, *list = &end;
        Gpuq__V1__Error error;

        end.id = job->id;
        end.error = failure_pack(&job->failure, &error);
        if (job->output)
                end.output = job->output;
        end.gpu_ns = job->gpu_ns;
        end.ran_us = job->ran_us;
        ends.ends = &list;
        ends.n_ends = 1;
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_ENDS, &ends, -1);
}

int report_ends(Outbox *outbox, const struct JobList *ended) {
        const Job *job = TAILQ_FIRST(ended);
        int r = 0;

        while (r == 0 && job) {
                if (report_is_plain(job)) {
                        r = report_plain_ends(outbox, job, &job);
                } else {
                        r = report_end(outbox, job);
                        job = TAILQ_NEXT(job, link);
                }
        }
        return r;
}

int report_late(Outbox *outbox, const Job *job) {
        Gpuq__Worker__JobLate late = GPUQ__WORKER__JOB_LATE__INIT;

        late.id = job->id;
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_LATE, &late, -1);
}

static size_t report_count(const struct JobList *jobs) {
        const Job *job;
        size_t n = 0;

        TAILQ_FOREACH (job, jobs, link)
                ++n;
        return n;
}

static size_t report_fill_in_flight(Gpuq__Worker__InFlight *list, Gpuq__Worker__InFlight **pointers,
                                    size_t n, const struct JobList *jobs) {
        const Job *job;

        TAILQ_FOREACH (job, jobs, link) {
                gpuq__worker__in_flight__init(&list[n]);
                list[n].id = job->id;
                list[n].phase = runner_phase(job);
                pointers[n] = &list[n];
                ++n;
        }
        return n;
}

int report_stopped(Outbox *outbox, const Runner *runner, const Failure *failure,
                   const char *output) {
        Gpuq__Worker__Stopped stopped = GPUQ__WORKER__STOPPED__INIT;
        _cleanup_(freep) Gpuq__Worker__InFlight *list = NULL;
        _cleanup_(freep) Gpuq__Worker__InFlight **pointers = NULL;
        size_t n = report_count(&runner->in_flight) + report_count(&runner->waiting);
        Gpuq__V1__Error error;

        list = calloc(n + 1, sizeof(*list));
        pointers = calloc(n + 1, sizeof(*pointers));
        if (!list || !pointers)
                return -ENOMEM;

        n = report_fill_in_flight(list, pointers, 0, &runner->in_flight);
        n = report_fill_in_flight(list, pointers, n, &runner->waiting);
        stopped.jobs = pointers;
        stopped.n_jobs = n;
        stopped.error = failure_pack(failure, &error);
        stopped.device_failed = failure->is_device;
        if (output)
                stopped.output = (char *)output;
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_STOPPED, &stopped, -1);
}

static void report_fill_counters(Gpuq__V1__WorkerCounters *counters, const Issuer *issuer) {
        gpuq__v1__worker_counters__init(counters);
        counters->batches = issuer->counters.n_batches;
        counters->coalesced = issuer->counters.n_coalesced;
        counters->in_place = issuer->counters.n_by_way[BATCH_IN_PLACE];
        counters->staged_by_kernel = issuer->counters.n_by_way[BATCH_MOVED];
        counters->staged_by_copy = issuer->counters.n_by_way[BATCH_COPIED];
        counters->graph_hits = issuer->graphs.n_reused;
        counters->graph_misses = issuer->graphs.n_made;
        counters->graph_evictions = issuer->graphs.n_evicted;
}

int report_stats(Outbox *outbox, uint64_t n_bytes, const Runner *runner) {
        Gpuq__Worker__Stats stats = GPUQ__WORKER__STATS__INIT;
        Gpuq__V1__WorkerCounters counters;

        report_fill_counters(&counters, &runner->issuer);
        stats.memory = n_bytes;
        stats.waiting = (char *)runner_waiting(runner);
        stats.counters = &counters;
        return report_send(outbox, GPUQ__WORKER__FROM_WORKER__BODY_STATS, &stats, -1);
}

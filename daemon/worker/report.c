/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report
 */
#include "worker/report.h"

#include <string.h>

/* Limit of texts, so that no message exceeds a frame to a client. */
#define REPORT_LOG_MAX (256u << 10)

static int report_send(Outbox *outbox, WorkerMessage message, const Failure *failure) {
        failure_tell(failure, &message);
        return outbox_send(outbox, &message, -1);
}

int report_ready(Outbox *outbox, uint64_t n_free, const Failure *failure) {
        return report_send(
                outbox,
                (WorkerMessage){
                        {.kind = FROM_WORKER_READY, .id = n_free, .number = WORKER_PROTOCOL}},
                failure);
}

/* ---- arenas and modules ------------------------------------------------------------- */

static int report_arena_made(Outbox *outbox, Arena *arena) {
        WorkerMessage made = {
                {.kind = FROM_WORKER_ARENA_MADE, .id = arena->id, .number = arena->address}};
        int r;

        failure_tell(&arena->failure, &made);
        r = outbox_send(outbox, &made, made.head.code ? -1 : arena->fd);

        /* The supervisor holds the descriptor from now on. */
        if (arena->fd >= 0)
                close(arena->fd);
        arena->fd = -1;
        return r;
}

int report_arena(Outbox *outbox, Arena *arena) {
        if (arena->made)
                return report_arena_made(outbox, arena);
        if (arena->state == ARENA_READY)
                return 0;
        return report_send(outbox,
                           (WorkerMessage){{.kind = FROM_WORKER_ARENA_ADDED, .id = arena->id}},
                           &arena->failure);
}

/* The beginning of a compiler's log is the most useful part. */
static char *report_cut(char *text) {
        if (strlen(text) <= REPORT_LOG_MAX)
                return text;
        text[REPORT_LOG_MAX] = '\0';
        return text_clean(text);
}

static int report_module_failed(Outbox *outbox, uint64_t id, const Failure *failure) {
        WorkerMessage added = {{.kind = FROM_WORKER_MODULE_ADDED, .id = id}};

        if (failure->text)
                report_cut(failure->text);
        return report_send(outbox, added, failure);
}

/* All that protobuf-c needs for a list of kernels, in one allocation. */
typedef struct ReportKernels {
        Gpuq__V1__KernelInfo **info_pointers, *infos;
        Gpuq__V1__Parameter **parameter_pointers, *parameters;
} ReportKernels;

/* Return: NULL: no memory. */
static void *report_allocate_kernels(const Image *image, ReportKernels *ret_kernels) {
        size_t n = image->n_functions, n_parameters = 0;
        ReportKernels kernels;

        for (size_t i = 0; i < n; ++i)
                n_parameters += image->functions[i].n_parameters;
        kernels.info_pointers =
                malloc(n * (sizeof(*kernels.infos) + sizeof(void *)) +
                       n_parameters * (sizeof(*kernels.parameters) + sizeof(void *)) + 1);
        if (!kernels.info_pointers)
                return NULL;

        kernels.infos = (Gpuq__V1__KernelInfo *)(kernels.info_pointers + n);
        kernels.parameter_pointers = (Gpuq__V1__Parameter **)(kernels.infos + n);
        kernels.parameters = (Gpuq__V1__Parameter *)(kernels.parameter_pointers + n_parameters);
        *ret_kernels = kernels;
        return kernels.info_pointers;
}

static void report_fill_kernels(const ReportKernels *kernels, const Image *image) {
        Gpuq__V1__Parameter *parameter = kernels->parameters;
        Gpuq__V1__Parameter **pointer = kernels->parameter_pointers;

        for (size_t i = 0; i < image->n_functions; ++i) {
                const Function *function = &image->functions[i];
                Gpuq__V1__KernelInfo *info = kernels->info_pointers[i] = &kernels->infos[i];

                gpuq__v1__kernel_info__init(info);
                info->name = (char *)function->name;
                if (strcmp(function->symbol, function->name) != 0)
                        info->symbol = (char *)function->symbol;
                info->text = (char *)function->text;
                info->kinds_known = function->kinds_known;
                info->max_block = function->max_threads;
                info->registers = function->n_registers;
                info->shared_bytes = (uint32_t)function->static_shared;
                info->const_bytes = function->n_const;
                info->local_bytes = function->n_local;
                info->ptx_version = function->ptx_version;
                info->binary_version = function->binary_version;
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

/* An index that no kernel has stands for a symbol that the driver did not find. */
static uint32_t report_find_function(const Image *image, const char *symbol) {
        size_t i = 0;

        while (i < image->n_functions && strcmp(image->functions[i].symbol, symbol) != 0)
                ++i;
        return (uint32_t)i;
}

/* Return: 0 or -ENOMEM. @ready->named is the caller's. */
static int report_fill_named(Gpuq__V1__ModuleReady *ready, const Module *module) {
        size_t n = 0;

        while (module->named && module->named[n])
                ++n;
        ready->named = calloc(n + 1, sizeof(*ready->named));
        if (!ready->named)
                return -ENOMEM;

        for (; ready->n_named < n; ++ready->n_named)
                ready->named[ready->n_named] =
                        report_find_function(module->image, module->named[ready->n_named]);
        return 0;
}

#define REPORT_VARIABLES_MAX 1024u

/* All that protobuf-c needs for a list of variables, in one allocation. Return: NULL: no memory. */
static void *report_fill_variables(Gpuq__V1__ModuleReady *ready, const Image *image) {
        size_t n = image->has_variables ? MIN(image->n_variables, REPORT_VARIABLES_MAX) : 0;
        Gpuq__V1__VariableInfo **pointers, *infos;

        pointers = malloc(n * (sizeof(*infos) + sizeof(void *)) + 1);
        if (!pointers)
                return NULL;

        infos = (Gpuq__V1__VariableInfo *)(pointers + n);
        for (size_t i = 0; i < n; ++i) {
                pointers[i] = &infos[i];
                gpuq__v1__variable_info__init(&infos[i]);
                infos[i].name = (char *)image->variables[i].name;
                infos[i].size = image->variables[i].size;
        }
        ready->variables = pointers;
        ready->n_variables = n;
        return pointers;
}

static int report_module_ready(Outbox *outbox, const Module *module) {
        WorkerMessage added = {{.kind = FROM_WORKER_MODULE_ADDED, .id = module->id}};
        Gpuq__V1__ModuleReady ready = GPUQ__V1__MODULE_READY__INIT;
        _cleanup_(freep) uint8_t *packed = NULL;
        _cleanup_(freep) void *memory = NULL, *named = NULL, *variables = NULL;
        ReportKernels kernels;

        memory = report_allocate_kernels(module->image, &kernels);
        variables = report_fill_variables(&ready, module->image);
        if (!memory || !variables)
                return -ENOMEM;
        report_fill_kernels(&kernels, module->image);
        ready.module = module->id;
        ready.kernels = kernels.info_pointers;
        ready.n_kernels = module->image->n_functions;
        ready.has_variables = module->image->has_variables;
        if (module->log)
                ready.log = report_cut(module->log);
        if (report_fill_named(&ready, module) < 0)
                return -ENOMEM;
        named = ready.named;

        packed = malloc(gpuq__v1__module_ready__get_packed_size(&ready));
        if (!packed)
                return -ENOMEM;
        added.head.n_items = (uint32_t)gpuq__v1__module_ready__pack(&ready, packed);
        added.items = packed;
        return outbox_send(outbox, &added, -1);
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

#define REPORT_ENDS_MAX 64u /* of one message */

/* Packs jobs from the first one on; one with texts goes alone. Return: the first job not packed. */
static const Job *report_fill_ends(const Job *job, WorkerEnd *ends, WorkerMessage *message) {
        do {
                ends[message->head.n_items++] = (WorkerEnd){
                        .id = job->id,
                        .gpu_ns = job->run.gpu_ns,
                        .ran_us = job->run.ran_us,
                        .stream = job->run.stream,
                };
                failure_tell(&job->failure, message);
                message->head.detail = job->never_ran;
                message->more = job->output;
                if (!job_is_plain(job))
                        return TAILQ_NEXT(job, link);
                job = TAILQ_NEXT(job, link);
        } while (job && job_is_plain(job) && message->head.n_items < REPORT_ENDS_MAX);
        return job;
}

int report_ends(Outbox *outbox, const struct JobList *ended) {
        const Job *job = TAILQ_FIRST(ended);
        WorkerEnd ends[REPORT_ENDS_MAX];
        int r = 0;

        while (r == 0 && job) {
                WorkerMessage message = {{.kind = FROM_WORKER_ENDS}, .items = ends};

                job = report_fill_ends(job, ends, &message);
                r = outbox_send(outbox, &message, -1);
        }
        return r;
}

int report_late(Outbox *outbox, const Job *job) {
        return outbox_send(outbox, &(WorkerMessage){{.kind = FROM_WORKER_LATE, .id = job->id}}, -1);
}

static size_t report_count(const struct JobList *jobs) {
        const Job *job;
        size_t n = 0;

        TAILQ_FOREACH (job, jobs, link)
                ++n;
        return n;
}

static uint32_t report_fill_in_flight(WorkerInFlight *list, uint32_t n,
                                      const struct JobList *jobs) {
        const Job *job;

        TAILQ_FOREACH (job, jobs, link)
                list[n++] = (WorkerInFlight){.id = job->id, .phase = runner_phase(job)};
        return n;
}

int report_stopped(Outbox *outbox, const Runner *runner, const Failure *failure,
                   const char *output) {
        size_t n = report_count(&runner->in_flight) + report_count(&runner->waiting);
        WorkerMessage stopped = {{.kind = FROM_WORKER_STOPPED}, .more = output};
        _cleanup_(freep) WorkerInFlight *list = NULL;

        list = calloc(n + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;

        n = report_fill_in_flight(list, 0, &runner->in_flight);
        stopped.head.n_items = report_fill_in_flight(list, (uint32_t)n, &runner->waiting);
        stopped.items = list;
        return report_send(outbox, stopped, failure);
}

/* ---- figures ------------------------------------------------------------------------------ */

static void report_fill_counters(Gpuq__V1__WorkerCounters *counters, const Runner *runner) {
        const Issuer *issuer = &runner->issuer;

        gpuq__v1__worker_counters__init(counters);
        counters->batches = issuer->counters.n_batches;
        counters->coalesced = issuer->counters.n_coalesced;
        counters->in_place = issuer->counters.n_by_way[BATCH_IN_PLACE];
        counters->staged_by_kernel = issuer->counters.n_by_way[BATCH_MOVED];
        counters->staged_by_copy = issuer->counters.n_by_way[BATCH_COPIED];
        counters->graph_hits = issuer->graphs.n_reused;
        counters->graph_misses = issuer->graphs.n_made;
        counters->graph_evictions = issuer->graphs.n_evicted;
        counters->direct = runner->n_direct;
}

int report_stats(Outbox *outbox, const MemoryUse *use, const Runner *runner) {
        Gpuq__V1__WorkerCounters counters;
        uint8_t packed[256];

        report_fill_counters(&counters, runner);
        return outbox_send(outbox,
                           &(WorkerMessage){
                                   {
                                           .kind = FROM_WORKER_STATS,
                                           .id = use->all,
                                           .number = use->own,
                                           .detail = runner_waits_for(runner),
                                           .n_items = (uint32_t)gpuq__v1__worker_counters__pack(
                                                   &counters, packed),
                                   },
                                   .items = packed,
                           },
                           -1);
}

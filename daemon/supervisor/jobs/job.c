/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"
#include "util/list.h"
#include "module.h"
#include "engine.h"
#include "util/pool.h"

#define JOB_POOL_BYTES                                                                             \
        1024u /* of a job with all its data; a larger job is an allocation of its own */
#define JOB_POOL_SPARES 2048u

static Pool job_pool = POOL(JOB_POOL_BYTES, JOB_POOL_SPARES);

/* One allocation holds the job and all its data; the largest alignment first. */
typedef struct JobLayout {
        size_t buffers;
        size_t kernels;
        size_t after;
        size_t operations;
        size_t names;
        size_t total;
} JobLayout;

JobTexts job_texts(const JobSpec *spec) {
        JobTexts texts = {.n_bytes = strlen(spec->label) + 1};

        for (size_t i = 0; i < spec->n_kernels; ++i) {
                const JobKernel *kernel = &spec->kernels[i];
                size_t n_name = strlen(kernel->name);

                texts.n_bytes += n_name + 1;
                texts.key ^= kernel->module->name_key;
                texts.key = duration_key(texts.key, kernel->name, n_name);
        }
        return texts;
}

static JobLayout job_layout(const JobSpec *spec, const JobTexts *texts) {
        JobLayout layout = {};

        layout.buffers = sizeof(Job);
        layout.kernels = layout.buffers + spec->n_buffers * sizeof(JobBuffer);
        layout.after = layout.kernels + spec->n_kernels * sizeof(JobKernel);
        layout.operations = layout.after + spec->n_after * sizeof(JobEdge);
        layout.names = layout.operations + spec->n_operations;
        layout.total = layout.names + texts->n_bytes;
        return layout;
}

static char *job_copy_name(char **cursor, const char *name) {
        char *copy = *cursor;

        *cursor = stpcpy(copy, name) + 1;
        return copy;
}

static void job_copy_buffers(Job *job, const JobSpec *spec) {
        uint64_t n_data = 0;

        for (size_t i = 0; i < spec->n_buffers; ++i) {
                job->work.buffers[i] = spec->buffers[i];
                arena_ref(spec->buffers[i].arena);
                n_data += spec->buffers[i].length;
        }
        job->work.n_buffers = spec->n_buffers;
        job->work.n_data = n_data;
        job->work.n_moved = spec->n_moved;
}

static void job_copy_kernels(Job *job, const JobSpec *spec, char **names) {
        job->work.n_kernels = spec->n_kernels;
        for (size_t i = 0; i < spec->n_kernels; ++i) {
                job->work.kernels[i].module = module_ref(spec->kernels[i].module);
                job->work.kernels[i].name = job_copy_name(names, spec->kernels[i].name);
                job->work.kernels[i].n_name = (size_t)(*names - 1 - job->work.kernels[i].name);
        }
}

static struct JobEdgeList *job_edge_list(const JobEdge *edge) {
        JobEdges *edges = &edge->before->edges;

        if (!edge->is_order)
                return &edges->dependents;
        return edge->is_seen ? &edges->followers : &edges->successors;
}

void job_edge_add(JobEdge *edge) {
        TAILQ_INSERT_TAIL(job_edge_list(edge), edge, link);
}

void job_edge_remove(JobEdge *edge) {
        TAILQ_REMOVE(job_edge_list(edge), edge, link);
}

static void job_copy_after(Job *job, const JobSpec *spec) {
        job->edges.n_after = job->edges.n_blocking = spec->n_after;
        for (size_t i = 0; i < spec->n_after; ++i) {
                job->edges.after[i] = (JobEdge){
                        .before = spec->after[i],
                        .after = job,
                        .is_blocking = true,
                };
                job_edge_add(&job->edges.after[i]);
        }
}

/* Kernels and the amount of data predict its duration. */
static uint64_t job_duration_class(const Job *job, const JobTexts *texts) {
        uint8_t size = (uint8_t)(63 - __builtin_clzll((job->work.n_data + 1) | 1));

        return duration_key(texts->key, &size, sizeof(size));
}

static void job_copy(Job *job, const JobSpec *spec, const JobLayout *layout) {
        char *base = (char *)job, *names = base + layout->names;

        job->work.buffers = (JobBuffer *)(base + layout->buffers);
        job->work.kernels = (JobKernel *)(base + layout->kernels);
        job->edges.after = (JobEdge *)(base + layout->after);
        job->work.operations = (uint8_t *)(base + layout->operations);
        job->label = job_copy_name(&names, spec->label);
        job_copy_buffers(job, spec);
        job_copy_kernels(job, spec, &names);
        job_copy_after(job, spec);
        job->work.n_operations = spec->n_operations;
        if (spec->n_operations)
                memcpy(job->work.operations, spec->operations, spec->n_operations);
}

int job_new(Engine *engine, const JobSpec *spec, User *user, Job **ret_job) {
        JobTexts texts = spec->texts.n_bytes ? spec->texts : job_texts(spec);
        JobLayout layout = job_layout(spec, &texts);
        bool is_pooled = layout.total <= JOB_POOL_BYTES;
        Job *job;

        job = is_pooled ? pool_get(&job_pool) : malloc(layout.total);
        if (!job)
                return -ENOMEM;

        *job = (Job){
                .id = spec->id,
                .engine = engine,
                .user = user_hold(user),
                .work.device = spec->device,
                .work.may_move = spec->may_move,
                .work.timeout_ms = spec->timeout_ms,
                .work.repeatable = spec->repeatable,
                .work.is_prepared = spec->texts.n_bytes != 0,
                .work.timed = spec->timed,
                .work.by_address = spec->by_address,
                .is_pooled = is_pooled,
                .work.n_bytes = (uint32_t)(is_pooled ? JOB_POOL_BYTES : layout.total),
                .work.word = spec->word ? arena_ref(spec->word) : NULL,
                .work.word_offset = spec->word_offset,
                .record = LEDGER_NONE,
        };
        job->entry = (QueueEntry){
                .key = spec->id,
                .session = (uint32_t)(spec->id >> 32),
                .priority = spec->priority,
        };
        TAILQ_INIT(&job->edges.dependents);
        TAILQ_INIT(&job->edges.successors);
        TAILQ_INIT(&job->edges.followers);
        LIST_INIT(&job->watches);
        job_copy(job, spec, &layout);
        job->cost.class = job_duration_class(job, &texts);
        *ret_job = job;
        return 0;
}

uint64_t job_memory(const Job *job) {
        return job->work.n_bytes + (job->work.n_buffers + job->work.n_kernels) * ORDER_ACCESS_BYTES;
}

Job *job_find(const Engine *engine, uint64_t id) {
        Job *job;

        HASH_FIND(hh, engine->jobs, &id, sizeof(id), job);
        return job;
}

void job_release(Job *job) {
        for (size_t i = 0; i < job->work.n_buffers; ++i)
                arena_unref(job->work.buffers[i].arena);
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                module_unref(job->work.kernels[i].module);
        job->work.word = arena_unref(job->work.word);
        job->work.n_buffers = job->work.n_kernels = 0;
}

static void job_drop_edges(JobEdge *edges, size_t n_edges) {
        for (size_t i = 0; i < n_edges; ++i)
                if (edges[i].before)
                        job_edge_remove(&edges[i]);
}

void job_forget_after(Job *job) {
        job_drop_edges(job->edges.after, job->edges.n_after);
        job->edges.n_after = 0;
}

Job *job_free(Job *job) {
        if (!job)
                return NULL;
        if (job->is_gap || job->edges.is_following) {
                job->is_left = true;
                return NULL;
        }

        assert(!job->entry.turn);
        assert(!job_has_followers(job));
        assert(LIST_EMPTY(&job->watches));

        if (job->charge.user) /* mostly its end has undone it */
                user_uncharge(&job->charge);
        user_uncharge(&job->memory);
        if (job->outcome.texts.user)
                user_uncharge(&job->outcome.texts);
        job->user->n_held--;
        job_drop_edges(job->edges.after, job->edges.n_after);
        job_drop_edges(job->edges.order, job->edges.n_order);
        job_release(job);
        free(job->edges.order);
        free(job->outcome.output);
        failure_free(job->verdict.failure);
        failure_free(job->outcome.failure);
        if (job->is_pooled)
                pool_put(&job_pool, job);
        else
                free(job);
        return NULL;
}

void job_watch(Job *job, JobWatch *watch) {
        LIST_INSERT_HEAD(&job->watches, watch, link);
}

void job_unwatch(JobWatch *watch) {
        LIST_REMOVE(watch, link);
}

bool job_may_move(JobState from, JobState to) {
        static const bool moves[_JOB_STATE_N][_JOB_STATE_N] = {
                [JOB_WAITING] = {[JOB_RUNNING] = true, [JOB_FAILED] = true, [JOB_CANCELLED] = true},
                [JOB_RUNNING] = {[JOB_WAITING] = true,
                                 [JOB_DONE] = true,
                                 [JOB_FAILED] = true,
                                 [JOB_CANCELLED] = true},
        };

        return moves[from][to];
}

static void job_count(Job *job, int by) {
        if (!job_is_made(job))
                return;
        if (job->state == JOB_WAITING)
                job->user->n_waiting += by;
        else if (job->state == JOB_RUNNING)
                job->user->n_running += by;
}

void job_set_state(Job *job, JobState next) {
        assert(job_may_move(job->state, next));

        job_count(job, -1);
        job->state = next;
        job_count(job, 1);
}

#define MOVE(to) (1u << (to))
#define MOVE_ALL ((1u << _JOB_PLACE_N) - 1)

const uint16_t job_place_moves[_JOB_PLACE_N] = {
        [JOB_NOWHERE] = MOVE_ALL & ~MOVE(JOB_NOWHERE),
        [JOB_UNPLACED] = MOVE(JOB_NOWHERE),
        [JOB_QUEUED] = MOVE(JOB_NOWHERE) | MOVE(JOB_ALONE),
        [JOB_ALONE] = MOVE(JOB_NOWHERE),
        [JOB_PARKED] = MOVE(JOB_NOWHERE),
        [JOB_INFLIGHT] = MOVE(JOB_NOWHERE),
        [JOB_ENDING] = MOVE(JOB_NOWHERE),
        [JOB_ENDED] = 0,
};

void job_set_output(Job *job, const char *output, size_t n_max) {
        free(job->outcome.output);
        job->outcome.output = strndup(output, n_max);
        if (job->outcome.output)
                text_clean(job->outcome.output);
}

void job_note_retries(Job *job, unsigned retries) {
        LedgerOwner owner = job_owner(job);

        job->retries = retries;
        job->record = ledger_job_waits(job->engine->ledger, job->record, &owner, retries);
}

bool job_time_out(Job *job) {
        char names[256];

        if (job->verdict.failure)
                return false;
        job_kernel_names(job, names, sizeof(names));
        job->verdict.state = JOB_FAILED;
        job->verdict.failure =
                failure_new(FAILURE_TIMEOUT, "%s ran longer than its timeout of %.3f s", names,
                            (double)job->work.timeout_ms / 1000);
        return true;
}

LedgerOwner job_owner(const Job *job) {
        return (LedgerOwner){
                .id = job->id,
                .uid = (uint32_t)job->user->uid,
                .gid = (uint32_t)job->user->gid,
        };
}

bool job_is_ended(const Job *job) {
        return job->state >= JOB_DONE;
}

bool job_changes_in_place(const Job *job, ArenaPlace place) {
        for (size_t i = 0; i < job->work.n_buffers; ++i)
                if (job->work.buffers[i].direction == JOB_INOUT &&
                    job->work.buffers[i].arena->place == place)
                        return true;
        return false;
}

bool job_has_variables(const Job *job) {
        for (size_t i = 0; i < job->work.n_kernels; ++i)
                if (job->work.kernels[i].module->has_variables)
                        return true;
        return false;
}

void job_kernel_names(const Job *job, char *text, size_t n_text) {
        size_t n;

        if (!job->work.n_kernels) {
                snprintf(text, n_text, "job " JOB_ID_FORMAT, JOB_ID_PARTS(job->id));
                return;
        }

        n = snprintf(text, n_text, job->work.n_kernels > 1 ? "kernels %s" : "kernel %s",
                     job->work.kernels[0].name);
        for (size_t i = 1; i < job->work.n_kernels && n < n_text; ++i)
                n += snprintf(text + n, n_text - n, ", %s", job->work.kernels[i].name);
}

uint64_t job_waited_us(const Job *job, uint64_t now_ns) {
        uint64_t until_ns = job->clock.started_ns ? job->clock.started_ns : now_ns;

        return until_ns > job->clock.submitted_ns ? (until_ns - job->clock.submitted_ns) / 1000 : 0;
}

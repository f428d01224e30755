/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the record of a new detached job: buffers packed into one arena, each module once, and the
 * memory to store.
 */

#include <time.h>

#include "detached_state.h"

/* The job's modules, each once. */
typedef struct Draft {
        const Module **modules;
        Gpuq__V1__ModuleLoad *loads;
        Gpuq__V1__ModuleLoad **list;
        uint64_t *indices; /* of each kernel's module */
        size_t n_modules;
} Draft;

static void draft_finish(Draft *draft) {
        free(draft->modules);
        free(draft->loads);
        free(draft->list);
        free(draft->indices);
}

static int draft_init(Draft *draft, const JobSpec *spec) {
        size_t n = spec->n_kernels + 1;

        draft->modules = calloc(n, sizeof(*draft->modules));
        draft->loads = calloc(n, sizeof(*draft->loads));
        draft->list = calloc(n, sizeof(*draft->list));
        draft->indices = calloc(n, sizeof(*draft->indices));
        return draft->modules && draft->loads && draft->list && draft->indices ? 0 : -ENOMEM;
}

static size_t draft_module(Draft *draft, const Module *module) {
        Gpuq__V1__ModuleLoad *load;
        size_t i = 0;

        while (i < draft->n_modules && draft->modules[i] != module)
                i++;
        if (i < draft->n_modules)
                return i;

        load = draft->list[i] = &draft->loads[i];
        gpuq__v1__module_load__init(load);
        load->format = (Gpuq__V1__Format)module->format;
        load->image = module->image != NULL;
        load->length = module->image ? module->length : 0;
        load->options = module->texts.options;
        load->n_options = module->texts.n_options;
        load->names = module->texts.names;
        load->n_names = module->texts.n_names;
        load->header_bytes = module->texts.n_header_bytes;
        load->name = module->name;
        draft->modules[i] = module;
        return draft->n_modules++;
}

/* A copy that still names the client's arenas. */
static Gpuq__Detached__Record *draft_record(Draft *draft, const Session *session,
                                            const Gpuq__V1__Detach *detach, const JobSpec *spec) {
        Gpuq__Detached__Record record = GPUQ__DETACHED__RECORD__INIT, *copy;
        uint8_t *data;
        size_t n;

        for (size_t i = 0; i < spec->n_kernels; ++i)
                draft->indices[i] = draft_module(draft, spec->kernels[i].module);
        record.gid = session->peer.gid;
        record.slurm_job = session->submitter.slurm_job;
        record.made_s = (uint64_t)time(NULL);
        record.detach = (Gpuq__V1__Detach *)detach;
        record.modules = draft->list;
        record.n_modules = draft->n_modules;
        data = malloc(gpuq__detached__record__get_packed_size(&record) + 1);
        if (!data)
                return NULL;
        n = gpuq__detached__record__pack(&record, data);
        copy = gpuq__detached__record__unpack(NULL, n, data);
        free(data);
        if (!copy)
                return NULL;
        copy->detach->job->repeatable =
                false; /* within the client's arenas it may not be; from the disk it always is */
        for (size_t i = 0; i < spec->n_kernels; ++i)
                copy->detach->job->kernels[i]->module = draft->indices[i];
        return copy;
}

/* The thread's input is referenced until it is done: arenas of the job and images of its modules. */
static int draft_hold(Detached *detached, const Draft *draft, Gpuq__V1__Job *job) {
        _cleanup_(freep) Extent *extents = calloc(job->n_buffers + 1, sizeof(*extents));
        size_t n, n_max = job->n_buffers + draft->n_modules + 1;

        detached->parts = calloc(n_max, sizeof(*detached->parts));
        detached->arenas = calloc(n_max, sizeof(Arena *));
        if (!extents || !detached->parts || !detached->arenas)
                return -ENOMEM;

        n = extents_of(job, extents);
        for (size_t i = 0; i < n; ++i) {
                Arena *arena = arena_find(detached->table->engine, extents[i].arena);

                if (!extents[i].read)
                        continue;
                detached->arenas[detached->n_arenas++] = arena_ref(arena);
                detached->parts[detached->n_parts++] =
                        (PayloadPart){arena->fd, extents[i].offset, extents[i].length};
        }
        for (size_t i = 0; i < draft->n_modules; ++i) {
                Arena *image = draft->modules[i]->image;

                if (!image)
                        continue;
                detached->arenas[detached->n_arenas++] = arena_ref(image);
                detached->parts[detached->n_parts++] =
                        (PayloadPart){image->fd, 0, load_bytes(draft->list[i])};
        }
        extents_pack(extents, n, job);
        return stored_job_check(&detached->stored);
}

static Failure *draft_charge(Detached *detached) {
        User *user = detached->owner->user;
        uint64_t n_bytes = detached_bytes(detached);

        if (user_charge(user, &detached->jobs_charge, USER_DETACHED_JOBS, 1) == USER_E_QUOTA)
                return user_quota_failure(user, USER_DETACHED_JOBS, 1);
        if (user_charge(user, &detached->bytes_charge, USER_DETACHED_BYTES, n_bytes) ==
            USER_E_QUOTA)
                return user_quota_failure(user, USER_DETACHED_BYTES, n_bytes);
        n_bytes = detached_record_bytes(detached);
        if (user_charge(user, &detached->record_charge, USER_RECORD_BYTES, n_bytes) == USER_E_QUOTA)
                return user_quota_failure(user, USER_RECORD_BYTES, n_bytes);
        return NULL;
}

Failure *detached_fill(Detached *detached, const Session *session, const Gpuq__V1__Detach *detach,
                       const JobSpec *spec) {
        _cleanup_(draft_finish) Draft draft = {};
        Gpuq__Detached__Record *record = NULL;

        if (draft_init(&draft, spec) == 0)
                record = detached->stored.record = draft_record(&draft, session, detach, spec);
        if (!record || detached_own(detached) < 0 ||
            draft_hold(detached, &draft, record->detach->job) != 0)
                return failure_new(FAILURE_MEMORY, "gpuqd has no memory for a detached job");
        return draft_charge(detached);
}

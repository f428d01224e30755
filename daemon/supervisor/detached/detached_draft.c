/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a new detached job, from what its client asked for: buffers packed
 * into one arena, each module once, and what the disk is to read it from.
 */

#include <string.h>
#include <time.h>

#include "detached.h"
#include "extent.h"
#include "jobs.h"
#include "loop.h"

/* Room for the parts of one record, which is packed and unpacked to become one of its own. */
typedef struct DetachDraft {
        Gpuq__Spool__Record record;
        Gpuq__V1__Job job;
        Gpuq__V1__Buffer *buffers;
        Gpuq__V1__Buffer **buffer_list;
        ExtentSlice *slices;
        Extent *extents;
        Gpuq__Spool__Extent *spool_extents;
        Gpuq__Spool__Extent **extent_list;
        Module **modules; /* each once */
        Gpuq__Spool__Module *spool_modules;
        Gpuq__Spool__Module **module_list;
        uint32_t *kernel_modules;
        size_t n_modules;
} DetachDraft;

static void draft_finish(DetachDraft *draft) {
        free(draft->buffers);
        free(draft->buffer_list);
        free(draft->slices);
        free(draft->extents);
        free(draft->spool_extents);
        free(draft->extent_list);
        free(draft->modules);
        free(draft->spool_modules);
        free(draft->module_list);
        free(draft->kernel_modules);
}

static int draft_alloc(DetachDraft *draft, const JobSpec *spec) {
        size_t n_buffers = spec->n_buffers + 1, n_kernels = spec->n_kernels + 1;

        draft->buffers = calloc(n_buffers, sizeof(*draft->buffers));
        draft->buffer_list = calloc(n_buffers, sizeof(*draft->buffer_list));
        draft->slices = calloc(n_buffers, sizeof(*draft->slices));
        draft->extents = calloc(n_buffers, sizeof(*draft->extents));
        draft->spool_extents = calloc(n_buffers, sizeof(*draft->spool_extents));
        draft->extent_list = calloc(n_buffers, sizeof(*draft->extent_list));
        draft->modules = calloc(n_kernels, sizeof(Module *));
        draft->spool_modules = calloc(n_kernels, sizeof(*draft->spool_modules));
        draft->module_list = calloc(n_kernels, sizeof(*draft->module_list));
        draft->kernel_modules = calloc(n_kernels, sizeof(*draft->kernel_modules));
        return draft->buffers && draft->buffer_list && draft->slices && draft->extents &&
                               draft->spool_extents && draft->extent_list && draft->modules &&
                               draft->spool_modules && draft->module_list && draft->kernel_modules
                       ? 0
                       : -ENOMEM;
}

static void draft_slices(DetachDraft *draft, const JobSpec *spec) {
        for (size_t i = 0; i < spec->n_buffers; ++i) {
                const JobBuffer *buffer = &spec->buffers[i];

                draft->slices[i] = (ExtentSlice){
                        .arena = buffer->arena->id,
                        .offset = buffer->offset,
                        .length = buffer->length,
                        .read = job_is_read(buffer),
                        .written = buffer->direction != JOB_IN,
                };
        }
}

static void draft_buffers(DetachDraft *draft, const JobSpec *spec) {
        Gpuq__Spool__Record *record = &draft->record;

        draft_slices(draft, spec);
        record->n_extents =
                extents_pack(draft->slices, spec->n_buffers, draft->extents, &record->size);
        record->extents = draft->extent_list;
        for (size_t i = 0; i < record->n_extents; ++i) {
                const Extent *extent = &draft->extents[i];

                gpuq__spool__extent__init(&draft->spool_extents[i]);
                draft->spool_extents[i].offset = extent->new_offset;
                draft->spool_extents[i].length = extent->length;
                draft->spool_extents[i].read = extent->read;
                draft->spool_extents[i].written = extent->written;
                draft->extent_list[i] = &draft->spool_extents[i];
        }
        for (size_t i = 0; i < spec->n_buffers; ++i) {
                gpuq__v1__buffer__init(&draft->buffers[i]);
                draft->buffers[i].offset = draft->slices[i].new_offset;
                draft->buffers[i].length = draft->slices[i].length;
                draft->buffers[i].direction = (Gpuq__V1__Direction)spec->buffers[i].direction;
                draft->buffer_list[i] = &draft->buffers[i];
        }
        draft->job.buffers = draft->buffer_list;
}

static size_t draft_module(DetachDraft *draft, Module *module) {
        Gpuq__Spool__Module *to;
        size_t i;

        for (i = 0; i < draft->n_modules; ++i)
                if (draft->modules[i] == module)
                        return i;

        to = &draft->spool_modules[i];
        gpuq__spool__module__init(to);
        to->format = (Gpuq__V1__Format)module->format;
        to->options = module->options;
        to->n_options = module->n_options;
        to->name = module->name;
        to->length = module->image ? module->length : 0;
        draft->module_list[i] = to;
        draft->modules[i] = module;
        draft->n_modules++;
        return i;
}

static void draft_fill(DetachDraft *draft, const Session *session, const Gpuq__V1__Detach *detach,
                       const JobSpec *spec, uint32_t number) {
        Gpuq__Spool__Record *record = &draft->record;

        gpuq__spool__record__init(record);
        draft->job = *detach->job;
        draft->job.repeatable = false; /* in its arena it is not: from the disk it always is */
        draft_buffers(draft, spec);
        for (size_t i = 0; i < spec->n_kernels; ++i)
                draft->kernel_modules[i] = (uint32_t)draft_module(draft, spec->kernels[i].module);

        record->number = number;
        record->uid = session->peer.uid;
        record->gid = session->peer.gid;
        record->key = detach->key;
        record->made_s = (uint64_t)time(NULL);
        record->job = &draft->job;
        record->kernel_modules = draft->kernel_modules;
        record->n_kernel_modules = spec->n_kernels;
        record->modules = draft->module_list;
        record->n_modules = draft->n_modules;
        record->note = detach->note;
}

static Gpuq__Spool__Record *draft_record(const DetachDraft *draft) {
        Gpuq__Spool__Record *record;
        uint8_t *data;
        size_t n;

        data = malloc(gpuq__spool__record__get_packed_size(&draft->record) + 1);
        if (!data)
                return NULL;
        n = gpuq__spool__record__pack(&draft->record, data);
        record = gpuq__spool__record__unpack(NULL, n, data);
        free(data);
        return record;
}

/* What the thread reads, held until it has. Arenas of the job and images of its modules. */
static int draft_hold(Detached *detached, const Session *session, const DetachDraft *draft) {
        size_t n_extents = draft->record.n_extents, n_held = 0;

        detached->input = calloc(n_extents + 1, sizeof(*detached->input));
        detached->images = calloc(draft->n_modules + 1, sizeof(*detached->images));
        detached->held = calloc(n_extents + draft->n_modules + 1, sizeof(Arena *));
        if (!detached->input || !detached->images || !detached->held)
                return -ENOMEM;

        for (size_t i = 0; i < n_extents; ++i) {
                const Extent *extent = &draft->extents[i];
                Arena *arena = engine_find_arena(session->engine, extent->arena);

                detached->held[n_held++] = arena_ref(arena);
                detached->input[i] = (SpoolPart){arena->fd, extent->offset, extent->length};
        }
        for (size_t i = 0; i < draft->n_modules; ++i) {
                Arena *image = draft->modules[i]->image;

                if (image)
                        detached->held[n_held++] = arena_ref(image);
                detached->images[i] =
                        (SpoolPart){image ? image->fd : -1, 0, draft->modules[i]->length};
        }
        return 0;
}

static Failure *draft_charge(Detached *detached) {
        User *user = detached->owner->user;
        uint64_t n_bytes = detached_bytes(detached->record);

        if (user_charge(user, &detached->jobs_charge, USER_DETACHED_JOBS, 1) == USER_E_QUOTA)
                return limit_failure(user, USER_DETACHED_JOBS, 1);
        if (user_charge(user, &detached->bytes_charge, USER_DETACHED_BYTES, n_bytes) ==
            USER_E_QUOTA)
                return limit_failure(user, USER_DETACHED_BYTES, n_bytes);
        return NULL;
}

Failure *detached_fill(Detached *detached, const Session *session, const Gpuq__V1__Detach *detach,
                       const JobSpec *spec) {
        _cleanup_(draft_finish) DetachDraft draft = {};

        if (draft_alloc(&draft, spec) < 0)
                return failure_new(FAILURE_MEMORY, "no memory for a detached job");
        draft_fill(&draft, session, detach, spec, detached->number);
        detached->record = draft_record(&draft);
        if (!detached->record || detached_own(detached) < 0 ||
            draft_hold(detached, session, &draft) < 0)
                return failure_new(FAILURE_MEMORY, "no memory for a detached job");
        return draft_charge(detached);
}

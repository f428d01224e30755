/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preparing jobs and firing them
 *
 * If a scalar changes, the daemon replaces bytes of the packed operations without decoding them.
 * The positions of these bytes are found here, once, in the operations that were packed while the
 * job was built.
 */

#include <string.h>

#include "proto/pack.h"
#include "proto/scan.h"

#include "call.h"
#include "checked.h"
#include "direct.h"
#include "error.h"
#include "submit.h"
#include "util/grow.h"
#include "wait.h"

#define PREPARED_ROOM_MS 20

/* ---- where the scalars are ------------------------------------------------------------ */

static int prepared_add_scalar(gpuq_prepared *prepared, const PreparedScalar *scalar) {
        if (grow(&prepared->scalars, prepared->n_scalars, sizeof(*prepared->scalars)) < 0)
                return error_memory();

        prepared->scalars[prepared->n_scalars++] = *scalar;
        return 0;
}

/* An Argument: its scalar, if it is one, and its kind. */
static bool prepared_scan_argument(Scan scan, Scan *ret_scalar, uint64_t *ret_kind) {
        if (!scan_is(&scan, GPUQ__V1__ARGUMENT__VALUE_SCALAR, 2) || !scan_inner(&scan, ret_scalar))
                return false;
        *ret_kind = GPUQ_BYTES;
        return !scan_is(&scan, 3, 0) || scan_varint(&scan, ret_kind);
}

/* The arguments of a Launch. */
static int prepared_scan_launch(gpuq_prepared *prepared, Scan scan, const uint8_t *base,
                                size_t operation) {
        size_t argument = 0;
        Scan inner, scalar;
        uint64_t kind;
        int r;

        while (scan.p < scan.end) {
                if (!scan_is(&scan, 9, 2)) {
                        if (!scan_skip(&scan))
                                return 0;
                        continue;
                }
                if (!scan_inner(&scan, &inner))
                        return 0;
                if (prepared_scan_argument(inner, &scalar, &kind)) {
                        r = prepared_add_scalar(prepared,
                                                &(PreparedScalar){
                                                        .operation = operation,
                                                        .argument = argument,
                                                        .offset = (uint32_t)(scalar.p - base),
                                                        .size = (uint32_t)(scalar.end - scalar.p),
                                                        .kind = (gpuq_kind)kind,
                                                });
                        if (r < 0)
                                return r;
                }
                argument++;
        }
        return 0;
}

static int prepared_find_scalars(gpuq_prepared *prepared, const gpuq_job *job) {
        Scan scan = {job->operations, job->operations + job->n_operations}, operation, launch;
        int r;

        for (size_t i = 0; scan_is(&scan, 1, 2) && scan_inner(&scan, &operation); i++) {
                if (!scan_is(&operation, GPUQ__V1__OPERATION__WHAT_LAUNCH, 2) ||
                    !scan_inner(&operation, &launch))
                        continue;
                r = prepared_scan_launch(prepared, launch, job->operations, i);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- life ------------------------------------------------------------------------------- */

static int prepared_hold(gpuq_prepared *prepared, const gpuq_job *job) {
        prepared->buffers = calloc(job->n_buffers + 1, sizeof(*prepared->buffers));
        prepared->modules = calloc(job->n_kernels + 1, sizeof(gpuq_module *));
        prepared->now = calloc(job->n_buffers + 1, sizeof(gpuq_buffer *));
        prepared->slices = calloc(job->n_buffers + 1, 4 * sizeof(*prepared->slices));
        prepared->values = calloc(job->n_operations + 1, 1);
        if (!prepared->buffers || !prepared->modules || !prepared->now || !prepared->slices ||
            !prepared->values)
                return error_memory();

        for (size_t i = 0; i < job->n_buffers; i++) {
                prepared->buffers[i] = job->buffers[i];
                buffer_ref(job->buffers[i].buffer);
                prepared->n_buffers++;
        }
        for (size_t i = 0; i < job->n_kernels; i++)
                prepared->modules[prepared->n_modules++] = module_ref(job->kernels[i].module);
        return apart_copy(&prepared->apart, &job->apart);
}

static int prepared_new(const gpuq_job *job, gpuq_prepared **ret_prepared) {
        gpuq_prepared *prepared = calloc(1, sizeof(*prepared));
        int r;

        if (!prepared)
                return error_memory();
        prepared->refs = 1;
        prepared->client = client_ref(job->client);
        *ret_prepared = prepared;

        r = prepared_hold(prepared, job);
        if (r < 0)
                return r;
        r = prepared_find_scalars(prepared, job);
        if (r < 0)
                return r;
        prepared->patches = calloc(prepared->n_scalars + 1, 2 * sizeof(*prepared->patches));
        return prepared->patches ? 0 : error_memory();
}

static int prepared_tell(gpuq_prepared *prepared, const gpuq_job *job) {
        _cleanup_(reply_freep) Gpuq__V1__Reply *reply = NULL;
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;
        int r;

        r = submit_pack(job, 0, &prepared->job);
        if (r < 0)
                return r;
        prepare.job = prepared_unpack(prepared);
        if (!prepare.job)
                return error_memory();

        r = call_run(prepared->client, GPUQ__V1__REQUEST__BODY_PREPARE, &prepare,
                     GPUQ__V1__REPLY__BODY_PREPARED, CLIENT_FOREVER, &reply, NULL);
        gpuq__v1__job__free_unpacked(prepare.job, NULL);
        if (r < 0)
                return r;
        if (reply->prepared->prepared == 0) {
                client_fail(prepared->client, GPUQ_E_PROTOCOL,
                            "protocol error: gpuqd prepared a job without a number");
                return client_error(prepared->client);
        }

        prepared->id = reply->prepared->prepared;
        TAILQ_INSERT_TAIL(&prepared->client->prepareds->known, prepared, entries);
        return 0;
}

int gpuq_prepare(gpuq_job *job, gpuq_prepared **ret_prepared) {
        gpuq_prepared *prepared = NULL;
        int r;

        r = job_enter_building(job);
        if (r < 0)
                return r;
        if (job->n_operations == 0)
                return client_leave(job->client,
                                    error_set(GPUQ_E_INVALID,
                                              "the job has no operation; add a launch, copy or "
                                              "fill before submitting it"));

        job_ref(job);
        r = checked_prepare(job);
        if (r == 0)
                r = prepared_new(job, &prepared);
        if (r == 0)
                r = prepared_tell(prepared, job);
        if (r < 0)
                prepared_unref(prepared);
        if (r == 0)
                *ret_prepared = prepared;
        job_unref(job);
        return client_leave(job->client, r);
}

/* ---- firing ------------------------------------------------------------------------------- */

static int prepared_find_buffer(const gpuq_prepared *prepared, const gpuq_swap *swap,
                                size_t *ret_index) {
        if (!swap->was || !swap->now || swap->now->client != prepared->client)
                return error_set(GPUQ_E_INVALID,
                                 "a buffer to swap is NULL, or belongs to another connection");

        for (size_t i = 0; i < prepared->n_buffers; i++)
                if (buffer_is_same(prepared->buffers[i].buffer, swap->was)) {
                        *ret_index = i;
                        return 0;
                }
        return error_set(GPUQ_E_INVALID,
                         "the prepared job does not use the buffer that is to be swapped");
}

static int prepared_swap(gpuq_prepared *prepared, const gpuq_fire_args *args,
                         Gpuq__V1__Fire *fire) {
        size_t index;
        int r;

        for (size_t i = 0; i < prepared->n_buffers; i++)
                prepared->now[i] = prepared->buffers[i].buffer;
        for (size_t i = 0; i < args->n_swaps; i++) {
                r = prepared_find_buffer(prepared, &args->swaps[i], &index);
                if (r < 0)
                        return r;
                prepared->now[index] = args->swaps[i].now;
        }
        r = args->n_swaps == 0 ? 0
                               : apart_check(&prepared->apart, prepared->buffers, prepared->now,
                                             prepared->n_buffers);
        if (r < 0)
                return r;

        fire->slices = prepared->slices;
        for (size_t i = 0; i < prepared->n_buffers; i++) {
                const gpuq_buffer *buffer = prepared->now[i];

                if (buffer == prepared->buffers[i].buffer)
                        continue;
                fire->slices[fire->n_slices++] = i;
                fire->slices[fire->n_slices++] = buffer->arena->id;
                fire->slices[fire->n_slices++] = buffer->offset;
                fire->slices[fire->n_slices++] = buffer->size;
        }
        return 0;
}

static int prepared_find_scalar(const gpuq_prepared *prepared, const gpuq_set *set,
                                const PreparedScalar **ret_scalar) {
        for (size_t i = 0; i < prepared->n_scalars; i++) {
                const PreparedScalar *scalar = &prepared->scalars[i];

                if (scalar->operation != set->operation || scalar->argument != set->argument)
                        continue;
                if (scalar->kind == GPUQ_LOCAL)
                        return error_set(GPUQ_E_INVALID,
                                         "argument %zu of operation %zu is local memory, whose "
                                         "size a prepared job keeps",
                                         set->argument + 1, set->operation + 1);
                if (set->value.buffer || scalar->kind != set->value.kind ||
                    scalar->size != set->value.size)
                        return error_set(GPUQ_E_INVALID,
                                         "argument %zu of operation %zu is a scalar of a different "
                                         "kind or size",
                                         set->argument + 1, set->operation + 1);
                *ret_scalar = scalar;
                return 0;
        }
        return error_set(GPUQ_E_INVALID, "argument %zu of operation %zu is not a scalar",
                         set->argument + 1, set->operation + 1);
}

static int prepared_set(gpuq_prepared *prepared, const gpuq_fire_args *args, Gpuq__V1__Fire *fire) {
        const PreparedScalar *scalar;
        int r;

        if (args->n_sets > prepared->n_scalars)
                return error_set(GPUQ_E_INVALID,
                                 "%zu scalars are to be set, but the prepared job has only %zu",
                                 args->n_sets, prepared->n_scalars);

        fire->patches = prepared->patches;
        fire->values.data = prepared->values;
        for (size_t i = 0; i < args->n_sets; i++) {
                const gpuq_arg *value = &args->sets[i].value;

                r = prepared_find_scalar(prepared, &args->sets[i], &scalar);
                if (r < 0)
                        return r;
                fire->patches[fire->n_patches++] = scalar->offset;
                fire->patches[fire->n_patches++] = scalar->size;
                memcpy(prepared->values + fire->values.len,
                       value->kind == GPUQ_BYTES ? value->value.bytes : &value->value,
                       scalar->size);
                fire->values.len += scalar->size;
        }
        return 0;
}

/* The job holds the buffers that it uses until it has ended. The prepared job holds the modules. */
static int prepared_hold_buffers(const gpuq_prepared *prepared, gpuq_job *job) {
        job->buffers = calloc(prepared->n_buffers + 1, sizeof(*job->buffers));
        if (!job->buffers)
                return error_memory();

        for (; job->n_buffers < prepared->n_buffers; job->n_buffers++)
                job->buffers[job->n_buffers] = (BufferUse){
                        .buffer = buffer_ref(prepared->now[job->n_buffers]),
                        .direction = prepared->buffers[job->n_buffers].direction,
                };
        return 0;
}

/* A packed field of numbers. */
static uint8_t *prepared_pack_slices(uint8_t *p, const Gpuq__V1__Fire *fire) {
        uint8_t *begin;

        if (fire->n_slices == 0)
                return p;

        begin = p = pack_begin(p, 3);
        for (size_t i = 0; i < fire->n_slices; i++)
                p = pack_varint(p, fire->slices[i]);
        pack_end(begin, p);
        return p;
}

static uint8_t *prepared_pack_patches(uint8_t *p, const Gpuq__V1__Fire *fire) {
        uint8_t *begin;

        if (fire->n_patches == 0)
                return p;

        begin = p = pack_begin(p, 4);
        for (size_t i = 0; i < fire->n_patches; i++)
                p = pack_varint(p, fire->patches[i]);
        pack_end(begin, p);
        return p;
}

static int prepared_pack(gpuq_job *job, const Gpuq__V1__Fire *fire) {
        size_t n_numbers = 8 + fire->n_slices + fire->n_patches;
        uint8_t *p;
        int r;

        r = kept_new(&job->client->jobs->kept, n_numbers * PACK_FIELD_BYTES + fire->values.len,
                     &job->kept);
        if (r < 0)
                return r;

        p = pack_number(job->kept->bytes, 1, fire->prepared);
        p = pack_number(p, 2, fire->tag);
        p = prepared_pack_slices(p, fire);
        p = prepared_pack_patches(p, fire);
        p = pack_bytes(p, 5, fire->values.data, fire->values.len);
        p = pack_number(p, 6, fire->word_arena);
        p = pack_number(p, 7, fire->word_offset);
        p = pack_number(p, 8, fire->is_taken);
        job->kept->n_bytes = (uint32_t)(p - job->kept->bytes);
        job->kept->is_fire = true;
        return 0;
}

static int prepared_say(gpuq_job *job, Gpuq__V1__Fire *fire) {
        size_t n;
        int r;

        fire->tag = job->tag;
        word_name(&job->client->jobs->words, job->word, &fire->word_arena, &fire->word_offset);
        r = prepared_pack(job, fire);
        if (r < 0)
                return r;
        r = submit_say(job->client, &job, 1, &n);
        if (r < 0)
                return r;

        submit_commit(job);
        return 0;
}

static int prepared_submit(gpuq_prepared *prepared, gpuq_job *job, const gpuq_fire_args *args) {
        gpuq_client *client = prepared->client;
        Gpuq__V1__Fire fire = GPUQ__V1__FIRE__INIT;
        int r;

        if (client->jobs->tag == UINT32_MAX)
                return error_set(GPUQ_E_INVALID,
                                 "this session has no job numbers left; connect again");
        fire.prepared = prepared->id;
        r = prepared_swap(prepared, args, &fire);
        if (r < 0)
                return r;
        r = prepared_set(prepared, args, &fire);
        if (r < 0)
                return r;
        r = prepared_hold_buffers(prepared, job);
        if (r < 0)
                return r;

        job->func = args->func;
        job->userdata = args->userdata;
        r = submit_enter(job, client->jobs->tag + 1, true);
        if (r < 0)
                return r;
        job->prepared = prepared_ref(prepared);
        r = prepared_say(job, &fire);
        if (r < 0)
                submit_undo(job);
        return r;
}

int prepared_refire(gpuq_job *job, bool is_taken) {
        Gpuq__V1__Fire fire = GPUQ__V1__FIRE__INIT;

        fire.prepared = job->prepared->id;
        fire.tag = job->tag;
        fire.is_taken = is_taken;
        return prepared_pack(job, &fire);
}

/* The prepared job holds the buffers. */
static int prepared_fire(gpuq_prepared *prepared, gpuq_job *job, const gpuq_fire_args *args) {
        gpuq_client *client = prepared->client;
        uint32_t tag = client->jobs->tag + 1;
        int r;

        job->func = args->func;
        job->userdata = args->userdata;
        r = submit_enter(job, tag, false);
        if (r < 0)
                return r;
        job->prepared = prepared_ref(prepared);
        job->is_direct = true;
        submit_commit(job);
        job->entry = direct_fire(client, tag, prepared->id, job);
        return 0;
}

static bool prepared_has_room(gpuq_client *client, void *userdata) {
        jobs_collect(client);
        return client->direct.mode != DIRECT_LENT || direct_takes(client);
}

/* A program that fires faster than the device works waits for the oldest job in the ring. If that
 * takes long, the job goes by a message. */
static void prepared_make_room(gpuq_client *client) {
        if (!prepared_has_room(client, NULL))
                (void)client_wait(client, prepared_has_room, NULL,
                                  client_deadline_us(PREPARED_ROOM_MS), false);
}

/* Only what fires unchanged can go there. */
static bool prepared_may_fire(const gpuq_client *client, const gpuq_fire_args *args) {
        return direct_takes(client) && args->n_swaps == 0 && args->n_sets == 0 &&
               client->jobs->tag < UINT32_MAX;
}

int gpuq_fire(gpuq_prepared *prepared, const gpuq_fire_args *args, gpuq_job **ret_job) {
        static const gpuq_fire_args nothing;
        gpuq_client *client = prepared ? prepared->client : NULL;
        gpuq_job *job;
        int r;

        r = client_enter_open(client);
        if (r < 0)
                return r;
        r = submit_make_room(client);
        if (r < 0)
                return client_leave(client, r);
        prepared_make_room(client);
        r = job_create(client, &job);
        if (r < 0)
                return client_leave(client, r);

        args = args ? args : &nothing;
        if (prepared_may_fire(client, args))
                r = prepared_fire(prepared, job, args);
        else
                r = prepared_submit(prepared, job, args);
        if (r < 0) {
                job_unref(job);
                return client_leave(client, r);
        }
        *ret_job = job; /* before a callback can be run */
        direct_consider(client);
        submit_flush(client, 1);
        return client_leave(client, 0);
}

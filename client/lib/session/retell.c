/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retell
 *
 * A call may have its reply although its thread has not read it yet. It counts as the object that
 * it asked for: an arena, a module or a prepared job of this session that is in no list so far.
 */

#include "retell.h"

#include "call.h"
#include "direct.h"
#include "error.h"
#include "submit.h"

static const Gpuq__V1__Reply *retell_answer(const Call *call, Gpuq__V1__Reply__BodyCase what) {
        return call->reply && call->reply->body_case == what ? call->reply : NULL;
}

static Gpuq__V1__Request *retell_unpack(const Call *call) {
        return gpuq__v1__request__unpack(NULL, call->n_request, call->request);
}

/* ---- arenas ---------------------------------------------------------------------- */

static int retell_arena(gpuq_client *client, uint64_t id) {
        Gpuq__V1__ArenaOpen open = GPUQ__V1__ARENA_OPEN__INIT;

        open.arena = id;
        open.resume = true;
        return client_send(client, GPUQ__V1__REQUEST__BODY_ARENA_OPEN, &open, NULL);
}

static int retell_arenas(gpuq_client *client) {
        const Upload *upload;
        const Arena *arena;
        const Call *call;
        int r = 0;

        TAILQ_FOREACH (arena, &client->memory->arenas, arenas)
                r = r < 0 ? r : retell_arena(client, arena->id);
        TAILQ_FOREACH (arena, &client->memory->spares, arenas)
                r = r < 0 ? r : retell_arena(client, arena->id);
        TAILQ_FOREACH (upload, &client->modules->uploads, uploads)
                r = r < 0 ? r : retell_arena(client, upload->id);
        TAILQ_FOREACH (call, &client->calls, calls)
                if (r == 0 && retell_answer(call, GPUQ__V1__REPLY__BODY_ARENA))
                        r = retell_arena(client, call->reply->arena->arena);
        return r;
}

/* ---- modules ---------------------------------------------------------------------- */

static int retell_module(gpuq_client *client, Gpuq__V1__ModuleLoad *load, uint64_t id) {
        load->module = id;
        return client_send(client, GPUQ__V1__REQUEST__BODY_MODULE_LOAD, load, NULL);
}

static int retell_module_of_call(gpuq_client *client, const Call *call) {
        Gpuq__V1__Request *request = retell_unpack(call);
        int r;

        if (!request)
                return error_memory();

        r = retell_module(client, request->module_load, call->reply->module->module);
        gpuq__v1__request__free_unpacked(request, NULL);
        return r;
}

static int retell_modules(gpuq_client *client) {
        const gpuq_module *module;
        const Call *call;
        int r = 0;

        TAILQ_FOREACH (module, &client->modules->loaded, modules)
                r = r < 0 ? r : retell_module(client, module->load, module->id);
        TAILQ_FOREACH (call, &client->calls, calls)
                if (r == 0 && retell_answer(call, GPUQ__V1__REPLY__BODY_MODULE))
                        r = retell_module_of_call(client, call);
        return r;
}

/* ---- prepared jobs ------------------------------------------------------------------ */

static int retell_prepare(gpuq_client *client, Gpuq__V1__Job *job, uint32_t id) {
        Gpuq__V1__Prepare prepare = GPUQ__V1__PREPARE__INIT;

        prepare.job = job;
        prepare.prepared = id;
        return client_send(client, GPUQ__V1__REQUEST__BODY_PREPARE, &prepare, NULL);
}

static int retell_prepared_job(gpuq_client *client, const gpuq_prepared *prepared) {
        Gpuq__V1__Job *job = prepared_unpack(prepared);
        int r;

        if (!job)
                return error_memory();

        r = retell_prepare(client, job, prepared->id);
        gpuq__v1__job__free_unpacked(job, NULL);
        return r;
}

static int retell_prepare_of_call(gpuq_client *client, const Call *call) {
        Gpuq__V1__Request *request = retell_unpack(call);
        int r;

        if (!request)
                return error_memory();

        r = retell_prepare(client, request->prepare->job, call->reply->prepared->prepared);
        gpuq__v1__request__free_unpacked(request, NULL);
        return r;
}

static int retell_prepared(gpuq_client *client) {
        const gpuq_prepared *prepared;
        const Call *call;
        int r = 0;

        TAILQ_FOREACH (prepared, &client->prepareds->known, entries)
                r = r < 0 ? r : retell_prepared_job(client, prepared);
        TAILQ_FOREACH (call, &client->calls, calls)
                if (r == 0 && retell_answer(call, GPUQ__V1__REPLY__BODY_PREPARED))
                        r = retell_prepare_of_call(client, call);
        return r;
}

/* ---- jobs --------------------------------------------------------------------------- */

static int retell_cancels(gpuq_client *client) {
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        gpuq_job *job, *next;
        int r = 0;

        cancel.n_ids = 1;
        HASH_ITER (hh, client->jobs->submitted, job, next) {
                if (!job->cancelled)
                        continue;
                cancel.ids = &job->id;
                r = client_send(client, GPUQ__V1__REQUEST__BODY_CANCEL, &cancel, NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Jobs in the direct ring, which has no reader any more, become messages. */
static int retell_as_message(gpuq_job *job) {
        bool is_taken;

        if (!job->is_direct)
                return 0;
        is_taken = direct_was_taken(job->client, job->entry);
        job_leave_ring(job);
        return prepared_refire(job, is_taken);
}

/* The table holds them in the order in which they were submitted. */
static int retell_jobs(gpuq_client *client) {
        _cleanup_(freep) gpuq_job **jobs = NULL;
        gpuq_job *job, *next;
        size_t n_jobs, n = 0;
        int r;

        jobs_collect(client);
        n_jobs = HASH_COUNT(client->jobs->submitted);
        jobs = calloc(n_jobs + 1, sizeof(gpuq_job *));
        if (!jobs)
                return error_memory();

        HASH_ITER (hh, client->jobs->submitted, job, next) {
                r = retell_as_message(job);
                if (r < 0)
                        return r;
                jobs[n++] = job;
        }
        for (size_t first = 0; first < n_jobs; first += n) {
                r = submit_say(client, jobs + first, n_jobs - first, &n);
                if (r < 0)
                        return r;
        }

        return retell_cancels(client);
}

/* ---- requests without a reply ----------------------------------------------------------- */

static int retell_calls(gpuq_client *client) {
        const Call *call;
        int r = 0;

        TAILQ_FOREACH (call, &client->calls, calls)
                if (r == 0 && !call->done)
                        r = client_say(client, call->request, call->n_request);
        return r;
}

static int retell_end(gpuq_client *client) {
        Gpuq__V1__Resumed resumed = GPUQ__V1__RESUMED__INIT;

        resumed.seen = client->jobs->n_seen;
        return client_send(client, GPUQ__V1__REQUEST__BODY_RESUMED, &resumed, NULL);
}

int retell(gpuq_client *client) {
        static int (*const parts[])(gpuq_client *) = {
                retell_arenas, retell_modules, retell_prepared,
                retell_jobs,   retell_calls,   retell_end,
        };
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                r = parts[i](client);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_JOB_H
#define GPUQ_JOBS_JOB_H

/*
 * Job
 *
 * Built by build.c, which packs each operation at once and notes which buffers
 * and kernels it names; packed and sent by submit.c; ended by what dispatch.c
 * reads. The user's handle, the table of submitted jobs and the list of
 * callbacks each hold a reference. A job holds its buffers and modules until it
 * has ended, and its packed bytes until that was told.
 *
 *     BUILDING -> PENDING -> DONE, FAILED or CANCELLED
 */

#include <uthash.h>

#include "apart.h"
#include "buffer.h"
#include "kept.h"
#include "module.h"
#include "prepared.h"
#include "word.h"

typedef struct JobKernel {
        gpuq_module *module; /* a reference */
        const char *name;    /* the module's, or a variable's in `owned` */
        char *owned;
} JobKernel;

typedef enum JobCallback {
        JOB_CALLBACK_NONE, /* or run */
        JOB_CALLBACK_QUEUED,
        JOB_CALLBACK_RUNNING,
} JobCallback;

/* What its user asked for beside its operations. */
typedef struct JobSettings {
        char *label; /* NULL: none */
        int priority;
        int device; /* index, or -1 */
        unsigned timeout_ms;
        bool repeatable;
        bool timed;
        bool by_address; /* gpuq_job_use() was called */
        bool is_checked;
} JobSettings;

/* How the job ended. */
typedef struct JobResult {
        int error;
        char *text;   /* NULL: "" */
        char *output; /* NULL: "" */
        uint64_t waited_us, ran_us, gpu_ns;
        int ran_on;
} JobResult;

struct gpuq_job {
        unsigned refs;
        gpuq_client *client; /* a reference */
        uint64_t id;         /* 0 until submitted; atomic */
        uint32_t tag;        /* its lower half, the key in jobs->submitted */
        UT_hash_handle hh;
        TAILQ_ENTRY(gpuq_job) callbacks; /* jobs->callbacks */
        gpuq_state state;
        JobSettings settings;
        JobResult result;

        /* while PENDING */
        unsigned word;           /* its completion word; 0: none */
        bool is_direct;          /* fired in the direct ring, */
        uint32_t entry;          /* as this entry of it */
        bool is_open;            /* counted in jobs->n_open */
        bool cancelled;          /* the daemon was asked to cancel it */
        Kept *kept;              /* its packed bytes as they were sent */
        gpuq_prepared *prepared; /* what it was fired from, a reference */

        gpuq_job_func func;
        void *userdata;
        JobCallback callback;
        pthread_t callback_thread; /* while RUNNING */

        BufferUse *buffers;
        size_t n_buffers;
        size_t n_settled; /* buffers that an earlier operation named */
        JobKernel *kernels;
        size_t n_kernels;
        ApartPairs apart;
        uint64_t *after;
        size_t n_after;
        uint8_t *operations;                   /* packed Operations */
        size_t n_operations, n_operations_max; /* bytes */
};

/* Of one client. */
typedef struct Jobs {
        gpuq_job *submitted;              /* and not ended, by tag */
        TAILQ_HEAD(, gpuq_job) callbacks; /* ended, callback not run yet */
        uint32_t tag;                     /* of the last job */
        uint32_t n_seen;                  /* completions that were read */
        uint64_t n_ended;
        unsigned n_open; /* submitted and not known to be done */
        Pool kept;       /* of their packed bytes */
        Words words;
} Jobs;

/** job_create() - BUILDING, of one reference. Return: 0, or GPUQ_E_SYSTEM. */
int job_create(gpuq_client *client, gpuq_job **ret_job);
/** job_ref() - Return: @job. */
gpuq_job *job_ref(gpuq_job *job);
/** job_unref() - with the lock, and a reference to the client beside the job's own. */
void job_unref(gpuq_job *job);
/** job_enter_building() - the lock, for a job that is not submitted yet. Return: 0, or GPUQ_E_INVALID, … */
int job_enter_building(gpuq_job *job);

/** job_complete() - the daemon reported the job's end. Return: false: the report is invalid. */
bool job_complete(gpuq_job *job, const Gpuq__V1__Completion *completion);
/** jobs_collect() - end those whose entry in the direct ring says that they are done. */
void jobs_collect(gpuq_client *client);
/** jobs_end() - all submitted jobs, with this error; the connection ended. */
void jobs_end(gpuq_client *client, int error, const char *text);
/** jobs_run_callbacks() - of all ended jobs; gives up the lock while each runs. */
void jobs_run_callbacks(gpuq_client *client);
/** job_is_done() - its worker stored that in its completion word or its entry, before any message. */
bool job_is_done(const gpuq_job *job);
/** job_is_seen() - the job is known to have ended, with or without a message: release its resources. Idempotent. */
void job_is_seen(gpuq_job *job);
/** job_forget() - free the packed bytes that are kept for a restart of the daemon. */
void job_forget(gpuq_job *job);
/** job_word() - where its worker stores its tag when it is done. Return: NULL: nowhere. */
const uint32_t *job_word(const gpuq_job *job);
/** job_leave_ring() - its entry in the direct ring is not its any more. */
void job_leave_ring(gpuq_job *job);
/** job_has_ended() - and its callback has returned, unless asked from within it. */
bool job_has_ended(const gpuq_job *job);

#endif

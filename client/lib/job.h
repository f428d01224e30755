/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_LIB_JOB_H
#define GPUQ_LIB_JOB_H

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

#include "client.h"

typedef struct JobBuffer {
        gpuq_buffer *buffer; /* a reference */
        gpuq_direction direction;
} JobBuffer;

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

struct gpuq_job {
        unsigned refs;
        gpuq_client *client; /* a reference */
        uint64_t id;         /* 0 until submitted; atomic */
        uint32_t tag;        /* its lower half, the key in client->jobs */
        UT_hash_handle hh;
        TAILQ_ENTRY(gpuq_job) callbacks; /* client->callbacks */

        gpuq_state state;
        int error;
        char *text;   /* NULL: "" */
        char *output; /* NULL: "" */
        uint64_t waited_us, ran_us, gpu_ns;
        unsigned word;           /* PENDING: its completion word, counted from 1; 0: none */
        bool is_open;            /* counted in client->n_open */
        bool cancelled;          /* PENDING: the daemon was asked to */
        struct Kept *kept;       /* PENDING: as it was told, see kept.h */
        gpuq_prepared *prepared; /* PENDING: what it was fired from, a reference */
        int ran_on;

        gpuq_job_func func;
        void *userdata;
        JobCallback callback;
        pthread_t callback_thread; /* while RUNNING */

        JobBuffer *buffers;
        size_t n_buffers, n_buffers_max;
        size_t n_settled; /* buffers that an earlier operation named */
        JobKernel *kernels;
        size_t n_kernels, n_kernels_max;
        uint64_t *after;
        size_t n_after, n_after_max;
        uint8_t *operations;                   /* packed Operations */
        size_t n_operations, n_operations_max; /* bytes */

        char *label; /* NULL: none */
        int priority;
        int device; /* index, or -1 */
        unsigned timeout_ms;
        bool repeatable;
        bool timed;
};

/** job_create() - BUILDING, of one reference. Return: 0, or GPUQ_E_SYSTEM. */
int job_create(gpuq_client *client, gpuq_job **ret_job);
/** job_ref() - Return: @job. */
gpuq_job *job_ref(gpuq_job *job);
/** job_unref() - with the lock, and a reference to the client beside the job's own. */
void job_unref(gpuq_job *job);
/** job_enter_building() - the lock, for a job that is not submitted yet. Return: 0, or GPUQ_E_INVALID, … */
int job_enter_building(gpuq_job *job);
/** job_reserve() - room for @n more elements. Return: 0, or GPUQ_E_SYSTEM. */
int job_reserve(void **array, size_t size, size_t n_used, size_t n, size_t *n_max);

/** job_complete() - the daemon told its end. Return: false if that is not an end. */
bool job_complete(gpuq_job *job, const Gpuq__V1__Completion *completion);
/** jobs_end() - all submitted jobs, with this error; the connection ended. */
void jobs_end(gpuq_client *client, int error, const char *text);
/** job_run_callback() - it was taken off client->callbacks; gives up the lock meanwhile. */
void job_run_callback(gpuq_client *client, gpuq_job *job);
/** job_is_seen() - it is known to have ended, whether that was told or not: let go what it needed. Twice is harmless. */
void job_is_seen(gpuq_job *job);
/** job_forget() - what was kept to tell the daemon of it again. */
void job_forget(gpuq_job *job);
/** job_has_ended() - and its callback has returned, unless asked from within it. */
bool job_has_ended(const gpuq_job *job);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_TRACE_H
#define GPUQ_SUPERVISOR_TRACE_H

/*
 * Trace
 *
 * When and where a user's jobs waited and ran, for `gpuq trace`. A trace exists only while a client
 * asks for it again and again. Each user who asks has one trace; the administrators share one of all
 * users' jobs.
 *
 * Bounded: a trace keeps the latest TRACE_MAX jobs. Each is kept for at least TRACE_KEEP_NS, so that
 * every client that asks that often gets it; when there is no place, the jobs that end then are
 * counted and not kept. Readers find out how many they missed by the jobs' serial numbers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "limit.h"
#include "user.h"

#define TRACE_MAX         4096u /* jobs */
#define TRACE_USERS_MAX   16u   /* traces of one user each; each ended job is offered to all */
#define TRACE_PERSON_MAX  4u    /* of them, of one person with its subordinate uids */
#define TRACE_KEEP_NS     250000000ull
#define TRACE_IDLE_NS     5000000000ull /* a trace that nobody asks for is freed */
#define TRACE_KERNELS_MAX 96u           /* bytes of the kernels' names */

typedef struct Engine Engine;
typedef struct Executor Executor;
typedef struct Job Job;

enum {
        _TRACE_E_SUCCESS,
        TRACE_E_QUOTA, /* the user has no memory for it */
        TRACE_E_MANY,  /* there are as many as there may be */
};

/* Times are of the engine's clock, CLOCK_MONOTONIC. 0: never, or not known. */
typedef struct TraceRecord {
        uint64_t serial; /* among all jobs that ended since the trace began; the first is 1 */
        uint64_t id;
        uint64_t submitted_ns;
        uint64_t started_ns; /* the hand-over to its worker */
        uint64_t ended_ns;
        uint64_t behind_ns; /* of the waiting: until the jobs before it had ended */
        uint64_t parked_ns; /* of the waiting: for its modules */
        uint64_t ran_us;
        uint64_t gpu_ns;
        uint64_t n_moved;
        uid_t uid;
        int state;       /* a JobState */
        int code;        /* 0 when done */
        int32_t worker;  /* pid */
        int32_t client;  /* pid */
        uint32_t device; /* index + 1 */
        uint32_t stream; /* index + 1 */
        uint32_t n_beside;
        uint32_t n_retries;
        char program[LIMIT_CLIENT_NAME + 1]; /* of the client */
        char label[LIMIT_JOB_LABEL + 1];
        char kernels[TRACE_KERNELS_MAX + 1]; /* separated by ", " */
} TraceRecord;

typedef struct Trace {
        LIST_ENTRY(Trace) link; /* engine->ends.traces */
        uint64_t number;        /* never given twice */
        User *user;             /* who began it, for itself or as an administrator */
        bool is_of_all;         /* the jobs of all users */
        UserCharge charge;
        uint64_t asked_ns;
        uint64_t n_ended; /* jobs since it began */
        uint64_t n_kept;  /* of them, ever put into `records` */
        TraceRecord records[TRACE_MAX];
} Trace;

/**
 * trace_open() - the trace of @user's jobs, or of all jobs, made if missing
 *
 * Return: 0, TRACE_E_QUOTA, TRACE_E_MANY, or -ENOMEM.
 */
int trace_open(Engine *engine, User *user, bool is_of_all, Trace **ret_trace);
/** trace_find() - by its number, of those that @user may read. Return: NULL: there is none. */
Trace *trace_find(const Engine *engine, const User *user, bool is_of_all, uint64_t number);
/** trace_ended() - for each ended job while there is a trace. @executor: where it ran; NULL: nowhere. */
void trace_ended(const Job *job, const Executor *executor);
/** trace_add() - a place for one more job. Return: NULL: there is none, and the job was counted. */
TraceRecord *trace_add(Trace *trace, uint64_t now_ns);
/**
 * trace_after() - the first job that is kept and has a serial number above @serial
 *
 * Return: its position, for trace_at(); trace->n_kept if there is none.
 */
uint64_t trace_after(const Trace *trace, uint64_t serial);
/** trace_at() - the job at a position below trace->n_kept, of the last TRACE_MAX. */
static inline const TraceRecord *trace_at(const Trace *trace, uint64_t position) {
        return &trace->records[position % TRACE_MAX];
}
/** trace_tick() - free the traces that nobody asks for any more. */
void trace_tick(Engine *engine, uint64_t now_ns);
/** trace_free_all() - at the end of the program. */
void trace_free_all(Engine *engine);

#endif

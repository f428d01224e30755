/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_TRACE_H
#define GPUQ_CLI_TRACE_H

/*
 * Trace
 *
 * Writes jobs as a trace of events in the JSON format of Chrome, which Perfetto (ui.perfetto.dev) and
 * chrome://tracing open. Each session is a process, and so is each device. In a session's process, a
 * job is a row of what it waited for and when it ran. In a device's process, each stream of each worker
 * is a thread with the runs of its jobs. An arrow leads from a job's submission to its run.
 *
 * The viewers nest events of one thread that overlap. So jobs of one thread that overlap get *lanes*: a
 * job goes to the first lane on which the job before has ended, and each lane is a thread. Jobs must be
 * added in the order in which they ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <gpuq.h>

#include "util/macro.h"

typedef struct TraceFile TraceFile;

/* What the document tells about itself. */
typedef struct TraceSummary {
        uint64_t now_ns, unix_ns; /* one moment, by the clock of the jobs and since 1970 */
        uint64_t n_lost;          /* jobs that are missing */
        unsigned
                n_gaps; /* times that the trace began again, with jobs missing that nobody counted */
        bool all_users;
} TraceSummary;

/**
 * trace_file_new() - begin a document
 * @stream:  the caller's; its errors are to be seen by ferror()
 * @from_ns: what was before is not drawn
 *
 * Return: 0, or -ENOMEM.
 */
int trace_file_new(FILE *stream, uint64_t from_ns, TraceFile **ret_file);
/**
 * trace_file_add() - draw a job
 * @job:    one that has not ended has the state "waiting" or "running", and ends where it is to be drawn to
 * @reason: why it waits; "": not known
 *
 * Return: 0, or -ENOMEM.
 */
int trace_file_add(TraceFile *file, const gpuq_trace_job *job, const char *reason);
/** trace_file_mark() - a line across the whole trace, with a text. */
void trace_file_mark(TraceFile *file, uint64_t at_ns, const char *text);
/** trace_file_end() - write the names of all processes and threads, and end the document. */
void trace_file_end(TraceFile *file, const TraceSummary *summary);
/** trace_file_free() - NULL is fine. Return: NULL. */
TraceFile *trace_file_free(TraceFile *file);
DEFINE_CLEANUP(TraceFile, trace_file_free)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DISK_H
#define GPUQ_SUPERVISOR_DISK_H

/*
 * Disk
 *
 * Threads for calls that block on the disk, so that the loop does not block. They receive no signals.
 *
 * A line holds the calls of one person. Lines take turns, and none has all threads: a person with many
 * calls, or with large ones, delays those of other people by at most one call of each line before them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include <uv.h>

#define DISK_THREADS_MAX 4u

typedef struct Disk Disk;
typedef struct DiskCall DiskCall;
typedef struct DiskLine DiskLine;
typedef void (*DiskFunc)(void *userdata);

/* One call; embedded in its object, which lives until @done. */
struct DiskCall {
        DiskFunc run;  /* called in a thread */
        DiskFunc done; /* called afterwards in the loop */
        void *userdata;
        DiskLine *line;
        STAILQ_ENTRY(DiskCall) link;
};

/* One person's calls. The caller's, zeroed at first; it lives until disk_close(). */
struct DiskLine {
        STAILQ_HEAD(, DiskCall) calls; /* that wait for a thread */
        unsigned n_running;
        bool is_waiting; /* in disk->lines */
        TAILQ_ENTRY(DiskLine) link;
};

/**
 * disk_new() - with at most DISK_THREADS_MAX threads; with one, calls never overlap
 *
 * Return: 0, or a negative errno.
 */
int disk_new(uv_loop_t *loop, size_t n_threads, Disk **ret_disk);
/**
 * disk_call() - queue a call for a thread; those of one line start in order
 *
 * The caller sets the first three members.
 */
void disk_call(Disk *disk, DiskLine *line, DiskCall *call);
/** disk_close() - wait for all calls; the loop frees it. NULL is fine. */
void disk_close(Disk *disk);

#endif

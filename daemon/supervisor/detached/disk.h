/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DISK_H
#define GPUQ_SUPERVISOR_DISK_H

/*
 * Disk
 *
 * Threads for calls that block on the disk, so that the loop does not block. They receive no signals.
 */

#include <sys/queue.h>

#include <uv.h>

typedef struct Disk Disk;
typedef struct DiskCall DiskCall;
typedef void (*DiskFunc)(void *userdata);

/* One call; embedded in its object, which lives until @done. */
struct DiskCall {
        DiskFunc run;  /* called in a thread */
        DiskFunc done; /* called afterwards in the loop */
        void *userdata;
        STAILQ_ENTRY(DiskCall) link;
};

/** disk_new() - Return: 0, or a negative errno. */
int disk_new(uv_loop_t *loop, Disk **ret_disk);
/**
 * disk_call() - queue a call for the next free thread; calls start in order
 *
 * The caller sets the first three members.
 */
void disk_call(Disk *disk, DiskCall *call);
/** disk_close() - wait for all calls; the loop frees it. NULL is fine. */
void disk_close(Disk *disk);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_DISK_H
#define GPUQ_SUPERVISOR_DISK_H

/*
 * Disk
 *
 * Threads that make the calls which may block for as long as a disk likes, so that
 * the loop does not. No signal reaches them.
 */

#include <sys/queue.h>

#include <uv.h>

typedef struct Disk Disk;
typedef struct DiskCall DiskCall;
typedef void (*DiskFunc)(void *userdata);

/* One call; embedded in what it is about, which lives until @done. */
struct DiskCall {
        DiskFunc run;  /* in a thread */
        DiskFunc done; /* then, in the loop */
        void *userdata;
        STAILQ_ENTRY(DiskCall) link;
};

/** disk_new() - Return: 0, or a negative errno. */
int disk_new(uv_loop_t *loop, Disk **ret_disk);
/** disk_call() - as soon as a thread is free, in this order. Fill in its first three members. */
void disk_call(Disk *disk, DiskCall *call);
/** disk_close() - wait for all calls; the loop frees it. NULL is fine. */
void disk_close(Disk *disk);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_JOBS_SUBMIT_H
#define GPUQ_JOBS_SUBMIT_H

/*
 * Submit
 *
 * The steps that all kinds of submission share: wait for space, take a tag and a place in the
 * table of submitted jobs, and queue the bytes.
 */

#include "job.h"

/** submit_make_room() - wait, bounded, while the daemon does not read. Return: 0, GPUQ_E_AGAIN, … */
int submit_make_room(gpuq_client *client);
/** submit_check() - may it be submitted beside @n_jobs - 1 others? Return: 0, or GPUQ_E_INVALID. */
int submit_check(const gpuq_client *client, const gpuq_job *job, size_t n_jobs);
/** submit_pack() - as a gpuq.v1.Job, the caller's. Return: 0, or a GPUQ_E_. */
int submit_pack(const gpuq_job *job, uint32_t tag, Kept **ret_kept);
/** submit_message() - the same, without tag, as a message, the caller's to free. Return: 0, or a GPUQ_E_. */
int submit_message(const gpuq_job *job, Gpuq__V1__Job **ret_message);
/**
 * submit_say() - queue the first of these jobs as one message, from their packed bytes
 *
 * @ret_n: how many: as many as fit and are of the same kind, submitted or fired. Return: 0, or a
 * GPUQ_E_.
 */
int submit_say(gpuq_client *client, gpuq_job *const *jobs, size_t n_jobs, size_t *ret_n);
/** submit_enter() - PENDING, with that tag. @alone: it may have a completion word. Return: 0, or GPUQ_E_SYSTEM. */
int submit_enter(gpuq_job *job, uint32_t tag, bool alone);
/** submit_undo() - BUILDING again: its message was not queued. */
void submit_undo(gpuq_job *job);
/** submit_commit() - the message is queued: its id is used up. */
void submit_commit(gpuq_job *job);
/** submit_flush() - send, and from time to time read what has arrived. */
void submit_flush(gpuq_client *client, size_t n_jobs);

#endif

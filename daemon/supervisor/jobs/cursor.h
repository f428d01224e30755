/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_CURSOR_H
#define GPUQ_SUPERVISOR_CURSOR_H

/*
 * Cursor
 *
 * A position among a user's unfinished jobs, in the order of submission. It stays valid while jobs end
 * and come, so that what concerns all jobs of a user can be done over many turns.
 */

#include "job.h"

typedef struct JobCursor {
        User *user;                 /* NULL: not in use */
        Job *next;                  /* NULL: behind the last one */
        LIST_ENTRY(JobCursor) link; /* user->cursors */
} JobCursor;

/** cursor_begin() - before the user's first job; the caller's memory, until cursor_end(). The user is held. */
void cursor_begin(JobCursor *cursor, User *user);
/** cursor_next() - move on. Return: the job that was passed, or NULL: that was the last one. */
Job *cursor_next(JobCursor *cursor);
/** cursor_end() - repeating it is harmless. */
void cursor_end(JobCursor *cursor);
/** cursor_pass() - the job is about to leave its user's jobs: no cursor stays at it. */
void cursor_pass(const Job *job);

#endif

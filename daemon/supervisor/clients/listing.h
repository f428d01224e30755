/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LISTING_H
#define GPUQ_SUPERVISOR_LISTING_H

/*
 * Listing
 *
 * The answer to a QueueGet, page by page: jobs, detached jobs that do not run, and modules that are
 * not loaded yet. A listing keeps its place among the users and their jobs, so that a page of them costs
 * the same wherever it begins. Each page shows what it lists as it is when the page is made.
 */

#include <stdint.h>

#include "jobs.h"

#define LISTING_PAGE 1024u /* jobs and modules */
#define LISTING_MAX  4u    /* unfinished ones of one session; the oldest is dropped */

typedef struct Session Session;

/** listing_begin() - answer with the first page. */
void listing_begin(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get);
/** listing_continue() - answer with the next page. */
void listing_continue(Session *session, uint32_t serial, uint64_t number);
/** listing_drop_all() - the session ends. */
void listing_drop_all(Session *session);

#endif

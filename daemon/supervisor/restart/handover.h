/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HANDOVER_H
#define GPUQ_SUPERVISOR_HANDOVER_H

/*
 * Handover
 *
 * How a supervisor ends when the service is restarted: as if it had been killed, but at a moment when
 * nothing is in flight. Workers end with the keeper, and not every job may run twice. Meanwhile no
 * job is dispatched. Clients are still served, and resubmit unfinished jobs to the next supervisor.
 */

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "clients.h"
#include "jobs.h"

typedef struct Handover {
        Engine *engine;
        Clients *clients;
        void (*done)(void *userdata);
        void *userdata;
        uv_timer_t timer;
        uint64_t until_ns;
        unsigned n_quiet; /* consecutive checks that found nothing in flight */
        bool is_done;
} Handover;

/** handover_init() - in zeroed memory. @done: called when the loop must end, without a message to any client. */
void handover_init(Handover *handover, Engine *engine, Clients *clients,
                   void (*done)(void *userdata), void *userdata);
/** handover_begin() - call done() when nothing is in flight, or after KEEPER_HANDOVER_S. */
void handover_begin(Handover *handover);
/** handover_close() - close its timer; the loop must run once more. */
void handover_close(Handover *handover);

#endif

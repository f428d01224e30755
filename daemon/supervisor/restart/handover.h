/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_HANDOVER_H
#define GPUQ_SUPERVISOR_HANDOVER_H

/*
 * Handover
 *
 * How a supervisor ends when the service is restarted: as if it had been killed, but at a
 * moment when nothing is in flight, since workers end with the keeper and not every job may
 * run twice. Nothing is dispatched meanwhile; clients are served, and what they submit they
 * submit again to the next supervisor.
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
        unsigned n_quiet; /* checks in a row that found nothing in flight */
        bool is_done;
} Handover;

/** handover_init() - in zeroed memory. @done: called when the loop is to be left, with nothing said to anybody. */
void handover_init(Handover *handover, Engine *engine, Clients *clients,
                   void (*done)(void *userdata), void *userdata);
/** handover_begin() - done() once nothing is in flight or KEEPER_HANDOVER_S are over. */
void handover_begin(Handover *handover);
/** handover_close() - ends its timer; the loop must run once more. */
void handover_close(Handover *handover);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_KEEPER_H
#define GPUQ_KEEPER_KEEPER_H

/*
 * Keeper
 *
 * Runs one supervisor after another, the workers it asks for, and the store of
 * descriptors between them, until SIGTERM or SIGINT.
 *
 *     start -> supervisor runs -> READY -> serving -> QUIT sent -> all ended
 *                  ^   |                     |
 *                  |   +---- it died <-------+
 *                  +- delay -+
 *
 * Workers end with the supervisor that asked for them: they are killed, and the next one is
 * started when they have ended.
 */

#include "keeper/listener.h"
#include "keeper/options.h"

enum {
        _KEEPER_E_SUCCESS,
        KEEPER_E_DONE, /* all has ended that was to end */
};

typedef struct Keeper Keeper;

/**
 * keeper_new() - everything but processes
 * @config: consumed on success; a reload replaces it
 *
 * Blocks the signals that keeper_run() takes from a descriptor. Return: 0 or a negative errno.
 */
int keeper_new(Options *options, Config *config, Listener *listener, Keeper **ret_keeper);
/** keeper_run() - until told to end. Return: 0, or a negative errno when no supervisor could be kept up. */
int keeper_run(Keeper *keeper);
/** keeper_turn() - wait once, and do what came; the first starts a supervisor. Return: 0, KEEPER_E_DONE or a negative errno. */
int keeper_turn(Keeper *keeper);
/** keeper_free() - NULL is fine. Return: NULL. */
Keeper *keeper_free(Keeper *keeper);

#endif

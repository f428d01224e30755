/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_CHATTER_H
#define GPUQ_KEEPER_CHATTER_H

/*
 * Chatter
 *
 * What one worker writes to its standard output and error. On the CPU driver kernels run in the
 * worker, so its user may write there anything and as much as he likes. It comes by a pipe of its
 * own: each line is logged as that worker's, and few of them. The worker never waits for us: what
 * its pipe does not take is lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "keeper/budget.h"

#define CHATTER_LINE_MAX  400u
#define CHATTER_LINES_MAX 20u /* at once; then CHATTER_PER_S */
#define CHATTER_PER_S     2u

typedef struct Chatter {
        int fd; /* to read; -1: none */
        Budget budget;
        size_t n_line;
        char line[CHATTER_LINE_MAX + 1];
} Chatter;

/* A line, without its end. */
typedef void (*ChatterLine)(const char *line, void *userdata);

/** chatter_init() - @ret_end: for the worker, the caller's. Return: 0 or a negative errno; no pipe then. */
int chatter_init(Chatter *chatter, int *ret_end);
/** chatter_finish() - the struct itself is the caller's memory. */
void chatter_finish(Chatter *chatter);
/**
 * chatter_read() - some of what was written, one line or a piece of a long one a call of @line
 *
 * Return: true: it wrote too much, so no more is read before chatter_free_at().
 */
bool chatter_read(Chatter *chatter, uint64_t now_ms, ChatterLine line, void *userdata);
/** chatter_free_at() - when another line may be read, in ms. */
uint64_t chatter_free_at(const Chatter *chatter);
/** chatter_end() - the worker has ended: what is left of its last lines. */
void chatter_end(Chatter *chatter, uint64_t now_ms, ChatterLine line, void *userdata);

#endif

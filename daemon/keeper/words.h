/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_WORDS_H
#define GPUQ_KEEPER_WORDS_H

/*
 * Words
 *
 * A NULL-terminated list of strings that grows: the argv or environment of a process to start,
 * made before fork(). The list remembers if memory ran out, so that the caller checks only once.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/macro.h"

typedef struct Words {
        char **items; /* NULL-terminated once something was added */
        size_t n_items;
        bool failed; /* out of memory */
} Words;

/** words_add() - append one string, formatted. */
void words_add(Words *words, const char *format, ...) _printf_(2, 3);
/** words_add_env() - append "NAME=value" from our own environment, if it is there. */
void words_add_env(Words *words, const char *name);
/** words_finish() - free all; the list itself is the caller's memory. */
void words_finish(Words *words);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_WORKER_PROGRAMS_H
#define GPUQ_WORKER_PROGRAMS_H

/*
 * Programs
 *
 * A cache of decoded and checked programs. Clients send equal operations repeatedly, with other buffers:
 * a hit costs one comparison. Only programs whose check did not depend on buffers are kept.
 */

#include "util/bump.h"
#include "worker/program.h"

#define PROGRAMS_SETS    64u
#define PROGRAMS_WAYS    2u
#define PROGRAMS_KEY_MAX 8192u /* bytes of operations and names; larger ones are made anew */

typedef struct ProgramEntry ProgramEntry;

typedef struct Programs {
        Context *context;
        Bump *bump;
        uint64_t n_kept;                                     /* in all: the last program's number */
        ProgramEntry *entries[PROGRAMS_SETS][PROGRAMS_WAYS]; /* the most recently used first */
} Programs;

/** programs_init() - Return: 0 or -ENOMEM. */
int programs_init(Programs *programs, Context *context);
/** programs_clear() - drop all programs: a module is unloaded. */
void programs_clear(Programs *programs);
/**
 * programs_find() - find a kept program
 *
 * Looks at the operations, the kernels and the number of buffers alone. Return: the caller's reference, or NULL.
 */
Program *programs_find(Programs *programs, const ProgramInput *input);
/** programs_make() - decode and check, and keep the program if possible. Return: as program_new(). */
int programs_make(Programs *programs, const ProgramInput *input, Program **ret_program,
                  Failure *failure);

#endif

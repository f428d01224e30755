/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_NOTE_H
#define GPUQ_CLI_NOTE_H

/*
 * Note
 *
 * A text that `gpuq run --detach' stores with a job for `gpuq fetch': which output goes to which
 * file, with type and shape. It is JSON, and is checked when read, because any program of the same
 * user may have written it.
 */

#include <stddef.h>

#include "npy.h"

typedef struct NoteOutput {
        unsigned argument; /* of the command line, from 1 */
        char *path;        /* from / on */
        NpyArray array;
} NoteOutput;

typedef struct Note {
        char *source;
        char *kernel;
        NoteOutput *outputs;
        size_t n_outputs;
} Note;

/** note_write() - as text, the caller's. Return: 0, or -ENOMEM. */
int note_write(const Note *note, char **ret_text);
/** note_read() - Return: 0; -EINVAL: the text is not a note; or -ENOMEM. Clear @ret_note in any
 * case. */
int note_read(const void *text, size_t n_text, Note *ret_note);
/** note_clear() - free what it owns. */
void note_clear(Note *note);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_PTX_EDIT_H
#define GPUQ_COMPILER_PTX_EDIT_H

/*
 * PTX edits
 *
 * The fence and --check insert and replace words in a text of PTX. Before that, its instructions are printed anew from
 * what the reader understood of them (ptx/print.h). Edits may be made in any order and must not overlap; those at one
 * place stay in the order in which they were made. The first failure stays, and what comes behind it has no effect that
 * anybody sees.
 */

#include <stdio.h>

#include "compiler/ptx/module.h"
#include "util/macro.h"

typedef struct PtxEdit PtxEdit;

typedef struct PtxEdits {
        PtxToken text;     /* printed anew; lines keep their numbers */
        PtxModule *module; /* of that text; NULL: it was refused */
        const char *how;   /* "fenced", for messages */
        FILE *words;       /* of all edits, one after the other */
        char *buffer;
        size_t n_buffer;
        PtxEdit *edits; /* since the last ptx_edits_write() */
        size_t n_edits;
        int r;         /* 0, PTX_EDIT_E_REFUSED or -ENOMEM */
        char *error;   /* with PTX_EDIT_E_REFUSED: one line, which the caller takes and frees */
        char *printed; /* the text */
} PtxEdits;

enum {
        _PTX_EDIT_E_SUCCESS,
        PTX_EDIT_E_REFUSED, /* there is a message */
};

/**
 * ptx_edits_init() - read a module
 * @text: stays the caller's, and is not needed afterwards
 * @how: "fenced", for messages
 * @own: begins every name that is added, so the text must not have it
 *
 * If it fails that is in @edits, which ptx_edits_finish() is due for in any case.
 */
void ptx_edits_init(PtxEdits *edits, PtxToken text, const char *how, const char *own);
/** ptx_edits_finish() - free what it holds, but not the message. */
void ptx_edits_finish(PtxEdits *edits);

/** ptx_edit() - replace @n_removed bytes at @at by what is printed until the next call. Return: where to print it. */
FILE *ptx_edit(PtxEdits *edits, const char *at, size_t n_removed);
/** ptx_edits_refuse() - fail with a message, of which bytes that are not printable become question marks. */
void ptx_edits_refuse(PtxEdits *edits, const char *format, ...) _printf_(2, 3);
/** ptx_edits_check_variables() - refuse global and constant variables that are hidden, or more than can be compared. */
void ptx_edits_check_variables(PtxEdits *edits);
/** ptx_edits_fail_memory() */
void ptx_edits_fail_memory(PtxEdits *edits);
/** ptx_edits_write() - write that part of the text with its edits, and forget all edits. */
void ptx_edits_write(PtxEdits *edits, PtxToken part, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_FENCE_TEXT_H
#define GPUQ_COMPILER_FENCE_TEXT_H

/*
 * Fence text
 *
 * What the parts of the fence rewrite share: the module, and the edits of its text.
 */

#include <stdio.h>

#include "compiler/check_access.h"
#include "compiler/ptx/module.h"
#include "compiler/ptx_edit.h"

/* Accesses that are compared together, in bytes from what the first one's register has then. */
typedef struct FenceSpan {
        int64_t begin;             /* of the lowest access */
        int64_t last;              /* where the highest access begins */
        int64_t end;               /* of all */
        CheckKind kind;            /* not CHECK_LOAD if one of them writes */
        size_t first;              /* instruction */
        bool begins_run, ends_run; /* of the spans that share a predicate */
} FenceSpan;

typedef struct FenceText {
        const PtxModule *module; /* of the edits */
        PtxEdits edits;
        FenceSpan *spans; /* of the function */
        size_t n_spans;
        uint32_t *span_of;   /* of each of its instructions: its span's number and 1, or 0 */
        bool is_one_range;   /* only the first range counts (FENCE_ONE_RANGE) */
        bool has_variables;  /* accesses may be of the module's own variables, or of those words: */
        bool has_grid_words; /* its instructions read where the words of a cooperative launch are */
        bool is_entry;       /* the function is one: its bounds are read anew before each use */
} FenceText;

/** fence_check_letters() - refuse text that an assembler may divide into words in another way than the reader. */
void fence_check_letters(FenceText *fence);
/** fence_check_names() - refuse names that an assembler may find in another place than the reader. */
void fence_check_names(FenceText *fence);

/** fence_find_accesses() - those that are compared: those of shared memory are not. Return: how many. */
size_t fence_find_accesses(FenceText *fence, const PtxFunction *function, const PtxInstruction *in,
                           CheckAccess accesses[CHECK_ACCESSES_MAX]);
/** fence_find_spans() - of a function: set spans and span_of, which are free()d. */
void fence_find_spans(FenceText *fence, const PtxFunction *function);
/** fence_access() - put an instruction that accesses memory within the fence, after fence_find_spans(). */
void fence_access(FenceText *fence, const PtxFunction *function, const PtxInstruction *in);
/** fence_find_function() - Return: NULL: it is none of the module. */
const PtxFunction *fence_find_function(const FenceText *fence, PtxToken name);
/** fence_add_parameters() - the fence becomes one of all functions and prototypes. */
void fence_add_parameters(FenceText *fence);
/** fence_add_parameter() - behind ".entry" or ".func", which @tokens come from. */
void fence_add_parameter(FenceText *fence, PtxTokens *tokens, bool is_entry);
/** fence_add_to_prototype() - behind ".callprototype". */
void fence_add_to_prototype(FenceText *fence, PtxTokens *tokens);
/** fence_call() - pass the fence on, to functions that have one alone. */
void fence_call(FenceText *fence, const PtxInstruction *in);
/** fence_tell() - tell of accesses outside, before what may end the thread. */
void fence_tell(FenceText *fence, const char *at);
/** fence_print_words() - in any function, read all words of its fence. */
void fence_print_words(FILE *out);
/**
 * fence_print_word() - in an entry, read a word of its fence anew: "b0", say
 *
 * The assembler may keep a register on the thread's stack, which the kernel can overwrite, but no store reaches an
 * entry's parameters.
 */
void fence_print_word(const FenceText *fence, FILE *out, const char *name);
/** fence_print_bounds() - likewise, of all ranges that count. */
void fence_print_bounds(const FenceText *fence, FILE *out);
/** fence_print_exit() - end the thread unless @predicate, and tell. */
void fence_print_exit(const FenceText *fence, FILE *out, const char *predicate);

/**
 * fence_may_access() - whether kernels may do that with a variable of the module
 *
 * They may write to variables of the user alone: modules that have none share an image, even of several users.
 */
bool fence_may_access(const PtxVariable *variable, CheckKind kind);
/** fence_functions_declare() - print the heads of the functions that are added, before all else. */
void fence_functions_declare(const FenceText *fence, FILE *out);
/** fence_functions_define() - print the functions, behind all else. */
void fence_functions_define(const FenceText *fence, FILE *out);

#endif

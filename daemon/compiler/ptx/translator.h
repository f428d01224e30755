/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_TRANSLATOR_H
#define GPUQ_PTX_TRANSLATOR_H

/*
 * Translator
 *
 * The state of a translation, and what its files share. A part of an opcode that no file took
 * makes the instruction one that is refused.
 */

#include <stdio.h>

#include "compiler/ptx/module.h"

#define TRANSLATOR_PARTS_MAX 24u

typedef struct Translator {
        FILE *out;
        const PtxModule *module;
        const PtxFunction *function;
        const PtxInstruction *in;
        PtxToken parts[TRANSLATOR_PARTS_MAX]; /* of the opcode: "add", "sat", "s32" */
        bool taken[TRANSLATOR_PARTS_MAX];
        size_t n_parts;
        uint32_t *shared; /* of each variable: its offset in the window */
        uint32_t n_shared;
        uint32_t *first; /* of each function: one more than its first variable, or 0 */
        uint32_t *next;  /* of each variable: the same of the next one */
        bool has_dynamic;
        bool takes_wider; /* the instruction: registers with more bits than its type */
        bool prints;
        bool uses_library; /* of mathematical functions */
        bool uses_textures;
        bool uses_reserved; /* shared memory that the system reserves, as cooperative groups do */
        int r;
        char *error;
} Translator;

/** translator_refuse() - the instruction, which a GPU may run; the first time counts. */
void translator_refuse(Translator *t, const char *format, ...) _printf_(2, 3);
/** translator_refuse_text() - an instruction with which the text is wrong for GPUs, too. */
void translator_refuse_text(Translator *t, const char *format, ...) _printf_(2, 3);
/** translator_fail() - with a line, for what is no instruction. */
void translator_fail(Translator *t, uint32_t line, const char *format, ...) _printf_(3, 4);

/** translator_take() - whether the opcode has this part, which counts as understood then. */
bool translator_take(Translator *t, const char *part);
/** translator_take_one() - the one of these words that it has, or NULL. */
const char *translator_take_one(Translator *t, const char *words);
/** translator_has() - whether a word is one of these words. */
bool translator_has(const char *words, const char *word);
/** translator_take_type() - the next part that is a type, or PTX_NONE. */
PtxType translator_take_type(Translator *t);

/** translator_take_atomic() - an operation on memory and its type, as its function has them in its name. */
const char *translator_take_atomic(Translator *t, const char **ret_type);

/** translator_operand() - Return: the operand, or one that is refused. */
const PtxOperand *translator_operand(Translator *t, size_t i);
/** translator_value() - print a value of @size bytes; 0: a predicate. @type: of numbers in it. */
void translator_value(Translator *t, const PtxOperand *operand, PtxType type);
/** translator_begin() - print "r1 = "; the caller prints the value and ";". @size: 0 for any. */
void translator_begin(Translator *t, const PtxOperand *operand, unsigned size);
/** translator_register() - of an operand, or NULL with the instruction refused. */
const PtxRegister *translator_register(Translator *t, const PtxOperand *operand);
/** translator_address() - print the host's address of "[...]". */
void translator_address(Translator *t, const PtxOperand *operand, PtxSpace space);
/** translator_is_param() - whether an operand is a variable in .param space. */
bool translator_is_param(const Translator *t, const PtxOperand *operand);
/** translator_take_space() - of the opcode. */
PtxSpace translator_take_space(Translator *t);

/* Each translates one instruction if it is of its kind. Return: whether it is. */
bool translate_arithmetic(Translator *t, const char *name);
bool translate_data(Translator *t, const char *name);
bool translate_convert(Translator *t, const char *name);
bool translate_memory(Translator *t, const char *name);
bool translate_control(Translator *t, const char *name);
bool translate_warp(Translator *t, const char *name);
bool translate_matrix(Translator *t, const char *name);
bool translate_wmma(Translator *t, const char *name);
bool translate_mbarrier(Translator *t, const char *name);
bool translate_video(Translator *t, const char *name);
bool translate_texture(Translator *t, const char *name);
/** translate_bulk() - of cp.async. Return: whether it is a bulk copy. */
bool translate_bulk(Translator *t, bool reduces);
/** translate_async_store() - of st or red. Return: whether it is asynchronous. */
bool translate_async_store(Translator *t, bool reduces);
/** translate_extern() - a call of a function that the CPU driver provides. Return: whether it does. */
bool translate_extern(Translator *t, PtxToken name, const PtxOperand *returns,
                      const PtxOperand *params);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_READER_H
#define GPUQ_PTX_READER_H

/*
 * Reader
 *
 * The state while a module is read, for the files that read it. After a failure the text has no
 * more tokens, so every loop ends; only the first failure counts.
 */

#include "compiler/ptx/module.h"
#include "compiler/ptx/names.h"

typedef struct Reader {
        PtxTokens tokens;
        const char *counted; /* up to here, newlines are counted */
        uint32_t line;       /* of the last token */
        PtxModule *module;
        Names *names;
        uint32_t function; /* the one being read; valid if in_function */
        bool in_function;
        uint32_t scope, n_scopes; /* of the function */
        uint32_t *parents;        /* of each scope */
        uint32_t file, file_line; /* of the last .loc in the function */
        bool follows;             /* since the last instruction was nothing but .loc */
        int r;
        char *error;
} Reader;

/** reader_next() - the next token, which counts lines. */
PtxToken reader_next(Reader *reader);
/** reader_peek() - the next one, which stays. */
PtxToken reader_peek(const Reader *reader);
/** reader_accept() - read the next one if it is this. */
bool reader_accept(Reader *reader, const char *word);
/** reader_expect() - read the next one; it must be this. */
void reader_expect(Reader *reader, const char *word);
/** reader_offset() - what stands behind a name: "+4", "+-4", "-4", or nothing, which is 0. */
int64_t reader_offset(Reader *reader);
/** reader_number() - an integer without sign. */
uint64_t reader_number(Reader *reader);
/** reader_fail() - with the line of the last token. */
void reader_fail(Reader *reader, const char *format, ...) _printf_(2, 3);
/** reader_fail_memory() - @pointer: what was allocated. Return: whether it is NULL, a failure. */
bool reader_fail_memory(Reader *reader, const void *pointer);
/** reader_grow() - as arena_grow(). Return: false after a failure. */
bool reader_grow(Reader *reader, void *array, size_t n, size_t size);

/** reader_operand() - one operand of an instruction. */
PtxOperand reader_operand(Reader *reader);
/** reader_operands() - several with commas, up to @closing, which is read. @operand: gets them. */
void reader_operands(Reader *reader, PtxOperand *operand, const char *closing);
/** reader_is_number() - whether a token is a number; reader_literal(): its value. */
bool reader_is_number(PtxToken token);
PtxOperand reader_literal(Reader *reader, PtxToken token);

/** reader_variables() - what follows .global or its like, up to the semicolon. */
void reader_variables(Reader *reader, PtxSpace space, bool is_extern);
/** reader_parameters() - behind "(", up to ")", which is read. */
void reader_parameters(Reader *reader, PtxOperand **ret_params, size_t *ret_n_params);
/** reader_registers() - what follows .reg, up to the semicolon. */
void reader_registers(Reader *reader);
/** reader_add_register() - Return: its index. */
uint32_t reader_add_register(Reader *reader, PtxToken name, PtxType type);

/** reader_note_local() - a name that is declared now; only those within functions are noted. */
void reader_note_local(Reader *reader, PtxToken name, bool is_range);

/** reader_body() - behind "{", up to the function's "}", which is read. */
void reader_body(Reader *reader);

/** reader_function() - the one being read. */
PtxFunction *reader_function(Reader *reader);

#endif

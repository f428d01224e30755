/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_SIGNATURE_H
#define GPUQ_COMPILER_SIGNATURE_H

/*
 * Signature
 *
 * The kernels and variables of a module, collected by the code that parses
 * the module, and written as compiled.h's signature and variables sections. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/macro.h"

typedef struct SignatureKernel {
        char *symbol;
        char *kinds; /* letters of compiled.h, "" for no parameter; NULL: not known */
        char *text;  /* or NULL */
} SignatureKernel;

/* What a module says of a variable. */
typedef struct SignatureVariable {
        const char *name; /* as the driver knows it */
        size_t n_name;
        bool has_value; /* one that it starts with is written down */
        bool is_byte;   /* one byte of no number's type, as objects without members have */
} SignatureVariable;

typedef struct Signature {
        SignatureKernel *kernels;
        size_t n_kernels;
        char **variables;
        size_t n_variables;
        bool has_printf;
        bool has_launches;  /* it calls the device runtime (device_runtime.h) */
        bool lacks_runtime; /* that must be linked: of a cubin */
        bool is_opencl; /* its variables are constants, and a pointer to shared memory is __local */
} Signature;

/** signature_new() - of a module without kernels. Return: 0 or -ENOMEM. */
int signature_new(Signature **ret_signature);
/** signature_free() - NULL is fine. Return: NULL. */
Signature *signature_free(Signature *signature);
DEFINE_CLEANUP(Signature, signature_free)

/**
 * signature_add_kernel() - a kernel, by the name the driver knows
 * @kinds: letters, one a parameter, or NULL; copied, as is @symbol
 *
 * Names with bytes that have a meaning in the sections are left out. Return: 0 or -ENOMEM.
 */
int signature_add_kernel(Signature *signature, const char *symbol, size_t n_symbol,
                         const char *kinds);
/** signature_is_variable() - whether signature_add_variable() would take it. */
bool signature_is_variable(const SignatureVariable *variable);
/**
 * signature_add_variable() - a writable variable; copied
 *
 * What compilers and the toolkit's headers put beside a user's variables, string
 * literals and constants, is left out, where its name is known to be theirs and
 * nothing speaks against it: a user's that was left out would be shared. Return: 0 or -ENOMEM.
 */
int signature_add_variable(Signature *signature, const SignatureVariable *variable);
/**
 * signature_set_text() - what a kernel computes, for users
 * @text: as compiled.h has it, "\\n" for newlines; copied
 *
 * Return: 0, -ENOENT if there is no such kernel, or -ENOMEM.
 */
int signature_set_text(Signature *signature, const char *symbol, const char *text);
/** signature_find() - a kernel by symbol. Return: the kernel, or NULL. */
SignatureKernel *signature_find(const Signature *signature, const char *symbol);

/** signature_name() - what a user says for a symbol. Return: the caller's string, or NULL if there is no memory. */
char *signature_name(const char *symbol);

/**
 * signature_pack() - both sections
 *
 * A mangled symbol gets the name a user would say, unless two kernels share it,
 * and an 8-byte parameter whose type the mangling tells becomes a pointer or an integer.
 *
 * @ret_kernels, @ret_variables: the caller's strings. Return: 0 or -ENOMEM.
 */
int signature_pack(const Signature *signature, char **ret_kernels, char **ret_variables);

/**
 * signature_user_name() - "f<float>" for "void f<float>(float*, int)"
 * @demangled: a demangled function
 *
 * Return: the caller's string, or NULL if there is no memory.
 */
char *signature_user_name(const char *demangled);

#endif

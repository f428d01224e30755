/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_CHECK_ACCESS_H
#define GPUQ_COMPILER_CHECK_ACCESS_H

/*
 * Accesses
 *
 * What an instruction of PTX reads and writes in memory. Pure.
 */

#include "compiler/ptx/module.h"

#define CHECK_ACCESSES_MAX 2u /* of one instruction: cp.async reads and writes */

typedef enum CheckKind {
        CHECK_LOAD,
        CHECK_STORE,
        CHECK_ATOMIC,
} CheckKind;

/* Lines of elements that lie apart: what wmma loads and stores. */
typedef struct CheckMatrix {
        unsigned n_lines; /* 0: no matrix */
        unsigned n_line_bytes;
        unsigned element;         /* bytes */
        const PtxOperand *stride; /* elements; NULL: lines follow each other */
} CheckMatrix;

/* What an access does to bytes that may not have been written. An atomic operation only writes: histograms begin with
 * gpuq's zeros. */
#define CHECK_READS  1u /* they must have been */
#define CHECK_WRITES 2u /* they are from now on */

typedef struct CheckAccess {
        CheckKind kind;
        unsigned effect; /* CHECK_READS, CHECK_WRITES; 0: between what it loads are other bytes */
        PtxSpace space;  /* PTX_GLOBAL, PTX_SHARED or PTX_GENERIC */
        const PtxOperand *address; /* within the brackets */
        unsigned n_bytes;
        const PtxOperand *length; /* a register with the bytes, or NULL */
        const PtxOperand *unless; /* a predicate: no access if it is set; or NULL */
        unsigned n_lanes;         /* the first of a warp have an address; 32: all */
        CheckMatrix matrix;
} CheckAccess;

enum {
        _CHECK_E_SUCCESS,
        CHECK_E_UNKNOWN, /* it has an address, but what it accesses is not known */
};

/**
 * check_accesses() - what is to be compared, which is nothing for local, constant and parameter memory
 * and for shared memory of other blocks
 *
 * Return: 0 or CHECK_E_UNKNOWN.
 */
int check_accesses(const PtxModule *module, const PtxFunction *function,
                   const PtxInstruction *instruction, CheckAccess accesses[CHECK_ACCESSES_MAX],
                   size_t *ret_n);
/** check_kind_name() - "load". */
const char *check_kind_name(CheckKind kind);

#endif

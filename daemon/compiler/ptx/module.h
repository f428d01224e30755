/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_MODULE_H
#define GPUQ_PTX_MODULE_H

/*
 * Module
 *
 * A PTX text as objects: functions with their instructions, and variables. Names are resolved: an
 * operand holds the index of its register, variable, function or label. What an instruction means
 * is left to those who use the module.
 *
 * All memory belongs to the module. Tokens point into the text, which must live as long.
 */

#include <stdint.h>

#include "compiler/ptx/arena.h"
#include "compiler/ptx/tokens.h"

/* The order matters: see ptx_type_size(). */
typedef enum PtxType {
        PTX_NONE,
        PTX_PRED,
        PTX_B8,
        PTX_B16,
        PTX_B32,
        PTX_B64,
        PTX_B128,
        PTX_U8,
        PTX_U16,
        PTX_U32,
        PTX_U64,
        PTX_S8,
        PTX_S16,
        PTX_S32,
        PTX_S64,
        PTX_U16X2,
        PTX_S16X2,
        PTX_F16,
        PTX_F16X2,
        PTX_BF16,
        PTX_BF16X2,
        PTX_F32,
        PTX_F64,
        PTX_N_TYPES,
} PtxType;

typedef enum PtxSpace {
        PTX_GENERIC,
        PTX_REG,
        PTX_PARAM,
        PTX_LOCAL,
        PTX_SHARED,
        PTX_CLUSTER, /* shared memory of any block of the cluster */
        PTX_GLOBAL,
        PTX_CONST,
} PtxSpace;

typedef enum PtxKind {
        PTX_REGISTER,  /* index */
        PTX_INTEGER,   /* bits */
        PTX_FLOAT32,   /* bits */
        PTX_FLOAT64,   /* bits */
        PTX_VARIABLE,  /* index, offset */
        PTX_FUNCTION,  /* index */
        PTX_LABEL,     /* index */
        PTX_TABLE,     /* index: a list of labels */
        PTX_PROTOTYPE, /* of functions that are called by pointer */
        PTX_SPECIAL,   /* text: a special register, or a word that only the instruction knows */
        PTX_SINK,      /* _ */
        PTX_ADDRESS,   /* [a + offset, b, ...] */
        PTX_VECTOR,    /* {a, b, ...} */
        PTX_LIST,      /* (a, b, ...) */
        PTX_PAIR,      /* a|b */
} PtxKind;

typedef struct PtxOperand {
        PtxKind kind;
        bool negated;               /* !p */
        bool minus;                 /* -r */
        uint8_t part_at, part_bits; /* r.h1: bits 16 to 31; of the whole register 0 */
        uint32_t index;
        uint64_t bits;
        int64_t offset;
        PtxToken text;
        struct PtxOperand *elements;
        size_t n_elements;
} PtxOperand;

typedef struct PtxInstruction {
        const char *begin; /* its "@", or its opcode */
        const char *end;   /* behind its ";" */
        PtxToken opcode;   /* with its types and modifiers, as written */
        uint32_t line;
        uint32_t scope;
        uint32_t file, file_line; /* of the source, from .loc; 0: not known */
        bool follows;             /* between the one before it and this is nothing but .loc */
        bool is_guarded;          /* @p or @!p */
        PtxOperand guard;
        PtxOperand *operands;
        size_t n_operands;
} PtxInstruction;

typedef struct PtxRegister {
        PtxToken name;
        PtxType type;
} PtxRegister;

typedef struct PtxLabel {
        size_t at; /* the instruction that it stands before */
        bool is_table;
        PtxOperand list; /* of a table */
} PtxLabel;

/* One element of a variable's value. */
typedef struct PtxInitial {
        bool is_address;
        bool is_function;
        bool is_generic; /* generic(name) */
        uint32_t index;  /* of the variable or function */
        int64_t offset;
        uint64_t bits;
} PtxInitial;

typedef struct PtxVariable {
        PtxToken name;
        uint32_t line;
        PtxSpace space;
        PtxType type;
        unsigned vector; /* .v2: 2; else 1 */
        size_t align;
        unsigned n_dimensions;
        size_t n_elements; /* of all dimensions; 1 for none, 0 for [] */
        bool is_extern;
        bool is_pointer; /* a parameter with .ptr */
        bool in_function;
        uint32_t function; /* if so, which */
        PtxInitial *initials;
        size_t n_initials;
} PtxVariable;

typedef struct PtxFunction {
        PtxToken name;
        uint32_t line;
        bool is_entry;
        bool is_extern;
        bool is_defined;
        /* parameters and results: of variables, or registers with .reg */
        PtxOperand *returns, *params;
        size_t n_returns, n_params;
        PtxRegister *registers;
        size_t n_registers;
        PtxInstruction *instructions;
        size_t n_instructions;
        PtxLabel *labels;
        size_t n_labels;
        const char *body;     /* behind its "{" */
        const char *end;      /* its "}" */
        uint32_t max_threads; /* of a block, by .maxntid or .reqntid; 0: any number */
        uint32_t block[3];    /* by .reqntid; zeros: any */
} PtxFunction;

/* A name that is declared within a function. */
typedef struct PtxLocal {
        PtxToken name;
        uint32_t line;
        bool is_range; /* of registers: the name with a number behind it */
} PtxLocal;

/* A file that .loc names. */
typedef struct PtxFile {
        uint32_t number;
        PtxToken name; /* with its quotes */
} PtxFile;

typedef struct PtxModule {
        Arena *arena;
        unsigned version; /* 7.4: 74 */
        unsigned target;  /* sm_80: 80 */
        PtxFunction *functions;
        size_t n_functions;
        PtxVariable *variables; /* of all functions too, parameters included */
        size_t n_variables;
        PtxLocal *locals; /* of all functions: registers, labels, parameters and variables */
        size_t n_locals;
        PtxFile *files;
        size_t n_files;
} PtxModule;

enum {
        _PTX_E_SUCCESS,
        PTX_E_INVALID, /* the text is wrong, or asks for what there is not; there is a message */
};

/**
 * ptx_module_read() - any bytes are accepted without harm
 * @text: stays the caller's, and must outlive the module
 * @ret_error: with PTX_E_INVALID, a message with the line; the caller's string
 *
 * Return: 0, PTX_E_INVALID, or -ENOMEM.
 */
int ptx_module_read(const char *text, size_t n_text, PtxModule **ret_module, char **ret_error);
/** ptx_module_free() - NULL is fine. Return: NULL. */
PtxModule *ptx_module_free(PtxModule *module);
DEFINE_CLEANUP(PtxModule, ptx_module_free)

/** ptx_type_find() - "u32". Return: PTX_NONE if it is no type. */
PtxType ptx_type_find(PtxToken name);
/** ptx_type_name() - "u32". */
const char *ptx_type_name(PtxType type);
/** ptx_type_size() - in bytes. */
unsigned ptx_type_size(PtxType type);
/** ptx_type_is_signed() - s8 to s64; ptx_type_is_float(): f16 to f64, also packed ones. */
bool ptx_type_is_signed(PtxType type);
bool ptx_type_is_float(PtxType type);
/** ptx_opcode_is() - whether it is that instruction, with any types and modifiers. */
bool ptx_opcode_is(const PtxInstruction *instruction, const char *name);
/** ptx_variable_size() - in bytes, at most PTX_VARIABLE_MAX. */
size_t ptx_variable_size(const PtxVariable *variable);

#define PTX_VARIABLE_MAX (1ull << 30)

#endif

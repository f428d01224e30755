/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/check_access.h"

#include <stdio.h>
#include <string.h>

#include "util/macro.h"

#define PARTS_MAX    24u
#define MATRIX_BYTES 16u /* that one thread's address of ldmatrix and stmatrix names */

/* "ld.global.v2.f32" is four parts. */
typedef struct Opcode {
        PtxToken parts[PARTS_MAX];
        size_t n_parts;
        const PtxModule *module;
        const PtxFunction *function;
        const PtxInstruction *in;
} Opcode;

const char *check_kind_name(CheckKind kind) {
        static const char *const names[] = {
                [CHECK_LOAD] = "load",
                [CHECK_STORE] = "store",
                [CHECK_ATOMIC] = "atomic operation",
        };

        return names[kind];
}

static void opcode_split(Opcode *opcode) {
        PtxToken text = opcode->in->opcode;
        size_t at = 0;

        while (at <= text.n && opcode->n_parts < PARTS_MAX) {
                const char *dot = memchr(text.s + at, '.', text.n - at);
                size_t end = dot ? (size_t)(dot - text.s) : text.n;

                opcode->parts[opcode->n_parts++] = (PtxToken){text.s + at, end - at};
                at = end + 1;
        }
}

static bool opcode_is(const Opcode *opcode, const char *name) {
        return ptx_token_is(opcode->parts[0], name);
}

static bool opcode_is_one(const Opcode *opcode, const char *const *names) {
        for (; *names; names++)
                if (opcode_is(opcode, *names))
                        return true;
        return false;
}

static bool opcode_has(const Opcode *opcode, const char *part) {
        for (size_t i = 1; i < opcode->n_parts; i++)
                if (ptx_token_is(opcode->parts[i], part))
                        return true;
        return false;
}

/* The last one that is a type: cvt has two, loads and stores have one. */
static unsigned opcode_size(const Opcode *opcode) {
        unsigned size = 0;

        for (size_t i = 1; i < opcode->n_parts; i++)
                if (ptx_type_find(opcode->parts[i]) > PTX_PRED)
                        size = ptx_type_size(ptx_type_find(opcode->parts[i]));
        return size;
}

static unsigned opcode_vector(const Opcode *opcode) {
        static const struct {
                const char *name;
                unsigned n;
        } vectors[] = {{"v2", 2}, {"v4", 4}, {"v8", 8}};

        for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
                if (opcode_has(opcode, vectors[i].name))
                        return vectors[i].n;
        return 1;
}

/* PTX_NONE would be wrong here: PTX_REG stands for a space that is not compared. */
static PtxSpace opcode_space(const Opcode *opcode) {
        static const char *const others[] = {
                "local", "param", "const", "param::func", "param::entry", "shared::cluster",
        };

        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (opcode_has(opcode, others[i]))
                        return PTX_REG;
        if (opcode_has(opcode, "global"))
                return PTX_GLOBAL;
        if (opcode_has(opcode, "shared") || opcode_has(opcode, "shared::cta"))
                return PTX_SHARED;
        return PTX_GENERIC;
}

static const PtxOperand *address_of(const PtxOperand *operand) {
        return operand->kind == PTX_ADDRESS && operand->n_elements == 1 ? &operand->elements[0]
                                                                        : NULL;
}

static const PtxOperand *first_address(const PtxInstruction *in) {
        for (size_t i = 0; i < in->n_operands; i++)
                if (in->operands[i].kind == PTX_ADDRESS)
                        return address_of(&in->operands[i]);
        return NULL;
}

static bool has_address(const PtxInstruction *in) {
        for (size_t i = 0; i < in->n_operands; i++)
                if (in->operands[i].kind == PTX_ADDRESS)
                        return true;
        return false;
}

/* A variable's name is an address of its own space, whatever the instruction says. */
static PtxSpace space_of(const Opcode *opcode, const PtxOperand *address, PtxSpace space) {
        PtxSpace own;

        if (space != PTX_GENERIC || address->kind != PTX_VARIABLE)
                return space;
        own = opcode->module->variables[address->index].space;
        return own == PTX_GLOBAL || own == PTX_SHARED ? own : PTX_REG;
}

/* Return: whether there is something to compare. */
static bool access_set(const Opcode *opcode, CheckAccess *access, CheckKind kind, PtxSpace space,
                       const PtxOperand *address, unsigned n_bytes) {
        *access = (CheckAccess){
                .kind = kind,
                .effect = kind == CHECK_LOAD ? CHECK_READS : CHECK_WRITES,
                .space = space_of(opcode, address, space),
                .address = address,
                .n_bytes = n_bytes,
                .n_lanes = 32,
        };
        return access->space != PTX_REG;
}

static PtxType type_of(const Opcode *opcode, const PtxOperand *operand) {
        return operand->kind == PTX_REGISTER ? opcode->function->registers[operand->index].type
                                             : PTX_NONE;
}

/* ---- kinds of instructions ---------------------------------------------------------------- */

static int read_simple(const Opcode *opcode, CheckKind kind, unsigned n_bytes,
                       CheckAccess *accesses, size_t *ret_n) {
        const PtxOperand *address = first_address(opcode->in);
        PtxSpace space = opcode_space(opcode);

        if (space == PTX_REG)
                return 0;
        if (!address || n_bytes == 0)
                return CHECK_E_UNKNOWN;
        *ret_n = access_set(opcode, accesses, kind, space, address, n_bytes);
        return 0;
}

/* cp.async.ca.shared.global [to], [from], size, size or predicate */
static int read_copy(const Opcode *opcode, CheckAccess *accesses, size_t *ret_n) {
        const PtxInstruction *in = opcode->in;
        const PtxOperand *to, *from;
        size_t n = 0;

        if (!has_address(in))
                return 0;
        if (opcode_has(opcode, "mbarrier"))
                return read_simple(opcode, CHECK_ATOMIC, 8, accesses, ret_n);
        if (!opcode_has(opcode, "async") || opcode_has(opcode, "bulk") || in->n_operands < 3 ||
            in->operands[2].kind != PTX_INTEGER || in->operands[2].bits > 16)
                return CHECK_E_UNKNOWN;
        to = address_of(&in->operands[0]);
        from = address_of(&in->operands[1]);
        if (!to || !from)
                return CHECK_E_UNKNOWN;

        n += access_set(opcode, &accesses[n], CHECK_STORE, PTX_SHARED, to,
                        (unsigned)in->operands[2].bits);
        if (access_set(opcode, &accesses[n], CHECK_LOAD, PTX_GLOBAL, from,
                       (unsigned)in->operands[2].bits)) {
                if (in->n_operands > 3 && in->operands[3].kind == PTX_INTEGER)
                        accesses[n].n_bytes = (unsigned)MIN(in->operands[3].bits, 16);
                else if (in->n_operands > 3 && type_of(opcode, &in->operands[3]) == PTX_PRED)
                        accesses[n].unless = &in->operands[3];
                else if (in->n_operands > 3 &&
                         ptx_type_size(type_of(opcode, &in->operands[3])) == 4)
                        accesses[n].length = &in->operands[3];
                n++;
        }
        *ret_n = n;
        return 0;
}

/* Each of the first threads of a warp has the address of one line. */
static int read_lines(const Opcode *opcode, CheckKind kind, CheckAccess *accesses, size_t *ret_n) {
        int r;

        if (!opcode_has(opcode, "m8n8"))
                return CHECK_E_UNKNOWN;
        r = read_simple(opcode, kind, MATRIX_BYTES, accesses, ret_n);
        accesses->n_lanes = opcode_has(opcode, "x4") ? 32 : opcode_has(opcode, "x2") ? 16 : 8;
        return r;
}

/* "m16n16k16" */
static bool read_shape(const Opcode *opcode, unsigned *m, unsigned *n, unsigned *k) {
        for (size_t i = 1; i < opcode->n_parts; i++) {
                char text[16];

                if (!ptx_token_starts(opcode->parts[i], "m") || opcode->parts[i].n >= sizeof(text))
                        continue;
                snprintf(text, sizeof(text), "%.*s", (int)opcode->parts[i].n, opcode->parts[i].s);
                if (sscanf(text, "m%2un%2uk%2u", m, n, k) == 3)
                        return true;
        }
        return false;
}

/* "%r1+4" and negative numbers would reach further than what is compared. */
static bool is_stride(const Opcode *opcode, const PtxOperand *stride) {
        if (stride->negated || stride->offset != 0)
                return false;
        if (stride->kind == PTX_INTEGER)
                return stride->bits <= INT32_MAX;
        return ptx_type_size(type_of(opcode, stride)) == 4;
}

/* A is m by k, B is k by n, C and D are m by n. */
static int read_matrix(const Opcode *opcode, CheckAccess *accesses, size_t *ret_n) {
        bool is_store = opcode_has(opcode, "store"), by_row = opcode_has(opcode, "row");
        size_t at = 2; /* the stride, behind the address and the fragment */
        unsigned m, n, k, rows, columns, element = opcode_size(opcode);
        int r;

        if (!is_store && !opcode_has(opcode, "load")) /* wmma.mma */
                return 0;
        if (!read_shape(opcode, &m, &n, &k) || element == 0)
                return CHECK_E_UNKNOWN;
        r = read_simple(opcode, is_store ? CHECK_STORE : CHECK_LOAD, element, accesses, ret_n);
        if (r || *ret_n == 0)
                return r;

        accesses->effect &= ~CHECK_READS;
        rows = opcode_has(opcode, "b") ? k : m;
        columns = opcode_has(opcode, "a") ? k : n;
        accesses->matrix = (CheckMatrix){
                .n_lines = by_row ? rows : columns,
                .n_line_bytes = (by_row ? columns : rows) * element,
                .element = element,
                .stride = opcode->in->n_operands > at ? &opcode->in->operands[at] : NULL,
        };
        return accesses->matrix.stride && !is_stride(opcode, accesses->matrix.stride)
                       ? CHECK_E_UNKNOWN
                       : 0;
}

int check_accesses(const PtxModule *module, const PtxFunction *function,
                   const PtxInstruction *instruction, CheckAccess accesses[CHECK_ACCESSES_MAX],
                   size_t *ret_n) {
        static const char *const harmless[] = {
                "tex", "tld4",     "suld",      "sust",          "sured",        "txq",
                "suq", "prefetch", "prefetchu", "applypriority", "createpolicy", NULL,
        };
        static const char *const loads[] = {"ld", "ldu", NULL};
        static const char *const atomics[] = {"atom", "red", NULL};
        Opcode opcode = {.module = module, .function = function, .in = instruction};
        unsigned n_bytes;

        *ret_n = 0;
        if (!has_address(instruction))
                return 0;
        opcode_split(&opcode);
        n_bytes = opcode_size(&opcode) * opcode_vector(&opcode);
        if (opcode_is_one(&opcode, harmless))
                return 0;
        if (opcode_is_one(&opcode, loads))
                return read_simple(&opcode, CHECK_LOAD, n_bytes, accesses, ret_n);
        if (opcode_is(&opcode, "st") && !opcode_has(&opcode, "async") &&
            !opcode_has(&opcode, "bulk"))
                return read_simple(&opcode, CHECK_STORE, n_bytes, accesses, ret_n);
        if (opcode_is_one(&opcode, atomics) && !opcode_has(&opcode, "async"))
                return read_simple(&opcode, CHECK_ATOMIC, n_bytes, accesses, ret_n);
        if (opcode_is(&opcode, "mbarrier"))
                return read_simple(&opcode, CHECK_ATOMIC, 8, accesses, ret_n);
        if (opcode_is(&opcode, "cp"))
                return read_copy(&opcode, accesses, ret_n);
        if (opcode_is(&opcode, "ldmatrix"))
                return read_lines(&opcode, CHECK_LOAD, accesses, ret_n);
        if (opcode_is(&opcode, "stmatrix"))
                return read_lines(&opcode, CHECK_STORE, accesses, ret_n);
        if (opcode_is(&opcode, "wmma"))
                return read_matrix(&opcode, accesses, ret_n);
        return CHECK_E_UNKNOWN;
}

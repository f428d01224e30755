/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: accesses that are compared together
 *
 * A run is a sequence of accesses of global memory of which each runs if the first does. Once one of them is outside,
 * the job ends with an error, so those behind it may do nothing: one predicate serves them all. Accesses of a run at
 * the same address plus constants are a span: all between the lowest and the highest is compared before the first.
 *
 * In a run nothing may branch, end the thread, or write to the thread's stack, where the assembler may keep addresses
 * and the predicate. So only instructions that are known to do none of that may stand in it, and nothing else but .loc:
 * no label, brace, declaration or pragma. What other threads may wait for (atomic operations, volatile stores) is
 * compared by itself, so that a lock is released even if what it protects is outside.
 */
#include <string.h>

#include "compiler/fence_text.h"
#include "util/grow.h"

#define OFFSET_MAX (1 << 28) /* bytes, so that sums are far from overflow */
#define OPEN_MAX   8u

/* What a register has: what some register had at some time, plus an offset. Known within a block. */
typedef struct Value {
        uint32_t block;
        uint32_t number;
        int64_t offset;
} Value;

/* A span that may go on. */
typedef struct Open {
        Value base; /* of the first access's register */
        size_t span;
        size_t used; /* the last instruction */
} Open;

typedef struct Finder {
        FenceText *fence;
        const PtxFunction *function;
        Value *values; /* of each register */
        uint32_t n_values;
        uint32_t block;
        Open open[OPEN_MAX]; /* of the run */
        size_t n_open;       /* 0: there is no run */
        uint32_t guard;      /* of the run: the number of a value; 0: none */
        bool negated;
} Finder;

/* ---- values --------------------------------------------------------------------------------------- */

static Value fresh(Finder *finder) {
        return (Value){finder->block, ++finder->n_values, 0};
}

static Value value_of(Finder *finder, const PtxOperand *operand) {
        Value *value = &finder->values[operand->index];

        if (value->block != finder->block)
                *value = fresh(finder);
        return *value;
}

/* What is written to; an address is only read. */
static void forget(Finder *finder, const PtxOperand *operand) {
        if (operand->kind == PTX_REGISTER)
                finder->values[operand->index] = fresh(finder);
        for (size_t i = 0; i < operand->n_elements && operand->kind != PTX_ADDRESS; i++)
                forget(finder, &operand->elements[i]);
}

static bool is_wide(const PtxFunction *function, const PtxOperand *operand) {
        PtxType type;

        if (operand->kind != PTX_REGISTER || operand->negated)
                return false;
        type = function->registers[operand->index].type;
        return ptx_type_size(type) == 8 && !ptx_type_is_float(type);
}

static bool is_small(int64_t offset) {
        return offset >= -OFFSET_MAX && offset <= OFFSET_MAX;
}

static bool is_opcode(const PtxInstruction *in, const char *const *names) {
        for (; *names; names++)
                if (ptx_token_is(in->opcode, *names))
                        return true;
        return false;
}

/* "mov.u64 to, from" and "add.s64 to, from, 4" */
static bool is_copy(const PtxFunction *function, const PtxInstruction *in) {
        static const char *const movs[] = {"mov.u64", "mov.s64", "mov.b64", NULL};
        static const char *const adds[] = {"add.u64", "add.s64", NULL};
        const PtxOperand *operands = in->operands;
        bool is_add = is_opcode(in, adds);

        if (in->is_guarded || in->n_operands != (is_add ? 3 : 2) ||
            !(is_add || is_opcode(in, movs)) || !is_wide(function, &operands[0]) ||
            !is_wide(function, &operands[1]) || operands[1].offset != 0)
                return false;
        return !is_add || (operands[2].kind == PTX_INTEGER && is_small((int64_t)operands[2].bits));
}

static void note_result(Finder *finder, const PtxInstruction *in) {
        Value value;

        if (!is_copy(finder->function, in)) {
                forget(finder, &in->operands[0]);
                return;
        }
        value = value_of(finder, &in->operands[1]);
        if (in->n_operands == 3)
                value.offset = (int64_t)((uint64_t)value.offset + in->operands[2].bits);
        finder->values[in->operands[0].index] = value;
}

/* ---- instructions ----------------------------------------------------------------------------------- */

/* Their result is the first operand, and that is all they do. */
static bool only_computes(const PtxInstruction *in) {
        static const char *const names[] = {
                "abs",   "add",      "addc", "and",  "bfe",  "bfi",   "bfind", "brev", "clz",
                "cnot",  "copysign", "cos",  "cvt",  "cvta", "div",   "dp2a",  "dp4a", "ex2",
                "fma",   "lg2",      "lop3", "mad",  "madc", "mad24", "max",   "min",  "mov",
                "mul",   "mul24",    "neg",  "not",  "or",   "popc",  "prmt",  "rcp",  "rem",
                "rsqrt", "sad",      "selp", "set",  "setp", "shf",   "shl",   "shr",  "sin",
                "slct",  "sqrt",     "sub",  "subc", "tanh", "testp", "xor",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (ptx_opcode_is(in, names[i]))
                        return true;
        return false;
}

static bool is_load(const PtxInstruction *in) {
        return ptx_opcode_is(in, "ld") || ptx_opcode_is(in, "ldu");
}

/* Threads may wait for others by it. */
static bool is_strong(const PtxInstruction *in) {
        static const char *const words[] = {"volatile", "relaxed", "acquire", "release", "mmio"};

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (ptx_token_has(in->opcode, words[i]))
                        return true;
        return false;
}

/* In global memory is no thread's stack. */
static bool is_of_run(const PtxFunction *function, const PtxInstruction *in,
                      const CheckAccess *access) {
        return (is_load(in) || ptx_opcode_is(in, "st")) && !is_strong(in) &&
               access->space == PTX_GLOBAL && !access->length && !access->unless &&
               access->matrix.n_lines == 0 && access->n_lanes >= 32 &&
               is_wide(function, access->address) && is_small(access->address->offset) &&
               (!in->is_guarded || function->registers[in->guard.index].type == PTX_PRED);
}

/* ---- spans -------------------------------------------------------------------------------------------- */

/* Return: whether it may have one more access, at @at from the register of its first one. */
static bool span_add(FenceSpan *span, int64_t at, const CheckAccess *access) {
        if (!is_small(at))
                return false;
        span->begin = MIN(span->begin, at);
        span->last = MAX(span->last, at);
        span->end = MAX(span->end, at + access->n_bytes);
        span->kind = access->kind == CHECK_LOAD ? span->kind : access->kind;
        return true;
}

static Open *find_open(Finder *finder, Value base) {
        for (size_t i = 0; i < finder->n_open; i++)
                if (finder->open[i].base.number == base.number)
                        return &finder->open[i];
        return NULL;
}

/* One more, or that which was not used for longest. */
static Open *take_open(Finder *finder) {
        Open *oldest = finder->open;

        if (finder->n_open < OPEN_MAX)
                return &finder->open[finder->n_open++];
        for (size_t i = 1; i < finder->n_open; i++)
                if (finder->open[i].used < oldest->used)
                        oldest = &finder->open[i];
        return oldest;
}

static void begin_span(Finder *finder, size_t first, Open *open, Value base,
                       const CheckAccess *access, bool begins_run) {
        FenceText *fence = finder->fence;
        int64_t at = access->address->offset;

        if (grow(&fence->spans, fence->n_spans, sizeof(*fence->spans)) < 0) {
                ptx_edits_fail_memory(&fence->edits);
                return;
        }
        if (!begins_run)
                fence->spans[fence->n_spans - 1].ends_run = false;
        *open = (Open){.base = base, .span = fence->n_spans};
        fence->spans[fence->n_spans++] = (FenceSpan){
                .begin = at,
                .last = at,
                .end = at + access->n_bytes,
                .kind = access->kind,
                .first = first,
                .begins_run = begins_run,
                .ends_run = true,
        };
}

static void note_access(Finder *finder, size_t i, const CheckAccess *access) {
        const PtxInstruction *in = &finder->function->instructions[i];
        Value base = value_of(finder, access->address);
        uint32_t guard = in->is_guarded ? value_of(finder, &in->guard).number : 0;
        bool negated = in->is_guarded && in->guard.negated;
        Open *open;
        int64_t moved;

        if (guard != finder->guard || negated != finder->negated)
                finder->n_open = 0;
        finder->guard = guard;
        finder->negated = negated;

        open = find_open(finder, base);
        moved = open ? (int64_t)((uint64_t)base.offset - (uint64_t)open->base.offset) : 0;
        if (!open || !is_small(moved) ||
            !span_add(&finder->fence->spans[open->span], moved + access->address->offset, access)) {
                bool begins_run = finder->n_open == 0;

                open = open ?: take_open(finder);
                begin_span(finder, i, open, base, access, begins_run);
        }
        open->used = i;
        finder->fence->span_of[i] = (uint32_t)open->span + 1;
}

/* ---- a function ------------------------------------------------------------------------------------------ */

/* What registers have from here on is not what they had before. */
static void begin_block(Finder *finder) {
        finder->block++;
        finder->n_open = 0;
}

static void note_instruction(Finder *finder, size_t i) {
        const PtxInstruction *in = &finder->function->instructions[i];
        CheckAccess accesses[CHECK_ACCESSES_MAX];
        size_t n;

        if (!in->follows)
                begin_block(finder);
        n = fence_find_accesses(finder->fence, finder->function, in, accesses);
        if (n == 1 && is_of_run(finder->function, in, &accesses[0]))
                note_access(finder, i, &accesses[0]);
        else if (in->n_operands == 0 || !(only_computes(in) || is_load(in)))
                begin_block(finder);
        else if (n > 0) /* its comparison has the same predicate */
                finder->n_open = 0;
        if (in->n_operands > 0)
                note_result(finder, in);
}

void fence_find_spans(FenceText *fence, const PtxFunction *function) {
        _cleanup_(freep) Value *values = calloc(function->n_registers + 1, sizeof(*values));
        Finder finder = {.fence = fence, .function = function, .values = values};

        free(fence->span_of);
        fence->span_of = calloc(function->n_instructions + 1, sizeof(*fence->span_of));
        fence->n_spans = 0;
        if (!values || !fence->span_of)
                ptx_edits_fail_memory(&fence->edits);
        for (size_t i = 0; i < function->n_instructions && !fence->edits.r; i++)
                note_instruction(&finder, i);
}

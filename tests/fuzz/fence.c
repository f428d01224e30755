/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX that a user wrote, with a fence: it is rewritten into text that the reader takes, in which no load, store or atomic
 * operation on global or generic memory runs with an address outside; or it is refused with a message of one line.
 *
 * Each function is run from its first instruction to its last, with registers that have numbers by chance, in a fence of
 * two ranges. Branches are not taken, but from each label on registers have any numbers, and predicates of the fence are
 * true: so whatever led there. The same holds behind what is not known to keep registers, or may write to the stack.
 */

#include <stdlib.h>
#include <string.h>

#include "compiler/check_access.h"
#include "compiler/fence.h"
#include "compiler/fence_rewrite.h"
#include "compiler/ptx/module.h"
#include "input.h"
#include "util/macro.h"

#define RUNS 16u

static const uint64_t fence_words[] = {1u << 20, 64, 3u << 20, 24, 7u << 20};

typedef struct Thread {
        const PtxModule *module;
        const PtxFunction *function;
        const PtxInstruction *in;
        uint64_t *registers;
        uint64_t chance;
} Thread;

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static bool is_of_fence(const PtxOperand *operand) {
        return ptx_token_starts(operand->text, "%" FENCE_NAME);
}

static bool is_one_of(const PtxInstruction *in, const char *const *names) {
        for (; *names; names++)
                if (ptx_opcode_is(in, *names))
                        return true;
        return false;
}

static bool is_op(const Thread *thread, const char *opcode) {
        return ptx_token_is(thread->in->opcode, opcode);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static uint64_t draw(Thread *thread) {
        thread->chance = thread->chance * 6364136223846793005u + 1442695040888963407u;
        return thread->chance >> 33;
}

/* Inside, at the ends, or where sums overflow. */
static uint64_t draw_number(Thread *thread) {
        const uint64_t ends[] = {fence_words[0],
                                 fence_words[0] + fence_words[1],
                                 fence_words[2],
                                 fence_words[2] + fence_words[3],
                                 0,
                                 1ull << 63};

        return ends[draw(thread) % ARRAY_SIZE(ends)] + draw(thread) % 8 * 4 - 16;
}

static bool is_predicate(const Thread *thread, uint32_t i) {
        return thread->function->registers[i].type == PTX_PRED;
}

static void set_any(Thread *thread, const PtxOperand *operand) {
        if (operand->kind == PTX_REGISTER)
                thread->registers[operand->index] = is_predicate(thread, operand->index)
                                                            ? draw(thread) % 2
                                                            : draw_number(thread);
        for (size_t i = 0; i < operand->n_elements && operand->kind != PTX_ADDRESS; i++)
                set_any(thread, &operand->elements[i]);
}

static bool is_word_of_fence(PtxToken name) {
        static const char *const words[] = {"b0", "n0", "b1", "n1", "f"};

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (ptx_token_starts(name, "%" FENCE_NAME "_") && ptx_token_ends(name, words[i]) &&
                    name.n == strlen("%" FENCE_NAME "_") + strlen(words[i]))
                        return true;
        return false;
}

static void set_all(Thread *thread) {
        for (uint32_t i = 0; i < thread->function->n_registers; i++) {
                PtxToken name = thread->function->registers[i].name;
                PtxOperand operand = {.kind = PTX_REGISTER, .index = i, .text = name};

                if (is_word_of_fence(name))
                        continue;
                if (is_predicate(thread, i) && is_of_fence(&operand))
                        thread->registers[i] = 1;
                else
                        set_any(thread, &operand);
        }
}

static uint64_t read_operand(Thread *thread, const PtxOperand *operand) {
        uint64_t bits;

        if (operand->kind == PTX_REGISTER)
                bits = thread->registers[operand->index];
        else if (operand->kind == PTX_VARIABLE) /* where variables are, once for all */
                bits = fence_words[0] + operand->index % 32 * 4;
        else
                bits = operand->kind == PTX_INTEGER ? operand->bits : draw_number(thread);
        bits += (uint64_t)operand->offset;
        return operand->negated ? !bits : bits;
}

/* ---- instructions --------------------------------------------------------------------------- */

/* "setp.lt.and.u64 p, a, b, c". Return: false if it is another. */
static bool compare(Thread *thread, uint64_t *to) {
        const PtxOperand *operands = thread->in->operands;
        uint64_t a = read_operand(thread, &operands[1]), b = read_operand(thread, &operands[2]);
        PtxToken opcode = thread->in->opcode;
        bool is_signed = ptx_token_ends(opcode, ".s64");

        if (!is_signed && !ptx_token_ends(opcode, ".u64"))
                return false;
        if (ptx_token_starts(opcode, "setp.lt."))
                *to = is_signed ? (int64_t)a < (int64_t)b : a < b;
        else if (ptx_token_starts(opcode, "setp.ge."))
                *to = is_signed ? (int64_t)a >= (int64_t)b : a >= b;
        else
                return false;
        if (thread->in->n_operands == 4 && ptx_token_has(opcode, ".or."))
                *to |= read_operand(thread, &operands[3]);
        else if (thread->in->n_operands == 4 && ptx_token_has(opcode, ".and."))
                *to &= read_operand(thread, &operands[3]);
        return thread->in->n_operands == 3 || ptx_token_has(opcode, ".or.") ||
               ptx_token_has(opcode, ".and.");
}

static bool compute(Thread *thread, uint64_t *to) {
        const PtxInstruction *in = thread->in;
        uint64_t a, b;

        if (in->n_operands < 2 || in->operands[0].kind != PTX_REGISTER)
                return false;
        if (ptx_opcode_is(in, "setp"))
                return in->n_operands >= 3 && compare(thread, to);
        a = read_operand(thread, &in->operands[1]);
        b = in->n_operands == 3 ? read_operand(thread, &in->operands[2]) : 0;
        if (in->n_operands == 2 &&
            (is_op(thread, "mov.u64") || is_op(thread, "mov.pred") || is_op(thread, "mov.b64") ||
             is_op(thread, "mov.s64") || is_op(thread, "cvta.global.u64")))
                *to = a;
        else if (in->n_operands == 2 && is_op(thread, "not.pred"))
                *to = !a;
        else if (in->n_operands == 3 && (is_op(thread, "add.s64") || is_op(thread, "add.u64")))
                *to = a + b;
        else if (in->n_operands == 3 && is_op(thread, "sub.s64"))
                *to = a - b;
        else if (in->n_operands == 3 && is_op(thread, "and.pred"))
                *to = a & b;
        else if (in->n_operands == 3 && is_op(thread, "or.pred"))
                *to = a | b;
        else
                return false;
        return true;
}

/* "ld.param.b64 %gpuq_fence_b0, [gpuq_fence+0]" */
static bool load_word(Thread *thread) {
        const PtxOperand *operands = thread->in->operands;

        if (!is_op(thread, "ld.param.b64") || thread->in->n_operands != 2 ||
            operands[1].n_elements != 1 || !ptx_token_is(operands[1].elements[0].text, FENCE_NAME))
                return false;
        thread->registers[operands[0].index] = fence_words[operands[1].elements[0].offset / 8];
        return true;
}

/* Nothing of the user's is there, so windows and variables have none of these addresses. */
static bool is_elsewhere(const Thread *thread) {
        const PtxInstruction *in = thread->in;

        if (ptx_opcode_is(in, "isspacep") && in->n_operands == 2 && is_of_fence(&in->operands[0]))
                thread->registers[in->operands[0].index] = 0;
        else if (is_op(thread, "setp.ne.or.u32") && in->n_operands == 4 &&
                 is_of_fence(&in->operands[0]))
                thread->registers[in->operands[0].index] = thread->registers[in->operands[3].index];
        else
                return is_op(thread, "call") && in->n_operands == 3 &&
                       ptx_token_is(in->operands[1].text, FENCE_NAME "_own");
        return true;
}

static bool is_variable(const PtxModule *module, const CheckAccess *access) {
        const PtxOperand *address = access->address;

        return address->kind == PTX_VARIABLE && address->offset >= 0 &&
               (uint64_t)address->offset + access->n_bytes <=
                       ptx_variable_size(&module->variables[address->index]);
}

static bool is_inside(uint64_t address) {
        return address - fence_words[0] < fence_words[1] ||
               address - fence_words[2] < fence_words[3];
}

/* Others end the thread before they run. */
static void check_access(Thread *thread) {
        static const char *const names[] = {"ld", "ldu", "st", "atom", "red", NULL};
        CheckAccess accesses[CHECK_ACCESSES_MAX];
        size_t n;

        if (!is_one_of(thread->in, names))
                return;
        must(check_accesses(thread->module, thread->function, thread->in, accesses, &n) == 0);
        for (size_t i = 0; i < n; i++)
                must(accesses[i].space == PTX_SHARED || is_of_fence(accesses[i].address) ||
                     is_variable(thread->module, &accesses[i]) ||
                     (thread->in->is_guarded && !thread->in->guard.negated &&
                      is_of_fence(&thread->in->guard) &&
                      is_inside(read_operand(thread, accesses[i].address))));
}

/* That may lead elsewhere, or write where registers may be kept. */
static bool keeps_registers(const PtxInstruction *in) {
        static const char *const others[] = {
                "bra",     "brx",      "call",       "ret",    "exit",  "trap",      "brkpt", "bar",
                "barrier", "atom",     "red",        "membar", "fence", "vote",      "shfl",  "cp",
                "wmma",    "mbarrier", "activemask", "match",  "redux", "nanosleep", NULL};

        if (ptx_opcode_is(in, "st"))
                return ptx_token_has(in->opcode, ".global");
        return in->n_operands > 0 && !is_one_of(in, others);
}

static void run_instruction(Thread *thread) {
        const PtxInstruction *in = thread->in;
        uint64_t to;

        if (in->is_guarded && !read_operand(thread, &in->guard)) {
                if (!keeps_registers(in) && !is_elsewhere(thread))
                        set_all(thread);
                return;
        }
        check_access(thread);
        if (load_word(thread) || is_elsewhere(thread))
                return;
        if (compute(thread, &to)) {
                thread->registers[in->operands[0].index] = to;
                return;
        }
        if (in->n_operands > 0)
                set_any(thread, &in->operands[0]);
        if (!keeps_registers(in))
                set_all(thread);
}

static bool has_label(const PtxFunction *function, size_t at) {
        for (size_t i = 0; i < function->n_labels; i++)
                if (!function->labels[i].is_table && function->labels[i].at == at)
                        return true;
        return false;
}

static void run_function(const PtxModule *module, const PtxFunction *function, uint64_t chance) {
        _cleanup_(freep) uint64_t *registers = calloc(function->n_registers + 1, sizeof(uint64_t));
        Thread thread = {module, function, NULL, registers, chance};

        must(registers != NULL);
        set_all(&thread);
        for (size_t i = 0; i < function->n_instructions; i++) {
                thread.in = &function->instructions[i];
                if (has_label(function, i))
                        set_all(&thread);
                run_instruction(&thread);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(fenced_finish) Fenced fenced = {};
        _cleanup_(freep) char *error = NULL;
        int r;

        r = fence_rewrite((const char *)data, n_data, &fenced, &error);
        must(r == 0 || r == FENCE_REWRITE_E_REFUSED);
        must(r == 0 ? fenced.text && !error : error && !strchr(error, '\n'));
        if (r)
                return 0;

        must(ptx_module_read(fenced.text, fenced.n_text, &module, &error) == 0);
        for (size_t i = 0; i < module->n_functions; i++)
                for (uint64_t k = 0; k < RUNS; k++)
                        run_function(module, &module->functions[i], k);
        return 0;
}

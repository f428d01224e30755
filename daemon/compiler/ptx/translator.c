/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/translator.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

/* ---- refusals --------------------------------------------------------------------- */

static void set_error(Translator *t, char *error) {
        t->error = error;
        t->r = error ? PTX_E_INVALID : -ENOMEM;
        ptx_clean(error);
}

static void refuse(Translator *t, const char *advice, const char *format, va_list arguments) {
        _cleanup_(freep) char *why = NULL;
        char *error;

        if (t->r)
                return;

        if (vasprintf(&why, format, arguments) < 0) {
                why = NULL;
                error = NULL;
        } else if (asprintf(&error, "line %u: the CPU driver cannot run %.*s%s%s%s", t->in->line,
                            (int)MIN(t->in->opcode.n, 100), t->in->opcode.s, *why ? ": " : "", why,
                            advice) < 0) {
                error = NULL;
        }
        set_error(t, error);
}

/* Whether GPUs have the instruction is not known here. */
void translator_refuse(Translator *t, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        refuse(t, "; a GPU may run it", format, arguments);
        va_end(arguments);
}

void translator_refuse_text(Translator *t, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        refuse(t, "", format, arguments);
        va_end(arguments);
}

void translator_fail(Translator *t, uint32_t line, const char *format, ...) {
        _cleanup_(freep) char *why = NULL;
        va_list arguments;
        char *error;
        int n;

        if (t->r)
                return;

        va_start(arguments, format);
        n = vasprintf(&why, format, arguments);
        va_end(arguments);
        if (n < 0 || asprintf(&error, "line %u: %s", line, why) < 0) {
                why = n < 0 ? NULL : why;
                error = NULL;
        }
        set_error(t, error);
}

/* ---- opcodes ------------------------------------------------------------------------- */

bool translator_take(Translator *t, const char *part) {
        for (size_t i = 1; i < t->n_parts; i++)
                if (!t->taken[i] && ptx_token_is(t->parts[i], part)) {
                        t->taken[i] = true;
                        return true;
                }
        return false;
}

const char *translator_take_one(Translator *t, const char *words) {
        static char word[24];

        while (*words) {
                size_t n = strcspn(words, " ");

                snprintf(word, sizeof(word), "%.*s", (int)n, words);
                if (translator_take(t, word))
                        return word;
                words += n;
                words += strspn(words, " ");
        }
        return NULL;
}

bool translator_has(const char *words, const char *word) {
        size_t n = strlen(word);

        for (const char *s = words; *s; s += strspn(s, " ")) {
                if (strcspn(s, " ") == n && memcmp(s, word, n) == 0)
                        return true;
                s += strcspn(s, " ");
        }
        return false;
}

PtxType translator_take_type(Translator *t) {
        for (size_t i = 1; i < t->n_parts; i++) {
                PtxType type = t->taken[i] ? PTX_NONE : ptx_type_find(t->parts[i]);

                if (type != PTX_NONE) {
                        t->taken[i] = true;
                        return type;
                }
        }
        return PTX_NONE;
}

PtxSpace translator_take_space(Translator *t) {
        if (translator_take(t, "global"))
                return PTX_GLOBAL;
        if (translator_take(t, "shared") || translator_take(t, "shared::cta"))
                return PTX_SHARED;
        if (translator_take(t, "shared::cluster"))
                return PTX_CLUSTER;
        if (translator_take(t, "local"))
                return PTX_LOCAL;
        if (translator_take(t, "const"))
                return PTX_CONST;
        if (translator_take(t, "param") || translator_take(t, "param::entry") ||
            translator_take(t, "param::func"))
                return PTX_PARAM;
        return PTX_GENERIC;
}

/* ---- operands ----------------------------------------------------------------------------- */

const PtxOperand *translator_operand(Translator *t, size_t i) {
        static const PtxOperand none = {.kind = PTX_SINK};

        if (i < t->in->n_operands)
                return &t->in->operands[i];
        translator_refuse(t, "it has too few operands");
        return &none;
}

/* "%r12" or "x", which no special register is called. Those that end with a number have longer names, or are %pm0. */
static bool is_undeclared(const PtxOperand *operand) {
        PtxToken text = operand->text;
        size_t n_letters, n_digits = 0;

        if (operand->kind != PTX_SPECIAL)
                return false;
        while (n_digits < text.n && isdigit((unsigned char)text.s[text.n - 1 - n_digits]))
                n_digits++;
        n_letters = text.n - n_digits;
        return *text.s != '%' || (n_digits > 0 && n_letters <= 4 && !ptx_token_starts(text, "%pm"));
}

static void refuse_undeclared(Translator *t, PtxToken text) {
        translator_refuse_text(t, "\"%.*s\" is not declared", (int)MIN(text.n, 80), text.s);
}

const PtxRegister *translator_register(Translator *t, const PtxOperand *operand) {
        if (operand->kind == PTX_REGISTER && !operand->part_bits && !operand->minus)
                return &t->function->registers[operand->index];
        if (is_undeclared(operand))
                refuse_undeclared(t, operand->text);
        translator_refuse(t, "\"%.*s\" is not a register", (int)MIN(operand->text.n, 80),
                          operand->text.s);
        return NULL;
}

bool translator_is_param(const Translator *t, const PtxOperand *operand) {
        return operand->kind == PTX_VARIABLE &&
               t->module->variables[operand->index].space == PTX_PARAM;
}

/* What special registers are, for 32-bit values unless they say otherwise. */
static const struct {
        const char *name;
        const char *value;
} specials[] = {
        {"%tid.x", "t->tid.x"},
        {"%tid.y", "t->tid.y"},
        {"%tid.z", "t->tid.z"},
        {"%ntid.x", "t->place->block_dim.x"},
        {"%ntid.y", "t->place->block_dim.y"},
        {"%ntid.z", "t->place->block_dim.z"},
        {"%ctaid.x", "t->place->block.x"},
        {"%ctaid.y", "t->place->block.y"},
        {"%ctaid.z", "t->place->block.z"},
        {"%nctaid.x", "t->place->grid_dim.x"},
        {"%nctaid.y", "t->place->grid_dim.y"},
        {"%nctaid.z", "t->place->grid_dim.z"},
        {"%laneid", "(t->linear % 32)"},
        {"%warpid", "(t->linear / 32)"},
        {"%nwarpid", "((ptx_n_threads(t) + 31) / 32)"},
        {"%smid", "t->place->sm"},
        {"%nsmid", "t->place->n_sms"},
        {"%gridid", "0"},
        {"%lanemask_eq", "(1u << t->linear % 32)"},
        {"%lanemask_lt", "((1u << t->linear % 32) - 1)"},
        {"%lanemask_le", "((2u << t->linear % 32) - 1)"},
        {"%lanemask_gt", "(~((2u << t->linear % 32) - 1))"},
        {"%lanemask_ge", "(~((1u << t->linear % 32) - 1))"},
        {"%clock", "ptx_clock(CLOCK_MONOTONIC)"},
        {"%clock_hi", "(ptx_clock(CLOCK_MONOTONIC) >> 32)"},
        {"%clock64", "ptx_clock(CLOCK_MONOTONIC)"},
        {"%globaltimer", "ptx_clock(CLOCK_REALTIME)"},
        {"%globaltimer_lo", "ptx_clock(CLOCK_REALTIME)"},
        {"%globaltimer_hi", "(ptx_clock(CLOCK_REALTIME) >> 32)"},
        {"%dynamic_smem_size", "t->place->shared_bytes"},
        {"%total_smem_size", "(t->place->shared_bytes + PTX_STATIC_SHARED)"},
        {"%reserved_smem_offset_begin", "PTX_RESERVED_AT"},
        {"%reserved_smem_offset_end", "(PTX_RESERVED_AT + PTX_RESERVED_BYTES)"},
        {"%reserved_smem_offset_cap", "PTX_RESERVED_BYTES"},
        {"%reserved_smem_offset_0", "PTX_RESERVED_AT"},
        {"%reserved_smem_offset_1", "PTX_RESERVED_AT"},
        {"%envreg1", "(uint32_t)((uint64_t)t->place->grid_words >> 32)"},
        {"%envreg2", "(uint32_t)(uint64_t)t->place->grid_words"},
        {"%cluster_nctarank", "ptx_cluster_n(t)"},
        {"%clusterid.x", "t->place->cluster.x"},
        {"%clusterid.y", "t->place->cluster.y"},
        {"%clusterid.z", "t->place->cluster.z"},
        {"%cluster_nctaid.x", "t->place->cluster_dim.x"},
        {"%cluster_nctaid.y", "t->place->cluster_dim.y"},
        {"%cluster_nctaid.z", "t->place->cluster_dim.z"},
        {"%cluster_ctaid.x", "ptx_cluster_ctaid(t).x"},
        {"%cluster_ctaid.y", "ptx_cluster_ctaid(t).y"},
        {"%cluster_ctaid.z", "ptx_cluster_ctaid(t).z"},
        {"%cluster_ctarank", "ptx_cluster_rank(t)"},
        {"%nclusterid.x", "(t->place->grid_dim.x / t->place->cluster_dim.x)"},
        {"%nclusterid.y", "(t->place->grid_dim.y / t->place->cluster_dim.y)"},
        {"%nclusterid.z", "(t->place->grid_dim.z / t->place->cluster_dim.z)"},
        {"%is_explicit_cluster", "(ptx_cluster_n(t) > 1)"},
};

static void print_special(Translator *t, const PtxOperand *operand) {
        PtxToken text = operand->text;

        for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
                if (ptx_token_is(text, specials[i].name)) {
                        t->uses_reserved |= strstr(specials[i].name, "reserved") != NULL;
                        fprintf(t->out, "(%s)", specials[i].value);
                        return;
                }
        if (ptx_token_is(text, "%tid.w") || ptx_token_is(text, "%ntid.w"))
                fputs("0", t->out);
        else if (is_undeclared(operand))
                refuse_undeclared(t, text);
        else
                translator_refuse(t, "it does not have \"%.*s\"", (int)MIN(text.n, 80), text.s);
}

/* A number in the bits of its type. */
static void print_number(Translator *t, const PtxOperand *operand, PtxType type) {
        uint64_t bits = operand->bits;
        double wide;
        float narrow;

        if (type == PTX_PRED) {
                fputs((bits != 0) != operand->negated ? "1" : "0", t->out);
                return;
        }
        memcpy(&wide, &bits, sizeof(wide));
        narrow = (float)wide;
        if (operand->kind == PTX_FLOAT64 && type == PTX_F32) {
                bits = 0;
                memcpy(&bits, &narrow, sizeof(narrow));
        } else if (operand->kind == PTX_FLOAT32 && ptx_type_size(type) != 4) {
                translator_refuse(t, "a number has another type than the instruction");
        } else if (operand->kind == PTX_FLOAT64 && ptx_type_size(type) != 8) {
                translator_refuse(t, "a number has another type than the instruction");
        } else if (operand->kind == PTX_INTEGER && (type == PTX_F32 || type == PTX_F64) && bits) {
                translator_refuse(t, "an integer is given for a floating-point number");
        }
        fprintf(t->out, "0x%llxull", (unsigned long long)bits);
}

static void print_variable(Translator *t, const PtxOperand *operand, PtxType type) {
        const PtxVariable *variable = &t->module->variables[operand->index];
        bool is_half = variable->space == PTX_LOCAL && ptx_type_size(type) < 8;

        if (variable->space == PTX_SHARED)
                fprintf(t->out, "0x%llxull",
                        (unsigned long long)(t->shared[operand->index] +
                                             (uint64_t)operand->offset));
        else
                fprintf(t->out, "(%s((uint64_t)v%u) + 0x%llxull)", is_half ? "ptx_told" : "",
                        operand->index, (unsigned long long)operand->offset);
}

static void print_register(Translator *t, const PtxOperand *operand, PtxType type) {
        const PtxRegister *reg = &t->function->registers[operand->index];

        if ((reg->type == PTX_PRED) != (type == PTX_PRED) ||
            ptx_type_size(reg->type) < ptx_type_size(type) ||
            (ptx_type_size(reg->type) > ptx_type_size(type) && !t->takes_wider))
                translator_refuse(t, "register %.*s is .%s, which does not fit .%s",
                                  (int)MIN(reg->name.n, 80), reg->name.s, ptx_type_name(reg->type),
                                  ptx_type_name(type));
        if (operand->part_bits || operand->minus)
                translator_refuse(t, "it takes neither a part of a register nor \"-\"");
        if (operand->offset || (operand->negated && type != PTX_PRED))
                translator_refuse(t, "register %.*s is neither an address nor a predicate",
                                  (int)MIN(reg->name.n, 80), reg->name.s);
        fprintf(t->out, "%sr%u", operand->negated ? "!" : "", operand->index);
}

static void print_function_address(Translator *t, uint32_t index) {
        const PtxFunction *function = &t->module->functions[index];

        if (!function->is_defined)
                translator_refuse_text(t, "there is no function \"%.*s\"",
                                       (int)MIN(function->name.n, 200), function->name.s);
        fprintf(t->out, "(uint64_t)f%u", index);
}

void translator_value(Translator *t, const PtxOperand *operand, PtxType type) {
        switch (operand->kind) {
                case PTX_REGISTER:
                        print_register(t, operand, type);
                        return;
                case PTX_INTEGER:
                case PTX_FLOAT32:
                case PTX_FLOAT64:
                        print_number(t, operand, type);
                        return;
                case PTX_VARIABLE:
                        print_variable(t, operand, type);
                        return;
                case PTX_FUNCTION:
                        print_function_address(t, operand->index);
                        return;
                case PTX_SPECIAL:
                        print_special(t, operand);
                        return;
                default:
                        translator_refuse(t, "an operand is not understood");
        }
}

void translator_begin(Translator *t, const PtxOperand *operand, unsigned size) {
        const PtxRegister *reg;

        if (operand->kind == PTX_SINK) {
                fputs("(void)", t->out);
                return;
        }
        reg = translator_register(t, operand);
        if (!reg)
                return;
        if (size && ptx_type_size(reg->type) != size)
                translator_refuse(t, "register %.*s has %u bits, but the result has %u",
                                  (int)MIN(reg->name.n, 80), reg->name.s,
                                  8 * ptx_type_size(reg->type), 8 * size);
        fprintf(t->out, "r%u = ", operand->index);
}

/* "r1 + 8" in the bits of the register, or in 32, which an address of shared memory has in either register. */
static void print_base(Translator *t, const PtxOperand *base, PtxSpace space) {
        const PtxRegister *reg = translator_register(t, base);
        unsigned size = reg ? ptx_type_size(reg->type) : 8;

        if ((size == 4 || size == 8) && (space == PTX_SHARED || space == PTX_CLUSTER))
                fprintf(t->out, "(uint32_t)(r%u + 0x%xu)", base->index, (uint32_t)base->offset);
        else if (size == 8)
                fprintf(t->out, "(r%u + 0x%llxull)", base->index, (unsigned long long)base->offset);
        else if (size == 4 && space == PTX_LOCAL)
                fprintf(t->out, "ptx_near((uint32_t)(r%u + 0x%xu), (uint64_t)&frame)", base->index,
                        (uint32_t)base->offset);
        else
                translator_refuse(t, "an address in %u bits", 8 * size);
}

void translator_address(Translator *t, const PtxOperand *operand, PtxSpace space) {
        const PtxOperand *base = operand->n_elements ? &operand->elements[0] : operand;

        if (operand->kind != PTX_ADDRESS || operand->n_elements != 1) {
                translator_refuse(t, "an address is expected");
                return;
        }
        if (base->kind == PTX_VARIABLE && t->module->variables[base->index].space == PTX_SHARED &&
            space == PTX_GENERIC)
                space = PTX_SHARED;
        if (space == PTX_SHARED)
                fputs("((uint64_t)t->window + ", t->out);
        if (space == PTX_CLUSTER)
                fputs("ptx_cluster_at(t, ", t->out);
        if (base->kind == PTX_VARIABLE || base->kind == PTX_INTEGER)
                translator_value(t, base, PTX_U64);
        else
                print_base(t, base, space);
        if (space == PTX_SHARED || space == PTX_CLUSTER)
                fputs(")", t->out);
}

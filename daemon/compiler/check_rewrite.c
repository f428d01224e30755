/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check rewrite
 *
 * Calls are inserted before the instructions that access memory. The functions that they call are
 * declared before all other declarations, and defined behind them, where the module's own variables
 * are known.
 *
 * Where a block's shared memory begins and ends is known in a kernel, from the variables that it and
 * the functions it calls name. A function that was not inlined may be called by several kernels, so
 * there it is all that the block has, and a little more.
 */
#include "compiler/check_rewrite.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/check.h"
#include "compiler/check_access.h"
#include "compiler/check_function.h"
#include "compiler/ptx_edit.h"
#include "util/grow.h"
#include "util/memory_stream.h"

#define SITES_MAX     (1u << 17)
#define SITE_TEXT_MAX 120  /* bytes of an instruction */
#define ROUNDED_BYTES 1024 /* that a GPU may count to shared memory beside the block's */

/* What a function names. */
typedef struct Names {
        uint32_t *shared; /* variables */
        size_t n_shared;
        uint32_t *called; /* functions */
        size_t n_called;
        bool calls_any; /* by pointer */
} Names;

typedef struct Rewriter {
        const PtxModule *module; /* of the edits */
        PtxEdits edits;
        const char *source_name;
        FILE *out; /* of the edit */
        FILE *sites;
        size_t n_sites;
        Names *names; /* of each function */
} Rewriter;

/* ---- what functions name ---------------------------------------------------------------- */

static bool list_add(uint32_t **list, size_t *n, uint32_t index) {
        for (size_t i = *n; i-- > 0 && i + 64 > *n;)
                if ((*list)[i] == index)
                        return true;
        if (grow(list, *n, sizeof(**list)) < 0)
                return false;
        (*list)[(*n)++] = index;
        return true;
}

static void note_operand(Rewriter *rewriter, Names *names, const PtxOperand *operand) {
        bool ok = true;

        if (operand->kind == PTX_VARIABLE &&
            rewriter->module->variables[operand->index].space == PTX_SHARED)
                ok = list_add(&names->shared, &names->n_shared, operand->index);
        if (operand->kind == PTX_FUNCTION)
                ok = list_add(&names->called, &names->n_called, operand->index);
        if (!ok)
                ptx_edits_fail_memory(&rewriter->edits);
        for (size_t i = 0; i < operand->n_elements; i++)
                note_operand(rewriter, names, &operand->elements[i]);
}

static bool is_call(const PtxInstruction *in) {
        return ptx_token_is(in->opcode, "call") || ptx_token_is(in->opcode, "call.uni");
}

static bool calls_by_pointer(const PtxInstruction *in) {
        if (!is_call(in))
                return false;
        for (size_t i = 0; i < in->n_operands; i++)
                if (in->operands[i].kind == PTX_FUNCTION)
                        return false;
        return true;
}

static void note_names(Rewriter *rewriter) {
        for (size_t i = 0; i < rewriter->module->n_functions; i++) {
                const PtxFunction *function = &rewriter->module->functions[i];
                Names *names = &rewriter->names[i];

                for (size_t k = 0; k < function->n_instructions; k++) {
                        const PtxInstruction *in = &function->instructions[k];

                        names->calls_any |= calls_by_pointer(in);
                        for (size_t n = 0; n < in->n_operands; n++)
                                note_operand(rewriter, names, &in->operands[n]);
                }
        }
}

/* ---- where shared memory ends ----------------------------------------------------------- */

typedef struct Reach {
        bool *functions, *variables;
        uint32_t *left; /* functions to look at */
        size_t n_left;
        bool any; /* not known: by pointer */
} Reach;

static void reach_finish(Reach *reach) {
        free(reach->functions);
        free(reach->variables);
        free(reach->left);
}

static void reach_function(Reach *reach, uint32_t function) {
        if (reach->functions[function])
                return;
        reach->functions[function] = true;
        reach->left[reach->n_left++] = function;
}

static int reach_from(const Rewriter *rewriter, uint32_t entry, Reach *reach) {
        const PtxModule *module = rewriter->module;

        reach->functions = calloc(module->n_functions + 1, sizeof(*reach->functions));
        reach->variables = calloc(module->n_variables + 1, sizeof(*reach->variables));
        reach->left = calloc(module->n_functions + 1, sizeof(*reach->left));
        if (!reach->functions || !reach->variables || !reach->left)
                return -ENOMEM;

        reach_function(reach, entry);
        while (reach->n_left > 0) {
                const Names *names = &rewriter->names[reach->left[--reach->n_left]];

                for (size_t i = 0; i < names->n_shared; i++)
                        reach->variables[names->shared[i]] = true;
                for (size_t i = 0; i < names->n_called; i++)
                        reach_function(reach, names->called[i]);
                reach->any |= names->calls_any;
        }
        return 0;
}

/* Whether the kernel can name it before its first instruction. */
static bool is_known(const PtxFunction *entry, uint32_t index, const PtxVariable *variable) {
        return !variable->in_function ||
               (variable->function == index && variable->name.s < entry->instructions[0].opcode.s);
}

static bool reach_is_known(const Rewriter *rewriter, uint32_t index, const Reach *reach) {
        const PtxFunction *entry = &rewriter->module->functions[index];

        if (reach->any)
                return false;
        for (size_t i = 0; i < rewriter->module->n_variables; i++)
                if (reach->variables[i] && !is_known(entry, index, &rewriter->module->variables[i]))
                        return false;
        return true;
}

static void write_rounded_bounds(Rewriter *rewriter) {
        fprintf(rewriter->out,
                "\tmov.u32 %%gpuq_check_low, 0;\n"
                "\tmov.u32 %%gpuq_check_high, %%total_smem_size;\n"
                "\tadd.u32 %%gpuq_check_high, %%gpuq_check_high, %d;\n",
                ROUNDED_BYTES);
}

/* Dynamic shared memory has no size in the text, and the launch's here. */
static void write_bound(Rewriter *rewriter, const PtxVariable *variable) {
        fprintf(rewriter->out,
                "\tmov.u32 %%gpuq_check_n, %.*s;\n"
                "\tmin.u32 %%gpuq_check_low, %%gpuq_check_low, %%gpuq_check_n;\n",
                (int)variable->name.n, variable->name.s);
        if (variable->n_elements == 0)
                fputs("\tmov.u32 %gpuq_check_x, %dynamic_smem_size;\n", rewriter->out);
        else
                fprintf(rewriter->out, "\tmov.u32 %%gpuq_check_x, %zu;\n",
                        ptx_variable_size(variable));
        fputs("\tadd.u32 %gpuq_check_n, %gpuq_check_n, %gpuq_check_x;\n"
              "\tmax.u32 %gpuq_check_high, %gpuq_check_high, %gpuq_check_n;\n",
              rewriter->out);
}

static void write_entry_bounds(Rewriter *rewriter, uint32_t index) {
        _cleanup_(reach_finish) Reach reach = {};

        if (reach_from(rewriter, index, &reach) < 0) {
                ptx_edits_fail_memory(&rewriter->edits);
                return;
        }
        if (!reach_is_known(rewriter, index, &reach)) {
                write_rounded_bounds(rewriter);
                return;
        }

        fputs("\tmov.u32 %gpuq_check_low, 0xffffffff;\n\tmov.u32 %gpuq_check_high, 0;\n",
              rewriter->out);
        for (size_t i = 0; i < rewriter->module->n_variables; i++)
                if (reach.variables[i])
                        write_bound(rewriter, &rewriter->module->variables[i]);
}

/* ---- a site -------------------------------------------------------------------------------- */

static const PtxFile *find_file(const PtxModule *module, uint32_t number) {
        for (size_t i = 0; i < module->n_files; i++)
                if (module->files[i].number == number)
                        return &module->files[i];
        return NULL;
}

static void write_clean(FILE *out, const char *s, size_t n) {
        bool was_blank = false;

        for (size_t i = 0; i < n; i++) {
                bool is_blank = !isgraph((unsigned char)s[i]);

                if (!is_blank || !was_blank)
                        fputc(is_blank ? ' ' : s[i], out);
                was_blank = is_blank;
        }
}

/* Compilers put their folder before the name that the user gave. */
static void write_file_name(const Rewriter *rewriter, PtxToken name) {
        if (ptx_token_starts(name, "\"")) {
                name.s++;
                name.n--;
        }
        if (ptx_token_ends(name, "\""))
                name.n--;
        if (ptx_token_ends(name, rewriter->source_name))
                name = (PtxToken){rewriter->source_name, strlen(rewriter->source_name)};
        write_clean(rewriter->sites, name.s, name.n);
}

static void write_place(const Rewriter *rewriter, const PtxInstruction *in) {
        const PtxFile *file = find_file(rewriter->module, in->file);

        if (!file || in->file_line == 0) {
                fputc('-', rewriter->sites);
                return;
        }
        write_file_name(rewriter, file->name);
        fprintf(rewriter->sites, ":%u", in->file_line);
}

/* Return: its number. */
static size_t write_site(Rewriter *rewriter, const PtxInstruction *in, const CheckAccess *access) {
        size_t n = MIN((size_t)(in->end - 1 - in->opcode.s), SITE_TEXT_MAX);

        fprintf(rewriter->sites, "%s\t", check_kind_name(access->kind));
        write_place(rewriter, in);
        fputc('\t', rewriter->sites);
        write_clean(rewriter->sites, in->opcode.s, n);
        fputc('\n', rewriter->sites);
        return rewriter->n_sites++;
}

/* ---- a call -------------------------------------------------------------------------------- */

static PtxType register_type(const PtxFunction *function, const PtxOperand *operand) {
        return operand->kind == PTX_REGISTER ? function->registers[operand->index].type : PTX_NONE;
}

/* "%rd4", as it stands in the text. */
static void write_name(Rewriter *rewriter, const PtxOperand *operand) {
        fprintf(rewriter->out, "%.*s", (int)operand->text.n, operand->text.s);
}

static void write_wide_address(Rewriter *rewriter, const PtxFunction *function,
                               const PtxInstruction *in, const PtxOperand *address) {
        if (address->kind == PTX_REGISTER && ptx_type_size(register_type(function, address)) == 8) {
                fputs("\tadd.s64 %gpuq_check_a, ", rewriter->out);
                write_name(rewriter, address);
                fprintf(rewriter->out, ", %lld;\n", (long long)address->offset);
        } else if (address->kind == PTX_VARIABLE) {
                fputs("\tmov.u64 %gpuq_check_a, ", rewriter->out);
                write_name(rewriter, address);
                fprintf(rewriter->out,
                        ";\n\tcvta.global.u64 %%gpuq_check_a, %%gpuq_check_a;\n"
                        "\tadd.s64 %%gpuq_check_a, %%gpuq_check_a, %lld;\n",
                        (long long)address->offset);
        } else if (address->kind == PTX_INTEGER) {
                fprintf(rewriter->out, "\tmov.u64 %%gpuq_check_a, 0x%llx;\n",
                        (unsigned long long)address->bits);
        } else {
                ptx_edits_refuse(&rewriter->edits, "line %u: the address of %.*s is not understood",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
        }
}

static void write_short_address(Rewriter *rewriter, const PtxFunction *function,
                                const PtxInstruction *in, const PtxOperand *address) {
        unsigned size = ptx_type_size(register_type(function, address));

        if (address->kind == PTX_REGISTER && (size == 8 || size == 4)) {
                fprintf(rewriter->out, "\t%s %%gpuq_check_x, ",
                        size == 8 ? "cvt.u32.u64" : "mov.b32");
                write_name(rewriter, address);
                fputs(";\n", rewriter->out);
        } else if (address->kind == PTX_VARIABLE) {
                fputs("\tmov.u32 %gpuq_check_x, ", rewriter->out);
                write_name(rewriter, address);
                fputs(";\n", rewriter->out);
        } else if (address->kind == PTX_INTEGER) {
                fprintf(rewriter->out, "\tmov.u32 %%gpuq_check_x, 0x%x;\n",
                        (uint32_t)address->bits);
        } else {
                ptx_edits_refuse(&rewriter->edits, "line %u: the address of %.*s is not understood",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
        }
        fprintf(rewriter->out, "\tadd.s32 %%gpuq_check_x, %%gpuq_check_x, %d;\n",
                (int)(int32_t)(uint32_t)(uint64_t)address->offset);
}

/* (lines - 1) * stride elements, and one line */
static void write_matrix_length(Rewriter *rewriter, const CheckMatrix *matrix) {
        if (!matrix->stride) {
                fprintf(rewriter->out, "\tmov.u32 %%gpuq_check_n, %u;\n",
                        matrix->n_lines * matrix->n_line_bytes);
                return;
        }
        fputs("\tmov.b32 %gpuq_check_n, ", rewriter->out);
        if (matrix->stride->kind == PTX_INTEGER)
                fprintf(rewriter->out, "%u", (uint32_t)matrix->stride->bits);
        else
                write_name(rewriter, matrix->stride);
        fprintf(rewriter->out,
                ";\n\tmul.lo.u32 %%gpuq_check_n, %%gpuq_check_n, %u;\n"
                "\tadd.u32 %%gpuq_check_n, %%gpuq_check_n, %u;\n",
                (matrix->n_lines - 1) * matrix->element, matrix->n_line_bytes);
}

static void write_length(Rewriter *rewriter, const CheckAccess *access) {
        FILE *out = rewriter->out;

        if (access->matrix.n_lines > 0) {
                write_matrix_length(rewriter, &access->matrix);
        } else if (access->length) {
                fputs("\tmov.b32 %gpuq_check_n, ", out);
                write_name(rewriter, access->length);
                fputs(";\n", out);
        } else {
                fprintf(out, "\tmov.u32 %%gpuq_check_n, %u;\n", access->n_bytes);
        }
        if (access->unless) {
                fputs("\tselp.b32 %gpuq_check_n, 0, %gpuq_check_n, ", out);
                write_name(rewriter, access->unless);
                fputs(";\n", out);
        }
        if (access->n_lanes < 32)
                fprintf(out,
                        "\tmov.u32 %%gpuq_check_w, %%laneid;\n"
                        "\tsetp.lt.u32 %%gpuq_check_p, %%gpuq_check_w, %u;\n"
                        "\tselp.b32 %%gpuq_check_n, %%gpuq_check_n, 0, %%gpuq_check_p;\n",
                        access->n_lanes);
}

static void write_guard(Rewriter *rewriter, const PtxInstruction *in) {
        fputc('\t', rewriter->out);
        if (!in->is_guarded)
                return;
        fputs(in->guard.negated ? "@!" : "@", rewriter->out);
        write_name(rewriter, &in->guard);
        fputc(' ', rewriter->out);
}

static void write_call(Rewriter *rewriter, const PtxFunction *function, const PtxInstruction *in,
                       const CheckAccess *access) {
        size_t site = write_site(rewriter, in, access);

        if (access->space == PTX_SHARED)
                write_short_address(rewriter, function, in, access->address);
        else
                write_wide_address(rewriter, function, in, access->address);
        write_length(rewriter, access);
        fprintf(rewriter->out, "\tmov.u32 %%gpuq_check_w, %u;\n\tmov.u32 %%gpuq_check_s, %zu;\n",
                access->effect, site);
        write_guard(rewriter, in);
        if (access->space == PTX_SHARED)
                fputs("call gpuq_check_shared, (%gpuq_check_x, %gpuq_check_n, %gpuq_check_s, "
                      "%gpuq_check_low, %gpuq_check_high);\n",
                      rewriter->out);
        else if (access->space == PTX_GLOBAL)
                fputs("call gpuq_check_global, (%gpuq_check_a, %gpuq_check_n, %gpuq_check_w, "
                      "%gpuq_check_s);\n",
                      rewriter->out);
        else
                fputs("call gpuq_check_generic, (%gpuq_check_a, %gpuq_check_n, %gpuq_check_w, "
                      "%gpuq_check_s, %gpuq_check_low, %gpuq_check_high);\n",
                      rewriter->out);
}

/* ---- functions ------------------------------------------------------------------------------ */

static void write_instruction(Rewriter *rewriter, const PtxFunction *function,
                              const PtxInstruction *in) {
        CheckAccess accesses[CHECK_ACCESSES_MAX];
        size_t n;

        if (check_accesses(rewriter->module, function, in, accesses, &n)) {
                ptx_edits_refuse(&rewriter->edits, "line %u: what %.*s accesses cannot be checked",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
                return;
        }
        if (n > 0 && rewriter->n_sites + n > SITES_MAX)
                ptx_edits_refuse(&rewriter->edits,
                                 "the module has too many loads and stores to be checked");
        if (n == 0 || rewriter->edits.r)
                return;

        ptx_edit(&rewriter->edits, in->begin, 0);
        fputc('\n', rewriter->out);
        for (size_t i = 0; i < n; i++)
                write_call(rewriter, function, in, &accesses[i]);
        fputc('\t', rewriter->out);
}

static void write_function(Rewriter *rewriter, uint32_t index) {
        const PtxFunction *function = &rewriter->module->functions[index];

        if (function->n_instructions == 0)
                return;
        ptx_edit(&rewriter->edits, function->body, 0);
        fputs("\n\t.reg .pred %gpuq_check_p;\n"
              "\t.reg .b64 %gpuq_check_a;\n"
              "\t.reg .b32 %gpuq_check_n, %gpuq_check_w, %gpuq_check_s, %gpuq_check_x, "
              "%gpuq_check_low, %gpuq_check_high;\n",
              rewriter->out);
        ptx_edit(&rewriter->edits, function->instructions[0].begin, 0);
        fputc('\n', rewriter->out);
        if (function->is_entry)
                write_entry_bounds(rewriter, index);
        else
                write_rounded_bounds(rewriter);
        fputc('\t', rewriter->out);
        for (size_t i = 0; i < function->n_instructions && !rewriter->edits.r; i++)
                write_instruction(rewriter, function, &function->instructions[i]);
}

/* ---- the module ------------------------------------------------------------------------------ */

static void check_module(Rewriter *rewriter) {
        const PtxModule *module = rewriter->module;

        for (size_t i = 0; i < module->n_functions; i++)
                if (ptx_token_is(module->functions[i].name, "malloc"))
                        ptx_edits_refuse(&rewriter->edits,
                                         "a kernel calls malloc(), and accesses of such memory "
                                         "cannot be checked");
        ptx_edits_check_variables(&rewriter->edits);
}

static void rewrite(Rewriter *rewriter, FILE *out) {
        PtxToken text = rewriter->edits.text;

        check_module(rewriter);
        note_names(rewriter);
        check_functions_declare(ptx_edit(&rewriter->edits, ptx_first_declaration(text), 0));
        for (uint32_t i = 0; i < rewriter->module->n_functions && !rewriter->edits.r; i++)
                if (rewriter->module->functions[i].is_defined)
                        write_function(rewriter, i);
        check_functions_define(ptx_edit(&rewriter->edits, text.s + text.n, 0), rewriter->module,
                               text);
        ptx_edits_write(&rewriter->edits, text, out);
}

static void rewriter_finish(Rewriter *rewriter) {
        for (size_t i = 0; rewriter->names && i < rewriter->module->n_functions; i++) {
                free(rewriter->names[i].shared);
                free(rewriter->names[i].called);
        }
        free(rewriter->names);
        ptx_edits_finish(&rewriter->edits);
}

static void rewrite_into(Rewriter *rewriter, Checked *checked) {
        FILE *out = memory_stream_open(&checked->text, &checked->n_text);
        size_t n_sites = 0;

        rewriter->out = rewriter->edits.words;
        rewriter->sites = memory_stream_open(&checked->sites, &n_sites);
        rewriter->names = calloc(rewriter->module->n_functions + 1, sizeof(*rewriter->names));
        if (out && rewriter->sites && rewriter->names)
                rewrite(rewriter, out);
        else
                ptx_edits_fail_memory(&rewriter->edits);
        if (out && memory_stream_close(out) < 0)
                ptx_edits_fail_memory(&rewriter->edits);
        if (rewriter->sites && memory_stream_close(rewriter->sites) < 0)
                ptx_edits_fail_memory(&rewriter->edits);
}

_Static_assert((int)CHECK_REWRITE_E_REFUSED == (int)PTX_EDIT_E_REFUSED,
               "one is returned as the other");

void checked_finish(Checked *checked) {
        free(checked->text);
        free(checked->sites);
        *checked = (Checked){};
}

int check_rewrite(const char *text, size_t n_text, const char *source_name, Checked *ret_checked,
                  char **ret_error) {
        _cleanup_(rewriter_finish) Rewriter rewriter = {.source_name = source_name};
        Checked checked = {};

        ptx_edits_init(&rewriter.edits, (PtxToken){text, n_text}, "checked", CHECK_NAME);
        rewriter.module = rewriter.edits.module;
        if (!rewriter.edits.r)
                rewrite_into(&rewriter, &checked);
        if (rewriter.edits.r) {
                checked_finish(&checked);
                *ret_error = rewriter.edits.error;
                return rewriter.edits.r;
        }
        *ret_checked = checked;
        return 0;
}

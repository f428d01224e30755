/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batch
 *
 * A twin is a copy of its kernel's text. Registers with the addresses of the parameters in the
 * table replace the parameters' names. Other registers, with the values for a grid of one layer,
 * replace %ctaid.z and %nctaid.z. The assembler folds all of it into the offsets of its loads.
 */

#include "compiler/batch_rewrite.h"

#include <stdio.h>
#include <string.h>

#include "compiler/batch.h"
#include "compiler/batch_module.h"

#define OWN_WORD "gpuq_batch" /* in every name that is added: a text that has it gets no twins */
#define TEXT_MAX (2u << 20)   /* compiling a larger module twice would take too long */

static void write_head(FILE *f, const BatchFunction *kernel) {
        fprintf(f,
                "\n\n.visible .entry %.*s" BATCH_SUFFIX "(\n"
                "\t.param .align 16 .b8 %.*s" BATCH_SUFFIX "_table[%u]\n)%.*s{\n",
                (int)kernel->name.n, kernel->name.s, (int)kernel->name.n, kernel->name.s,
                BATCH_TABLE_BYTES, (int)kernel->directives.n, kernel->directives.s);
}

static void write_registers(FILE *f, const BatchFunction *kernel) {
        fprintf(f,
                "\t.reg .b32 %%gpuq_batch_ctaid_z, %%gpuq_batch_nctaid_z;\n"
                "\t.reg .b64 %%gpuq_batch_row, %%gpuq_batch_table, %%gpuq_batch_param<%zu>;\n"
                "\tmov.u32 %%gpuq_batch_ctaid_z, %%ctaid.z;\n"
                "\tmul.wide.u32 %%gpuq_batch_row, %%gpuq_batch_ctaid_z, %zu;\n"
                "\tmov.b64 %%gpuq_batch_table, %.*s" BATCH_SUFFIX "_table;\n"
                "\tadd.s64 %%gpuq_batch_row, %%gpuq_batch_table, %%gpuq_batch_row;\n"
                "\tmov.u32 %%gpuq_batch_ctaid_z, 0;\n"
                "\tmov.u32 %%gpuq_batch_nctaid_z, 1;\n",
                kernel->n_parameters, batch_pitch(kernel->n_bytes), (int)kernel->name.n,
                kernel->name.s);
        for (size_t i = 0; i < kernel->n_parameters; i++)
                fprintf(f, "\tadd.s64 %%gpuq_batch_param%zu, %%gpuq_batch_row, %zu;\n", i,
                        kernel->parameters[i].offset);
}

static void write_token(FILE *f, const BatchFunction *kernel, PtxToken token) {
        const BatchParameter *parameter = NULL;

        if (ptx_token_is_name(token))
                parameter = batch_function_parameter(kernel, token);
        if (parameter)
                fprintf(f, "%%gpuq_batch_param%zu", (size_t)(parameter - kernel->parameters));
        else if (ptx_token_is(token, "%ctaid.z"))
                fputs("%gpuq_batch_ctaid_z", f);
        else if (ptx_token_is(token, "%nctaid.z"))
                fputs("%gpuq_batch_nctaid_z", f);
        else
                fwrite(token.s, 1, token.n, f);
}

/* Behind its opening brace. */
static void write_body(FILE *f, const BatchFunction *kernel) {
        const char *at = kernel->body.s + 1, *end = kernel->body.s + kernel->body.n;
        PtxTokens tokens = {at, end};
        PtxToken token;

        while ((token = ptx_tokens_next(&tokens)).n > 0) {
                fwrite(at, 1, token.s - at, f);
                write_token(f, kernel, token);
                at = tokens.at;
        }
        fputc('\n', f);
}

/* Each twin follows its kernel, where all names that it uses are known. Return: how many. */
static int write_module(FILE *f, const BatchModule *module, const char *text, size_t n_text) {
        const char *at = text, *end = text + n_text;
        int n_twins = 0;

        for (size_t i = 0; i < module->n_functions; i++) {
                const BatchFunction *kernel = &module->functions[i];
                const char *behind = kernel->body.s + kernel->body.n;

                if (!kernel->is_entry || kernel->obstacle)
                        continue;
                fwrite(at, 1, behind - at, f);
                write_head(f, kernel);
                write_registers(f, kernel);
                write_body(f, kernel);
                at = behind;
                n_twins++;
        }
        fwrite(at, 1, end - at, f);
        return n_twins;
}

int batch_rewrite(const char *text, size_t n_text, char **ret_text, size_t *ret_n_text) {
        _cleanup_(batch_module_freep) BatchModule *module = NULL;
        _cleanup_(freep) char *written = NULL;
        size_t n_written;
        FILE *f;
        int r;

        if (n_text > TEXT_MAX || memmem(text, n_text, OWN_WORD, strlen(OWN_WORD)))
                return 0;

        r = batch_module_new(text, n_text, &module);
        if (r < 0)
                return r;

        f = open_memstream(&written, &n_written);
        if (!f)
                return -ENOMEM;
        r = write_module(f, module, text, n_text);
        if (fclose(f) != 0)
                return -ENOMEM;

        if (r > 0) {
                *ret_text = TAKE_PTR(written);
                *ret_n_text = n_written;
        }
        return r;
}

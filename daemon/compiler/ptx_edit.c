/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx_edit.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/ptx/print.h"
#include "util/grow.h"
#include "util/memory_stream.h"

#define TEXT_MAX      (16u << 20)
#define VARIABLES_MAX 4096u /* of global and constant memory: each is compared with accesses */

struct PtxEdit {
        const char *at;
        size_t n_removed;
        size_t begin, end; /* of its words in the stream */
};

static void end_last(PtxEdits *edits) {
        if (edits->n_edits > 0)
                edits->edits[edits->n_edits - 1].end = (size_t)ftello(edits->words);
}

FILE *ptx_edit(PtxEdits *edits, const char *at, size_t n_removed) {
        end_last(edits);
        if (grow(&edits->edits, edits->n_edits, sizeof(*edits->edits)) < 0)
                ptx_edits_fail_memory(edits);
        else
                edits->edits[edits->n_edits++] = (PtxEdit){
                        .at = at,
                        .n_removed = n_removed,
                        .begin = (size_t)ftello(edits->words),
                };
        return edits->words;
}

void ptx_edits_refuse(PtxEdits *edits, const char *format, ...) {
        va_list arguments;

        if (edits->r)
                return;

        edits->r = PTX_EDIT_E_REFUSED;
        va_start(arguments, format);
        if (vasprintf(&edits->error, format, arguments) < 0) {
                edits->error = NULL;
                edits->r = -ENOMEM;
        }
        va_end(arguments);
        ptx_clean(edits->error);
}

void ptx_edits_check_variables(PtxEdits *edits) {
        size_t n = 0;

        for (size_t i = 0; i < edits->module->n_variables; i++) {
                const PtxVariable *variable = &edits->module->variables[i];

                if (variable->space != PTX_GLOBAL && variable->space != PTX_CONST)
                        continue;
                if (variable->in_function)
                        ptx_edits_refuse(edits,
                                         "variable %.*s is declared in a function, so accesses of "
                                         "it cannot be %s",
                                         (int)MIN(variable->name.n, 200), variable->name.s,
                                         edits->how);
                n++;
        }
        if (n > VARIABLES_MAX)
                ptx_edits_refuse(edits, "the module has %zu variables; a %s one may have %u", n,
                                 edits->how, VARIABLES_MAX);
}

void ptx_edits_fail_memory(PtxEdits *edits) {
        edits->r = edits->r ?: -ENOMEM;
}

/* They have no order if they are at one place, but for that in which they were made. */
static int compare_edits(const void *a, const void *b) {
        const PtxEdit *x = a, *y = b;

        if (x->at != y->at)
                return x->at < y->at ? -1 : 1;
        return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* What is at the end of a part is before what follows it. */
static bool is_in(const PtxEdits *edits, const PtxEdit *edit, PtxToken part) {
        const char *end = part.s + part.n;

        return edit->at >= part.s &&
               (edit->at < end || (edit->at == end && end == edits->text.s + edits->text.n));
}

/* Return: false: edits overlap, as where two functions have one name. */
static bool write_part(const PtxEdits *edits, PtxToken part, FILE *out) {
        const char *at = part.s, *end = part.s + part.n;

        for (size_t i = 0; i < edits->n_edits; i++) {
                const PtxEdit *edit = &edits->edits[i];

                if (!is_in(edits, edit, part))
                        continue;
                if (edit->at < at)
                        return false;
                fwrite(at, 1, (size_t)(edit->at - at), out);
                fwrite(edits->buffer + edit->begin, 1, edit->end - edit->begin, out);
                at = edit->at + edit->n_removed;
        }
        if (at > end)
                return false;
        fwrite(at, 1, (size_t)(end - at), out);
        return true;
}

void ptx_edits_write(PtxEdits *edits, PtxToken part, FILE *out) {
        end_last(edits);
        if (memory_stream_flush(edits->words) < 0)
                ptx_edits_fail_memory(edits);
        if (edits->r)
                return;
        if (edits->n_edits > 0)
                qsort(edits->edits, edits->n_edits, sizeof(*edits->edits), compare_edits);
        if (!write_part(edits, part, out))
                ptx_edits_refuse(edits, "its functions are not understood");
        edits->n_edits = 0;
}

/* ---- from beginning to end --------------------------------------------------------- */

static void read_text(PtxEdits *edits, PtxToken text) {
        int r;

        ptx_module_free(edits->module);
        edits->module = NULL;
        edits->text = text;
        if (text.n > TEXT_MAX) {
                ptx_edits_refuse(edits, "the PTX is too large to be %s: the limit is 16 MiB",
                                 edits->how);
                return;
        }
        r = ptx_module_read(text.s, text.n, &edits->module, &edits->error);
        edits->r = r > 0 ? PTX_EDIT_E_REFUSED : r;
}

static void print_instruction(PtxEdits *edits, const PtxInstruction *in) {
        FILE *out = ptx_edit(edits, in->begin, (size_t)(in->end - in->begin));

        ptx_instruction_print(out, in);
        for (const char *s = in->begin; s < in->end; s++)
                if (*s == '\n')
                        fputc('\n', out);
}

static void print_anew(PtxEdits *edits) {
        PtxToken printed;
        FILE *out = memory_stream_open(&edits->printed, &printed.n);

        if (!out) {
                ptx_edits_fail_memory(edits);
                return;
        }
        for (size_t i = 0; i < edits->module->n_functions; i++)
                for (size_t k = 0; k < edits->module->functions[i].n_instructions; k++)
                        print_instruction(edits, &edits->module->functions[i].instructions[k]);
        ptx_edits_write(edits, edits->text, out);
        if (memory_stream_close(out) < 0)
                ptx_edits_fail_memory(edits);
        printed.s = edits->printed;
        if (!edits->r)
                read_text(edits, printed);
}

void ptx_edits_init(PtxEdits *edits, PtxToken text, const char *how, const char *own) {
        *edits = (PtxEdits){.text = text, .how = how};
        edits->words = memory_stream_open(&edits->buffer, &edits->n_buffer);
        if (!edits->words) {
                edits->r = -ENOMEM;
                return;
        }
        if (ptx_token_has(text, own)) {
                ptx_edits_refuse(edits, "names of a %s module must not contain %s", how, own);
                return;
        }
        read_text(edits, text);
        if (!edits->r)
                print_anew(edits);
}

void ptx_edits_finish(PtxEdits *edits) {
        if (edits->words)
                fclose(edits->words);
        ptx_module_free(edits->module);
        free(edits->buffer);
        free(edits->edits);
        free(edits->printed);
}

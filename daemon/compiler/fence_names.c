/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that an assembler may understand in another way than the reader, or that hide from the text that is added
 * what it names: a register called like a function, say.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/fence_text.h"
#include "util/macro.h"

/* Of the variables and functions of the module, sorted. */
typedef struct Names {
        PtxToken *names;
        size_t n_names;
} Names;

static int compare(const void *a, const void *b) {
        const PtxToken *x = a, *y = b;
        int r = memcmp(x->s, y->s, MIN(x->n, y->n));

        return r ?: (x->n > y->n) - (x->n < y->n);
}

/* Return: 0 or -ENOMEM. */
static int collect(const PtxModule *module, Names *names) {
        names->names = calloc(module->n_functions + module->n_variables + 1, sizeof(PtxToken));
        if (!names->names)
                return -ENOMEM;

        for (size_t i = 0; i < module->n_functions; i++)
                names->names[names->n_names++] = module->functions[i].name;
        for (size_t i = 0; i < module->n_variables; i++)
                if (!module->variables[i].in_function)
                        names->names[names->n_names++] = module->variables[i].name;
        qsort(names->names, names->n_names, sizeof(PtxToken), compare);
        return 0;
}

static void names_finish(Names *names) {
        free(names->names);
}

/* Return: the index of the first that is not before @name. */
static size_t find(const Names *names, PtxToken name) {
        size_t begin = 0, end = names->n_names;

        while (begin < end) {
                size_t middle = begin + (end - begin) / 2;

                if (compare(&names->names[middle], &name) < 0)
                        begin = middle + 1;
                else
                        end = middle;
        }
        return begin;
}

static bool is_digits(const char *s, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isdigit((unsigned char)s[i]))
                        return false;
        return n > 0;
}

static void refuse(FenceText *fence, uint32_t line, PtxToken name) {
        ptx_edits_refuse(&fence->edits, "line %u: %.*s is declared twice, so it cannot be fenced",
                         line, (int)MIN(name.n, 200), name.s);
}

/* Any number: how far a range goes counts only for registers. */
static void check_range(FenceText *fence, const Names *names, const PtxLocal *range) {
        size_t n = range->name.n;

        for (size_t i = find(names, range->name); i < names->n_names; i++) {
                PtxToken name = names->names[i];

                if (name.n < n || memcmp(name.s, range->name.s, n) != 0)
                        return;
                if (is_digits(name.s + n, name.n - n))
                        refuse(fence, range->line, name);
        }
}

/* Special registers that the added text reads. */
static bool is_special(PtxToken name) {
        return ptx_token_is(name, "%laneid") || ptx_token_starts(name, "%envreg");
}

static void check_local(FenceText *fence, const Names *names, const PtxLocal *local) {
        size_t i = find(names, local->name);

        if (local->is_range)
                check_range(fence, names, local);
        else if (i < names->n_names && ptx_token_same(names->names[i], local->name))
                refuse(fence, local->line, local->name);
        if (is_special(local->name))
                refuse(fence, local->line, local->name);
}

void fence_check_names(FenceText *fence) {
        _cleanup_(names_finish) Names names = {};

        if (collect(fence->module, &names) < 0) {
                ptx_edits_fail_memory(&fence->edits);
                return;
        }
        for (size_t i = 0; i < names.n_names && !fence->edits.r; i++)
                if (is_special(names.names[i]))
                        ptx_edits_refuse(&fence->edits,
                                         "%.*s is declared twice, so it cannot be fenced",
                                         (int)MIN(names.names[i].n, 200), names.names[i].s);
        for (size_t i = 0; i < fence->module->n_locals && !fence->edits.r; i++)
                check_local(fence, &names, &fence->module->locals[i]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/instance.h"

#include <string.h>

#include "compiler/named.h"

#define INSTANCE_FILE     "names of kernels" /* in error messages of the compiler */
#define INSTANCE_VARIABLE "__gpuq_instance_"

static bool has_expressions(const Request *request) {
        for (size_t i = 0; i < request->n_kernels; i++)
                if (named_is_expression(request->kernels[i]))
                        return true;
        return false;
}

/* "&f<int>" may be written, too. */
static const char *without_address(const char *name) {
        name += strspn(name, " \t");
        return *name == '&' ? name + 1 : name;
}

/* A line each, so that the number of a line tells the name. */
void instance_write(const Request *request, FILE *f) {
        if (!has_expressions(request))
                return;

        fputs("\n#line 1 \"" INSTANCE_FILE "\"\n", f);
        for (size_t i = 0; i < request->n_kernels; i++) {
                if (named_is_expression(request->kernels[i]))
                        fprintf(f,
                                "extern \"C\" { __device__ auto *" INSTANCE_VARIABLE
                                "%zu = &(%s); }",
                                i, without_address(request->kernels[i]));
                fputc('\n', f);
        }
}

bool instance_blame(const Request *request, char *log, const char **ret_name,
                    const char **ret_why) {
        char *error = strstr(log, ": error: "), *line = error;
        unsigned long number;

        while (line && line > log && line[-1] != '\n')
                line--;
        if (!line || strncmp(line, INSTANCE_FILE ":", sizeof(INSTANCE_FILE ":") - 1) != 0)
                return false;
        number = strtoul(line + sizeof(INSTANCE_FILE ":") - 1, NULL, 10);
        if (number < 1 || number > request->n_kernels)
                return false;

        error += strlen(": error: ");
        error[strcspn(error, "\n")] = '\0';
        *ret_name = request->kernels[number - 1];
        *ret_why = error;
        return true;
}

/* ---- in PTX --------------------------------------------------------------------------- */

static void blank(char *text, char *from, const char *end) {
        while (from > text && from[-1] != '\n')
                from--;
        for (; from < end; from++)
                if (*from != '\n')
                        *from = ' ';
}

/* Its address was taken before its body, so there is a declaration, which not every reader of PTX knows. */
static int remove_declaration(char *text, const char *symbol, size_t n_symbol) {
        _cleanup_(freep) char *head = NULL;
        char *found;

        if (asprintf(&head, ".entry %.*s\n(", (int)n_symbol, symbol) < 0)
                return -ENOMEM;

        found = strstr(text, head); /* a body's parameters begin on the same line */
        if (found) {
                char *end = found + strcspn(found, ";{");

                if (*end == ';')
                        blank(text, found, end + 1);
        }
        return 0;
}

static int take_one(const Request *request, Result *result, char *text, size_t i) {
        char head[48], *found;
        size_t n_symbol;
        int r;

        snprintf(head, sizeof(head), INSTANCE_VARIABLE "%zu = ", i);
        found = strstr(text, head);
        if (!found)
                return 0;

        n_symbol = strcspn(found + strlen(head), ";");
        r = result_name(result, request->n_kernels, i, found + strlen(head), n_symbol);
        if (r == 0)
                r = remove_declaration(text, result->named[i], n_symbol);
        blank(text, found, found + strlen(head) + n_symbol + 1);
        return r;
}

int instance_take(const Request *request, Result *result, char *ptx) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < request->n_kernels; i++)
                if (named_is_expression(request->kernels[i]))
                        r = take_one(request, result, ptx, i);
        return r;
}

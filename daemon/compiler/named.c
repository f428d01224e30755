/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/named.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "util/grow.h"
#include "util/kernel-name.h"
#include "util/near.h"

#define CANDIDATES_MAX 64u /* that a message lists */

bool named_is_expression(const char *name) {
        return strchr(name, '<') != NULL;
}

/* ---- candidates for a message ------------------------------------------------------- */

typedef struct Candidates {
        char **names;
        size_t n_names;
} Candidates;

static void candidates_finish(Candidates *candidates) {
        for (size_t i = 0; i < candidates->n_names; i++)
                free(candidates->names[i]);
        free(candidates->names);
}

/* Consumes @name, which may be NULL: no memory. Return: 0 or -ENOMEM. */
static int candidates_add(Candidates *candidates, char *name) {
        int r = name ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < candidates->n_names; i++)
                if (strcmp(candidates->names[i], name) == 0) {
                        free(name);
                        return 0;
                }
        if (r == 0)
                r = grow(&candidates->names, candidates->n_names, sizeof(*candidates->names));
        if (r < 0) {
                free(name);
                return r;
        }
        candidates->names[candidates->n_names++] = name;
        return 0;
}

static bool is_letter(char letter) {
        return isalnum((unsigned char)letter) || letter == '_';
}

/* The word before @end. Return: its length. */
static size_t word_before(const char *begin, const char *end, const char **ret_word) {
        const char *word;

        while (end > begin && isspace((unsigned char)end[-1]))
                end--;
        word = end;
        while (word > begin && is_letter(word[-1]))
                word--;
        *ret_word = word;
        return end - word;
}

static const char *behind_brackets(const char *p) {
        int depth = 0;

        for (; *p; p++) {
                if (*p == '(')
                        depth++;
                if (*p == ')' && --depth == 0)
                        return p + 1;
        }
        return p;
}

/* The name that a declaration gives, from behind its __global__; attributes have brackets too. */
static size_t declared_name(const char *p, const char **ret_name) {
        for (;;) {
                const char *bracket = p + strcspn(p, "(;{}");
                size_t n;

                if (*bracket != '(')
                        return 0;
                n = word_before(p, bracket, ret_name);
                if (n > 0 && (n < 2 || memcmp(*ret_name, "__", 2) != 0))
                        return n;
                p = behind_brackets(bracket);
        }
}

/* Templates that nobody instantiates are in no PTX. */
static int candidates_add_source(Candidates *candidates, const char *source) {
        const char *p = source, *name;
        int r = 0;

        while (r == 0 && candidates->n_names < CANDIDATES_MAX && (p = strstr(p, "__global__"))) {
                size_t n;

                p += strlen("__global__");
                n = declared_name(p, &name);
                if (n > 0)
                        r = candidates_add(candidates, strndup(name, n));
        }
        return r;
}

static int candidates_fill(Candidates *candidates, const Request *request, const Result *result) {
        const Signature *signature = result->signature;
        int r = 0;

        for (size_t i = 0; r == 0 && i < signature->n_kernels && i < CANDIDATES_MAX; i++)
                r = candidates_add(candidates, signature_name(signature->kernels[i].symbol));
        if (r == 0 && request->format == FORMAT_SOURCE)
                r = candidates_add_source(candidates, request->image);
        return r;
}

/* "f<int>" is near to the template "g". */
static void write_near(FILE *f, const Candidates *candidates, const char *name) {
        size_t n_plain = strcspn(name, "<");
        _cleanup_(freep) char *plain = strndup(name, n_plain);
        Near near;

        if (!plain)
                return;
        near = near_to(plain);
        for (size_t i = 0; i < candidates->n_names; i++)
                near_offer(&near, candidates->names[i]);
        if (near.found && strcmp(near.found, plain) != 0)
                fprintf(f, "; did you mean \"%s%s\"?", near.found,
                        strchr(near.found, '<') ? "" : name + n_plain);
}

static void write_failure(FILE *f, const Request *request, const Candidates *candidates,
                          const char *name, const char *why) {
        fprintf(f, "%s has no kernel \"%s\"%s%s; it has: ", request->name, name, why ? ": " : "",
                why ?: "");
        for (size_t i = 0; i < candidates->n_names; i++)
                fprintf(f, "%s%s", i ? ", " : "", candidates->names[i]);
        if (candidates->n_names == 0)
                fputs("none", f);
        write_near(f, candidates, name);
}

int named_fail(const Request *request, Result *result, const char *name, const char *why) {
        _cleanup_(candidates_finish) Candidates candidates = {};
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        FILE *f;
        int r;

        r = candidates_fill(&candidates, request, result);
        if (r < 0)
                return r;
        f = open_memstream(&text, &n_text);
        if (!f)
                return -ENOMEM;
        write_failure(f, request, &candidates, name, why);
        if (fclose(f) != 0)
                return -ENOMEM;

        return result_fail(result, COMPILED_NO_KERNEL, "%s", text);
}

/* ---- among the kernels there are ---------------------------------------------------- */

typedef struct Kernels {
        const Signature *signature;
        char **names;
} Kernels;

static void kernels_finish(Kernels *kernels) {
        for (size_t i = 0; kernels->names && i < kernels->signature->n_kernels; i++)
                free(kernels->names[i]);
        free(kernels->names);
}

static int kernels_init(Kernels *kernels, const Signature *signature) {
        *kernels = (Kernels){
                .signature = signature,
                .names = calloc(signature->n_kernels + 1, sizeof(*kernels->names)),
        };
        if (!kernels->names)
                return -ENOMEM;

        for (size_t i = 0; i < signature->n_kernels; i++) {
                kernels->names[i] = signature_name(signature->kernels[i].symbol);
                if (!kernels->names[i])
                        return -ENOMEM;
        }
        return 0;
}

static const char *kernels_name(const void *kernels, size_t i) {
        return ((const Kernels *)kernels)->names[i];
}

static const char *kernels_symbol(const void *kernels, size_t i) {
        return ((const Kernels *)kernels)->signature->kernels[i].symbol;
}

static int resolve_one(const Request *request, Result *result, const Kernels *kernels, size_t i) {
        const char *name = request->kernels[i], *symbol;
        const KernelNames names = {kernels, result->signature->n_kernels, kernels_name,
                                   kernels_symbol};
        size_t found;
        int r;

        if (result->named && result->named[i]) {
                if (signature_find(result->signature, result->named[i]))
                        return 0;
                return named_fail(request, result, name, "it names something else");
        }

        r = kernel_name_find(&names, name, &found);
        if (r)
                return named_fail(request, result, name,
                                  r == KERNEL_NAME_E_AMBIGUOUS ? "the name is that of several"
                                                               : NULL);
        symbol = kernels_symbol(kernels, found);
        return result_name(result, request->n_kernels, i, symbol, strlen(symbol));
}

int named_resolve(const Request *request, Result *result) {
        _cleanup_(kernels_finish) Kernels kernels = {};
        int r;

        if (request->n_kernels == 0)
                return 0;
        r = kernels_init(&kernels, result->signature);
        for (size_t i = 0; r == 0 && i < request->n_kernels && result->status == COMPILED_OK; i++)
                r = resolve_one(request, result, &kernels, i);
        return r;
}

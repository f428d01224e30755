/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan
 *
 * One pass over the tokens. At the outer level and inside namespaces it reads
 * declarations; other braces are only counted. A declaration with __global__ ends
 * at its parameters: the name before them is the kernel's.
 */

#include "compiler/scan.h"

#include <stdio.h>
#include <string.h>

#include "compiler/tokens.h"
#include "util/macro.h"

#define SCOPES_MAX  64u
#define KERNELS_MAX 65536u

typedef struct Scope {
        Token name;      /* .n 0: not part of a qualified name: extern "C", or nameless */
        unsigned braces; /* open outside of it */
} Scope;

typedef enum Template {
        TEMPLATE_NONE,
        TEMPLATE_PLAIN,          /* template <class T> …: no kernel yet */
        TEMPLATE_SPECIALISATION, /* template <> … */
        TEMPLATE_INSTANTIATION,  /* template … */
} Template;

typedef struct Kernel {
        char *name;
        Token parameters;
        bool is_template; /* not a kernel itself */
        bool is_plain;    /* no template at all */
        bool is_overloaded;
} Kernel;

typedef struct Scan {
        Tokens tokens;
        FILE *out;
        const char *copied; /* up to here */

        Scope scopes[SCOPES_MAX];
        unsigned n_scopes;
        unsigned braces; /* open, those of scopes included */

        Template template; /* of this declaration */
        bool is_kernel;    /* it has __global__ */

        Kernel *kernels;
        int n_kernels;
} Scan;

static bool at_declaration(const Scan *scan) {
        return scan->braces == scan->n_scopes;
}

static bool is_one_of(Token token, const char *const *words, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (token_is(token, words[i]))
                        return true;

        return false;
}

/* Words whose parentheses are not a function's parameters. */
static bool takes_arguments(Token token) {
        static const char *const words[] = {
                "__launch_bounds__", "__attribute__", "__align__",      "alignas",    "decltype",
                "__cluster_dims__",  "__maxnreg__",   "__block_size__", "__declspec", "noexcept",
        };

        return is_one_of(token, words, ARRAY_SIZE(words));
}

/* ---- names ------------------------------------------------------------------ */

static Kernel *find(const Scan *scan, const char *name, size_t n_name, bool is_template) {
        for (int i = 0; i < scan->n_kernels; i++) {
                Kernel *kernel = &scan->kernels[i];

                if (kernel->is_template == is_template && strlen(kernel->name) == n_name &&
                    memcmp(kernel->name, name, n_name) == 0)
                        return kernel;
        }
        return NULL;
}

/* Takes the name. */
static int add(Scan *scan, Kernel kernel) {
        Kernel *kernels, *same = find(scan, kernel.name, strlen(kernel.name), kernel.is_template);

        if (same || scan->n_kernels == KERNELS_MAX) {
                if (same)
                        same->is_overloaded = true;
                free(kernel.name);
                return 0;
        }

        kernels = reallocarray(scan->kernels, scan->n_kernels + 1, sizeof(*kernels));
        if (!kernels) {
                free(kernel.name);
                return -ENOMEM;
        }

        scan->kernels = kernels;
        kernels[scan->n_kernels++] = kernel;
        return 0;
}

/* "ns::f<float, 4>": tokens without blanks but between two words and behind a comma. */
static void write_tokens(FILE *f, const char *from, const char *to) {
        Tokens tokens = {.at = from, .start = from, .end = to};
        Token token, last = {};

        while ((token = tokens_next(&tokens)).n > 0) {
                if (last.n &&
                    (token_is(last, ",") || (token_is_name(last) && token_is_name(token))))
                        fputc(' ', f);
                fwrite(token.s, 1, token.n, f);
                last = token;
        }
}

/* The name with its namespaces, as the user writes it. */
static char *qualify(const Scan *scan, const char *from, const char *to) {
        char *name = NULL;
        size_t n_name;
        FILE *f = open_memstream(&name, &n_name);

        if (!f)
                return NULL;

        for (unsigned i = 0; i < scan->n_scopes; i++) {
                if (scan->scopes[i].name.n == 0)
                        continue;
                write_tokens(f, scan->scopes[i].name.s,
                             scan->scopes[i].name.s + scan->scopes[i].name.n);
                fputs("::", f);
        }
        write_tokens(f, from, to);
        if (fclose(f) != 0) {
                free(name);
                return NULL;
        }
        return name;
}

static void write_string(FILE *f, const char *s) {
        fputc('"', f);
        for (; *s; s++) {
                if (*s == '"' || *s == '\\')
                        fputc('\\', f);
                fputc(*s, f);
        }
        fputc('"', f);
}

/* The types of parameters: all but their default values. */
static void write_parameters(FILE *f, const char *from, const char *to) {
        Tokens tokens = {.at = from, .start = from, .end = to};
        const char *written = from;
        bool skipping = false;
        unsigned depth = 0;
        Token token;

        while ((token = tokens_next(&tokens)).n > 0) {
                if (strchr("(<[{", *token.s))
                        depth++;
                if (strchr(")>]}", *token.s) && depth > 0)
                        depth--;
                if (depth == 0 && token_is(token, "=")) {
                        write_tokens(f, written, token.s);
                        skipping = true;
                }
                if (depth == 0 && token_is(token, ",") && skipping) {
                        written = token.s;
                        skipping = false;
                }
        }
        if (!skipping)
                write_tokens(f, written, to);
}

/* A cast picks one of overloads: the first, which keeps the name. Return: 1, or 0 for a template. */
static int write_kernel(FILE *f, const Kernel *kernel) {
        const Token *parameters = &kernel->parameters;

        if (kernel->is_template)
                return 0;

        fputs("GPUQ_CPU_KERNEL((", f);
        if (kernel->is_plain && kernel->is_overloaded) {
                fputs("static_cast<void (*)(", f);
                write_parameters(f, parameters->s, parameters->s + parameters->n);
                fprintf(f, ")>(&%s)", kernel->name);
        } else {
                fprintf(f, "&%s", kernel->name);
        }
        fputs("), ", f);
        write_string(f, kernel->name);
        fputs(")\n", f);
        return 1;
}

/* ---- dynamic shared memory ---------------------------------------------------- */

typedef struct Shared {
        bool is_shared;
        const char *dimensions; /* "[]…", or NULL */
        Token name;
        const char *end; /* of the dimensions, or NULL */
} Shared;

/* Reads `extern …` to its semicolon. */
static Shared read_extern(Tokens *tokens) {
        Shared shared = {};
        Token token, last = {};

        while ((token = tokens_next(tokens)).n > 0) {
                if (token_is(token, ";"))
                        return shared;
                if (token_is(token, "{") || token_is(token, "}") || token_is_string(token))
                        break;
                if (token_is(token, "(")) {
                        if (!takes_arguments(last) || !tokens_skip(tokens, "(", ")"))
                                break;
                        continue;
                }
                if (token_is(token, "__shared__"))
                        shared.is_shared = true;
                if (token_is(token, "[") && !shared.dimensions) {
                        shared.name = last;
                        shared.dimensions = token.s;
                }
                if (token_is(token, "]") && shared.dimensions)
                        shared.end = token.s + 1;
                last = token;
        }
        return (Shared){};
}

/* The type is what is left without storage words, alignment and the name. */
static void write_type(FILE *f, const char *from, const char *to) {
        static const char *const dropped[] = {"extern", "__shared__", "static"};
        Tokens tokens = {.at = from, .start = from, .end = to};
        Token token;

        while ((token = tokens_next(&tokens)).n > 0) {
                if (takes_arguments(token) && !token_is(token, "decltype")) {
                        (void)tokens_next(&tokens);
                        (void)tokens_skip(&tokens, "(", ")");
                } else if (!is_one_of(token, dropped, ARRAY_SIZE(dropped))) {
                        fprintf(f, " %.*s", (int)token.n, token.s);
                }
        }
}

static void write_newlines(FILE *f, const char *from, const char *to) {
        for (; from < to; from++)
                if (*from == '\n')
                        fputc('\n', f);
}

/* `extern __shared__ TYPE name[]DIMS;` becomes `GPUQ_CPU_DYNAMIC(name, []DIMS, TYPE);` */
static void rewrite_extern(Scan *scan, Token word) {
        Tokens tokens = scan->tokens;
        Shared shared = read_extern(&tokens);

        if (!shared.is_shared || !shared.end || !token_is_name(shared.name))
                return;

        fwrite(scan->copied, 1, word.s - scan->copied, scan->out);
        fprintf(scan->out, "GPUQ_CPU_DYNAMIC(%.*s, ", (int)shared.name.n, shared.name.s);
        write_tokens(scan->out, shared.dimensions, shared.end);
        fputc(',', scan->out);
        write_type(scan->out, word.s, shared.name.s);
        fputs(");", scan->out);
        write_newlines(scan->out, word.s, tokens.at);
        scan->copied = tokens.at;
        scan->tokens = tokens;
}

/* ---- declarations --------------------------------------------------------------- */

static void end_declaration(Scan *scan) {
        scan->template = TEMPLATE_NONE;
        scan->is_kernel = false;
}

static void open_scope(Scan *scan, Token name) {
        scan->braces++;
        if (scan->n_scopes < SCOPES_MAX)
                scan->scopes[scan->n_scopes++] = (Scope){.name = name, .braces = scan->braces - 1};
        end_declaration(scan);
}

static void close_brace(Scan *scan) {
        if (scan->braces > 0)
                scan->braces--;
        if (scan->n_scopes > 0 && scan->scopes[scan->n_scopes - 1].braces == scan->braces)
                scan->n_scopes--;
        if (at_declaration(scan))
                end_declaration(scan);
}

/* After `namespace`: its name with ::, then a brace, unless it is an alias. */
static void read_namespace(Scan *scan) {
        Token name = {}, token;

        while ((token = tokens_next(&scan->tokens)).n > 0) {
                if (token_is(token, "{")) {
                        open_scope(scan, name);
                        return;
                }
                if (token_is(token, ";") || token_is(token, "="))
                        return;
                if (takes_arguments(token)) {
                        (void)tokens_next(&scan->tokens);
                        (void)tokens_skip(&scan->tokens, "(", ")");
                } else if (token_is_name(token) && !token_is(token, "inline")) {
                        if (!name.n)
                                name.s = token.s;
                        name.n = token.s + token.n - name.s;
                }
        }
}

/* Behind the ">" that closes a "<" which was just read; parentheses hide marks. */
static void skip_angles(Tokens *tokens) {
        for (unsigned depth = 1; depth > 0;) {
                Token token = tokens_next(tokens);

                if (token.n == 0 || token_is(token, ";") || token_is(token, "{"))
                        return;
                if (token_is(token, "("))
                        (void)tokens_skip(tokens, "(", ")");
                if (token_is(token, "<"))
                        depth++;
                if (token_is(token, ">"))
                        depth--;
        }
}

static void read_template(Scan *scan) {
        Token token = tokens_peek(&scan->tokens);

        if (!token_is(token, "<")) {
                scan->template = TEMPLATE_INSTANTIATION;
                return;
        }

        (void)tokens_next(&scan->tokens);
        if (token_is(tokens_peek(&scan->tokens), ">"))
                scan->template = TEMPLATE_SPECIALISATION;
        else
                scan->template = TEMPLATE_PLAIN;
        skip_angles(&scan->tokens);
}

/* The name ends at @end: walks back from the declaration's tokens to where it starts. */
static const char *name_start(const char *from, const char *end) {
        Tokens tokens = {.at = from, .start = from, .end = end};
        const char *start = from;
        Token token, last = {};

        while ((token = tokens_next(&tokens)).n > 0) {
                if (token_is(token, "<"))
                        skip_angles(&tokens);
                else if (token_is(token, "(") || token_is(token, "["))
                        (void)tokens_skip(&tokens, token_is(token, "(") ? "(" : "[",
                                          token_is(token, "(") ? ")" : "]");
                else if (token_is_name(token) && !token_is(last, "::"))
                        start = token.s;
                last = token;
        }
        return start;
}

/* What ends the head of a function whose parameters were read: a body's brace, or a semicolon. */
static Token find_end(const Scan *scan) {
        Tokens tokens = scan->tokens;
        Token token;

        do
                token = tokens_next(&tokens);
        while (token.n > 0 && !token_is(token, "{") && !token_is(token, ";"));

        return token;
}

/* A function's parameters were read, and its name is at the end of @head. */
static int found_function(Scan *scan, Token head, Token parameters) {
        const char *end = head.s + head.n;
        char *name = qualify(scan, name_start(head.s, end), end);
        bool is_kernel = scan->is_kernel, is_template = scan->template == TEMPLATE_PLAIN;

        if (!name)
                return -ENOMEM;

        /* An instance need not repeat __global__. */
        if (scan->template == TEMPLATE_INSTANTIATION || scan->template == TEMPLATE_SPECIALISATION)
                is_kernel = is_kernel || find(scan, name, strcspn(name, "<"), true);
        if (!is_template &&
            !token_is(find_end(scan), scan->template == TEMPLATE_INSTANTIATION ? ";" : "{"))
                is_kernel = false;
        if (!is_kernel) {
                free(name);
                return 0;
        }

        return add(scan, (Kernel){.name = name,
                                  .parameters = parameters,
                                  .is_template = is_template,
                                  .is_plain = scan->template == TEMPLATE_NONE});
}

/* After `extern`: dynamic shared memory, or a linkage, which may open a scope. Return: whether it did. */
static bool read_linkage(Scan *scan, Token word) {
        rewrite_extern(scan, word);
        if (!token_is_string(tokens_peek(&scan->tokens)))
                return false;

        (void)tokens_next(&scan->tokens);
        if (!token_is(tokens_peek(&scan->tokens), "{"))
                return false;

        (void)tokens_next(&scan->tokens);
        open_scope(scan, (Token){});
        return true;
}

/* After `(`: parameters, if the name before them is a function's. */
static int read_parentheses(Scan *scan, const char *from, Token last, bool *found) {
        const char *parameters = scan->tokens.at;

        (void)tokens_skip(&scan->tokens, "(", ")");
        if (*found || takes_arguments(last) || !(token_is_name(last) || token_is(last, ">")))
                return 0;

        *found = true;
        return found_function(scan, (Token){from, last.s + last.n - from},
                              (Token){parameters, scan->tokens.at - 1 - parameters});
}

/*
 * One declaration, from its first token to its body, its semicolon, or the brace
 * of a scope. What is not a function is walked through all the same.
 */
static int read_declaration(Scan *scan) {
        const char *from = scan->tokens.at;
        Token last = {}, token;
        bool found = false; /* a function's parameters: what follows is not its name */
        int r = 0;

        while (r == 0 && (token = tokens_peek(&scan->tokens)).n > 0) {
                if (token_is(token, "{") || token_is(token, "}") || token_is(token, "namespace"))
                        return 0;

                (void)tokens_next(&scan->tokens);
                if (token_is(token, ";")) {
                        end_declaration(scan);
                        return 0;
                }
                if (token_is(token, "extern") && read_linkage(scan, token))
                        return 0;
                if (token_is(token, "template"))
                        read_template(scan);
                if (token_is(token, "extern") || token_is(token, "template")) {
                        from = scan->tokens.at;
                        last = (Token){}; /* a name is behind it */
                        continue;
                }
                if (token_is(token, "("))
                        r = read_parentheses(scan, from, last, &found);
                else if (token_is(token, "__global__"))
                        scan->is_kernel = true;
                last = token;
        }
        return r;
}

/* Inside of a body: braces, and dynamic shared memory. */
static void read_body(Scan *scan) {
        Token token = tokens_next(&scan->tokens);

        if (token_is(token, "{"))
                scan->braces++;
        else if (token_is(token, "}"))
                close_brace(scan);
        else if (token_is(token, "extern"))
                rewrite_extern(scan, token);
}

static int scan_all(Scan *scan) {
        Token token;
        int r = 0;

        while (r == 0 && (token = tokens_peek(&scan->tokens)).n > 0) {
                if (!at_declaration(scan) || token_is(token, "{") || token_is(token, "}")) {
                        read_body(scan);
                } else if (token_is(token, "namespace")) {
                        (void)tokens_next(&scan->tokens);
                        read_namespace(scan);
                } else {
                        r = read_declaration(scan);
                }
        }
        fwrite(scan->copied, 1, scan->tokens.end - scan->copied, scan->out);
        return r;
}

static void free_kernels(Scan *scan) {
        for (int i = 0; i < scan->n_kernels; i++)
                free(scan->kernels[i].name);
        free(scan->kernels);
}

int scan_rewrite(const char *text, size_t n_text, char **ret_text) {
        Scan scan = {.tokens = {.at = text, .start = text, .end = text + n_text}, .copied = text};
        _cleanup_(freep) char *out = NULL;
        int r, n_kernels = 0;
        size_t n_out;

        scan.out = open_memstream(&out, &n_out);
        if (!scan.out)
                return -ENOMEM;

        r = scan_all(&scan);
        fputc('\n', scan.out);
        for (int i = 0; i < scan.n_kernels; i++)
                n_kernels += write_kernel(scan.out, &scan.kernels[i]);
        free_kernels(&scan);
        if (fclose(scan.out) != 0 || r < 0)
                return -ENOMEM;

        *ret_text = TAKE_PTR(out);
        return n_kernels;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signature
 *
 * The driver knows C++ kernels by mangled names, the CPU driver and the kernels' authors by plain
 * ones. A signature has both, so that one client program runs on either driver.
 */

#include "compiler/signature.h"

#include <stdio.h>
#include <string.h>

#include "util/grow.h"

/* Of the C++ runtime, which every C++ compiler's library has under this name. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

int signature_new(Signature **ret_signature) {
        Signature *signature;

        signature = calloc(1, sizeof(*signature));
        if (!signature)
                return -ENOMEM;

        *ret_signature = signature;
        return 0;
}

Signature *signature_free(Signature *signature) {
        if (!signature)
                return NULL;

        for (size_t i = 0; i < signature->n_kernels; i++) {
                free(signature->kernels[i].symbol);
                free(signature->kernels[i].kinds);
                free(signature->kernels[i].text);
        }
        for (size_t i = 0; i < signature->n_variables; i++)
                free(signature->variables[i]);
        free(signature->kernels);
        free(signature->variables);
        free(signature);
        return NULL;
}

static bool name_is_plain(const char *name, size_t n_name) {
        if (n_name == 0)
                return false;

        for (size_t i = 0; i < n_name; i++)
                if ((unsigned char)name[i] < ' ')
                        return false;

        return true;
}

int signature_add_kernel(Signature *signature, const char *symbol, size_t n_symbol,
                         const char *kinds) {
        SignatureKernel kernel = {};
        int r;

        if (!name_is_plain(symbol, n_symbol))
                return 0;

        r = grow(&signature->kernels, signature->n_kernels, sizeof(kernel));
        if (r < 0)
                return r;

        kernel.symbol = strndup(symbol, n_symbol);
        kernel.kinds = kinds ? strdup(kinds) : NULL;
        if (!kernel.symbol || (kinds && !kernel.kinds)) {
                free(kernel.symbol);
                free(kernel.kinds);
                return -ENOMEM;
        }

        signature->kernels[signature->n_kernels++] = kernel;
        return 0;
}

static bool starts_with(const char *s, size_t n, const char *prefix) {
        size_t n_prefix = strlen(prefix);

        return n >= n_prefix && memcmp(s, prefix, n_prefix) == 0;
}

/* String literals, tables of mathematical functions, and constant arrays of functions. */
static bool is_compilers(const SignatureVariable *variable) {
        static const char *const prefixes[] = {
                "$str",
                "_$_",
                "__unnamed_",
                "__const$",
                "__const_$",
                "__func__$",
                "__func___$",
                "__FUNCTION__$",
                "__FUNCTION___$",
                "__PRETTY_FUNCTION__$",
                "__PRETTY_FUNCTION___$",
                "__cudart_",
                "__GPU_i2opi_",
                "__internal_i2opi_",
        };

        for (size_t i = 0; variable->has_value && i < ARRAY_SIZE(prefixes); i++)
                if (starts_with(variable->name, variable->n_name, prefixes[i]))
                        return true;

        return false;
}

/* "N4cuda…": one part of a mangled name, its length before it. Return: how long both are, or 0. */
static size_t read_part(const char *s, size_t n, const char **ret_part, size_t *ret_n_part) {
        size_t digits = 0, length = 0;

        while (digits < n && s[digits] >= '0' && s[digits] <= '9' && length < n)
                length = length * 10 + (s[digits++] - '0');
        if (digits == 0 || length == 0 || length > n - digits)
                return 0;

        *ret_part = s + digits;
        *ret_n_part = length;
        return digits + length;
}

/* The namespace that a mangled name begins with, and what follows it. Return: false: it has none. */
static bool read_namespace(const char *name, size_t n_name, const char **ret_space,
                           size_t *ret_n_space, size_t *ret_n_before) {
        size_t n, n_before = 3;

        if (n_name < 4 || memcmp(name, "_ZN", 3) != 0)
                return false;

        n = read_part(name + n_before, n_name - n_before, ret_space, ret_n_space);
        n_before += n;
        /* What is static is in a namespace of its own for each file first. */
        if (n && starts_with(*ret_space, *ret_n_space, "_INTERNAL_")) {
                n = read_part(name + n_before, n_name - n_before, ret_space, ret_n_space);
                n_before += n;
        }

        *ret_n_before = n_before;
        return n > 0;
}

/* "3std" and, unless there is a value, a namespace such as __4, in which users declare nothing. */
static bool is_standard(const SignatureVariable *variable, size_t n_before) {
        const char *rest = variable->name + n_before, *part;
        size_t n_rest = variable->n_name - n_before, n_part;

        if (!starts_with(rest, n_rest, "3std"))
                return false;
        return variable->has_value || (read_part(rest + 4, n_rest - 4, &part, &n_part) > 0 &&
                                       starts_with(part, n_part, "__"));
}

/* Within a namespace such as cuda::__4 or cooperative_groups::__v1, in which users declare nothing. */
static bool is_versioned(const SignatureVariable *variable, size_t n_before) {
        const char *rest = variable->name + n_before, *part;
        size_t n_rest = variable->n_name - n_before, n_part, n;

        n = read_part(rest, n_rest, &part, &n_part);
        return n > 0 && n < n_rest && rest[n] != 'E' && starts_with(part, n_part, "__");
}

/* The toolkit's headers keep objects without members, and constants; of value 0 without it. */
static bool is_toolkits(const SignatureVariable *variable) {
        static const char *const spaces[] = {"cuda", "cooperative_groups", "cub", "thrust"};
        const char *name = variable->name, *space;
        size_t n_space, n_before;

        if (!read_namespace(name, variable->n_name, &space, &n_space, &n_before))
                return false;
        if (n_space == 4 && memcmp(space, "cuda", 4) == 0 && is_standard(variable, n_before))
                return true;

        for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
                if (n_space == strlen(spaces[i]) && memcmp(space, spaces[i], n_space) == 0)
                        return variable->is_byte || is_versioned(variable, n_before);

        return false;
}

bool signature_is_variable(const SignatureVariable *variable) {
        return name_is_plain(variable->name, variable->n_name) && !is_compilers(variable) &&
               !is_toolkits(variable);
}

int signature_add_variable(Signature *signature, const SignatureVariable *variable) {
        int r;

        if (!signature_is_variable(variable))
                return 0;

        r = grow(&signature->variables, signature->n_variables, sizeof(*signature->variables));
        if (r < 0)
                return r;

        signature->variables[signature->n_variables] = strndup(variable->name, variable->n_name);
        if (!signature->variables[signature->n_variables])
                return -ENOMEM;

        signature->n_variables++;
        return 0;
}

SignatureKernel *signature_find(const Signature *signature, const char *symbol) {
        for (size_t i = 0; i < signature->n_kernels; i++)
                if (strcmp(signature->kernels[i].symbol, symbol) == 0)
                        return &signature->kernels[i];

        return NULL;
}

int signature_set_text(Signature *signature, const char *symbol, const char *text) {
        SignatureKernel *kernel = signature_find(signature, symbol);
        char *copy;

        if (!kernel)
                return -ENOENT;

        copy = strdup(text);
        if (!copy)
                return -ENOMEM;

        free(kernel->text);
        kernel->text = copy;
        return 0;
}

/* The '(' that opens the parameters: outside of <> and of an earlier "(anonymous namespace)". */
static const char *find_parameters(const char *s) {
        int angle = 0, round = 0;
        const char *found = NULL;

        for (; *s; s++) {
                if (*s == '<')
                        angle++;
                if (*s == '>')
                        angle--;
                if (*s == '(' && round++ == 0 && angle == 0)
                        found = s;
                if (*s == ')')
                        round--;
        }
        return found;
}

/* Templates are demangled with their return type: the name starts behind the last blank outside of <>. */
static const char *find_name(const char *s, const char *end) {
        const char *start = s;
        int depth = 0;

        for (; s < end; s++) {
                if (*s == '<' || *s == '(')
                        depth++;
                if (*s == '>' || *s == ')')
                        depth--;
                if (*s == ' ' && depth == 0)
                        start = s + 1;
        }
        return start;
}

char *signature_user_name(const char *demangled) {
        const char *end = find_parameters(demangled), *start;

        if (!end)
                end = demangled + strlen(demangled);
        start = find_name(demangled, end);

        return strndup(start, end - start);
}

static bool ends_with(const char *s, size_t n, const char *suffix) {
        size_t n_suffix = strlen(suffix);

        return n >= n_suffix && memcmp(s + n - n_suffix, suffix, n_suffix) == 0;
}

/* What a demangled type says of an 8-byte parameter. */
static char refine(const char *type, size_t n) {
        if (ends_with(type, n, "*") || ends_with(type, n, "*const") ||
            ends_with(type, n, "* const") || ends_with(type, n, "&"))
                return 'p';
        if (ends_with(type, n, "long"))
                return 'l';
        return 'w';
}

/* Walks the demangled parameters beside the letters. */
static void refine_kinds(char *kinds, const char *demangled) {
        const char *s = find_parameters(demangled), *type;
        int depth = 0;

        if (!s)
                return;

        for (type = ++s; *kinds && *s; s++) {
                if (*s == '<' || *s == '(')
                        depth++;
                if (depth == 0 && (*s == ',' || *s == ')')) {
                        if (*kinds == 'w')
                                *kinds = refine(type, s - type);
                        kinds++;
                        type = s + 1;
                        if (*s == ')')
                                return;
                }
                if (*s == '>' || *s == ')')
                        depth--;
        }
}

static char *demangle(const char *symbol) {
        int status;

        return strncmp(symbol, "_Z", 2) == 0 ? __cxa_demangle(symbol, NULL, NULL, &status) : NULL;
}

char *signature_name(const char *symbol) {
        _cleanup_(freep) char *demangled = demangle(symbol);

        return demangled ? signature_user_name(demangled) : strdup(symbol);
}

/* One name a kernel; demangled where there is something to demangle. */
static int make_names(const Signature *signature, char **names) {
        for (size_t i = 0; i < signature->n_kernels; i++) {
                SignatureKernel *kernel = &signature->kernels[i];
                _cleanup_(freep) char *demangled = demangle(kernel->symbol);

                if (demangled && kernel->kinds)
                        refine_kinds(kernel->kinds, demangled);
                names[i] = demangled ? signature_user_name(demangled) : strdup(kernel->symbol);
                if (!names[i])
                        return -ENOMEM;
        }
        return 0;
}

static bool name_is_shared(char *const *names, size_t n, size_t i) {
        for (size_t j = 0; j < n; j++)
                if (j != i && strcmp(names[i], names[j]) == 0)
                        return true;

        return false;
}

static void write_kernels(FILE *f, const Signature *signature, char *const *names) {
        for (size_t i = 0; i < signature->n_kernels; i++) {
                const SignatureKernel *kernel = &signature->kernels[i];
                const char *kinds = kernel->kinds ? kernel->kinds : "?";
                bool shared = name_is_shared(names, signature->n_kernels, i);

                fprintf(f, "%s\t%s\t%s\t%s\n", *kinds ? kinds : "-", kernel->symbol,
                        shared ? kernel->symbol : names[i], kernel->text ? kernel->text : "");
        }
}

static int pack_kernels(const Signature *signature, char **ret_text) {
        size_t n_text, n = signature->n_kernels;
        char **names, *text = NULL;
        FILE *f = NULL;
        int r;

        names = calloc(n + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;

        r = make_names(signature, names);
        if (r == 0) {
                f = open_memstream(&text, &n_text);
                r = f ? 0 : -ENOMEM;
        }
        if (f) {
                write_kernels(f, signature, names);
                r = fclose(f) == 0 ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
        if (r < 0) {
                free(text);
                return r;
        }

        *ret_text = text;
        return 0;
}

static int pack_variables(const Signature *signature, char **ret_text) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        FILE *f;

        f = open_memstream(&text, &n_text);
        if (!f)
                return -ENOMEM;

        for (size_t i = 0; i < signature->n_variables; i++)
                fprintf(f, "%s\n", signature->variables[i]);
        if (fclose(f) != 0)
                return -ENOMEM;

        *ret_text = TAKE_PTR(text);
        return 0;
}

int signature_pack(const Signature *signature, char **ret_kernels, char **ret_variables) {
        _cleanup_(freep) char *kernels = NULL;
        int r;

        r = pack_kernels(signature, &kernels);
        if (r < 0)
                return r;

        r = pack_variables(signature, ret_variables);
        if (r < 0)
                return r;

        *ret_kernels = TAKE_PTR(kernels);
        return 0;
}

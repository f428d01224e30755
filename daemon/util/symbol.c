/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol
 *
 * Of the Itanium C++ ABI: _Z <length><name> …, or _ZN <part>… E, where a part is
 * <length><name> or template arguments I…E. Nothing that follows is read, but
 * template arguments inside N…E must be skipped to find a later part.
 */
#include "util/symbol.h"

#include <ctype.h>
#include <string.h>

/* <length><name>. Return: what follows, or NULL. */
static const char *symbol_name(const char *p, const char **ret_name, size_t *ret_n_name) {
        size_t n = 0;

        if (!isdigit((unsigned char)*p))
                return NULL;
        while (isdigit((unsigned char)*p)) {
                n = n * 10 + (size_t)(*p++ - '0');
                if (n > 65536)
                        return NULL;
        }
        if (n == 0 || strnlen(p, n) < n)
                return NULL;

        *ret_name = p;
        *ret_n_name = n;
        return p + n;
}

/* I … E, nested ones included; names inside are skipped as a whole. Return: what follows, or NULL. */
static const char *symbol_skip_arguments(const char *p) {
        unsigned depth = 0;

        do {
                const char *name;
                size_t n_name;

                if (!*p)
                        return NULL;
                if (isdigit((unsigned char)*p)) {
                        p = symbol_name(p, &name, &n_name);
                        if (!p)
                                return NULL;
                        continue;
                }
                if (*p == 'L') {
                        /* a literal: L <type> <value> E, whose value may begin with digits */
                        p = strchr(p, 'E');
                        if (!p)
                                return NULL;
                } else if (*p == 'I' || *p == 'N' || *p == 'J') {
                        ++depth;
                } else if (*p == 'E') {
                        --depth;
                }
                ++p;
        } while (depth > 0);

        return p;
}

static bool symbol_nested(const char *p, const char **ret_base, size_t *ret_n_base) {
        const char *base = NULL;
        size_t n_base = 0;

        p += strspn(p, "rVK"); /* qualifiers */
        while (*p && *p != 'E') {
                if (*p == 'L') /* internal linkage */
                        ++p;
                p = *p == 'I' ? symbol_skip_arguments(p) : symbol_name(p, &base, &n_base);
                if (!p)
                        return false;
        }
        if (!base || *p != 'E')
                return false;

        *ret_base = base;
        *ret_n_base = n_base;
        return true;
}

bool symbol_base(const char *symbol, const char **ret_base, size_t *ret_n_base) {
        if (strncmp(symbol, "_Z", 2) != 0)
                return false;

        symbol += 2;
        if (*symbol == 'N')
                return symbol_nested(symbol + 1, ret_base, ret_n_base);
        if (*symbol == 'L')
                ++symbol;
        return symbol_name(symbol, ret_base, ret_n_base) != NULL;
}

bool symbol_matches(const char *symbol, const char *name) {
        const char *base;
        size_t n_base;

        return symbol_base(symbol, &base, &n_base) && strlen(name) == n_base &&
               memcmp(base, name, n_base) == 0;
}

bool name_matches(const char *name, const char *plain) {
        size_t n = strcspn(name, "<("), n_plain = strlen(plain);

        if (n < n_plain || memcmp(name + n - n_plain, plain, n_plain) != 0)
                return false;
        return n == n_plain || name[n - n_plain - 1] == ':';
}

static bool symbol_starts(const char *symbol, const char *prefix) {
        return strncmp(symbol, prefix, strlen(prefix)) == 0;
}

bool symbol_is_device_runtime(const char *symbol) {
        /* What is static there has the name of its file in its own. */
        return strstr(symbol, "_cuda_device_runtime_cu_") || symbol_starts(symbol, "__cudaCDP2") ||
               symbol_starts(symbol, "cudartError") || symbol_starts(symbol, "__CNPRT_");
}

bool symbol_is_internal(const char *symbol) {
        return symbol_starts(symbol, SYMBOL_INTERNAL) || symbol_is_device_runtime(symbol);
}

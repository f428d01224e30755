/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The log is sent to the client in one frame; the first errors are the important ones. */
#define LOG_MAX (256u << 10)

int result_new(Result **ret_result) {
        _cleanup_(result_freep) Result *result = NULL;
        int r;

        result = calloc(1, sizeof(*result));
        if (!result)
                return -ENOMEM;

        r = signature_new(&result->signature);
        if (r < 0)
                return r;

        *ret_result = TAKE_PTR(result);
        return 0;
}

Result *result_free(Result *result) {
        if (!result)
                return NULL;

        for (size_t i = 0; i < result->n_named; i++)
                free(result->named[i]);
        free(result->named);
        signature_free(result->signature);
        free(result->log);
        free(result->sites);
        free(result->image);
        free(result);
        return NULL;
}

int result_fail(Result *result, CompiledStatus status, const char *format, ...) {
        char *text;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&text, format, ap);
        va_end(ap);
        if (n < 0)
                return -ENOMEM;

        free(result->log);
        free(result->image);
        result->image = NULL;
        result->n_image = 0;
        result->status = status;
        result->log = text;
        return 0;
}

void result_retry(Result *result) {
        free(result->log);
        result->log = NULL;
        result->status = COMPILED_OK;
        result->uncacheable = false;
}

int result_add_log(Result *result, const char *text) {
        size_t n_log = result->log ? strlen(result->log) : 0, n;
        char *log;

        if (!text || !*text || n_log >= LOG_MAX)
                return 0;

        n = strnlen(text, LOG_MAX - n_log);
        log = realloc(result->log, n_log + n + 1);
        if (!log)
                return -ENOMEM;

        memcpy(log + n_log, text, n);
        log[n_log + n] = '\0';
        result->log = log;
        return 0;
}

int result_set_image(Result *result, const void *image, size_t n_image) {
        void *copy;

        copy = malloc(n_image + !n_image);
        if (!copy)
                return -ENOMEM;

        if (n_image > 0)
                memcpy(copy, image, n_image);
        free(result->image);
        result->image = copy;
        result->n_image = n_image;
        return 0;
}

int result_name(Result *result, size_t n, size_t i, const char *symbol, size_t n_symbol) {
        char *copy;

        if (!result->named) {
                result->named = calloc(n, sizeof(*result->named));
                if (!result->named)
                        return -ENOMEM;
                result->n_named = n;
        }
        copy = strndup(symbol, n_symbol);
        if (!copy)
                return -ENOMEM;

        free(result->named[i]);
        result->named[i] = copy;
        return 0;
}

/* One a line. */
static char *pack_named(const Result *result) {
        size_t n_text = 0;
        char *text, *p;

        for (size_t i = 0; i < result->n_named; i++)
                n_text += strlen(result->named[i]) + 1;
        text = p = malloc(n_text + 1);
        if (!text)
                return NULL;

        *p = '\0';
        for (size_t i = 0; i < result->n_named; i++)
                p = stpcpy(stpcpy(p, result->named[i]), "\n");
        return text;
}

int result_pack(const Result *result, void **ret_data, size_t *ret_n_data) {
        _cleanup_(freep) char *kernels = NULL, *variables = NULL, *named = NULL;
        bool ok = result->status == COMPILED_OK;
        uint32_t flags = result->flags;
        int r;

        r = signature_pack(result->signature, &kernels, &variables);
        if (r < 0)
                return r;

        named = ok ? pack_named(result) : NULL;
        if (ok && !named)
                return -ENOMEM;

        if (ok && result->signature->has_printf)
                flags |= COMPILED_HAS_PRINTF;
        if (ok && result->signature->has_launches)
                flags |= COMPILED_HAS_LAUNCHES;
        if (ok && result->signature->n_variables > 0)
                flags |= COMPILED_HAS_VARIABLES;

        return compiled_pack(
                &(CompiledSections){.status = result->status,
                                    .flags = flags,
                                    .image = result->image,
                                    .n_image = result->n_image,
                                    .log = result->log,
                                    .n_log = result->log ? strlen(result->log) : 0,
                                    .signature = ok ? kernels : NULL,
                                    .n_signature = ok ? strlen(kernels) : 0,
                                    .variables = ok ? variables : NULL,
                                    .n_variables = ok ? strlen(variables) : 0,
                                    .named = named,
                                    .n_named = ok ? strlen(named) : 0,
                                    .sites = ok ? result->sites : NULL,
                                    .n_sites = ok && result->sites ? strlen(result->sites) : 0},
                ret_data, ret_n_data);
}

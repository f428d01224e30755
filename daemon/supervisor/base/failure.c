/* SPDX-License-Identifier: Apache-2.0 */
#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/text.h"

static Failure *failure_out_of_memory(void) {
        static struct {
                Failure failure;
                char text[48];
        } constant = {
                .failure = {.code = FAILURE_INTERNAL},
                .text = "gpuqd is out of memory",
        };

        return &constant.failure;
}

Failure *failure_new(int code, const char *format, ...) {
        _cleanup_(freep) char *text = NULL;
        Failure *failure;
        va_list args;
        int n;

        va_start(args, format);
        n = vasprintf(&text, format, args);
        va_end(args);
        if (n < 0) {
                text = NULL;
                return failure_out_of_memory();
        }

        n = (int)text_cut(text, FAILURE_TEXT_MAX);
        failure = malloc(sizeof(*failure) + n + 1);
        if (!failure)
                return failure_out_of_memory();

        failure->code = code;
        failure->root = 0;
        memcpy(failure->text, text, n);
        failure->text[n] = '\0';
        return failure;
}

static const char failure_depends_on[] = "the job depends on ";

Failure *failure_depends(uint64_t id, bool was_cancelled, int code, uint32_t root,
                         const char *text) {
        unsigned session = (unsigned)(id >> 32), tag = (unsigned)(id & UINT32_MAX);
        Failure *failure;
        char between[64];

        if (code != FAILURE_DEPENDENCY || !root || root >= strlen(text)) {
                failure = failure_new(FAILURE_DEPENDENCY, "%sjob %u.%u, which %s%.*s",
                                      failure_depends_on, session, tag,
                                      was_cancelled ? "was " : "failed: ",
                                      (int)text_cut(text, FAILURE_BRIEF_MAX), text);
                root = sizeof(failure_depends_on) - 1;
        } else {
                snprintf(between, sizeof(between), "job %u.%u, which depends on ", session, tag);
                failure = failure_new(FAILURE_DEPENDENCY, "%s%s%.*s", failure_depends_on, between,
                                      (int)text_cut(text + root, FAILURE_BRIEF_MAX), text + root);
                root = sizeof(failure_depends_on) - 1 + strlen(between);
        }
        if (failure->code == FAILURE_DEPENDENCY)
                failure->root = root;
        return failure;
}

Failure *failure_from_worker(uint32_t code, const char *text) {
        Failure *failure;

        if (code == GPUQ__V1__CODE__OK)
                return NULL;
        failure = failure_new(code > GPUQ__V1__CODE__E_INTERNAL ? FAILURE_INTERNAL : (int)code,
                              "%s", text);
        text_clean(failure->text);
        return failure;
}

Failure *failure_copy(const Failure *failure) {
        return failure ? failure_new(failure->code, "%s", failure->text) : NULL;
}

Failure *failure_brief(const Failure *failure) {
        return failure_new(failure->code, "%.*s", (int)text_cut(failure->text, FAILURE_BRIEF_MAX),
                           failure->text);
}

Failure *failure_free(Failure *failure) {
        if (failure && failure != failure_out_of_memory())
                free(failure);
        return NULL;
}

Gpuq__V1__Error failure_to_proto(const Failure *failure) {
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;

        error.code = (Gpuq__V1__Code)failure->code;
        error.text = (char *)failure->text;
        return error;
}

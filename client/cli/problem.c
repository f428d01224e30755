/* SPDX-License-Identifier: Apache-2.0 */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/text.h"

int problem_set(Problem *problem, int code, const char *format, ...) {
        char *text = NULL;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);

        free(problem->text);
        problem->text = r < 0 ? NULL : text_clean(text);
        return code;
}

void problem_prefix(Problem *problem, const char *format, ...) {
        _cleanup_(freep) char *prefix = NULL;
        char *text = NULL;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&prefix, format, args);
        va_end(args);
        if (r < 0) {
                prefix = NULL;
                return;
        }

        if (asprintf(&text, "%s%s", prefix, problem_text(problem)) < 0)
                return;

        free(problem->text);
        problem->text = text;
}

const char *problem_text(const Problem *problem) {
        return problem->text ? problem->text : "this process is out of memory";
}

void problem_clear(Problem *problem) {
        free(problem->text);
        problem->text = NULL;
}

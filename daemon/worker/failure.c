/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failure
 */
#include "worker/failure.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int failure_set(Failure *failure, Gpuq__V1__Code code, const char *format, ...) {
        va_list args;
        char *text = NULL;

        va_start(args, format);
        if (vasprintf(&text, format, args) < 0)
                text = NULL;
        va_end(args);

        free(failure->text); /* freed last: it may be an argument */
        failure->code = code;
        failure->is_device = false;
        failure->text = text ? text_clean(text) : NULL;
        return FAILURE_E_SET;
}

void failure_clear(Failure *failure) {
        free(failure->text);
        *failure = (Failure){0};
}

void failure_copy(Failure *to, const Failure *from) {
        bool is_device = from->is_device;

        failure_set(to, from->code, "%s", from->text ? from->text : "");
        to->is_device = is_device;
}

void failure_tell(const Failure *failure, WorkerMessage *message) {
        if (!failure_is_set(failure))
                return;

        message->head.code = failure->code;
        message->head.detail = failure->is_device;
        message->text = failure->text ? failure->text : "out of memory for the message";
}

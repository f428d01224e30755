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

/* Bytes of the UTF-8 sequence that starts here, 0 if there is none. */
static size_t text_sequence(const uint8_t *p) {
        size_t n;
        uint32_t c;

        if (p[0] < 0x80)
                return 1;
        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                n = 2;
        else if ((p[0] & 0xf0) == 0xe0)
                n = 3;
        else if (p[0] >= 0xf0 && p[0] <= 0xf4)
                n = 4;
        else
                return 0;

        c = p[0] & (0x7f >> n);
        for (size_t i = 1; i < n; ++i) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                c = c << 6 | (p[i] & 0x3f);
        }

        if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c <= 0xdfff))) ||
            (n == 4 && (c < 0x10000 || c > 0x10ffff)))
                return 0;
        return n;
}

char *text_clean(char *text) {
        uint8_t *p = (uint8_t *)text;

        while (*p) {
                size_t n = text_sequence(p);

                if (n == 0)
                        *p = '?';
                p += n ? n : 1;
        }
        return text;
}

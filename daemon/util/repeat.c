/* SPDX-License-Identifier: Apache-2.0 */
#include "util/repeat.h"

#include <stdio.h>
#include <string.h>

static bool repeat_is_same(const Repeat *repeat, int level, const char *text, uint64_t now_ns) {
        return *text && level == repeat->level && now_ns - repeat->first_ns < REPEAT_NS &&
               strcmp(text, repeat->text) == 0;
}

bool repeat_take(Repeat *repeat, int level, const char *text, uint64_t now_ns, Repeat *ret_before) {
        ret_before->n_counted = 0;
        if (!repeat_is_same(repeat, level, text, now_ns)) {
                *ret_before = *repeat;
                *repeat = (Repeat){.level = level, .first_ns = now_ns, .n_written = 1};
                snprintf(repeat->text, sizeof(repeat->text), "%s", text);
                return true;
        }
        if (repeat->n_written < REPEAT_WRITTEN) {
                repeat->n_written++;
                return true;
        }
        repeat->n_counted++;
        return false;
}

void repeat_end(Repeat *repeat, Repeat *ret_before) {
        *ret_before = *repeat;
        *repeat = (Repeat){};
}

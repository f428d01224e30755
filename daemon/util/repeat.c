/* SPDX-License-Identifier: Apache-2.0 */
#include "util/repeat.h"

#include <stdio.h>
#include <string.h>

bool repeat_take(Repeat *repeat, int level, const char *text, uint64_t now_ns, unsigned *ret_n,
                 int *ret_level) {
        if (*text && level == repeat->level && now_ns - repeat->written_ns < REPEAT_NS &&
            strcmp(text, repeat->text) == 0) {
                repeat->n++;
                return false;
        }
        *ret_n = repeat->n;
        *ret_level = repeat->level;
        snprintf(repeat->text, sizeof(repeat->text), "%s", text);
        repeat->level = level;
        repeat->written_ns = now_ns;
        repeat->n = 0;
        return true;
}

unsigned repeat_end(Repeat *repeat) {
        unsigned n = repeat->n;

        *repeat = (Repeat){.level = repeat->level};
        return n;
}

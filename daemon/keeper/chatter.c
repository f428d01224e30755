/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chatter
 *
 * See chatter.h. What is over the budget stays in the pipe, and its writer loses what does not fit.
 */

#include "keeper/chatter.h"

#include <fcntl.h>
#include <string.h>

#include "util/macro.h"

int chatter_init(Chatter *chatter, int *ret_end) {
        int ends[2];

        *chatter = (Chatter){
                .fd = -1,
                .budget = {.n_max = CHATTER_LINES_MAX, .per_s = CHATTER_PER_S},
        };
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        chatter->fd = ends[0];
        *ret_end = ends[1];
        return 0;
}

void chatter_finish(Chatter *chatter) {
        closep(&chatter->fd);
        chatter->fd = -1;
}

static void chatter_tell(Chatter *chatter, ChatterLine line, void *userdata) {
        chatter->line[chatter->n_line] = '\0';
        if (chatter->n_line)
                line(chatter->line, userdata);
        chatter->n_line = 0;
}

/* Up to the end of one line. Return: false: there is none yet, or nothing more to read. */
static bool chatter_take_line(Chatter *chatter) {
        ssize_t n = 1;
        char byte;

        while (chatter->n_line < CHATTER_LINE_MAX) {
                n = read(chatter->fd, &byte, 1);
                if (n == 0) /* closed: it would count as readable for ever */
                        chatter_finish(chatter);
                if (n != 1)
                        return false;
                if (byte == '\n')
                        return true;
                chatter->line[chatter->n_line++] = byte ? byte : ' ';
        }
        return true;
}

static bool chatter_is_over(const Chatter *chatter, uint64_t now_ms) {
        return budget_free_at(&chatter->budget) > now_ms;
}

bool chatter_read(Chatter *chatter, uint64_t now_ms, ChatterLine line, void *userdata) {
        while (chatter->fd >= 0 && !chatter_is_over(chatter, now_ms)) {
                if (!chatter_take_line(chatter))
                        return false;
                (void)budget_take(&chatter->budget, now_ms);
                chatter_tell(chatter, line, userdata);
        }
        return chatter->fd >= 0;
}

uint64_t chatter_free_at(const Chatter *chatter) {
        return budget_free_at(&chatter->budget);
}

void chatter_end(Chatter *chatter, uint64_t now_ms, ChatterLine line, void *userdata) {
        if (!chatter_read(chatter, now_ms, line, userdata))
                chatter_tell(chatter, line, userdata);
        chatter_finish(chatter);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table
 */
#include "util/table.h"

#include <sys/random.h>

/* Used if there is no getrandom(): the hash distributes as well, but clients could know it. */
uint64_t table_salt = UINT64_C(0x2545f4914f6cdd1d);
uint64_t table_factor = UINT64_C(0x9e3779b97f4a7c15);

__attribute__((constructor)) static void table_draw(void) {
        uint64_t drawn[2];

        if (getrandom(drawn, sizeof(drawn), 0) != (ssize_t)sizeof(drawn))
                return;
        table_salt = drawn[0];
        table_factor = drawn[1] | 1;
}

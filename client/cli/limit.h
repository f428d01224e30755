/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_LIMIT_H
#define GPUQ_CLI_LIMIT_H

/*
 * Limit
 *
 * Limits of gpuqd.conf in tables.
 */

#include <gpuq.h>

#include "table.h"

/** limit_cells() - five of them: key, used, allowed, left, and what it limits. */
void limit_cells(Table *table, const gpuq_user_limit *limit);
/** limit_part() - the part of what the user may have that is used, 0 to 1; less than 0: there is no limit. */
double limit_part(const gpuq_user_limit *limit);

#endif

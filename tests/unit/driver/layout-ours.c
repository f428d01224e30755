/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include "driver/driver.h"

const Layout layout_ours[] = {
#include "layout.inc"
        {NULL, 0},
};

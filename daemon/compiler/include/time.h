/* SPDX-License-Identifier: Apache-2.0 */
/* clock() and clock_t are there without including anything; a kernel has no other clock. */
#pragma once
typedef long time_t;

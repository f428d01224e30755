/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels use of it is there without including anything. */
#pragma once

/* SPDX-License-Identifier: Apache-2.0 */
/* For source that uses int64_t and the like without an include, as nvcc allows. */
#pragma once
#include <gpuq_types.h>
#include <stdint.h>

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <gpuq_types.h>
#include <stddef.h>
#include <stdint.h>
typedef long ssize_t;

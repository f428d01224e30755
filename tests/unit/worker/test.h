/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_WORKER_H
#define GPUQ_TEST_WORKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif

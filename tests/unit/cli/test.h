/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_TEST_CLI_H
#define GPUQ_TEST_CLI_H

/* cmocka wants these before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The text holds the words; says both if not. */
#define assert_text_has(text, words)                                                               \
        do {                                                                                       \
                if (!strstr(text, words))                                                          \
                        fail_msg("`%s' lacks `%s'", text, words);                                  \
        } while (0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_KERNEL_OUTPUT_H
#define GPUQ_CPU_KERNEL_OUTPUT_H

/*
 * printf() and assert() of kernels.
 */

static inline void gpuq_cpu_print(const char *format, ...) {
        va_list arguments;

        /* An image that contains this code has the section that declares that it prints. */
        __asm__(".pushsection gpuq_cpu_printf,\"a\",%progbits\n.byte 1\n.popsection");
        va_start(arguments, format);
        gpuq_cpu_image.runtime->print(format, arguments);
        va_end(arguments);
}

/* Gives the number of arguments, as CUDA's does. */
template <class... Arguments>
static inline int gpuq_cpu_printf(const char *format, Arguments... arguments) {
        gpuq_cpu_print(format, arguments...);
        return (int)sizeof...(arguments);
}
#define printf(...) gpuq_cpu_printf(__VA_ARGS__)
namespace std {
using ::gpuq_cpu_printf;
}

static inline __attribute__((noreturn)) void
gpuq_cpu_assert_fail(const char *text, const char *file, unsigned int line, const char *function) {
        gpuq_cpu_image.runtime->assertion(text, file, line, function);
}
/* assert.h may be included again and define assert() anew: what it calls is caught instead. */
#define __assert_fail gpuq_cpu_assert_fail

#endif

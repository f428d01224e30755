/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CPU_PTX_OUTPUT_H
#define GPUQ_CPU_PTX_OUTPUT_H

/*
 * What the CUDA runtime provides to device code: vprintf(), assertions, memory.
 */

#ifdef PTX_PRINTS

#define PTX_TEXT_MAX 4096
#define PTX_SPEC_MAX 32

static const char ptx_prints __attribute__((used, section(GPUQ_CPU_PRINTF))) = 1;

static void ptx_print(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        gpuq_cpu_image.runtime->print(format, arguments);
        va_end(arguments);
}

/* Arguments lie one behind the other, each at a multiple of its size. */
static const void *ptx_argument(const char **at, size_t size) {
        uintptr_t here = ((uintptr_t)*at + size - 1) / size * size;

        *at = (const char *)(here + size);
        return (const void *)here;
}

static int32_t ptx_int_argument(const char **at) {
        return *(const int32_t *)ptx_argument(at, 4);
}

/* One conversion: "%", flags, width, precision, length and letter. Return: what it printed. */
static int ptx_convert(char *text, size_t n, const char *spec, const char **arguments) {
        size_t length = strlen(spec);
        char letter = spec[length - 1];
        int is_long =
                strchr(spec, 'l') || strchr(spec, 'j') || strchr(spec, 'z') || strchr(spec, 't');

        if (letter == '%')
                return snprintf(text, n, "%%");
        if (strchr("diouxXc", letter) && is_long && letter != 'c')
                return snprintf(text, n, spec, *(const int64_t *)ptx_argument(arguments, 8));
        if (strchr("diouxXc", letter))
                return snprintf(text, n, spec, ptx_int_argument(arguments));
        if (strchr("eEfFgGaA", letter))
                return snprintf(text, n, spec, *(const double *)ptx_argument(arguments, 8));
        if (letter == 's' || letter == 'p')
                return snprintf(text, n, spec, *(const char *const *)ptx_argument(arguments, 8));
        return snprintf(text, n, "%s", spec);
}

/* Copies a conversion to @spec with the numbers that stars stand for. Return: behind it. */
static const char *ptx_read_spec(const char *s, char *spec, const char **arguments) {
        size_t n = 0;

        spec[n++] = *s++;
        while (*s && strchr("-+ #0123456789.*hljztL", *s) && n < PTX_SPEC_MAX - 14) {
                if (*s == '*')
                        n += (size_t)snprintf(spec + n, 12, "%d", ptx_int_argument(arguments));
                else
                        spec[n++] = *s;
                s++;
        }
        if (*s)
                spec[n++] = *s++;
        spec[n] = '\0';
        return s;
}

static uint32_t ptx_vprintf(uint64_t format, uint64_t arguments_) {
        const char *s = (const char *)format, *arguments = (const char *)arguments_;
        char text[PTX_TEXT_MAX], spec[PTX_SPEC_MAX];
        size_t n = 0;
        uint32_t n_conversions = 0;

        while (*s && n < sizeof(text) - 1) {
                int printed;

                if (*s != '%') {
                        text[n++] = *s++;
                        continue;
                }
                s = ptx_read_spec(s, spec, &arguments);
                n_conversions += strcmp(spec, "%%") != 0;
                printed = ptx_convert(text + n, sizeof(text) - n, spec, &arguments);
                n += printed < 0 ? 0 : (size_t)printed;
                if (n > sizeof(text) - 1)
                        n = sizeof(text) - 1;
        }
        text[n] = '\0';
        ptx_print("%s", text);
        return n_conversions;
}

#endif

PTX_CALL void ptx_assertfail(uint64_t text, uint64_t file, uint32_t line, uint64_t function) {
        gpuq_cpu_image.runtime->assertion((const char *)text, (const char *)file, line,
                                          (const char *)function);
}

#endif

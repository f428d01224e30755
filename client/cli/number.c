/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/* Leaves @ret_end at the first character that is no digit. */
static int number_digits(const char *text, uint64_t *ret_value, const char **ret_end) {
        int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
        const char *digits = base == 16 ? text + 2 : text;
        char *end = NULL;

        /* strtoull() would take blanks, a sign and a second 0x. */
        if (base == 16 ? !isxdigit((unsigned char)digits[0]) : !isdigit((unsigned char)digits[0]))
                return -EINVAL;
        if (base == 16 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
                return -EINVAL;

        errno = 0;
        *ret_value = strtoull(digits, &end, base);
        *ret_end = end;
        return errno == ERANGE ? -ERANGE : 0;
}

int number_unsigned(const char *text, uint64_t max, uint64_t *ret_value) {
        const char *end = NULL;
        uint64_t value;
        int r;

        r = number_digits(text, &value, &end);
        if (r == -EINVAL || (end && *end))
                return -EINVAL;
        if (r < 0 || value > max)
                return -ERANGE;

        *ret_value = value;
        return 0;
}

int number_signed(const char *text, int64_t min, int64_t max, int64_t *ret_value) {
        bool negative = text[0] == '-';
        uint64_t limit = negative ? -(uint64_t)min : (uint64_t)max;
        uint64_t value;
        int r;

        if (text[0] == '-' || text[0] == '+')
                text++;
        r = number_unsigned(text, limit, &value);
        if (r < 0)
                return r;

        *ret_value = negative ? (int64_t)-value : (int64_t)value;
        return 0;
}

int number_float(const char *text, int narrow, double *ret_value) {
        char *end = NULL;
        double value;

        if (!*text || isspace((unsigned char)*text))
                return -EINVAL;

        errno = 0;
        value = narrow ? (double)strtof(text, &end) : strtod(text, &end);
        if (end == text || *end)
                return -EINVAL;
        /* Too small becomes zero or a denormal, as everywhere; too large would silently be inf. */
        if (errno == ERANGE && isinf(value))
                return -ERANGE;

        *ret_value = value;
        return 0;
}

static int number_unit(const char *unit, unsigned *ret_shift) {
        static const char units[] = "KMG";
        const char *found;

        if (!*unit) {
                *ret_shift = 0;
                return 0;
        }
        found = strchr(units, toupper((unsigned char)*unit));
        if (!found || unit[1])
                return -EINVAL;

        *ret_shift = 10 * (unsigned)(found - units + 1);
        return 0;
}

int number_bytes(const char *text, uint64_t max, uint64_t *ret_bytes) {
        const char *end = NULL;
        uint64_t value;
        unsigned shift;
        int r;

        r = number_digits(text, &value, &end);
        if (r < 0)
                return r;
        r = number_unit(end, &shift);
        if (r < 0)
                return r;
        if (value > max >> shift)
                return -ERANGE;

        *ret_bytes = value << shift;
        return 0;
}

int number_ms(const char *text, uint32_t *ret_ms) {
        double seconds;
        int r;

        r = number_float(text, 0, &seconds);
        if (r < 0)
                return r;
        if (!(seconds > 0) || seconds * 1000 > UINT32_MAX)
                return -ERANGE;

        *ret_ms = (uint32_t)ceil(seconds * 1000);
        return 0;
}

int number_dims(const char *text, unsigned ret_dims[3]) {
        unsigned dims[3] = {1, 1, 1};
        _cleanup_(freep) char *copy = strdup(text);
        char *rest = copy;
        uint64_t value;
        int r;

        if (!copy)
                return -ENOMEM;

        for (size_t i = 0; rest; i++) {
                char *word = strsep(&rest, ",");

                if (i == ARRAY_SIZE(dims))
                        return -EINVAL;
                r = number_unsigned(word, UINT32_MAX, &value);
                if (r < 0)
                        return r;
                if (value == 0)
                        return -ERANGE;
                dims[i] = (unsigned)value;
        }

        memcpy(ret_dims, dims, sizeof(dims));
        return 0;
}

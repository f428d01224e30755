/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job ids as people write them: "12.3" is job 3 of session 12.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gpuq.h>

#include "error.h"

#define ID_BYTES 24 /* what the header promises to need at most */

char *gpuq_id_format(uint64_t id, char *text) {
        snprintf(text, ID_BYTES, "%" PRIu32 ".%" PRIu32, (uint32_t)(id >> 32), (uint32_t)id);
        return text;
}

/* Digits only: strtoull() would also take blanks, signs and an empty text. */
static int id_parse_number(const char **text, uint64_t max, uint64_t *ret_number) {
        const char *p = *text;
        uint64_t number = 0;

        if (*p < '0' || *p > '9')
                return -EINVAL;

        for (; *p >= '0' && *p <= '9'; p++) {
                unsigned digit = (unsigned)(*p - '0');

                if (number > (max - digit) / 10)
                        return -ERANGE;
                number = number * 10 + digit;
        }

        *text = p;
        *ret_number = number;
        return 0;
}

static int id_parse(const char *text, uint64_t *ret_id) {
        uint64_t session, tag;
        int r;

        if (!strchr(text, '.')) {
                r = id_parse_number(&text, UINT64_MAX, ret_id);
                return r < 0 || *text == '\0' ? r : -EINVAL;
        }

        r = id_parse_number(&text, UINT32_MAX, &session);
        if (r < 0)
                return r;
        if (*text++ != '.')
                return -EINVAL;

        r = id_parse_number(&text, UINT32_MAX, &tag);
        if (r < 0)
                return r;
        if (*text != '\0')
                return -EINVAL;

        *ret_id = session << 32 | tag;
        return 0;
}

int gpuq_id_parse(const char *text, uint64_t *ret_id) {
        uint64_t id;

        if (id_parse(text, &id) < 0)
                return error_set(GPUQ_E_INVALID,
                                 "\"%s\" is not a job id: SESSION.NUMBER, such as 12.3", text);

        *ret_id = id;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/sms.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

bool sms_are_valid(Sms sms) {
        return sms.is_percent ? sms.n >= 1 && sms.n <= 99 : sms.n <= SMS_MAX;
}

bool sms_parse(const char *text, Sms *ret_sms) {
        unsigned long n;
        char *end;
        bool is_percent;

        if (strcmp(text, "all") == 0) {
                *ret_sms = (Sms){};
                return true;
        }
        if (!isdigit((unsigned char)*text))
                return false;
        n = strtoul(text, &end, 10);
        is_percent = *end == '%';
        if (end[is_percent] || n < 1 || n > (is_percent ? 100 : SMS_MAX))
                return false;

        *ret_sms = is_percent && n == 100
                           ? (Sms){}
                           : (Sms){.n = (uint32_t)n & SMS_MAX, .is_percent = is_percent};
        return true;
}

const char *sms_text(Sms sms, char text[static SMS_TEXT]) {
        if (sms_are_all(sms))
                return strcpy(text, "all");
        snprintf(text, SMS_TEXT, "%u%s", (unsigned)sms.n, sms.is_percent ? "%" : "");
        return text;
}

unsigned sms_count(Sms sms, unsigned n_all, unsigned n_least, unsigned n_step) {
        uint64_t n = sms.is_percent ? ((uint64_t)n_all * sms.n + 99) / 100 : sms.n;

        if (sms_are_all(sms))
                return n_all;
        n = MAX(n, (uint64_t)n_least);
        n = (n + n_step - 1) / n_step * n_step;
        return (unsigned)MIN(n, (uint64_t)n_all);
}

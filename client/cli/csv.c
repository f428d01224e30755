/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include <stdio.h>
#include <string.h>

static void csv_next(Csv *csv) {
        if (csv->is_within)
                putchar(',');
        csv->is_within = true;
}

void csv_text(Csv *csv, const char *text) {
        csv_next(csv);
        if (!strpbrk(text, ",\"\r\n")) {
                fputs(text, stdout);
                return;
        }
        putchar('"');
        for (; *text; text++) {
                if (*text == '"')
                        putchar('"');
                putchar(*text);
        }
        putchar('"');
}

void csv_number(Csv *csv, uint64_t value) {
        csv_next(csv);
        printf("%llu", (unsigned long long)value);
}

void csv_seconds(Csv *csv, uint64_t ns) {
        csv_next(csv);
        printf("%llu.%06llu", (unsigned long long)(ns / 1000000000),
               (unsigned long long)(ns % 1000000000 / 1000));
}

void csv_end(Csv *csv) {
        putchar('\n');
        csv->is_within = false;
}

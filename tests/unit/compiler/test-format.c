/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats are told from first bytes, and what is none of them is never taken for one.
 */

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/format.h"
#include "util/macro.h"

static Format detect(const char *text) {
        return format_detect(text, strlen(text));
}

static Format detect_elf(uint16_t machine) {
        Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
                             .e_machine = machine};

        return format_detect(&header, sizeof(header));
}

static void ptx_has_both_directives(void **state) {
        assert_int_equal(detect("// made\n.version 6.0\n  .target sm_60\n.address_size 64\n"),
                         FORMAT_PTX);
        assert_int_equal(format_detect(".version 6.0\n.target sm_60\n", 28),
                         FORMAT_PTX); /* with its zero byte */
        assert_int_equal(detect("// .version 6.0\n// .target sm_60\n"), FORMAT_SOURCE);
        assert_int_equal(detect(".version 6.0\n"), FORMAT_SOURCE);
}

static void other_text_is_source(void **state) {
        assert_int_equal(detect("__global__ void f() {}\n"), FORMAT_SOURCE);
        assert_int_equal(detect("/* \xc3\xa9 */ __global__ void f() {}\n"), FORMAT_SOURCE);
        assert_int_equal(detect("hello"), FORMAT_SOURCE);
}

static void elf_is_told_by_its_machine(void **state) {
        assert_int_equal(detect_elf(190), FORMAT_CUBIN);
        assert_int_equal(detect_elf(EM_X86_64), FORMAT_HOST_ELF);
        assert_int_equal(detect_elf(EM_AARCH64), FORMAT_HOST_ELF);
        assert_int_equal(format_detect(ELFMAG, 4), FORMAT_UNKNOWN);
}

static void fatbin_is_told_with_its_wrapper_or_without(void **state) {
        assert_int_equal(format_detect("\x50\xed\x55\xba\x01\x00\x10\x00", 8), FORMAT_FATBIN);
        assert_int_equal(format_detect("\xb1\x43\x62\x46\x01\x00\x00\x00", 8), FORMAT_FATBIN);
}

static void the_rest_is_unknown_and_described(void **state) {
        char text[80];

        assert_int_equal(format_detect("", 0), FORMAT_UNKNOWN);
        assert_int_equal(format_detect("\0\0\0", 3), FORMAT_UNKNOWN);
        assert_int_equal(format_detect("PK\x03\x04zip", 7), FORMAT_UNKNOWN);
        format_describe("PK\x03\x04zip", 7, text, sizeof(text));
        assert_string_equal(text, "starts with 50 4b 03 04 7a 69 70 \"PK..zip\"");
        format_describe("", 0, text, sizeof(text));
        assert_string_equal(text, "is empty");
        format_describe("PK\x03\x04zip", 7, text, 16); /* no room: cut, not overrun */
        assert_int_equal(strlen(text), 15);
}

static void names_go_both_ways(void **state) {
        Format format = FORMAT_UNKNOWN;

        assert_int_equal(format_parse("fatbin", &format), 0);
        assert_int_equal(format, FORMAT_FATBIN);
        assert_string_equal(format_name(FORMAT_PTX), "ptx");
        assert_string_equal(format_name(FORMAT_UNKNOWN), "?");
        assert_int_equal(format_parse("elf", &format), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ptx_has_both_directives),
                cmocka_unit_test(other_text_is_source),
                cmocka_unit_test(elf_is_told_by_its_machine),
                cmocka_unit_test(fatbin_is_told_with_its_wrapper_or_without),
                cmocka_unit_test(the_rest_is_unknown_and_described),
                cmocka_unit_test(names_go_both_ways),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

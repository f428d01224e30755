/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of gpuqd-compiler: what is packed comes back, and nothing that a
 * taken-over compiler could write instead is believed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/compiled.h"

static const char signature[] = "pplw\t_Z1fIfEvPT_\tf<float>\t\n-\tg\tg\ttwo\\nlines\n?\th\th\t\n";
static const char variables[] = "counter\ntable\n";
static const char named[] = "g\n_Z1fIfEvPT_\n";

static void pack(CompiledSections sections, void **ret_data, size_t *ret_n) {
        assert_int_equal(compiled_pack(&sections, ret_data, ret_n), 0);
}

static void pack_example(void **ret_data, size_t *ret_n) {
        pack((CompiledSections){.flags = COMPILED_HAS_PRINTF,
                                .image = "image",
                                .n_image = 5,
                                .log = "warning: w\n",
                                .n_log = 11,
                                .signature = signature,
                                .n_signature = strlen(signature),
                                .variables = variables,
                                .n_variables = strlen(variables),
                                .named = named,
                                .n_named = strlen(named),
                                .sites = "load\t-\tld\n",
                                .n_sites = 10},
             ret_data, ret_n);
}

static void what_is_packed_comes_back(void **state) {
        _cleanup_(freep) void *data = NULL;
        _cleanup_(compiled_freep) Compiled *c = NULL;
        size_t n;

        pack_example(&data, &n);
        assert_int_equal(compiled_parse(data, n, &c), 0);
        assert_int_equal(c->status, COMPILED_OK);
        assert_int_equal(c->flags, COMPILED_HAS_PRINTF);
        assert_int_equal(c->n_image, 5);
        assert_memory_equal(c->image, "image", 5);
        assert_string_equal(c->log, "warning: w\n");
        assert_int_equal(c->n_kernels, 3);
        assert_string_equal(c->kernels[0].symbol, "_Z1fIfEvPT_");
        assert_string_equal(c->kernels[0].name, "f<float>");
        assert_int_equal(c->kernels[0].n_kinds, 4);
        assert_true(c->kernels[0].kinds_known);
        assert_memory_equal(c->kernels[0].kinds, ((uint8_t[]){1, 1, 3, 8}), 4);
        assert_true(c->kernels[1].kinds_known);
        assert_int_equal(c->kernels[1].n_kinds, 0);
        assert_string_equal(c->kernels[1].text, "two\nlines");
        assert_false(c->kernels[2].kinds_known);
        assert_int_equal(c->n_variables, 2);
        assert_string_equal(c->variables[1], "table");
        assert_int_equal(c->n_named, 2);
        assert_string_equal(c->named[0], "g");
        assert_string_equal(c->named[1], "_Z1fIfEvPT_");
        assert_string_equal(c->sites, "load\t-\tld\n");
}

static void an_error_needs_no_image(void **state) {
        _cleanup_(freep) void *data = NULL;
        _cleanup_(compiled_freep) Compiled *c = NULL;
        size_t n;

        pack((CompiledSections){.status = COMPILED_FAILED, .log = "no", .n_log = 2}, &data, &n);
        assert_int_equal(compiled_parse(data, n, &c), 0);
        assert_int_equal(c->status, COMPILED_FAILED);
        assert_string_equal(c->log, "no");
        assert_string_equal(c->sites, "");
        assert_int_equal(c->n_kernels, 0);
}

static void success_without_an_image_is_broken(void **state) {
        _cleanup_(freep) void *data = NULL;
        Compiled *c = NULL;
        size_t n;

        pack((CompiledSections){.status = COMPILED_OK}, &data, &n);
        assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
}

static void every_shorter_result_is_broken(void **state) {
        _cleanup_(freep) void *data = NULL;
        size_t n;

        pack_example(&data, &n);
        for (size_t cut = 0; cut < n; cut++) {
                _cleanup_(freep) void *part =
                        malloc(cut + !cut); /* exact, for the address sanitizer */
                Compiled *c = NULL;

                memcpy(part, data, cut);
                assert_int_equal(compiled_parse(part, cut, &c), COMPILED_E_BROKEN);
                assert_null(c);
        }
}

static void lengths_that_lie_are_broken(void **state) {
        static const uint64_t lies[] = {UINT64_MAX, UINT64_MAX - 55, 1ull << 63, 1u << 20, 6};
        _cleanup_(freep) void *data = NULL;
        size_t n;

        pack_example(&data, &n);
        for (size_t field = 16; field < COMPILED_HEADER_BYTES; field += 8) {
                for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
                        _cleanup_(freep) void *copy = malloc(n);
                        Compiled *c = NULL;

                        memcpy(copy, data, n);
                        memcpy((char *)copy + field, &lies[i], 8);
                        assert_int_equal(compiled_parse(copy, n, &c), COMPILED_E_BROKEN);
                }
        }
}

static void unknown_status_and_flags_are_broken(void **state) {
        _cleanup_(freep) void *data = NULL;
        Compiled *c = NULL;
        size_t n;

        pack_example(&data, &n);
        ((char *)data)[8] = _COMPILED_STATUS_N;
        assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
        ((char *)data)[8] = 0;
        ((char *)data)[12] = (char)(_COMPILED_FLAGS + 1);
        assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
}

static void a_signature_that_is_not_one_is_broken(void **state) {
        static const char *const bad[] = {
                "p\tf\tf",    "p\tf\tf\t",  "p\tf\n", "x\tf\tf\t\n",   "\tf\tf\t\n",
                "p\t\tf\t\n", "p\tf\t\t\n", "\n",     "p\tf\tf\t\n\n", "pp?\tf\tf\t\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_(freep) void *data = NULL;
                Compiled *c = NULL;
                size_t n;

                pack((CompiledSections){.image = "i",
                                        .n_image = 1,
                                        .signature = bad[i],
                                        .n_signature = strlen(bad[i])},
                     &data, &n);
                assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
        }
}

static void a_zero_byte_in_a_signature_is_broken(void **state) {
        _cleanup_(freep) void *data = NULL;
        Compiled *c = NULL;
        size_t n;

        pack(
                (CompiledSections){
                        .image = "i", .n_image = 1, .signature = "p\tf\0\tf\t\n", .n_signature = 8},
                &data, &n);
        assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
}

static void named_kernels_without_a_name_are_broken(void **state) {
        static const char *const bad[] = {"a", "\n", "a\n\nb\n"};

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_(freep) void *data = NULL;
                Compiled *c = NULL;
                size_t n;

                pack((CompiledSections){.image = "i",
                                        .n_image = 1,
                                        .named = bad[i],
                                        .n_named = strlen(bad[i])},
                     &data, &n);
                assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
        }
}

static void variables_without_a_name_are_broken(void **state) {
        static const char *const bad[] = {"a", "\n", "a\n\nb\n"};

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _cleanup_(freep) void *data = NULL;
                Compiled *c = NULL;
                size_t n;

                pack((CompiledSections){.image = "i",
                                        .n_image = 1,
                                        .variables = bad[i],
                                        .n_variables = strlen(bad[i])},
                     &data, &n);
                assert_int_equal(compiled_parse(data, n, &c), COMPILED_E_BROKEN);
        }
}

static void any_changed_byte_never_crashes(void **state) {
        _cleanup_(freep) void *data = NULL;
        size_t n;

        pack_example(&data, &n);
        for (size_t at = 0; at < n; at++) {
                for (unsigned bit = 0; bit < 8; bit++) {
                        _cleanup_(compiled_freep) Compiled *c = NULL;

                        ((char *)data)[at] ^= 1 << bit;
                        (void)compiled_parse(data, n, &c);
                        ((char *)data)[at] ^= 1 << bit;
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_packed_comes_back),
                cmocka_unit_test(an_error_needs_no_image),
                cmocka_unit_test(success_without_an_image_is_broken),
                cmocka_unit_test(every_shorter_result_is_broken),
                cmocka_unit_test(lengths_that_lie_are_broken),
                cmocka_unit_test(unknown_status_and_flags_are_broken),
                cmocka_unit_test(a_signature_that_is_not_one_is_broken),
                cmocka_unit_test(a_zero_byte_in_a_signature_is_broken),
                cmocka_unit_test(variables_without_a_name_are_broken),
                cmocka_unit_test(named_kernels_without_a_name_are_broken),
                cmocka_unit_test(any_changed_byte_never_crashes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

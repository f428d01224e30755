/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of cubins and fatbins, on what nvcc makes of module.cu for sm_80 and
 * sm_90 with PTX for sm_90; skipped where there is no nvcc. $GPUQ_TEST_FATBIN names it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/cubin.h"
#include "compiler/fatbin.h"

static char *image;
static size_t n_image;

static int load(void **state) {
        return backend_read_file(getenv("GPUQ_TEST_FATBIN"), &image, &n_image);
}

static int unload(void **state) {
        free(image);
        return 0;
}

static FatbinEntry find(unsigned sm) {
        FatbinEntry entry;

        assert_int_equal(fatbin_find(image, n_image, sm, &entry), 0);
        return entry;
}

static void the_best_cubin_for_a_device_is_found(void **state) {
        FatbinEntry entry = find(90);

        assert_int_equal(entry.sm, 90);
        assert_int_equal(entry.kind, FATBIN_CUBIN);
        assert_int_equal(find(80).sm, 80);
        assert_int_equal(find(89).sm, 80);
        assert_int_equal(fatbin_find(image, n_image, 75, &entry), FATBIN_E_END);
        assert_int_equal(fatbin_find(image, n_image, 100, &entry), FATBIN_E_END);
}

static void a_fatbin_says_what_it_has(void **state) {
        char text[80];

        fatbin_describe(image, n_image, text, sizeof(text));
        assert_string_equal(text, "sm_80, sm_90, PTX for sm_90");
        fatbin_describe("", 0, text, sizeof(text));
        assert_string_equal(text, "nothing");
}

static void a_cubin_tells_its_kernels_and_variables(void **state) {
        _cleanup_(signature_freep) Signature *s = NULL;
        FatbinEntry entry = find(90);
        unsigned sm = 0;

        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(cubin_scan(entry.data, entry.n_data, s, &sm), 0);
        assert_int_equal(sm, 90);
        assert_int_equal(s->n_kernels, 2);
        assert_non_null(signature_find(s, "first"));
        assert_non_null(signature_find(s, "_Z6secondPd"));
        assert_null(signature_find(s, "first")->kinds);
        assert_int_equal(s->n_variables, 2);
        assert_true(s->has_printf);
}

/* Of a linked image: the user's kernels alone, and nothing to link. */
static void assert_has_runtime(const Result *result) {
        _cleanup_(signature_freep) Signature *s = NULL;
        unsigned sm;

        assert_int_equal(result->status, COMPILED_OK);
        assert_string_equal(result->log ? result->log : "", "");
        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(cubin_scan(result->image, result->n_image, s, &sm), 0);
        assert_true(s->has_launches);
        assert_false(s->lacks_runtime);
        assert_int_equal(s->n_kernels, 2);
        assert_int_equal(s->n_variables, 0);
}

static void assert_links(Format format, const void *data, size_t n_data) {
        Request request = {.sm = 90, .name = "launches"};
        _cleanup_(result_freep) Result *result = NULL;

        assert_int_equal(result_new(&result), 0);
        assert_int_equal(link_image(&request, result, format, data, n_data), 0);
        if (result->status != COMPILED_NO_COMPILER) /* not on this machine */
                assert_has_runtime(result);
}

static void a_cubin_or_fatbin_without_the_device_runtime_is_linked_with_it(void **state) {
        _cleanup_(signature_freep) Signature *s = NULL;
        _cleanup_(freep) char *launches = NULL;
        size_t n_launches;
        FatbinEntry entry;
        unsigned sm;

        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_LAUNCHES"), &launches, &n_launches),
                         0);
        assert_int_equal(fatbin_find(launches, n_launches, 90, &entry), 0);
        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(cubin_scan(entry.data, entry.n_data, s, &sm), 0);
        assert_true(s->has_launches && s->lacks_runtime);

        assert_links(FORMAT_CUBIN, entry.data, entry.n_data);
        assert_links(FORMAT_FATBIN, launches, n_launches);
}

static void every_shorter_image_is_broken_or_smaller(void **state) {
        for (size_t n = 0; n < n_image; n += 7) {
                _cleanup_(freep) char *part = malloc(n + !n);
                FatbinEntry entry;

                memcpy(part, image, n);
                assert_int_equal(fatbin_find(part, n, 90, &entry), FATBIN_E_BROKEN);
        }
}

static void changed_bytes_do_no_harm(void **state) {
        FatbinEntry entry = find(90);
        _cleanup_(freep) char *copy = malloc(entry.n_data);

        for (size_t at = 0; at < entry.n_data; at++) {
                _cleanup_(signature_freep) Signature *s = NULL;
                unsigned sm;

                memcpy(copy, entry.data, entry.n_data);
                copy[at] ^= 0xff;
                assert_int_equal(signature_new(&s), 0);
                assert_true(cubin_scan(copy, entry.n_data, s, &sm) >= 0);
        }
        for (size_t n = 0; n < entry.n_data; n += 13) {
                _cleanup_(signature_freep) Signature *s = NULL;
                _cleanup_(freep) char *part = malloc(n + !n);
                unsigned sm;

                memcpy(part, entry.data, n);
                assert_int_equal(signature_new(&s), 0);
                assert_true(cubin_scan(part, n, s, &sm) >= 0);
        }
}

static void code_runs_on_the_same_major_and_later_minors(void **state) {
        assert_true(cubin_runs_on(80, 80));
        assert_true(cubin_runs_on(80, 86));
        assert_true(cubin_runs_on(100, 103));
        assert_false(cubin_runs_on(86, 80));
        assert_false(cubin_runs_on(80, 90));
        assert_false(cubin_runs_on(90, 100));
}

static void other_elf_files_are_no_cubins(void **state) {
        _cleanup_(signature_freep) Signature *s = NULL;
        _cleanup_(freep) char *self = NULL;
        unsigned sm;
        size_t n;

        assert_int_equal(signature_new(&s), 0);
        assert_int_equal(backend_read_file("/proc/self/exe", &self, &n), 0);
        assert_int_equal(cubin_scan(self, n, s, &sm), CUBIN_E_BROKEN);
        assert_int_equal(cubin_scan("", 0, s, &sm), CUBIN_E_BROKEN);
}

int main(void) {
        if (!getenv("GPUQ_TEST_FATBIN")) {
                printf("1..0 # SKIP no nvcc made anything to read\n");
                return 0;
        }

        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_best_cubin_for_a_device_is_found),
                cmocka_unit_test(a_fatbin_says_what_it_has),
                cmocka_unit_test(a_cubin_tells_its_kernels_and_variables),
                cmocka_unit_test(a_cubin_or_fatbin_without_the_device_runtime_is_linked_with_it),
                cmocka_unit_test(every_shorter_image_is_broken_or_smaller),
                cmocka_unit_test(changed_bytes_do_no_harm),
                cmocka_unit_test(code_runs_on_the_same_major_and_later_minors),
                cmocka_unit_test(other_elf_files_are_no_cubins),
        };

        return cmocka_run_group_tests(tests, load, unload);
}

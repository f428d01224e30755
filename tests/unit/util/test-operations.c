/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether library operations fit their buffers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "util/fft.h"

static Gpuq__V1__Matrix matrices[3];
static const uint64_t large[] = {1 << 20, 1 << 20, 1 << 20};
static char text[256];

/* 4 x 6 times 6 x 5, each in a buffer of its own. */
static Gpuq__V1__Gemm product(void) {
        Gpuq__V1__Gemm gemm = GPUQ__V1__GEMM__INIT;
        const uint64_t ld[] = {6, 5, 5};

        for (unsigned i = 0; i < 3; i++) {
                gpuq__v1__matrix__init(&matrices[i]);
                matrices[i].buffer = i;
                matrices[i].ld = ld[i];
        }
        gemm.a = &matrices[0];
        gemm.b = &matrices[1];
        gemm.c = &matrices[2];
        gemm.element = GPUQ__V1__ELEMENT__SINGLE;
        gemm.m = 4;
        gemm.n = 5;
        gemm.k = 6;
        gemm.batch = 1;
        return gemm;
}

static bool fits(const Gpuq__V1__Gemm *gemm) {
        strcpy(text, "");
        return gemm_check(gemm, large, text, sizeof(text));
}

static void an_extent_ends_with_the_last_element(void **state) {
        Gpuq__V1__Gemm gemm = product();

        assert_int_equal(gemm_extent(&gemm, gemm.a), 4 * 6 * 4);
        gemm.a->ld = 10;
        assert_int_equal(gemm_extent(&gemm, gemm.a), (3 * 10 + 6) * 4);
        gemm.a->transposed = true;
        assert_int_equal(gemm_extent(&gemm, gemm.a), (5 * 10 + 4) * 4);
        gemm.batch = 3;
        gemm.a->stride = 100;
        assert_int_equal(gemm_extent(&gemm, gemm.a), (2 * 100 + 5 * 10 + 4) * 4);
        gemm.a->stride = UINT64_MAX / 2;
        assert_true(gemm_extent(&gemm, gemm.a) == UINT64_MAX);
}

static void a_product_fits_its_buffers_to_the_byte(void **state) {
        Gpuq__V1__Gemm gemm = product();
        uint64_t sizes[] = {4 * 6 * 4, 6 * 5 * 4, 4 * 5 * 4};

        assert_true(gemm_check(&gemm, sizes, text, sizeof(text)));
        for (unsigned i = 0; i < 3; i++) {
                sizes[i]--;
                assert_false(gemm_check(&gemm, sizes, text, sizeof(text)));
                assert_int_equal(text[strlen("gemm: ")], "abc"[i]);
                sizes[i]++;
        }
}

static void results_of_a_batch_lie_apart_one_behind_the_other_or_side_by_side(void **state) {
        Gpuq__V1__Gemm gemm = product();

        gemm.batch = 3;
        gemm.c->stride = 4 * 5;
        assert_true(fits(&gemm));
        gemm.c->stride = 4 * 5 - 1;
        assert_false(fits(&gemm));
        gemm.c->stride = 5; /* columns of wider rows */
        gemm.c->ld = 15;
        assert_true(fits(&gemm));
        gemm.c->ld = 14;
        assert_false(fits(&gemm));
        gemm.c->ld = 15;
        gemm.c->stride = 4;
        assert_false(fits(&gemm));
        assert_non_null(strstr(text, "overlap"));
}

static void a_result_does_not_overlap_what_is_read(void **state) {
        Gpuq__V1__Gemm gemm = product();

        gemm.c->buffer = 0;
        assert_false(fits(&gemm));
        gemm.c->offset = 4 * 6 * 4;
        assert_true(fits(&gemm));
        gemm.c->offset -= 4;
        assert_false(fits(&gemm));
        gemm.c->buffer = 1;
        gemm.b->offset = gemm.c->offset + 4 * 5 * 4;
        assert_true(fits(&gemm));
        gemm.b->buffer = gemm.a->buffer; /* which may be the same memory */
        gemm.b->offset = 0;
        gemm.c->buffer = 2;
        assert_true(fits(&gemm));
}

static Gpuq__V1__Fft transform(uint64_t *lengths, size_t rank, Gpuq__V1__Form form) {
        Gpuq__V1__Fft fft = GPUQ__V1__FFT__INIT;

        fft.element = GPUQ__V1__ELEMENT__SINGLE;
        fft.form = form;
        fft.lengths = lengths;
        fft.n_lengths = rank;
        fft.batch = 2;
        fft.to = 1;
        return fft;
}

static void the_complex_side_of_a_real_transform_is_half_of_the_last_axis(void **state) {
        uint64_t lengths[] = {3, 7};
        Gpuq__V1__Fft complex = transform(lengths, 2, GPUQ__V1__FORM__COMPLEX);
        Gpuq__V1__Fft forth = transform(lengths, 2, GPUQ__V1__FORM__REAL_TO_COMPLEX);
        Gpuq__V1__Fft back = transform(lengths, 2, GPUQ__V1__FORM__COMPLEX_TO_REAL);

        assert_int_equal(fft_bytes(&complex, false), 2 * 3 * 7 * 8);
        assert_int_equal(fft_bytes(&complex, true), 2 * 3 * 7 * 8);
        assert_int_equal(fft_bytes(&forth, false), 2 * 3 * 7 * 4);
        assert_int_equal(fft_bytes(&forth, true), 2 * 3 * 4 * 8);
        assert_int_equal(fft_bytes(&back, false), 2 * 3 * 4 * 8);
        assert_int_equal(fft_bytes(&back, true), 2 * 3 * 7 * 4);
        back.element = GPUQ__V1__ELEMENT__DOUBLE;
        assert_int_equal(fft_bytes(&back, true), 2 * 3 * 7 * 8);
        assert_true(fft_check(&forth, 168, 192, text, sizeof(text)));
        assert_false(fft_check(&forth, 167, 192, text, sizeof(text)));
        assert_false(fft_check(&forth, 168, 191, text, sizeof(text)));
}

static void lengths_do_not_overflow(void **state) {
        uint64_t lengths[] = {INT32_MAX, 1, 1}, many[] = {INT32_MAX, 2};
        Gpuq__V1__Fft fft = transform(lengths, 3, GPUQ__V1__FORM__COMPLEX);
        Gpuq__V1__Fft wide = transform(many, 2, GPUQ__V1__FORM__COMPLEX);

        fft.batch = INT32_MAX;
        assert_false(fft_check(&fft, UINT64_MAX, UINT64_MAX, text, sizeof(text)) &&
                     fft_bytes(&fft, false) < UINT64_MAX / 4);
        assert_false(fft_check(&wide, UINT64_MAX, UINT64_MAX, text, sizeof(text)));
        assert_non_null(strstr(text, "length 2 of axis 2"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_extent_ends_with_the_last_element),
                cmocka_unit_test(a_product_fits_its_buffers_to_the_byte),
                cmocka_unit_test(results_of_a_batch_lie_apart_one_behind_the_other_or_side_by_side),
                cmocka_unit_test(a_result_does_not_overlap_what_is_read),
                cmocka_unit_test(the_complex_side_of_a_real_transform_is_half_of_the_last_axis),
                cmocka_unit_test(lengths_do_not_overflow),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuFFT is asked for, by a stand-in that computes it on the host (stub-cufft.c).
 * $GPUQ_TEST_LIBRARIES is its folder.
 */
#include "test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#include "worker/cufft.h"

#define ROOM 512u

static Cufft *cufft;
static int *n_made, *n_alive;
static double from[ROOM], there[ROOM], back[ROOM];
static uint8_t workspace[2 * ROOM * sizeof(double)];

static CUresult host_copy(CUdeviceptr to, CUdeviceptr source, size_t n_bytes, CUstream stream) {
        memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)source, n_bytes);
        return CUDA_SUCCESS;
}

static const Driver driver = {.cuMemcpyDtoDAsync = host_copy};

static int open_stub(void **state) {
        char path[4096];
        void *library;

        cufft = cufft_open(&driver, getenv("GPUQ_TEST_LIBRARIES"));
        assert_non_null(cufft);
        snprintf(path, sizeof(path), "%s/libcufft.so.12", getenv("GPUQ_TEST_LIBRARIES"));
        library = dlopen(path, RTLD_NOW);
        assert_non_null(library);
        n_made = dlsym(library, "n_made");
        n_alive = dlsym(library, "n_alive");
        for (size_t i = 0; i < ROOM; ++i)
                from[i] = (double)(i % 17) - 8;
        return 0;
}

static Fft make(Gpuq__V1__Form form, bool inverse, uint64_t batch) {
        Fft fft = {
                .element = GPUQ__V1__ELEMENT__DOUBLE,
                .form = form,
                .inverse = inverse,
                .rank = 2,
                .lengths = {4, 6},
                .batch = batch,
        };

        fft.from_bytes = fft_from_numbers(&fft) * batch * sizeof(double) *
                         (form == GPUQ__V1__FORM__REAL_TO_COMPLEX ? 1 : 2);
        return fft;
}

static void run(const Fft *fft, const void *source, void *to) {
        const FftPlaces places = {(CUdeviceptr)source, (CUdeviceptr)to, (CUdeviceptr)workspace};
        size_t n_workspace;

        assert_true(cufft_plan(cufft, fft, &n_workspace));
        assert_true(n_workspace <= sizeof(workspace));
        memset(workspace, 0, sizeof(workspace));
        assert_int_equal(cufft_transform(cufft, fft, &places, NULL), CUDA_SUCCESS);
        for (size_t i = n_workspace; i < sizeof(workspace); ++i)
                assert_int_equal(workspace[i], 0);
}

static void assert_scaled(const double *values, const double *wanted, size_t n, double scale) {
        for (size_t i = 0; i < n; ++i)
                if (fabs(values[i] - scale * wanted[i]) > 1e-9)
                        fail_msg("number %zu is %g instead of %g", i, values[i], scale * wanted[i]);
}

static void complex_numbers_come_back_scaled(void **state) {
        const Fft forth = make(GPUQ__V1__FORM__COMPLEX, false, 3);
        const Fft inverse = make(GPUQ__V1__FORM__COMPLEX, true, 3);

        run(&forth, from, there);
        run(&inverse, there, back);
        assert_scaled(back, from, 3 * 24 * 2, 24);
        assert_true(there[1] != back[1]);
}

static void real_numbers_come_back_and_their_half_stays(void **state) {
        const Fft forth = make(GPUQ__V1__FORM__REAL_TO_COMPLEX, false, 3);
        const Fft inverse = make(GPUQ__V1__FORM__COMPLEX_TO_REAL, false, 3);
        double before[ROOM];

        run(&forth, from, there);
        assert_scaled(&there[0], (double[]){-35}, 1, 1); /* the sum of the first 24 */
        memcpy(before, there, sizeof(there));
        run(&inverse, there, back);
        assert_scaled(back, from, 3 * 24, 24);
        assert_memory_equal(there, before, sizeof(there));
}

static void single_precision_has_its_own_functions(void **state) {
        for (unsigned form = 0; form < 3; ++form) {
                Fft fft = make((Gpuq__V1__Form)form, true, 1);

                fft.element = GPUQ__V1__ELEMENT__SINGLE;
                run(&fft, from, there);
                if (form == GPUQ__V1__FORM__COMPLEX)
                        assert_true(*(float *)there == 1);
        }
}

static void a_shape_has_one_plan(void **state) {
        Fft fft = make(GPUQ__V1__FORM__COMPLEX, false, 1);
        int before;

        fft.lengths[0] = 7;
        run(&fft, from, there);
        before = *n_made;
        run(&fft, from, there);
        assert_int_equal(*n_made, before);
        fft.batch = 2;
        fft.from_bytes *= 2;
        run(&fft, from, there);
        assert_int_equal(*n_made, before + 1);
}

static void what_the_library_refuses_is_not_planned(void **state) {
        Fft fft = make(GPUQ__V1__FORM__COMPLEX, false, 1);
        int before = *n_alive;
        size_t n_workspace;

        fft.lengths[0] = 13;
        assert_false(cufft_plan(cufft, &fft, &n_workspace));
        assert_int_equal(*n_alive, before);
}

static void many_shapes_do_not_pile_up(void **state) {
        size_t n_workspace;

        for (uint64_t n = 14; n < 1000; ++n) {
                Fft fft = make(GPUQ__V1__FORM__COMPLEX, false, 1);

                fft.lengths[0] = n;
                assert_true(cufft_plan(cufft, &fft, &n_workspace));
        }
        assert_true(*n_alive <= 64);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(complex_numbers_come_back_scaled),
                cmocka_unit_test(real_numbers_come_back_and_their_half_stays),
                cmocka_unit_test(single_precision_has_its_own_functions),
                cmocka_unit_test(a_shape_has_one_plan),
                cmocka_unit_test(what_the_library_refuses_is_not_planned),
                cmocka_unit_test(many_shapes_do_not_pile_up),
        };

        return cmocka_run_group_tests(tests, open_stub, NULL);
}

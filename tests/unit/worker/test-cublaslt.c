/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuBLASLt is asked for, by a stand-in that computes it on the host (stub-cublaslt.c).
 * $GPUQ_TEST_LIBRARIES is its folder.
 */
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>

#include "worker/cublaslt.h"

#define ROOM 4096u

static Cublaslt *lt;
static int *n_heuristics, *n_objects;
static double a[ROOM], b[ROOM], c[ROOM], wanted[ROOM];
static float single_a[ROOM], single_b[ROOM], single_c[ROOM];
static uint8_t workspace[512];

static int open_stub(void **state) {
        char path[4096];
        void *library;

        lt = cublaslt_open(getenv("GPUQ_TEST_LIBRARIES"));
        assert_non_null(lt);
        snprintf(path, sizeof(path), "%s/libcublasLt.so.13", getenv("GPUQ_TEST_LIBRARIES"));
        library = dlopen(path, RTLD_NOW);
        assert_non_null(library);
        n_heuristics = dlsym(library, "n_heuristics");
        n_objects = dlsym(library, "n_objects");
        for (size_t i = 0; i < ROOM; ++i) {
                a[i] = single_a[i] = (float)(i % 17) - 8;
                b[i] = single_b[i] = (float)(i % 13) - 6;
        }
        return 0;
}

static Gemm product(uint64_t m, uint64_t n, uint64_t k, bool a_transposed, bool b_transposed) {
        return (Gemm){
                .element = GPUQ__V1__ELEMENT__DOUBLE,
                .m = m,
                .n = n,
                .k = k,
                .batch = 1,
                .a = {.ld = (a_transposed ? m : k) + 3, .transposed = a_transposed, .alignment = 8},
                .b = {.ld = (b_transposed ? k : n) + 1,
                      .transposed = b_transposed,
                      .alignment = 16},
                .c = {.ld = n + 2, .alignment = 32},
                .alpha = 1,
        };
}

static size_t at(const GemmMatrix *matrix, uint64_t batch, uint64_t row, uint64_t column) {
        return batch * matrix->stride +
               (matrix->transposed ? column * matrix->ld + row : row * matrix->ld + column);
}

/* By the definition, from c as it is. */
static void expect(const Gemm *gemm) {
        memcpy(wanted, c, sizeof(c));
        for (uint64_t batch = 0; batch < gemm->batch; ++batch)
                for (uint64_t i = 0; i < gemm->m; ++i)
                        for (uint64_t j = 0; j < gemm->n; ++j) {
                                size_t to = at(&gemm->c, batch, i, j);
                                double sum = 0;

                                for (uint64_t p = 0; p < gemm->k; ++p)
                                        sum += a[at(&gemm->a, batch, i, p)] *
                                               b[at(&gemm->b, batch, p, j)];
                                wanted[to] = gemm->alpha * sum + gemm->beta * c[to];
                        }
}

static GemmPlaces places(const void *first, const void *second, void *result) {
        return (GemmPlaces){(CUdeviceptr)first, (CUdeviceptr)second, (CUdeviceptr)result,
                            (CUdeviceptr)workspace};
}

static void assert_computed(const Gemm *gemm) {
        const GemmPlaces doubles = places(a, b, c);
        size_t n_workspace;
        bool is_new;

        for (size_t i = 0; i < ROOM; ++i)
                c[i] = (double)(i % 11);
        expect(gemm);
        assert_true(cublaslt_plan(lt, gemm, &n_workspace, &is_new));
        assert_int_equal(n_workspace, 8); /* of the least aligned */
        assert_int_equal(cublaslt_gemm(lt, gemm, &doubles, NULL), CUDA_SUCCESS);
        assert_memory_equal(c, wanted, sizeof(c));
}

/* ---- what is computed --------------------------------------------------------------- */

static void row_major_matrices_of_every_form_are_multiplied(void **state) {
        for (unsigned forms = 0; forms < 4; ++forms) {
                Gemm gemm = product(5, 7, 3, forms & 1, forms & 2);

                assert_computed(&gemm);
        }
}

static void factors_are_of_the_result_type(void **state) {
        const GemmPlaces singles = places(single_a, single_b, single_c);
        Gemm gemm = product(4, 6, 5, false, true);

        gemm.alpha = 0.5;
        gemm.beta = -2;
        assert_computed(&gemm);

        expect(&gemm);
        for (size_t i = 0; i < ROOM; ++i)
                single_c[i] = (float)c[i];
        gemm.element = GPUQ__V1__ELEMENT__SINGLE;
        assert_int_equal(cublaslt_gemm(lt, &gemm, &singles, NULL), CUDA_SUCCESS);
        for (size_t i = 0; i < ROOM; ++i)
                assert_true(single_c[i] == (float)wanted[i]);
}

static void batches_have_strides(void **state) {
        Gemm gemm = product(3, 4, 5, true, false);

        gemm.batch = 3;
        gemm.a.stride = 100;
        gemm.b.stride = 0; /* the same one */
        gemm.c.stride = 50;
        assert_computed(&gemm);
}

static void what_the_library_refuses_is_not_planned(void **state) {
        Gemm gemm = product(3, 4, 5, false, false);
        size_t n_workspace;
        bool is_new;

        gemm.element = GPUQ__V1__ELEMENT__F16; /* this stand-in has none */
        assert_false(cublaslt_plan(lt, &gemm, &n_workspace, &is_new));
}

/* ---- what is kept ------------------------------------------------------------------- */

static void a_shape_is_asked_for_once(void **state) {
        const GemmPlaces doubles = places(a, b, c);
        Gemm gemm = product(9, 9, 9, false, false);
        size_t n_workspace;
        bool is_new;
        int before;

        assert_true(cublaslt_plan(lt, &gemm, &n_workspace, &is_new));
        assert_true(is_new);
        before = *n_heuristics;
        gemm.alpha = 3; /* makes no other shape */
        assert_int_equal(cublaslt_gemm(lt, &gemm, &doubles, NULL), CUDA_SUCCESS);
        assert_true(cublaslt_plan(lt, &gemm, &n_workspace, &is_new));
        assert_false(is_new);
        assert_int_equal(*n_heuristics, before);

        gemm.a.alignment = 4; /* makes another */
        assert_true(cublaslt_plan(lt, &gemm, &n_workspace, &is_new));
        assert_true(is_new);
        assert_int_equal(n_workspace, 4);
        assert_int_equal(*n_heuristics, before + 1);
}

static void many_shapes_do_not_pile_up(void **state) {
        size_t n_workspace;
        bool is_new;

        for (uint64_t m = 1; m <= 2000; ++m) {
                Gemm gemm = product(m, 1, 1, false, false);

                assert_true(cublaslt_plan(lt, &gemm, &n_workspace, &is_new));
        }
        assert_true(*n_objects <= 256 * 4);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(row_major_matrices_of_every_form_are_multiplied),
                cmocka_unit_test(factors_are_of_the_result_type),
                cmocka_unit_test(batches_have_strides),
                cmocka_unit_test(what_the_library_refuses_is_not_planned),
                cmocka_unit_test(a_shape_is_asked_for_once),
                cmocka_unit_test(many_shapes_do_not_pile_up),
        };

        return cmocka_run_group_tests(tests, open_stub, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When libraries are opened and asked for plans, and what is captured of them: on a device that is made up, with
 * stand-ins for cuBLASLt and cuFFT that compute on the host. $GPUQ_TEST_LIBRARIES is their folder.
 */
#include "test.h"

#include "worker/library.h"

static unsigned n_captures, n_graphs;
static CUresult capture_result;

static CUresult fake_begin(CUstream stream, CUstreamCaptureMode mode) {
        ++n_captures;
        return CUDA_SUCCESS;
}

static CUresult fake_end(CUstream stream, CUgraph *ret_graph) {
        --n_captures;
        if (capture_result != CUDA_SUCCESS)
                return capture_result;
        ++n_graphs;
        *ret_graph = (CUgraph)&n_graphs;
        return CUDA_SUCCESS;
}

static CUresult fake_destroy(CUgraph graph) {
        --n_graphs;
        return CUDA_SUCCESS;
}

static const Driver driver = {
        .cuStreamBeginCapture = fake_begin,
        .cuStreamEndCapture = fake_end,
        .cuGraphDestroy = fake_destroy,
};
static Context context;
static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, c[4];
static uint8_t workspace[1024];

static Gemm product(uint64_t n) {
        return (Gemm){
                .element = GPUQ__V1__ELEMENT__DOUBLE,
                .m = n,
                .n = n,
                .k = n,
                .batch = 1,
                .alpha = 1,
                .a = {.ld = n, .alignment = 8},
                .b = {.ld = n, .alignment = 8},
                .c = {.ld = n, .alignment = 8},
        };
}

static Fft transform(uint64_t n) {
        return (Fft){
                .element = GPUQ__V1__ELEMENT__DOUBLE,
                .form = GPUQ__V1__FORM__COMPLEX,
                .rank = 1,
                .lengths = {n},
                .batch = 1,
        };
}

static GemmPlaces places(void) {
        return (GemmPlaces){(CUdeviceptr)a, (CUdeviceptr)b, (CUdeviceptr)c, (CUdeviceptr)workspace};
}

/* A worker keeps its library until it exits. */
static Library *kept[32];
static unsigned n_kept;

static int open_one(const char *folders) {
        int r = library_new(&context, folders);

        assert_true(n_kept < sizeof(kept) / sizeof(kept[0]));
        kept[n_kept++] = context.library;
        return r;
}

static int setup(void **state) {
        context = (Context){.cu = &driver};
        return open_one(getenv("GPUQ_TEST_LIBRARIES"));
}

static void a_library_is_opened_when_nothing_runs(void **state) {
        const Gemm gemm = product(2), other = product(1);
        LibraryPlan plan;

        library_set_busy(context.library, true);
        assert_int_equal(library_plan_gemm(context.library, &gemm, &plan), LIBRARY_E_BUSY);
        library_set_busy(context.library, false);
        assert_int_equal(library_plan_gemm(context.library, &gemm, &plan), 0);
        assert_true(plan.is_new);
        assert_int_equal(plan.n_workspace, 8);

        library_set_busy(context.library, true); /* to choose an algorithm waits for nothing */
        assert_int_equal(library_plan_gemm(context.library, &other, &plan), 0);
}

static void a_transform_is_planned_when_nothing_runs(void **state) {
        const Fft fft = transform(4), other = transform(8);
        LibraryPlan plan;

        library_set_busy(context.library, true);
        assert_int_equal(library_plan_fft(context.library, &fft, &plan), LIBRARY_E_BUSY);
        library_set_busy(context.library, false);
        assert_int_equal(library_plan_fft(context.library, &fft, &plan), 0);
        library_set_busy(context.library, true);
        assert_int_equal(library_plan_fft(context.library, &fft, &plan), 0);
        assert_int_equal(library_plan_fft(context.library, &other, &plan), LIBRARY_E_BUSY);
}

static void without_libraries_nothing_is_opened(void **state) {
        const Gemm gemm = product(2);
        const Fft fft = transform(4);
        LibraryPlan plan;

        assert_int_equal(open_one("none"), 0);
        assert_int_equal(library_plan_gemm(context.library, &gemm, &plan), LIBRARY_E_NONE);
        assert_int_equal(library_plan_fft(context.library, &fft, &plan), LIBRARY_E_NONE);
        library_set_busy(NULL, true);
}

static void a_product_is_captured_or_leaves_nothing(void **state) {
        const GemmPlaces at = places();
        Gemm gemm = product(2);
        LibraryPlan plan;
        CUgraph graph = NULL;

        capture_result = CUDA_SUCCESS;
        assert_int_equal(library_plan_gemm(context.library, &gemm, &plan), 0);
        assert_int_equal(library_capture_gemm(context.library, &gemm, &at, NULL, &graph),
                         CUDA_SUCCESS);
        assert_ptr_equal(graph, &n_graphs);
        assert_int_equal(n_captures, 0);
        assert_int_equal(n_graphs, 1);
        assert_true(c[0] == 19 && c[3] == 50);

        capture_result = CUDA_ERROR_INVALID_VALUE;
        assert_int_equal(library_capture_gemm(context.library, &gemm, &at, NULL, &graph),
                         CUDA_ERROR_INVALID_VALUE);
        capture_result = CUDA_SUCCESS;
        gemm.element = GPUQ__V1__ELEMENT__F16; /* which the stand-in cannot */
        assert_int_not_equal(library_capture_gemm(context.library, &gemm, &at, NULL, &graph),
                             CUDA_SUCCESS);
        assert_int_equal(n_captures, 0);
        assert_int_equal(n_graphs, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_library_is_opened_when_nothing_runs, setup),
                cmocka_unit_test_setup(a_transform_is_planned_when_nothing_runs, setup),
                cmocka_unit_test_setup(without_libraries_nothing_is_opened, setup),
                cmocka_unit_test_setup(a_product_is_captured_or_leaves_nothing, setup),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

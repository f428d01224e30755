/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in kernels through a driver, against plain loops: empty input, odd
 * sizes, and geometries nobody would choose. $GPUQ_TEST_DRIVER is the driver's
 * library and $GPUQ_TEST_BUILTIN an image for its device 0.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "driver/driver.h"

typedef unsigned long long u64;

static Driver *driver;
static CUcontext context;
static CUmodule module;
static CUstream stream;

static const struct {
        unsigned grid[3], block[3];
} shapes[] = {
        {{1, 1, 1}, {1, 1, 1}},   {{1, 1, 1}, {32, 1, 1}},   {{3, 2, 1}, {7, 3, 2}},
        {{2, 1, 1}, {256, 1, 1}}, {{5, 1, 1}, {1024, 1, 1}},
};
static const u64 sizes[] = {0, 1, 31, 1000, 4097};

#define OK(call) assert_int_equal(driver->call, CUDA_SUCCESS)

/* A context a test: cmocka takes signals for each test that the CPU driver takes with each context. */
static void set_up(void) {
        _cleanup_(freep) char *image = NULL;
        CUdevice device;
        size_t n_image;

        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_BUILTIN"), &image, &n_image), 0);
        OK(cuInit(0));
        OK(cuDeviceGet(&device, 0));
        OK(cuCtxCreate(&context, 0, device));
        OK(cuModuleLoadData(&module, image));
        OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
}

static void tear_down(void) {
        OK(cuStreamDestroy(stream));
        OK(cuModuleUnload(module));
        OK(cuCtxDestroy(context));
}

/* ---- memory that both sides see, of f32 or f64 ------------------------------------ */

typedef struct Array {
        void *memory;
        CUdeviceptr pointer;
        u64 n;
        bool is_f64;
} Array;

static double get(const Array *a, u64 i) {
        return a->is_f64 ? ((double *)a->memory)[i] : (double)((float *)a->memory)[i];
}

static void set(Array *a, u64 i, double value) {
        if (a->is_f64)
                ((double *)a->memory)[i] = value;
        else
                ((float *)a->memory)[i] = (float)value;
}

/* Values of both signs, never 0, without a pattern that a wrong index could hit. */
static Array array(u64 n, bool is_f64, unsigned seed) {
        Array a = {.n = n, .is_f64 = is_f64};

        OK(cuMemHostAlloc(&a.memory, (n + 1) * sizeof(double), CU_MEMHOSTALLOC_DEVICEMAP));
        OK(cuMemHostGetDevicePointer(&a.pointer, a.memory, 0));
        for (u64 i = 0; i <= n; i++) {
                seed = seed * 1664525u + 1013904223u;
                set(&a, i, ((seed >> 8) % 2000 + 1) / 1000.0 - 1.0005);
        }
        return a;
}

static void release(Array *a) {
        OK(cuMemFreeHost(a->memory));
}

static void launch(const char *name, bool is_f64, unsigned shape, void **params) {
        CUlaunchConfig config = {
                .gridDimX = shapes[shape].grid[0],
                .gridDimY = shapes[shape].grid[1],
                .gridDimZ = shapes[shape].grid[2],
                .blockDimX = shapes[shape].block[0],
                .blockDimY = shapes[shape].block[1],
                .blockDimZ = shapes[shape].block[2],
                .hStream = stream,
        };
        CUfunction function;
        char full[64];

        snprintf(full, sizeof(full), "%s_%s", name, is_f64 ? "f64" : "f32");
        OK(cuModuleGetFunction(&function, module, full));
        OK(cuLaunchKernelEx(&config, function, params, NULL));
        OK(cuStreamSynchronize(stream));
}

static void assert_near(const Array *a, u64 i, double wanted, double scale) {
        double allowed = (a->is_f64 ? 1e-14 : 2e-6) * (fabs(wanted) + scale);

        if (!(fabs(get(a, i) - wanted) <= allowed))
                fail_msg("[%llu] is %.17g, not %.17g", i, get(a, i), wanted);
}

typedef void (*Check)(u64 n, bool is_f64, unsigned shape);

static void for_each(Check check) {
        set_up();
        for (unsigned shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
                for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                        check(sizes[i], false, shape);
                        check(sizes[i], true, shape);
                }
        }
        tear_down();
}

/* ---- element by element ------------------------------------------------------------ */

static void check_two(const char *name, u64 n, bool is_f64, unsigned shape) {
        Array a = array(n, is_f64, 1), b = array(n, is_f64, 2), c = array(n, is_f64, 3);
        double guard = get(&c, n);

        launch(name, is_f64, shape, (void *[]){&a.pointer, &b.pointer, &c.pointer, &n});
        for (u64 i = 0; i < n; i++)
                assert_near(&c, i,
                            strcmp(name, "add") == 0 ? get(&a, i) + get(&b, i)
                                                     : get(&a, i) / get(&b, i),
                            1);
        assert_true(get(&c, n) == guard);
        release(&a);
        release(&b);
        release(&c);
}

static void check_add(u64 n, bool is_f64, unsigned shape) {
        check_two("add", n, is_f64, shape);
}

static void check_divide(u64 n, bool is_f64, unsigned shape) {
        check_two("divide", n, is_f64, shape);
}

static void check_axpy_or_scale(u64 n, bool is_f64, unsigned shape, bool axpy) {
        Array x = array(n, is_f64, 1), y = array(n, is_f64, 2), old = array(n, is_f64, 2);
        double a64 = 1.7, guard = get(&y, n);
        float a32 = 1.7f;

        launch(axpy ? "axpy" : "scale", is_f64, shape,
               (void *[]){is_f64 ? (void *)&a64 : (void *)&a32, &x.pointer, &y.pointer, &n});
        for (u64 i = 0; i < n; i++)
                assert_near(&y, i,
                            (is_f64 ? a64 : (double)a32) * get(&x, i) + (axpy ? get(&old, i) : 0),
                            2);
        assert_true(get(&y, n) == guard);
        release(&x);
        release(&y);
        release(&old);
}

static void check_axpy(u64 n, bool is_f64, unsigned shape) {
        check_axpy_or_scale(n, is_f64, shape, true);
}

static void check_scale(u64 n, bool is_f64, unsigned shape) {
        check_axpy_or_scale(n, is_f64, shape, false);
}

static void check_polynomial(u64 n, bool is_f64, unsigned shape) {
        Array x = array(n, is_f64, 1), y = array(n, is_f64, 2), c = array(5, is_f64, 3);

        for (u64 k = 0; k <= 5; k++) {
                launch("polynomial", is_f64, shape,
                       (void *[]){&c.pointer, &k, &x.pointer, &y.pointer, &n});
                for (u64 i = 0; i < n; i++) {
                        double wanted = 0, power = 1;

                        for (u64 j = 0; j < k; j++, power *= get(&x, i))
                                wanted += get(&c, j) * power;
                        assert_near(&y, i, wanted, 5);
                }
        }
        release(&x);
        release(&y);
        release(&c);
}

/* ---- reductions -------------------------------------------------------------------- */

static const char *const reductions[] = {"sum", "sum_of_squares", "dot",   "mean", "min",
                                         "max", "argmin",         "argmax"};

static double check_sums_of(const char *name, u64 n, bool is_f64, unsigned shape) {
        Array x = array(n, is_f64, 1), y = array(n, is_f64, 2), s = array(1, is_f64, 3);
        bool dot = strcmp(name, "dot") == 0;
        double wanted = 0, scale = 0, result;

        launch(name, is_f64, shape,
               dot ? (void *[]){&x.pointer, &y.pointer, &s.pointer, &n}
                   : (void *[]){&x.pointer, &s.pointer, &n, NULL});
        for (u64 i = 0; i < n; i++) {
                double term = get(&x, i);

                if (strcmp(name, "sum_of_squares") == 0)
                        term *= get(&x, i);
                if (dot)
                        term *= get(&y, i);
                wanted += term;
                scale += fabs(term);
        }
        assert_near(&s, 0, wanted, scale);
        result = get(&s, 0);
        release(&x);
        release(&y);
        release(&s);
        return result;
}

/* The last bit too must not depend on the geometry. */
static void check_sums(u64 n, bool is_f64, unsigned shape) {
        static const char *const names[] = {"sum", "sum_of_squares", "dot"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                double result = check_sums_of(names[i], n, is_f64, shape);

                assert_true(result == check_sums_of(names[i], n, is_f64, 0));
        }
}

/* ---- reductions in all blocks: the same bits ------------------------------------------ */

/* What a launch of a wide form needs: daemon/worker/wide.h, which this room does not see. */
enum { WIDE_BYTES = 16 + 4096 * 16 };

static void launch_shape(const char *name, const unsigned shape[2], void **params) {
        CUlaunchConfig config = {
                .gridDimX = shape[0],
                .gridDimY = 1,
                .gridDimZ = 1,
                .blockDimX = shape[1],
                .blockDimY = 1,
                .blockDimZ = 1,
                .hStream = stream,
        };
        CUfunction function;

        OK(cuModuleGetFunction(&function, module, name));
        OK(cuLaunchKernelEx(&config, function, params, NULL));
        OK(cuStreamSynchronize(stream));
}

/* One launch with a result of eight bytes, of which an f32 uses half. */
static u64 reduce(const char *name, const unsigned shape[2], const Array *x, const Array *y, u64 n,
                  CUdeviceptr memory) {
        bool has_two = strstr(name, "dot") != NULL;
        Array result = array(1, true, 3);
        u64 bits;

        memset(result.memory, 0, sizeof(bits));
        launch_shape(name, shape,
                     has_two ? (void *[]){(void *)&x->pointer, (void *)&y->pointer, &result.pointer,
                                          &n, &memory}
                             : (void *[]){(void *)&x->pointer, &result.pointer, &n, &memory, NULL});
        memcpy(&bits, result.memory, sizeof(bits));
        release(&result);
        return bits;
}

static void check_wide(const char *kernel, bool is_f64, u64 n) {
        static const unsigned one[2] = {1, 256}, many[][2] = {{1, 1}, {3, 32}, {7, 256}, {64, 512}};
        Array x = array(n, is_f64, 1), y = array(n, is_f64, 2);
        Array memory = array(WIDE_BYTES / sizeof(double), true, 3);
        char narrow[64], wide[96];
        u64 wanted;

        snprintf(narrow, sizeof(narrow), "%s_%s", kernel, is_f64 ? "f64" : "f32");
        snprintf(wide, sizeof(wide), "gpuq_internal_wide_%s", narrow);
        memset(memory.memory, 0, WIDE_BYTES);
        wanted = reduce(narrow, one, &x, &y, n, 0);
        for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
                assert_true(reduce(wide, many[i], &x, &y, n, memory.pointer) == wanted);
                assert_int_equal(*(unsigned *)memory.memory, 0); /* ready for the next launch */
                assert_true(reduce(wide, many[i], &x, &y, n, 0) == wanted);
        }
        release(&x);
        release(&y);
        release(&memory);
}

static void wide_reductions_have_the_bits_of_one_block(void **state) {
        static const u64 many[] = {0, 1, 1025, 65536, 65537, 100000, 81920};

        set_up();
        check_wide("sum", false, 1025 * 8192 + 1); /* a lane has two parts */
        for (size_t i = 0; i < ARRAY_SIZE(many); i++)
                for (size_t k = 0; k < ARRAY_SIZE(reductions); k++) {
                        check_wide(reductions[k], false, many[i]);
                        check_wide(reductions[k], true, many[i]);
                }
        tear_down();
}

/* ---- matrices ----------------------------------------------------------------------- */

static void check_gemv_of(u64 m, u64 n, bool is_f64, unsigned shape) {
        Array a = array(m * n, is_f64, 1), x = array(n, is_f64, 2), y = array(m, is_f64, 3);
        double guard = get(&y, m);

        launch("gemv", is_f64, shape, (void *[]){&a.pointer, &x.pointer, &y.pointer, &m, &n});
        for (u64 i = 0; i < m; i++) {
                double wanted = 0;

                for (u64 j = 0; j < n; j++)
                        wanted += get(&a, i * n + j) * get(&x, j);
                assert_near(&y, i, wanted, (double)n);
        }
        assert_true(get(&y, m) == guard);
        release(&a);
        release(&x);
        release(&y);
}

static void check_gemm_of(const u64 *d, bool is_f64, unsigned shape, double beta) {
        Array a = array(d[0] * d[2], is_f64, 1), b = array(d[2] * d[1], is_f64, 2);
        Array c = array(d[0] * d[1], is_f64, 3), old = array(d[0] * d[1], is_f64, 3);
        double alpha = 1.5, guard = get(&c, d[0] * d[1]);
        float alpha32 = 1.5f, beta32 = (float)beta;
        u64 m = d[0], n = d[1], k = d[2];

        if (beta == 0 && m * n > 0)
                set(&c, 0, NAN); /* must not be read */
        launch("gemm", is_f64, shape,
               (void *[]){&a.pointer, &b.pointer, &c.pointer, &m, &n, &k,
                          is_f64 ? (void *)&alpha : (void *)&alpha32,
                          is_f64 ? (void *)&beta : (void *)&beta32});
        for (u64 i = 0; i < m * n; i++) {
                double wanted = 0;

                for (u64 p = 0; p < k; p++)
                        wanted += get(&a, i / n * k + p) * get(&b, p * n + i % n);
                wanted = alpha * wanted + (beta == 0 ? 0 : beta * get(&old, i));
                assert_near(&c, i, wanted, (double)k + 1);
        }
        assert_true(get(&c, m * n) == guard);
        release(&a);
        release(&b);
        release(&c);
        release(&old);
}

static void matrices_of_any_size(void **state) {
        static const u64 sides[][3] = {{0, 5, 5}, {5, 0, 5},    {5, 5, 0},   {1, 1, 1},
                                       {7, 3, 5}, {32, 32, 32}, {33, 65, 31}};

        set_up();
        for (unsigned shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
                for (size_t i = 0; i < ARRAY_SIZE(sides) * 2; i++) {
                        check_gemv_of(sides[i / 2][0], sides[i / 2][1] * 50, i % 2, shape);
                        check_gemm_of(sides[i / 2], i % 2, shape, 0);
                        check_gemm_of(sides[i / 2], i % 2, shape, -0.5);
                }
        }
        tear_down();
}

static void add_of_any_size(void **state) {
        for_each(check_add);
}
static void divide_of_any_size(void **state) {
        for_each(check_divide);
}
static void axpy_of_any_size(void **state) {
        for_each(check_axpy);
}
static void scale_of_any_size(void **state) {
        for_each(check_scale);
}
static void polynomial_of_any_degree(void **state) {
        for_each(check_polynomial);
}
static void sums_are_the_same_for_every_geometry(void **state) {
        for_each(check_sums);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(add_of_any_size),
                cmocka_unit_test(divide_of_any_size),
                cmocka_unit_test(axpy_of_any_size),
                cmocka_unit_test(scale_of_any_size),
                cmocka_unit_test(polynomial_of_any_degree),
                cmocka_unit_test(sums_are_the_same_for_every_geometry),
                cmocka_unit_test(wide_reductions_have_the_bits_of_one_block),
                cmocka_unit_test(matrices_of_any_size),
        };

        const char *problem = NULL;
        int r;

        if (driver_open(getenv("GPUQ_TEST_DRIVER"), &driver, &problem) < 0) {
                printf("1..0 # SKIP no driver: %s\n", problem);
                return 0;
        }

        r = cmocka_run_group_tests(tests, NULL, NULL);
        driver = driver_close(driver);
        return r;
}

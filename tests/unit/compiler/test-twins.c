/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twins against their kernels, bit for bit, through gpuqd-compiler and a driver:
 * of the built-in kernels, of source with whatever arguments and shared memory
 * can be, and of the module in $GPUQ_TEST_MODULE if there is one.
 *
 * $GPUQ_TEST_DRIVER is the CPU driver's library, $GPUQ_COMPILER the compiler,
 * $GPUQ_LIBEXEC and $GPUQ_TEST_KERNELS what it takes. Without them, the GPU is
 * tested, with what is installed below $GPUQ_STAGE.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/compiled.h"
#include "compiler/compiler.h"
#include "driver/driver.h"

#define N_ROWS     7u
#define PARAMS_MAX 16u
#define BYTES      (128u << 10) /* of what a pointer points to: more than a sort's counts */

#define OK(call) assert_int_equal(driver->call, CUDA_SUCCESS)

static const char source[] =
        "struct Options { float4 v; double d[3]; char c; short s[5]; };\n"
        "struct Matrix { float m[16]; };\n"
        "template <class T> struct Pair { T a, b; };\n"
        "extern \"C\" __global__ void structs(char t, Options o, float *out, short n, float2 f) {\n"
        "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < 4096) out[i] = o.v.x * i + o.v.w + o.d[i % 3] + o.c + o.s[i % 5] + f.y + t + "
        "n;\n"
        "}\n"
        "extern \"C\" __global__ void matrix(Matrix m, const float *x, float *y) {\n"
        "    unsigned i = threadIdx.x + blockDim.x * blockIdx.y;\n"
        "    m.m[i % 16] += 1;\n"
        "    float sum = 0;\n"
        "    for (int k = 0; k < 16; k++) sum += m.m[(k + i) % 16] * x[(i + k) % 4096];\n"
        "    y[i % 4096] = sinf(sum) + blockIdx.z + 10 * gridDim.z;\n"
        "}\n"
        "extern \"C\" __global__ void __launch_bounds__(256) shared(int *x, unsigned long long "
        "*totals) {\n"
        "    __shared__ int own[256];\n"
        "    extern __shared__ int dynamic[];\n"
        "    unsigned t = threadIdx.x, other = (t + 1) % blockDim.x;\n"
        "    int *mine = x + 256 * (blockIdx.x + gridDim.x * blockIdx.y);\n"
        "    own[t] = mine[t] % 1000;\n"
        "    dynamic[t] = own[t] * 3;\n"
        "    __syncthreads();\n"
        "    mine[t] = own[other] + dynamic[blockDim.x - 1 - t];\n"
        "    atomicAdd(&totals[t % 5], (unsigned long long)own[other]);\n"
        "}\n"
        "template <class T> __global__ void pairs(Pair<T> p, T *out) {\n"
        "    out[threadIdx.x % 1024] = p.a + p.b * (T)threadIdx.x;\n"
        "}\n"
        "template __global__ void pairs<float>(Pair<float>, float *);\n"
        "template __global__ void pairs<double>(Pair<double>, double *);\n";

static Driver *driver;
static CUcontext context;
static CUstream stream;
static CUmodule module;
static bool on_gpu;
static char target[16] = "cpu";

/* ---- compiling ------------------------------------------------------------------------ */

static char *installed(const char *name) {
        const char *stage = getenv("GPUQ_STAGE");
        char *path;

        assert_true(asprintf(&path, "%s/libexec/gpuq/%s", stage ? stage : "", name) > 0);
        return path;
}

static void run_compiler(const char *libexec, const char *format, int in, int out) {
        _cleanup_(freep) char *own = installed("gpuqd-compiler");
        const char *given = getenv("GPUQ_COMPILER");
        char in_text[12], out_text[12];
        pid_t pid = fork();
        int status;

        snprintf(in_text, sizeof(in_text), "%d", in);
        snprintf(out_text, sizeof(out_text), "%d", out);
        if (pid == 0) {
                execl(given ? given : own, COMPILER_PROGRAM, "--target", target, "--format", format,
                      "--out", out_text, "--libexec", libexec, "--cuda-driver",
                      in < 0 ? NULL : "--in", in_text, NULL);
                _exit(127);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* @image: NULL for the built-in kernels. */
static Compiled *compile(const void *image, size_t n_image, void **ret_data) {
        _cleanup_(freep) char *libexec = NULL;
        const char *kernels = getenv("GPUQ_TEST_KERNELS"), *headers = getenv("GPUQ_LIBEXEC");
        int in = image ? memfd_create("in", 0) : -1, out = memfd_create("out", 0);
        Compiled *compiled;
        struct stat st;
        void *data;

        if (image)
                assert_int_equal(pwrite(in, image, n_image, 0), n_image);
        libexec = on_gpu ? installed("") : image ? strdup(headers) : request_path(kernels, "..");
        run_compiler(libexec, image ? "auto" : "builtin", in, out);

        assert_int_equal(fstat(out, &st), 0);
        data = malloc(st.st_size + 1);
        assert_int_equal(pread(out, data, st.st_size, 0), st.st_size);
        assert_int_equal(compiled_parse(data, st.st_size, &compiled), 0);
        if (compiled->status != COMPILED_OK)
                fail_msg("%s", compiled->log);
        close(in);
        close(out);
        *ret_data = data;
        return compiled;
}

/* ---- the device ---------------------------------------------------------------------------- */

static void open_device(void) {
        const char *problem = NULL, *library = getenv("GPUQ_TEST_DRIVER");
        CUdevice device;
        int major, minor;

        if (!driver)
                assert_int_equal(driver_open(library ? library : "libcuda.so.1", &driver, &problem),
                                 0);
        on_gpu = !library;
        OK(cuInit(0));
        OK(cuDeviceGet(&device, 0));
        OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
        OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
        if (on_gpu)
                snprintf(target, sizeof(target), "sm_%d", major * 10 + minor);
        OK(cuCtxCreate(&context, 0, device));
        OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
}

static void close_device(void) {
        OK(cuModuleUnload(module));
        OK(cuStreamDestroy(stream));
        OK(cuCtxDestroy(context));
}

/* ---- one kernel --------------------------------------------------------------------------------- */

typedef struct Kernel {
        CUfunction plain, twin;
        size_t offsets[PARAMS_MAX], sizes[PARAMS_MAX];
        size_t n;
        bool is_pointer[PARAMS_MAX];
        char table[BATCH_TABLE_BYTES]; /* as the twin takes it; pointers into the first half */
        char *memory; /* a block for each pointer of each row, twice: for the twin and for the kernel */
        CUdeviceptr device;
} Kernel;

static uint32_t random_number(void) {
        static uint32_t state = 1;

        state = state * 1664525u + 1013904223u;
        return state >> 8;
}

/* No number that is made of these is large, infinite or none. */
static void fill(char *p, size_t n) {
        static const unsigned char bytes[] = {0x3f, 0x3e, 0x3d, 0x40, 0xbf, 0xbe, 0x01, 0x3f};

        for (size_t i = 0; i < n; i++)
                p[i] = (char)bytes[random_number() % sizeof(bytes)];
}

static size_t n_bytes(const Kernel *kernel) {
        return kernel->offsets[kernel->n - 1] + kernel->sizes[kernel->n - 1];
}

static size_t half(const Kernel *kernel) {
        return N_ROWS * kernel->n * BYTES;
}

/* Extents are small enough that their products lie in what a pointer points to. */
static void make_argument(Kernel *kernel, char letter, size_t row, size_t i) {
        char *to = kernel->table + row * batch_pitch(n_bytes(kernel)) + kernel->offsets[i];
        CUdeviceptr pointer = kernel->device + (row * kernel->n + i) * BYTES;
        uint64_t extent = random_number() % 60;
        float real = (float)(random_number() % 1000) / 500 - 1;

        if (kernel->is_pointer[i])
                memcpy(to, &pointer, sizeof(pointer));
        else if (letter == 'l' || letter == 'w' || letter == 'i' || letter == 's' || letter == 'c')
                memcpy(to, &extent, kernel->sizes[i]);
        else if (letter == 'f')
                memcpy(to, &real, sizeof(real));
        else if (letter == 'd')
                memcpy(to, &(double){real}, sizeof(double));
        else
                fill(to, kernel->sizes[i]);
}

/* Both halves of memory, alike, and what points to the first. */
static void make_rows(Kernel *kernel, const CompiledKernel *told) {
        void *memory;

        for (size_t i = 0; i < kernel->n; i++)
                kernel->is_pointer[i] =
                        told->kinds_known && strchr("pw", compiled_letter(told->kinds[i]));
        OK(cuMemHostAlloc(&memory, 2 * half(kernel), CU_MEMHOSTALLOC_DEVICEMAP));
        OK(cuMemHostGetDevicePointer(&kernel->device, memory, 0));
        kernel->memory = memory;
        fill(kernel->memory, half(kernel));
        memcpy(kernel->memory + half(kernel), kernel->memory, half(kernel));

        memset(kernel->table, 0xff, sizeof(kernel->table));
        for (size_t row = 0; row < N_ROWS; row++)
                for (size_t i = 0; i < kernel->n; i++)
                        make_argument(kernel, compiled_letter(told->kinds[i]), row, i);
}

static CUresult launch(CUfunction function, const unsigned *shape, unsigned n_rows, void **params) {
        CUlaunchConfig config = {
                .gridDimX = shape[0],
                .gridDimY = shape[1],
                .gridDimZ = n_rows,
                .blockDimX = shape[2],
                .blockDimY = 1,
                .blockDimZ = 1,
                .sharedMemBytes = shape[2] * sizeof(int),
                .hStream = stream,
        };

        return driver->cuLaunchKernelEx(&config, function, params, NULL);
}

/* A row's arguments, its pointers moved into the second half. */
static void launch_plain(const Kernel *kernel, const unsigned *shape, size_t row) {
        char arguments[BATCH_TABLE_BYTES];
        void *params[PARAMS_MAX];
        CUdeviceptr pointer;

        memcpy(arguments, kernel->table + row * batch_pitch(n_bytes(kernel)), n_bytes(kernel));
        for (size_t i = 0; i < kernel->n; i++) {
                params[i] = arguments + kernel->offsets[i];
                if (!kernel->is_pointer[i])
                        continue;
                memcpy(&pointer, params[i], sizeof(pointer));
                pointer += half(kernel);
                memcpy(params[i], &pointer, sizeof(pointer));
        }
        assert_int_equal(launch(kernel->plain, shape, 1, params), CUDA_SUCCESS);
}

static void compare(Kernel *kernel, const CompiledKernel *told) {
        static const unsigned shapes[][3] = {{1, 1, 1}, {5, 1, 256}, {3, 2, 64}};
        void *table = kernel->table;

        for (size_t shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
                make_rows(kernel, told);
                assert_int_equal(launch(kernel->twin, shapes[shape], N_ROWS, &table), CUDA_SUCCESS);
                for (size_t row = 0; row < N_ROWS; row++)
                        launch_plain(kernel, shapes[shape], row);
                OK(cuStreamSynchronize(stream));
                if (memcmp(kernel->memory, kernel->memory + half(kernel), half(kernel)) != 0)
                        fail_msg("%s and its twin differ", told->name);
                OK(cuMemFreeHost(kernel->memory));
        }
}

/* A twin needs no memory of its own for its table. */
static void check_local(const Kernel *kernel) {
        int plain, twin;

        OK(cuFuncGetAttribute(&plain, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel->plain));
        OK(cuFuncGetAttribute(&twin, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel->twin));
        if (twin > plain)
                print_message("# local memory: %d bytes, %d without a table\n", twin, plain);
        assert_true(twin < plain + (int)BATCH_TABLE_BYTES);
}

/* Return: whether it has a twin, which does as it does then. */
static bool check_kernel(const CompiledKernel *told) {
        _cleanup_(freep) Kernel *kernel = calloc(1, sizeof(*kernel));
        char name[256];

        snprintf(name, sizeof(name), "%s" BATCH_SUFFIX, told->symbol);
        OK(cuModuleGetFunction(&kernel->plain, module, told->symbol));
        if (driver->cuModuleGetFunction(&kernel->twin, module, name) != CUDA_SUCCESS)
                return false;

        while (kernel->n < PARAMS_MAX &&
               driver->cuFuncGetParamInfo(kernel->plain, kernel->n, &kernel->offsets[kernel->n],
                                          &kernel->sizes[kernel->n]) == CUDA_SUCCESS)
                kernel->n++;
        assert_int_equal(kernel->n, told->n_kinds);
        check_local(kernel);
        compare(kernel, told);
        return true;
}

static void check_module(const void *image, size_t n_image, size_t n_wanted) {
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        _cleanup_(freep) void *data = NULL;
        size_t n_twins = 0;

        open_device();
        compiled = compile(image, n_image, &data);
        OK(cuModuleLoadData(&module, compiled->image));
        for (size_t i = 0; i < compiled->n_kernels; i++) {
                assert_null(strstr(compiled->kernels[i].symbol, BATCH_SUFFIX));
                n_twins += check_kernel(&compiled->kernels[i]);
        }
        print_message("# %zu kernels, %zu twins\n", compiled->n_kernels, n_twins);
        assert_true(n_wanted ? n_twins == n_wanted : n_twins == compiled->n_kernels);
        close_device();
}

/* ---- the modules ---------------------------------------------------------------------------------- */

static void twins_of_built_in_kernels_do_as_their_kernels(void **state) {
        check_module(NULL, 0, 0);
}

static void twins_of_a_users_kernels_do_as_their_kernels(void **state) {
        check_module(source, strlen(source), 5);
}

static void twins_of_a_given_module_do_as_their_kernels(void **state) {
        _cleanup_(freep) char *image = NULL;
        size_t n_image;

        if (!getenv("GPUQ_TEST_MODULE"))
                return;
        assert_int_equal(backend_read_file(getenv("GPUQ_TEST_MODULE"), &image, &n_image), 0);
        check_module(image, n_image, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(twins_of_built_in_kernels_do_as_their_kernels),
                cmocka_unit_test(twins_of_a_users_kernels_do_as_their_kernels),
                cmocka_unit_test(twins_of_a_given_module_do_as_their_kernels),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the CPU driver: parts of a device's host threads. The device has three.
 */
#include "fixture.h"

#include <stdlib.h>
#include <unistd.h>

#define N_BLOCKS 12u

/* What a worker does. */
static CUresult make_green(unsigned n_least, unsigned *ret_n_sms, CUgreenCtx *ret_green) {
        CUdevResource whole = {0}, part = {0}, rest = {0};
        CUdevResourceDesc desc;
        unsigned n_parts = 1;
        CUresult r;

        assert_ok(driver->cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
        assert_int_equal(whole.sm.smCount, 3);
        r = driver->cuDevSmResourceSplitByCount(&part, &n_parts, &whole, &rest, 0, n_least);
        if (r)
                return r;
        assert_int_equal(n_parts, 1);
        assert_int_equal(part.sm.smCount + rest.sm.smCount, whole.sm.smCount);
        assert_ok(driver->cuDevResourceGenerateDesc(&desc, &part, 1));
        *ret_n_sms = part.sm.smCount;
        return driver->cuGreenCtxCreate(ret_green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

static CUstream make_stream(void) {
        CUstream stream;

        assert_ok(driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
        return stream;
}

static void launch(CUmodule module, CUstream stream, const char *name, void **params) {
        CUlaunchConfig config = {N_BLOCKS, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
        CUfunction function;

        assert_ok(driver->cuModuleGetFunction(&function, module, name));
        assert_ok(driver->cuLaunchKernelEx(&config, function, params, NULL));
}

/* The driver starts a helper thread when a kernel comes and all helpers are busy. */
static void have_helpers_started(CUmodule module) {
        static unsigned counts[4];
        unsigned *inside = &counts[0], *most = &counts[1], want = N_BLOCKS;
        long long patience_ns = 20000000;
        CUstream streams[4];

        for (int i = 0; i < 4; i++) {
                streams[i] = make_stream();
                launch(module, streams[i], "crowd", PARAMS(&inside, &most, &want, &patience_ns));
        }
        for (int i = 0; i < 4; i++)
                assert_ok(driver->cuStreamSynchronize(streams[i]));
}

/* How many blocks of one kernel ran at once, in the current context. */
static unsigned crowd(CUmodule module, CUstream stream, unsigned want, long long patience_ns) {
        unsigned counts[2] = {0}, *inside = &counts[0], *most = &counts[1];

        launch(module, stream, "crowd", PARAMS(&inside, &most, &want, &patience_ns));
        assert_ok(driver->cuStreamSynchronize(stream));
        assert_int_equal(*inside, 0);
        return *most;
}

static void a_kernel_gets_no_more_threads_than_its_green_context_has(void **state) {
        CUcontext context;
        CUgreenCtx green;
        CUmodule module;
        CUstream stream;
        unsigned n_sms, most = 0;

        assert_ok(make_green(1, &n_sms, &green));
        assert_int_equal(n_sms, 2); /* rounded up */
        assert_ok(driver->cuCtxFromGreenCtx(&context, green));
        assert_ok(driver->cuCtxSetCurrent(context));
        assert_ok(driver->cuModuleLoadData(&module, image));
        stream = make_stream();

        have_helpers_started(module);
        while (most < n_sms)
                most = crowd(module, stream, n_sms, 1000000000);
        for (int i = 0; i < 5; i++)
                assert_true(crowd(module, stream, n_sms + 1, 2000000) <= n_sms);
        assert_ok(driver->cuGreenCtxDestroy(green));
}

FIXTURE_TEST(a_kernel_of_another_context_gets_all_threads) {
        Fixture *fixture = *state;

        have_helpers_started(fixture->module);
        while (crowd(fixture->module, fixture->streams[0], 3, 1000000000) < 3)
                continue;
}

static void assert_sms_are_of(unsigned n_sms, CUmodule module, CUstream stream) {
        struct {
                unsigned sm, n_sms;
        } sms[N_BLOCKS] = {0}, *to = sms;

        launch(module, stream, "which_sm", PARAMS(&to));
        assert_ok(driver->cuStreamSynchronize(stream));
        for (unsigned i = 0; i < N_BLOCKS; i++) {
                assert_int_equal(sms[i].n_sms, n_sms);
                assert_true(sms[i].sm < n_sms);
        }
}

FIXTURE_TEST(kernels_see_how_many_there_are) {
        Fixture *fixture = *state;
        CUcontext context;
        CUgreenCtx green;
        CUmodule module;
        unsigned n_sms;

        assert_sms_are_of(3, fixture->module, fixture->streams[0]);
        assert_ok(make_green(2, &n_sms, &green));
        assert_ok(driver->cuCtxFromGreenCtx(&context, green));
        assert_ok(driver->cuCtxSetCurrent(context));
        assert_ok(driver->cuModuleLoadData(&module, image));
        assert_sms_are_of(2, module, make_stream());
        assert_ok(driver->cuGreenCtxDestroy(green));
        assert_ok(driver->cuCtxSetCurrent(fixture->context));
}

static void a_part_that_the_device_cannot_have_is_refused(void **state) {
        CUdevResource whole = {0};
        CUdevResourceDesc desc;
        CUgreenCtx green;
        unsigned n;

        assert_int_equal(make_green(3, &n, &green), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
        assert_int_equal(make_green(4, &n, &green), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuDevResourceGenerateDesc(&desc, &whole, 1),
                         CUDA_ERROR_INVALID_RESOURCE_TYPE);
        assert_int_equal(driver->cuDeviceGetDevResource(7, &whole, CU_DEV_RESOURCE_TYPE_SM),
                         CUDA_ERROR_INVALID_DEVICE);
        assert_int_equal(driver->cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_INVALID),
                         CUDA_ERROR_INVALID_RESOURCE_TYPE);
        assert_int_equal(driver->cuGreenCtxCreate(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM),
                         CUDA_ERROR_INVALID_VALUE);
}

static void a_call_fails_if_a_test_says_so(void **state) {
        char path[] = "/tmp/gpuq-green-XXXXXX";
        static const char line[] = "cuGreenCtxCreate 801\n";
        CUgreenCtx green;
        int fd = mkstemp(path);
        unsigned n;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, line, sizeof(line) - 1), sizeof(line) - 1);
        setenv("GPUQ_CPU_BROKEN", path, 1);
        assert_int_equal(make_green(2, &n, &green), CUDA_ERROR_NOT_SUPPORTED);
        unsetenv("GPUQ_CPU_BROKEN");
        close(fd);
        unlink(path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kernel_gets_no_more_threads_than_its_green_context_has),
                TEST(a_kernel_of_another_context_gets_all_threads),
                TEST(kernels_see_how_many_there_are),
                cmocka_unit_test(a_part_that_the_device_cannot_have_is_refused),
                cmocka_unit_test(a_call_fails_if_a_test_says_so),
        };

        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: what a worker asks a driver for, and what becomes of errors.
 */
#include "test.h"

#include "util/macro.h"
#include "worker/green.h"
#include "worker/stream.h"

/* ---- a driver of a device with 132 SMs ---------------------------------------------------------- */

static struct {
        const char *fails; /* this call */
        CUdevSmResource sm;
        int major;        /* of the compute capability */
        unsigned n_parts; /* that a split makes */
        unsigned n_asked; /* SMs of the part */
        unsigned n_green; /* green contexts that exist */
        CUcontext current;
        unsigned n_launched;
} fake;

static CUresult fake_result(const char *call) {
        return fake.fails && strcmp(fake.fails, call) == 0 ? CUDA_ERROR_NOT_SUPPORTED
                                                           : CUDA_SUCCESS;
}

static CUresult fake_attribute(int *ret_value, CUdevice_attribute attribute, CUdevice device) {
        *ret_value = fake.major;
        return CUDA_SUCCESS;
}

static CUresult fake_set_flags(CUdevice device, unsigned flags) {
        assert_int_equal(fake.n_green, 0);
        assert_true(flags & CU_CTX_LMEM_RESIZE_TO_MAX);
        return fake_result("cuDevicePrimaryCtxSetFlags");
}

static CUresult fake_resource(CUdevice device, CUdevResource *ret_resource,
                              CUdevResourceType type) {
        *ret_resource = (CUdevResource){.type = type, .sm = fake.sm};
        return fake_result("cuDeviceGetDevResource");
}

static CUresult fake_split(CUdevResource *ret_parts, unsigned *n_parts, const CUdevResource *whole,
                           CUdevResource *ret_rest, unsigned flags, unsigned n_least) {
        assert_int_equal(*n_parts, 1);
        fake.n_asked = n_least;
        *n_parts = fake.n_parts;
        *ret_parts = *whole;
        ret_parts->sm.smCount = n_least;
        return fake_result("cuDevSmResourceSplitByCount");
}

static CUresult fake_describe(CUdevResourceDesc *ret_desc, CUdevResource *resources, unsigned n) {
        *ret_desc = (CUdevResourceDesc)0x10;
        return fake_result("cuDevResourceGenerateDesc");
}

static CUresult fake_create(CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice device,
                            unsigned flags) {
        CUresult result = fake_result("cuGreenCtxCreate");

        assert_ptr_equal(desc, 0x10);
        assert_int_equal(flags, CU_GREEN_CTX_DEFAULT_STREAM);
        *ret_green = (CUgreenCtx)0x20;
        fake.n_green += result == CUDA_SUCCESS;
        return result;
}

static CUresult fake_destroy(CUgreenCtx green) {
        assert_ptr_equal(green, 0x20);
        fake.n_green--;
        return CUDA_SUCCESS;
}

static CUresult fake_convert(CUcontext *ret_context, CUgreenCtx green) {
        assert_ptr_equal(green, 0x20);
        *ret_context = (CUcontext)0x30;
        return fake_result("cuCtxFromGreenCtx");
}

static CUresult fake_set_current(CUcontext context) {
        CUresult result = fake_result("cuCtxSetCurrent");

        if (result == CUDA_SUCCESS)
                fake.current = context;
        return result;
}

static CUresult fake_function_attribute(int *ret_value, CUfunction_attribute attribute,
                                        CUfunction function) {
        *ret_value = 0;
        return CUDA_SUCCESS;
}

static CUresult fake_launch(const CUlaunchConfig *config, CUfunction function, void **params,
                            void **extra) {
        fake.n_launched++;
        return CUDA_SUCCESS;
}

static const Driver whole_driver = {
        .cuDeviceGetAttribute = fake_attribute,
        .cuDevicePrimaryCtxSetFlags = fake_set_flags,
        .cuDeviceGetDevResource = fake_resource,
        .cuDevSmResourceSplitByCount = fake_split,
        .cuDevResourceGenerateDesc = fake_describe,
        .cuGreenCtxCreate = fake_create,
        .cuGreenCtxDestroy = fake_destroy,
        .cuCtxFromGreenCtx = fake_convert,
        .cuCtxSetCurrent = fake_set_current,
        .cuFuncGetAttribute = fake_function_attribute,
        .cuLaunchKernelEx = fake_launch,
};

static int begin(void **state) {
        memset(&fake, 0, sizeof(fake));
        fake.sm = (CUdevSmResource){132, 8, 8};
        fake.major = 9;
        fake.n_parts = 1;
        return 0;
}

static int make(const Driver *driver, const char *text, Green *green) {
        Sms sms;

        assert_true(sms_parse(text, &sms));
        *green = (Green){0};
        return green_new(driver, 0, sms, green);
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void a_share_becomes_the_current_context(void **state) {
        Green green;

        assert_int_equal(make(&whole_driver, "25%", &green), 0);
        assert_int_equal(green.n_sms, 40);
        assert_int_equal(green.n_all, 132);
        assert_ptr_equal(green.context, 0x30);
        assert_ptr_equal(fake.current, 0x30);
        assert_int_equal(fake.n_green, 1);
}

/* They leave the two members as they were. */
static void drivers_before_cuda_13_round_by_the_compute_capability(void **state) {
        static const struct {
                int major;
                unsigned n;
        } devices[] = {{7, 34}, {8, 34}, {9, 40}, {10, 40}, {12, 40}};
        Green green;

        for (size_t i = 0; i < ARRAY_SIZE(devices); ++i) {
                begin(NULL);
                fake.sm = (CUdevSmResource){132, 0, 0};
                fake.major = devices[i].major;
                assert_int_equal(make(&whole_driver, "25%", &green), 0);
                assert_int_equal(fake.n_asked, devices[i].n);
        }
}

static void nearly_all_is_all(void **state) {
        Green green;

        assert_int_equal(make(&whole_driver, "99%", &green), GREEN_E_WHOLE);
        assert_int_equal(make(&whole_driver, "132", &green), GREEN_E_WHOLE);
        assert_int_equal(fake.n_asked, 0);
        assert_int_equal(fake.n_green, 0);
}

static void a_call_that_fails_is_named_and_leaves_nothing(void **state) {
        static const char *const calls[] = {
                "cuDeviceGetDevResource",    "cuDevSmResourceSplitByCount",
                "cuDevResourceGenerateDesc", "cuDevicePrimaryCtxSetFlags",
                "cuGreenCtxCreate",          "cuCtxFromGreenCtx",
                "cuCtxSetCurrent",
        };
        Green green;

        for (size_t i = 0; i < ARRAY_SIZE(calls); ++i) {
                begin(NULL);
                fake.fails = calls[i];
                assert_int_equal(make(&whole_driver, "25%", &green), GREEN_E_FAILED);
                assert_string_equal(green.call, calls[i]);
                assert_int_equal(green.result, CUDA_ERROR_NOT_SUPPORTED);
                assert_int_equal(fake.n_green, 0);
                assert_null(fake.current);
        }
}

static void a_split_without_a_part_is_an_error(void **state) {
        Green green;

        fake.n_parts = 0;
        assert_int_equal(make(&whole_driver, "25%", &green), GREEN_E_FAILED);
        assert_string_equal(green.call, "cuDevSmResourceSplitByCount");
        assert_int_equal(green.result, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

static void a_driver_without_green_contexts_says_so(void **state) {
        Driver driver = whole_driver;
        Green green;

        driver.cuGreenCtxCreate = NULL;
        assert_int_equal(make(&driver, "25%", &green), GREEN_E_FAILED);
        assert_string_equal(green.call, "cuGreenCtxCreate");
        assert_int_equal(green.result, CUDA_ERROR_NOT_FOUND);
}

/* This driver has no functions for them. */
static void launches_in_it_use_no_graphs(void **state) {
        static Streams streams;
        Context context = {.cu = &whole_driver, .is_green = true};
        CUlaunchConfig config = {.gridDimX = 1};

        streams.context = &context;
        for (unsigned i = 1; i <= 3; ++i) {
                assert_int_equal(stream_launch(&streams, &streams.streams[0][0], &config,
                                               (CUfunction)0x40, NULL),
                                 CUDA_SUCCESS);
                assert_int_equal(fake.n_launched, i);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_share_becomes_the_current_context, begin),
                cmocka_unit_test_setup(drivers_before_cuda_13_round_by_the_compute_capability,
                                       begin),
                cmocka_unit_test_setup(nearly_all_is_all, begin),
                cmocka_unit_test_setup(a_call_that_fails_is_named_and_leaves_nothing, begin),
                cmocka_unit_test_setup(a_split_without_a_part_is_an_error, begin),
                cmocka_unit_test_setup(a_driver_without_green_contexts_says_so, begin),
                cmocka_unit_test_setup(launches_in_it_use_no_graphs, begin),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

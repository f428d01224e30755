/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, devices and the loader of the CPU driver.
 */
#include "fixture.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

FIXTURE_TEST(each_load_has_variables_of_its_own) {
        Fixture *fixture = *state;
        CUmodule second;
        CUdeviceptr counters[2], table, x = fixture_alloc(fixture, NULL, 4);
        float factors[4] = {0, 10, 0, 5}, result;
        size_t size;
        int count;

        assert_ok(driver->cuModuleLoadData(&second, image));
        assert_ok(driver->cuModuleGetGlobal(&counters[0], &size, fixture->module, "counter"));
        assert_int_equal(size, 4);
        assert_ok(driver->cuModuleGetGlobal(&counters[1], &size, second, "counter"));
        assert_true(counters[0] != counters[1]);
        assert_ok(driver->cuModuleGetGlobal(&table, &size, fixture->module, "table"));
        assert_int_equal(size, 32);

        assert_ok(fixture_launch(fixture, 0, "use_variables", 1, 1, 0, PARAMS(&x)));
        fixture_fetch(fixture, &count, counters[0], sizeof(count));
        assert_int_equal(count, 1);
        fixture_fetch(fixture, &count, counters[1], sizeof(count));
        assert_int_equal(count, 0);
        fixture_fetch(fixture, &result, table + 4, sizeof(result));
        assert_true(result == 6);

        assert_ok(driver->cuModuleGetGlobal(&table, NULL, fixture->module, "factors"));
        assert_ok(driver->cuMemcpyHtoDAsync(table, factors, sizeof(factors), fixture->streams[0]));
        assert_ok(fixture_launch(fixture, 0, "use_variables", 1, 1, 0, PARAMS(&x)));
        fixture_fetch(fixture, &result, x, sizeof(result));
        assert_true(result == 15);

        assert_ok(driver->cuModuleUnload(second));
        assert_int_equal(driver->cuMemcpyDtoHAsync(&count, counters[1], 4, fixture->streams[0]),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(driver->cuModuleGetGlobal(&table, NULL, fixture->module, "none"),
                         CUDA_ERROR_NOT_FOUND);
        assert_int_equal(driver->cuModuleGetGlobal(&table, NULL, fixture->module, "gpuq_cpu_image"),
                         CUDA_ERROR_NOT_FOUND);
}

FIXTURE_TEST(a_module_is_loaded_anew_each_time) {
        Fixture *fixture = *state;
        CUdeviceptr counter;
        CUmodule module;
        int count;

        for (int i = 0; i < 50; i++) {
                assert_ok(driver->cuModuleLoadData(&module, image));
                assert_ok(driver->cuModuleGetGlobal(&counter, NULL, module, "counter"));
                fixture_fetch(fixture, &count, counter, sizeof(count));
                assert_int_equal(count, 0);
                assert_ok(driver->cuMemsetD32Async(counter, 7, 1, fixture->streams[0]));
                assert_ok(driver->cuModuleUnload(module));
        }
}

FIXTURE_TEST(variables_of_templates_are_a_loads_own_too) {
        Fixture *fixture = *state;
        CUmodule modules[2] = {fixture->module};
        CUdeviceptr x = fixture_alloc(fixture, NULL, 4);
        int value;

        assert_ok(driver->cuModuleLoadData(&modules[1], image));
        for (int i = 0; i < 4; i++) {
                fixture->module = modules[i % 2];
                assert_ok(fixture_launch(fixture, 0, "count_shared", 1, 1, 0, PARAMS(&x)));
                fixture_fetch(fixture, &value, x, sizeof(value));
                assert_int_equal(value, 5 + i / 2);
        }
}

FIXTURE_TEST(functions_are_found_and_listed) {
        Fixture *fixture = *state;
        CUfunction functions[100], function;
        bool found = false;
        const char *name;
        unsigned count;
        int value;

        assert_int_equal(driver->cuModuleGetFunction(&function, fixture->module, "nowhere"),
                         CUDA_ERROR_NOT_FOUND);
        assert_ok(driver->cuModuleGetFunctionCount(&count, fixture->module));
        assert_in_range(count, 20, 100);
        assert_ok(driver->cuModuleEnumerateFunctions(functions, count, fixture->module));
        for (unsigned i = 0; i < count; i++) {
                assert_ok(driver->cuFuncGetName(&name, functions[i]));
                assert_ok(driver->cuModuleGetFunction(&function, fixture->module, name));
                assert_ptr_equal(function, functions[i]);
                found |= strcmp(name, "sum_static") == 0;
        }
        assert_true(found);
        assert_ok(driver->cuFuncLoad(function));
        assert_ok(driver->cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                             function));
        assert_int_equal(value, 1024);
}

FIXTURE_TEST(what_is_no_module_for_it_is_refused) {
        static const char ptx[] = "// made by hand\n.version 8.4\n.target sm_90\n";
        static const char text[] = "int main() { return 0; }\n";
        static const unsigned fatbin[4] = {0xba55ed50u, 1, 0, 0};
        static const unsigned char noise[64] = {0x8f, 3, 200, 17};
        Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                             .e_machine = 190};
        CUmodule module;

        assert_int_equal(driver->cuModuleLoadData(&module, ptx), CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_int_equal(driver->cuModuleLoadData(&module, fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_int_equal(driver->cuModuleLoadData(&module, &header), CUDA_ERROR_NO_BINARY_FOR_GPU);
        header.e_machine = EM_386;
        assert_int_equal(driver->cuModuleLoadData(&module, &header), CUDA_ERROR_INVALID_IMAGE);
        assert_int_equal(driver->cuModuleLoadData(&module, text), CUDA_ERROR_INVALID_IMAGE);
        assert_int_equal(driver->cuModuleLoadData(&module, noise), CUDA_ERROR_INVALID_IMAGE);
        assert_int_equal(driver->cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* A shared object, but not one that was made for this. */
FIXTURE_TEST(a_library_is_not_a_module) {
        void *library = fixture_read_file(getenv("GPUQ_TEST_DRIVER"), NULL);
        CUmodule module;

        assert_int_equal(driver->cuModuleLoadData(&module, library), CUDA_ERROR_INVALID_IMAGE);
        free(library);
}

static void devices_are_as_the_environment_says(void **state) {
        int count, value, version;
        CUdevice device;
        CUuuid a, b;
        char text[64];
        size_t total;

        assert_ok(driver->cuDeviceGetCount(&count));
        assert_int_equal(count, 2);
        assert_int_equal(driver->cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
        assert_ok(driver->cuDeviceGet(&device, 1));
        assert_ok(driver->cuDeviceGetName(text, sizeof(text), device));
        assert_string_equal(text, "CPU (3 threads)");
        assert_ok(driver->cuDeviceGetPCIBusId(text, sizeof(text), device));
        assert_string_equal(text, "ffff:01:00.0");
        assert_ok(driver->cuDeviceTotalMem(&total, device));
        assert_int_equal(total, 1 << 30);
        assert_ok(driver->cuDeviceGetUuid(&a, 0));
        assert_ok(driver->cuDeviceGetUuid(&b, 1));
        assert_memory_not_equal(&a, &b, sizeof(a));
        assert_ok(
                driver->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
        assert_int_equal(value, 3);
        assert_ok(driver->cuDeviceGetAttribute(
                &value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
        assert_int_equal(value, 227 << 10);
        assert_int_equal(driver->cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0),
                         CUDA_ERROR_INVALID_VALUE);
        assert_ok(driver->cuDriverGetVersion(&version));
        assert_int_equal(version, 12040);
        assert_true(driver->cpu);
}

static void calls_without_a_context_say_so(void **state) {
        CUstream stream;

        assert_ok(driver->cuCtxSetCurrent(NULL));
        assert_int_equal(driver->cuStreamCreateWithPriority(&stream, 0, 0),
                         CUDA_ERROR_INVALID_CONTEXT);
        assert_int_equal(driver->cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

static void errors_have_names(void **state) {
        const char *text;

        assert_ok(driver->cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
        assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_ok(driver->cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
        assert_string_equal(text, "an illegal memory access was encountered");
        assert_int_equal(driver->cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

static void a_library_that_is_missing_or_too_old_is_told(void **state) {
        const char *problem;
        Driver *other;

        assert_int_equal(driver_open("libgpuq-nowhere.so", &other, &problem), -ENOENT);
        assert_non_null(strstr(problem, "libgpuq-nowhere.so"));
        assert_int_equal(driver_open("libc.so.6", &other, &problem), -ENOSYS);
        assert_non_null(strstr(problem, "R550"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(each_load_has_variables_of_its_own),
                TEST(a_module_is_loaded_anew_each_time),
                TEST(variables_of_templates_are_a_loads_own_too),
                TEST(functions_are_found_and_listed),
                TEST(what_is_no_module_for_it_is_refused),
                TEST(a_library_is_not_a_module),
                cmocka_unit_test(devices_are_as_the_environment_says),
                cmocka_unit_test(calls_without_a_context_say_so),
                cmocka_unit_test(errors_have_names),
                cmocka_unit_test(a_library_that_is_missing_or_too_old_is_told),
        };

        return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}

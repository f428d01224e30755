/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in modules as they were built: what builtin.txt tells of arguments is
 * what PTX and the CPU image say of them, and the PTX assembles for today's devices.
 * $GPUQ_TEST_KERNELS is the folder.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiler/backend.h"
#include "compiler/batch.h"
#include "compiler/batch_rewrite.h"
#include "compiler/cubin.h"
#include "compiler/ptx.h"

/* A test for each file of PTX. */
#define BY_NVCC "builtin.nvcc.ptx"
#define BY_EACH(test)                                                                              \
        cmocka_unit_test_prestate(test, "builtin.ptx"), cmocka_unit_test_prestate(test, BY_NVCC)

static Result *find(unsigned sm) {
        _cleanup_(freep) char *libexec = request_path(getenv("GPUQ_TEST_KERNELS"), "..");
        Request request = {
                .sm = sm, .format = FORMAT_BUILTIN, .libexec = libexec, .name = "builtin"};
        Result *result = NULL;

        assert_int_equal(result_new(&result), 0);
        assert_int_equal(builtin_find(&request, result), 0);
        return result;
}

static char *read_kernels(const char *name, size_t *ret_n) {
        _cleanup_(freep) char *path = request_path(getenv("GPUQ_TEST_KERNELS"), name);
        char *data;

        if (strcmp(name, BY_NVCC) == 0 && access(path, F_OK) < 0)
                skip(); /* there was no nvcc */
        assert_int_equal(backend_read_file(path, &data, ret_n), 0);
        return data;
}

/* Kernels for workers alone are in the modules, and not told. */
static size_t count_told(const Signature *found) {
        size_t n = 0;

        for (size_t i = 0; i < found->n_kernels; i++)
                n += strncmp(found->kernels[i].symbol, "gpuq_internal_", 14) != 0 &&
                     !batch_is_name(found->kernels[i].symbol, strlen(found->kernels[i].symbol));
        return n;
}

/* PTX knows no pointers: there, "w" stands for both "p" and "l". */
static void assert_agree(const Signature *told, const Signature *found) {
        assert_int_equal(told->n_kernels, count_told(found));
        assert_int_equal(found->n_variables, 0);
        assert_false(found->has_printf);
        for (size_t i = 0; i < told->n_kernels; i++) {
                const SignatureKernel *a = &told->kernels[i], *b = signature_find(found, a->symbol);

                assert_non_null(b);
                assert_true(strlen(a->text) > 20);
                if (!b->kinds)
                        continue;
                assert_int_equal(strlen(a->kinds), strlen(b->kinds));
                for (size_t k = 0; a->kinds[k]; k++)
                        assert_true(a->kinds[k] == b->kinds[k] ||
                                    (strchr("pl", a->kinds[k]) && b->kinds[k] == 'w'));
        }
}

static void the_ptx_is_as_described(void **state) {
        _cleanup_(result_freep) Result *result = find(0);
        _cleanup_(signature_freep) Signature *found = NULL;
        _cleanup_(freep) char *ptx = NULL;
        size_t n;

        ptx = read_kernels(*state, &n);
        assert_int_equal(signature_new(&found), 0);
        assert_int_equal(ptx_scan(ptx, n, found), 0);
        assert_agree(result->signature, found);
}

static void a_cubin_is_made(void **state) {
        _cleanup_(result_freep) Result *result = find(90);
        _cleanup_(signature_freep) Signature *found = NULL;
        unsigned sm;

        if (result->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_string_equal(result->log ? result->log : "", "");
        assert_int_equal(signature_new(&found), 0);
        assert_int_equal(cubin_scan(result->image, result->n_image, found, &sm), 0);
        assert_int_equal(sm, 90);
        assert_agree(result->signature, found);
}

static void assert_has_twins(const char *text) {
        _cleanup_(result_freep) Result *result = find(0);

        for (size_t i = 0; i < result->signature->n_kernels; i++) {
                char twin[80];

                snprintf(twin, sizeof(twin), ".entry %s" BATCH_SUFFIX "(",
                         result->signature->kernels[i].symbol);
                assert_non_null(strstr(text, twin));
        }
}

static void each_kernel_has_a_twin(void **state) {
        static const unsigned devices[] = {75, 90, 120};
        _cleanup_(freep) char *ptx = NULL, *text = NULL;
        size_t n, n_text;

        ptx = read_kernels(*state, &n);
        assert_true(batch_rewrite(ptx, n, &text, &n_text) > 0);
        assert_has_twins(text);
        assert_non_null(strstr(text, ".entry gpuq_internal_"));
        for (const char *s = text; (s = strstr(s, ".entry gpuq_internal_")); ++s)
                assert_int_equal(s[strcspn(s, "$(")], '('); /* none that would be of no use */
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                _cleanup_(result_freep) Result *result = NULL;
                Request request = {.sm = devices[i], .name = "builtin"};

                assert_int_equal(result_new(&result), 0);
                assert_int_equal(link_image(&request, result, FORMAT_PTX, text, n_text), 0);
                if (result->status == COMPILED_NO_COMPILER)
                        return; /* not on this machine */
                assert_string_equal(result->log ? result->log : "", "");
        }
}

static void the_cubin_has_twins_and_nobody_is_told(void **state) {
        _cleanup_(result_freep) Result *result = find(90);

        if (result->status == COMPILED_NO_COMPILER)
                return; /* not on this machine */
        assert_int_equal(result->status, COMPILED_OK);
        assert_non_null(memmem(result->image, result->n_image, "add_f32" BATCH_SUFFIX, 18));
        for (size_t i = 0; i < result->signature->n_kernels; i++)
                assert_null(strstr(result->signature->kernels[i].symbol, BATCH_SUFFIX));
}

static void a_cubin_stays_where_its_twins_do_not_link(void **state) {
        static const char ptx[] = ".version 6.0\n.target sm_60\n.address_size 64\n"
                                  ".visible .entry k(.param .u32 p) { no.such.thing; }\n";
        _cleanup_(result_freep) Result *result = NULL;
        Request request = {.sm = 90, .name = "broken"};

        assert_int_equal(result_new(&result), 0);
        assert_int_equal(result_set_image(result, "cubin", 5), 0);
        assert_int_equal(result_add_log(result, "a warning"), 0);
        assert_int_equal(link_twins(&request, result, ptx, strlen(ptx)), 0);
        assert_int_equal(result->status, COMPILED_OK);
        assert_memory_equal(result->image, "cubin", 5);
        assert_string_equal(result->log, "a warning");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                BY_EACH(the_ptx_is_as_described),
                cmocka_unit_test(a_cubin_is_made),
                BY_EACH(each_kernel_has_a_twin),
                cmocka_unit_test(the_cubin_has_twins_and_nobody_is_told),
                cmocka_unit_test(a_cubin_stays_where_its_twins_do_not_link),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

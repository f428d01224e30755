/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel is found by every name that means it, and by no other.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "util/kernel-name.h"
#include "util/macro.h"

typedef struct Pair {
        const char *a, *b;
} Pair;

static void the_same_arguments_written_otherwise_are_equal(void **state) {
        static const Pair equal[] = {
                {"f", "f"},
                {"f<int, 256u>", "f<int,256>"},
                {"f<int, 256u>", "f< int , 0x100 >"},
                {"f<256ul>", "f<0b100000000>"},
                {"ns::f<float>", "::ns::f<float>"},
                {"&f<float>", "f<float>"},
                {"f<unsigned int>", "f<unsigned>"},
                {"f<unsigned int>", "f<uint>"},
                {"f<unsigned int>", "f<uint32_t>"},
                {"f<unsigned int>", "f<std::uint32_t>"},
                {"f<unsigned long>", "f<long unsigned int>"},
                {"f<unsigned long>", "f<size_t>"},
                {"f<long long>", "f<long long int>"},
                {"f<short>", "f<signed short int>"},
                {"f<true>", "f<(bool)1>"},
                {"f<(char)97>", "f<'a'>"},
                {"f<(ns::Color)2, int>", "f<2, int>"},
                {"f<(short)-3>", "f<-3>"},
                {"f<Pair<int, Pair<int, float> > >", "f<Pair<int,Pair<int,float>>>"},
                {"f<ns::Point>", "f<struct ns::Point>"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(equal); i++) {
                if (!kernel_name_equal(equal[i].a, equal[i].b) ||
                    !kernel_name_equal(equal[i].b, equal[i].a))
                        fail_msg("%s is not %s", equal[i].a, equal[i].b);
        }
}

static void other_arguments_are_not(void **state) {
        static const Pair other[] = {
                {"f", "g"},
                {"f<int>", "f"},
                {"f<int>", "f<unsigned>"},
                {"f<int>", "f<long>"},
                {"f<char>", "f<signed char>"},
                {"f<long>", "f<long long>"},
                {"f<256>", "f<257>"},
                {"f<-3>", "f<3>"},
                {"f<true>", "f<false>"},
                {"f<float>", "f<float*>"},
                {"f<1.5>", "f<1>"},
                {"a::f<int>", "f<int>"},
                {"f<int>", "f<int"},
                {"", "f"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
                if (kernel_name_equal(other[i].a, other[i].b) ||
                    kernel_name_equal(other[i].b, other[i].a))
                        fail_msg("%s is %s", other[i].a, other[i].b);
        }
}

typedef struct Example {
        const char *name, *symbol;
} Example;

static const Example examples[] = {
        {"plain", "plain"},
        {"add", "_Z3addPfi"},
        {"ns::reduce<float, 256u>", "_ZN2ns6reduceIfLj256EEEvPT_"},
        {"ns::reduce<float, 128u>", "_ZN2ns6reduceIfLj128EEEvPT_"},
        {"ns::scale<double>", "_ZN2ns5scaleIdEEvPT_"},
        {"_Z3twoi", "_Z3twoi"},
        {"_Z3twof", "_Z3twof"},
};

static const char *example_name(const void *list, size_t i) {
        return ((const Example *)list)[i].name;
}

static const char *example_symbol(const void *list, size_t i) {
        return ((const Example *)list)[i].symbol;
}

static const KernelNames kernels = {examples, ARRAY_SIZE(examples), example_name, example_symbol};

static void a_kernel_is_found_by_each_of_its_names(void **state) {
        static const struct {
                const char *name;
                size_t i;
        } found[] = {
                {"plain", 0},
                {"add", 1},
                {"_Z3addPfi", 1},
                {"ns::reduce<float,256>", 2},
                {"_ZN2ns6reduceIfLj128EEEvPT_", 3},
                {"scale", 4},
                {"ns::scale", 4},
                {"ns::scale< double >", 4},
                {"_Z3twof", 6},
        };
        size_t i;

        for (size_t k = 0; k < ARRAY_SIZE(found); k++) {
                assert_int_equal(kernel_name_find(&kernels, found[k].name, &i), 0);
                assert_int_equal(i, found[k].i);
        }
}

static void a_name_of_several_kernels_is_ambiguous(void **state) {
        size_t i = 7;

        assert_int_equal(kernel_name_find(&kernels, "reduce", &i), KERNEL_NAME_E_AMBIGUOUS);
        assert_int_equal(kernel_name_find(&kernels, "ns::reduce", &i), KERNEL_NAME_E_AMBIGUOUS);
        assert_int_equal(kernel_name_find(&kernels, "two", &i), KERNEL_NAME_E_AMBIGUOUS);
        assert_true(kernel_name_may_be(&kernels, 2, "reduce"));
        assert_false(kernel_name_may_be(&kernels, 4, "reduce"));
        assert_int_equal(i, 7);
}

static void a_name_of_none_is_not_found(void **state) {
        size_t i;

        assert_int_equal(kernel_name_find(&kernels, "reduce<float, 256>", &i), KERNEL_NAME_E_NONE);
        assert_int_equal(kernel_name_find(&kernels, "ad", &i), KERNEL_NAME_E_NONE);
        assert_int_equal(kernel_name_find(&kernels, "", &i), KERNEL_NAME_E_NONE);
        assert_int_equal(kernel_name_find(&(KernelNames){}, "add", &i), KERNEL_NAME_E_NONE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_same_arguments_written_otherwise_are_equal),
                cmocka_unit_test(other_arguments_are_not),
                cmocka_unit_test(a_kernel_is_found_by_each_of_its_names),
                cmocka_unit_test(a_name_of_several_kernels_is_ambiguous),
                cmocka_unit_test(a_name_of_none_is_not_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

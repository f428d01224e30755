/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "suspects.h"

static void a_kernel_is_suspect_from_its_fault_until_it_behaves(void **state) {
        uint64_t wild = suspects_key("test.cu", "wild"), tame = suspects_key("test.cu", "tame");
        Suspects suspects = {};

        assert_false(suspects_has(&suspects, wild));
        suspects_add(&suspects, wild);
        suspects_add(&suspects, wild);
        assert_true(suspects_has(&suspects, wild));
        assert_false(suspects_has(&suspects, tame));
        suspects_clear(&suspects, tame);
        assert_true(suspects_has(&suspects, wild));
        suspects_clear(&suspects, wild);
        assert_false(suspects_has(&suspects, wild));
        assert_int_equal(suspects.n_keys, 0);
}

static void names_are_told_apart(void **state) {
        assert_true(suspects_key("a", "bc") != suspects_key("ab", "c"));
        assert_true(suspects_key("a", "b") != suspects_key("c", "b"));
        assert_true(suspects_key("a", "b") == suspects_key("a", "b"));
}

static void the_one_of_longest_ago_is_forgotten_first(void **state) {
        Suspects suspects = {};

        for (uint64_t key = 1; key <= SUSPECTS_MAX; ++key)
                suspects_add(&suspects, key);
        suspects_add(&suspects, 1); /* again */
        suspects_add(&suspects, 1000);
        assert_true(suspects_has(&suspects, 1));
        assert_false(suspects_has(&suspects, 2));
        assert_true(suspects_has(&suspects, 3));
        assert_true(suspects_has(&suspects, 1000));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_kernel_is_suspect_from_its_fault_until_it_behaves),
                cmocka_unit_test(names_are_told_apart),
                cmocka_unit_test(the_one_of_longest_ago_is_forgotten_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "util/pool.h"

static void what_was_put_back_is_handed_out_again(void **state) {
        Pool pool = POOL(64, 4);
        void *a = pool_get(&pool), *b = pool_get(&pool);

        memset(a, 1, 64);
        memset(b, 2, 64);
        pool_put(&pool, a);
        assert_ptr_equal(pool_get(&pool), a);
        memset(a, 3, 64);
        pool_put(&pool, a);
        pool_put(&pool, b);
        pool_put(&pool, NULL);
        assert_int_equal(pool.n_spare, 2);
        pool_trim(&pool);
        assert_int_equal(pool.n_spare, 0);
}

static void no_more_are_kept_than_it_may(void **state) {
        Pool pool = POOL(8, 2);
        void *blocks[5];

        for (unsigned i = 0; i < 5; i++)
                blocks[i] = pool_get(&pool);
        for (unsigned i = 0; i < 5; i++)
                pool_put(&pool, blocks[i]);
        assert_int_equal(pool.n_spare, 2);
        pool_trim(&pool);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_put_back_is_handed_out_again),
                cmocka_unit_test(no_more_are_kept_than_it_may),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store: descriptors under keys, bounded.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper/store.h"

static int new_fd(void) {
        int fd = dup(0);

        assert_true(fd >= 0);
        return fd;
}

static bool is_open(int fd) {
        return fcntl(fd, F_GETFD) >= 0;
}

static int list_keys(const char *key, int fd, void *userdata) {
        assert_true(is_open(fd));
        strcat(userdata, key);
        strcat(userdata, " ");
        return strcmp(key, "stop") == 0 ? 7 : 0;
}

static void keys_come_back_in_their_order(void **state) {
        char keys[64] = "";
        Store *store;

        assert_int_equal(store_new(10, NULL, &store), 0);
        assert_int_equal(store_keep(store, "b", new_fd()), 0);
        assert_int_equal(store_keep(store, "a", new_fd()), 0);
        assert_int_equal(store_keep(store, "c", new_fd()), 0);
        store_drop(store, "a");
        store_drop(store, "unknown");
        assert_int_equal(store_count(store), 2);
        assert_int_equal(store_each(store, list_keys, keys), 0);
        assert_string_equal(keys, "b c ");

        assert_int_equal(store_keep(store, "stop", new_fd()), 0);
        assert_int_equal(store_keep(store, "z", new_fd()), 0);
        *keys = '\0';
        assert_int_equal(store_each(store, list_keys, keys), 7);
        assert_string_equal(keys, "b c stop ");
        assert_null(store_free(store));
}

static void same_key_replaces_and_closes(void **state) {
        int first = new_fd(), second = new_fd();
        Store *store;

        assert_int_equal(store_new(1, NULL, &store), 0);
        assert_int_equal(store_keep(store, "a", first), 0);
        assert_int_equal(store_keep(store, "a", second), 0);
        assert_false(is_open(first));
        assert_true(is_open(second));
        assert_int_equal(store_count(store), 1);
        store_drop(store, "a");
        assert_false(is_open(second));
        store_free(store);
}

static void full_store_refuses_and_leaves_the_descriptor_alone(void **state) {
        int fd = new_fd();
        Store *store;

        assert_int_equal(store_new(1, NULL, &store), 0);
        assert_int_equal(store_keep(store, "a", new_fd()), 0);
        assert_int_equal(store_keep(store, "b", fd), STORE_E_FULL);
        assert_true(is_open(fd));
        store_drop(store, "a");
        assert_int_equal(store_keep(store, "b", fd), 0);
        store_free(store);
        assert_false(is_open(fd));
}

static void empty_and_long_keys_are_refused(void **state) {
        char key[66];
        Store *store;

        memset(key, 'k', sizeof(key) - 1);
        key[sizeof(key) - 1] = '\0';
        assert_int_equal(store_new(4, NULL, &store), 0);
        assert_int_equal(store_keep(store, "", 0), STORE_E_KEY);
        assert_int_equal(store_keep(store, key, 0), STORE_E_KEY);
        assert_int_equal(store_keep(store, key + 1, new_fd()), 0);
        store_free(store);
        assert_null(store_free(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keys_come_back_in_their_order),
                cmocka_unit_test(same_key_replaces_and_closes),
                cmocka_unit_test(full_store_refuses_and_leaves_the_descriptor_alone),
                cmocka_unit_test(empty_and_long_keys_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

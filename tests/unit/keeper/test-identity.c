/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the keeper asks the name service for the users that it runs the service as.
 */
#include "keeper/identity.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/macro.h"
#include "util/names.h"

static unsigned n_asked;

int __wrap_names_find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid);
int __wrap_names_find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid) {
        n_asked++;
        if (strcmp(name, "nobody-here") == 0)
                return NAMES_E_NONE;
        *ret_uid = *ret_gid = 77;
        return 0;
}

static int check(const char *supervisor, const char *worker, const Config *before, char **error) {
        Config config = {.supervisor_user = (char *)supervisor, .worker_user = (char *)worker};

        n_asked = 0;
        free(TAKE_PTR(*error));
        return identity_check(&config, before, error);
}

/* Clients are served meanwhile, and the name service may not answer. */
static void a_reload_asks_for_users_that_are_new_alone(void **state) {
        Config before = {.supervisor_user = (char *)"one", .worker_user = (char *)"two"};
        _cleanup_(freep) char *error = NULL;

        assert_int_equal(check("one", "two", NULL, &error), 0);
        assert_int_equal(n_asked, 2);
        assert_int_equal(check("one", "two", &before, &error), 0);
        assert_int_equal(n_asked, 0);
        assert_int_equal(check("one", "three", &before, &error), 0);
        assert_int_equal(n_asked, 1);
        assert_int_equal(check("one", "nobody-here", &before, &error), -EINVAL);
        assert_non_null(strstr(error, "worker_user = nobody-here: no such user"));
        assert_int_equal(check("nobody-here", "two", &before, &error), -EINVAL);
        assert_non_null(strstr(error, "supervisor_user = nobody-here: no such user"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reload_asks_for_users_that_are_new_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

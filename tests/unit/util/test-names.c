/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: which answers of the name service mean that there is none, which that a
 * lookup failed, and that a large entry is read.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "util/names.h"

int __wrap_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry);
int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry);
int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry);

static int error;       /* of every lookup */
static size_t n_needed; /* bytes of every entry; 0: there is none */

static int answer(size_t n_buffer) {
        if (error)
                return error;
        return n_buffer < n_needed ? ERANGE : 0;
}

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry) {
        int r = answer(n_buffer);

        *entry = (struct passwd){.pw_name = buffer, .pw_uid = 7, .pw_gid = 8};
        strcpy(buffer, "alice");
        *ret_entry = r == 0 && n_needed ? entry : NULL;
        return r;
}

int __wrap_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t n_buffer,
                      struct passwd **ret_entry) {
        return __wrap_getpwuid_r(7, entry, buffer, n_buffer, ret_entry);
}

int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry) {
        int r = answer(n_buffer);

        *entry = (struct group){.gr_gid = 8};
        *ret_entry = r == 0 && n_needed ? entry : NULL;
        return r;
}

/* What all three lookups return alike. */
static int look_up(int next_error, size_t next_n_needed) {
        char *name = NULL;
        uid_t uid = 0;
        gid_t gid = 0;
        int r;

        error = next_error;
        n_needed = next_n_needed;
        r = names_find_user("alice", &uid, &gid);
        if (r == 0)
                assert_true(uid == 7 && gid == 8);
        assert_int_equal(names_find_uid(7, &name, &gid), r);
        if (r == 0)
                assert_string_equal(name, "alice");
        free(name);
        assert_int_equal(names_find_group("staff", &gid), r);
        return r;
}

static void an_entry_of_any_size_is_found(void **state) {
        assert_int_equal(look_up(0, 10), 0);
        assert_int_equal(look_up(0, 1 << 20), 0);
        assert_int_equal(look_up(0, 1 << 30), -E2BIG);
}

static void there_is_none_is_an_answer(void **state) {
        static const int errors[] = {0, ENOENT, ESRCH, EBADF, EPERM};

        for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); ++i)
                assert_int_equal(look_up(errors[i], 0), NAMES_E_NONE);
}

static void a_lookup_that_fails_is_no_answer(void **state) {
        static const int errors[] = {EIO, EAGAIN, ETIMEDOUT, ECONNREFUSED, EMFILE, ENOMEM};

        for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); ++i)
                assert_int_equal(look_up(errors[i], 0), -errors[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_entry_of_any_size_is_found),
                cmocka_unit_test(there_is_none_is_an_answer),
                cmocka_unit_test(a_lookup_that_fails_is_no_answer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

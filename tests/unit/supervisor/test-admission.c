/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: the groups of the configuration are looked up once, and again only
 * after a lookup that failed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admission.h"
#include "util/macro.h"

int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry);

static unsigned n_lookups;
static int lookup_error;

/* "ours" is our own group, "others" is another, and there are no more. */
int __wrap_getgrnam_r(const char *name, struct group *entry, char *buffer, size_t n_buffer,
                      struct group **ret_entry) {
        bool is_ours = strcmp(name, "ours") == 0;

        n_lookups++;
        *entry = (struct group){.gr_gid = is_ours ? getgid() : getgid() + 1};
        *ret_entry = !lookup_error && (is_ours || strcmp(name, "others") == 0) ? entry : NULL;
        return lookup_error;
}

typedef struct Door {
        Config config;
        Admission admission;
        int fds[2];
} Door;

static int open_door(void **state) {
        Door *door = calloc(1, sizeof(*door));

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, door->fds), 0);
        n_lookups = 0;
        lookup_error = 0;
        *state = door;
        return 0;
}

static int close_door(void **state) {
        Door *door = *state;

        admission_finish(&door->admission);
        close(door->fds[0]);
        close(door->fds[1]);
        free(door);
        return 0;
}

static void configure(Door *door, const char *allowed, const char *admins) {
        door->config.allow_groups = (char *)allowed;
        door->config.admin_group = (char *)admins;
        admission_configure(&door->admission, &door->config, 0);
}

/* Return: 0: it may connect, or the failure's code. */
static int knock(Door *door, uint64_t now_ns, bool *ret_is_admin) {
        Peer peer = {.uid = getuid(), .gid = getgid()};
        Failure *failure;
        int code;

        failure = admission_check(&door->admission, &door->config, door->fds[0], &peer, now_ns);
        code = failure ? (int)failure->code : 0;
        failure_free(failure);
        if (ret_is_admin)
                *ret_is_admin = peer.is_admin;
        return code;
}

static void groups_are_looked_up_once_for_all_connections(void **state) {
        Door *door = *state;

        configure(door, "missing others ours", "others");
        assert_int_equal(n_lookups, 4);
        for (unsigned i = 0; i < 10; ++i)
                assert_int_equal(knock(door, i * ADMISSION_LOOK_UP_NS, NULL), 0);
        assert_int_equal(n_lookups, 4);
}

static void only_members_are_let_in(void **state) {
        Door *door = *state;

        configure(door, "others missing", NULL);
        assert_int_equal(knock(door, 0, NULL), FAILURE_DENIED);
        configure(door, "", NULL);
        assert_int_equal(knock(door, 0, NULL), FAILURE_DENIED);
        configure(door, NULL, NULL);
        assert_int_equal(knock(door, 0, NULL), 0);
}

static void an_administrator_needs_no_other_group(void **state) {
        Door *door = *state;
        bool is_admin;

        configure(door, "others", "ours");
        assert_int_equal(knock(door, 0, &is_admin), 0);
        assert_true(is_admin);
        configure(door, NULL, "missing");
        assert_int_equal(knock(door, 0, &is_admin), 0);
        assert_false(is_admin);
}

static void a_lookup_that_failed_is_repeated_later(void **state) {
        Door *door = *state;

        lookup_error = ETIMEDOUT;
        configure(door, "ours", NULL);
        assert_int_equal(knock(door, 1, NULL), FAILURE_INTERNAL);
        assert_int_equal(n_lookups, 1);

        assert_int_equal(knock(door, ADMISSION_LOOK_UP_NS, NULL), FAILURE_INTERNAL);
        lookup_error = 0;
        assert_int_equal(knock(door, 2 * ADMISSION_LOOK_UP_NS - 1, NULL), FAILURE_INTERNAL);
        assert_int_equal(n_lookups, 2);
        assert_int_equal(knock(door, 2 * ADMISSION_LOOK_UP_NS, NULL), 0);
        assert_int_equal(knock(door, 9 * ADMISSION_LOOK_UP_NS, NULL), 0);
        assert_int_equal(n_lookups, 3);
}

/* As user namespaces allow with subordinate gids: each connection would cost the supervisor milliseconds. */
static void a_peer_in_very_many_groups_is_refused(void **state) {
        static gid_t many[ADMISSION_GROUPS_MAX + 1];
        Door *door = *state;
        gid_t before[1024];
        int n_before = getgroups(ARRAY_SIZE(before), before);

        if (geteuid() != 0)
                skip();
        assert_return_code(n_before, errno);
        for (unsigned i = 0; i < ARRAY_SIZE(many); ++i)
                many[i] = 100000 + i;
        configure(door, "ours", NULL);
        for (unsigned n = ADMISSION_GROUPS_MAX; n <= ADMISSION_GROUPS_MAX + 1; ++n) {
                close(door->fds[0]);
                close(door->fds[1]);
                assert_return_code(setgroups(n, many), errno);
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, door->fds), 0);
                assert_return_code(setgroups((size_t)n_before, before), errno);
                assert_int_equal(knock(door, 0, NULL),
                                 n > ADMISSION_GROUPS_MAX ? FAILURE_DENIED : 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(groups_are_looked_up_once_for_all_connections,
                                                open_door, close_door),
                cmocka_unit_test_setup_teardown(only_members_are_let_in, open_door, close_door),
                cmocka_unit_test_setup_teardown(an_administrator_needs_no_other_group, open_door,
                                                close_door),
                cmocka_unit_test_setup_teardown(a_lookup_that_failed_is_repeated_later, open_door,
                                                close_door),
                cmocka_unit_test_setup_teardown(a_peer_in_very_many_groups_is_refused, open_door,
                                                close_door),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

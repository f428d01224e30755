/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: who may connect by the groups that were found for the configuration.
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

typedef struct Door {
        ConfigAdmission admission;
        gid_t allowed[4];
        int fds[2];
} Door;

static int open_door(void **state) {
        Door *door = calloc(1, sizeof(*door));

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, door->fds), 0);
        *state = door;
        return 0;
}

static int close_door(void **state) {
        Door *door = *state;

        close(door->fds[0]);
        close(door->fds[1]);
        free(door);
        return 0;
}

/* By what the system said: -1, a group that it does not have. */
static void configure(Door *door, const char *names, size_t n_allowed, gid_t admins) {
        door->admission = (ConfigAdmission){
                .allow_groups = (char *)names,
                .admin_group = (char *)"admins",
                .allowed = door->allowed,
                .n_allowed = n_allowed,
                .admins = admins,
        };
}

/* Return: 0: it may connect, or the failure's code. */
static int knock(Door *door, bool *ret_is_admin) {
        Peer peer = {.uid = getuid(), .gid = getgid()};
        Failure *failure;
        int code;

        failure = admission_check(&door->admission, door->fds[0], &peer);
        code = failure ? (int)failure->code : 0;
        failure_free(failure);
        if (ret_is_admin)
                *ret_is_admin = peer.is_admin;
        return code;
}

static void only_members_are_let_in(void **state) {
        Door *door = *state;

        door->allowed[0] = getgid() + 1;
        configure(door, "others missing", 1, (gid_t)-1);
        assert_int_equal(knock(door, NULL), FAILURE_DENIED);
        door->allowed[1] = getgid();
        configure(door, "others ours", 2, (gid_t)-1);
        assert_int_equal(knock(door, NULL), 0);
        configure(door, "", 0, (gid_t)-1);
        assert_int_equal(knock(door, NULL), FAILURE_DENIED);
        configure(door, NULL, 0, (gid_t)-1);
        assert_int_equal(knock(door, NULL), 0);
}

static void an_administrator_needs_no_other_group(void **state) {
        Door *door = *state;
        bool is_admin;

        door->allowed[0] = getgid() + 1;
        configure(door, "others", 1, getgid());
        assert_int_equal(knock(door, &is_admin), 0);
        assert_true(is_admin);
        configure(door, NULL, 0, (gid_t)-1);
        assert_int_equal(knock(door, &is_admin), 0);
        assert_false(is_admin);
}

/* Who may be a member is told to try again; those of groups that are known are let in. */
static void a_group_that_is_not_known_yet_is_not_one_that_is_missing(void **state) {
        Door *door = *state;

        configure(door, "slow", 0, (gid_t)-1);
        door->admission.is_unknown = true;
        assert_int_equal(knock(door, NULL), FAILURE_INTERNAL);
        door->allowed[0] = getgid();
        configure(door, "slow ours", 1, (gid_t)-1);
        door->admission.is_unknown = true;
        assert_int_equal(knock(door, NULL), 0);
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
        door->allowed[0] = getgid();
        configure(door, "ours", 1, (gid_t)-1);
        for (unsigned n = ADMISSION_GROUPS_MAX; n <= ADMISSION_GROUPS_MAX + 1; ++n) {
                close(door->fds[0]);
                close(door->fds[1]);
                assert_return_code(setgroups(n, many), errno);
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, door->fds), 0);
                assert_return_code(setgroups((size_t)n_before, before), errno);
                assert_int_equal(knock(door, NULL), n > ADMISSION_GROUPS_MAX ? FAILURE_DENIED : 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(only_members_are_let_in, open_door, close_door),
                cmocka_unit_test_setup_teardown(an_administrator_needs_no_other_group, open_door,
                                                close_door),
                cmocka_unit_test_setup_teardown(
                        a_group_that_is_not_known_yet_is_not_one_that_is_missing, open_door,
                        close_door),
                cmocka_unit_test_setup_teardown(a_peer_in_very_many_groups_is_refused, open_door,
                                                close_door),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

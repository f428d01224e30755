/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

#include <sys/stat.h>

#include "proto/gpuq.pb-c.h"

static int fake_open(void **state) {
        *state = fake_new();
        return 0;
}

static int fake_close(void **state) {
        fake_free(*state);
        return 0;
}

static int connected(Fake *fake) {
        gpuq_client *client = NULL;
        int r;

        r = gpuq_connect(fake_path(fake), &client);
        gpuq_client_free(client);
        return r;
}

static void welcome_tells_session_and_devices(void **state) {
        gpuq_client *client = NULL;

        assert_ok(gpuq_connect(fake_path(*state), &client));
        assert_int_equal(gpuq_client_session(client), FAKE_SESSION);
        assert_int_equal(gpuq_client_devices(client), 2);
        gpuq_client_free(client);
        fake_await(*state, n_ends, 1);
}

static void missing_daemon_is_named_with_what_to_do(void **state) {
        gpuq_client *client = NULL;

        assert_int_equal(gpuq_connect("/nowhere/at/all", &client), GPUQ_E_CONNECT);
        assert_null(client);
        assert_text("/nowhere/at/all");
        assert_text("No such file or directory");
        assert_text("gpuqd --private");
}

static void path_too_long_is_refused(void **state) {
        char path[300];
        gpuq_client *client;

        memset(path, 'x', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(gpuq_connect(path, &client), GPUQ_E_CONNECT);
        assert_text("too long");
}

static void path_comes_from_the_environment(void **state) {
        gpuq_client *client = NULL;

        setenv("GPUQ_SOCKET", fake_path(*state), 1);
        assert_ok(gpuq_connect(NULL, &client));
        gpuq_client_free(client);

        setenv("GPUQ_SOCKET", "/nowhere/else", 1);
        assert_int_equal(gpuq_connect(NULL, &client), GPUQ_E_CONNECT);
        assert_text("/nowhere/else");
}

/* Another user's daemon would get this user's data, and its replies would be believed. */
static void socket_in_a_folder_that_others_may_write_is_not_used(void **state) {
        char folder[128], link_path[160];
        gpuq_client *client = NULL;

        snprintf(folder, sizeof(folder), "%.*s",
                 (int)(strrchr(fake_path(*state), '/') - fake_path(*state)), fake_path(*state));
        snprintf(link_path, sizeof(link_path), "%s/gpuq.sock", folder);
        assert_int_equal(symlink(fake_path(*state), link_path), 0);
        assert_int_equal(chmod(folder, 0777), 0);
        unsetenv("GPUQ_SOCKET");
        setenv("XDG_RUNTIME_DIR", folder, 1);
        assert_int_equal(gpuq_connect(NULL, &client), GPUQ_E_CONNECT);
        assert_text("/run/gpuq/gpuqd.sock");
        assert_int_equal(chmod(folder, 0700), 0);
        assert_ok(gpuq_connect(NULL, &client));
        gpuq_client_free(client);
        unlink(link_path);
        unsetenv("XDG_RUNTIME_DIR");
}

static void private_daemon_in_the_runtime_folder_is_found(void **state) {
        char folder[128], link_path[160];
        gpuq_client *client = NULL;

        snprintf(folder, sizeof(folder), "%.*s",
                 (int)(strrchr(fake_path(*state), '/') - fake_path(*state)), fake_path(*state));
        snprintf(link_path, sizeof(link_path), "%s/gpuq.sock", folder);
        assert_int_equal(symlink(fake_path(*state), link_path), 0);
        unsetenv("GPUQ_SOCKET");
        setenv("XDG_RUNTIME_DIR", folder, 1);
        assert_ok(gpuq_connect(NULL, &client));
        gpuq_client_free(client);
        unlink(link_path);
}

static void another_version_is_refused_with_both(void **state) {
        fake_set(*state, (FakeManners){.version = 9});
        assert_int_equal(connected(*state), GPUQ_E_VERSION);
        assert_text("version 9");
        assert_text("fake 1");
}

static void refusal_keeps_code_and_text(void **state) {
        fake_set(*state, (FakeManners){.hello_code = GPUQ__V1__CODE__E_DENIED,
                                       .hello_text = "only group render may"});
        assert_int_equal(connected(*state), GPUQ_E_DENIED);
        assert_string_equal(gpuq_error_text(), "only group render may");

        fake_set(*state, (FakeManners){.hello_code = GPUQ__V1__CODE__E_VERSION,
                                       .hello_text = "this daemon speaks 2 to 3"});
        assert_int_equal(connected(*state), GPUQ_E_VERSION);
        assert_text("2 to 3");
}

static void daemon_that_hangs_up_at_once_is_no_daemon(void **state) {
        fake_set(*state, (FakeManners){.hello_hang_up = true});
        assert_int_equal(connected(*state), GPUQ_E_CONNECT);
        assert_text("closed the connection");
}

static void code_from_a_newer_daemon_is_internal(void **state) {
        fake_set(*state, (FakeManners){.hello_code = 77, .hello_text = "new"});
        assert_int_equal(connected(*state), GPUQ_E_INTERNAL);
        assert_string_equal(gpuq_error_text(), "new");
}

#define fake_test(f) cmocka_unit_test_setup_teardown(f, fake_open, fake_close)

int main(void) {
        const struct CMUnitTest tests[] = {
                fake_test(welcome_tells_session_and_devices),
                cmocka_unit_test(missing_daemon_is_named_with_what_to_do),
                cmocka_unit_test(path_too_long_is_refused),
                fake_test(path_comes_from_the_environment),
                fake_test(socket_in_a_folder_that_others_may_write_is_not_used),
                fake_test(private_daemon_in_the_runtime_folder_is_found),
                fake_test(another_version_is_refused_with_both),
                fake_test(refusal_keeps_code_and_text),
                fake_test(daemon_that_hangs_up_at_once_is_no_daemon),
                fake_test(code_from_a_newer_daemon_is_internal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

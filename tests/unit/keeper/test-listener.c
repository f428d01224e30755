/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listener: a path that is free, stale, in use, taken by something else, or out
 * of reach, and a socket that systemd passes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/listener.h"

int __wrap_lstat64(const char *at, struct stat *ret_st);
int __real_lstat64(const char *at, struct stat *ret_st);

static char folder[64];
static char path[96];
static int n_lstat_before_one_fails; /* 0: none does */

int __wrap_lstat64(const char *at, struct stat *ret_st) {
        if (n_lstat_before_one_fails && --n_lstat_before_one_fails == 0) {
                errno = EIO;
                return -1;
        }
        return __real_lstat64(at, ret_st);
}

static int make_folder(void **state) {
        strcpy(folder, "/tmp/test-listener-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/sock", folder);
        return 0;
}

static int remove_folder(void **state) {
        unlink(path);
        return rmdir(folder);
}

static Listener *listen_at(bool is_private) {
        Listener *listener = NULL;
        char *error = NULL;

        if (listener_new(path, is_private, &listener, &error) != 0)
                fail_msg("%s", error);
        return listener;
}

static void assert_refused(const char *at, int wanted, const char *text) {
        Listener *listener = NULL;
        char *error = NULL;

        assert_int_equal(listener_new(at, false, &listener, &error), wanted);
        assert_null(listener);
        assert_non_null(error);
        assert_non_null(strstr(error, text));
        free(error);
}

static int make_socket(int type) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, type, 0);

        strcpy(address.sun_path, path);
        assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof(address)), errno);
        return fd;
}

static void socket_has_its_mode_and_goes_with_the_listener(void **state) {
        struct stat st;

        for (int is_private = 0; is_private < 2; is_private++) {
                Listener *listener = listen_at(is_private);

                assert_return_code(stat(path, &st), errno);
                assert_int_equal(st.st_mode & 07777, is_private ? 0600 : 0666);
                assert_string_equal(listener_path(listener), path);
                listener_free(listener);
                assert_int_equal(stat(path, &st), -1);
        }
}

static void path_in_use_is_left_alone(void **state) {
        Listener *listener = listen_at(false);

        assert_refused(path, -EADDRINUSE, "in use by another gpuqd");
        assert_return_code(access(path, F_OK), errno);
        listener_free(listener);

        close(make_socket(SOCK_STREAM));
        listener_free(listen_at(false));
}

static void file_that_is_no_socket_is_left_alone(void **state) {
        FILE *stream = fopen(path, "we");

        assert_non_null(stream);
        fclose(stream);
        assert_refused(path, -EEXIST, "is not a socket");
        assert_return_code(access(path, F_OK), errno);
}

static void socket_of_another_kind_is_left_alone(void **state) {
        int fd = make_socket(SOCK_DGRAM);

        assert_refused(path, -EADDRINUSE, "another program");
        close(fd);
}

static void folder_that_is_missing_or_closed_is_named(void **state) {
        assert_refused("/nonexistent/gpuq/sock", -ENOENT, "folder /nonexistent/gpuq: No such file");
        assert_refused("/proc/sock", getuid() == 0 ? -ENOENT : -EACCES, "/proc");
}

static void socket_that_cannot_be_looked_at_is_not_left_behind(void **state) {
        n_lstat_before_one_fails = 2; /* the first asks for a stale one */
        assert_refused(path, -EIO, "cannot inspect the socket");
        assert_int_equal(n_lstat_before_one_fails, 0);
        assert_int_equal(access(path, F_OK), -1);
}

static void path_taken_over_by_another_is_not_removed(void **state) {
        Listener *listener = listen_at(false);
        int fd;

        unlink(path);
        fd = make_socket(SOCK_STREAM);
        listener_free(listener);
        assert_return_code(access(path, F_OK), errno);
        close(fd);
}

/* In a child, whose descriptor 3 it is. */
static int listen_as_activated(int fd) {
        Listener *listener = NULL;
        char *error = NULL, pid[16];
        int r;

        snprintf(pid, sizeof(pid), "%d", getpid());
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", "1", 1);
        if (dup2(fd, 3) != 3)
                return 100;
        r = listener_new("/nonexistent/sock", false, &listener, &error);
        if (r == 0 && listener_fd(listener) != 3)
                return 101;
        listener_free(listener);
        free(error);
        return -r;
}

static int status_as_activated(int fd) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(listen_as_activated(fd));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WEXITSTATUS(status);
}

static void socket_of_systemd_is_taken_and_its_path_left_alone(void **state) {
        int fd;

        if (!HAVE_SYSTEMD)
                return; /* cannot be seen here */
        fd = make_socket(SOCK_STREAM);
        assert_int_equal(status_as_activated(fd), EINVAL); /* does not listen */
        assert_return_code(listen(fd, 5), errno);
        assert_int_equal(status_as_activated(fd), 0);
        assert_return_code(access(path, F_OK), errno);
        close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(socket_has_its_mode_and_goes_with_the_listener),
                TEST(path_in_use_is_left_alone),
                TEST(file_that_is_no_socket_is_left_alone),
                TEST(socket_of_another_kind_is_left_alone),
                TEST(folder_that_is_missing_or_closed_is_named),
                TEST(socket_that_cannot_be_looked_at_is_not_left_behind),
                TEST(path_taken_over_by_another_is_not_removed),
                TEST(socket_of_systemd_is_taken_and_its_path_left_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folder: caches that belong to one uid, and nobody's trick with them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/folder.h"

static char folder[64];
static char cache[96];

static int make_folder(void **state) {
        strcpy(folder, "/tmp/test-folder-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        snprintf(cache, sizeof(cache), "%s/a/b", folder);
        return 0;
}

static int remove_folder(void **state) {
        char command[96];

        snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static void assert_refused(uid_t uid, const char *text) {
        char *path = NULL, *error = NULL;

        assert_true(folder_for_uid(cache, uid, getgid(), &path, &error) < 0);
        assert_null(path);
        assert_non_null(strstr(error, text));
        free(error);
}

static char *cache_for(uid_t uid) {
        char *path = NULL, *error = NULL;

        if (folder_for_uid(cache, uid, getgid(), &path, &error) != 0)
                fail_msg("%s", error);
        return path;
}

static void folder_is_made_for_its_user_alone(void **state) {
        uid_t uid = getuid() == 0 ? 54321 : getuid();

        for (int i = 0; i < 2; i++) {
                char *path = cache_for(uid);
                struct stat st;

                assert_return_code(stat(path, &st), errno);
                assert_int_equal(st.st_uid, uid);
                assert_int_equal(st.st_mode & 07777, 0700);
                free(path);
        }
}

/* As gpuqd.service has it: no right to give files away, nor to pass by their modes. */
static void keep_only_the_units_rights(void) {
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

        data[0].permitted = data[0].effective =
                1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL;
        assert_return_code(syscall(SYS_capset, &head, data), errno);
}

static void folders_are_made_at_the_same_time_without_the_right_to_give_files_away(void **state) {
        pid_t pids[8];
        struct stat st;
        char path[128];

        if (getuid() != 0)
                return; /* makes no folder for others */
        for (int i = 0; i < 8; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        keep_only_the_units_rights();
                        free(cache_for(54321 + i % 2));
                        _exit(0);
                }
        }
        for (int i = 0; i < 8; i++) {
                int status;

                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_int_equal(status, 0);
        }
        for (int i = 0; i < 2; i++) {
                snprintf(path, sizeof(path), "%s/%u", cache, 54321 + i);
                assert_return_code(stat(path, &st), errno);
                assert_int_equal(st.st_uid, 54321 + i);
                assert_int_equal(st.st_mode & 07777, 0700);
                assert_return_code(rmdir(path), errno);
        }
        assert_return_code(rmdir(cache), errno); /* nothing else is left in it */
}

static void folder_that_was_not_closed_to_us_is_closed_later(void **state) {
        char path[128];
        struct stat st;

        if (getuid() != 0)
                return; /* as above */
        free(cache_for(54321));
        snprintf(path, sizeof(path), "%s/54321", cache);
        assert_return_code(chown(path, 54321, getegid()), errno);
        assert_return_code(chmod(path, 0770), errno);
        free(cache_for(54321));
        assert_return_code(stat(path, &st), errno);
        assert_int_equal(st.st_mode & 07777, 0700);

        assert_return_code(chown(path, 54321, 54321), errno);
        assert_return_code(chmod(path, 0770), errno);
        assert_refused(54321, "0700");
}

static void link_in_its_place_is_not_followed(void **state) {
        char path[128];

        free(cache_for(getuid()));
        snprintf(path, sizeof(path), "%s/%u", cache, getuid());
        assert_return_code(rmdir(path), errno);
        assert_return_code(symlink("/tmp", path), errno);
        assert_refused(getuid(), "Not a directory");
}

static void folder_of_somebody_else_is_not_taken(void **state) {
        char path[128];

        if (getuid() != 0)
                return; /* cannot be seen here */
        free(cache_for(54321));
        snprintf(path, sizeof(path), "%s/54321", cache);
        assert_return_code(chown(path, 54322, 54322), errno);
        assert_refused(54321, "belongs to another user");
}

static void folder_open_to_others_is_not_taken(void **state) {
        char path[128];

        free(cache_for(getuid()));
        snprintf(path, sizeof(path), "%s/%u", cache, getuid());
        assert_return_code(chmod(path, 0750), errno);
        assert_refused(getuid(), "0700");
        assert_return_code(chmod(path, 0700), errno);
        assert_return_code(chmod(cache, 0777), errno);
        assert_refused(getuid(), "no other user may have write access");
}

typedef int (*OursFunc)(const char *cache, char **ret_path, char **ret_error);

static void assert_readable_and_ours(OursFunc func) {
        char *path = NULL, *error = NULL;
        struct stat st;

        assert_int_equal(func(cache, &path, &error), 0);
        assert_return_code(stat(path, &st), errno);
        assert_int_equal(st.st_uid, geteuid());
        assert_int_equal(st.st_mode & 0777, 0755);
        free(path);

        path = NULL;
        assert_int_equal(func(cache, &path, &error), 0);
        assert_return_code(chmod(path, 0700), errno); /* then users could not look there */
        free(path);
        assert_int_equal(func(cache, &path, &error), 0);
        assert_return_code(stat(path, &st), errno);
        assert_int_equal(st.st_mode & 0777, 0755);

        assert_return_code(chmod(path, 0777), errno);
        free(path);
        assert_int_equal(func(cache, &path, &error), -EPERM);
        free(error);
}

static void folders_of_ours_are_readable_for_all(void **state) {
        assert_readable_and_ours(folder_without_mps);
        assert_readable_and_ours(folder_for_builtin);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(folder_is_made_for_its_user_alone),
                TEST(folders_are_made_at_the_same_time_without_the_right_to_give_files_away),
                TEST(folder_that_was_not_closed_to_us_is_closed_later),
                TEST(link_in_its_place_is_not_followed),
                TEST(folder_of_somebody_else_is_not_taken),
                TEST(folder_open_to_others_is_not_taken),
                TEST(folders_of_ours_are_readable_for_all),
        };

        umask(022);
        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io.h"
#include "util/write_all.h"

static char folder[] = "/tmp/gpuq-test-io-XXXXXX";

static const char *path_of(const char *name) {
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void write_file(const char *name, const char *text) {
        OutFile *file = NULL;

        assert_int_equal(outfile_new(path_of(name), &file), 0);
        assert_int_equal(write_all(outfile_fd(file), text, strlen(text), WRITE_ALL_ON), 0);
        assert_int_equal(outfile_commit(file), 0);
        outfile_free(file);
}

static void assert_holds(const char *name, const char *text) {
        void *data = NULL;
        size_t n_data;

        assert_int_equal(io_read_file(path_of(name), &data, &n_data), 0);
        assert_int_equal(n_data, strlen(text));
        assert_memory_equal(data, text, n_data);
        free(data);
}

static void a_file_appears_only_when_committed(void **state) {
        OutFile *file = NULL;

        assert_int_equal(outfile_new(path_of("a"), &file), 0);
        assert_int_equal(write_all(outfile_fd(file), "x", 1, WRITE_ALL_ON), 0);
        assert_int_equal(access(path_of("a"), F_OK), -1);
        assert_int_equal(outfile_commit(file), 0);
        outfile_free(file);
        assert_holds("a", "x");
        unlink(path_of("a"));
}

/* Removing the folder at the end fails if a temporary file stayed. */
static void what_is_not_committed_leaves_the_old_file(void **state) {
        OutFile *file = NULL;

        write_file("b", "old");
        assert_int_equal(outfile_new(path_of("b"), &file), 0);
        assert_int_equal(write_all(outfile_fd(file), "new", 3, WRITE_ALL_ON), 0);
        outfile_free(file);
        assert_holds("b", "old");
        unlink(path_of("b"));
}

static void permissions_and_links_are_kept(void **state) {
        struct stat st;

        write_file("c", "old");
        assert_int_equal(chmod(path_of("c"), 0640), 0);
        assert_int_equal(symlink("c", path_of("link")), 0);
        write_file("link", "new");

        assert_holds("c", "new");
        assert_int_equal(lstat(path_of("link"), &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(stat(path_of("c"), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        unlink(path_of("link"));
        unlink(path_of("c"));
}

static void devices_are_written_directly(void **state) {
        OutFile *file = NULL;
        struct stat st;

        assert_int_equal(outfile_check("/dev/null"), 0);
        assert_int_equal(outfile_new("/dev/null", &file), 0);
        assert_int_equal(outfile_commit(file), 0);
        outfile_free(file);
        assert_int_equal(stat("/dev/null", &st), 0);
        assert_true(S_ISCHR(st.st_mode));
}

static void what_cannot_be_written_is_known_before(void **state) {
        assert_int_equal(outfile_check(path_of("new")), 0);
        assert_int_equal(outfile_check(path_of("missing/new")), -ENOENT);
        assert_int_equal(outfile_check(folder), -EISDIR);
}

static void a_file_without_a_size_is_read_whole(void **state) {
        void *data = NULL;
        size_t n_data;

        assert_int_equal(io_read_file("/proc/self/status", &data, &n_data), 0);
        assert_true(n_data > 100);
        free(data);
        assert_int_equal(io_read_file("/proc/self/missing", &data, &n_data), -ENOENT);
        assert_int_equal(io_read_file("/proc/self", &data, &n_data), -EISDIR);
}

static int make_folder(void **state) {
        return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
        return rmdir(folder);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_file_appears_only_when_committed),
                cmocka_unit_test(what_is_not_committed_leaves_the_old_file),
                cmocka_unit_test(permissions_and_links_are_kept),
                cmocka_unit_test(devices_are_written_directly),
                cmocka_unit_test(what_cannot_be_written_is_known_before),
                cmocka_unit_test(a_file_without_a_size_is_read_whole),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

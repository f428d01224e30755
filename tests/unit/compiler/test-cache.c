/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compile cache: what is put comes back, what is damaged does not, and it stays small.
 */

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compiler/cache.h"
#include "driver/driver.h"

static char dir[] = "/tmp/gpuq-test-cache-XXXXXX";

static int make_dir(void **state) {
        return mkdtemp(dir) ? 0 : -1;
}

static size_t for_each_file(bool remove_it) {
        struct dirent *entry;
        DIR *d = opendir(dir);
        size_t n = 0;

        while ((entry = readdir(d))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                n++;
                if (remove_it)
                        assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
        }
        closedir(d);
        return n;
}

static int empty_dir(void **state) {
        (void)for_each_file(true);
        return 0;
}

static int remove_dir(void **state) {
        return rmdir(dir);
}

static CacheKey key_of(unsigned char c) {
        CacheKey key;

        memset(key.bytes, c, sizeof(key.bytes));
        return key;
}

static void put(unsigned char c, const void *data, size_t n, size_t max) {
        CacheKey key = key_of(c);

        assert_int_equal(cache_put(dir, &key, data, n, max), 0);
}

static int get(unsigned char c, char **ret_data, size_t *ret_n) {
        CacheKey key = key_of(c);

        return cache_get(dir, &key, (void **)ret_data, ret_n);
}

static bool has(unsigned char c) {
        _cleanup_(freep) char *data = NULL;
        size_t n;

        return get(c, &data, &n) == 0;
}

static void what_is_put_comes_back(void **state) {
        _cleanup_(freep) char *data = NULL;
        size_t n = 0;

        assert_false(has(1));
        put(1, "abc", 3, 1000);
        assert_int_equal(get(1, &data, &n), 0);
        assert_int_equal(n, 3);
        assert_memory_equal(data, "abc", 3);
        assert_false(has(2));
        assert_int_equal(for_each_file(false), 1); /* no temporary file stays */
}

static void who_can_read_the_folder_can_read_it(void **state) {
        static const struct { mode_t folder, file; } modes[] = {{0755, 0644}, {0700, 0600}};
        _cleanup_(freep) char *path = NULL;
        struct stat st;

        assert_true(asprintf(&path, "%s/%s.gpuq", dir,
                             "abababababababababababababababababababababababababababababababab") >
                    0);
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                assert_int_equal(chmod(dir, modes[i].folder), 0);
                put(0xab, "abc", 3, 1000);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode & 0777, modes[i].file);
        }
}

static void every_damage_is_a_miss(void **state) {
        _cleanup_(freep) char *path = NULL;
        struct stat st;

        assert_true(asprintf(&path, "%s/%s.gpuq", dir,
                             "0101010101010101010101010101010101010101010101010101010101010101") >
                    0);
        put(1, "abcdef", 6, 1000);
        assert_int_equal(stat(path, &st), 0);
        for (off_t at = 0; at < st.st_size; at++) {
                int fd = open(path, O_RDWR);
                char c;

                assert_int_equal(pread(fd, &c, 1, at), 1);
                c ^= 1;
                assert_int_equal(pwrite(fd, &c, 1, at), 1);
                assert_false(has(1));
                c ^= 1;
                assert_int_equal(pwrite(fd, &c, 1, at), 1);
                close(fd);
        }
        assert_true(has(1));
        for (off_t n = st.st_size - 1; n >= 0; n--) {
                assert_int_equal(truncate(path, n), 0);
                assert_false(has(1));
        }
        put(1, "abcdef", 6, 1000);
        assert_true(has(1));
}

static void what_was_used_last_stays(void **state) {
        char data[1000] = {};
        struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

        for (unsigned char c = 1; c <= 3; c++) {
                char path[256], name[65] = "";

                put(c, data, sizeof(data), 10000);
                for (unsigned i = 0; i < 32; i++)
                        snprintf(name + 2 * i, 3, "%02x", c);
                snprintf(path, sizeof(path), "%s/%s.gpuq", dir, name);
                times[1].tv_sec = c;
                assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        }
        assert_true(has(1)); /* now 2 is the oldest */
        put(4, data, sizeof(data), 3500);
        assert_false(has(2));
        assert_true(has(1) && has(3) && has(4));
}

static void the_old_go_before_a_new_one_is_stored(void **state) {
        char data[1000] = {};
        CacheKey key = key_of(3);

        put(1, data, sizeof(data), 10000);
        assert_int_equal(cache_put(dir, &key, data, sizeof(data), 1000), -ENOSPC);
        assert_true(has(1)); /* the new one is too large whatever goes */
        put(2, data, sizeof(data), 1500);
        assert_false(has(1));
        assert_true(has(2));
}

static void other_files_of_the_folder_count(void **state) {
        _cleanup_(freep) char *path = NULL;
        CacheKey key = key_of(1);
        int fd;

        assert_true(asprintf(&path, "%s/filler", dir) > 0);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(ftruncate(fd, 900), 0);
        close(fd);
        assert_int_equal(cache_put(dir, &key, "abc", 3, 950), -ENOSPC);
        put(1, "abc", 3, 1100);
        assert_true(has(1));
}

static void what_a_killed_compiler_left_goes(void **state) {
        const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        _cleanup_(freep) char *path = NULL;
        int fd;

        assert_true(asprintf(&path, "%s/.new-abcdef", dir) > 0);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(ftruncate(fd, 900), 0);
        assert_int_equal(futimens(fd, long_ago), 0);
        close(fd);
        put(1, "abc", 3, 500);
        assert_int_equal(for_each_file(false), 1);
}

static void a_cache_takes_half_of_what_others_left(void **state) {
        const CacheDisk empty = {.n_all = 1600, .n_free = 1600};
        const CacheDisk half = {.n_all = 1600, .n_free = 600};
        const CacheDisk nearly_full = {.n_all = 1600, .n_free = 120};
        const CacheDisk full = {.n_all = 1600};

        assert_int_equal(cache_most(&empty, 0, UINT64_MAX), 800);
        assert_int_equal(cache_most(&empty, 0, 300), 300);
        assert_int_equal(cache_most(&half, 200, UINT64_MAX), 400); /* its own does not count */
        assert_int_equal(cache_most(&nearly_full, 0, UINT64_MAX), 20);
        assert_int_equal(cache_most(&full, 0, UINT64_MAX), 0);
        assert_int_equal(cache_most(&full, 90, UINT64_MAX), 0);
        assert_int_equal(cache_most(&full, 150, UINT64_MAX), 50);
}

/* Each stores as much as it may: the last sixteenth is left however many they are. */
static void all_users_together_leave_the_last_of_the_disk(void **state) {
        CacheDisk disk = {.n_all = 1 << 20, .n_free = 1 << 20};

        for (unsigned i = 0; i < 1000; i++)
                disk.n_free -= cache_most(&disk, 0, UINT64_MAX);
        assert_true(disk.n_free >= disk.n_all / CACHE_DISK_PART);
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
        CacheKey key = key_of(1);
        void *data;
        size_t n;

        assert_int_equal(cache_put("/nonexistent/x", &key, "a", 1, 100), -ENOENT);
        assert_int_equal(cache_get("/nonexistent/x", &key, &data, &n), -ENOENT);
}

static const char *module_version = "580.159.03";

/* Instead of that of the driver's library. */
void driver_module_version(char ret_text[static DRIVER_VERSION_TEXT]) {
        snprintf(ret_text, DRIVER_VERSION_TEXT, "%s", module_version);
}

static CacheKey make_key(Request request) {
        CacheKey key;

        request.libexec = "/nonexistent";
        assert_int_equal(cache_key(&request, &key), 0);
        return key;
}

static void the_key_covers_what_the_driver_says_of_its_version(void **state) {
        const Request request = {.sm = 90, .format = FORMAT_PTX, .name = "n", .image = ""};
        CacheKey before = make_key(request), same, after;
        const char *as_it_was = module_version;

        same = make_key(request);
        module_version = "580.159.04";
        after = make_key(request);
        module_version = as_it_was;
        assert_memory_equal(&before, &same, sizeof(before));
        assert_memory_not_equal(&before, &after, sizeof(before));
}

static void the_key_covers_the_request(void **state) {
        const char *a[] = {"-DA"}, *b[] = {"-DB"};
        const Request requests[] = {
                {.sm = 90, .format = FORMAT_PTX, .name = "n", .image = "x", .n_image = 1},
                {.sm = 80, .format = FORMAT_PTX, .name = "n", .image = "x", .n_image = 1},
                {.sm = 90, .format = FORMAT_SOURCE, .name = "n", .image = "x", .n_image = 1},
                {.sm = 90, .format = FORMAT_PTX, .name = "m", .image = "x", .n_image = 1},
                {.sm = 90, .format = FORMAT_PTX, .name = "n", .image = "y", .n_image = 1},
                {.sm = 90, .format = FORMAT_PTX, .name = "n", .image = "xx", .n_image = 2},
                {.sm = 90,
                 .format = FORMAT_PTX,
                 .name = "n",
                 .image = "x",
                 .n_image = 1,
                 .options = a,
                 .n_options = 1},
                {.sm = 90,
                 .format = FORMAT_PTX,
                 .name = "n",
                 .image = "x",
                 .n_image = 1,
                 .options = b,
                 .n_options = 1},
        };

        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                CacheKey x = make_key(requests[i]);

                for (size_t j = 0; j < ARRAY_SIZE(requests); j++) {
                        CacheKey y = make_key(requests[j]);

                        assert_int_equal(memcmp(&x, &y, sizeof(x)) == 0, i == j);
                }
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(what_is_put_comes_back, empty_dir),
                cmocka_unit_test_teardown(who_can_read_the_folder_can_read_it, empty_dir),
                cmocka_unit_test_teardown(every_damage_is_a_miss, empty_dir),
                cmocka_unit_test_teardown(what_was_used_last_stays, empty_dir),
                cmocka_unit_test_teardown(the_old_go_before_a_new_one_is_stored, empty_dir),
                cmocka_unit_test_teardown(other_files_of_the_folder_count, empty_dir),
                cmocka_unit_test_teardown(what_a_killed_compiler_left_goes, empty_dir),
                cmocka_unit_test(a_cache_takes_half_of_what_others_left),
                cmocka_unit_test(all_users_together_leave_the_last_of_the_disk),
                cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
                cmocka_unit_test(the_key_covers_what_the_driver_says_of_its_version),
                cmocka_unit_test(the_key_covers_the_request),
        };

        return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

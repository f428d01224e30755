/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "spool.h"

#define UID       1000u
#define BYTES     600000u /* of input: more than a block */
#define IMAGE     "not really a module"
#define OUT_PLACE 600064u

static char folder[64];
static Spool *spool;

/* ---- a job ----------------------------------------------------------------- */

static Gpuq__V1__Job job;
static Gpuq__Spool__Extent in_extent, out_extent;
static Gpuq__Spool__Extent *extents[] = {&in_extent, &out_extent};
static Gpuq__Spool__Module module, builtin;
static Gpuq__Spool__Module *modules[] = {&module, &builtin};

static Gpuq__Spool__Record make_record(uint32_t number) {
        Gpuq__Spool__Record record = GPUQ__SPOOL__RECORD__INIT;

        gpuq__v1__job__init(&job);
        gpuq__spool__extent__init(&in_extent);
        gpuq__spool__extent__init(&out_extent);
        gpuq__spool__module__init(&module);
        gpuq__spool__module__init(&builtin);
        in_extent.length = BYTES;
        in_extent.read = true;
        out_extent.offset = OUT_PLACE;
        out_extent.length = 4;
        out_extent.written = true;
        module.length = strlen(IMAGE);
        record.number = number;
        record.uid = UID;
        record.job = &job;
        record.size = OUT_PLACE + 4;
        record.extents = extents;
        record.n_extents = 2;
        record.modules = modules;
        record.n_modules = 2;
        return record;
}

static void drop_digests(Gpuq__Spool__Record *record) {
        free(record->input_digest.data);
        free(module.digest.data);
}

static uint8_t byte_at(size_t i) {
        return (uint8_t)(i * 7 + i / 251);
}

static int make_memfd(size_t n) {
        int fd = memfd_create("test", MFD_CLOEXEC);

        assert_return_code(fd, errno);
        assert_return_code(ftruncate(fd, (off_t)n), errno);
        return fd;
}

static int make_arena(void) {
        int fd = make_memfd(OUT_PLACE + 4);
        uint8_t *bytes = malloc(BYTES);

        assert_non_null(bytes);
        for (size_t i = 0; i < BYTES; ++i)
                bytes[i] = byte_at(i);
        assert_int_equal(pwrite(fd, bytes, BYTES, 0), BYTES);
        free(bytes);
        return fd;
}

static void store(uint32_t number) {
        Gpuq__Spool__Record record = make_record(number);
        int arena = make_arena(), image = make_memfd(strlen(IMAGE));
        SpoolPart input[] = {{arena, 0, BYTES}, {arena, OUT_PLACE, 4}};
        SpoolPart images[] = {{image, 0, strlen(IMAGE)}, {-1, 0, 0}};

        assert_int_equal(pwrite(image, IMAGE, strlen(IMAGE), 0), strlen(IMAGE));
        assert_int_equal(spool_store(spool, &record, input, images), 0);
        drop_digests(&record);
        close(arena);
        close(image);
}

/* ---- what is there --------------------------------------------------------- */

#define FOUND_MAX 16u

static SpoolEntry found[FOUND_MAX];
static char damage[FOUND_MAX][SPOOL_PROBLEM_MAX];
static size_t n_found;
static uint32_t last;

static int on_found(const SpoolEntry *entry, void *userdata) {
        assert_true(n_found < FOUND_MAX);
        found[n_found] = *entry;
        if (entry->damage)
                snprintf(damage[n_found], sizeof(damage[0]), "%s", entry->damage);
        n_found++;
        return 0;
}

static void forget(void) {
        for (size_t i = 0; i < n_found; ++i) {
                if (found[i].record)
                        gpuq__spool__record__free_unpacked(found[i].record, NULL);
                if (found[i].end)
                        gpuq__spool__end__free_unpacked(found[i].end, NULL);
        }
        n_found = 0;
}

/* As the next daemon does. */
static void look(void) {
        forget();
        spool = spool_free(spool);
        assert_int_equal(spool_open(folder, &spool), 0);
        assert_int_equal(spool_scan(spool, on_found, NULL, &last), 0);
}

static int set_up(void **state) {
        snprintf(folder, sizeof(folder), "/tmp/gpuq-spool-XXXXXX");
        assert_non_null(mkdtemp(folder));
        assert_int_equal(spool_file_init(), 0);
        assert_int_equal(spool_open(folder, &spool), 0);
        return 0;
}

static int tear_down(void **state) {
        char command[128];

        forget();
        spool = spool_free(spool);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static const char *path_of(const char *name) {
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static bool exists(const char *name) {
        return access(path_of(name), F_OK) == 0;
}

static void flip(const char *name, off_t at) {
        int fd = open(path_of(name), O_RDWR);
        uint8_t byte;

        assert_return_code(fd, errno);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
}

static int load(uint32_t number, SpoolProblem *problem) {
        int arena = make_memfd(OUT_PLACE + 4), image = make_memfd(strlen(IMAGE));
        int images[] = {image, -1}, r;
        uint8_t byte;

        assert_int_equal(found[0].number, number);
        r = spool_load(spool, found[0].record, arena, images, problem);
        for (size_t i = 0; r == 0 && i < BYTES; i += 997) {
                assert_int_equal(pread(arena, &byte, 1, (off_t)i), 1);
                assert_int_equal(byte, byte_at(i));
        }
        close(arena);
        close(image);
        return r;
}

static int end(SpoolEntry *entry, uint32_t value) {
        Gpuq__Spool__End ended = GPUQ__SPOOL__END__INIT;
        Gpuq__V1__Completion completion = GPUQ__V1__COMPLETION__INIT;
        int arena = make_memfd(OUT_PLACE + 4), r;

        assert_int_equal(pwrite(arena, &value, sizeof(value), OUT_PLACE), sizeof(value));
        completion.id = entry->number;
        completion.state = GPUQ__V1__STATE__DONE;
        ended.completion = &completion;
        r = spool_end(spool, entry->record, &ended, arena);
        free(ended.output_digest.data);
        close(arena);
        return r;
}

/* ---- tests ----------------------------------------------------------------- */

static void what_was_stored_is_found_and_loaded(void **state) {
        SpoolProblem problem;

        store(1);
        look();
        assert_int_equal(n_found, 1);
        assert_null(found[0].damage);
        assert_null(found[0].end);
        assert_int_equal(found[0].uid, UID);
        assert_int_equal(load(1, &problem), 0);
}

static void an_end_keeps_the_output_and_lets_the_input_go(void **state) {
        SpoolProblem problem;
        uint32_t value = 0;
        int fd;

        store(1);
        look();
        assert_int_equal(end(&found[0], 12345), 0);
        assert_false(exists("1.1000/input"));
        assert_false(exists("1.1000/image.0"));
        look();
        assert_non_null(found[0].end);
        fd = make_memfd(4);
        assert_int_equal(spool_load_output(spool, found[0].record, found[0].end, fd, &problem), 0);
        assert_int_equal(pread(fd, &value, sizeof(value), 0), sizeof(value));
        assert_int_equal(value, 12345);
        close(fd);
}

static void a_number_is_never_given_twice(void **state) {
        store(300);
        look();
        assert_true(last >= 300);
        assert_int_equal(spool_remove(spool, found[0].record), 0);
        look();
        assert_int_equal(n_found, 0);
        assert_true(last >= 300);
}

static void the_numbers_of_folders_count_though_the_file_of_numbers_is_damaged(void **state) {
        store(300);
        flip("last", 57);
        look();
        assert_true(last >= 300);
}

static void what_was_interrupted_leaves_nothing(void **state) {
        assert_return_code(mkdir(path_of("new-5.1000"), 0700), errno);
        assert_return_code(mkdir(path_of("old-6.1000"), 0700), errno);
        assert_return_code(close(open(path_of("old-6.1000/output"), O_CREAT | O_WRONLY, 0600)), 0);
        look();
        assert_int_equal(n_found, 0);
        assert_false(exists("new-5.1000"));
        assert_false(exists("old-6.1000"));
}

static void any_bit_of_a_record_counts(void **state) {
        struct stat st;

        for (off_t at = 0;; at += 5) {
                store(1);
                assert_return_code(stat(path_of("1.1000/job"), &st), errno);
                if (at >= st.st_size)
                        break;
                flip("1.1000/job", at);
                look();
                assert_int_equal(n_found >= 1, 1);
                assert_non_null(found[n_found - 1].damage);
                assert_int_equal(strncmp(damage[n_found - 1], "job: ", 5), 0);
                assert_false(exists("1.1000"));
                forget();
                tear_down(state);
                set_up(state);
        }
}

static void a_record_of_another_version_is_said_to_be(void **state) {
        store(1);
        flip("1.1000/job", 8);
        look();
        assert_non_null(strstr(damage[0], "version"));
        assert_true(exists("damaged/1.1000/job"));
}

static void a_record_that_is_cut_short_is_set_aside_and_stays_known(void **state) {
        store(1);
        store(2);
        assert_return_code(truncate(path_of("1.1000/job"), 30), errno);
        look();
        assert_int_equal(n_found, 2);
        look();
        assert_int_equal(n_found, 2);
        for (size_t i = 0; i < 2; ++i)
                assert_int_equal(found[i].damage != NULL, found[i].number == 1);
}

static void a_record_that_is_no_file_is_set_aside(void **state) {
        store(1);
        assert_return_code(unlink(path_of("1.1000/job")), errno);
        assert_return_code(mkfifo(path_of("1.1000/job"), 0600), errno);
        look();
        assert_non_null(strstr(damage[0], "is no file"));
}

static void a_record_in_the_folder_of_another_number_is_set_aside(void **state) {
        char from[256];

        store(1);
        snprintf(from, sizeof(from), "%s", path_of("1.1000"));
        assert_return_code(rename(from, path_of("1.1001")), errno);
        look();
        assert_non_null(strstr(damage[0], "does not fit"));
}

static void input_that_is_not_what_was_written_is_told(void **state) {
        SpoolProblem problem;

        store(1);
        look();
        flip("1.1000/input", BYTES - 1);
        assert_int_equal(load(1, &problem), SPOOL_E_DAMAGED);
        assert_string_equal(problem.text, "input: its checksum does not match");
        assert_return_code(truncate(path_of("1.1000/input"), BYTES - 1), errno);
        assert_int_equal(load(1, &problem), SPOOL_E_DAMAGED);
        assert_string_equal(problem.text, "input: is cut short or too long");
        assert_return_code(unlink(path_of("1.1000/input")), errno);
        assert_int_equal(load(1, &problem), SPOOL_E_DAMAGED);
        assert_string_equal(problem.text, "input: is missing");
}

static void a_module_that_is_not_what_was_written_is_told(void **state) {
        SpoolProblem problem;

        store(1);
        look();
        flip("1.1000/image.0", 3);
        assert_int_equal(load(1, &problem), SPOOL_E_DAMAGED);
        assert_string_equal(problem.text, "image.0: its checksum does not match");
}

static void two_of_one_number_may_be_set_aside(void **state) {
        store(1);
        assert_int_equal(spool_set_aside(spool, 1, UID), 0);
        store(1);
        assert_int_equal(spool_set_aside(spool, 1, UID), 0);
        assert_true(exists("damaged/1.1000") && exists("damaged/1.1000.1"));
}

static void another_daemon_is_kept_out(void **state) {
        Spool *other;

        assert_int_equal(spool_open(folder, &other), SPOOL_E_BUSY);
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
        Spool *other;

        assert_int_equal(spool_open("/nowhere/at/all", &other), -ENOENT);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(what_was_stored_is_found_and_loaded),
                TEST(an_end_keeps_the_output_and_lets_the_input_go),
                TEST(a_number_is_never_given_twice),
                TEST(the_numbers_of_folders_count_though_the_file_of_numbers_is_damaged),
                TEST(what_was_interrupted_leaves_nothing),
                TEST(any_bit_of_a_record_counts),
                TEST(a_record_of_another_version_is_said_to_be),
                TEST(a_record_that_is_cut_short_is_set_aside_and_stays_known),
                TEST(a_record_that_is_no_file_is_set_aside),
                TEST(a_record_in_the_folder_of_another_number_is_set_aside),
                TEST(input_that_is_not_what_was_written_is_told),
                TEST(a_module_that_is_not_what_was_written_is_told),
                TEST(two_of_one_number_may_be_set_aside),
                TEST(another_daemon_is_kept_out),
                TEST(a_folder_that_is_not_there_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

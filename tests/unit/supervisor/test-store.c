/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store.h"

#define UID       1000u
#define BYTES     600000u /* of input: more than a block */
#define IMAGE     "not really a module"
#define OUT_PLACE 600064u
#define OUTPUT    "what it wrote"
#define N_OUTPUT  13u

/* Bytes that were pushed to the disk, and how many of them were waited for. */
static uint64_t n_pushed, n_awaited;
int __real_sync_file_range(int fd, off_t offset, off_t n, unsigned flags);
int __wrap_sync_file_range(int fd, off_t offset, off_t n, unsigned flags);

int __wrap_sync_file_range(int fd, off_t offset, off_t n, unsigned flags) {
        if (flags & SYNC_FILE_RANGE_WAIT_AFTER)
                n_awaited = MAX(n_awaited, (uint64_t)(offset + n));
        else
                n_pushed = MAX(n_pushed, (uint64_t)(offset + n));
        return __real_sync_file_range(fd, offset, n, flags);
}

static char folder[64];
static Store *store;
static StoreContent content;

/* ---- a job ----------------------------------------------------------------- */

static Gpuq__V1__Buffer *buffer_new(uint64_t offset, uint64_t length, bool output) {
        Gpuq__V1__Buffer *buffer = malloc(sizeof(*buffer));

        gpuq__v1__buffer__init(buffer);
        buffer->offset = offset;
        buffer->length = length;
        buffer->direction = output ? GPUQ__V1__DIRECTION__OUT : GPUQ__V1__DIRECTION__IN;
        return buffer;
}

/* As if it had been read; freed by stored_job_clear(). */
static StoredJob make_job(uint32_t number) {
        StoredJob job = {.number = number, .uid = UID};
        Gpuq__V1__Detach *detach = malloc(sizeof(*detach));
        Gpuq__V1__ModuleLoad *module = malloc(sizeof(*module));

        gpuq__v1__detach__init(detach);
        detach->job = malloc(sizeof(*detach->job));
        gpuq__v1__job__init(detach->job);
        detach->job->n_buffers = 2;
        detach->job->buffers = malloc(2 * sizeof(Gpuq__V1__Buffer *));
        detach->job->buffers[0] = buffer_new(0, BYTES, false);
        detach->job->buffers[1] = buffer_new(OUT_PLACE, N_OUTPUT, true);
        detach->key = 77;
        gpuq__v1__module_load__init(module);
        module->image = 1;
        module->length = strlen(IMAGE);
        job.record = malloc(sizeof(*job.record));
        gpuq__detached__record__init(job.record);
        job.record->detach = detach;
        job.record->n_modules = 1;
        job.record->modules = malloc(sizeof(Gpuq__V1__ModuleLoad *));
        job.record->modules[0] = module;
        assert_int_equal(stored_job_check(&job), 0);
        return job;
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
        int fd = make_memfd(OUT_PLACE + N_OUTPUT);
        uint8_t *bytes = malloc(BYTES);

        assert_non_null(bytes);
        for (size_t i = 0; i < BYTES; ++i)
                bytes[i] = byte_at(i);
        assert_int_equal(pwrite(fd, bytes, BYTES, 0), BYTES);
        assert_int_equal(pwrite(fd, OUTPUT, N_OUTPUT, OUT_PLACE), N_OUTPUT);
        free(bytes);
        return fd;
}

static void add(uint32_t number) {
        StoredJob job = make_job(number);
        int arena = make_arena(), image = make_memfd(strlen(IMAGE));
        PayloadPart parts[3];
        size_t n = stored_job_parts(&job, false, arena, parts);

        assert_int_equal(n, 1);
        parts[n++] = (PayloadPart){image, 0, strlen(IMAGE)};
        assert_int_equal(pwrite(image, IMAGE, strlen(IMAGE), 0), strlen(IMAGE));
        assert_int_equal(store_add(store, &job, parts, n), 0);
        stored_job_clear(&job);
        close(arena);
        close(image);
}

/* ---- what is there --------------------------------------------------------- */

static int reopen(void) {
        store_content_clear(&content);
        store = store_free(store);
        return store_open(folder, &store, &content);
}

/* As the next daemon does. */
static void look(void) {
        assert_int_equal(reopen(), 0);
}

static int set_up(void **state) {
        snprintf(folder, sizeof(folder), "/tmp/gpuq-store-XXXXXX");
        assert_non_null(mkdtemp(folder));
        look();
        return 0;
}

static int tear_down(void **state) {
        char command[128];

        store_content_clear(&content);
        store = store_free(store);
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

static void make_file(const char *name) {
        assert_return_code(close(open(path_of(name), O_CREAT | O_WRONLY, 0600)), errno);
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

/* A statement of somebody else, while nobody has the store. */
static void change(const char *sql) {
        sqlite3 *db;

        store = store_free(store);
        assert_int_equal(sqlite3_open(path_of("jobs.sqlite"), &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}

static int load(const StoredJob *job, char damage[PAYLOAD_DAMAGE_MAX]) {
        int arena = make_memfd(OUT_PLACE + N_OUTPUT), image = make_memfd(strlen(IMAGE)), r;
        PayloadPart parts[3];
        size_t n = stored_job_parts(job, false, arena, parts);
        char text[sizeof(IMAGE)] = "";
        uint8_t byte;

        parts[n++] = (PayloadPart){image, 0, strlen(IMAGE)};
        r = store_load(store, job, false, parts, n, damage);
        for (size_t i = 0; r == 0 && i < BYTES; i += 997) {
                assert_int_equal(pread(arena, &byte, 1, (off_t)i), 1);
                assert_int_equal(byte, byte_at(i));
        }
        if (r == 0) {
                assert_int_equal(pread(image, text, strlen(IMAGE), 0), strlen(IMAGE));
                assert_string_equal(text, IMAGE);
        }
        close(arena);
        close(image);
        return r;
}

static void expect_damage(const StoredJob *job, const char *words) {
        char damage[PAYLOAD_DAMAGE_MAX];

        assert_int_equal(load(job, damage), STORE_E_DAMAGED);
        assert_string_equal(damage, words);
}

static void end(StoredJob *job) {
        PayloadPart parts[2];
        int arena = make_arena();

        job->end = malloc(sizeof(*job->end));
        gpuq__detached__end__init(job->end);
        job->end->completion = malloc(sizeof(*job->end->completion));
        gpuq__v1__completion__init(job->end->completion);
        job->end->completion->id = job->number;
        job->end->completion->state = GPUQ__V1__STATE__DONE;
        assert_int_equal(store_end(store, job, parts, stored_job_parts(job, true, arena, parts)),
                         0);
        close(arena);
}

static int load_output(const StoredJob *job, char damage[PAYLOAD_DAMAGE_MAX]) {
        PayloadPart part = {make_memfd(N_OUTPUT), 0, N_OUTPUT};
        char text[N_OUTPUT + 1] = "";
        int r;

        r = store_load(store, job, true, &part, 1, damage);
        assert_int_equal(pread(part.fd, text, N_OUTPUT, 0), N_OUTPUT);
        if (r == 0)
                assert_string_equal(text, OUTPUT);
        close(part.fd);
        return r;
}

/* ---- tests ----------------------------------------------------------------- */

static void what_was_stored_is_found_and_loaded(void **state) {
        char damage[PAYLOAD_DAMAGE_MAX];

        add(1);
        look();
        assert_int_equal(content.n_jobs, 1);
        assert_null(content.jobs[0].damage);
        assert_null(content.jobs[0].end);
        assert_int_equal(content.jobs[0].uid, UID);
        assert_int_equal(content.jobs[0].record->detach->key, 77);
        assert_int_equal(load(&content.jobs[0], damage), 0);
}

static void an_end_keeps_the_output_and_lets_the_input_go(void **state) {
        char damage[PAYLOAD_DAMAGE_MAX];

        add(1);
        look();
        end(&content.jobs[0]);
        assert_false(exists("1.1000.in"));
        look();
        assert_non_null(content.jobs[0].end);
        assert_int_equal(load_output(&content.jobs[0], damage), 0);
        flip("1.1000.out", 3);
        assert_int_equal(load_output(&content.jobs[0], damage), STORE_E_DAMAGED);
        assert_string_equal(damage, "1.1000.out: its checksum does not match");
}

static void what_is_removed_leaves_nothing(void **state) {
        add(1);
        look();
        end(&content.jobs[0]);
        assert_int_equal(store_remove(store, &content.jobs[0]), 0);
        assert_false(exists("1.1000.in") || exists("1.1000.out"));
        look();
        assert_int_equal(content.n_jobs, 0);
        change("INSERT INTO jobs VALUES (1, 1000, x'', 0, NULL)"); /* has it an end? */
        look();
        assert_null(content.jobs[0].end);
}

static void a_number_is_never_given_twice(void **state) {
        add(300);
        look();
        assert_int_equal(content.last, 300);
        assert_int_equal(store_remove(store, &content.jobs[0]), 0);
        look();
        assert_int_equal(content.n_jobs, 0);
        assert_int_equal(content.last, 300);
}

static void what_was_interrupted_leaves_nothing(void **state) {
        add(1);
        add(2);
        look();
        end(&content.jobs[1]);
        make_file("1.1000.out"); /* the output of a job whose end was not written yet */
        make_file("2.1000.in");  /* the input of one that had ended */
        make_file("3.1000.in");  /* one that was never acknowledged */
        look();
        assert_int_equal(content.n_jobs, 2);
        assert_true(exists("1.1000.in") && exists("2.1000.out"));
        assert_false(exists("1.1000.out") || exists("2.1000.in") || exists("3.1000.in"));
}

static void files_of_others_stay(void **state) {
        make_file("5.1000.inx");
        make_file("05.1000.in");
        make_file("last");
        assert_return_code(mkdir(path_of("6.1000"), 0700), errno);
        look();
        assert_int_equal(content.n_old, 1);
        assert_true(exists("5.1000.inx") && exists("05.1000.in") && exists("last") &&
                    exists("6.1000"));
}

/* Wherever a bit of the database changes: the job is as it was, or its damage is told, or that of all. */
static void any_bit_of_the_database_counts(void **state) {
        unsigned n_whole = 0, n_damaged = 0, n_refused = 0;
        char command[256];
        struct stat st;

        add(1);
        store = store_free(store);
        assert_return_code(stat(path_of("jobs.sqlite"), &st), errno);
        snprintf(command, sizeof(command), "cp %s/jobs.sqlite %s/good", folder, folder);
        assert_int_equal(system(command), 0);
        for (off_t at = 0; at < st.st_size; at += 61) {
                flip("jobs.sqlite", at);
                if (reopen() != 0)
                        n_refused++;
                else if (content.n_jobs && content.jobs[0].damage)
                        n_damaged++;
                else if (content.n_jobs && content.jobs[0].record->detach->key == 77)
                        n_whole++;
                else
                        fail_msg("byte %ld: the job is gone", (long)at);
                assert_true(exists("1.1000.in"));
                store_content_clear(&content);
                store = store_free(store);
                snprintf(command, sizeof(command), "cp %s/good %s/jobs.sqlite; rm -f %s/*-journal",
                         folder, folder, folder);
                assert_int_equal(system(command), 0);
        }
        assert_true(n_whole && n_damaged && n_refused);
}

static void a_row_that_changed_is_told_and_the_others_are_whole(void **state) {
        add(1);
        add(2);
        change("UPDATE jobs SET data = zeroblob(length(data)) WHERE number = 1");
        make_file("3.1000.in"); /* where rows may be lost no file is removed */
        look();
        assert_int_equal(content.n_jobs, 2);
        assert_non_null(content.jobs[0].damage);
        assert_null(content.jobs[1].damage);
        assert_true(exists("1.1000.in") && exists("3.1000.in"));
}

static void an_end_that_changed_is_no_end(void **state) {
        add(1);
        look();
        end(&content.jobs[0]);
        change("UPDATE ends SET \"check\" = \"check\" + 1");
        look();
        assert_non_null(content.jobs[0].damage);
        assert_true(exists("1.1000.out"));
}

static void a_database_that_is_gone_costs_no_file(void **state) {
        add(1);
        store = store_free(store);
        assert_return_code(unlink(path_of("jobs.sqlite")), errno);
        look();
        assert_int_equal(content.n_jobs, 0);
        assert_int_equal(content.last, 1);
        assert_true(exists("1.1000.in"));
}

static void a_database_that_is_none_is_refused_and_stays(void **state) {
        struct stat st;

        add(1);
        store = store_free(store);
        assert_return_code(truncate(path_of("jobs.sqlite"), 5000), errno);
        assert_int_equal(reopen(), STORE_E_DAMAGED);
        flip("jobs.sqlite", 3);
        assert_int_equal(reopen(), STORE_E_DAMAGED);
        assert_return_code(stat(path_of("jobs.sqlite"), &st), errno);
        assert_int_equal(st.st_size, 5000);
        assert_true(exists("1.1000.in"));
}

static void a_database_of_another_version_is_refused(void **state) {
        change("PRAGMA user_version = 2");
        assert_int_equal(reopen(), STORE_E_VERSION);
}

static void input_that_is_not_what_was_written_is_told(void **state) {
        add(1);
        look();
        flip("1.1000.in", BYTES - 1);
        expect_damage(&content.jobs[0], "1.1000.in: its checksum does not match");
        flip("1.1000.in", BYTES - 1);
        flip("1.1000.in", BYTES + 3); /* of the module's image */
        expect_damage(&content.jobs[0], "1.1000.in: its checksum does not match");
        assert_return_code(truncate(path_of("1.1000.in"), BYTES - 1), errno);
        expect_damage(&content.jobs[0], "1.1000.in: is truncated or too long");
        assert_return_code(unlink(path_of("1.1000.in")), errno);
        expect_damage(&content.jobs[0], "1.1000.in: No such file or directory");
        assert_return_code(mkfifo(path_of("1.1000.in"), 0600), errno);
        expect_damage(&content.jobs[0], "1.1000.in: is not a file");
        look(); /* it was noted */
        assert_string_equal(content.jobs[0].damage, "1.1000.in: is not a file");
        assert_true(exists("1.1000.in"));
}

static void another_daemon_is_kept_out(void **state) {
        StoreContent theirs;
        Store *other;

        assert_int_equal(store_open(folder, &other, &theirs), STORE_E_BUSY);
}

/* A call that was interrupted anywhere leaves a store that opens, with all that was acknowledged. */
static void a_kill_at_any_moment_loses_nothing(void **state) {
        int told[2];
        pid_t child;
        uint32_t number, last = 0;

        for (unsigned turn = 0; turn < 5; ++turn) {
                store_content_clear(&content);
                store = store_free(store);
                assert_return_code(pipe(told), errno);
                child = fork();
                if (child == 0) {
                        if (store_open(folder, &store, &content) != 0)
                                _exit(1);
                        for (number = content.last + 1;; ++number) {
                                add(number);
                                if (write(told[1], &number, sizeof(number)) != sizeof(number))
                                        _exit(1);
                        }
                }
                close(told[1]);
                for (unsigned i = 0; i < 3; ++i)
                        assert_int_equal(read(told[0], &last, sizeof(last)), sizeof(last));
                assert_int_equal(kill(child, SIGKILL), 0);
                assert_int_equal(waitpid(child, NULL, 0), child);
                while (read(told[0], &number, sizeof(number)) == sizeof(number))
                        last = number;
                close(told[0]);
                look();
                assert_true(content.n_jobs >= last);
                for (size_t i = 0; i < content.n_jobs; ++i)
                        assert_null(content.jobs[i].damage);
        }
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
        StoreContent theirs;
        Store *other;

        assert_int_equal(store_open("/nowhere/at/all", &other, &theirs), -ENOENT);
}

static void nobody_has_more_than_half_of_what_is_free(void **state) {
        assert_int_equal(store_check_share(store, 1, 1), 0);
        assert_int_equal(store_check_share(store, 1ull << 62, 1), STORE_E_SHARE);
        assert_int_equal(store_check_share(store, 1ull << 62, 1ull << 62), -ENOSPC);
        assert_int_equal(store_check_share(store, UINT64_MAX, UINT64_MAX), -ENOSPC);
}

/* Other users' files wait for what of this one is in memory only. */
static void large_file_goes_to_the_disk_while_it_is_written(void **state) {
        const uint64_t n_bytes = 33u << 20;
        int fd = memfd_create("large", MFD_CLOEXEC);
        int where = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        PayloadPart part = {fd, 0, n_bytes};
        uint64_t check;

        assert_int_equal(ftruncate(fd, (off_t)n_bytes), 0);
        n_pushed = n_awaited = 0;
        assert_int_equal(payload_write(where, "large", &part, 1, &check), 0);
        assert_in_range(n_pushed, n_bytes - (4u << 20), n_bytes);
        assert_in_range(n_awaited, n_bytes - (8u << 20), n_bytes);
        assert_int_equal(unlinkat(where, "large", 0), 0);
        close(where);
        close(fd);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(what_was_stored_is_found_and_loaded),
                TEST(an_end_keeps_the_output_and_lets_the_input_go),
                TEST(what_is_removed_leaves_nothing),
                TEST(a_number_is_never_given_twice),
                TEST(what_was_interrupted_leaves_nothing),
                TEST(files_of_others_stay),
                TEST(any_bit_of_the_database_counts),
                TEST(a_row_that_changed_is_told_and_the_others_are_whole),
                TEST(an_end_that_changed_is_no_end),
                TEST(a_database_that_is_gone_costs_no_file),
                TEST(a_database_that_is_none_is_refused_and_stays),
                TEST(a_database_of_another_version_is_refused),
                TEST(input_that_is_not_what_was_written_is_told),
                TEST(another_daemon_is_kept_out),
                TEST(a_kill_at_any_moment_loses_nothing),
                TEST(a_folder_that_is_not_there_is_an_error),
                TEST(nobody_has_more_than_half_of_what_is_free),
                TEST(large_file_goes_to_the_disk_while_it_is_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

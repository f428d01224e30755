/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "detached_state.h"
#include "ledger.h"
#include "util/log.h"

static bool is_disk_shared_out;
int __real_store_check_share(const Store *where, uint64_t n_held, uint64_t n_new);
int __wrap_store_check_share(const Store *where, uint64_t n_held, uint64_t n_new);

int __wrap_store_check_share(const Store *where, uint64_t n_held, uint64_t n_new) {
        return is_disk_shared_out ? STORE_E_SHARE : __real_store_check_share(where, n_held, n_new);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
        return remove(path);
}

static void detach_with(FakeClient *client, uint64_t n_bytes, uint64_t key) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Detach detach = GPUQ__V1__DETACH__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;

        buffer.arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        buffer.length = n_bytes;
        buffer.direction = GPUQ__V1__DIRECTION__OUT;
        kernel.module = client->module;
        kernel.name = "add";
        job.buffers = &buffers;
        job.n_buffers = 1;
        job.kernels = &kernels;
        job.n_kernels = 1;
        job.operations.data = (uint8_t *)"operations";
        job.operations.len = 10;
        detach.job = &job;
        detach.key = key;
        request.body_case = GPUQ__V1__REQUEST__BODY_DETACH;
        request.detach = &detach;
        fake_send(client, &request);
}

static void detach(FakeClient *client) {
        detach_with(client, 64, 0);
}

static bool knows_the_disk(void *userdata) {
        const Fake *fake = userdata;

        return fake->supervisor->clients.detached->is_known;
}

static bool is_on_disk(void *userdata) {
        const Fake *fake = userdata;
        const DetachedTable *table = fake->supervisor->clients.detached;

        return table->is_known && table->jobs && table->jobs->state != DETACHED_STORING;
}

typedef struct Folder {
        char path[32], jobs[64], setting[64];
        char *settings[2];
} Folder;

static void folder_make(Folder *folder) {
        strcpy(folder->path, "/tmp/gpuq-test-XXXXXX");
        assert_non_null(mkdtemp(folder->path));
        snprintf(folder->jobs, sizeof(folder->jobs), "%s/jobs", folder->path);
        assert_int_equal(mkdir(folder->jobs, 0700), 0);
        snprintf(folder->setting, sizeof(folder->setting), "state_dir=%s", folder->path);
        folder->settings[0] = folder->setting;
        folder->settings[1] = NULL;
}

static void folder_remove(const Folder *folder) {
        assert_int_equal(nftw(folder->path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- a disk that fails, a folder that is taken ---- */

static void expect_no_job(FakeClient *client, const char *words) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        Gpuq__V1__Fetch fetch = GPUQ__V1__FETCH__INIT;

        fetch.id = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_FETCH;
        request.fetch = &fetch;
        fake_send(client, &request);
        fake_expect_error(client, GPUQ__V1__CODE__E_NO_DEVICE, words);
        cancel.n_ids = 1;
        cancel.ids = &fetch.id;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(client, &request);
        fake_expect_error(client, GPUQ__V1__CODE__E_NO_DEVICE, words);
}

static bool finds_it_taken(void *userdata) {
        const Fake *fake = userdata;

        return strstr(fake->supervisor->clients.detached->problem, "another gpuqd") != NULL;
}

static bool finds_it_free(void *userdata) {
        const Fake *fake = userdata;

        detached_tick(fake->supervisor->clients.detached, uv_hrtime());
        return fake->supervisor->clients.detached->is_known;
}

/* A process that was killed may have the folder for as long as the disk takes. */
static void folder_that_another_has_is_waited_for(void **state) {
        char path[80];
        FakeClient *client;
        Folder folder;
        sqlite3 *other;
        Fake *fake;

        folder_make(&folder);
        snprintf(path, sizeof(path), "%s/jobs.sqlite", folder.jobs);
        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, finds_it_taken, fake);
        assert_false(detached_is_known(fake->supervisor->clients.detached) &&
                     !fake->supervisor->clients.detached->is_late);
        detached_tick(fake->supervisor->clients.detached,
                      uv_hrtime() + DETACHED_BUSY_MS * 1000000ull);
        assert_true(detached_is_known(fake->supervisor->clients.detached));

        /* Whoever asks is told that, not that there is no such job. */
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        expect_no_job(client, "another gpuqd uses it");

        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        fake_wait(fake, finds_it_free, fake);
        detach(client);
        fake_wait(fake, is_on_disk, fake);
        fake_client_close(client);
        fake_free(fake);
        folder_remove(&folder);
}

static bool lets_in_without_it(void *userdata) {
        const Fake *fake = userdata;

        return fake->supervisor->clients.detached->is_late &&
               !fake->supervisor->clients.detached->scan;
}

typedef struct Capture {
        int fd, saved;
} Capture;

/* From here on the log goes to a file, until assert_captured(). */
static Capture capture_log(void) {
        Capture capture = {memfd_create("test-log", MFD_CLOEXEC), dup(STDERR_FILENO)};

        assert_true(capture.fd >= 0 && capture.saved >= 0 && dup2(capture.fd, STDERR_FILENO) >= 0);
        log_open("test", LOG_INFO);
        return capture;
}

static void assert_captured(Capture capture, const char *words, size_t n) {
        char text[4096] = {};
        size_t found = 0;

        log_open("test", LOG_ERR);
        assert_true(dup2(capture.saved, STDERR_FILENO) >= 0);
        close(capture.saved);
        assert_true(pread(capture.fd, text, sizeof(text) - 1, 0) >= 0);
        close(capture.fd);
        for (const char *at = text; (at = strstr(at, words)); at++)
                found++;
        assert_int_equal(found, n);
}

/* The words that the log has @n times by the time that @done is true. */
static void assert_logged(Fake *fake, bool (*done)(void *userdata), const char *words, size_t n) {
        Capture capture = capture_log();

        fake_wait(fake, done, fake);
        assert_captured(capture, words, n);
}

/* As if a minute had passed since the last look at it. */
static void look_again(Fake *fake) {
        detached_tick(fake->supervisor->clients.detached, uv_hrtime());
        assert_null(fake->supervisor->clients.detached->scan);
        detached_tick(fake->supervisor->clients.detached,
                      uv_hrtime() + DETACHED_RETRY_MAX_MS * 1000000ull);
        assert_non_null(fake->supervisor->clients.detached->scan);
}

static bool knows_two_jobs(void *userdata) {
        const Fake *fake = userdata;

        return HASH_COUNT(fake->supervisor->clients.detached->jobs) == 2;
}

static void a_disk_that_is_mended_serves_again(void **state) {
        FakeClient *client;
        char away[80];
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake);
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        detach(client);
        fake_wait(fake, is_on_disk, fake);
        fake_client_close(client);
        fake_free(fake);

        snprintf(away, sizeof(away), "%s/away", folder.path);
        assert_int_equal(rename(folder.jobs, away), 0);
        close(open(folder.jobs, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        fake = fake_new(1, folder.settings);
        fake_wait(fake, lets_in_without_it, fake);
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        expect_no_job(client, "Not a directory");

        /* It is told once, and again when it is another failure. */
        look_again(fake);
        assert_logged(fake, lets_in_without_it, "cannot store", 0);
        assert_int_equal(unlink(folder.jobs), 0);
        look_again(fake);
        assert_logged(fake, lets_in_without_it, "No such file", 1);
        expect_no_job(client, "No such file");

        assert_int_equal(rename(away, folder.jobs), 0);
        look_again(fake);
        assert_logged(fake, knows_the_disk, "found 1 detached job on disk", 1);
        assert_non_null(detached_find(fake->supervisor->clients.detached, 1));
        detach(client);
        fake_wait(fake, knows_two_jobs, fake);
        fake_wait(fake, is_on_disk, fake);
        fake_client_close(client);
        fake_free(fake);
        folder_remove(&folder);
}

/* ---- a takeover ---- */

/* What it was read into would be mistaken for what is in the ledger. */
static void none_runs_before_all_is_taken_over(void **state) {
        FakeClient *client;
        Folder folder;
        Fake *fake;
        int ledger;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake); /* before that no client is let in */
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        detach(client);
        fake_wait(fake, is_on_disk, fake);
        fake_client_close(client);
        ledger = dup(ledger_fd(fake->supervisor->engine.ledger));
        fake_stop(fake);

        fake->n_devices = 0;
        fake_start(fake, folder.settings);
        fake_hand_over(fake, KEEPER_KEY_LEDGER, ledger);
        close(ledger);
        fake_begin(fake);
        fake_wait(fake, is_on_disk, fake);
        fake_turn(fake);
        assert_null(fake->supervisor->engine.arenas.by_id);
        fake_free(fake);
        folder_remove(&folder);
}

/* ---- what an earlier version left ---- */

static void jobs_of_an_earlier_version_are_told_and_left_alone(void **state) {
        Capture capture;
        char path[96];
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        snprintf(path, sizeof(path), "%s/7.1000", folder.jobs);
        assert_int_equal(mkdir(path, 0700), 0);
        capture = capture_log();
        fake_log_level = LOG_INFO;
        fake = fake_new(1, folder.settings); /* the disk may answer meanwhile */
        fake_log_level = LOG_ERR;
        fake_wait(fake, knows_the_disk, fake);
        assert_captured(capture, "1 detached jobs of an earlier version of gpuqd", 1);
        assert_int_equal(access(path, F_OK), 0);
        fake_free(fake);
        folder_remove(&folder);
}

/* It would take the place of another buffer when they are packed. */
static void an_empty_buffer_is_refused(void **state) {
        FakeClient *client;
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake);
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        detach_with(client, 0, 0);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "buffer 1 is empty");
        fake_client_close(client);
        fake_free(fake);
        folder_remove(&folder);
}

/* A check that the stored job passed may fail now: here the job is sent with an empty buffer. */
static void a_stored_job_that_is_resent_is_not_checked_again(void **state) {
        Gpuq__V1__Reply *reply;
        FakeClient *client;
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake);
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        for (unsigned i = 0; i < 2; ++i) {
                detach_with(client, i == 0 ? 64 : 0, 7);
                reply = fake_receive(client);
                assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_DETACHED);
                assert_int_equal(reply->detached->id,
                                 detached_id(fake->supervisor->clients.detached->jobs));
        }
        assert_int_equal(HASH_COUNT(fake->supervisor->clients.detached->jobs), 1);
        detach_with(client, 0, 8);
        fake_expect_error(client, GPUQ__V1__CODE__E_INVALID, "buffer 1 is empty");
        fake_client_close(client);
        fake_free(fake);
        folder_remove(&folder);
}

/* One for each user who ever detached a job stayed for ever. */
static void owner_without_jobs_is_freed(void **state) {
        char *settings[] = {NULL, (char *)"detached_bytes=2K", NULL};
        FakeClient *clients[2];
        DetachedTable *table;
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        settings[0] = folder.setting;
        fake = fake_new(1, settings);
        table = fake->supervisor->clients.detached;
        fake_wait(fake, knows_the_disk, fake);
        for (unsigned i = 0; i < 2; ++i) {
                clients[i] = fake_client(fake, FAKE_UID + i);
                fake_module(clients[i]);
        }
        detach(clients[0]);
        assert_int_equal(fake_receive(clients[0])->body_case, GPUQ__V1__REPLY__BODY_DETACHED);
        detach_with(clients[0], 4096, 0);
        fake_expect_error(clients[0], GPUQ__V1__CODE__E_QUOTA, "detached_bytes");
        assert_int_equal(table->owners->n_jobs, 1); /* what was refused does not count */

        detach_with(clients[1], 4096, 0);
        fake_expect_error(clients[1], GPUQ__V1__CODE__E_QUOTA, "detached_bytes");
        detached_tick(table, uv_hrtime());
        assert_int_equal(HASH_COUNT(table->owners), 1);
        assert_int_equal(table->owners->uid, FAKE_UID);
        for (unsigned i = 0; i < 2; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
        folder_remove(&folder);
}

/* One user's detached jobs could fill the disk for all. */
static void nobody_takes_the_last_of_the_disk(void **state) {
        FakeClient *client;
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake);
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        is_disk_shared_out = true;
        detach(client);
        fake_expect_error(client, GPUQ__V1__CODE__E_QUOTA, "more than half");
        is_disk_shared_out = false;
        detach(client);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_DETACHED);
        fake_client_close(client);
        fake_free(fake);
        folder_remove(&folder);
}

/* Each was compared with all jobs of all users. */
static void jobs_are_found_by_their_key_and_user(void **state) {
        FakeClient *client, *other;
        const DetachedTable *table;
        Folder folder;
        Fake *fake;

        folder_make(&folder);
        fake = fake_new(1, folder.settings);
        fake_wait(fake, knows_the_disk, fake);
        table = fake->supervisor->clients.detached;
        client = fake_client(fake, FAKE_UID);
        other = fake_client(fake, FAKE_UID + 1);
        fake_module(client);
        fake_module(other);
        detach_with(client, 64, 77);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_DETACHED);
        detach_with(other, 64, 77);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_DETACHED);
        assert_int_equal(detached_id(detached_find_key(table, FAKE_UID, 77)), 1);
        assert_int_equal(detached_id(detached_find_key(table, FAKE_UID + 1, 77)), 2);
        assert_null(detached_find_key(table, FAKE_UID, 78));
        assert_null(detached_find_key(table, FAKE_UID + 2, 77));
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
        folder_remove(&folder);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nobody_takes_the_last_of_the_disk),
                cmocka_unit_test(jobs_are_found_by_their_key_and_user),
                cmocka_unit_test(folder_that_another_has_is_waited_for),
                cmocka_unit_test(a_disk_that_is_mended_serves_again),
                cmocka_unit_test(none_runs_before_all_is_taken_over),
                cmocka_unit_test(jobs_of_an_earlier_version_are_told_and_left_alone),
                cmocka_unit_test(an_empty_buffer_is_refused),
                cmocka_unit_test(owner_without_jobs_is_freed),
                cmocka_unit_test(a_stored_job_that_is_resent_is_not_checked_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/detached.h"
#include "supervisor/ledger.h"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
        return remove(path);
}

static void detach(FakeClient *client) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Detach detach = GPUQ__V1__DETACH__INIT;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;

        buffer.arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        buffer.length = 64;
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
        request.body_case = GPUQ__V1__REQUEST__BODY_DETACH;
        request.detach = &detach;
        fake_send(client, &request);
}

static bool knows_the_disk(void *userdata) {
        const Fake *fake = userdata;

        return fake->supervisor->detached->is_known;
}

static bool is_on_disk(void *userdata) {
        const Fake *fake = userdata;
        const DetachedTable *table = fake->supervisor->detached;

        return table->is_known && table->jobs && table->jobs->state != DETACHED_STORING;
}

/* What it was read into would be mistaken for what is in the ledger. */
static void none_runs_before_all_is_taken_over(void **state) {
        char folder[] = "/tmp/gpuq-test-XXXXXX", jobs[64], setting[64];
        char *settings[] = {setting, NULL};
        FakeClient *client;
        Fake *fake;
        int ledger;

        assert_non_null(mkdtemp(folder));
        snprintf(jobs, sizeof(jobs), "%s/jobs", folder);
        assert_int_equal(mkdir(jobs, 0700), 0);
        snprintf(setting, sizeof(setting), "state_dir=%s", folder);
        fake = fake_new(1, settings);
        fake_wait(fake, knows_the_disk, fake); /* before that no client is let in */
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        detach(client);
        fake_wait(fake, is_on_disk, fake);
        fake_client_close(client);
        ledger = dup(ledger_fd(fake->supervisor->ledger));
        fake_stop(fake);

        fake->n_devices = 0;
        fake_start(fake, settings);
        fake_hand_over(fake, KEEPER_KEY_LEDGER, ledger);
        close(ledger);
        fake_begin(fake);
        fake_wait(fake, is_on_disk, fake);
        fake_turn(fake);
        assert_null(fake->supervisor->arenas);
        fake_free(fake);
        assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(none_runs_before_all_is_taken_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

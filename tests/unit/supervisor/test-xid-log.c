/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "drain.h"
#include "xid_log.h"

#define OF_DEVICE_0 "6,1,2,-;NVRM: Xid (PCI:0000:10:00): "
#define OF_DEVICE_1 "6,1,2,-;NVRM: Xid (PCI:0000:11:00): "
#define WORKER      "pid=1000, name=gpuqd-worker, " /* as fake.c has it of all */

static const WorkerPhase issued[] = {WORKER_PHASE_ISSUED, WORKER_PHASE_ISSUED};

/* Our end of what stands in for the kernel's log: a record each packet. */
static int kernel = -1;

static void give_log(Fake *fake) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
        assert_int_equal(xid_log_new(fds[0], &fake->supervisor->monitor.xid_log), 0);
        fake->supervisor->engine.reads_kernel_log = true;
        kernel = fds[1];
}

static int set_up(void **state) {
        Fake *fake = fake_new(2, NULL);

        give_log(fake);
        *state = fake;
        return 0;
}

static int tear_down(void **state) {
        close(kernel);
        fake_free(*state);
        return 0;
}

static void log_says(const char *record) {
        assert_int_equal(send(kernel, record, strlen(record), 0), strlen(record));
}

/* The error of a job that is the only one in flight, and faults. */
static const char *fault(Fake *fake, FakeClient *client, size_t index) {
        uint64_t id = fake_submit(client, (FakeJob){.device = 1});
        Gpuq__V1__Completion *end;

        fake_stopped(fake, fake_worker(fake, index, 1), "CUDA_ERROR_ILLEGAL_ADDRESS", &id, issued,
                     1);
        end = fake_completion(client, id);
        assert_int_equal(end->state, GPUQ__V1__STATE__FAILED);
        assert_int_equal(end->error->code, GPUQ__V1__CODE__E_FAULT);
        return end->error->text;
}

/* ---- the reason of a job's fault ------------------------------------------- */

static void of_its_own_worker_it_is_told_whole(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);

        log_says(OF_DEVICE_0 "31, " WORKER "Ch 00000008. MMU Fault\n SUBSYSTEM=pci\n");
        assert_string_equal(
                fault(*state, client, 0),
                "job 1.1: CUDA_ERROR_ILLEGAL_ADDRESS; Xid 31 (GPU memory page fault): Ch "
                "00000008. MMU Fault (this job caused the fault: no other job was in flight)");
        assert_int_equal(fake_device_status(client, 0)->xids, 1 + 1);
        assert_int_equal(fake_device_status(client, 1)->xids, 0 + 1);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        fake_client_close(client);
}

static void without_a_process_by_number_alone(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);

        log_says(OF_DEVICE_0 "13, pid='<unknown>', name=<unknown>, Graphics Exception: 0x57c\n");
        assert_string_equal(
                fault(*state, client, 0),
                "job 1.1: CUDA_ERROR_ILLEGAL_ADDRESS; Xid 13 (graphics engine exception), "
                "for which the kernel log names no process (this job caused the fault: no "
                "other job was in flight)");
        /* It explained that fault, and no other. */
        assert_null(strstr(fault(*state, client, 1), "Xid"));
        fake_client_close(client);
}

static void the_first_says_most_and_what_follows_least(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);

        log_says(OF_DEVICE_0 "45, " WORKER "Ch 00000008\n");
        log_says(OF_DEVICE_0 "13, " WORKER "Illegal Instruction Parameter\n");
        log_says(OF_DEVICE_0 "13, " WORKER "ESR 0x57c730\n");
        log_says(OF_DEVICE_0 "43, " WORKER "Ch 00000008\n");
        assert_non_null(strstr(fault(*state, client, 0),
                               "Xid 13 (graphics engine exception): Illegal Instruction"));
        fake_client_close(client);
}

static void that_of_others_is_nobodys_here(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);

        log_says(OF_DEVICE_0 "31, pid=77, name=python3, Ch 00000008\n");
        log_says(OF_DEVICE_1 "31, " WORKER "Ch 00000008\n");
        log_says("6,1,2,-;NVRM: Xid (PCI:0000:99:00): 31, " WORKER "Ch 00000008\n");
        log_says("12,1,2,-;NVRM: Xid (PCI:0000:10:00): 31, " WORKER "by a program\n");
        assert_null(strstr(fault(*state, client, 0), "Xid"));
        assert_int_equal(fake_device_status(client, 0)->xids, 1 + 1);
        fake_client_close(client);
}

static void a_worker_that_dies_without_a_word_has_it_too(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(*state, 0, 1);

        log_says(OF_DEVICE_0 "31, " WORKER "Ch 00000008\n");
        fake_crash(*state, worker, 11);
        fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT,
                        "killed by signal 11; Xid 31");
        fake_client_close(client);
}

static void rubbish_changes_nothing(void **state) {
        static char record[6000];
        FakeClient *client = fake_client(*state, FAKE_UID);

        for (unsigned i = 0; i < 40; ++i) {
                for (size_t k = 0; k < sizeof(record); ++k)
                        record[k] = (char)(i * 31 + k * k * 7 + k / 3);
                assert_int_equal(send(kernel, record, sizeof(record), 0), sizeof(record));
                fake_turn(*state);
                xid_log_read(&((Fake *)*state)->supervisor->monitor);
        }
        log_says("\n");
        log_says(OF_DEVICE_0 "31, " WORKER "Ch 00000008\n");
        assert_non_null(strstr(fault(*state, client, 0), "Xid 31"));
        assert_int_equal(fake_device_status(client, 0)->xids, 1 + 1);
        fake_client_close(client);
}

static void without_a_log_all_is_as_it_was(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake->supervisor->monitor.xid_log = xid_log_free(fake->supervisor->monitor.xid_log);
        fake->supervisor->engine.reads_kernel_log = false;
        assert_null(strstr(fault(fake, client, 0), "Xid"));
        assert_int_equal(fake_device_status(client, 0)->xids, 0);
        fake_client_close(client);
}

/* ---- the device ------------------------------------------------------------ */

static bool is_drained(void *userdata) {
        return !health_takes_jobs(&((Fake *)userdata)->supervisor->engine.devices[0].health);
}

static void a_fatal_one_drains_the_device_until_an_administrator_gives_it_back(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        size_t n_kept = fake->n_kept;
        uint64_t id;

        log_says(OF_DEVICE_0 "79, GPU has fallen off the bus.\n");
        log_says(OF_DEVICE_0 "154, GPU recovery action changed from 0x0 (None) to 0x2 (Reboot)\n");
        fake_wait(fake, is_drained, fake);
        assert_string_equal(
                fake_device_status(client, 0)->state,
                "drained automatically: Xid 79, GPU has fallen off the bus: restart the "
                "machine");
        assert_int_equal(fake_device_status(client, 0)->drained, GPUQ__V1__DRAINED_BY__ITSELF);
        assert_true(fake->n_kept > n_kept);

        id = fake_submit(client, (FakeJob){});
        assert_int_equal(fake_worker(fake, 0, 1)->device, 1);
        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);

        /* No look gives it back. */
        drain_tick(&fake->supervisor->engine, UINT64_MAX);
        fake_turn(fake);
        assert_int_equal(fake->n_checks, 0);
        assert_true(drain_release(&fake->supervisor->engine.devices[0]));
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        fake_client_close(client);
}

static void the_next_supervisor_knows_it(void **state) {
        Fake *fake = *state;
        FakeClient *client;

        fake_restart(fake, "condemned-GPU-fake-1",
                     "Xid 95, uncontained memory error: reset the GPU");
        client = fake_client(fake, FAKE_UID);
        assert_string_equal(
                fake_device_status(client, 1)->state,
                "drained automatically: Xid 95, uncontained memory error: reset the GPU");
        assert_int_equal(fake_device_status(client, 1)->drained, GPUQ__V1__DRAINED_BY__ITSELF);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        fake_client_close(client);
}

static void where_the_hardware_failed_no_job_is_to_blame(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});
        FakeWorker *worker = fake_worker(fake, 0, 1);

        log_says(worker->device ? OF_DEVICE_1 "95, " WORKER "L2 cache\n"
                                : OF_DEVICE_0 "95, " WORKER "L2 cache\n");
        fake_stopped(fake, worker, "CUDA_ERROR_LAUNCH_FAILED", &id, issued, 1);
        assert_int_equal(fake_worker(fake, 1, 1)->device, !worker->device);
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(of_its_own_worker_it_is_told_whole),
                TEST(without_a_process_by_number_alone),
                TEST(the_first_says_most_and_what_follows_least),
                TEST(that_of_others_is_nobodys_here),
                TEST(a_worker_that_dies_without_a_word_has_it_too),
                TEST(rubbish_changes_nothing),
                TEST(without_a_log_all_is_as_it_was),
                TEST(a_fatal_one_drains_the_device_until_an_administrator_gives_it_back),
                TEST(the_next_supervisor_knows_it),
                TEST(where_the_hardware_failed_no_job_is_to_blame),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

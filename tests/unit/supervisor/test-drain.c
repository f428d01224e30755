/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <string.h>

#include "device.h"
#include "provision.h"
#include "slot.h"

static const WorkerPhase issued[] = {WORKER_PHASE_ISSUED, WORKER_PHASE_ISSUED};

static int set_up(void **state) {
        *state = fake_new(2, NULL);
        return 0;
}

static int set_up_one(void **state) {
        *state = fake_new(1, NULL);
        return 0;
}

static int tear_down(void **state) {
        fake_free(*state);
        return 0;
}

static FakeClient *admin_of(Fake *fake) {
        FakeClient *client = fake_client_raw(fake, 0, true);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;

        hello.version_min = hello.version_max = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        fake_send(client, &request);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_WELCOME);
        return client;
}

static void ask_drain(FakeClient *client, uint32_t device, char *reason) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Drain drain = GPUQ__V1__DRAIN__INIT;

        drain.device = device;
        drain.reason = reason;
        request.body_case = GPUQ__V1__REQUEST__BODY_DRAIN;
        request.drain = &drain;
        fake_send(client, &request);
}

static void ask_resume(FakeClient *client, uint32_t device) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Resume resume = GPUQ__V1__RESUME__INIT;

        resume.device = device;
        request.body_case = GPUQ__V1__REQUEST__BODY_RESUME;
        request.resume = &resume;
        fake_send(client, &request);
}

static void expect_drained(FakeClient *client, bool changed, unsigned running) {
        Gpuq__V1__Reply *reply = fake_receive(client);

        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_DRAINED);
        assert_int_equal(reply->drained->changed, changed);
        assert_int_equal(reply->drained->running, running);
}

static void drain(Fake *fake, uint32_t device, char *reason) {
        FakeClient *admin = admin_of(fake);

        ask_drain(admin, device, reason);
        assert_int_equal(fake_receive(admin)->body_case, GPUQ__V1__REPLY__BODY_DRAINED);
        fake_client_close(admin);
}

static void resume(Fake *fake, uint32_t device) {
        FakeClient *admin = admin_of(fake);

        ask_resume(admin, device);
        assert_int_equal(fake_receive(admin)->body_case, GPUQ__V1__REPLY__BODY_DRAINED);
        fake_client_close(admin);
}

static void assert_says(const char *text, const char *words) {
        if (!strstr(text, words))
                fail_msg("'%s' is not in '%s'", words, text);
}

/* ---- by an administrator --------------------------------------------------- */

static void a_reason_stays_until_another_is_given(void **state) {
        FakeClient *admin = admin_of(*state);

        ask_drain(admin, 0, "a new fan");
        expect_drained(admin, true, 0);
        ask_drain(admin, 0, "");
        expect_drained(admin, false, 0);
        assert_says(fake_device_status(admin, 0)->state, ": a new fan");
        ask_drain(admin, 0, "a new board");
        expect_drained(admin, false, 0);
        assert_says(fake_device_status(admin, 0)->state, ": a new board");
        ask_resume(admin, 0);
        expect_drained(admin, true, 0);
        ask_drain(admin, 0, "");
        expect_drained(admin, true, 0);
        assert_says(fake_device_status(admin, 0)->state, ": no reason given");
        fake_client_close(admin);
}

static void only_an_administrator_drains_and_resumes(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID), *admin = admin_of(*state);

        ask_drain(client, 0, "mine");
        fake_expect_error(client, GPUQ__V1__CODE__E_DENIED, "admin group");
        ask_resume(client, 0);
        fake_expect_error(client, GPUQ__V1__CODE__E_DENIED, "admin group");
        assert_string_equal(fake_device_status(client, 0)->state, "ready");

        ask_drain(admin, 7, "");
        fake_expect_error(admin, GPUQ__V1__CODE__E_NOT_FOUND, "device 7");
        ask_drain(admin, 0, "a\nnew line");
        fake_expect_error(admin, GPUQ__V1__CODE__E_INVALID, "printable");
        ask_drain(admin, 0, "");
        expect_drained(admin, true, 0);
        ask_drain(admin, 0, "a new fan");
        expect_drained(admin, false, 0);
        assert_says(fake_device_status(client, 0)->state, "a new fan");
        assert_int_equal(fake_device_status(client, 0)->drained, GPUQ__V1__DRAINED_BY__ADMIN);
        assert_int_equal(fake_device_status(client, 1)->drained, GPUQ__V1__DRAINED_BY__NOBODY);
        ask_resume(admin, 0);
        expect_drained(admin, true, 0);
        ask_resume(admin, 0);
        expect_drained(admin, false, 0);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        fake_client_close(client);
        fake_client_close(admin);
}

static void what_runs_ends_and_what_named_the_device_waits_and_says_why(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID), *admin = admin_of(*state);
        uint64_t running = fake_submit(client, (FakeJob){.device = 1}), named;
        FakeWorker *worker = fake_worker(*state, 0, 1);

        ask_drain(admin, 0, "a new fan");
        expect_drained(admin, true, 1);
        named = fake_submit(client, (FakeJob){.device = 1});
        assert_says(fake_reason(client, named), "device 0 is drained");
        assert_says(fake_reason(client, named), "a new fan");
        fake_end(worker, running, 0);
        fake_expect_end(client, running, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_turn(*state);
        assert_int_equal(worker->n_jobs, 1);

        ask_resume(admin, 0);
        expect_drained(admin, true, 0);
        fake_end(fake_worker(*state, 0, 2), named, 0);
        fake_expect_end(client, named, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(admin);
}

static void what_left_the_choice_goes_to_another_device(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);
        FakeWorker *worker;
        uint64_t id;

        drain(*state, 0, "a new fan");
        id = fake_submit(client, (FakeJob){});
        worker = fake_worker(*state, 0, 1);
        assert_int_equal(worker->device, 1);
        fake_end(worker, id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

static void what_waited_there_already_moves(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);
        uint64_t ids[2];

        drain(*state, 0, "one");
        drain(*state, 1, "two");
        ids[0] = fake_submit(client, (FakeJob){});
        ids[1] = fake_submit(client, (FakeJob){});
        assert_says(fake_reason(client, ids[0]), "is drained");
        assert_int_equal(((Fake *)*state)->n_workers, 0);

        resume(*state, 1);
        assert_int_equal(fake_worker(*state, 0, 2)->device, 1);
        for (unsigned i = 0; i < 2; ++i) {
                fake_end(fake_worker(*state, 0, 2), ids[i], 0);
                fake_expect_end(client, ids[i], GPUQ__V1__STATE__DONE, 0, NULL);
        }
        fake_client_close(client);
}

static void jobs_in_order_do_not_stay_behind_on_a_drained_device(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), first, second;
        FakeJob job = {.arena = arena, .length = 64, .direction = GPUQ__V1__DIRECTION__INOUT};
        FakeWorker *worker;

        first = fake_submit(client, job);
        worker = fake_worker(*state, 0, 1);
        drain(*state, worker->device, "a new fan");
        second = fake_submit(client, job);
        fake_end(worker, first, 0);
        fake_expect_end(client, first, GPUQ__V1__STATE__DONE, 0, NULL);
        assert_int_equal(fake_worker(*state, 1, 1)->device, !worker->device);
        fake_end(fake_worker(*state, 1, 1), second, 0);
        fake_expect_end(client, second, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

static void modules_and_device_arenas_that_wait_move_too(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID), *other = fake_client(*state, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        drain(*state, 0, "one");
        drain(*state, 1, "two");
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.device = 2;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
        create.place = GPUQ__V1__PLACE__DEVICE;
        create.size = 4096;
        request.body_case = GPUQ__V1__REQUEST__BODY_ARENA_CREATE;
        request.arena_create = &create;
        fake_send(other, &request);
        assert_int_equal(((Fake *)*state)->n_workers, 0);

        resume(*state, 0);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_MODULE);
        assert_int_equal(fake_receive(other)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
        assert_int_equal(other->reply->arena->device, 0);
        fake_client_close(client);
        fake_client_close(other);
}

static bool is_stopping(void *userdata) {
        return ((FakeWorker *)userdata)->is_stopping;
}

static void an_idle_worker_of_it_goes(void **state) {
        FakeClient *client = fake_client(*state, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){.device = 1});
        FakeWorker *worker = fake_worker(*state, 0, 1);

        drain(*state, 0, "a new fan");
        fake_turn(*state);
        assert_false(worker->is_stopping);
        fake_end(worker, id, 0);
        fake_wait(*state, is_stopping, worker);
        fake_client_close(client);
}

static void a_supervisor_that_follows_knows_what_was_drained(void **state) {
        Fake *fake = *state;
        FakeClient *client;
        size_t n_kept = fake->n_kept, n_dropped;

        drain(fake, 1, "a new fan");
        assert_true(fake->n_kept > n_kept);
        n_dropped = fake->n_dropped;
        resume(fake, 1);
        assert_true(fake->n_dropped > n_dropped);

        fake_restart(fake, "drain-GPU-fake-1", "drained by root: a new fan");
        client = fake_client(fake, FAKE_UID);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        assert_string_equal(fake_device_status(client, 1)->state, "drained by root: a new fan");
        assert_int_equal(fake_device_status(client, 1)->drained, GPUQ__V1__DRAINED_BY__ADMIN);
        fake_client_close(client);
}

/* ---- by itself ------------------------------------------------------------- */

static void a_check_confirms_and_the_job_goes_elsewhere(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        fake->start_error = "CUDA_ERROR_NO_DEVICE";
        fake->start_broken = fake->hold_checks = true;
        fake->check_error = "the GPU driver no longer finds the device";
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->n_checks, 1);
        assert_int_equal(fake->n_workers, 1);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");

        fake->start_error = NULL;
        fake_release_check(fake);
        assert_int_equal(fake_worker(fake, 1, 1)->device, 1);
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        assert_says(fake_device_status(client, 0)->state, "no longer finds the device");
        assert_int_equal(fake_device_status(client, 0)->drained, GPUQ__V1__DRAINED_BY__ITSELF);
        fake_client_close(client);
}

static bool is_well(void *userdata) {
        return health_takes_jobs(&((Fake *)userdata)->supervisor->engine.devices[0].health);
}

static void alone_on_the_machine_its_jobs_wait_until_it_is_well(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        fake->start_error = fake->check_error = "CUDA_ERROR_NO_DEVICE";
        fake->start_broken = true;
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_says(fake_reason(client, id), "CUDA_ERROR_NO_DEVICE");
        assert_false(is_well(fake));
        fake->start_error = fake->check_error = NULL;
        fake_wait(fake, is_well, fake);
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

static void an_administrator_without_a_reason_does_not_hide_it(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);

        fake->start_error = fake->check_error = "CUDA_ERROR_NO_DEVICE";
        fake->start_broken = true;
        (void)fake_submit(client, (FakeJob){.device = 1});
        fake_turn(fake);
        assert_false(is_well(fake));
        drain(fake, 0, "");
        assert_says(fake_device_status(client, 0)->state,
                    "; before that drained automatically: CUDA_ERROR_NO_DEVICE");
        drain(fake, 0, "a new fan");
        assert_says(fake_device_status(client, 0)->state, ": a new fan");
        fake_client_close(client);
}

static void one_users_trouble_is_not_the_devices(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        fake->start_error = "CUDA_ERROR_NO_DEVICE: no right to open it";
        fake->start_broken = true;
        id = fake_submit(client, (FakeJob){});
        fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_NO_DEVICE,
                        "no right");
        assert_true(fake->n_checks >= 1);
        assert_int_equal(fake_device_status(client, 0)->drained, GPUQ__V1__DRAINED_BY__NOBODY);
        fake_client_close(client);
}

static void when_the_hardware_fails_no_job_is_to_blame(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){.device = 1});

        fake->check_error = "its memory does not keep what is written";
        fake_broke(fake, fake_worker(fake, 0, 1), "CUDA_ERROR_ECC_UNCORRECTABLE", &id, issued, 1);
        assert_says(fake_reason(client, id), "does not keep what is written");
        assert_int_equal(fake_device_status(client, 0)->drained, GPUQ__V1__DRAINED_BY__ITSELF);
        fake->check_error = NULL;
        resume(fake, 0);
        fake_end(fake_worker(fake, 1, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

/* ---- workers that lie ------------------------------------------------------ */

#define N_LIARS 3

static Slot *slot_of(Fake *fake, uint32_t uid) {
        User *user;

        HASH_FIND(hh, fake->supervisor->engine.users, &uid, sizeof(uid), user);
        assert_non_null(user);
        return user->lanes[0]->slot;
}

/* Time passes for the waits of its workers' starts. */
static void let_start(Fake *fake, uint32_t uid) {
        Slot *slot = slot_of(fake, uid);

        slot->allowances->restarts = (Allowance){};
        provision_slot(slot);
        fake_turn(fake);
}

static FakeWorker *latest_of(Fake *fake, uint32_t uid) {
        for (size_t i = fake->n_workers; i > 0; --i)
                if (fake->workers[i - 1].uid == uid && !fake->workers[i - 1].is_ended)
                        return &fake->workers[i - 1];
        return NULL;
}

/* As many as there are, as often as they can: the device stays, one check at a time looks at it, and
 * another user's job runs as if nothing was said. */
static void words_of_many_users_drain_no_device(void **state) {
        FakeClient *clients[N_LIARS], *victim = fake_client(*state, FAKE_UID + N_LIARS);
        Fake *fake = *state;
        uint64_t ids[N_LIARS], theirs;

        fake->hold_checks = true;
        for (size_t i = 0; i < N_LIARS; ++i) {
                clients[i] = fake_client(fake, FAKE_UID + i);
                ids[i] = fake_submit(clients[i], (FakeJob){});
                fake_worker(fake, i, 1);
        }
        for (size_t i = 0; i < N_LIARS; ++i)
                fake_broke(fake, &fake->workers[i], "\033[31mCUDA_ERROR_ECC", &ids[i], issued, 1);
        assert_int_equal(fake->n_checks, 1);
        assert_int_equal(fake->n_workers, N_LIARS); /* each waits for the check */
        assert_string_equal(fake_device_status(victim, 0)->state, "ready");
        theirs = fake_submit(victim, (FakeJob){});
        fake_end(fake_worker(fake, N_LIARS, 1), theirs, 0);
        fake_expect_end(victim, theirs, GPUQ__V1__STATE__DONE, 0, NULL);

        fake_release_check(fake);
        assert_string_equal(fake_device_status(victim, 0)->state, "ready");
        for (size_t i = 0; i < N_LIARS; ++i) {
                fake_worker(fake, N_LIARS + 1 + i, 1);
                fake_end(latest_of(fake, FAKE_UID + i), ids[i], 0);
                fake_expect_end(clients[i], ids[i], GPUQ__V1__STATE__DONE, 0, NULL);
                fake_client_close(clients[i]);
        }
        fake_client_close(victim);
}

/* Its words are checked once, then ever more rarely; its worker's starts wait. */
static void who_lies_again_and_again_is_checked_once(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        for (size_t i = 0; i < 5; ++i) {
                fake_broke(fake, fake_worker(fake, i, 1), "CUDA_ERROR_ECC", &id, issued, 1);
                let_start(fake, FAKE_UID);
        }
        assert_int_equal(fake->n_checks, 1);
        assert_string_equal(fake_device_status(client, 0)->state, "ready");
        fake_client_close(client);
}

static void what_one_users_worker_says_is_shown_to_nobody_else(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t id;

        fake->start_error = "made up";
        id = fake_submit(client, (FakeJob){});
        fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_NO_DEVICE,
                        "made up");
        assert_string_equal(fake_device_status(other, 0)->state, "ready");
        fake_client_close(client);
        fake_client_close(other);
}

/* While the one is checked, or waits, the other's worker starts again at once. */
static void a_word_delays_nobody_elses_worker(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t id = fake_submit(client, (FakeJob){}), theirs = fake_submit(other, (FakeJob){});

        fake_worker(fake, 0, 1);
        fake_worker(fake, 1, 1);
        fake->hold_checks = true;
        fake_broke(fake, &fake->workers[0], "made up", &id, issued, 1);
        fake_stopped(fake, &fake->workers[1], "CUDA_ERROR_ASSERT", &theirs, issued, 1);
        fake_expect_end(other, theirs, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        theirs = fake_submit(other, (FakeJob){});
        fake_end(fake_worker(fake, 2, 1), theirs, 0);
        fake_expect_end(other, theirs, GPUQ__V1__STATE__DONE, 0, NULL);
        assert_says(fake_reason(client, id), "is being checked");
        fake_release_check(fake);
        fake_worker(fake, 3, 1);
        fake_client_close(client);
        fake_client_close(other);
}

/* The administrator knows better than a check that is not due yet. */
static void an_administrators_word_ends_the_wait_for_a_check(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake->hold_checks = true;
        fake_broke(fake, fake_worker(fake, 0, 1), "CUDA_ERROR_ECC", &id, issued, 1);
        assert_int_equal(fake->n_workers, 1);
        resume(fake, 0);
        fake_worker(fake, 1, 1);
        fake_release_check(fake);
        fake_client_close(client);
}

/* ---- kernels and users that fault ------------------------------------------ */

static void a_kernel_that_faulted_runs_alone_until_it_behaved(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t bad, good, again, third;
        FakeWorker *worker;

        fake_module(client);
        bad = fake_submit(client, (FakeJob){});
        fake_stopped(fake, fake_worker(fake, 0, 1), "CUDA_ERROR_ILLEGAL_ADDRESS", &bad, issued, 1);
        fake_expect_end(client, bad, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "add");

        good = fake_submit(client, (FakeJob){});
        again = fake_submit(client, (FakeJob){});
        worker = fake_worker(fake, 1, 1);
        fake_turn(fake);
        assert_int_equal(worker->n_jobs, 1);
        assert_says(fake_reason(client, again), "jobs run one at a time");
        fake_end(worker, good, 0);
        fake_expect_end(client, good, GPUQ__V1__STATE__DONE, 0, NULL);

        /* It behaved: two at once again. */
        third = fake_submit(client, (FakeJob){});
        fake_worker(fake, 1, 3);
        fake_end(worker, again, 0);
        fake_end(worker, third, 0);
        fake_expect_end(client, again, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_expect_end(client, third, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
}

#define N_FREE 8 /* restarts at once */

static void who_crashes_in_a_loop_is_slowed_down_and_nobody_else(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);
        uint64_t id, theirs;

        for (size_t i = 0; i <= N_FREE; ++i) {
                id = fake_submit(client, (FakeJob){});
                fake_stopped(fake, fake_worker(fake, i, 1), "CUDA_ERROR_ASSERT", &id, issued, 1);
                fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_FAULT, "");
        }
        slot_of(fake, FAKE_UID)->allowances->restarts.paid_ns += 3000000000; /* should we be slow */
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->n_workers, N_FREE + 1);
        assert_says(fake_reason(client, id), "ended repeatedly");

        theirs = fake_submit(other, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->workers[N_FREE + 1].n_jobs, 1);
        fake_end(&fake->workers[N_FREE + 1], theirs, 0);
        fake_expect_end(other, theirs, GPUQ__V1__STATE__DONE, 0, NULL);

        fake_end(fake_worker(fake, N_FREE + 2, 1), id, 0);
        fake_expect_end(client, id, GPUQ__V1__STATE__DONE, 0, NULL);
        fake_client_close(client);
        fake_client_close(other);
}

static bool is_stopping_or_over(void *worker) {
        return ((FakeWorker *)worker)->is_stopping || ((FakeWorker *)worker)->is_ended;
}

/* Each cancel of a running job costs a worker. */
static void who_cancels_in_a_loop_is_slowed_down(void **state) {
        Fake *fake = *state;
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        for (size_t i = 0; i <= N_FREE; ++i) {
                id = fake_submit(client, (FakeJob){.timeout_ms = 1});
                fake_late(fake_worker(fake, i, 1), id);
                fake_wait(fake, is_stopping_or_over, &fake->workers[i]);
                fake_stopped(fake, &fake->workers[i], NULL, &id, issued, 1);
                fake_expect_end(client, id, GPUQ__V1__STATE__FAILED, GPUQ__V1__CODE__E_TIMEOUT, "");
        }
        slot_of(fake, FAKE_UID)->allowances->restarts.paid_ns += 3000000000; /* should we be slow */
        id = fake_submit(client, (FakeJob){});
        fake_turn(fake);
        assert_int_equal(fake->n_workers, N_FREE + 1);
        assert_says(fake_reason(client, id), "ended repeatedly");
        fake_client_close(client);
}

#define TEST(name)     cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_ONE(name) cmocka_unit_test_setup_teardown(name, set_up_one, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(a_reason_stays_until_another_is_given),
                TEST(only_an_administrator_drains_and_resumes),
                TEST(what_runs_ends_and_what_named_the_device_waits_and_says_why),
                TEST(what_left_the_choice_goes_to_another_device),
                TEST(what_waited_there_already_moves),
                TEST(jobs_in_order_do_not_stay_behind_on_a_drained_device),
                TEST(modules_and_device_arenas_that_wait_move_too),
                TEST(an_idle_worker_of_it_goes),
                TEST(a_supervisor_that_follows_knows_what_was_drained),
                TEST(a_check_confirms_and_the_job_goes_elsewhere),
                TEST_ONE(an_administrator_without_a_reason_does_not_hide_it),
                TEST_ONE(alone_on_the_machine_its_jobs_wait_until_it_is_well),
                TEST_ONE(one_users_trouble_is_not_the_devices),
                TEST_ONE(when_the_hardware_fails_no_job_is_to_blame),
                TEST_ONE(words_of_many_users_drain_no_device),
                TEST_ONE(who_lies_again_and_again_is_checked_once),
                TEST_ONE(what_one_users_worker_says_is_shown_to_nobody_else),
                TEST_ONE(a_word_delays_nobody_elses_worker),
                TEST_ONE(an_administrators_word_ends_the_wait_for_a_check),
                TEST_ONE(a_kernel_that_faulted_runs_alone_until_it_behaved),
                TEST_ONE(who_crashes_in_a_loop_is_slowed_down_and_nobody_else),
                TEST_ONE(who_cancels_in_a_loop_is_slowed_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

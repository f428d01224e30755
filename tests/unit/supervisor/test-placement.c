/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two devices a job gets.
 */
#include "fake.h"

#include "arena.h"
#include "device.h"
#include "executor.h"
#include "slot.h"

#define DONE   GPUQ__V1__STATE__DONE
#define MS     1000000ull
#define SECOND (1000 * MS)

static FakeClient *client_with_module(Fake *fake, uint32_t uid) {
        FakeClient *client = fake_client(fake, uid);

        fake_module(client);
        return client;
}

static Executor *executor_of(Fake *fake, uint32_t uid, unsigned device) {
        Slot *slot;

        for (slot = fake->supervisor->engine.slots; slot; slot = slot->hh.next)
                if (slot->key.domain == uid && slot->key.device == device)
                        return slot->executor;
        fail();
        return NULL;
}

/* Return: the worker of this user on this device. */
static FakeWorker *its_worker(Fake *fake, uint32_t uid, unsigned device) {
        for (size_t i = 0; i < fake->n_workers; ++i)
                if (fake->workers[i].uid == uid && fake->workers[i].device == device &&
                    !fake->workers[i].is_ended)
                        return &fake->workers[i];
        fail();
        return NULL;
}

/* Both workers of this user run, and the duration of its jobs is known: very short. */
static void warm(FakeClient *client, uint32_t uid) {
        for (unsigned i = 0; i < 2; ++i) {
                uint64_t id = fake_submit(client, (FakeJob){.device = i + 1});

                fake_turn(client->fake);
                fake_end(its_worker(client->fake, uid, i), id, 0);
                fake_expect_end(client, id, DONE, 0, NULL);
        }
}

static unsigned device_of(Fake *fake, uint64_t id) {
        Job *job = job_find(&fake->supervisor->engine, id);

        assert_non_null(job);
        assert_non_null(job->device);
        return job->device->index;
}

/* As if what is in flight there had been for so much longer. */
static void pass(Executor *executor, uint64_t ns) {
        Job *job;

        TAILQ_FOREACH (job, &executor->inflight, link)
                job->clock.started_ns -= ns;
        executor->last_end_ns -= executor->last_end_ns > ns ? ns : executor->last_end_ns;
}

static void
jobs_of_unknown_duration_do_not_wait_for_one_another_beside_an_idle_device(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);

        assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 0);
        assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 1);
        fake_client_close(client);
        fake_free(fake);
}

static void jobs_known_to_be_short_share_the_worker_that_there_is(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        uint64_t id = fake_submit(client, (FakeJob){});

        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
        id = fake_submit_many(client, (FakeJob){}, 8);
        for (unsigned i = 0; i < 8; ++i)
                assert_int_equal(device_of(fake, id + i), 0);
        assert_int_equal(fake->n_workers, 1);
        fake_client_close(client);
        fake_free(fake);
}

static void a_job_that_another_user_runs_for_long_counts(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        FakeClient *other = client_with_module(fake, FAKE_UID + 1);

        warm(client, FAKE_UID);
        warm(other, FAKE_UID + 1);
        fake_submit(other, (FakeJob){.device = 1});
        fake_turn(fake);
        pass(executor_of(fake, FAKE_UID + 1, 0), SECOND);
        for (unsigned i = 0; i < 3; ++i)
                assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 1);
        fake_client_close(client);
        fake_client_close(other);
        fake_free(fake);
}

static void a_job_counts_with_what_is_left_of_it(void **state) {
        Fake *fake = fake_new(2, NULL);
        FakeClient *client = client_with_module(fake, FAKE_UID);
        User *user;
        Job *job;

        warm(client, FAKE_UID);
        user = fake->supervisor->engine.users;
        job = job_find(&fake->supervisor->engine, fake_submit(client, (FakeJob){.device = 1}));
        for (unsigned i = 0; i < 50; ++i)
                duration_learn(user->duration, job->cost.class, SECOND, 1, SECOND);
        fake_end(its_worker(fake, FAKE_UID, 0), job->id, 0);
        fake_turn(fake);

        fake_submit(client, (FakeJob){.device = 1});
        fake_submit(client, (FakeJob){.device = 2});
        fake_turn(fake);
        pass(executor_of(fake, FAKE_UID, 1), SECOND / 2);
        assert_int_equal(device_of(fake, fake_submit(client, (FakeJob){})), 1);
        fake_client_close(client);
        fake_free(fake);
}

/* ---- jobs on device memory ------------------------------------------------- */

#define DEVICE  GPUQ__V1__PLACE__DEVICE
#define HOST    GPUQ__V1__PLACE__HOST
#define IN      GPUQ__V1__DIRECTION__IN
#define INOUT   GPUQ__V1__DIRECTION__INOUT
#define N_BYTES 4096u

/* A user with both workers, whose jobs are short, but for some that take 10 s and read host memory. */
typedef struct World {
        Fake *fake;
        FakeClient *client;
        FakeJob slow;
        FakeJob job; /* reads its data on device 0 */
} World;

static Job *job_of(World *world, uint64_t id) {
        Job *job = job_find(&world->fake->supervisor->engine, id);

        assert_non_null(job);
        return job;
}

/* Submits one, ends it, and has its kind learnt. */
static void teach(World *world, FakeJob job, uint64_t ns) {
        uint64_t id = fake_submit(world->client, job), class;
        FakeWorker *worker;
        User *user;

        fake_turn(world->fake);
        worker = its_worker(world->fake, FAKE_UID, device_of(world->fake, id));
        class = job_of(world, id)->cost.class;
        user = job_of(world, id)->user;
        fake_end(worker, id, 0);
        fake_expect_end(world->client, id, DONE, 0, NULL);
        for (unsigned i = 0; i < 100; ++i)
                duration_learn(user->duration, class, ns, 1, ns);
}

static int set_up_world(void **state, bool is_warm) {
        World *world = calloc(1, sizeof(*world));

        fake_peers = 3;
        world->fake = fake_new(2, NULL);
        world->client = client_with_module(world->fake, FAKE_UID);
        if (is_warm)
                warm(world->client, FAKE_UID);
        world->job = (FakeJob){
                .arena = fake_arena(world->client, DEVICE, N_BYTES),
                .length = N_BYTES,
                .direction = IN,
        };
        world->slow = (FakeJob){
                .arena = fake_arena(world->client, HOST, 64),
                .length = 64,
                .direction = IN,
                .device = 1,
        };
        assert_int_equal(
                arena_find(&world->fake->supervisor->engine, world->job.arena)->device->index, 0);
        teach(world, world->slow, 10 * SECOND);
        teach(world, world->job, MS / 2);
        *state = world;
        return 0;
}

static int set_up(void **state) {
        return set_up_world(state, true);
}

/* The user has no worker on device 1. */
static int set_up_cold(void **state) {
        return set_up_world(state, false);
}

static int tear_down(void **state) {
        World *world = *state;

        fake_peers = 0;
        fake_client_close(world->client);
        fake_free(world->fake);
        free(world);
        return 0;
}

static void a_job_leaves_its_data_for_an_idle_device(void **state) {
        World *world = *state;
        uint64_t id;

        assert_int_equal(device_of(world->fake, fake_submit(world->client, world->job)), 0);
        fake_submit(world->client, world->slow);
        id = fake_submit(world->client, world->job);
        assert_int_equal(device_of(world->fake, id), 1);
        assert_true(job_of(world, id)->cost.is_away);
        fake_end(its_worker(world->fake, FAKE_UID, 1), id, 0);
        fake_expect_end(world->client, id, DONE, 0, NULL);
}

static void a_job_that_names_its_device_stays(void **state) {
        World *world = *state;
        FakeJob named = world->job;

        named.device = 1;
        fake_submit(world->client, world->slow);
        assert_int_equal(device_of(world->fake, fake_submit(world->client, named)), 0);
}

static void a_job_stays_if_the_other_device_has_much_to_do(void **state) {
        World *world = *state;
        FakeJob there = world->slow;

        there.device = 2;
        fake_submit(world->client, world->slow);
        fake_submit(world->client, there);
        assert_int_equal(device_of(world->fake, fake_submit(world->client, world->job)), 0);
}

static void a_job_stays_where_the_device_of_its_data_is_drained(void **state) {
        World *world = *state;
        Device *home = &world->fake->supervisor->engine.devices[0];

        fake_submit(world->client, world->slow);
        home->health.is_held = true;
        assert_int_equal(device_of(world->fake, fake_submit(world->client, world->job)), 0);
        home->health.is_held = false;
}

static void a_job_stays_where_devices_do_not_share_atomic_operations(void **state) {
        World *world = *state;

        world->fake->supervisor->engine.devices[1].near = 0;
        fake_submit(world->client, world->slow);
        assert_int_equal(device_of(world->fake, fake_submit(world->client, world->job)), 0);
}

static void a_job_stays_behind_one_that_is_in_flight_with_its_data(void **state) {
        World *world = *state;
        FakeJob writes = world->job;
        uint64_t first, second;

        writes.direction = INOUT;
        first = fake_submit(world->client, writes);
        fake_submit(world->client, world->slow);
        second = fake_submit(world->client, writes);
        assert_int_equal(device_of(world->fake, first), 0);
        assert_int_equal(device_of(world->fake, second), 0);
}

static void a_job_behind_one_that_went_away_waits_for_its_end(void **state) {
        World *world = *state;
        FakeJob writes = world->job;
        uint64_t slow, ids[3];

        writes.direction = INOUT;
        slow = fake_submit(world->client, world->slow);
        ids[0] = fake_submit(world->client, writes);
        ids[1] = fake_submit(world->client, writes);
        assert_int_equal(device_of(world->fake, ids[0]), 1);
        assert_null(job_of(world, ids[1])->device);
        fake_end(its_worker(world->fake, FAKE_UID, 1), ids[0], 0);
        fake_expect_end(world->client, ids[0], DONE, 0, NULL);
        assert_int_equal(device_of(world->fake, ids[1]), 1);

        /* Now nothing waits where the data are. */
        ids[2] = fake_submit(world->client, writes);
        fake_end(its_worker(world->fake, FAKE_UID, 0), slow, 0);
        fake_expect_end(world->client, slow, DONE, 0, NULL);
        assert_null(job_of(world, ids[2])->device);
        fake_end(its_worker(world->fake, FAKE_UID, 1), ids[1], 0);
        fake_expect_end(world->client, ids[1], DONE, 0, NULL);
        assert_int_equal(device_of(world->fake, ids[2]), 0);
}

static void a_job_that_was_slow_elsewhere_stays_the_next_time(void **state) {
        World *world = *state;
        uint64_t id;

        fake_submit(world->client, world->slow);
        id = fake_submit(world->client, world->job);
        assert_int_equal(device_of(world->fake, id), 1);
        for (unsigned i = 0; i < 100; ++i)
                duration_learn(job_of(world, id)->user->duration,
                               job_away_class(job_of(world, id)->cost.class), 20 * SECOND, 1,
                               20 * SECOND);
        fake_end(its_worker(world->fake, FAKE_UID, 1), id, 0);
        fake_expect_end(world->client, id, DONE, 0, NULL);
        assert_int_equal(device_of(world->fake, fake_submit(world->client, world->job)), 0);
}

static void a_job_goes_back_if_the_other_worker_cannot_use_its_data(void **state) {
        World *world = *state;
        uint64_t id;

        fake_submit(world->client, world->slow);
        id = fake_submit(world->client, world->job);
        fake_say(its_worker(world->fake, FAKE_UID, 1),
                 (WorkerMessage){
                         {.kind = FROM_WORKER_ENDS,
                          .code = GPUQ__V1__CODE__E_MEMORY,
                          .n_items = 1,
                          .detail = true},
                         .text = "cannot map it",
                         .items = &(WorkerEnd){.id = id},
                 },
                 -1);
        fake_turn(world->fake);
        assert_int_equal(device_of(world->fake, id), 0);
        assert_int_equal(job_of(world, id)->retries, 0);
}

static void a_job_goes_back_if_its_module_does_not_load_there(void **state) {
        World *world = *state;
        FakeWorker *worker = its_worker(world->fake, FAKE_UID, 1);
        uint64_t id;

        fake_module(world->client); /* loaded on device 0, by the worker that has least to do */
        fake_submit(world->client, world->slow);
        world->fake->hold_modules = true;
        id = fake_submit(world->client, world->job);
        assert_int_equal(device_of(world->fake, id), 1);
        fake_turn(world->fake);
        fake_release_modules(world->fake, worker, GPUQ__V1__CODE__E_MEMORY);
        fake_turn(world->fake);
        assert_int_equal(device_of(world->fake, id), 0);
}

static void a_job_waits_for_a_worker_to_start_if_that_pays(void **state) {
        World *world = *state;
        uint64_t id;

        world->fake->hold_ready = true;
        fake_submit(world->client, world->slow);
        id = fake_submit(world->client, world->job);
        assert_int_equal(device_of(world->fake, id), 1);
        world->fake->hold_ready = false;
        fake_come_up(world->fake, its_worker(world->fake, FAKE_UID, 1));
        fake_turn(world->fake);
        fake_end(its_worker(world->fake, FAKE_UID, 1), id, 0);
        fake_expect_end(world->client, id, DONE, 0, NULL);
}

static void a_job_goes_back_if_no_worker_starts_there(void **state) {
        World *world = *state;
        uint64_t id;

        world->fake->start_error = "no context";
        fake_submit(world->client, world->slow);
        id = fake_submit(world->client, world->job);
        fake_turn(world->fake);
        assert_int_equal(world->fake->n_spawned, 2); /* it was tried */
        assert_int_equal(device_of(world->fake, id), 0);
        world->fake->start_error = NULL;
}

static void jobs_go_back_if_the_other_worker_faults(void **state) {
        World *world = *state;
        uint64_t ids[2];

        fake_submit(world->client, world->slow);
        for (unsigned i = 0; i < 2; ++i) {
                ids[i] = fake_submit(world->client, world->job);
                assert_int_equal(device_of(world->fake, ids[i]), 1);
        }
        fake_die(world->fake, its_worker(world->fake, FAKE_UID, 1));
        fake_turn(world->fake);
        for (unsigned i = 0; i < 2; ++i)
                assert_int_equal(device_of(world->fake, ids[i]), 0);
}

/* As many processes of one user begin, of which the first have jobs while the others ask for memory. */
static void sessions_that_work_already_do_not_skew_where_others_have_their_memory(void **state) {
        FakeClient *clients[16];
        Fake *fake;

        fake_peers = 3;
        fake = fake_new(2, NULL);
        for (size_t i = 0; i < 16; ++i) {
                FakeJob job = {.length = N_BYTES, .direction = INOUT};

                clients[i] = client_with_module(fake, FAKE_UID);
                job.arena = fake_arena(clients[i], DEVICE, N_BYTES);
                fake_submit_many(clients[i], job, 8);
                fake_turn(fake);
        }
        for (unsigned device = 0; device < 2; ++device)
                assert_int_equal(fake->supervisor->engine.devices[device].arena_bytes, 8 * N_BYTES);
        for (size_t i = 0; i < 16; ++i)
                fake_client_close(clients[i]);
        fake_free(fake);
        fake_peers = 0;
}

#define AWAY(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        jobs_of_unknown_duration_do_not_wait_for_one_another_beside_an_idle_device),
                cmocka_unit_test(jobs_known_to_be_short_share_the_worker_that_there_is),
                cmocka_unit_test(a_job_that_another_user_runs_for_long_counts),
                cmocka_unit_test(a_job_counts_with_what_is_left_of_it),
                cmocka_unit_test(
                        sessions_that_work_already_do_not_skew_where_others_have_their_memory),
                AWAY(a_job_leaves_its_data_for_an_idle_device),
                AWAY(a_job_that_names_its_device_stays),
                AWAY(a_job_stays_if_the_other_device_has_much_to_do),
                AWAY(a_job_stays_where_the_device_of_its_data_is_drained),
                AWAY(a_job_stays_where_devices_do_not_share_atomic_operations),
                AWAY(a_job_stays_behind_one_that_is_in_flight_with_its_data),
                AWAY(a_job_behind_one_that_went_away_waits_for_its_end),
                AWAY(a_job_that_was_slow_elsewhere_stays_the_next_time),
                AWAY(a_job_goes_back_if_the_other_worker_cannot_use_its_data),
                AWAY(a_job_goes_back_if_its_module_does_not_load_there),
                AWAY(jobs_go_back_if_the_other_worker_faults),
                cmocka_unit_test_setup_teardown(a_job_waits_for_a_worker_to_start_if_that_pays,
                                                set_up_cold, tear_down),
                cmocka_unit_test_setup_teardown(a_job_goes_back_if_no_worker_starts_there,
                                                set_up_cold, tear_down),
        };

        return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}

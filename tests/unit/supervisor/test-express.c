/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot's second worker. Worker 0 is always the main one, which a job that does not end holds up.
 */
#include "fake.h"

#include <string.h>

#include "express.h"
#include "workers.h"

#define DONE   GPUQ__V1__STATE__DONE
#define FAILED GPUQ__V1__STATE__FAILED
#define OUT    GPUQ__V1__DIRECTION__OUT
#define IN     GPUQ__V1__DIRECTION__IN

static Slot *slot_of(Fake *fake) {
        return fake->supervisor->engine.slots;
}

static bool is_held_up(void *fake) {
        return express_is_worth(slot_of(fake));
}

static bool has_express(void *fake) {
        return slot_of(fake)->express && slot_of(fake)->express->is_ready;
}

static bool has_no_express(void *fake) {
        return !slot_of(fake)->express;
}

static bool is_stopping(void *worker) {
        return ((FakeWorker *)worker)->is_stopping;
}

/* Return: the job that holds up the main worker. */
static char *with_express[] = {"express=yes", NULL};

static uint64_t hold_up(FakeClient *client, FakeJob job) {
        uint64_t id = fake_submit(client, job);

        fake_worker(client->fake, 0, 1);
        fake_wait(client->fake, is_held_up, client->fake);
        return id;
}

static void end_in(FakeClient *client, size_t worker, uint64_t id) {
        FakeWorker *in = fake_worker(client->fake, worker, 1);

        assert_int_equal(in->jobs[in->n_jobs - 1], id);
        fake_end(in, id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
}

static void close_all(FakeClient *client) {
        Fake *fake = client->fake;

        fake_client_close(client);
        fake_free(fake);
}

static void short_jobs_run_beside_a_long_one(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(client, (FakeJob){}), id;

        for (unsigned i = 0; i < 3; ++i) {
                id = fake_submit(client, (FakeJob){});
                fake_worker(fake, 1, i + 1);
                end_in(client, 1, id);
        }
        assert_int_equal(fake->workers[0].n_jobs, 1);
        assert_int_equal(fake->workers[1].uid, FAKE_UID);
        fake_end(&fake->workers[0], held, 0);
        fake_expect_end(client, held, DONE, 0, NULL);

        /* Nothing is held up any more. */
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        end_in(client, 0, id);
        assert_int_equal(fake->n_workers, 2);
        close_all(client);
}

/* Nothing happens that would show it: gpuqd looks by itself. */
static void waiting_jobs_find_out_that_they_are_held_up(void **state) {
        Fake *fake = fake_new(1, (char *[]){"inflight_jobs=1", "express=yes", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        id = fake_submit(client, (FakeJob){});
        end_in(client, 1, id);
        assert_int_equal(fake->workers[0].n_jobs, 1);
        close_all(client);
}

static uint64_t learn(FakeClient *client, FakeJob job, uint64_t ns) {
        Engine *engine = &client->fake->supervisor->engine;
        uint64_t id = fake_submit(client, job);
        Job *made;

        fake_turn(client->fake);
        made = job_find(engine, id);
        duration_learn(made->user->duration, made->cost.class, ns, 1, ns);
        return id;
}

static void a_job_that_is_known_to_be_long_holds_up_at_once_and_stays(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), id, behind;
        FakeJob job = {.arena = arena, .length = 64, .direction = IN};

        id = learn(client, job, 2000000000);
        fake_worker(fake, 0, 1);
        end_in(client, 0, id);

        id = fake_submit(client, job);
        behind = fake_submit(client, job); /* one long job at a time */
        fake_worker(fake, 0, 2);
        assert_true(express_is_worth(slot_of(fake)));
        end_in(client, 1, fake_submit(client, (FakeJob){})); /* overtakes in its session */
        end_in(other, 1, fake_submit(other, (FakeJob){}));
        assert_int_equal(fake->workers[0].n_jobs, 2);
        fake_end(&fake->workers[0], id, 0);
        fake_worker(fake, 0, 3);
        end_in(client, 0, behind);
        fake_client_close(other);
        close_all(client);
}

/* A job may wait in its kernel for what another one copies. */
static void a_small_copy_is_never_long(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), held, id;
        FakeJob copy = {.arena = arena, .length = 64, .direction = IN, .is_copy = true};

        id = learn(client, copy, 2000000000);
        fake_worker(fake, 0, 1);
        end_in(client, 0, id);
        id = learn(client, (FakeJob){}, 2000000000);
        fake_worker(fake, 0, 2);
        end_in(client, 0, id);

        held = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 3);
        end_in(client, 1, fake_submit(client, copy));
        end_in(client, 0, held);
        close_all(client);
}

static bool has_lasted(void *fake) {
        return express_is_stalled(slot_of(fake)->executor, 3 * EXPRESS_START_NS);
}

/* Both were of unknown duration when they were sent. */
static void after_a_long_job_those_of_its_kind_are_known_to_be_long(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t first = fake_submit_many(client, (FakeJob){}, 2), arena;
        WorkerEnd end = {.id = first, .ran_us = 1000000};

        arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096);
        fake_worker(fake, 0, 2);
        fake_wait(fake, has_lasted, fake);
        fake_say(&fake->workers[0],
                 (WorkerMessage){{.kind = FROM_WORKER_ENDS, .n_items = 1}, .items = &end}, -1);
        fake_expect_end(client, first, DONE, 0, NULL);
        end_in(client, 1,
               fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = IN}));
        end_in(client, 0, first + 1);
        close_all(client);
}

static void jobs_that_follow_by_buffers_stay_in_order(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), held, follows, beside;
        uint64_t both;

        held = hold_up(client, (FakeJob){.arena = arena, .length = 64, .direction = OUT});
        beside = fake_submit(
                client, (FakeJob){.arena = arena, .offset = 64, .length = 64, .direction = OUT});
        fake_worker(fake, 1, 1);
        follows = fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = IN});
        fake_worker(fake, 0, 2);
        assert_int_equal(fake->workers[0].jobs[1], follows);
        assert_int_equal(fake->workers[0].after[1], held);

        /* It follows jobs in both workers: in neither before one of them has no more. */
        both = fake_submit(client, (FakeJob){.arena = arena, .length = 128, .direction = IN});
        fake_turn(fake);
        assert_int_equal(fake->workers[0].n_jobs, 2);
        assert_int_equal(fake->workers[1].n_jobs, 1);
        fake_end(&fake->workers[1], beside, 0);
        fake_worker(fake, 0, 3);
        assert_int_equal(fake->workers[0].jobs[2], both);
        for (unsigned i = 0; i < 3; ++i)
                fake_end(&fake->workers[0], fake->workers[0].jobs[i], 0);
        fake_expect_end(client, both, DONE, 0, NULL);
        close_all(client);
}

/* The main worker is free again, but a job in the other one comes first. */
static void a_job_behind_one_in_the_express_worker_follows_it(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), held, first, second;

        held = hold_up(client, (FakeJob){});
        first = fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = OUT});
        fake_worker(fake, 1, 1);
        fake_end(&fake->workers[0], held, 0);
        fake_expect_end(client, held, DONE, 0, NULL);
        second = fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = IN});
        fake_turn(fake);
        assert_int_equal(fake->workers[0].n_jobs, 1);
        assert_int_equal(fake->workers[1].n_jobs, 1);
        fake_end(&fake->workers[1], first, 0);
        fake_worker(fake, 0, 2);
        end_in(client, 0, second);
        close_all(client);
}

static void jobs_with_variables_stay(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *plain = fake_client(fake, FAKE_UID), *client;
        uint64_t held, id;

        fake->has_variables = true;
        client = fake_client(fake, FAKE_UID);
        fake_module(client);
        held = hold_up(plain, (FakeJob){});
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        assert_int_equal(fake->workers[0].jobs[1], id);
        end_in(plain, 1, fake_submit(plain, (FakeJob){}));
        fake_end(&fake->workers[0], held, 0);
        end_in(client, 0, id);
        fake_client_close(plain);
        close_all(client);
}

static void modules_load_beside_a_long_job(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);

        hold_up(client, (FakeJob){});
        fake_module(client);
        assert_int_equal(fake->workers[0].n_modules, 0);
        assert_int_equal(fake->workers[1].n_modules, 1);
        end_in(client, 1, fake_submit(client, (FakeJob){}));
        assert_int_equal(fake->workers[1].n_modules, 1);
        close_all(client);
}

static void a_module_for_which_it_has_no_memory_loads_in_the_main_worker(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        hold_up(client, (FakeJob){});
        fake->hold_modules = true;
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
        fake_wait(fake, has_express, fake);
        fake_turn(fake);
        fake_release_modules(fake, &fake->workers[1], GPUQ__V1__CODE__E_MEMORY);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_MODULE);
        assert_int_equal(fake->workers[0].n_modules, 1);
        close_all(client);
}

static bool holds_a_module(void *fake) {
        return ((Fake *)fake)->n_held > 0;
}

/* The main worker loads it when nothing runs; then it was loaded before. */
static void a_module_that_loads_already_loads_beside_a_long_job_too(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        fake->hold_modules = true;
        fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 1);
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        request.body_case = GPUQ__V1__REQUEST__BODY_MODULE_LOAD;
        request.module_load = &load;
        fake_send(client, &request);
        fake_wait(fake, holds_a_module, fake);
        assert_int_equal(fake->workers[0].n_modules, 1);
        fake->hold_modules = false;

        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_MODULE);
        assert_int_equal(fake->workers[1].n_modules, 1);
        fake_release_modules(fake, &fake->workers[0], 0);
        assert_false(fake->workers[0].is_killed);
        close_all(client);
}

static bool has_parked(void *fake) {
        return slot_of(fake)->executor->n_parked > 0;
}

/* Its module loads in the main worker; then a long job comes, and the load has to wait for it. */
static void a_job_whose_module_waits_for_the_long_job_goes_elsewhere(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *plain = fake_client(fake, FAKE_UID), *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(plain, (FakeJob){}), id;

        fake_module(client);
        fake_end(&fake->workers[0], held, 0);
        fake_expect_end(plain, held, DONE, 0, NULL);

        fake->hold_modules = true;
        id = fake_submit(client, (FakeJob){});
        fake_wait(fake, has_parked, fake);
        fake_submit(plain, (FakeJob){});
        fake_worker(fake, 0, 2);
        fake_worker(fake, 1, 1);
        end_in(client, 1, id);
        fake_client_close(plain);
        close_all(client);
}

static void a_fault_of_one_worker_leaves_the_other_alone(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        WorkerPhase issued = WORKER_PHASE_ISSUED;
        uint64_t held = hold_up(client, (FakeJob){}), id;

        id = fake_submit(client, (FakeJob){});
        fake_stopped(fake, fake_worker(fake, 1, 1), "bad address", &id, &issued, 1);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, "caused the fault");
        assert_true(has_no_express(fake));
        assert_false(fake->workers[0].is_stopping);

        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 2, 1);
        fake_stopped(fake, &fake->workers[0], "bad address", &held, &issued, 1);
        fake_expect_end(client, held, FAILED, GPUQ__V1__CODE__E_FAULT, "caused the fault");
        assert_false(fake->workers[2].is_stopping);
        end_in(client, 2, id);
        close_all(client);
}

static void either_worker_may_be_killed(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeJob job = {.repeatable = true};
        uint64_t held = hold_up(client, job), id = fake_submit(client, job);

        fake_die(fake, fake_worker(fake, 1, 1));
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_FAULT, "");
        id = fake_submit(client, job);
        fake_worker(fake, 2, 1);
        fake_die(fake, &fake->workers[0]);
        fake_expect_end(client, held, FAILED, GPUQ__V1__CODE__E_FAULT, "");
        end_in(client, 2, id);
        close_all(client);
}

static void short_jobs_go_on_while_the_main_worker_starts_again(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(client, (FakeJob){});

        end_in(client, 1, fake_submit(client, (FakeJob){}));
        fake->hold_ready = true;
        fake_die(fake, &fake->workers[0]);
        fake_expect_end(client, held, FAILED, GPUQ__V1__CODE__E_FAULT, "");
        end_in(client, 1, fake_submit(client, (FakeJob){}));
        close_all(client);
}

static void without_quota_jobs_go_behind_the_long_one(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held, id;

        quota_init(&fake->supervisor->engine.quotas[USER_WORKERS], 4); /* one for each user */
        held = hold_up(client, (FakeJob){});
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        fake_end(&fake->workers[0], held, 0);
        end_in(client, 0, id);
        assert_int_equal(fake->n_workers, 1);
        close_all(client);
}

static void where_none_starts_jobs_go_behind_the_long_one(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(client, (FakeJob){}), id;

        fake->start_error = "out of fake memory";
        fake->start_crowded = true;
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        fake_end(&fake->workers[0], held, 0);
        end_in(client, 0, id);
        assert_int_equal(fake->n_workers, 2); /* and it is not tried again soon */
        assert_int_equal(slot_of(fake)->n_failures, 0);
        close_all(client);
}

static bool is_starting(void *fake) {
        return ((Fake *)fake)->n_workers == 2;
}

static void jobs_that_wait_for_it_say_so_and_go_first_where_they_can(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(client, (FakeJob){}), id;

        fake->hold_ready = true;
        id = fake_submit(client, (FakeJob){});
        fake_wait(fake, is_starting, fake);
        assert_string_equal(fake_reason(client, id), "a long job of this user is running; another "
                                                     "worker is starting for short ones");
        fake_end(&fake->workers[0], held, 0);
        fake_worker(fake, 0, 2);
        end_in(client, 0, id);
        close_all(client);
}

static void switched_off_there_is_none(void **state) {
        Fake *fake = fake_new(1, (char *[]){"express=no", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID);

        hold_up(client, (FakeJob){});
        fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2);
        assert_int_equal(fake->n_workers, 1);
        close_all(client);
}

static void all_users_of_one_worker_share_its_second_one(void **state) {
        Fake *fake = fake_new(1, (char *[]){"isolation=shared", "express=yes", NULL});
        FakeClient *client = fake_client(fake, FAKE_UID), *other = fake_client(fake, FAKE_UID + 1);

        hold_up(client, (FakeJob){});
        end_in(other, 1, fake_submit(other, (FakeJob){}));
        end_in(client, 1, fake_submit(client, (FakeJob){}));
        assert_int_equal(fake->n_workers, 2);
        fake_client_close(other);
        close_all(client);
}

static void tick(Fake *fake, uint64_t later_ns) {
        workers_tick(&fake->supervisor->workers, uv_hrtime() + later_ns);
        fake_turn(fake);
}

static void an_idle_one_ends_soon(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);

        hold_up(client, (FakeJob){});
        end_in(client, 1, fake_submit(client, (FakeJob){}));
        tick(fake, EXPRESS_IDLE_NS / 2);
        assert_false(fake->workers[1].is_stopping);
        tick(fake, EXPRESS_IDLE_NS);
        assert_true(fake->workers[1].is_stopping);
        assert_false(fake->workers[0].is_stopping);
        fake_stopped(fake, &fake->workers[1], NULL, NULL, NULL, 0);
        assert_true(has_no_express(fake));

        end_in(client, 2, fake_submit(client, (FakeJob){})); /* and comes back */
        close_all(client);
}

static void refuse(FakeWorker *worker, uint64_t id, bool never_ran) {
        WorkerEnd end = {.id = id};

        fake_say(worker,
                 (WorkerMessage){{.kind = FROM_WORKER_ENDS,
                                  .code = GPUQ__V1__CODE__E_MEMORY,
                                  .n_items = 1,
                                  .detail = never_ran},
                                 .text = "out of fake memory",
                                 .items = &end},
                 -1);
}

static void a_job_for_which_it_has_no_memory_runs_in_the_main_worker(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t held = hold_up(client, (FakeJob){}), id;

        id = fake_submit(client, (FakeJob){});
        refuse(fake_worker(fake, 1, 1), id, true);
        end_in(client, 0, id); /* where it is behind the long job */
        fake_end(&fake->workers[0], held, 0);
        fake_expect_end(client, held, DONE, 0, NULL);
        close_all(client);
}

static void a_job_that_lacked_memory_halfway_fails(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t id;

        hold_up(client, (FakeJob){});
        id = fake_submit(client, (FakeJob){});
        refuse(fake_worker(fake, 1, 1), id, false);
        fake_expect_end(client, id, FAILED, GPUQ__V1__CODE__E_MEMORY, "out of fake memory");
        close_all(client);
}

/* It would run before the job that it must follow. */
static void a_job_whose_follower_was_sent_does_not_go_back(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        uint64_t arena = fake_arena(client, GPUQ__V1__PLACE__HOST, 4096), first, second;

        hold_up(client, (FakeJob){});
        first = fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = OUT});
        fake_worker(fake, 1, 1);
        second = fake_submit(client, (FakeJob){.arena = arena, .length = 64, .direction = IN});
        refuse(fake_worker(fake, 1, 2), first, true);
        fake_expect_end(client, first, FAILED, GPUQ__V1__CODE__E_MEMORY, "out of fake memory");
        fake_end(&fake->workers[1], second, 0);
        fake_expect_end(client, second, DONE, 0, NULL);
        close_all(client);
}

static void lack_memory(Fake *fake) {
        fake->start_error = "out of fake memory";
        fake->start_crowded = true;
}

static void under_pressure_it_goes_before_idle_workers(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID), *idle = fake_client(fake, FAKE_UID + 1);
        FakeClient *needy = fake_client(fake, FAKE_UID + 2);

        hold_up(client, (FakeJob){});
        end_in(idle, 1, fake_submit(idle, (FakeJob){}));
        end_in(client, 2, fake_submit(client, (FakeJob){}));
        lack_memory(fake);
        fake_submit(needy, (FakeJob){});
        fake_wait(fake, is_stopping, &fake->workers[2]);
        assert_false(fake->workers[1].is_stopping);
        fake_client_close(idle);
        fake_client_close(needy);
        close_all(client);
}

static bool is_barred(void *fake) {
        return slot_of(fake)->express_ns > 0;
}

static void under_pressure_a_busy_one_ends_with_its_jobs(void **state) {
        Fake *fake = fake_new(1, with_express);
        FakeClient *client = fake_client(fake, FAKE_UID);
        FakeClient *needy = fake_client(fake, FAKE_UID + 1);
        uint64_t id;

        hold_up(client, (FakeJob){});
        id = fake_submit(client, (FakeJob){});
        fake_worker(fake, 1, 1);
        lack_memory(fake);
        fake_submit(needy, (FakeJob){});
        fake_wait(fake, is_barred, fake);
        fake_submit(client, (FakeJob){});
        fake_worker(fake, 0, 2); /* it gets no more */
        tick(fake, 0);
        assert_false(fake->workers[1].is_stopping);
        end_in(client, 1, id);
        tick(fake, 0);
        assert_true(fake->workers[1].is_stopping);
        fake_client_close(needy);
        close_all(client);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(short_jobs_run_beside_a_long_one),
                cmocka_unit_test(waiting_jobs_find_out_that_they_are_held_up),
                cmocka_unit_test(a_job_that_is_known_to_be_long_holds_up_at_once_and_stays),
                cmocka_unit_test(a_small_copy_is_never_long),
                cmocka_unit_test(after_a_long_job_those_of_its_kind_are_known_to_be_long),
                cmocka_unit_test(jobs_that_follow_by_buffers_stay_in_order),
                cmocka_unit_test(a_job_behind_one_in_the_express_worker_follows_it),
                cmocka_unit_test(jobs_with_variables_stay),
                cmocka_unit_test(modules_load_beside_a_long_job),
                cmocka_unit_test(a_job_for_which_it_has_no_memory_runs_in_the_main_worker),
                cmocka_unit_test(a_job_that_lacked_memory_halfway_fails),
                cmocka_unit_test(a_job_whose_follower_was_sent_does_not_go_back),
                cmocka_unit_test(a_module_for_which_it_has_no_memory_loads_in_the_main_worker),
                cmocka_unit_test(a_module_that_loads_already_loads_beside_a_long_job_too),
                cmocka_unit_test(a_job_whose_module_waits_for_the_long_job_goes_elsewhere),
                cmocka_unit_test(a_fault_of_one_worker_leaves_the_other_alone),
                cmocka_unit_test(either_worker_may_be_killed),
                cmocka_unit_test(short_jobs_go_on_while_the_main_worker_starts_again),
                cmocka_unit_test(without_quota_jobs_go_behind_the_long_one),
                cmocka_unit_test(where_none_starts_jobs_go_behind_the_long_one),
                cmocka_unit_test(jobs_that_wait_for_it_say_so_and_go_first_where_they_can),
                cmocka_unit_test(switched_off_there_is_none),
                cmocka_unit_test(all_users_of_one_worker_share_its_second_one),
                cmocka_unit_test(an_idle_one_ends_soon),
                cmocka_unit_test(under_pressure_it_goes_before_idle_workers),
                cmocka_unit_test(under_pressure_a_busy_one_ends_with_its_jobs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

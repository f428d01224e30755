/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that the supervisor before had: what they say is read when their jobs are
 * known, twice is harmless, and nothing runs twice.
 */
#include "fake.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "history.h"
#include "scheduler.h"
#include "slot.h"
#include "takeover_state.h"

#define DONE      GPUQ__V1__STATE__DONE
#define FAILED    GPUQ__V1__STATE__FAILED
#define CANCELLED GPUQ__V1__STATE__CANCELLED

#define INHERITED 50u  /* a worker's number, above those that the test has started */
#define NOBODYS   777u /* a job's, an arena's, a module's */

typedef struct Scene {
        Fake *fake;
        FakeClient *client;
        FakeWorker *there; /* the process */
        Worker *here;
} Scene;

/* Its module is loaded; the worker that did it is gone, and one of before is there instead. */
static Scene scene_with(bool has_variables) {
        Scene scene = {.fake = fake_new(1, NULL)};

        scene.fake->has_variables = has_variables;
        scene.client = fake_client(scene.fake, FAKE_UID);
        fake_module(scene.client);
        fake_die(scene.fake, fake_worker(scene.fake, 0, 0));
        scene.there = fake_inherit(scene.fake, INHERITED, FAKE_UID, &scene.here);
        return scene;
}

static Scene scene_new(void) {
        return scene_with(false);
}

static void scene_end(Scene *scene) {
        fake_client_close(scene->client);
        fake_free(scene->fake);
}

/* As a client names it again that had submitted it before. */
static uint64_t scene_adopt(Scene *scene, FakeJob job) {
        uint64_t id = fake_submit(scene->client, job);
        Job *there = engine_find_job(&scene->fake->supervisor->engine, id);

        assert_non_null(there);
        scheduler_withdraw(there);
        assert_int_equal(worker_adopt(scene->here, there), 0);
        return id;
}

static void scene_resume(Scene *scene) {
        worker_resume(scene->here);
        fake_turn(scene->fake);
}

/* … and it tells that it has these jobs. */
static void scene_resume_with(Scene *scene, uint64_t *jobs, size_t n_jobs) {
        scene_resume(scene);
        assert_int_equal(scene->there->attached_by, scene->fake->supervisor->engine.started_ns);
        fake_state(scene->there, scene->there->attached_by, NULL, 0, jobs, n_jobs);
        fake_turn(scene->fake);
}

static bool is_running(Scene *scene, uint64_t id) {
        const Job *job = engine_find_job(&scene->fake->supervisor->engine, id);

        return job && job->state == JOB_RUNNING;
}

/* ---- jobs ------------------------------------------------------------------ */

static void job_that_ended_meanwhile_is_told_and_does_not_run_again(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){}), later = scene_adopt(&scene, (FakeJob){});

        fake_end(scene.there, NOBODYS, 0);
        fake_end(scene.there, id, 0);
        fake_turn(scene.fake);
        assert_true(is_running(&scene, id)); /* nothing is read before everybody has spoken */
        scene_resume_with(&scene, &later, 1);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        assert_true(is_running(&scene, later));
        fake_end(scene.there, later, 0);
        fake_expect_end(scene.client, later, DONE, 0, NULL);
        assert_int_equal(scene.there->n_jobs, 0);
        assert_false(scene.there->is_killed);

        /* From now on it is a worker like any other. */
        fake_submit(scene.client, (FakeJob){});
        fake_worker(scene.fake, 1, 1);
        assert_int_equal(scene.fake->n_spawned, 1);
        fake_end(scene.there, scene.there->jobs[0], 0);
        scene_end(&scene);
}

static void job_that_did_not_come_to_it_is_given_to_it(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        scene_resume_with(&scene, NULL, 0);
        fake_worker(scene.fake, 1, 1);
        assert_int_equal(scene.there->jobs[0], id);
        assert_int_equal(engine_find_job(&scene.fake->supervisor->engine, id)->retries, 0);
        fake_end(scene.there, id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static void state_for_a_supervisor_that_died_says_nothing_to_the_next(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        fake_state(scene.there, 1, NULL, 0, NULL, 0);
        scene_resume(&scene);
        assert_true(is_running(&scene, id));
        assert_int_equal(scene.there->n_jobs, 0);
        fake_state(scene.there, scene.there->attached_by, NULL, 0, &id, 1);
        fake_turn(scene.fake);
        assert_true(is_running(&scene, id));
        assert_int_equal(scene.there->n_jobs, 0);
        fake_end(scene.there, id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static void what_was_dealt_with_before_is_harmless(void **state) {
        Gpuq__Worker__Ready ready = GPUQ__WORKER__READY__INIT;
        Gpuq__Worker__JobLate late = GPUQ__WORKER__JOB_LATE__INIT;
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_READY, &ready, -1);
        late.id = NOBODYS;
        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_LATE, &late, -1);
        fake_end(scene.there, NOBODYS, 0);
        scene_resume_with(&scene, &id, 1);
        assert_false(scene.there->is_killed);
        fake_end(scene.there, id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);

        /* But once it has said what it has, it keeps the rules. */
        fake_end(scene.there, NOBODYS, 0);
        fake_turn(scene.fake);
        assert_true(scene.there->is_killed);
        scene_end(&scene);
}

static void cancel(Scene *scene, uint64_t id) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;

        cancel.ids = &id;
        cancel.n_ids = 1;
        request.body_case = GPUQ__V1__REQUEST__BODY_CANCEL;
        request.cancel = &cancel;
        fake_send(scene->client, &request);
}

static void job_cancelled_before_it_was_read_is_stopped_after(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        cancel(&scene, id);
        scene_resume_with(&scene, &id, 1);
        while (!scene.there->is_stopping) {
                uv_run(&scene.fake->supervisor->loop, UV_RUN_ONCE);
                fake_turn(scene.fake);
        }
        fake_stopped(scene.fake, scene.there, NULL, &id,
                     (Gpuq__Worker__Phase[]){GPUQ__WORKER__PHASE__ISSUED}, 1);
        fake_expect_end(scene.client, id, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "by uid");
        scene_end(&scene);
}

static void job_cancelled_that_did_not_come_to_it_is_not_given_to_it(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        cancel(&scene, id);
        scene_resume_with(&scene, NULL, 0);
        fake_expect_end(scene.client, id, CANCELLED, GPUQ__V1__CODE__E_CANCELLED, "by uid");
        assert_int_equal(scene.there->n_jobs, 0);
        scene_end(&scene);
}

/* The same, of a session that is away. */
static void job_cancelled_for_its_client_that_did_not_come_to_it_has_ended(void **state) {
        enum { AWAY = 9 };
        Scene scene = scene_new();
        Takeover takeover = {.supervisor = scene.fake->supervisor, .state = TAKEOVER_OVER};
        TakeoverSession session = {.id = AWAY};
        LedgerJob known = {
                .owner = {.id = (uint64_t)AWAY << 32 | 1, .uid = FAKE_UID, .gid = FAKE_UID},
                .sent = {.worker = INHERITED},
                .slot = LEDGER_NONE};
        Takeover *own = scene.fake->supervisor->takeover;
        const HistoryEntry *end;
        TakeoverJob *job;
        User *user;

        HASH_ADD(hh, takeover.sessions, id, sizeof(session.id), &session);
        scene.fake->supervisor->takeover = &takeover;
        takeover_keep_job(&takeover, &known);
        job = takeover_find_kept(scene.fake->supervisor, known.owner.id);
        user = job->user;
        takeover_doom_job(scene.fake->supervisor, job, JOB_CANCELLED,
                          failure_new(FAILURE_CANCELLED, "cancelled by uid 1"));
        scene_resume_with(&scene, NULL, 0);
        assert_null(takeover.jobs);
        end = history_find(user->history, known.owner.id);
        assert_non_null(end);
        assert_int_equal(end->state, JOB_CANCELLED);
        assert_string_equal(end->text, "cancelled by uid 1");

        scene.fake->supervisor->takeover = own;
        HASH_CLEAR(hh, takeover.sessions);
        scene_end(&scene);
}

/* ---- jobs of nobody -------------------------------------------------------- */

static void jobs_that_nobody_claims_may_end_by_themselves(void **state) {
        uint64_t orphans[] = {NOBODYS, NOBODYS + 1};
        Scene scene = scene_new();

        scene_resume_with(&scene, orphans, 2);
        fake_end(scene.there, orphans[0], 0);
        fake_end(scene.there, orphans[1], 0);
        fake_turn(scene.fake);
        worker_tick(scene.here, uv_hrtime() + SUPERVISOR_ORPHAN_MS * 2000000ull);
        fake_turn(scene.fake);
        assert_false(scene.there->is_killed);
        assert_false(scene.there->is_stopping);
        scene_end(&scene);
}

static void jobs_that_nobody_claims_are_not_waited_for_long(void **state) {
        uint64_t jobs[] = {NOBODYS, 0};
        Gpuq__Worker__Phase phases[] = {GPUQ__WORKER__PHASE__ISSUED, GPUQ__WORKER__PHASE__ISSUED};
        Scene scene = scene_new();

        jobs[1] = scene_adopt(&scene, (FakeJob){});
        scene_resume_with(&scene, jobs, 2);
        worker_tick(scene.here, uv_hrtime());
        fake_turn(scene.fake);
        assert_false(scene.there->is_stopping);
        worker_tick(scene.here, uv_hrtime() + SUPERVISOR_ORPHAN_MS * 2000000ull);
        fake_turn(scene.fake);
        assert_true(scene.there->is_stopping);

        /* Who runs beside it runs again. */
        fake_stopped(scene.fake, scene.there, NULL, jobs, phases, 2);
        assert_false(scene.there->is_killed);
        fake_end(fake_worker(scene.fake, 2, 1), jobs[1], 0);
        fake_expect_end(scene.client, jobs[1], DONE, 0, NULL);
        scene_end(&scene);
}

/* ---- arenas and modules ---------------------------------------------------- */

static void add_module(FakeWorker *worker, uint64_t id) {
        Gpuq__Worker__ModuleAdded added = GPUQ__WORKER__MODULE_ADDED__INIT;

        added.id = id;
        fake_say(worker, GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED, &added, -1);
}

static void what_it_has_is_not_given_to_it_again_and_the_rest_is_dropped(void **state) {
        Scene scene = scene_new();
        uint64_t arenas[] = {fake_arena(scene.client, GPUQ__V1__PLACE__HOST, 4096), NOBODYS};
        uint64_t id = fake_submit(scene.client, (FakeJob){.arena = arenas[0], .length = 8});

        scene_resume(&scene);
        add_module(scene.there, scene.client->module);
        add_module(scene.there, scene.client->module); /* for another before us */
        add_module(scene.there, NOBODYS);
        fake_turn(scene.fake);
        assert_int_equal(scene.there->n_jobs, 0);
        scene.fake->hold_modules = true;
        fake_state(scene.there, scene.there->attached_by, arenas, 2, NULL, 0);
        fake_worker(scene.fake, 1, 1);
        assert_int_equal(scene.there->jobs[0], id);
        assert_int_equal(scene.there->n_arenas, 0);
        assert_int_equal(scene.there->n_dropped, 1);
        assert_int_equal(scene.there->n_modules_dropped, 1);
        assert_int_equal(scene.fake->n_held, 0);
        fake_end(scene.there, id, 0);
        scene_end(&scene);
}

static void variables_of_a_job_that_ended_unread_keep_their_worker(void **state) {
        Gpuq__Worker__ModuleAdded added = GPUQ__WORKER__MODULE_ADDED__INIT;
        Scene scene = scene_with(true);
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        fake_end(scene.there, id, 0);
        scene_resume(&scene);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        added.id = scene.client->module;
        added.has_variables = true;
        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_MODULE_ADDED, &added, -1);
        fake_state(scene.there, scene.there->attached_by, NULL, 0, NULL, 0);
        fake_turn(scene.fake);
        assert_true(worker_holds_variables(scene.here));
        scene_end(&scene);
}

static void what_it_lacks_is_given_to_it(void **state) {
        Scene scene = scene_new();
        uint64_t arena = fake_arena(scene.client, GPUQ__V1__PLACE__HOST, 4096);
        uint64_t id = fake_submit(scene.client, (FakeJob){.arena = arena, .length = 8});

        scene_resume_with(&scene, NULL, 0);
        fake_worker(scene.fake, 1, 1);
        assert_int_equal(scene.there->n_arenas, 1);
        fake_end(scene.there, id, 0);
        scene_end(&scene);
}

static void things_of_another_user_are_not_believed(void **state) {
        Scene scene = scene_new();
        FakeClient *other = fake_client(scene.fake, FAKE_UID + 1);
        uint64_t arena = fake_arena(other, GPUQ__V1__PLACE__HOST, 4096);

        fake_module(other);
        scene_resume(&scene);
        add_module(scene.there, other->module);
        fake_state(scene.there, scene.there->attached_by, &arena, 1, NULL, 0);
        fake_turn(scene.fake);
        assert_int_equal(scene.there->n_dropped, 1);
        assert_int_equal(scene.there->n_modules_dropped, 1);
        fake_client_close(other);
        scene_end(&scene);
}

static void arena_made_for_one_who_died_is_dropped_with_its_descriptor_or_without(void **state) {
        Gpuq__Worker__ArenaMade made = GPUQ__WORKER__ARENA_MADE__INIT;
        int fd = memfd_create("device memory", MFD_CLOEXEC);
        Scene scene = scene_new();

        made.id = NOBODYS;
        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_ARENA_MADE, &made, fd);
        scene_resume_with(&scene, NULL, 0);
        made.id++;
        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_ARENA_MADE, &made, -1);
        fake_turn(scene.fake);
        assert_int_equal(scene.there->n_dropped, 2);
        assert_false(scene.there->is_killed);

        /* One that we ask for comes with its own. */
        assert_true(fake_arena(scene.client, GPUQ__V1__PLACE__DEVICE, 4096) != 0);
        scene_end(&scene);
        close(fd);
}

/* ---- those that died ------------------------------------------------------- */

static void worker_that_was_killed_meanwhile_costs_no_job(void **state) {
        Scene scene = scene_new();
        uint64_t ended = scene_adopt(&scene, (FakeJob){}),
                 running = scene_adopt(&scene, (FakeJob){});

        fake_end(scene.there, ended, 0);
        fake_die(scene.fake, scene.there);
        assert_true(is_running(&scene, ended));
        scene_resume(&scene);
        fake_expect_end(scene.client, ended, DONE, 0, NULL);
        fake_end(fake_worker(scene.fake, 2, 1), running, 0);
        fake_expect_end(scene.client, running, DONE, 0, NULL);
        scene_end(&scene);
}

static void worker_that_faulted_meanwhile_names_who_did_it(void **state) {
        Gpuq__Worker__Stopped stopped = GPUQ__WORKER__STOPPED__INIT;
        Gpuq__Worker__InFlight inflight = GPUQ__WORKER__IN_FLIGHT__INIT, *list = &inflight;
        Gpuq__V1__Error error = GPUQ__V1__ERROR__INIT;
        Scene scene = scene_new();
        uint64_t guilty = scene_adopt(&scene, (FakeJob){}),
                 unread = scene_adopt(&scene, (FakeJob){});

        inflight.id = guilty;
        inflight.phase = GPUQ__WORKER__PHASE__ISSUED;
        error.code = GPUQ__V1__CODE__E_FAULT;
        error.text = "an illegal memory access was encountered";
        stopped.error = &error;
        stopped.jobs = &list;
        stopped.n_jobs = 1;
        fake_say(scene.there, GPUQ__WORKER__FROM_WORKER__BODY_STOPPED, &stopped, -1);
        fake_die(scene.fake, scene.there);
        scene_resume(&scene);
        fake_expect_end(scene.client, guilty, FAILED, GPUQ__V1__CODE__E_FAULT, "illegal memory");
        fake_end(fake_worker(scene.fake, 2, 1), unread, 0);
        fake_expect_end(scene.client, unread, DONE, 0, NULL);
        scene_end(&scene);
}

static void job_beside_one_of_nobody_is_not_taken_for_the_guilty_one(void **state) {
        Gpuq__Worker__Phase phases[] = {GPUQ__WORKER__PHASE__ISSUED, GPUQ__WORKER__PHASE__ISSUED};
        Scene scene = scene_new();
        uint64_t jobs[] = {NOBODYS, scene_adopt(&scene, (FakeJob){})};
        FakeWorker *next;

        scene_resume_with(&scene, jobs, 2);
        fake_stopped(scene.fake, scene.there, "an illegal memory access", jobs, phases, 2);
        next = fake_worker(scene.fake, 2, 1);
        fake_stopped(scene.fake, next, "an illegal memory access", &jobs[1], phases, 1);
        fake_expect_end(scene.client, jobs[1], FAILED, GPUQ__V1__CODE__E_FAULT,
                        "run alone after a fault");
        scene_end(&scene);
}

static void job_in_a_worker_that_crashed_unseen_runs_alone_next(void **state) {
        Scene scene = scene_new();
        uint64_t id = scene_adopt(&scene, (FakeJob){});

        fake_crash(scene.fake, scene.there, 11);
        scene_resume(&scene);
        fake_end(fake_worker(scene.fake, 2, 1), id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static void of_two_in_one_place_the_older_is_ended(void **state) {
        Scene scene = scene_new();
        Worker *younger;
        FakeWorker *there = fake_inherit(scene.fake, INHERITED + 1, FAKE_UID, &younger);

        assert_ptr_equal(scene.here->slot->worker, younger);
        worker_resume(younger);
        scene_resume(&scene);
        assert_true(scene.there->is_killed);
        assert_false(there->is_killed);
        fake_state(there, there->attached_by, NULL, 0, NULL, 0);
        fake_submit(scene.client, (FakeJob){});
        fake_worker(scene.fake, 2, 1);
        fake_end(there, there->jobs[0], 0);
        scene_end(&scene);
}

static void worker_of_a_device_that_is_gone_is_not_taken(void **state) {
        Fake *fake = fake_new(1, NULL);
        LedgerWorker record = {.id = INHERITED, .domain = FAKE_UID, .device = "GPU-another"};
        int fds[CHANNEL_N_FDS] = {-1, -1, -1, -1};
        Worker *worker;

        assert_int_equal(worker_attach(fake->supervisor, &record, fds, &worker), -ENODEV);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(job_that_ended_meanwhile_is_told_and_does_not_run_again),
                cmocka_unit_test(job_that_did_not_come_to_it_is_given_to_it),
                cmocka_unit_test(state_for_a_supervisor_that_died_says_nothing_to_the_next),
                cmocka_unit_test(what_was_dealt_with_before_is_harmless),
                cmocka_unit_test(job_cancelled_before_it_was_read_is_stopped_after),
                cmocka_unit_test(job_cancelled_that_did_not_come_to_it_is_not_given_to_it),
                cmocka_unit_test(job_cancelled_for_its_client_that_did_not_come_to_it_has_ended),
                cmocka_unit_test(jobs_that_nobody_claims_may_end_by_themselves),
                cmocka_unit_test(jobs_that_nobody_claims_are_not_waited_for_long),
                cmocka_unit_test(what_it_has_is_not_given_to_it_again_and_the_rest_is_dropped),
                cmocka_unit_test(variables_of_a_job_that_ended_unread_keep_their_worker),
                cmocka_unit_test(what_it_lacks_is_given_to_it),
                cmocka_unit_test(things_of_another_user_are_not_believed),
                cmocka_unit_test(
                        arena_made_for_one_who_died_is_dropped_with_its_descriptor_or_without),
                cmocka_unit_test(worker_that_was_killed_meanwhile_costs_no_job),
                cmocka_unit_test(worker_that_faulted_meanwhile_names_who_did_it),
                cmocka_unit_test(job_beside_one_of_nobody_is_not_taken_for_the_guilty_one),
                cmocka_unit_test(job_in_a_worker_that_crashed_unseen_runs_alone_next),
                cmocka_unit_test(of_two_in_one_place_the_older_is_ended),
                cmocka_unit_test(worker_of_a_device_that_is_gone_is_not_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

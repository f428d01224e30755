/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking over: what a client finds of what it had, and what becomes of its jobs, whose workers
 * have ended with the supervisor before.
 */
#include "fake.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_age.h"
#include "takeover_state.h"

#define BEFORE 5u /* a session of the supervisor before */

#define ARENA  9u
#define MODULE 7u
#define BYTES  4096u
#define DONE   GPUQ__V1__STATE__DONE
#define FAILED GPUQ__V1__STATE__FAILED

/* What the supervisor before left: one session of @pid. */
static Ledger *ledger_of(pid_t pid) {
        LedgerSession record = {.id = BEFORE, .uid = FAKE_UID, .gid = FAKE_UID, .pid = pid};
        Ledger *ledger;

        assert_int_equal(ledger_new(&ledger), 0);
        record.start = process_age_start(pid);
        assert_int_not_equal(ledger_add(ledger, LEDGER_SESSION, &record), LEDGER_NONE);
        ledger_note_id(ledger, LEDGER_SESSION, BEFORE);
        return ledger;
}

/* … with an arena, whose descriptor is @memory, and a module. */
static Ledger *ledger_with_arena(pid_t pid, bool is_used, int *ret_memory) {
        Ledger *ledger = ledger_of(pid);

        ledger_add(ledger, LEDGER_ARENA,
                   &(LedgerArena){.id = ARENA,
                                  .size = BYTES,
                                  .uid = FAKE_UID,
                                  .gid = FAKE_UID,
                                  .place = ARENA_HOST,
                                  .session = BEFORE});
        ledger_note_id(ledger, LEDGER_ARENA, ARENA);
        ledger_add(ledger, LEDGER_MODULE,
                   &(LedgerModule){.id = MODULE,
                                   .session = BEFORE,
                                   .has_variables = is_used,
                                   .is_used = is_used});
        ledger_note_id(ledger, LEDGER_MODULE, MODULE);
        *ret_memory = memfd_create("arena", MFD_CLOEXEC);
        assert_int_equal(ftruncate(*ret_memory, BYTES), 0);
        return ledger;
}

static uint64_t job_before(uint32_t tag) {
        return (uint64_t)BEFORE << 32 | tag;
}

static void note_sent(Ledger *ledger, uint32_t tag) {
        LedgerOwner of = {.id = job_before(tag), .uid = FAKE_UID, .gid = FAKE_UID};

        ledger_job_sent(ledger, LEDGER_NONE, &of, &(LedgerSent){.is_sent = true});
}

/* Consumes @ledger and @memory, -1: none. */
static Fake *fake_taking_over(Ledger *ledger, int memory, bool is_slow) {
        Fake *fake = fake_new(1, NULL);

        fake_stop(fake);
        fake->hold_probe = is_slow;
        fake_start(fake, NULL);
        fake_hand_over(fake, KEEPER_KEY_LEDGER, ledger_fd(ledger));
        if (memory >= 0) {
                fake_hand_over(fake, "arena-9", memory);
                close(memory);
        }
        ledger_free(ledger);
        fake_begin(fake);
        fake_turn(fake);
        return fake;
}

/* A supervisor that has one session to take over, and is looking for devices. */
static Fake *fake_with_a_slow_driver(void) {
        Fake *fake = fake_taking_over(ledger_of(1), -1, true);

        assert_non_null(fake->check);
        return fake;
}

static bool lets_in(void *userdata) {
        return takeover_lets_in(((Fake *)userdata)->supervisor->takeover);
}

static void pass_time(Fake *fake) {
        fake->supervisor->takeover->began_ns -= TAKEOVER_LATE_MS * UINT64_C(1000000);
        fake_wait(fake, lets_in, fake);
}

static void ask(FakeClient *client, Gpuq__V1__Request__BodyCase what, void *body) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;

        request.body_case = what;
        request.hello = body;
        fake_send(client, &request);
}

static FakeClient *client_that_resumes(Fake *fake) {
        FakeClient *client = fake_client_raw(fake, FAKE_UID, false);
        Gpuq__V1__Hello hello = GPUQ__V1__HELLO__INIT;
        const Gpuq__V1__Reply *reply;

        hello.version_min = hello.version_max = 1;
        hello.client = "test";
        hello.resume = BEFORE;
        ask(client, GPUQ__V1__REQUEST__BODY_HELLO, &hello);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_WELCOME);
        assert_true(reply->welcome->resumed);
        assert_int_equal(reply->welcome->session, BEFORE);
        return client;
}

static void ask_for_an_arena(FakeClient *client) {
        Gpuq__V1__ArenaCreate create = GPUQ__V1__ARENA_CREATE__INIT;

        create.place = GPUQ__V1__PLACE__HOST;
        create.size = 4096;
        ask(client, GPUQ__V1__REQUEST__BODY_ARENA_CREATE, &create);
}

static void expect_an_arena(FakeClient *client) {
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_ARENA);
}

static void expect_state(FakeClient *client, const char *state) {
        Gpuq__V1__StatusGet get = GPUQ__V1__STATUS_GET__INIT;
        const Gpuq__V1__Reply *reply;

        ask(client, GPUQ__V1__REQUEST__BODY_STATUS_GET, &get);
        reply = fake_receive(client);
        assert_int_equal(reply->body_case, GPUQ__V1__REPLY__BODY_STATUS);
        assert_string_equal(reply->status->state, state);
}

/* Who is answered nothing gives his session up. */
static void who_resumes_is_let_in_and_served_once_devices_are_known(void **state) {
        Gpuq__V1__Resumed resumed = GPUQ__V1__RESUMED__INIT;
        Fake *fake = fake_with_a_slow_driver();
        FakeClient *client, *other;

        fake_turn(fake);
        assert_false(lets_in(fake));
        pass_time(fake);
        client = client_that_resumes(fake);
        ask_for_an_arena(client);
        ask(client, GPUQ__V1__REQUEST__BODY_RESUMED, &resumed);
        other = fake_client(fake, FAKE_UID);
        assert_true(other->session > BEFORE);
        expect_state(other, "gpuqd is looking for devices");
        ask_for_an_arena(other);
        fake_turn(fake);
        assert_null(fake->supervisor->engine.arenas.by_id);
        assert_false(clients_has_deferred(&fake->supervisor->clients)); /* or the loop would spin */
        assert_false(takeover_serves(fake->supervisor->takeover));

        fake_release_probe(fake);
        expect_an_arena(client);
        expect_an_arena(other);
        expect_state(other, "ready");
        assert_false(takeover_is_awaiting(fake->supervisor->takeover));
        fake_client_close(other);
        fake_client_close(client);
        fake_free(fake);
}

/* The takeover is gone by the time its sessions close. */
static void a_supervisor_may_end_while_a_session_resumes(void **state) {
        Fake *fake = fake_with_a_slow_driver();
        FakeClient *client;

        pass_time(fake);
        client = client_that_resumes(fake);
        fake_free(fake);
        wire_free(client->wire);
        gpuq__v1__reply__free_unpacked(client->reply, NULL);
        free(client);
}

static void who_leaves_before_devices_are_known_is_not_waited_for(void **state) {
        Fake *fake = fake_with_a_slow_driver();
        FakeClient *client;

        pass_time(fake);
        client = client_that_resumes(fake);
        ask_for_an_arena(client);
        fake_client_close(client);
        fake_release_probe(fake);
        fake_turn(fake);
        assert_false(takeover_is_awaiting(fake->supervisor->takeover));
        assert_null(fake->supervisor->clients.sessions);
        fake_free(fake);
}

/* ---- what it had ----------------------------------------------------------- */

static void open_again(FakeClient *client) {
        Gpuq__V1__ArenaOpen open = GPUQ__V1__ARENA_OPEN__INIT;
        Gpuq__V1__ModuleLoad load = GPUQ__V1__MODULE_LOAD__INIT;

        open.arena = ARENA;
        open.resume = true;
        ask(client, GPUQ__V1__REQUEST__BODY_ARENA_OPEN, &open);
        expect_an_arena(client);
        load.format = GPUQ__V1__FORMAT__BUILTIN;
        load.module = client->module = MODULE;
        ask(client, GPUQ__V1__REQUEST__BODY_MODULE_LOAD, &load);
        client->session = BEFORE;
}

static void say_that_this_is_all(FakeClient *client) {
        Gpuq__V1__Resumed resumed = GPUQ__V1__RESUMED__INIT;

        ask(client, GPUQ__V1__REQUEST__BODY_RESUMED, &resumed);
        fake_turn(client->fake);
}

typedef struct Scene {
        Fake *fake;
        FakeClient *client;
        int memory;
} Scene;

/* It is back, has opened again what it had, and is about to submit again @n_sent jobs that were in a worker. */
static Scene scene_with(uint32_t n_sent, bool is_used) {
        Scene scene;
        Ledger *ledger = ledger_with_arena(1, is_used, &scene.memory);

        for (uint32_t tag = 1; tag <= n_sent; ++tag)
                note_sent(ledger, tag);
        scene.fake = fake_taking_over(ledger, dup(scene.memory), false);
        scene.fake->has_variables = is_used;
        scene.client = client_that_resumes(scene.fake);
        open_again(scene.client);
        return scene;
}

static void scene_end(Scene *scene) {
        close(scene->memory);
        fake_client_close(scene->client);
        fake_free(scene->fake);
}

static FakeJob job_with(Gpuq__V1__Direction direction, uint64_t offset) {
        return (FakeJob){.arena = ARENA, .offset = offset, .length = 8, .direction = direction};
}

static void job_that_was_in_a_worker_runs_again(void **state) {
        Scene scene = scene_with(1, false);
        uint64_t id = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__OUT, 0));
        FakeWorker *worker;

        assert_int_equal(id, job_before(1));
        assert_int_equal(fake_worker(scene.fake, 0, 0)->n_jobs, 0); /* not before it has said all */
        say_that_this_is_all(scene.client);
        worker = fake_worker(scene.fake, 0, 1);
        assert_int_equal(worker->jobs[0], id);
        assert_int_equal(job_find(&scene.fake->supervisor->engine, id)->retries, 1);
        fake_end(worker, id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static void job_that_may_not_run_twice_ends_with_its_buffers_named(void **state) {
        Scene scene = scene_with(1, false);
        uint64_t id = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__INOUT, 16)),
                 unsent = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__INOUT, 64));

        say_that_this_is_all(scene.client);
        fake_expect_end(scene.client, id, FAILED, GPUQ__V1__CODE__E_HALF_WRITTEN,
                        "bytes 16 to 24 of arena 9");
        fake_end(fake_worker(scene.fake, 0, 1), unsent, 0);
        fake_expect_end(scene.client, unsent, DONE, 0, NULL);
        scene_end(&scene);
}

static void job_whose_input_another_may_have_overwritten_does_not_run_again(void **state) {
        Scene scene = scene_with(2, false);
        uint64_t reader = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__IN, 0)),
                 writer = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__OUT, 0));

        say_that_this_is_all(scene.client);
        fake_expect_end(scene.client, reader, FAILED, GPUQ__V1__CODE__E_HALF_WRITTEN,
                        "may have overwritten");
        fake_end(fake_worker(scene.fake, 0, 1), writer, 0);
        fake_expect_end(scene.client, writer, DONE, 0, NULL);
        scene_end(&scene);
}

/* Its end was in the ring of a worker that is gone; its client may have gone on since. */
static void job_whose_word_is_there_has_ended(void **state) {
        FakeJob job = job_with(GPUQ__V1__DIRECTION__INOUT, 0);
        Scene scene = scene_with(2, false);
        uint32_t word = 1;
        uint64_t id, other;

        assert_int_equal(pwrite(scene.memory, &word, sizeof(word), 512), sizeof(word));
        job.word_arena = ARENA;
        job.word_offset = 512;
        id = fake_submit(scene.client, job);
        job.word_offset = 576; /* nothing there */
        job.offset = 16;
        other = fake_submit(scene.client, job);
        say_that_this_is_all(scene.client);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        fake_expect_end(scene.client, other, FAILED, GPUQ__V1__CODE__E_HALF_WRITTEN, "16 to 24");
        job = job_with(GPUQ__V1__DIRECTION__OUT, 0);
        job.after = id; /* it is known */
        id = fake_submit(scene.client, job);
        fake_end(fake_worker(scene.fake, 0, 1), id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static void job_cancelled_before_all_was_said_does_not_run_again(void **state) {
        Gpuq__V1__Cancel cancel = GPUQ__V1__CANCEL__INIT;
        Scene scene = scene_with(1, false);
        uint64_t id = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__OUT, 0));

        cancel.ids = &id;
        cancel.n_ids = 1;
        ask(scene.client, GPUQ__V1__REQUEST__BODY_CANCEL, &cancel);
        say_that_this_is_all(scene.client);
        fake_expect_end(scene.client, id, GPUQ__V1__STATE__CANCELLED, GPUQ__V1__CODE__E_CANCELLED,
                        "cancelled");
        scene_end(&scene);
}

static void variables_that_a_job_had_changed_are_lost(void **state) {
        Scene scene = scene_with(0, true);
        uint64_t id;

        say_that_this_is_all(scene.client);
        id = fake_submit(scene.client, (FakeJob){});
        fake_expect_end(scene.client, id, FAILED, GPUQ__V1__CODE__E_VARIABLES_LOST, "");
        id = fake_submit(scene.client, (FakeJob){});
        fake_end(fake_worker(scene.fake, 0, 1), id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

static bool has_record(Scene *scene, uint32_t tag) {
        LedgerJob known;

        return ledger_find_job(scene->fake->supervisor->engine.ledger, job_before(tag), &known);
}

static void job_that_nobody_submits_again_is_forgotten(void **state) {
        Scene scene = scene_with(2, false);
        uint64_t id = fake_submit(scene.client, job_with(GPUQ__V1__DIRECTION__OUT, 0));

        assert_true(has_record(&scene, 2));
        say_that_this_is_all(scene.client);
        assert_false(has_record(&scene, 2));
        fake_end(fake_worker(scene.fake, 0, 1), id, 0);
        fake_expect_end(scene.client, id, DONE, 0, NULL);
        scene_end(&scene);
}

/* ---- dormant sessions ------------------------------------------------------ */

static bool is_awaited(void *userdata) {
        return takeover_find_session(((Fake *)userdata)->supervisor->takeover, BEFORE);
}

static bool is_gone(void *userdata) {
        return !is_awaited(userdata);
}

static void what_one_had_who_is_away_is_kept_until_its_process_ends(void **state) {
        Fake *fake;
        FakeClient *other;
        Ledger *ledger;
        uint64_t id;
        pid_t child;
        int memory;

        child = fork();
        if (child == 0)
                for (;;)
                        pause();
        ledger = ledger_with_arena(child, false, &memory);
        note_sent(ledger, 1);
        fake = fake_taking_over(ledger, memory, false);
        assert_true(is_awaited(fake));
        assert_non_null(arena_find(&fake->supervisor->engine, ARENA));

        /* Others are served meanwhile. */
        other = fake_client(fake, FAKE_UID + 1);
        fake_module(other);
        id = fake_submit(other, (FakeJob){});
        fake_end(fake_worker(fake, 0, 1), id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);

        kill(child, SIGKILL);
        fake_wait(fake, is_gone, fake);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_null(arena_find(&fake->supervisor->engine, ARENA));
        assert_false(takeover_is_awaiting(fake->supervisor->takeover));
        fake_client_close(other);
        fake_free(fake);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_resumes_is_let_in_and_served_once_devices_are_known),
                cmocka_unit_test(a_supervisor_may_end_while_a_session_resumes),
                cmocka_unit_test(who_leaves_before_devices_are_known_is_not_waited_for),
                cmocka_unit_test(job_that_was_in_a_worker_runs_again),
                cmocka_unit_test(job_that_may_not_run_twice_ends_with_its_buffers_named),
                cmocka_unit_test(job_whose_input_another_may_have_overwritten_does_not_run_again),
                cmocka_unit_test(job_whose_word_is_there_has_ended),
                cmocka_unit_test(job_cancelled_before_all_was_said_does_not_run_again),
                cmocka_unit_test(variables_that_a_job_had_changed_are_lost),
                cmocka_unit_test(job_that_nobody_submits_again_is_forgotten),
                cmocka_unit_test(what_one_had_who_is_away_is_kept_until_its_process_ends),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

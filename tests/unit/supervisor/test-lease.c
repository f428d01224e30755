/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: which jobs and workers have them, when they must come back, and what becomes of the jobs in flight then.
 */
#include "fake.h"

#include <string.h>
#include <unistd.h>

#include "jobs.h"
#include "lease.h"
#include "workers.h"

#include "proto/direct_ring.h"

#define DONE      GPUQ__V1__STATE__DONE
#define FAILED    GPUQ__V1__STATE__FAILED
#define SECOND_NS 1000000000ull
#define SHORT_NS  20000ull

/* A client with one prepared job, which is short and changes its arena; and its lease, of which the test is the owner. */
typedef struct Scene {
        Fake *fake;
        FakeClient *client;
        uint64_t arena;
        Lease lease;
        DirectRing ring;
        int bells[2];
        LeaseTaken taken[4]; /* as it was returned */
        size_t n_taken;
        unsigned n_returned, n_lost;
        unsigned
                n_left; /* jobs that the worker has when it is lost, the first of each template, with tags from 100 on */
} Scene;

static Engine *engine_of(const Scene *scene) {
        return &scene->fake->supervisor->engine;
}

static Session *session_of_client(const FakeClient *client) {
        return session_find(&client->fake->supervisor->clients, client->session);
}

static User *user_of(const Scene *scene) {
        return session_of_client(scene->client)->submitter.user;
}

static void scene_on_returned(Lease *lease, Executor *executor, const LeaseTaken *jobs,
                              size_t n_jobs) {
        Scene *scene = container_of(lease, Scene, lease);

        assert_true(n_jobs <= ARRAY_SIZE(scene->taken));
        memcpy(scene->taken, jobs, n_jobs * sizeof(*jobs));
        scene->n_taken = n_jobs;
        scene->n_returned++;
        for (size_t i = 0; i < n_jobs; ++i)
                assert_int_equal(lease_adopt(lease, executor, jobs[i].prepared, jobs[i].tag), 0);
}

static void scene_on_lost(Lease *lease, Executor *executor) {
        Scene *scene = container_of(lease, Scene, lease);

        scene->n_lost++;
        for (uint32_t i = 0; i < scene->n_left; ++i)
                assert_int_equal(lease_adopt(lease, executor, 1 + i, 100 + i), 0);
}

static const LeaseOps scene_ops = {.returned = scene_on_returned, .lost = scene_on_lost};

/* The job's number is that of its preparation: 1, 2, ... */
static void prepare_slice(FakeClient *client, uint64_t arena, uint64_t offset, uint64_t length,
                          bool repeatable) {
        Gpuq__V1__Request request = GPUQ__V1__REQUEST__INIT;
        Gpuq__V1__Prepare message = GPUQ__V1__PREPARE__INIT;
        Gpuq__V1__Kernel kernel = GPUQ__V1__KERNEL__INIT, *kernels = &kernel;
        Gpuq__V1__Buffer buffer = GPUQ__V1__BUFFER__INIT, *buffers = &buffer;
        Gpuq__V1__Job job = GPUQ__V1__JOB__INIT;

        kernel.module = client->module;
        kernel.name = "add";
        buffer.arena = arena;
        buffer.offset = offset;
        buffer.length = length;
        buffer.direction = GPUQ__V1__DIRECTION__INOUT;
        job.kernels = &kernels;
        job.n_kernels = 1;
        job.buffers = &buffers;
        job.n_buffers = 1;
        job.repeatable = repeatable;
        message.job = &job;
        request.body_case = GPUQ__V1__REQUEST__BODY_PREPARE;
        request.prepare = &message;
        fake_send(client, &request);
        assert_int_equal(fake_receive(client)->body_case, GPUQ__V1__REPLY__BODY_PREPARED);
}

static void prepare(FakeClient *client, uint64_t arena, uint64_t offset, bool repeatable) {
        prepare_slice(client, arena, offset, 64, repeatable);
}

static bool add(Scene *scene, uint32_t number) {
        Session *session = session_of_client(scene->client);
        Prepared *prepared;

        HASH_FIND(hh, session->prepared, &number, sizeof(number), prepared);
        assert_non_null(prepared);
        return session_lease_prepared(session, prepared, &scene->lease);
}

static void learn(const Scene *scene, uint64_t ns) {
        const Job *job = scene->lease.templates[0].job;

        for (unsigned i = 0; i < 40; ++i)
                duration_learn(job->user->duration, job->cost.class, ns, 1, ns);
}

static FakeJob own_job(const Scene *scene) {
        return (FakeJob){
                .arena = scene->arena, .length = 64, .direction = GPUQ__V1__DIRECTION__INOUT};
}

static void run_one(FakeClient *client, size_t worker, FakeJob job) {
        uint64_t id = fake_submit(client, job);

        fake_end(fake_worker(client->fake, worker, 1), id, 0);
        fake_expect_end(client, id, DONE, 0, NULL);
}

/* Its worker is there, and has the module. What is in host memory may be half written when a worker dies. */
static Scene *scene_on(unsigned n_devices, Gpuq__V1__Place place, bool repeatable,
                       char **settings) {
        Scene *scene = calloc(1, sizeof(*scene));
        Session *session;

        assert_non_null(scene);
        scene->fake = fake_new(n_devices, settings);
        scene->client = fake_client(scene->fake, FAKE_UID);
        fake_module(scene->client);
        scene->arena = fake_arena(scene->client, place, 4096);
        run_one(scene->client, 0, own_job(scene));
        prepare(scene->client, scene->arena, 0, repeatable);

        session = session_of_client(scene->client);
        scene->lease = (Lease){.ops = &scene_ops, .submitter = &session->submitter};
        assert_int_equal(direct_ring_make(&scene->ring, &scene->lease.ring_fd), 0);
        assert_int_equal(direct_bell_make(scene->bells), 0);
        scene->lease.bell_fd = scene->bells[0];
        assert_true(add(scene, 1));
        learn(scene, SHORT_NS);
        return scene;
}

static Scene *scene_with(Gpuq__V1__Place place, bool repeatable, char **settings) {
        return scene_on(1, place, repeatable, settings);
}

static Scene *scene_new(void) {
        return scene_with(GPUQ__V1__PLACE__HOST, false, NULL);
}

static void scene_free(Scene *scene) {
        lease_drop(&scene->lease);
        direct_ring_release(&scene->ring);
        close(scene->lease.ring_fd);
        close(scene->bells[0]);
        close(scene->bells[1]);
        fake_client_close(scene->client);
        fake_free(scene->fake);
        free(scene);
}

static FakeWorker *lend(Scene *scene) {
        Executor *executor = lease_choose(&scene->lease);

        assert_non_null(executor);
        assert_int_equal(lease_begin(&scene->lease, executor), 0);
        fake_turn(scene->fake);
        assert_int_equal(scene->fake->workers[0].n_lent, 1);
        assert_true(lease_holds(&scene->lease));
        return &scene->fake->workers[0];
}

static void say_returned(const Scene *scene, FakeWorker *worker, const WorkerTaken *jobs,
                         uint32_t n_jobs) {
        WorkerMessage message = {
                {.kind = FROM_WORKER_RETURNED,
                 .id = scene->client->session,
                 .number = WORKER_TAKEN(11, 22),
                 .n_items = n_jobs},
                .items = jobs,
        };

        fake_say(worker, message, -1);
        fake_turn(scene->fake);
}

static uint64_t id_of(const Scene *scene, uint32_t tag) {
        return (uint64_t)scene->client->session << 32 | tag;
}

/* ---- where it may be --------------------------------------------------------------- */

static void it_is_for_short_jobs_whose_time_is_known(void **state) {
        Scene *scene = scene_new();

        assert_non_null(lease_choose(&scene->lease));
        assert_true(add(scene, 1));
        learn(scene, 4 * LEASE_SHORT_NS);
        assert_null(lease_choose(&scene->lease));
        assert_int_equal(scene->lease.n_templates, 0);

        prepare(scene->client, fake_arena(scene->client, GPUQ__V1__PLACE__HOST, 1 << 20), 0, false);
        lease_clear(&scene->lease);
        assert_null(lease_choose(&scene->lease)); /* of no job */
        scene_free(scene);
}

static unsigned chosen(Scene *scene) {
        const Executor *executor = lease_choose(&scene->lease);

        assert_non_null(executor);
        return executor->device->index;
}

static void of_two_workers_it_goes_to_the_one_with_fewer_leases(void **state) {
        Scene *scene = scene_on(2, GPUQ__V1__PLACE__HOST, false, NULL);
        FakeJob there = own_job(scene);
        Lease other = {.submitter = scene->lease.submitter};
        Executor *first;

        there.device = 2;
        run_one(scene->client, 1, there);
        first = lease_choose(&scene->lease);
        assert_non_null(first);
        assert_int_equal(first->device->index, 0);

        TAILQ_INSERT_TAIL(&first->leases, &other, link);
        assert_int_equal(chosen(scene), 0); /* as its client was told */
        lease_clear(&scene->lease);
        assert_true(add(scene, 1));
        assert_int_equal(chosen(scene), 1);
        TAILQ_REMOVE(&first->leases, &other, link);
        scene_free(scene);
}

static void a_worker_without_its_modules_is_not_chosen(void **state) {
        Scene *scene = scene_on(2, GPUQ__V1__PLACE__HOST, false, NULL);
        FakeJob there = own_job(scene);
        Lease other = {.submitter = scene->lease.submitter};
        Instance *instance;
        Executor *first;
        const Job *job;
        unsigned n_adding = 0;

        there.device = 2;
        run_one(scene->client, 1, there);
        first = lease_choose(&scene->lease);
        assert_non_null(first);
        lease_clear(&scene->lease);
        assert_true(add(scene, 1));
        job = scene->lease.templates[0].job;

        TAILQ_INSERT_TAIL(&first->leases, &other, link); /* so that the second one has fewer */
        LIST_FOREACH (instance, &job->work.kernels[0].module->instances, link)
                if (instance->executor != first) {
                        instance->state = INSTANCE_ADDING;
                        ++n_adding;
                }
        assert_int_equal(n_adding, 1);
        assert_int_equal(chosen(scene), 0);
        LIST_FOREACH (instance, &job->work.kernels[0].module->instances, link)
                instance->state = INSTANCE_READY;
        TAILQ_REMOVE(&first->leases, &other, link);
        scene_free(scene);
}

static void memory_of_a_device_keeps_it_there(void **state) {
        Scene *scene = scene_on(2, GPUQ__V1__PLACE__HOST, false, NULL);
        FakeJob there = own_job(scene);

        there.device = 2;
        run_one(scene->client, 1, there);
        scene->lease.templates[0].job->work.device = 1;
        assert_int_equal(chosen(scene), 1);

        lease_clear(&scene->lease);
        assert_true(add(scene, 1));
        assert_true(add(scene, 1));
        scene->lease.templates[0].job->work.device = 0;
        scene->lease.templates[1].job->work.device = 1;
        assert_null(lease_choose(&scene->lease));
        scene_free(scene);
}

static void not_while_another_user_has_work_there(void **state) {
        Scene *scene = scene_new();
        FakeClient *other = fake_client(scene->fake, FAKE_UID + 1);
        uint64_t id;

        lend(scene);
        id = fake_submit(other, (FakeJob){});
        fake_turn(scene->fake);
        assert_false(lease_holds(&scene->lease));
        fake_end(fake_worker(scene->fake, 1, 1), id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);
        assert_true(lease_holds(&scene->lease));
        assert_non_null(lease_choose(&scene->lease));
        fake_client_close(other);
        scene_free(scene);
}

static void not_while_its_user_has_a_long_job_there(void **state) {
        Scene *scene = scene_new();
        Executor *executor = lease_choose(&scene->lease);

        lend(scene);
        executor->n_long++;
        assert_false(lease_holds(&scene->lease));
        assert_null(lease_choose(&scene->lease));
        executor->n_long--;
        assert_true(lease_holds(&scene->lease));
        scene_free(scene);
}

static void not_on_a_device_that_takes_no_jobs(void **state) {
        Scene *scene = scene_new();
        Health *health = &engine_of(scene)->devices[0].health;

        lend(scene);
        health_hold(health, "drained by a test");
        assert_false(lease_holds(&scene->lease));
        assert_null(lease_choose(&scene->lease));
        (void)health_release(health);
        assert_true(lease_holds(&scene->lease));
        scene_free(scene);
}

/* Two more than its worker takes at once: those wait. */
static void not_while_a_job_of_higher_priority_waits(void **state) {
        Scene *scene = scene_with(GPUQ__V1__PLACE__HOST, false,
                                  (char *[]){"inflight_jobs=1", "inflight_ms=1000", NULL});
        FakeClient *same = fake_client(scene->fake, FAKE_UID);
        FakeWorker *worker = lend(scene);
        uint64_t ids[3];

        fake_module(same);
        for (size_t i = 0; i < 3; ++i)
                ids[i] = fake_submit(same, (FakeJob){.priority = i == 2});
        fake_turn(scene->fake);
        assert_false(lease_holds(&scene->lease));
        fake_end(worker, ids[0], 0);
        fake_expect_end(same, ids[0], DONE, 0, NULL);
        assert_true(lease_holds(&scene->lease)); /* one of the same priority waits */
        fake_client_close(same);
        scene_free(scene);
}

/* A trace has each job. */
static void not_while_somebody_traces(void **state) {
        Scene *scene = scene_new();
        Trace *trace;

        lend(scene);
        assert_int_equal(trace_open(engine_of(scene), user_of(scene), false, &trace), 0);
        assert_false(lease_holds(&scene->lease));
        assert_null(lease_choose(&scene->lease));
        scene_free(scene);
}

static void not_for_a_user_over_a_limit_or_whose_kernel_faulted(void **state) {
        Scene *scene = scene_new();
        User *user = user_of(scene);

        lend(scene);
        user->is_held = true;
        assert_false(lease_holds(&scene->lease));
        user->is_held = false;
        assert_true(lease_holds(&scene->lease));

        user->person->limits.gpu_seconds = 1;
        assert_true(lease_holds(&scene->lease));
        user_add_gpu_time(user, 10 * SECOND_NS, engine_now(engine_of(scene)));
        assert_false(lease_holds(&scene->lease));
        user->person->limits.gpu_seconds = 0;
        assert_true(lease_holds(&scene->lease));

        suspects_add(&user->suspects, 77);
        assert_false(lease_holds(&scene->lease));
        scene_free(scene);
}

static void not_if_it_is_not_used(void **state) {
        Scene *scene = scene_new();

        lend(scene);
        scene->lease.used_ns -= 2 * SECOND_NS;
        assert_false(lease_holds(&scene->lease));
        assert_true(lease_count(&scene->lease, 1, 3, 30, 60, 1000));
        assert_true(lease_holds(&scene->lease));
        assert_int_equal(user_of(scene)->totals.n_done, 1 + 3);
        assert_false(lease_count(&scene->lease, 2, 1, 0, 0, 1000));
        scene_free(scene);
}

/* ---- which jobs ---------------------------------------------------------------------- */

static void only_so_many_jobs_have_templates(void **state) {
        Scene *scene = scene_new();

        for (unsigned i = 1; i < LEASE_TEMPLATES_MAX; ++i)
                assert_true(add(scene, 1));
        assert_false(add(scene, 1));
        scene_free(scene);
}

static void jobs_that_are_not_known_to_be_short_have_none(void **state) {
        Scene *scene = scene_new();

        uint64_t other = fake_arena(scene->client, GPUQ__V1__PLACE__HOST, 1 << 20);

        prepare_slice(scene->client, other, 0, 1 << 20,
                      false); /* of another size: its class is not known */
        assert_true(add(scene, 2));
        assert_int_equal(scene->lease.n_templates, 2);
        assert_non_null(lease_choose(&scene->lease));
        assert_int_equal(scene->lease.n_templates, 1);
        assert_int_equal(scene->lease.templates[0].prepared, 1);
        scene_free(scene);
}

static void jobs_with_variables_have_none(void **state) {
        Scene *scene = scene_new();
        const Job *job = scene->lease.templates[0].job;

        job->work.kernels[0].module->has_variables = true;
        assert_false(add(scene, 1));
        job->work.kernels[0].module->has_variables = false;
        assert_true(add(scene, 1));
        scene_free(scene);
}

static void jobs_whose_buffers_overlap_name_each_other(void **state) {
        Scene *scene = scene_new();
        const LeaseTemplate *templates = scene->lease.templates;

        prepare(scene->client, scene->arena, 32, false); /* overlaps with the first */
        prepare(scene->client, scene->arena, 96, false); /* begins where that ends */
        assert_true(add(scene, 2));
        assert_true(add(scene, 3));
        assert_int_equal(templates[0].n_after, 2);
        assert_int_equal(templates[1].n_after, 2);
        assert_int_equal(templates[2].n_after, 1);
        assert_int_equal(templates[0].after[1], 2);
        assert_int_equal(templates[1].after[0], 1);
        assert_int_equal(templates[2].after[0], 3);
        scene_free(scene);
}

/* ---- out and back --------------------------------------------------------------------- */

static void the_worker_is_told_how_far_the_ring_was_read(void **state) {
        Scene *scene = scene_new();

        scene->lease.n_taken = 5;
        scene->lease.last_tag = 9;
        assert_true(lend(scene)->lent_at == WORKER_TAKEN(5, 9));
        scene_free(scene);
}

static void it_is_recalled_once(void **state) {
        Scene *scene = scene_new();
        FakeWorker *worker = lend(scene);

        lease_recall(&scene->lease);
        lease_recall(&scene->lease);
        fake_turn(scene->fake);
        assert_int_equal(worker->n_recalled, 1);
        say_returned(scene, worker, NULL, 0);
        assert_int_equal(scene->n_returned, 1);
        assert_int_equal(scene->lease.n_taken, 11);
        assert_int_equal(scene->lease.last_tag, 22);
        lease_recall(&scene->lease); /* it is not out */
        fake_turn(scene->fake);
        assert_int_equal(worker->n_recalled, 1);
        scene_free(scene);
}

static void jobs_in_flight_become_running_jobs_with_an_order(void **state) {
        static const WorkerTaken jobs[] = {{100, 1}, {101, 1}};
        Scene *scene = scene_new();
        FakeWorker *worker = lend(scene);
        uint64_t behind;
        const Job *job;

        say_returned(scene, worker, jobs, 2);
        assert_int_equal(scene->n_taken, 2);
        for (uint32_t tag = 100; tag <= 101; ++tag) {
                job = job_find(engine_of(scene), id_of(scene, tag));
                assert_non_null(job);
                assert_int_equal(job->state, JOB_RUNNING);
        }

        /* One that shares their buffer goes after them. */
        scene->client->tag = 200;
        behind = fake_submit(scene->client, own_job(scene));
        worker = fake_worker(scene->fake, 0, 2);
        assert_int_equal(worker->jobs[1], behind);
        assert_int_equal(worker->after[1], id_of(scene, 101));

        fake_end(worker, id_of(scene, 100), 0);
        fake_expect_end(scene->client, id_of(scene, 100), DONE, 0, NULL);
        fake_end(worker, id_of(scene, 101), 0);
        fake_expect_end(scene->client, id_of(scene, 101), DONE, 0, NULL);
        fake_end(worker, behind, 0);
        fake_expect_end(scene->client, behind, DONE, 0, NULL);
        assert_non_null(lease_choose(&scene->lease));
        scene_free(scene); /* nothing is charged any more */
}

static void a_job_of_no_template_is_not_adopted(void **state) {
        Scene *scene = scene_new();
        Executor *executor = lease_choose(&scene->lease);

        assert_int_equal(lease_adopt(&scene->lease, executor, 2, 100), -ENOENT);
        assert_null(job_find(engine_of(scene), id_of(scene, 100)));
        scene_free(scene);
}

static void jobs_of_a_worker_that_was_lost_are_judged(void **state) {
        Scene *scene = scene_new();

        scene->n_left = 1;
        fake_die(scene->fake, lend(scene));
        assert_int_equal(scene->n_lost, 1);
        assert_null(scene->lease.executor);
        fake_expect_end(scene->client, id_of(scene, 100), FAILED, GPUQ__V1__CODE__E_FAULT,
                        "worker process was killed");
        scene_free(scene);
}

static void those_that_may_be_repeated_are(void **state) {
        Scene *scene = scene_with(GPUQ__V1__PLACE__DEVICE, true, NULL);

        prepare(scene->client, scene->arena, 1024, true);
        assert_true(add(scene, 2));
        scene->n_left = 2;
        fake_die(scene->fake, lend(scene));
        assert_int_equal(scene->n_lost, 1);
        for (unsigned i = 0; i < 2; ++i) { /* one at a time */
                FakeWorker *worker = fake_worker(scene->fake, 1, i + 1);

                assert_int_equal(worker->jobs[i], id_of(scene, 100 + i));
                fake_end(worker, id_of(scene, 100 + i), 0);
                fake_expect_end(scene->client, id_of(scene, 100 + i), DONE, 0, NULL);
        }
        scene_free(scene);
}

static void a_worker_that_returns_what_it_does_not_have_is_killed(void **state) {
        Scene *scene = scene_new();

        say_returned(scene, &scene->fake->workers[0], NULL, 0);
        assert_true(scene->fake->workers[0].is_killed);
        assert_int_equal(scene->n_returned, 0);
        scene_free(scene);
}

static void a_worker_that_returns_too_many_jobs_is_killed(void **state) {
        static const WorkerTaken jobs[WORKER_DIRECT_JOBS + 1];
        Scene *scene = scene_new();

        say_returned(scene, lend(scene), jobs, ARRAY_SIZE(jobs));
        assert_true(scene->fake->workers[0].is_killed);
        assert_int_equal(scene->n_returned, 0);
        scene_free(scene);
}

/* What counts times has no place for them. */
static void a_worker_that_tells_impossible_times_is_killed(void **state) {
        Scene *scene = scene_new();
        FakeWorker *worker = lend(scene);
        WorkerLent lent = {.session = scene->client->session,
                           .prepared = 1,
                           .n_done = 1,
                           .waited_us = UINT64_MAX - 1};

        fake_say(worker,
                 (WorkerMessage){{.kind = FROM_WORKER_LENT, .n_items = sizeof(lent)},
                                 .items = &lent},
                 -1);
        fake_turn(scene->fake);
        assert_true(worker->is_killed);
        scene_free(scene);
}

static void a_worker_that_keeps_it_is_killed(void **state) {
        Scene *scene = scene_new();
        FakeWorker *worker = lend(scene);
        Workers *workers = &scene->fake->supervisor->workers;

        workers_tick(workers, engine_now(engine_of(scene)));
        assert_int_equal(leases_oldest_ns(scene->lease.executor), 0);
        lease_recall(&scene->lease);
        workers_tick(workers, engine_now(engine_of(scene)));
        fake_turn(scene->fake);
        assert_false(worker->is_killed);
        scene->lease.recalled_ns -= 11 * SECOND_NS;
        workers_tick(workers, engine_now(engine_of(scene)));
        fake_turn(scene->fake);
        assert_true(worker->is_killed);
        assert_int_equal(scene->n_lost, 1);
        scene_free(scene);
}

/* Else a fault of either would be blamed on both. */
static void a_job_that_must_run_alone_waits_for_it(void **state) {
        Scene *scene = scene_new();
        FakeClient *other = fake_client(scene->fake, FAKE_UID);
        FakeWorker *worker;
        uint64_t id;

        fake_module(other);
        run_one(other, 0, (FakeJob){});
        worker = lend(scene);
        suspects_add(
                &user_of(scene)->suspects,
                suspects_key(scene->lease.templates[0].job->work.kernels[0].module->name, "add"));
        id = fake_submit(other, (FakeJob){});
        fake_turn(scene->fake);
        assert_int_equal(worker->n_jobs, 2);
        assert_false(lease_holds(&scene->lease));

        say_returned(scene, worker, NULL, 0);
        worker = fake_worker(scene->fake, 0, 3);
        fake_end(worker, id, 0);
        fake_expect_end(other, id, DONE, 0, NULL);
        fake_client_close(other);
        scene_free(scene);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_for_short_jobs_whose_time_is_known),
                cmocka_unit_test(of_two_workers_it_goes_to_the_one_with_fewer_leases),
                cmocka_unit_test(a_worker_without_its_modules_is_not_chosen),
                cmocka_unit_test(memory_of_a_device_keeps_it_there),
                cmocka_unit_test(not_while_another_user_has_work_there),
                cmocka_unit_test(not_while_its_user_has_a_long_job_there),
                cmocka_unit_test(not_on_a_device_that_takes_no_jobs),
                cmocka_unit_test(not_while_a_job_of_higher_priority_waits),
                cmocka_unit_test(not_while_somebody_traces),
                cmocka_unit_test(not_for_a_user_over_a_limit_or_whose_kernel_faulted),
                cmocka_unit_test(not_if_it_is_not_used),
                cmocka_unit_test(only_so_many_jobs_have_templates),
                cmocka_unit_test(jobs_that_are_not_known_to_be_short_have_none),
                cmocka_unit_test(jobs_with_variables_have_none),
                cmocka_unit_test(jobs_whose_buffers_overlap_name_each_other),
                cmocka_unit_test(the_worker_is_told_how_far_the_ring_was_read),
                cmocka_unit_test(it_is_recalled_once),
                cmocka_unit_test(jobs_in_flight_become_running_jobs_with_an_order),
                cmocka_unit_test(a_job_of_no_template_is_not_adopted),
                cmocka_unit_test(jobs_of_a_worker_that_was_lost_are_judged),
                cmocka_unit_test(those_that_may_be_repeated_are),
                cmocka_unit_test(a_worker_that_returns_what_it_does_not_have_is_killed),
                cmocka_unit_test(a_worker_that_returns_too_many_jobs_is_killed),
                cmocka_unit_test(a_worker_that_tells_impossible_times_is_killed),
                cmocka_unit_test(a_worker_that_keeps_it_is_killed),
                cmocka_unit_test(a_job_that_must_run_alone_waits_for_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

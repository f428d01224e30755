/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that run together, and kernels that work in place: that results stay what
 * they are, and that it happened. On the CPU driver or on a GPU (see fake_supervisor.h),
 * with the built-in kernels, which have twins on both.
 */
#include "work.h"

#include <stdio.h>

enum { MANY = 100, FLOATS = 1000, SLICE = 4096, BUILTIN = 9, BUSY_SLOT = 256 << 10 };

static Work works[256];

static void add_builtin(Supervisor *supervisor) {
        const Gpuq__V1__ModuleReady *added;

        module_send_builtin(supervisor, BUILTIN);
        supervisor_await(supervisor, FROM_WORKER_MODULE_ADDED);
        added = supervisor_module(supervisor);
        for (size_t i = 0; i < added->n_kernels; ++i) {
                assert_null(strstr(added->kernels[i]->name, "internal"));
                assert_null(strstr(added->kernels[i]->name, "batch"));
        }
}

/* A worker, and an arena of three slices a job. */
static Supervisor begin(HostArena *arena) {
        Supervisor supervisor = supervisor_start(false);

        *arena = host_arena(&supervisor, 1, 3 * MANY * SLICE);
        add_builtin(&supervisor);
        return supervisor;
}

static void end(Supervisor *supervisor, HostArena *arena) {
        memset(supervisor_options, 0, sizeof(supervisor_options));
        host_arena_free(arena);
        assert_int_equal(supervisor_end(supervisor), 0);
}

static float *slice(const HostArena *arena, size_t job, size_t i) {
        return (float *)(arena->data + (3 * job + i) * SLICE);
}

static void fill(HostArena *arena) {
        for (size_t job = 0; job < MANY; ++job)
                for (int i = 0; i < FLOATS; ++i) {
                        slice(arena, job, 0)[i] = (float)job + 0.1f * (float)i;
                        slice(arena, job, 1)[i] = 1.0f / (float)(i + 1);
                        slice(arena, job, 2)[i] = -1;
                }
}

/* c = a + b of job @job's slices. */
static void add_init(Work *work, size_t job) {
        work_init(work, job + 1);
        for (size_t i = 0; i < 3; ++i)
                work_buffer(work, 1, (3 * job + i) * SLICE, FLOATS * sizeof(float),
                            i == 2 ? OUT : IN);
        work_launch(work, work_kernel(work, BUILTIN, "add_f32"), 4, 256, "bbbl", 0, 1, 2,
                    (uint64_t)FLOATS);
}

static void assert_sum(const HostArena *arena, size_t job) {
        for (int i = 0; i < FLOATS; ++i)
                assert_true(slice(arena, job, 2)[i] ==
                            slice(arena, job, 0)[i] + slice(arena, job, 1)[i]);
}

/* As told when it fell idle. */
static Gpuq__V1__WorkerCounters counters(Supervisor *supervisor) {
        return work_counters(supervisor_await(supervisor, FROM_WORKER_STATS));
}

static void jobs_that_are_there_together_become_one_launch(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        Gpuq__V1__WorkerCounters counted;

        fill(&arena);
        for (size_t i = 0; i < MANY; ++i)
                add_init(&works[i], i);
        works_send(&supervisor, works, MANY);
        await_all(&supervisor, MANY);
        for (size_t i = 0; i < MANY; ++i)
                assert_sum(&arena, i);

        counted = counters(&supervisor);
        assert_int_equal(counted.batches, 1);
        assert_int_equal(counted.coalesced, MANY);
        assert_int_equal(counted.staged_by_kernel, MANY);
        assert_int_equal(counted.staged_by_copy, 0);
        end(&supervisor, &arena);
}

/* Twice: what the first run left in out must not be seen by the second. */
static void out_starts_as_zeros_in_a_batch_and_in_place(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);

        for (int round = 0; round < 20; ++round) {
                size_t n = round % 2 ? MANY : 1;

                memset(arena.data, 0xee, arena.size);
                fill(&arena);
                for (size_t i = 0; i < n; ++i) {
                        add_init(&works[i], i);
                        works[i].values[0][3] = FLOATS / 2; /* n: half of it is left alone */
                }
                works_send(&supervisor, works, n);
                await_all(&supervisor, n);
                for (size_t job = 0; job < n; ++job)
                        for (int i = FLOATS / 2; i < FLOATS; ++i)
                                assert_true(slice(&arena, job, 2)[i] == 0);
                /* Nothing around it is touched. */
                for (size_t job = 0; job < n; ++job)
                        for (int i = FLOATS; i < SLICE / 4; ++i)
                                assert_int_equal(((uint32_t *)slice(&arena, job, 2))[i],
                                                 0xeeeeeeee);
        }
        end(&supervisor, &arena);
}

/* Half of it is not, after all: in place that is as it was, and zeros where it came from scratch. */
static void what_is_written_whole_is_not_cleared_in_place(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        unsigned n_kept = 0;

        for (int round = 0; round < 20; ++round) {
                size_t n = round % 2 ? MANY : 1;

                fill(&arena);
                for (size_t i = 0; i < n; ++i) {
                        add_init(&works[i], i);
                        works[i].buffers[2].direction = GPUQ__V1__DIRECTION__OUT_WHOLE;
                        works[i].values[0][3] = FLOATS / 2;
                }
                works_send(&supervisor, works, n);
                await_all(&supervisor, n);
                for (size_t job = 0; job < n; ++job) {
                        const float *rest = slice(&arena, job, 2) + FLOATS / 2;
                        bool is_kept = rest[0] == -1.0f; /* as fill() made it */

                        n_kept += is_kept;
                        for (int i = 0; i < FLOATS / 2; ++i)
                                assert_true(rest[i] == (is_kept ? -1.0f : 0.0f));
                }
        }
        assert_true(n_kept > 0);
        end(&supervisor, &arena);
}

/* What any mixture of kernels and sizes gives, with the options there are. */
static void mixture(uint8_t *result, size_t n_result, Gpuq__V1__WorkerCounters *counted) {
        static const char *const kernels[] = {"add_f32", "divide_f32"};
        HostArena arena;
        Supervisor supervisor = begin(&arena);

        fill(&arena);
        for (int round = 0; round < 10; ++round) {
                for (size_t i = 0; i < MANY; ++i) {
                        add_init(&works[i], i);
                        works[i].job.n_names = 0;
                        works[i].job.n_kernels = 0;
                        work_kernel(&works[i], BUILTIN, kernels[i % 2]);
                        works[i].launches[0].grid_x = 1 + (uint32_t)(i % 3);
                        works[i].buffers[2].direction = i % 5 ? OUT : INOUT;
                        works[i].job.priority = i % 7 == 0 ? 1 : 0;
                }
                works_send(&supervisor, works, MANY);
                await_all(&supervisor, MANY);
                /* And some by themselves. */
                for (size_t i = 0; i < 4; ++i) {
                        add_init(&works[0], i);
                        work_send(&supervisor, &works[0]);
                        await_all(&supervisor, 1);
                }
        }
        assert_int_equal(arena.size, n_result);
        memcpy(result, arena.data, n_result);
        *counted = counters(&supervisor);
        end(&supervisor, &arena);
}

static void results_are_the_same_with_each_of_it_off(void **state) {
        static const char *const options[][4] = {
                {"--coalesce=yes", "--in-place=yes"},
                {"--coalesce=no", "--in-place=yes"},
                {"--coalesce=yes", "--in-place=no"},
                {"--coalesce=no", "--in-place=no"},
                {"--coalesce=yes", "--in-place=yes", "--coalesce-us=2000"},
        };
        static uint8_t results[2][3 * MANY * SLICE];

        for (size_t i = 0; i < 5; ++i) {
                Gpuq__V1__WorkerCounters counted;

                memcpy(supervisor_options, options[i], sizeof(options[i]));
                mixture(results[i > 0], sizeof(results[0]), &counted);
                assert_true((counted.coalesced > 0) == (i != 1 && i != 3));
                assert_true((counted.in_place > 0) == (i != 2 && i != 3));
                assert_true(counted.staged_by_kernel > 0);
                assert_memory_equal(results[0], results[i > 0], sizeof(results[0]));
        }
}

static void chains_stay_in_order_while_their_links_run_together(void **state) {
        enum { CHAINS = 8, LINKS = 12 };
        static uint64_t after[CHAINS * LINKS];
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        Gpuq__V1__WorkerCounters counted;
        size_t n = 0;

        for (size_t chain = 0; chain < CHAINS; ++chain)
                for (int i = 0; i < FLOATS; ++i) {
                        slice(&arena, chain, 0)[i] = 1;
                        slice(&arena, chain, 1)[i] = (float)chain;
                }
        /* Link by link: a += b */
        for (size_t link = 0; link < LINKS; ++link)
                for (size_t chain = 0; chain < CHAINS; ++chain, ++n) {
                        work_init(&works[n], n + 1);
                        work_buffer(&works[n], 1, 3 * chain * SLICE, FLOATS * sizeof(float), INOUT);
                        work_buffer(&works[n], 1, (3 * chain + 1) * SLICE, FLOATS * sizeof(float),
                                    IN);
                        work_launch(&works[n], work_kernel(&works[n], BUILTIN, "add_f32"), 4, 256,
                                    "bbbl", 0, 1, 0, (uint64_t)FLOATS);
                        if (link == 0)
                                continue;
                        after[n] = n + 1 - CHAINS;
                        work_after(&works[n], after[n]);
                }
        works_send(&supervisor, works, n);
        await_all(&supervisor, n);
        for (size_t chain = 0; chain < CHAINS; ++chain)
                for (int i = 0; i < FLOATS; ++i)
                        assert_true(slice(&arena, chain, 0)[i] == 1 + (float)(LINKS * chain));
        counted = counters(&supervisor);
        assert_int_equal(counted.coalesced, CHAINS * LINKS);
        assert_int_equal(counted.in_place, 0); /* never what is updated */
        end(&supervisor, &arena);
}

#define FULL 128u /* as many as fill a table: they wait for nobody */

/* The @i-th of many; some write the same. */
static void add_init_one_of(Work *work, size_t i) {
        add_init(work, i % MANY);
        work->job.id = i + 1;
}

static void job_waits_for_company_if_it_is_told_to(void **state) {
        HostArena arena;
        Supervisor supervisor;
        Gpuq__V1__WorkerCounters counted;

        supervisor_options[0] = "--coalesce-us=50000000"; /* however slow they come */
        supervisor = begin(&arena);
        fill(&arena);
        for (size_t i = 0; i < FULL; ++i) {
                add_init_one_of(&works[i], i);
                work_send(&supervisor, &works[i]);
        }
        await_all(&supervisor, FULL);
        for (size_t i = 0; i < MANY; ++i)
                assert_sum(&arena, i);
        counted = counters(&supervisor);
        assert_int_equal(counted.batches, 1);
        assert_int_equal(counted.coalesced, FULL);
        end(&supervisor, &arena);
}

static void job_goes_alone_when_nobody_came(void **state) {
        HostArena arena;
        Supervisor supervisor;

        supervisor_options[0] = "--coalesce-us=100000";
        supervisor = begin(&arena);
        fill(&arena);
        add_init(&works[0], 0);
        work_send(&supervisor, &works[0]);
        await_done(&supervisor, 1);
        end(&supervisor, &arena);
}

static void job_that_runs_alone_waits_for_nobody(void **state) {
        HostArena arena;
        Supervisor supervisor;

        supervisor_options[0] = "--coalesce-us=50000000";
        supervisor = begin(&arena);
        fill(&arena);
        for (size_t i = 0; i <= FULL; ++i)
                add_init_one_of(&works[i], i);
        works[1].job.alone = true;
        works_send(&supervisor, works, 2);
        await_done(&supervisor, 2);
        works_send(&supervisor, &works[2], FULL - 1);
        await_all(&supervisor, FULL); /* with the first, which waited for them */
        end(&supervisor, &arena);
}

static void lone_jobs_try_both_ways(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        Gpuq__V1__WorkerCounters counted;

        for (int round = 0; round < 30; ++round) {
                fill(&arena);
                add_init(&works[0], 0);
                work_send(&supervisor, &works[0]);
                await_done(&supervisor, 1);
                assert_sum(&arena, 0);
        }
        counted = counters(&supervisor);
        assert_true(counted.in_place > 0 && counted.staged_by_kernel > 0);
        assert_int_equal(counted.in_place + counted.staged_by_kernel, 30);
        assert_int_equal(counted.batches, 0);
        end(&supervisor, &arena);
}

static void job_in_place_is_behind_those_it_comes_after(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);

        /* c = a + b, then a' = c + c into the first's input, over and over. */
        for (int round = 0; round < 50; ++round) {
                uint64_t after = 1;

                fill(&arena);
                add_init(&works[0], 0);
                work_init(&works[1], 2);
                work_buffer(&works[1], 1, 2 * SLICE, FLOATS * sizeof(float), IN);
                work_buffer(&works[1], 1, 0, FLOATS * sizeof(float), OUT);
                work_launch(&works[1], work_kernel(&works[1], BUILTIN, "add_f32"), 4, 256, "bbbl",
                            0, 0, 1, (uint64_t)FLOATS);
                work_after(&works[1], after);
                works_send(&supervisor, works, 2);
                await_all(&supervisor, 2);
                for (int i = 0; i < FLOATS; ++i)
                        assert_true(slice(&arena, 0, 0)[i] == 2 * slice(&arena, 0, 2)[i]);
        }
        end(&supervisor, &arena);
}

static void large_and_overlapping_jobs_go_by_copy_engines(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        Gpuq__V1__WorkerCounters counted;

        fill(&arena);
        work_init(&works[0], 1);
        work_buffer(&works[0], 1, 0, 300000, IN);
        work_buffer(&works[0], 1, 300032, 4, OUT);
        work_launch(&works[0], work_kernel(&works[0], BUILTIN, "sum_f32"), 1, 256, "bbl", 0, 1,
                    (uint64_t)1000);
        /* out over half of in */
        add_init(&works[1], 99);
        works[1].buffers[2].offset = works[1].buffers[1].offset + 2000;
        works_send(&supervisor, works, 2);
        await_all(&supervisor, 2);
        counted = counters(&supervisor);
        assert_int_equal(counted.staged_by_copy, 2);
        end(&supervisor, &arena);
}

/* Only reads: what else is in the context stays as it is. Of built-in kernels the lengths are checked. */
static const char wild_source[] = "extern \"C\" __global__ void wild(const float *x, float *s, "
                                  "unsigned long long n) { *s = x[n]; }";

static void one_bad_job_does_not_hide_in_its_batch(void **state) {
        HostArena arena;
        Supervisor supervisor = begin(&arena);
        const WorkerMessage *stopped;

        fill(&arena);
        module_add_source(&supervisor, 5, wild_source);
        for (size_t i = 0; i < 10; ++i) {
                work_init(&works[i], i + 1);
                work_buffer(&works[i], 1, 3 * i * SLICE, FLOATS * sizeof(float), IN);
                work_buffer(&works[i], 1, (3 * i + 2) * SLICE, sizeof(float), OUT);
                work_launch(&works[i], work_kernel(&works[i], 5, "wild"), 1, 256, "bbl", 0, 1,
                            i == 5 ? UINT64_C(1) << 42 : (uint64_t)FLOATS - 1);
        }
        works_send(&supervisor, works, 10);
        stopped = supervisor_await(&supervisor, FROM_WORKER_STOPPED);
        assert_int_not_equal(stopped->head.code, 0);
        assert_int_equal(stopped->head.code, GPUQ__V1__CODE__E_FAULT);
        assert_int_equal(stopped->head.n_items, 10);
        for (size_t i = 0; i < 10; ++i)
                assert_int_equal(((const WorkerInFlight *)stopped->items)[i].phase,
                                 WORKER_PHASE_ISSUED);
        host_arena_free(&arena);
        assert_int_equal(supervisor_wait(&supervisor), 0);
}

/* out[0] = n - 1, after so many writes. */
static const char busy_source[] = "extern \"C\" __global__ void busy(volatile int *x, int n) { for "
                                  "(int i = 0; i < n; ++i) *x = i; }";

static void add_busy(Work *work, uint64_t id, size_t slot, uint64_t length, uint64_t n) {
        work_init(work, id);
        work_buffer(work, 1, slot * BUSY_SLOT, length, OUT);
        work_launch(work, work_kernel(work, 5, "busy"), 1, 1, "bi", 0, n);
}

/* Streams whose scratch had grown kept it while they ran something long and small, and all others waited for that. */
static void what_runs_long_on_much_scratch_holds_up_nobody(void **state) {
        enum { GROWN = 96, LONG = 6, SHORT = 301 };
        Supervisor supervisor;
        HostArena arena;
        bool first = true;

        if (supervisor_on_gpu())
                skip(); /* so many writes take long there */
        supervisor_options[0] = "--in-place=no";
        supervisor_options[1] = "--cpu-threads=16";
        supervisor = supervisor_start(false);
        arena = host_arena(&supervisor, 1, GROWN * BUSY_SLOT);
        module_add_source(&supervisor, 5, busy_source);
        add_builtin(&supervisor);

        for (size_t i = 0; i < GROWN; ++i)
                add_busy(&works[i], i + 1, i, BUSY_SLOT, 10);
        works_send(&supervisor, works, GROWN);
        await_all(&supervisor, GROWN);
        for (size_t i = 0; i < LONG; ++i) {
                add_busy(&works[i], 201 + i, i, SLICE, 1000000000);
                works[i].job.alone = true;
        }
        works_send(&supervisor, works, LONG);
        add_busy(&works[LONG], SHORT, LONG, SLICE, 10);
        works[LONG].job.alone = true;
        work_send(&supervisor, &works[LONG]);

        for (size_t n = 0; n < LONG + 1;) {
                const WorkerMessage *told = supervisor_await(&supervisor, FROM_WORKER_ENDS);
                const WorkerEnd *ends = told->items;

                for (size_t i = 0; i < told->head.n_items; ++i, ++n, first = false) {
                        assert_int_equal(told->head.code, 0);
                        if (first)
                                assert_int_equal(ends[i].id, SHORT);
                }
        }
        end(&supervisor, &arena);
}

/* ---- what does not launch, as the CPU driver can be told ---------------------------------- */

static char broken_path[4096];

/* A line each, see driver/cpu/broken.h; "": all is well again. */
static void broken_write(const char *lines) {
        FILE *file = fopen(broken_path, "we");

        assert_non_null(file);
        assert_true(fputs(lines, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* Not in place, since a job that tries that leaves its batch. */
static Supervisor begin_broken(HostArena *arena, const char *lines) {
        if (supervisor_on_gpu())
                skip();

        snprintf(broken_path, sizeof(broken_path), "%s/broken", supervisor_folder());
        broken_write(lines);
        supervisor_options[0] = "--cpu-broken";
        supervisor_options[1] = broken_path;
        supervisor_options[2] = "--in-place=no";
        return begin(arena);
}

static void device_arena(Supervisor *supervisor, uint64_t id) {

        device_arena_make(supervisor, id, 3 * MANY * SLICE);
        supervisor_await(supervisor, FROM_WORKER_ARENA_MADE);
}

/* Two batches, which are formed before the first of them is issued. Half of each out is left alone. */
static void two_batches_of_sums(Supervisor *supervisor, HostArena *arena) {
        memset(arena->data, 0xee, arena->size);
        fill(arena);
        for (size_t i = 0; i < MANY; ++i) {
                add_init(&works[i], i);
                works[i].launches[0].grid_x = 4 + (uint32_t)(i % 2);
                works[i].values[0][3] = FLOATS / 2;
        }
        works_send(supervisor, works, MANY);
        await_all(supervisor, MANY);
        for (size_t job = 0; job < MANY; ++job)
                for (int i = 0; i < FLOATS; ++i)
                        assert_true(slice(arena, job, 2)[i] ==
                                    (i < FLOATS / 2
                                             ? slice(arena, job, 0)[i] + slice(arena, job, 1)[i]
                                             : 0));
}

#define NO_MOVE "gpuq_internal_move_8 1\ngpuq_internal_move_42 1\ngpuq_internal_move_170 1\n"

/* The first batch said that its jobs failed; the second one's ran on scratch that nobody had filled. */
static void without_a_move_kernel_each_job_of_a_batch_is_copied(void **state) {
        HostArena arena;
        Supervisor supervisor = begin_broken(&arena, NO_MOVE);
        Gpuq__V1__WorkerCounters counted;

        two_batches_of_sums(&supervisor, &arena);
        counted = counters(&supervisor);
        assert_int_equal(counted.coalesced, MANY);
        assert_int_equal(counted.staged_by_copy, MANY);
        assert_int_equal(counted.staged_by_kernel, 0);
        end(&supervisor, &arena);
}

static void without_a_move_kernel_a_batch_in_device_memory_starts_with_zeros(void **state) {
        HostArena arena;
        Supervisor supervisor = begin_broken(&arena, NO_MOVE);

        device_arena(&supervisor, 2);
        for (size_t i = 0; i < MANY; ++i) {
                add_init(&works[i], i);
                works[i].launches[0].grid_x = 4 + (uint32_t)(i % 2);
                works[i].values[0][3] = 0;
                for (size_t k = 0; k < 3; ++k)
                        works[i].buffers[k].arena = 2;
        }
        works_send(&supervisor, works, MANY);
        await_all(&supervisor, MANY);
        end(&supervisor, &arena);
}

/* The second batch was launched by a twin that was gone. */
static void without_its_twin_each_job_of_a_batch_is_launched(void **state) {
        HostArena arena;
        Supervisor supervisor = begin_broken(&arena, "add_f32$gpuq_batch 1\n");
        Gpuq__V1__WorkerCounters counted;

        two_batches_of_sums(&supervisor, &arena);
        counted = counters(&supervisor);
        assert_int_equal(counted.coalesced, 0);
        assert_int_equal(counted.staged_by_kernel, MANY);
        end(&supervisor, &arena);
}

/* One user's zeros that could not be made ended batches for the worker's life. */
static void call_that_failed_leaves_the_move_kernel_as_it_is(void **state) {
        HostArena arena;
        Supervisor supervisor = begin_broken(&arena, "");
        Gpuq__V1__WorkerCounters counted;

        device_arena(&supervisor, 2);
        broken_write("cuMemsetD8Async 1\n");
        add_init(&works[0], 0);
        works[0].buffers[2].arena = 2;
        work_send(&supervisor, &works[0]);
        await_refusal(&supervisor, 1, GPUQ__V1__CODE__E_LAUNCH,
                      "copying the job's data: CUDA_ERROR_INVALID_VALUE: invalid argument");

        broken_write("");
        counters(&supervisor);
        two_batches_of_sums(&supervisor, &arena);
        counted = counters(&supervisor);
        assert_int_equal(counted.coalesced, MANY);
        assert_int_equal(counted.staged_by_copy, 0);
        end(&supervisor, &arena);
}

static int remove_folder(void **state) {
        supervisor_folder_remove();
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(jobs_that_are_there_together_become_one_launch),
                cmocka_unit_test(out_starts_as_zeros_in_a_batch_and_in_place),
                cmocka_unit_test(what_is_written_whole_is_not_cleared_in_place),
                cmocka_unit_test(results_are_the_same_with_each_of_it_off),
                cmocka_unit_test(chains_stay_in_order_while_their_links_run_together),
                cmocka_unit_test(job_waits_for_company_if_it_is_told_to),
                cmocka_unit_test(job_goes_alone_when_nobody_came),
                cmocka_unit_test(job_that_runs_alone_waits_for_nobody),
                cmocka_unit_test(lone_jobs_try_both_ways),
                cmocka_unit_test(job_in_place_is_behind_those_it_comes_after),
                cmocka_unit_test(large_and_overlapping_jobs_go_by_copy_engines),
                cmocka_unit_test(one_bad_job_does_not_hide_in_its_batch),
                cmocka_unit_test(what_runs_long_on_much_scratch_holds_up_nobody),
                cmocka_unit_test(without_a_move_kernel_each_job_of_a_batch_is_copied),
                cmocka_unit_test(without_a_move_kernel_a_batch_in_device_memory_starts_with_zeros),
                cmocka_unit_test(without_its_twin_each_job_of_a_batch_is_launched),
                cmocka_unit_test(call_that_failed_leaves_the_move_kernel_as_it_is),
        };

        return cmocka_run_group_tests(tests, NULL, remove_folder);
}

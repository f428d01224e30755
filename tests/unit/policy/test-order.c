/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order against a model: all accesses of all unfinished jobs in one array, every
 * pair compared.
 */
#include "order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "order_object.h"
#include "order_ranges.h"
#include "util/pool.h"

#define N_ACCESSES 6
#define N_LONG     700 /* accesses of a job with many */
#define N_IDS      200001
#define IDLE_FEW   4 /* objects that nobody uses and that are remembered */

/* ---- how many objects there are ---- */

static size_t n_objects;
static size_t n_steps; /* of the objects that are gone */

int __real_orderobject_new(uint64_t id, OrderObject **ret_object);
OrderObject *__real_orderobject_free(OrderObject *object);
int __wrap_orderobject_new(uint64_t id, OrderObject **ret_object);
OrderObject *__wrap_orderobject_free(OrderObject *object);

int __wrap_orderobject_new(uint64_t id, OrderObject **ret_object) {
        int r = __real_orderobject_new(id, ret_object);

        n_objects += r == 0;
        return r;
}

OrderObject *__wrap_orderobject_free(OrderObject *object) {
        n_objects -= object != NULL;
        n_steps += object ? object->n_steps : 0;
        return __real_orderobject_free(object);
}

/* ---- memory that runs out ---- */

static long n_left = -1; /* allocations until there is none; below 0: there always is */

void *__real_pool_get(Pool *pool);
void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_pool_get(Pool *pool);
void *__wrap_reallocarray(void *old, size_t n, size_t size);

static bool memory_is_out(void) {
        if (n_left > 0)
                n_left--;
        return n_left == 0;
}

void *__wrap_pool_get(Pool *pool) {
        return memory_is_out() ? NULL : __real_pool_get(pool);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size) {
        return memory_is_out() ? NULL : __real_reallocarray(old, n, size);
}

/* ---- single cases ---- */

static OrderNode *nodes[N_IDS]; /* by their ids */

static OrderAccess reading(uint64_t object, uint64_t offset, uint64_t length) {
        return (OrderAccess){.object = object, .offset = offset, .length = length};
}

static OrderAccess writing(uint64_t object, uint64_t offset, uint64_t length) {
        return (OrderAccess){.object = object, .offset = offset, .length = length, .write = true};
}

static Order *order_start(void) {
        Order *order = NULL;

        n_objects = n_steps = 0;
        memset(nodes, 0, sizeof(nodes));
        assert_int_equal(order_new(&order), 0);
        return order;
}

static void add_all(Order *order, uint64_t job, OrderAccess *accesses, size_t n) {
        assert_int_equal(order_add(order, job, accesses, n, &nodes[job]), 0);
}

static void add(Order *order, uint64_t job, OrderAccess access) {
        add_all(order, job, &access, 1);
}

static void end(Order *order, uint64_t job) {
        order_remove(order, nodes[job]);
        nodes[job] = NULL;
}

static size_t n_predecessors(Order *order, uint64_t job) {
        _cleanup_(freep) uint64_t *ids = NULL;
        size_t n;

        assert_int_equal(order_predecessors(order, nodes[job], &ids, &n), 0);
        return n;
}

static bool contains(const uint64_t *ids, size_t n, uint64_t id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

/* The predecessors are exactly these; ends with 0. */
static void assert_after(Order *order, uint64_t job, ...) {
        _cleanup_(freep) uint64_t *ids = NULL;
        size_t n, n_wanted = 0;
        va_list ap;

        assert_int_equal(order_predecessors(order, nodes[job], &ids, &n), 0);
        va_start(ap, job);
        for (uint64_t id; (id = va_arg(ap, uint64_t)); n_wanted++)
                assert_true(contains(ids, n, id));
        va_end(ap);
        assert_int_equal(n, n_wanted);
        assert_int_equal(order_is_free(order, nodes[job]), n == 0);
}

#define J(n) ((uint64_t)(n))

static void readers_run_together_and_a_writer_after_them(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(7, 0, 100));
        add(order, 2, reading(7, 0, 50));
        add(order, 3, reading(7, 25, 50));
        add(order, 4, reading(7, 100, 1));
        add(order, 5, writing(7, 0, 200));
        add(order, 6, reading(7, 0, 1));

        assert_after(order, 1, J(0));
        assert_after(order, 2, J(1), J(0));
        assert_after(order, 3, J(1), J(0));
        assert_after(order, 4, J(0));
        assert_after(order, 5, J(1), J(2), J(3), J(4), J(0));
        assert_after(order, 6, J(5), J(0));
}

static void other_objects_and_other_bytes_do_not_order(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(1, 0, 100));
        add(order, 2, writing(2, 0, 100));
        add(order, 3, writing(1, 100, 100));
        assert_after(order, 2, J(0));
        assert_after(order, 3, J(0));
}

static void accesses_of_length_zero_order_nothing(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(1, 0, 100));
        add(order, 2, writing(1, 50, 0));
        add(order, 3, reading(1, 50, 0));
        assert_after(order, 2, J(0));
        assert_after(order, 3, J(0));
        add(order, 4, writing(1, 0, 100));
        assert_after(order, 4, J(1), J(0));
}

/* A job may leave so many segments that to free them all at once would hold up everybody. */
static void a_large_object_is_freed_in_parts(void **state) {
        enum { N = 5000 };
        _cleanup_(order_freep) Order *order = order_start();
        size_t n = 0;

        for (uint64_t i = 1; i <= N; i++)
                add(order, i, writing(1, 16 * i, 4));
        for (uint64_t i = 1; i <= N; i++)
                end(order, i);
        assert_true(order_has_freed());
        assert_int_equal(order_sweep_freed(100), 100);
        for (; order_has_freed(); n += 100)
                assert_true(order_sweep_freed(100) <= 100);
        assert_true(n > N / 2);
        assert_int_equal(order_sweep_freed(100), 0);
}

static void a_job_does_not_wait_for_itself(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        OrderAccess accesses[] = {writing(1, 0, 60), reading(1, 30, 60), writing(1, 50, 100),
                                  reading(1, 0, 200)};

        add_all(order, 1, accesses, 4);
        assert_after(order, 1, J(0));
        add(order, 2, reading(1, 149, 1));
        assert_after(order, 2, J(1), J(0));
        add(order, 3, reading(1, 150, 1));
        assert_after(order, 3, J(0));
        add(order, 4, writing(1, 150, 50));
        assert_after(order, 4, J(1), J(3), J(0));
}

static void an_ended_job_is_waited_for_no_more(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(1, 0, 10));
        add(order, 2, writing(1, 0, 10));
        end(order, 1);
        assert_after(order, 2, J(0));
        assert_int_equal(order_n_jobs(order), 1);
        order_remove(order, NULL);
        assert_int_equal(order_n_jobs(order), 1);
}

static void a_cancelled_job_lets_nobody_overtake_what_it_waited_for(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(1, 0, 10));
        add(order, 2, writing(1, 0, 10));
        add(order, 3, writing(1, 0, 10));
        end(order, 2);
        assert_after(order, 3, J(1), J(0));
        end(order, 3);
        add(order, 4, reading(1, 0, 10));
        assert_after(order, 4, J(1), J(0));
        end(order, 1);
        assert_after(order, 4, J(0));
}

/* A few are remembered as they are, unless they are large; it must not show. */
static void what_nobody_uses_any_more_orders_nothing(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t job = 0, first;

        for (unsigned round = 0; round < 3; round++)
                for (uint64_t object = 1; object <= 9; object++) {
                        first = job + 1;
                        for (uint64_t slice = 0; slice < 40 * object; slice++)
                                add(order, ++job, writing(object, 2 * slice, 1 + round % 2));
                        add(order, ++job, reading(object, 2, 1));
                        for (uint64_t i = first; i < job; i++)
                                assert_after(order, i, J(0));
                        assert_after(order, job, first + 1, J(0));
                        for (uint64_t i = first; i <= job; i++)
                                end(order, i);
                }
        assert_int_equal(order_n_jobs(order), 0);
}

/* Whoever uses each arena once: what is remembered of it is charged to nobody. */
static void objects_used_once_do_not_accumulate(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t job = 2;

        add(order, 1, writing(1, 0, 64)); /* never ends */
        add(order, 2, writing(1, 32, 64));
        for (uint64_t object = 2; object <= 1000; object++) {
                add(order, ++job, writing(object, 0, 64));
                add(order, ++job, reading(object, 0, 64));
                assert_after(order, job - 1, J(0));
                assert_after(order, job, job - 1, J(0));
                end(order, job - 1);
                assert_after(order, job, J(0));
                end(order, job);
                assert_true(n_objects <= 1 + IDLE_FEW);
        }
        assert_int_equal(n_objects, 1 + IDLE_FEW);
        assert_after(order, 2, J(1), J(0));

        /* All of them at once count while they are used. */
        for (uint64_t object = 2; object <= 1000; object++)
                add(order, job + object, reading(object, 0, 64));
        assert_int_equal(n_objects, 1000);
        for (uint64_t object = 2; object <= 1000; object++)
                end(order, job + object);
        assert_int_equal(n_objects, 1 + IDLE_FEW);
        add(order, 9999, reading(1, 40, 64));
        assert_after(order, 9999, J(2), J(0));
}

static void an_idle_object_that_is_large_is_not_remembered(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t n = 5000;

        for (uint64_t i = 1; i <= n; i++) /* of one slice */
                add(order, i, reading(1, 0, 64));
        for (uint64_t i = 1; i <= n; i++) /* of a slice each */
                add(order, n + i, writing(2, i * 64, 64));
        add(order, 3 * n, writing(3, 0, 64));
        assert_int_equal(n_objects, 3);
        for (uint64_t i = 1; i <= 3 * n; i++)
                end(order, i);
        assert_int_equal(n_objects, 1);
}

#define N_MANY (2ull * ORDEROBJECT_WIDE)

/* It waits for readers too, although it only reads, because later writers wait for it alone. */
static void an_access_that_meets_very_many_takes_their_place(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t n = N_MANY;

        for (uint64_t i = 1; i <= n; i++)
                add(order, i, writing(1, 64 * i, 32));
        add(order, n + 1, reading(1, 64 * n, 8));
        add(order, n + 2, reading(1, 0, 1 << 20));
        assert_int_equal(n_predecessors(order, n + 2), n + 1);
        add(order, n + 3, reading(1, 64, 8));
        assert_after(order, n + 3, n + 2, J(0));
        add(order, n + 4, writing(1, 64 * n, 8));
        assert_after(order, n + 4, n + 2, J(0));
        add(order, n + 5, writing(1, 1 << 20, 8));
        assert_after(order, n + 5, J(0));
}

static void an_access_that_meets_many_ended_jobs_follows_nobody(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t n = N_MANY;

        add(order, n + 1, writing(1, 0, 1)); /* keeps the object in use */
        for (uint64_t i = 1; i <= n; i++)
                add(order, i, writing(1, 64 * i, 32));
        for (uint64_t i = 1; i <= n; i++)
                end(order, i);
        for (uint64_t i = n + 2; i <= n + 4; i++) {
                add(order, i, reading(1, 64, 1 << 20));
                assert_after(order, i, J(0));
        }
        add(order, n + 5, writing(1, 64, 8));
        assert_after(order, n + 5, n + 2, n + 3, n + 4, J(0));
}

/* The list of the slice's readers was lost: a leak. */
static void an_access_that_meets_many_ended_readers_keeps_their_memory(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t n = N_MANY;

        add(order, n + 1, writing(1, 0, 1));
        for (uint64_t i = 1; i <= n; i++)
                add(order, i, reading(1, i <= 4 ? 64 : 64 * i, 32));
        for (uint64_t i = 1; i <= n; i++)
                end(order, i);
        add(order, n + 2, reading(1, 64, 1 << 20));
        assert_after(order, n + 2, J(0));
}

static void a_slice_of_what_very_many_read_is_read_beside_them(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        uint64_t n = N_MANY;

        for (uint64_t i = 1; i <= n; i++)
                add(order, i, reading(1, 0, 1024));
        add(order, n + 1, reading(1, 100, 1));
        assert_after(order, n + 1, J(0));
        add(order, n + 2, writing(1, 100, 1));
        assert_int_equal(n_predecessors(order, n + 2), n + 1);
        add(order, n + 3, writing(1, 200, 1));
        assert_after(order, n + 3, n + 2, J(0));
}

static void a_job_for_which_there_is_no_memory_was_not_added(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        OrderAccess accesses[] = {writing(1, 0, 10), reading(1, 5, 10), reading(2, 0, 10)};
        OrderNode *node = NULL;
        int r = -ENOMEM;

        add(order, 1, writing(1, 0, 10));
        for (long n = 1; r < 0; n++) {
                n_left = n;
                r = order_add(order, 2, accesses, 3, &node);
                n_left = -1;
                if (r >= 0)
                        break;
                assert_int_equal(r, -ENOMEM);
                assert_null(node);
                assert_int_equal(order_n_jobs(order), 1);
                add(order, 10 + n, reading(1, 0, 10));
                assert_after(order, 10 + n, J(1), J(0));
                end(order, 10 + n);
        }
        nodes[2] = node;
        assert_after(order, 2, J(1), J(0));
        end(order, 1);
        assert_after(order, 2, J(0));
        add(order, 3, writing(1, 14, 5));
        assert_after(order, 3, J(2), J(0));
}

static void the_last_byte_of_the_address_space_counts(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        add(order, 1, writing(1, UINT64_MAX - 1, 1));
        add(order, 2, reading(1, 0, UINT64_MAX));
        assert_after(order, 2, J(1), J(0));
}

/* ---- the model ---- */

typedef struct ModelJob {
        uint64_t id;
        OrderAccess accesses[N_LONG];
        size_t n;
        bool live;
} ModelJob;

static bool accesses_conflict(const OrderAccess *a, const OrderAccess *b) {
        return a->object == b->object && (a->write || b->write) && a->length && b->length &&
               a->offset < b->offset + b->length && b->offset < a->offset + a->length;
}

static bool jobs_conflict(const ModelJob *a, const ModelJob *b) {
        for (size_t i = 0; i < a->n; i++)
                for (size_t k = 0; k < b->n; k++)
                        if (accesses_conflict(&a->accesses[i], &b->accesses[k]))
                                return true;
        return false;
}

static uint64_t random_next(uint64_t *seed) {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

/* Two of three accesses are to slices that others use, whole; the third cuts them anywhere. */
static void model_fill(ModelJob *job, uint64_t id, uint64_t n_shared, uint64_t *seed) {
        job->id = id;
        job->live = true;
        job->n = random_next(seed) % (N_ACCESSES + 1);
        for (size_t i = 0; i < job->n; i++) {
                bool repeats = random_next(seed) % 3;

                job->accesses[i] = (OrderAccess){
                        .object = random_next(seed) % n_shared,
                        .offset = repeats ? random_next(seed) % 8 * 8 : random_next(seed) % 64,
                        .length = repeats ? 8 : random_next(seed) % 24,
                        .write = random_next(seed) % 2,
                };
        }
}

/* Every job that job @i must run after is reached over predecessors, and all of them are earlier. */
static void assert_reaches_conflicts(Order *order, ModelJob *jobs, size_t i, bool exact) {
        bool *reached = calloc(i + 1, sizeof(bool));

        assert_non_null(reached);
        reached[i] = true;
        for (size_t k = i + 1; k-- > 0;) {
                _cleanup_(freep) uint64_t *ids = NULL;
                size_t n;

                if (!reached[k])
                        continue;
                assert_int_equal(order_predecessors(order, nodes[jobs[k].id], &ids, &n), 0);
                for (size_t p = 0; p < n; p++) {
                        size_t at = ids[p] - 1;

                        assert_true(at < k && jobs[at].live);
                        assert_true(!exact || jobs_conflict(&jobs[at], &jobs[k]));
                        reached[at] = true;
                }
        }
        for (size_t k = 0; k < i; k++)
                if (jobs[k].live && jobs_conflict(&jobs[k], &jobs[i]))
                        assert_true(reached[k]);
        free(reached);
}

/* @n_memory: so many allocations find some; 0: all. Return: it was added. */
static bool model_add(Order *order, const ModelJob *job, long n_memory) {
        OrderAccess accesses[N_LONG];
        int r;

        memcpy(accesses, job->accesses, sizeof(accesses));
        n_left = n_memory > 0 ? n_memory : -1;
        r = order_add(order, job->id, accesses, job->n, &nodes[job->id]);
        n_left = -1;
        assert_true(r == 0 || (r == -ENOMEM && n_memory > 0));
        return r == 0;
}

/* @n_shared: objects, of which a single one meets wide accesses; @cancels: jobs also end before those they
 * wait for, or find no memory. */
static void compare_with_model(uint64_t seed, size_t n_jobs, uint64_t n_shared, bool cancels) {
        bool exact = !cancels && n_shared > 1;

        _cleanup_(order_freep) Order *order = order_start();
        ModelJob *jobs = calloc(n_jobs, sizeof(*jobs));

        assert_non_null(jobs);
        for (size_t i = 0; i < n_jobs; i++) {
                model_fill(&jobs[i], i + 1, n_shared, &seed);
                jobs[i].live = model_add(order, &jobs[i], cancels ? random_next(&seed) % 40 : 0);
                if (!jobs[i].live)
                        continue;
                assert_reaches_conflicts(order, jobs, i, exact);

                for (size_t tries = random_next(&seed) % 4; tries > 0; tries--) {
                        size_t k = random_next(&seed) % (i + 1);

                        if (!jobs[k].live || (!cancels && !order_is_free(order, nodes[k + 1])))
                                continue;
                        jobs[k].live = false;
                        end(order, k + 1);
                }
        }
        free(jobs);
}

static void random_jobs_wait_for_what_the_model_says(void **state) {
        for (uint64_t seed = 1; seed <= 60; seed++)
                compare_with_model(seed * 0x9e3779b97f4a7c15ull, 120, seed % 2 ? 3 : 12, false);
}

static void random_cancels_lose_no_order(void **state) {
        for (uint64_t seed = 1; seed <= 60; seed++)
                compare_with_model(seed * 0xbf58476d1ce4e5b9ull, 120, seed % 2 ? 3 : 12, true);
}

/* Accesses that take the place of many jobs add order, and must lose none. */
static void wide_accesses_lose_no_order(void **state) {
        for (uint64_t seed = 1; seed <= 6; seed++)
                compare_with_model(seed * 0x94d049bb133111ebull, 400, 1, seed % 2);
}

/* Every third job has so many that they are rounded. */
static void model_fill_long(ModelJob *job, uint64_t id, uint64_t *seed) {
        job->id = id;
        job->live = true;
        job->n = random_next(seed) % (id % 3 ? N_ACCESSES : N_LONG);
        for (size_t i = 0; i < job->n; i++)
                job->accesses[i] = (OrderAccess){
                        .object = random_next(seed) % 2,
                        .offset = random_next(seed) % (1 << 16),
                        .length = random_next(seed) % 24,
                        .write = random_next(seed) % 2,
                };
}

static void jobs_with_many_accesses_lose_no_order(void **state) {
        enum { N = 30 };

        for (uint64_t seed = 1; seed <= 10; seed++) {
                _cleanup_(order_freep) Order *order = order_start();
                uint64_t random = seed * 0x9e3779b97f4a7c15ull;
                ModelJob *jobs = calloc(N, sizeof(*jobs));

                assert_non_null(jobs);
                for (size_t i = 0; i < N; i++) {
                        model_fill_long(&jobs[i], i + 1, &random);
                        assert_true(model_add(order, &jobs[i], 0));
                        assert_reaches_conflicts(order, jobs, i, false);
                }
                free(jobs);
        }
}

/* ---- cost ---- */

static double seconds(void) {
        struct timespec ts;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Far above what is needed, far below what O(n) a job would take: 20,000 jobs, 10 s. */
#define BUDGET_S 10.0

static void thousands_of_slices_stay_cheap(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        double start = seconds();
        size_t total = 0;

        for (uint64_t i = 1; i <= 20000; i++) {
                add(order, i, writing(i % 3, (i * 7919 % 20000) * 64, 64));
                total += n_predecessors(order, i);
        }
        assert_int_equal(total, 0);
        for (uint64_t i = 1; i <= 20000; i++)
                end(order, i);
        assert_true(seconds() - start < BUDGET_S);
}

static void a_long_chain_names_one_predecessor_each(void **state) {
        _cleanup_(order_freep) Order *order = order_start();

        for (uint64_t i = 1; i <= 20000; i++) {
                add(order, i, writing(1, 0, 4096));
                assert_int_equal(n_predecessors(order, i), i > 1);
        }
        for (uint64_t i = 20000; i > 1; i--) /* cancelled, last first */
                end(order, i);
        add(order, 30000, writing(1, 0, 1));
        assert_after(order, 30000, J(1), J(0));
}

/* Readers of all, slices of it, then all of it again: whoever tries cannot make it quadratic. */
static void splintered_objects_stay_bounded(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        double start = seconds();
        uint64_t id = 1;

        for (int i = 0; i < 2000; i++)
                add(order, id++, reading(1, 0, 1 << 20));
        for (uint64_t i = 0; i < 2000; i++)
                add(order, id++, reading(1, i * 64, 64));
        for (uint64_t i = 0; i < 2000; i++)
                add(order, id++, writing(1, i * 64, 64));
        for (int i = 0; i < 2000; i++)
                add(order, id++, reading(1, 0, 1 << 20));
        assert_true(seconds() - start < BUDGET_S);

        add(order, id, writing(1, 0, 1 << 20));
        for (uint64_t i = 1; i < id; i++)
                end(order, i);
        assert_after(order, id, J(0));
}

static void a_busy_object_forgets_ended_jobs(void **state) {
        _cleanup_(order_freep) Order *order = order_start();
        double start = seconds();

        add(order, 1, reading(1, 0, 64)); /* never ends */
        for (uint64_t i = 2; i <= 200000; i++) {
                add(order, i, writing(1, i * 64, 64));
                end(order, i);
        }
        assert_int_equal(order_n_jobs(order), 1);
        assert_true(seconds() - start < BUDGET_S);
}

/*
 * Steps, which do not depend on the machine: those of Order, and the predecessors that it names. Each
 * access may cost so many on average, whatever the order of accesses.
 */
#define STEPS_PER_ACCESS (8ull * ORDEROBJECT_WIDE)

typedef size_t (*StepsFill)(uint64_t job, OrderAccess *accesses);

/* Return: steps for each access. */
static uint64_t steps_of(StepsFill fill, uint64_t n_jobs) {
        OrderAccess *accesses = calloc(4096, sizeof(*accesses));
        Order *order = order_start();
        uint64_t n_accesses = 0, n_edges = 0;

        assert_non_null(accesses);
        for (uint64_t job = 1; job <= n_jobs; job++) {
                size_t n = fill(job, accesses);

                add_all(order, job, accesses, n);
                n_accesses += n;
                n_edges += n_predecessors(order, job);
        }
        for (uint64_t job = 1; job <= n_jobs; job++)
                end(order, job);
        order_free(order);
        free(accesses);
        return (n_steps + n_edges) / n_accesses;
}

/* Every other job has slices of its own; the others read the whole arena 4,096 times. */
static size_t fill_slices_and_all(uint64_t job, OrderAccess *accesses) {
        for (uint64_t i = 0; i < 4096; i++)
                accesses[i] =
                        job % 2 ? writing(1, (job * 4096 + i) * 64, 32) : reading(1, 0, 1ull << 40);
        return 4096;
}

/* 20 jobs of slices, then jobs that read all of it in two overlapping halves. */
static size_t fill_slices_then_all(uint64_t job, OrderAccess *accesses) {
        for (uint64_t i = 0; i < 4096; i++)
                accesses[i] = job <= 20 ? writing(1, (job * 4096 + i) * 64, 32)
                                        : reading(1, i % 2 * 4096, 1ull << 40);
        return 4096;
}

static size_t fill_readers_and_slices(uint64_t job, OrderAccess *accesses) {
        accesses[0] = job <= 50000 ? reading(1, 0, 1ull << 40) : writing(1, job * 64, 64);
        return 1;
}

static size_t fill_readers_between_slices(uint64_t job, OrderAccess *accesses) {
        accesses[0] = job % 64 ? writing(1, job * 64, 64) : reading(1, 0, 1ull << 40);
        return 1;
}

static size_t fill_at_random(uint64_t job, OrderAccess *accesses) {
        static uint64_t seed = 0x9e3779b97f4a7c15ull;

        for (size_t i = 0; i < 4; i++) {
                uint64_t start = random_next(&seed) % (1 << 20);
                uint64_t length = 1ull << random_next(&seed) % 20;

                accesses[i] = random_next(&seed) % 2 ? writing(1 + i % 2, start, length)
                                                     : reading(1 + i % 2, start, length);
        }
        return 4;
}

static size_t fill_arenas(uint64_t job, OrderAccess *accesses) {
        for (uint64_t i = 0; i < 4096; i++) {
                uint64_t arena = (job * 4096 + i * 7919) % 65536;

                accesses[i] = job % 3 ? reading(arena, job, 64) : writing(arena, 0, 4096);
        }
        return 4096;
}

/* As many as a job may have, to slices that no two jobs share. */
static size_t fill_slices(uint64_t job, OrderAccess *accesses) {
        for (uint64_t i = 0; i < 4096; i++)
                accesses[i] = writing(1, 256 * i + 8 * job, 4);
        return 4096;
}

static void a_job_with_very_many_slices_costs_as_if_it_had_few(void **state) {
        assert_true(steps_of(fill_slices, 20) * 4096 <= 20ull * ORDERRANGES_MAX);
        assert_true(steps_of(fill_slices_then_all, 60) * 4096 <= 20ull * ORDERRANGES_MAX);
}

static void no_order_of_accesses_is_costly(void **state) {
        assert_true(steps_of(fill_slices_and_all, 60) <= STEPS_PER_ACCESS);
        assert_true(steps_of(fill_slices_then_all, 60) <= STEPS_PER_ACCESS);
        assert_true(steps_of(fill_readers_and_slices, 100000) <= STEPS_PER_ACCESS);
        assert_true(steps_of(fill_readers_between_slices, 100000) <= STEPS_PER_ACCESS);
        assert_true(steps_of(fill_at_random, 100000) <= STEPS_PER_ACCESS);
        assert_true(steps_of(fill_arenas, 60) <= STEPS_PER_ACCESS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(readers_run_together_and_a_writer_after_them),
                cmocka_unit_test(other_objects_and_other_bytes_do_not_order),
                cmocka_unit_test(accesses_of_length_zero_order_nothing),
                cmocka_unit_test(a_large_object_is_freed_in_parts),
                cmocka_unit_test(a_job_does_not_wait_for_itself),
                cmocka_unit_test(an_ended_job_is_waited_for_no_more),
                cmocka_unit_test(a_cancelled_job_lets_nobody_overtake_what_it_waited_for),
                cmocka_unit_test(what_nobody_uses_any_more_orders_nothing),
                cmocka_unit_test(objects_used_once_do_not_accumulate),
                cmocka_unit_test(an_idle_object_that_is_large_is_not_remembered),
                cmocka_unit_test(an_access_that_meets_very_many_takes_their_place),
                cmocka_unit_test(an_access_that_meets_many_ended_jobs_follows_nobody),
                cmocka_unit_test(an_access_that_meets_many_ended_readers_keeps_their_memory),
                cmocka_unit_test(a_slice_of_what_very_many_read_is_read_beside_them),
                cmocka_unit_test(a_job_for_which_there_is_no_memory_was_not_added),
                cmocka_unit_test(the_last_byte_of_the_address_space_counts),
                cmocka_unit_test(random_jobs_wait_for_what_the_model_says),
                cmocka_unit_test(random_cancels_lose_no_order),
                cmocka_unit_test(wide_accesses_lose_no_order),
                cmocka_unit_test(jobs_with_many_accesses_lose_no_order),
                cmocka_unit_test(thousands_of_slices_stay_cheap),
                cmocka_unit_test(a_long_chain_names_one_predecessor_each),
                cmocka_unit_test(splintered_objects_stay_bounded),
                cmocka_unit_test(a_busy_object_forgets_ended_jobs),
                cmocka_unit_test(a_job_with_very_many_slices_costs_as_if_it_had_few),
                cmocka_unit_test(no_order_of_accesses_is_costly),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

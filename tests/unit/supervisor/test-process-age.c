/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process age: whose process it is, at a cost that the process cannot choose.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "process_age.h"
#include "util/macro.h"

#define N_THREADS 3000u
#define N_TRIES   50u

static void a_process_has_one_start(void **state) {
        uint64_t start = process_age_start(getpid());
        pid_t child;

        assert_int_not_equal(start, 0);
        assert_true(process_age_is_alive(getpid(), start));
        assert_false(process_age_is_alive(getpid(), start + 1));

        child = fork();
        if (child == 0)
                _exit(0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(process_age_start(child), 0);
        assert_false(process_age_is_alive(child, start));
}

/* ---- a process with very many threads ---------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_gate(void *userdata) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
        return NULL;
}

static uint64_t cpu_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The least of many, which other processes do not disturb. */
static uint64_t cost_ns(void) {
        uint64_t least = UINT64_MAX;

        for (unsigned i = 0; i < N_TRIES; i++) {
                uint64_t begin = cpu_ns();

                assert_int_not_equal(process_age_start(getpid()), 0);
                least = MIN(least, cpu_ns() - begin);
        }
        return least;
}

/* With /proc/PID/stat, where the kernel adds up all threads, a client could stop the supervisor. */
static void threads_of_a_client_cost_nothing(void **state) {
        static pthread_t threads[N_THREADS];
        uint64_t alone_ns = cost_ns(), crowded_ns;
        pthread_attr_t attributes;
        unsigned n = 0;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64u << 10);
        pthread_mutex_lock(&gate);
        while (n < N_THREADS && pthread_create(&threads[n], &attributes, wait_at_gate, NULL) == 0)
                n++;
        crowded_ns = cost_ns();
        pthread_mutex_unlock(&gate);
        for (unsigned i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        pthread_attr_destroy(&attributes);

        if (n < N_THREADS)
                skip();
        assert_in_range(crowded_ns, 0, 4 * alone_ns);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_process_has_one_start),
                cmocka_unit_test(threads_of_a_client_cost_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "disk.h"

#define CALLS     16u
#define PATIENT_S 60

typedef struct Play {
        uv_loop_t loop;
        Disk *disk;
        sem_t gate;    /* lets one call go on */
        sem_t started; /* once for each call */
        sem_t small;   /* once for each call that needs no gate */
        size_t n_done;
} Play;

/* A call that stays in its thread until the gate lets it go. */
typedef struct Large {
        DiskCall call;
        Play *play;
} Large;

static void large_run(void *userdata) {
        Play *play = ((Large *)userdata)->play;

        sem_post(&play->started);
        while (sem_wait(&play->gate) < 0)
                ;
}

static void small_run(void *userdata) {
        sem_post(&((Large *)userdata)->play->small);
}

static void on_done(void *userdata) {
        ((Large *)userdata)->play->n_done++;
}

static void play_start(Play *play) {
        assert_int_equal(uv_loop_init(&play->loop), 0);
        assert_int_equal(disk_new(&play->loop, 4, &play->disk), 0);
        sem_init(&play->gate, 0, 0);
        sem_init(&play->started, 0, 0);
        sem_init(&play->small, 0, 0);
}

static void play_call(Play *play, DiskLine *line, Large *large, DiskFunc run) {
        *large = (Large){.call = {.run = run, .done = on_done, .userdata = large}, .play = play};
        disk_call(play->disk, line, &large->call);
}

static void play_await(sem_t *event) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PATIENT_S;
        assert_int_equal(sem_timedwait(event, &until), 0);
}

static void play_end(Play *play, size_t n_calls) {
        for (size_t i = 0; i < n_calls; ++i)
                sem_post(&play->gate);
        disk_close(play->disk);
        uv_run(&play->loop, UV_RUN_DEFAULT);
        assert_int_equal(play->n_done, n_calls);
        assert_int_equal(uv_loop_close(&play->loop), 0);
        sem_destroy(&play->gate);
        sem_destroy(&play->started);
        sem_destroy(&play->small);
}

/* One user's gigabytes made all other users' detached jobs wait. */
static void the_large_calls_of_one_leave_a_thread_to_the_next(void **state) {
        DiskLine lines[2] = {};
        Large large[CALLS];
        Play play = {};
        int n_started;

        play_start(&play);
        for (size_t i = 0; i < CALLS - 1; ++i)
                play_call(&play, &lines[0], &large[i], large_run);
        play_await(&play.started);
        play_await(&play.started); /* more than one is for those who are alone */
        play_call(&play, &lines[1], &large[CALLS - 1], small_run);
        play_await(&play.small);
        sem_getvalue(&play.started, &n_started);
        assert_int_equal(n_started, 0);
        play_end(&play, CALLS);
}

static void lines_take_turns_however_many_calls_wait(void **state) {
        DiskLine lines[5] = {};
        Large large[CALLS];
        Play play = {};

        play_start(&play);
        for (size_t i = 0; i < CALLS - 1; ++i)
                play_call(&play, &lines[i % 4], &large[i], large_run);
        for (size_t i = 0; i < 4; ++i)
                play_await(&play.started);
        play_call(&play, &lines[4], &large[CALLS - 1], small_run);
        /* After one more call of each other line, not after all of them. */
        for (size_t i = 0; i < 5; ++i)
                sem_post(&play.gate);
        play_await(&play.small);
        play_end(&play, CALLS);
}

/* The loop served nobody while the threads were quicker than what follows their calls. */
static void few_ends_are_handled_in_one_turn_of_the_loop(void **state) {
        DiskLine line = {};
        Large large[CALLS];
        Play play = {};
        size_t n_done;

        play_start(&play);
        for (size_t i = 0; i < CALLS; ++i)
                play_call(&play, &line, &large[i], small_run);
        for (size_t i = 0; i < CALLS; ++i)
                play_await(&play.small);
        for (size_t n = 0; n < CALLS; n = play.n_done) {
                n_done = play.n_done;
                uv_run(&play.loop, UV_RUN_ONCE);
                assert_true(play.n_done - n_done <= 4);
        }
        play_end(&play, CALLS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_large_calls_of_one_leave_a_thread_to_the_next),
                cmocka_unit_test(lines_take_turns_however_many_calls_wait),
                cmocka_unit_test(few_ends_are_handled_in_one_turn_of_the_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

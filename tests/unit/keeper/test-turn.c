/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of the keeper: it never sleeps past the moment at which it may do what it left for later. The clock, poll() and
 * what the supervisor sends are the test's.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/keeper.h"
#include "keeper/link.h"
#include "keeper/worker.h"
#include "util/macro.h"

#define START_MS 1000000u
#define MUTED_MS 400u /* until a muted worker may be heard again */
#define NOBODY   0x7fffffff
#define MANY     1000000u

static uint64_t clock_ms;
static bool is_ticking; /* each look at the clock takes a millisecond */
static uint64_t hear_at_ms;
static bool was_listening; /* in the last poll() */
static int timeout_ms;     /* of the last poll() */
static unsigned n_exits;   /* processes to reap */

uint64_t __wrap_now_ms(void);
uint64_t __wrap_now_ms(void) {
        return is_ticking ? clock_ms++ : clock_ms;
}

uint64_t __wrap_workers_hear_at(const Workers *workers);
uint64_t __wrap_workers_hear_at(const Workers *workers) {
        return hear_at_ms;
}

int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n_fds, int timeout) {
        timeout_ms = timeout;
        was_listening = fds[1].fd >= 0;
        for (nfds_t i = 0; i < n_fds; i++)
                fds[i].revents = (i == 0 && n_exits) || (i == 1 && was_listening) ? POLLIN : 0;
        return was_listening;
}

/* While there are exits there is always one more: of a process that nobody knows. */
int __wrap_waitid(idtype_t kind, id_t id, siginfo_t *ret_info, int how);
int __wrap_waitid(idtype_t kind, id_t id, siginfo_t *ret_info, int how) {
        ret_info->si_pid = n_exits ? NOBODY : 0;
        return 0;
}

pid_t __real_waitpid(pid_t pid, int *ret_status, int how);
pid_t __wrap_waitpid(pid_t pid, int *ret_status, int how);
pid_t __wrap_waitpid(pid_t pid, int *ret_status, int how) {
        if (pid != NOBODY)
                return __real_waitpid(pid, ret_status, how);
        n_exits--;
        return pid;
}

/* There is always one more. */
int __wrap_link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                        unsigned *ret_n_fds);
int __wrap_link_receive(Link *link, KeeperMessage *ret_message, int ret_fds[static KEEPER_N_FDS],
                        unsigned *ret_n_fds) {
        *ret_message = (KeeperMessage){.kind = KEEPER_STATUS};
        for (unsigned i = 0; i < KEEPER_N_FDS; i++)
                ret_fds[i] = -1;
        *ret_n_fds = 0;
        return 0;
}

/* ---- a keeper whose supervisor runs ----------------------------------------- */

typedef struct Place {
        char folder[32];
        char socket[64];
        char config[64];
        Options *options;
        Listener *listener;
        Keeper *keeper;
} Place;

static void place_parse(Place *place, Config **ret_config) {
        char socket[96], cache[96], *error = NULL;
        char *argv[] = {"gpuqd",    "--private",   "--libexec", getenv("STAND_INS"),
                        "--config", place->config, "--set",     socket,
                        "--set",    cache,         "--set",     "state_dir="};

        snprintf(socket, sizeof(socket), "socket=%s", place->socket);
        snprintf(cache, sizeof(cache), "cache_dir=%s/cache", place->folder);
        assert_int_equal(options_parse((int)ARRAY_SIZE(argv), argv, &place->options), 0);
        assert_int_equal(options_load_config(place->options, ret_config, &error), 0);
}

static int set_up(void **state) {
        Place *place = calloc(1, sizeof(*place));
        Config *config = NULL;
        char *error = NULL;
        FILE *file;

        assert_non_null(place);
        *state = place;
        clock_ms = START_MS;
        is_ticking = false;
        hear_at_ms = UINT64_MAX;
        snprintf(place->folder, sizeof(place->folder), "/tmp/test-turn-XXXXXX");
        assert_non_null(mkdtemp(place->folder));
        snprintf(place->socket, sizeof(place->socket), "%s/sock", place->folder);
        snprintf(place->config, sizeof(place->config), "%s/gpuqd.conf", place->folder);
        file = fopen(place->config, "w");
        assert_non_null(file);
        fclose(file);
        place_parse(place, &config);
        assert_int_equal(listener_new(place->socket, true, &place->listener, &error), 0);
        assert_int_equal(keeper_new(place->options, config, place->listener, &place->keeper), 0);
        assert_int_equal(keeper_turn(place->keeper), 0); /* starts the supervisor */
        return 0;
}

static int clean_up(void **state) {
        Place *place = *state;
        char command[64];

        keeper_free(place->keeper);
        listener_free(place->listener);
        options_free(place->options);
        snprintf(command, sizeof(command), "rm -r %s", place->folder);
        free(place);
        return system(command);
}

/* ---- tests ------------------------------------------------------------------- */

/* With the clock read twice, the budget was free the second time: nobody was served for 30 s. */
static void a_turn_that_does_not_listen_ends_when_it_may(void **state) {
        Place *place = *state;

        do
                assert_int_equal(keeper_turn(place->keeper), 0);
        while (was_listening);
        assert_in_range(timeout_ms, 0, 10);

        is_ticking = true;
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_true(was_listening || timeout_ms <= 10);
}

static void a_turn_ends_when_a_muted_worker_may_be_heard(void **state) {
        Place *place = *state;

        hear_at_ms = clock_ms + MUTED_MS;
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_int_equal(timeout_ms, MUTED_MS);
}

/* A worker whose children are the keeper's and end at once kept it from everything else. */
static void processes_that_end_without_end_do_not_hold_up_a_turn(void **state) {
        Place *place = *state;

        n_exits = MANY;
        assert_int_equal(kill(getpid(), SIGCHLD), 0);
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_in_range(n_exits, MANY - 1000, MANY - 1);
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_int_equal(timeout_ms, 0);
        n_exits = 1;
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_int_equal(n_exits, 0);
        assert_int_equal(keeper_turn(place->keeper), 0);
        assert_int_not_equal(timeout_ms, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(a_turn_that_does_not_listen_ends_when_it_may),
                TEST(a_turn_ends_when_a_muted_worker_may_be_heard),
                TEST(processes_that_end_without_end_do_not_hold_up_a_turn),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

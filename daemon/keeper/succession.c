/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Succession
 *
 * See succession.h. The keeper handles the workers and descriptors of a dead supervisor.
 */

#include "keeper/succession.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "keeper/supervisor.h"
#include "util/log.h"
#include "util/macro.h"

#define DELAY_MIN_MS 100u /* before a dead supervisor is started again, doubling */
#define DELAY_MAX_MS 5000u
#define DELAY_RESET_MS                                                                             \
        10000u             /* of life, after which its death starts at the shortest delay again */
#define FIRST_TRIES  3u    /* of a supervisor that never came up: then it is the installation */
#define LEDGER_TRIES 3u    /* supervisors that may end by themselves over one ledger */
#define LEAVE_MS     5000u /* for one that has closed the link to give back what it has and exit */

uint64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void succession_init(Succession *succession, const Settings *settings) {
        *succession = (Succession){
                .settings = settings,
                .process = PROCESS_NONE,
                .leave_by_ms = NEVER,
                .delay_ms = DELAY_MIN_MS,
        };
}

void succession_finish(Succession *succession) {
        succession->link = link_free(succession->link);
        succession->page = activity_free(succession->page);
        process_finish(&succession->process);
}

/* ---- start ----------------------------------------------------------------- */

static int succession_try(Succession *succession) {
        const Settings *settings = succession->settings;
        _cleanup_(closep) int peer = -1, page = -1;
        int r;

        r = link_new(&succession->link, &peer);
        if (r < 0)
                return r;
        succession->page = activity_free(succession->page);
        r = activity_new(&page, &succession->page);
        if (r >= 0)
                r = supervisor_start(settings->options, settings->config, peer, settings->fd, page,
                                     &succession->process);
        if (r < 0) {
                log_error("cannot start the supervisor: %s", strerror(-r));
                succession->link = link_free(succession->link);
        }
        return r;
}

int succession_plan(Succession *succession) {
        if (!succession->is_ready && ++succession->n_tries >= FIRST_TRIES) {
                log_error("gpuqd exits: the supervisor failed to start repeatedly");
                return SUCCESSION_E_IN_VAIN;
        }

        succession->start_at_ms = now_ms() + succession->delay_ms;
        succession->delay_ms = MIN(2 * succession->delay_ms, DELAY_MAX_MS);
        return 0;
}

int succession_start(Succession *succession) {
        int r;

        succession->start_at_ms = NEVER;
        r = succession_try(succession);
        if (r < 0)
                return succession_plan(succession) ? SUCCESSION_E_IN_VAIN : SUCCESSION_E_NONE;
        succession->is_killed = false;
        succession->started_ms = succession->heard_ms = now_ms();
        succession->leave_by_ms = NEVER;
        return 0;
}

/* ---- end ------------------------------------------------------------------- */

static bool succession_lasted(const Succession *succession) {
        return now_ms() - succession->started_ms >= DELAY_RESET_MS;
}

bool succession_on_exit(Succession *succession, char **ret_error) {
        int r;

        r = process_check(&succession->process, ret_error);
        process_finish(&succession->process);
        succession->process = PROCESS_NONE;
        succession->link = link_free(succession->link);
        succession->is_up = false;
        if (succession_lasted(succession))
                succession->delay_ms = DELAY_MIN_MS;
        return r >= 0;
}

bool succession_doubts(Succession *succession, int status) {
        bool is_own_fault = !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL;

        if (!is_own_fault || succession_lasted(succession)) {
                succession->n_doubts = 0;
                return false;
        }
        if (++succession->n_doubts < LEDGER_TRIES)
                return false;
        log_error("ledger set aside: %u supervisors in a row failed right after they had taken "
                  "it over; clients must connect and submit again",
                  LEDGER_TRIES);
        succession->n_doubts = 0;
        return true;
}

/* ---- while it runs --------------------------------------------------------- */

void succession_tell(Succession *succession, const KeeperMessage *message, int fd) {
        int r;

        if (!succession->link)
                return;
        r = link_queue(succession->link, message, fd);
        if (r < 0)
                succession_kill(succession,
                                r == -ENOBUFS ? "it does not read its messages" : strerror(-r));
}

void succession_heard(Succession *succession) {
        succession->heard_ms = now_ms();
}

void succession_describe(const Succession *succession, char *text, size_t n_text) {
        Activity activity;
        uint64_t for_ms;
        char work[160];

        if (!succession->page) {
                snprintf(text, n_text, "not known");
                return;
        }
        activity = activity_read(succession->page, now_ms() * 1000000, &for_ms);
        activity_describe(&activity, work, sizeof(work));
        if (for_ms)
                snprintf(text, n_text, "%s, for %llu.%llu s", work,
                         (unsigned long long)for_ms / 1000,
                         (unsigned long long)for_ms % 1000 / 100);
        else
                snprintf(text, n_text, "%s", work);
}

void succession_kill(Succession *succession, const char *why) {
        char text[192];

        if (!succession->process.pid || succession->is_killed)
                return;
        succession_describe(succession, text, sizeof(text));
        log_error("supervisor killed: %s; what it was doing: %s", why, text);
        (void)kill(succession->process.pid, SIGKILL);
        succession->is_killed = true;
}

void succession_unlink(Succession *succession, int r) {
        /* Killed, it could not tell how it ended, nor a leak checker what it had left. */
        if (r == LINK_E_CLOSED)
                succession->leave_by_ms = now_ms() + LEAVE_MS;
        else
                succession_kill(succession, r < 0 ? strerror(-r) : "it sent an invalid message");
        succession->link = link_free(succession->link);
}

uint64_t succession_due_at(const Succession *succession) {
        return succession->process.pid ? MIN(succession->heard_ms + KEEPER_SILENCE_S * 1000,
                                             succession->leave_by_ms)
                                       : NEVER;
}

void succession_on_time(Succession *succession, uint64_t now) {
        if (now < succession_due_at(succession))
                return;
        succession_kill(succession, now >= succession->leave_by_ms
                                            ? "it did not exit in time"
                                            : "it did not respond for too long");
        succession->heard_ms = now;
        succession->leave_by_ms = NEVER;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_KEEPER_SUCCESSION_H
#define GPUQ_KEEPER_SUCCESSION_H

/*
 * Succession
 *
 * Restarts of the supervisor: the current process and the link to it, when the next one
 * is started, and when to give up.
 */

#include <stdbool.h>
#include <stdint.h>

#include "keeper/link.h"
#include "keeper/process.h"
#include "keeper/settings.h"
#include "util/activity.h"

#define NEVER UINT64_MAX

enum {
        _SUCCESSION_E_SUCCESS,
        SUCCESSION_E_NONE,    /* it could not be started; another try is planned */
        SUCCESSION_E_IN_VAIN, /* no supervisor ever started: the installation is broken */
};

typedef struct Succession {
        const Settings *settings; /* borrowed */
        Link *link;               /* NULL: no supervisor, or it is being killed */
        Process process;          /* pid 0: none */
        const ActivityPage *page; /* what it says that it is doing */
        bool is_up;               /* this supervisor is ready */
        bool is_ready;            /* some supervisor was */
        bool is_killed;           /* by us, and that was logged */

        uint64_t started_ms;
        uint64_t heard_ms;    /* something from it */
        uint64_t leave_by_ms; /* it has closed the link, and ends; NEVER: it has not */
        uint64_t start_at_ms;
        uint64_t delay_ms;
        unsigned n_tries;
        unsigned n_doubts; /* in a row that ended by themselves at once */
} Succession;

/** succession_init() - no supervisor runs yet. */
void succession_init(Succession *succession, const Settings *settings);
/** succession_finish() - the struct itself is the caller's memory. */
void succession_finish(Succession *succession);

/** succession_start() - start the next. Return: 0 or an SUCCESSION_E_ code. */
int succession_start(Succession *succession);
/** succession_plan() - start another after a while, each time a longer one. Return: 0 or SUCCESSION_E_IN_VAIN. */
int succession_plan(Succession *succession);
/**
 * succession_on_exit() - it has ended
 * @ret_error: why it was never executed, the caller's, or NULL
 *
 * Return: whether it was executed.
 */
bool succession_on_exit(Succession *succession, char **ret_error);
/** succession_doubts() - whether so many ended by themselves at once that what they took over is at fault; @status: how this one did. */
bool succession_doubts(Succession *succession, int status);

/** succession_tell() - send it a message, if there is one. @fd: -1, or duplicated. */
void succession_tell(Succession *succession, const KeeperMessage *message, int fd);
/** succession_heard() - it lives. */
void succession_heard(Succession *succession);
/** succession_describe() - what the supervisor says that it is doing, or was when it ended. */
void succession_describe(const Succession *succession, char *text, size_t n_text);
/** succession_kill() - its exit comes as any other. */
void succession_kill(Succession *succession, const char *why);
/** succession_unlink() - the link has ended: a supervisor that closed it may end by itself, bounded. @r: of link_receive(). */
void succession_unlink(Succession *succession, int r);

/** succession_due_at() - when a supervisor that is silent or exiting is to be killed, in ms; NEVER: none is. */
uint64_t succession_due_at(const Succession *succession);
/** succession_on_time() - kill the supervisor if its time is over. */
void succession_on_time(Succession *succession, uint64_t now);

/** now_ms() - the clock of all of these. */
uint64_t now_ms(void);

#endif

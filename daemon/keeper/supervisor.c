/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervisor
 *
 * See supervisor.h. The process has no privilege, no groups and no way to gain a privilege.
 */

#include "keeper/supervisor.h"

#include <stdio.h>

#include "keeper/folder.h"
#include "util/log.h"
#include "util/macro.h"

typedef struct SupervisorStart {
        const Options *options;
        const Config *config;
} SupervisorStart;

static void supervisor_make_args(Words *args, const Options *options) {
        words_add(args, "gpuqd-supervisor");
        if (options->is_private) {
                words_add(args, "--private");
                words_add(args, "--uid");
                words_add(args, "%u", (unsigned)getuid());
        }
}

static void supervisor_make_env(Words *env, const Options *options) {
        words_add(env, "PATH=/usr/bin:/bin");
        words_add(env, "LANG=C.UTF-8");
        words_add_env(env, "JOURNAL_STREAM");
        if (options->is_private) {
                words_add_env(env, "ASAN_OPTIONS");
                words_add_env(env, "UBSAN_OPTIONS");
                words_add_env(env, "TSAN_OPTIONS");
        }
}

static int supervisor_identity(const Config *config, Identity **ret_identity, char **ret_error) {
        const char *name = config->supervisor_user;
        int r;

        r = identity_by_name(name, ret_identity);
        if (r <= 0)
                return r;

        if (r == IDENTITY_E_UNKNOWN)
                r = asprintf(ret_error,
                             "supervisor_user = %s: no such user; run systemd-sysusers, set "
                             "supervisor_user, or serve only yourself with --private",
                             name);
        else
                r = asprintf(ret_error, "supervisor_user = %s: the user must not have uid or gid 0",
                             name);
        if (r < 0)
                *ret_error = NULL;
        return -EINVAL;
}

/* Without the folder @what is off, and everything else works. The supervisor says so when asked. */
static void supervisor_make_folder(const Config *config, const Identity *identity, const char *name,
                                   const char *what) {
        _cleanup_(freep) char *error = NULL;
        int r;

        r = folder_for_state(config->state_dir, name, identity ? identity->uid : getuid(),
                             identity ? identity->gid : getgid(), &error);
        if (r < 0)
                log_warning("%s: %s", what, error ? error : "out of memory");
}

static void supervisor_make_folders(const Config *config, const Identity *identity) {
        if (!config->state_dir)
                return;
        supervisor_make_folder(config, identity, "jobs", "detached jobs are off");
        supervisor_make_folder(config, identity, "history", "the history is off");
}

/* Whom and what it becomes; in the child. */
static int supervisor_make(const void *what, ProcessPlan *plan, char **ret_error) {
        const SupervisorStart *start = what;
        const Options *options = start->options;
        int r;

        if (!options->is_private) {
                r = supervisor_identity(start->config, &plan->identity, ret_error);
                if (r < 0)
                        return r;
        }
        supervisor_make_folders(start->config, plan->identity);
        supervisor_make_args(&plan->argv, options);
        supervisor_make_env(&plan->env, options);
        plan->no_new_privs = !options->is_private;
        plan->may_raise = true;
        return asprintf(&plan->path, "%s/gpuqd-supervisor", options->libexec) < 0 ? -ENOMEM : 0;
}

int supervisor_start(const Options *options, const Config *config, int link_fd, int config_fd,
                     int activity_fd, Process *ret_process) {
        const SupervisorStart start = {options, config};
        const int fds[] = {link_fd, config_fd,
                           activity_fd}; /* from KEEPER_FD on, in the order of protocol.h */

        return process_start(supervisor_make, &start, fds, ARRAY_SIZE(fds), ret_process);
}

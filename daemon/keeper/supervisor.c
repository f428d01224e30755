/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervisor
 *
 * See supervisor.h. It gets no privilege, no group and no way to gain one.
 */

#include "keeper/supervisor.h"

#include <stdio.h>

#include "keeper/folder.h"
#include "keeper/process.h"
#include "util/log.h"
#include "util/macro.h"

DEFINE_CLEANUP(Identity, identity_free)

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

        r = identity_by_name(name, false, ret_identity);
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

/* Without it there are no detached jobs, and all else goes on: the supervisor tells who asks. */
static void supervisor_make_folder(const Config *config, const Identity *identity) {
        _cleanup_(freep) char *error = NULL;
        int r;

        if (!config->state_dir)
                return;
        r = folder_for_jobs(config->state_dir, identity ? identity->uid : getuid(),
                            identity ? identity->gid : getgid(), &error);
        if (r < 0)
                log_warning("detached jobs are off: %s", error ? error : "out of memory");
}

int supervisor_start(const Options *options, const Config *config, int link_fd, int config_fd,
                     pid_t *ret_pid, char **ret_error) {
        _cleanup_(identity_freep) Identity *identity = NULL;
        _cleanup_(words_finish) Words args = {}, env = {};
        _cleanup_(freep) char *path = NULL;
        const int fds[] = {link_fd, config_fd}; /* KEEPER_FD, KEEPER_CONFIG_FD */
        ProcessPlan plan = {
                .fds = fds,
                .n_fds = ARRAY_SIZE(fds),
                .no_new_privs = !options->is_private,
        };
        int r;

        *ret_error = NULL;
        if (!options->is_private) {
                r = supervisor_identity(config, &identity, ret_error);
                if (r < 0)
                        return r;
        }

        supervisor_make_folder(config, identity);
        supervisor_make_args(&args, options);
        supervisor_make_env(&env, options);
        if (args.failed || env.failed ||
            asprintf(&path, "%s/gpuqd-supervisor", options->libexec) < 0)
                return -ENOMEM;

        plan.path = path;
        plan.argv = args.items;
        plan.env = env.items;
        plan.identity = identity;
        return process_start(&plan, ret_pid, ret_error);
}

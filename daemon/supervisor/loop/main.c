/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd-supervisor: decides which job runs where and when. Started by the keeper, gpuqd, with one end
 * of their socket as descriptor 3, the current configuration as descriptor 4, and the page for its
 * activity as descriptor 5.
 */

#include <getopt.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base.h"
#include "keeper/protocol.h"
#include "supervisor.h"
#include "util/activity.h"
#include "util/log.h"
#include "util/sandbox.h"

static int main_parse(int argc, char **argv, SupervisorOptions *options) {
        static const struct option names[] = {
                {"private", no_argument, NULL, 'p'},
                {"uid", required_argument, NULL, 'u'},
                {},
        };
        int c;

        options->private_uid = getuid();
        while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
                if (c == 'p')
                        options->is_private = true;
                else if (c == 'u')
                        options->private_uid = (uid_t)strtoul(optarg, NULL, 10);
                else
                        return -EINVAL;
        }
        return optind == argc ? 0 : -EINVAL;
}

/* Hides its memory from other processes of its uid, closes unexpected descriptors, raises the limit of
 * descriptors to the hard limit, and makes naps end in time. */
static void main_prepare_process(void) {
        struct rlimit limit;

        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_TIMERSLACK, 1000);           /* ns: naps are short */
        (void)activity_adopt(KEEPER_ACTIVITY_FD); /* without it the keeper knows less of a hang */
        close_range(KEEPER_CONFIG_FD + 1, ~0u, 0);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                setrlimit(RLIMIT_NOFILE, &limit);
        }
}

/* Before it reads anything of a client's. It has no threads yet that could be behind. */
static void main_give_up_calls(void) {
        int r;

        r = sandbox_close_devices();
        if (r < 0 && r != -EOPNOTSUPP)
                log_warning("may open devices: %s", strerror(-r));
        r = sandbox_enter(SANDBOX_SUPERVISOR);
        if (r < 0)
                log_warning("runs without a filter of system calls: %s", strerror(-r));
}

/* Not of an ordinary user's uid, whose other programs would be refused meanwhile. */
static void main_measure_room(SupervisorOptions *options) {
        struct rlimit limit;

        if (options->is_private || getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        options->transit_room = transit_room_measure(limit.rlim_cur);
        if (options->transit_room < limit.rlim_cur / 4 * 3)
                log_warning(
                        "clients have not read descriptors that an earlier supervisor sent: the "
                        "kernel takes %llu instead of %llu more; `ss -xp` shows who has many "
                        "connections to gpuqd",
                        (unsigned long long)options->transit_room,
                        (unsigned long long)limit.rlim_cur);
}

int main(int argc, char **argv) {
        SupervisorOptions options = {
                .keeper_fd = KEEPER_FD,
                .config_fd = KEEPER_CONFIG_FD,
        };
        Supervisor *supervisor;
        int r;

        log_open("gpuqd-supervisor", LOG_INFO);
        r = main_parse(argc, argv, &options);
        if (r < 0) {
                fprintf(stderr, "gpuqd-supervisor is started by gpuqd; see gpuqd(8)\n");
                return 2;
        }
        main_prepare_process();
        main_give_up_calls();
        main_measure_room(&options);
        r = supervisor_new(&options, &supervisor);
        close(KEEPER_CONFIG_FD);
        if (r < 0) {
                log_error("cannot start: %s", strerror(-r));
                return 1;
        }

        r = supervisor_run(supervisor);
        supervisor_free(supervisor);
        log_info("ended: %s", r < 0 ? strerror(-r) : "as requested");
        return r < 0 ? 1 : 0;
}

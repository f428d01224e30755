/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd-worker
 *
 * Started by the keeper as the user whose jobs it runs, or as a spare worker, with its end of a
 * channel as descriptors 3 to 5.
 */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "util/log.h"
#include "worker/probe.h"
#include "worker/spare.h"
#include "worker/worker.h"

#define WORKER_CHANNEL_FD 3

static const char usage[] =
        "usage: gpuqd-worker --device N [--spare] | --probe [--uuid UUID] [--driver cpu|gpu]\n"
        "                    [--cpu-devices N] [--cpu-threads N] [--cpu-broken FILE]\n"
        "                    [--cache DIR] [--builtin-cache DIR] [--cache-bytes N]\n"
        "                    [--compile-timeout SECONDS]\n"
        "                    [--coalesce yes|no] [--coalesce-us N] [--in-place yes|no]\n"
        "                    [--fence yes|no]\n"
        "                    [--connections N] [--poll-us N] [--sms all|N%|N]\n"
        "                    [--libraries FOLDER:...]\n"
        "Started by gpuqd, not by hand: descriptors 3 to 5 are its channel to the supervisor.\n";

static int parse_number(const char *text, unsigned *ret_number) {
        char *end;
        unsigned long number;

        errno = 0;
        number = strtoul(text, &end, 10);
        if (errno || end == text || *end || *text == '-' || number > INT_MAX)
                return -EINVAL;
        *ret_number = (unsigned)number;
        return 0;
}

static int parse_bytes(const char *text, uint64_t *ret_bytes) {
        char *end;

        errno = 0;
        *ret_bytes = strtoull(text, &end, 10);
        return errno || end == text || *end || *text == '-' ? -EINVAL : 0;
}

static int parse_flag(const char *text, bool *ret_flag) {
        *ret_flag = strcmp(text, "yes") == 0;
        return *ret_flag || strcmp(text, "no") == 0 ? 0 : -EINVAL;
}

static int parse_option(int option, const char *value, WorkerOptions *options, bool *ret_device) {
        switch (option) {
                case 'd':
                        *ret_device = true;
                        return parse_number(value, &options->device);
                case 'p':
                        options->probe = true;
                        return 0;
                case 's':
                        options->spare = true;
                        return 0;
                case 'D':
                        options->cpu = strcmp(value, "cpu") == 0;
                        return options->cpu || strcmp(value, "gpu") == 0 ? 0 : -EINVAL;
                case 'n':
                        return parse_number(value, &options->cpu_devices);
                case 't':
                        return parse_number(value, &options->cpu_threads);
                case 'I':
                        options->uuid = value;
                        return 0;
                case 'b':
                        options->cpu_broken = value;
                        return 0;
                case 'c':
                        options->cache = *value ? value : NULL;
                        return 0;
                case 'K':
                        options->builtin_cache = value;
                        return 0;
                case 'B':
                        return parse_bytes(value, &options->cache_bytes);
                case 'T':
                        return parse_number(value, &options->compile_timeout_s);
                case 'C':
                        return parse_flag(value, &options->coalesce);
                case 'U':
                        return parse_number(value, &options->coalesce_us);
                case 'N':
                        return parse_number(value, &options->connections);
                case 'u':
                        return parse_number(value, &options->poll_us);
                case 'P':
                        return parse_flag(value, &options->in_place);
                case 'F':
                        return parse_flag(value, &options->fence);
                case 'L':
                        options->libraries = value;
                        return 0;
                case 'S':
                        return sms_parse(value, &options->sms) ? 0 : -EINVAL;
                default:
                        return -EINVAL;
        }
}

static int parse_arguments(int argc, char **argv, WorkerOptions *options) {
        static const struct option names[] = {
                {"device", required_argument, NULL, 'd'},
                {"probe", no_argument, NULL, 'p'},
                {"spare", no_argument, NULL, 's'},
                {"driver", required_argument, NULL, 'D'},
                {"cpu-devices", required_argument, NULL, 'n'},
                {"cpu-threads", required_argument, NULL, 't'},
                {"uuid", required_argument, NULL, 'I'},
                {"cpu-broken", required_argument, NULL, 'b'},
                {"cache", required_argument, NULL, 'c'},
                {"builtin-cache", required_argument, NULL, 'K'},
                {"cache-bytes", required_argument, NULL, 'B'},
                {"compile-timeout", required_argument, NULL, 'T'},
                {"coalesce", required_argument, NULL, 'C'},
                {"coalesce-us", required_argument, NULL, 'U'},
                {"in-place", required_argument, NULL, 'P'},
                {"fence", required_argument, NULL, 'F'},
                {"connections", required_argument, NULL, 'N'},
                {"poll-us", required_argument, NULL, 'u'},
                {"sms", required_argument, NULL, 'S'},
                {"libraries", required_argument, NULL, 'L'},
                {0},
        };
        bool device = false;
        int option;

        while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
                if (parse_option(option, optarg, options, &device) < 0)
                        return -EINVAL;
        return optind == argc && device != options->probe ? 0 : -EINVAL;
}

/* The folder of this executable. */
static int find_libexec(char **ret_libexec) {
        char path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        char *slash;

        if (n < 0)
                return -errno;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return -EINVAL;
        *slash = '\0';

        *ret_libexec = strdup(path);
        return *ret_libexec ? 0 : -ENOMEM;
}

/* A change of user clears the parent-death signal that the keeper had requested. */
static void harden(void) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_TIMERSLACK, 1000); /* ns: naps are short */
        signal(SIGPIPE, SIG_IGN);
}

/* Variables for libcuda. The keeper passes an environment made from nothing; every worker needs these. */
static void set_environment(const WorkerOptions *options) {
        char connections[16];

        /* No user can create a folder there, so no user's MPS daemon is found. */
        setenv("CUDA_MPS_PIPE_DIRECTORY", "/proc/self/no-mps", 0);
        setenv("CUDA_CACHE_DISABLE", "1", 1);
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
        /* A lazily loaded kernel would wait at its first launch for every running one. */
        setenv("CUDA_MODULE_LOADING", "EAGER", 1);
        /* Creating a context takes less time and memory with fewer connections. The check of one device
         * finds out whether a worker's context fits; the probe for all devices makes none. */
        snprintf(connections, sizeof(connections), "%u", options->connections);
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", connections, 1);
}

static int adopt_channel(Channel **ret_channel) {
        int fds[CHANNEL_N_FDS];

        for (unsigned i = 0; i < CHANNEL_N_FDS; ++i) {
                fds[i] = WORKER_CHANNEL_FD + (int)i;
                if (fcntl(fds[i], F_SETFD, FD_CLOEXEC) < 0)
                        return -errno;
        }
        (void)fcntl(ASSIGNMENT_FD, F_SETFD, FD_CLOEXEC); /* a spare's */
        return channel_adopt(fds, ret_channel);
}

int main(int argc, char **argv) {
        WorkerOptions options = {
                .cache_bytes = UINT64_MAX,
                .cpu_devices = 1,
                .compile_timeout_s = 60,
                .connections = 32,
                .coalesce = true,
                .in_place = true,
        };
        Channel *channel;
        int r;

        if (parse_arguments(argc, argv, &options) < 0) {
                fputs(usage, stderr);
                return 2;
        }
        log_open("gpuqd-worker", LOG_INFO);
        harden();
        if (options.spare && (r = spare_limit_rights()) < 0) {
                log_error("cannot give up rights: %s", strerror(-r));
                return EXIT_FAILURE;
        }
        set_environment(&options);

        r = find_libexec(&options.libexec);
        if (r == 0)
                r = adopt_channel(&channel);
        if (r) {
                log_error("cannot start: %s", strerror(r < 0 ? -r : EINVAL));
                return EXIT_FAILURE;
        }

        if (options.probe)
                return probe_run(&options, channel);
        return worker_run(&options, channel);
}

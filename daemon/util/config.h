/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_H
#define GPUQ_UTIL_CONFIG_H

/*
 * Config
 *
 * gpuqd.conf and conf.d, read whole and checked; a new configuration is made
 * before the old one is let go. The keeper reads the files and hands what it read
 * to its supervisor (config-seal.h); each looks at its own keys. Section [gpuqd] holds everything but the users'
 * [user NAME] sections, which override weight and quotas (a uid is a NAME too).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum ConfigDriver {
        CONFIG_DRIVER_AUTO, /* CPU only where there is no NVIDIA device */
        CONFIG_DRIVER_GPU,
        CONFIG_DRIVER_CPU,
} ConfigDriver;

typedef struct ConfigLimits {
        double weight;           /* share of GPU time beside other users, > 0 */
        uint64_t sessions;       /* connections */
        uint64_t jobs;           /* unfinished */
        uint64_t queued_bytes;   /* memory of gpuqd for unfinished jobs */
        uint64_t arena_bytes;    /* host memory in arenas and module images */
        uint64_t device_bytes;   /* device memory in arenas, all devices together */
        uint64_t modules;        /* loaded */
        uint64_t detached_jobs;  /* on disk, with those whose results were not fetched */
        uint64_t detached_bytes; /* of them */
        uint64_t gpu_seconds;    /* in a window of gpu_window_s, decaying; 0: no limit */
} ConfigLimits;

typedef struct ConfigUser {
        char *name; /* or a uid in decimal */
        ConfigLimits limits;
        struct ConfigUser *next;
} ConfigUser;

typedef struct Config {
        char *socket;          /* path */
        char *allow_groups;    /* space-separated, NULL: everybody */
        char *admin_group;     /* NULL: only uid 0 */
        char *supervisor_user; /* who the supervisor runs as */
        char *worker_user;     /* who probes, uid 0's workers, and isolation=shared run as */
        char *cache_dir;       /* compile caches, one folder a uid */
        char *state_dir;       /* detached jobs; NULL: there are none */
        char *kernel_log;      /* where NVIDIA's driver tells Xids; NULL: it is not read */
        ConfigDriver device;
        unsigned cpu_devices;
        char *cpu_broken;     /* for tests: a file that says which CPU devices fail; NULL: none */
        unsigned cpu_threads; /* host threads of each CPU device; 0: one a core */
        bool isolation_shared;
        unsigned worker_idle_s;
        unsigned takeover_s;  /* for which a supervisor that was started again waits for clients */
        unsigned connections; /* of a worker to its device: CUDA's work queues */
        unsigned inflight_jobs; /* at once in one worker */
        unsigned inflight_ms;   /* of expected GPU time in one worker, beyond one job */
        unsigned poll_us;       /* with jobs in flight, who waits looks so long before it sleeps */
        bool rings;             /* a client may exchange its messages through shared memory */
        unsigned quantum_ms; /* for which one user's context has a device to itself; 0: none has */
        unsigned usage_half_life_s; /* of what a user used before; 0: only the present counts */
        unsigned gpu_window_s;      /* of gpu_seconds */
        bool coalesce;              /* ready jobs of one kind become one launch */
        unsigned coalesce_us;       /* a job waits so long for others of its kind */
        bool in_place;              /* kernels may work on host memory where that was faster */
        unsigned job_timeout_s;     /* default, 0: none */
        unsigned compile_timeout_s;
        unsigned detached_keep_s; /* what a detached job wrote, if nobody fetches it */
        ConfigLimits limits;      /* for users without a section */
        ConfigUser *users;
} Config;

/** config_add_user() - the one of this name, or another with the limits of all. Return: NULL: out of memory. */
ConfigUser *config_add_user(Config *config, const char *name);
/** config_free() - NULL is fine. Return: NULL. */
Config *config_free(Config *config);
/** config_limits() - of a user, by name (NULL if nameless) or uid. Never NULL. */
const ConfigLimits *config_limits(const Config *config, const char *name, uid_t uid);

#endif

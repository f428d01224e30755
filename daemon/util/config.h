/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_H
#define GPUQ_UTIL_CONFIG_H

/*
 * Config
 *
 * gpuqd.conf and conf.d, read and checked as a whole. A new configuration is complete before the
 * old one is freed. The keeper reads the files and passes the result to its supervisor
 * (config-seal.h); each process uses its own keys. Section [gpuqd] holds all keys; a section
 * [user NAME] overrides weight and limits of one user (a uid is a NAME too), and a section
 * [class NAME] those of the members of a group. A section [slurm NAME] overrides the weight alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/sms.h"

typedef enum ConfigDriver {
        CONFIG_DRIVER_AUTO, /* CPU only where there is no NVIDIA device */
        CONFIG_DRIVER_GPU,
        CONFIG_DRIVER_CPU,
} ConfigDriver;

/* Devices of the CPU driver. */
typedef struct ConfigCpu {
        unsigned devices;
        char *broken;     /* for tests: a file that says which of them fail; NULL: none */
        unsigned threads; /* host threads of each; 0: one a core */
} ConfigCpu;

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
        uint64_t devices;        /* that jobs may use: bit n for device n; UINT64_MAX: all */
        Sms sms;                 /* that kernels may use; not with isolation=shared */
} ConfigLimits;

/* Of a [user NAME] or a [class NAME] section. */
typedef struct ConfigUser {
        char *name;  /* of a user: or a uid in decimal */
        char *group; /* of a class: whose members it applies to */
        gid_t gid; /* of that group, by config_names_apply(); -1: there is none, or it is not known */
        ConfigLimits limits;
        struct ConfigUser *next;
} ConfigUser;

/* Who may connect, and who is an administrator. */
typedef struct ConfigAdmission {
        char *allow_groups; /* space-separated, NULL: everybody */
        char *admin_group;  /* NULL: only uid 0 */
        /* By config_names_apply(): */
        gid_t *allowed;
        size_t n_allowed;
        gid_t admins;    /* -1: there is none, or it is not known */
        bool is_unknown; /* one of these groups: the system has not answered */
} ConfigAdmission;

/* How long what is on disk is kept. */
typedef struct ConfigKeep {
        unsigned detached_s;   /* results of detached jobs that are not fetched */
        unsigned history_days; /* 0: no history */
} ConfigKeep;

/* Of sections: the first word of [KIND NAME], config_kinds[] */
typedef enum ConfigKind {
        CONFIG_USERS,
        CONFIG_CLASSES, /* in the order of the files */
        CONFIG_SLURM,   /* users with jobs of Slurm here; only the weight counts */
        _CONFIG_KIND_N,
} ConfigKind;

extern const char *const config_kinds[_CONFIG_KIND_N];

typedef struct ConfigIsolation {
        bool shared; /* all users share the workers */
        bool fence;  /* if so, kernels reach their own user's memory only: see config_is_fenced() */
} ConfigIsolation;

/* Memory by which clients send messages, or have their workers take prepared jobs. */
typedef struct ConfigRings {
        bool messages;
        bool direct;
} ConfigRings;

typedef struct Config {
        char *socket;          /* path */
        char *supervisor_user; /* runs the supervisor */
        char *worker_user;     /* runs probes, workers of uid 0, and all with isolation=shared */
        char *cache_dir; /* compile caches, one folder a uid, and one of the built-in kernels */
        uint64_t cache_bytes; /* of each folder */
        char *state_dir;      /* detached jobs and the history; NULL: there are none */
        char *slurm_dir;      /* accounts of Slurm's jobs, for the history; NULL: none */
        char *kernel_log;     /* where NVIDIA's driver logs Xids; NULL: it is not read */
        char *libraries; /* folders that workers search first for cuBLASLt and the like, or "none" */
        ConfigAdmission admission;
        ConfigDriver device;
        ConfigCpu cpu;
        ConfigIsolation isolation;
        unsigned worker_idle_s;
        unsigned spare_workers;   /* for each device: with a context, and no user yet */
        unsigned takeover_s;      /* how long a restarted supervisor waits for clients */
        unsigned hello_timeout_s; /* how long a client may take to send its hello */
        unsigned connections;     /* of a worker to its device: CUDA's work queues */
        unsigned inflight_jobs;   /* at once in one worker */
        unsigned inflight_ms;     /* of expected GPU time in one worker, beyond one job */
        unsigned poll_us; /* with jobs in flight, processes poll for so long before they sleep */
        ConfigRings rings;
        unsigned quantum_ms; /* how long one user's context has a device to itself; 0: never */
        unsigned usage_half_life_s; /* of past usage; 0: only present usage counts */
        unsigned gpu_window_s;      /* of gpu_seconds */
        bool express;         /* a user held up by a long job gets a second worker for short ones */
        bool coalesce;        /* ready jobs of one kind become one launch */
        unsigned coalesce_us; /* how long a job waits for others of its kind */
        bool in_place;        /* kernels may work on host memory directly if that was faster */
        unsigned job_timeout_s; /* default, 0: none */
        unsigned compile_timeout_s;
        ConfigKeep keep;
        uint64_t arenas_bytes; /* host memory in arenas of all users together */
        ConfigLimits limits;   /* for users without a section */
        ConfigUser *sections[_CONFIG_KIND_N];
} Config;

#define CONFIG_DEVICES_MAX  64u  /* devices that a list may name */
#define CONFIG_DEVICES_TEXT 192u /* bytes of the longest list */

/** config_devices_text() - a mask of devices as gpuqd.conf has it. Return: @text. */
const char *config_devices_text(uint64_t devices, char text[static CONFIG_DEVICES_TEXT]);
/** config_add() - the section of this name; a new one has the limits of [gpuqd]. Return: NULL: out of memory. */
ConfigUser *config_add(Config *config, ConfigKind kind, const char *name);
/** config_is_fenced() - whether kernels reach the memory of their own user alone, in a context that users share. */
static inline bool config_is_fenced(const Config *config) {
        return config->isolation.shared && config->isolation.fence;
}
/** config_free() - NULL is fine. Return: NULL. */
Config *config_free(Config *config);
/** config_limits() - those that [gpuqd] or its own section give a user, by name (NULL if nameless) or uid. Never NULL. */
const ConfigLimits *config_limits(const Config *config, const char *name, uid_t uid);
/**
 * config_limits_in() - config_limits() or, for a user without a section of its own, those of the first
 * class whose group is among @groups
 */
const ConfigLimits *config_limits_in(const Config *config, const char *name, uid_t uid,
                                     const gid_t *groups, size_t n_groups);
/** config_weight() - of a user with these limits: Slurm's, or else that of the limits. */
double config_weight(const Config *config, const ConfigLimits *limits, const char *name, uid_t uid);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_USER_H
#define GPUQ_SUPERVISOR_USER_H

/*
 * User
 *
 * One uid: its weight, its limits and its use of them. Everything chargeable embeds a UserCharge.
 * Undoing a charge twice is harmless. A user freed with a charge left aborts the program, so
 * a leak fails the tests. What all users share is divided among them besides (policy/quota.h).
 *
 * A uid that /etc/subuid gives to somebody is a part of that person: its worker and its arenas are
 * its own, but limits, use, weight and share of the devices are those of the person, so that a
 * user namespace multiplies nothing.
 *
 * A user lives as long as the daemon: its history, its share of the last minute and its learnt
 * durations outlive its sessions.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base.h"
#include "history.h"
#include "policy.h"
#include "resource.h"
#include "util/config.h"
#include "util/macro.h"
#include "util/table.h"

#define USER_PREPARED_MAX (16u << 20) /* bytes of prepared jobs of one user */
#define USER_RINGS_MAX    (32u << 20) /* bytes of rings of all connections of one user */
#define USER_BUFFERS_MAX  (64u << 20) /* bytes held for all connections of one user */
#define USER_LOOK_UP_NS   10000000000ull

typedef struct Engine Engine;
typedef struct User User;
typedef struct Lane Lane;
typedef struct Job Job;
typedef struct Session Session;

enum {
        _USER_E_SUCCESS,
        USER_E_QUOTA, /* over a limit; nothing was charged */
};

typedef enum UserNaming {
        USER_NAMED,
        USER_NAMELESS,     /* the system knows no name */
        USER_NAME_UNKNOWN, /* the lookup failed */
} UserNaming;

typedef struct UserCharge {
        User *user; /* NULL: nothing charged */
        UserResource resource;
        uint64_t amount;
} UserCharge;

TAILQ_HEAD(UserJobList, Job);

struct User {
        uid_t uid;
        gid_t gid;
        char *name; /* the uid in decimal if it has no name */
        UserNaming naming;
        uint64_t look_up_ns; /* when the lookup may be repeated */
        ConfigLimits limits;
        uint64_t used[_USER_RESOURCE_N];

        User *person; /* whose limits, weight and share count: itself, or the owner of this subordinate uid */
        Quota *quotas; /* by resource, of all users together */

        struct UserJobList jobs; /* unfinished */
        LIST_HEAD(, Session) sessions;
        uint32_t n_sessions;
        uint32_t n_waiting;
        uint32_t n_running;

        Lane **lanes; /* by device; NULL where the user never had a job */
        size_t n_lanes;

        History *history;
        Duration *duration;
        Suspects suspects; /* kernels that run alone */
        uint64_t gpu_ns;   /* since the start */
        Decay window;      /* GPU-ns */
        uint64_t window_ns;
        uint64_t half_life_ns; /* of the decay of `window` */
        bool is_held;          /* over its GPU seconds: waiting jobs are not dispatched */

        UT_hash_handle hh; /* engine->users */
};

/** user_get() - the user with this uid, made if missing. Return: 0, or a negative errno. */
int user_get(Engine *engine, uid_t uid, gid_t gid, User **ret_user);
/**
 * user_new() - a person
 * @gid:    of its first session, in case the system does not know the uid
 * @quotas: by resource, of all users; the caller's, valid as long as the user
 *
 * Return: 0, or -ENOMEM.
 */
int user_new(uid_t uid, gid_t gid, const Config *config, Quota *quotas, User **ret_user);
/** user_free() - NULL is fine. Asserts that nothing is charged. Return: NULL. */
User *user_free(User *user);
DEFINE_CLEANUP(User, user_free)
/**
 * user_look_up_again() - repeat a failed lookup of its name after USER_LOOK_UP_NS
 *
 * Return: true: the name was found, and user_configure() is due.
 */
bool user_look_up_again(User *user, uint64_t now_ns);
/** user_configure() - take limits and weights from a configuration, for its lanes too; existing use stays. */
void user_configure(User *user, const Config *config);

/**
 * user_charge() - count @amount against a limit
 * @charge: zeroed, or undone; user_uncharge() undoes it
 *
 * Return: 0, or USER_E_QUOTA.
 */
int user_charge(User *user, UserCharge *charge, UserResource resource, uint64_t amount);
/** user_may_charge() - user_charge() would succeed. */
bool user_may_charge(const User *user, UserResource resource, uint64_t amount);
/** user_uncharge() - undo a charge; repeating it is harmless. */
void user_uncharge(UserCharge *charge);
/**
 * user_quota_failure() - E_QUOTA with the limit, the use, the amount asked for, and the key to change;
 * or with what all users together have, if that is what is short
 */
Failure *user_quota_failure(const User *user, UserResource resource, uint64_t asked);
/** user_used() - what the user's person has of a resource. */
uint64_t user_used(const User *user, UserResource resource);
/** user_limit() - its limit of a resource. */
uint64_t user_limit(const User *user, UserResource resource);
/** user_resource_key() - the resource's key in gpuqd.conf; NULL: its limit is fixed. */
const char *user_resource_key(UserResource resource);

/** user_add_gpu_time() - the user used the GPU for @ns, up to now. */
void user_add_gpu_time(User *user, uint64_t ns, uint64_t now_ns);
/** user_window_seconds() - GPU time, decaying over the window; at a steady use this is the use in one window. */
double user_window_seconds(const User *user, uint64_t now_ns);
/** user_over_seconds() - seconds until its GPU time is below the limit if it runs nothing. 0: it is below. */
double user_over_seconds(const User *user, uint64_t now_ns);

#endif

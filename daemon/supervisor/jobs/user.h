/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_USER_H
#define GPUQ_SUPERVISOR_USER_H

/*
 * User
 *
 * One uid: its weight, its limits and its use of them. Everything chargeable embeds a UserCharge.
 * Undoing a charge twice is harmless. If a user is freed with a charge left, the program aborts,
 * so a leak fails the tests. Resources that all users share are also divided among them
 * (policy/quota.h).
 *
 * A uid that /etc/subuid gives to a user is a part of that user, its owner. It has workers and
 * arenas of its own, but limits, use, weight and share of the devices are those of the owner, so
 * that a user namespace multiplies nothing.
 *
 * A user's history, its share of the last minute and its learnt durations outlive its sessions, until
 * retire.h frees it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base.h"
#include "history.h"
#include "lookup.h"
#include "policy.h"
#include "resource.h"
#include "util/config.h"
#include "util/footprint.h"
#include "util/macro.h"
#include "util/table.h"

#define USER_PREPARED_MAX FOOTPRINT_PREPARED
#define USER_RINGS_MAX    FOOTPRINT_RINGS
#define USER_BUFFERS_MAX  FOOTPRINT_BUFFERS
#define USER_RECORDS_MAX  FOOTPRINT_RECORDS
#define USER_PARTS_MAX    FOOTPRINT_PARTS
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

typedef struct UserCharge {
        User *user; /* NULL: nothing charged */
        UserResource resource;
        uint64_t amount;
} UserCharge;

TAILQ_HEAD(UserJobList, Job);

/* What is still to be done for a person's jobs; backlog_run() does a part of it in each turn. */
typedef struct UserBacklog {
        struct UserJobList ending;       /* jobs whose end is decided */
        struct UserJobList following;    /* jobs whose followers are to be looked at */
        TAILQ_HEAD(, Submitter) closing; /* submitters that are gone, with jobs left */
        TAILQ_ENTRY(User) link;          /* engine->backlog */
        bool is_listed;                  /* in that list */
} UserBacklog;

/* Since the user was made, but for the waits. */
typedef struct UserTotals {
        uint64_t gpu_ns;
        uint64_t n_done;
        uint64_t n_failed;
        uint64_t n_cancelled;
        Waits waits; /* of jobs that ended in the last minute */
} UserTotals;

struct User {
        uid_t uid;
        gid_t gid;
        char *name; /* the uid in decimal if it has no name */
        UserNaming naming;
        gid_t *groups; /* as the system knows them; NULL: not looked up, or the lookup failed */
        size_t n_groups;
        uint64_t look_up_ns; /* not before this time it is looked up again */
        ConfigLimits limits;
        uint64_t used[_USER_RESOURCE_N];

        uint32_t n_parts; /* of a person: its subordinate uids */
        User *person; /* whose limits, weight and share count: itself, or the owner of this subordinate uid */
        Quota *quotas; /* by resource, of all users together */

        struct UserJobList jobs;        /* unfinished */
        UserBacklog backlog;            /* of a person */
        LIST_HEAD(, JobCursor) cursors; /* at its jobs */
        uint32_t n_counts;              /* times that its queued jobs were counted for a listing */
        LIST_HEAD(, Session) sessions;
        uint32_t n_sessions;
        uint32_t n_held;  /* jobs, arenas, modules and others that point to it */
        uint64_t idle_ns; /* since when it had nothing; 0: it has something */
        uint32_t n_waiting;
        uint32_t n_running;

        Allowances allowances; /* of a person */
        LoadPerson loads;      /* of modules; of a person */

        Lane **lanes; /* by device; NULL where the user never had a job */
        size_t n_lanes;

        History *history;
        Duration *duration;
        Suspects suspects; /* kernels that run alone */
        UserTotals totals;
        Decay window; /* GPU-ns */
        uint64_t window_ns;
        uint64_t half_life_ns; /* of the decay of `window` */
        bool is_held;          /* over its GPU seconds: waiting jobs are not dispatched */

        UT_hash_handle hh; /* engine->users */
};

/**
 * user_is_awaited() - the user is being looked up, and user_get() is to be called later
 *
 * Begins the lookup if the user is missing, or if the last one failed a while ago; the latter is not
 * waited for.
 */
bool user_is_awaited(Engine *engine, uid_t uid);
/**
 * user_get() - the user with this uid, made if missing
 *
 * Before clients are served it waits for a lookup. Without an answer the user has no name.
 *
 * Return: 0, or a negative errno.
 */
int user_get(Engine *engine, uid_t uid, gid_t gid, User **ret_user);
/** users_take_answers() - apply what lookups found meanwhile about users that exist. */
void users_take_answers(Engine *engine);
/** users_ask_again() - the configuration is another one: look up what it needs and is not known. */
void users_ask_again(Engine *engine);
/**
 * user_new() - a person
 * @gid:    of its first session, in case the system does not know the uid
 * @name:   what is known of it; its texts become the user's
 * @quotas: by resource, of all users; the caller's, valid as long as the user
 *
 * Return: 0, or -ENOMEM.
 */
int user_new(uid_t uid, gid_t gid, LookupName *name, const Config *config, Quota *quotas,
             User **ret_user);
/** user_free() - NULL is fine. Asserts that nothing is charged. Return: NULL. */
User *user_free(User *user);
DEFINE_CLEANUP(User, user_free)
/** user_hold() - something points to the user: it is not freed before user_release(). Return: the user. */
static inline User *user_hold(User *user) {
        user->n_held++;
        return user;
}
/** user_release() - NULL is fine. */
static inline void user_release(User *user) {
        if (user)
                user->n_held--;
}
/** user_lane() - on a device, by its index. Return: NULL: the user never had a job there. */
static inline Lane *user_lane(const User *user, size_t device) {
        return device < user->n_lanes ? user->lanes[device] : NULL;
}
/** user_leave_person() - before a subordinate uid is freed, with nothing charged. */
void user_leave_person(User *user);
/** user_has_backlog() - list its person in the engine's backlog. Return: the person's backlog. */
UserBacklog *user_has_backlog(User *user, Engine *engine);
/** user_configure() - take limits and weights from a configuration, for its lanes too; existing use stays. */
void user_configure(User *user, const Config *config);

/**
 * user_charge() - count @amount against a limit
 * @charge: zeroed, or undone; user_uncharge() undoes it
 *
 * Return: 0, or USER_E_QUOTA.
 */
int user_charge(User *user, UserCharge *charge, UserResource resource, uint64_t amount);
/**
 * user_recharge() - change what is charged to @amount
 * @charge: of this user and resource, or zeroed
 *
 * Return: 0, or USER_E_QUOTA if that is more and too much: then it is unchanged.
 */
int user_recharge(User *user, UserCharge *charge, UserResource resource, uint64_t amount);
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
/** user_left() - what it can still get of a resource, also of what all users share; UINT64_MAX: no end. */
uint64_t user_left(const User *user, UserResource resource);
/** user_resource_key() - the resource's key in gpuqd.conf; NULL: its limit is fixed. */
const char *user_resource_key(UserResource resource);

/** user_add_gpu_time() - the user used the GPU for @ns, up to now. */
void user_add_gpu_time(User *user, uint64_t ns, uint64_t now_ns);
/** user_window_seconds() - GPU time, decaying over the window; at a steady use this is the use in one window. */
double user_window_seconds(const User *user, uint64_t now_ns);
/** user_over_seconds() - seconds until its GPU time is below the limit if it runs nothing. 0: it is below. */
double user_over_seconds(const User *user, uint64_t now_ns);

#endif

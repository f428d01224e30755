/* SPDX-License-Identifier: Apache-2.0 */
#include "user.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "engine.h"
#include "util/human.h"
#include "util/list.h"
#include "util/log.h"

/* Takes the texts over. */
static void user_take_name(User *user, LookupName *name) {
        user->naming = name->naming;
        if (name->naming == USER_NAMED) {
                free(user->name);
                user->name = TAKE_PTR(name->name);
                user->gid = name->gid;
        }
        if (name->groups) {
                free(user->groups);
                user->groups = TAKE_PTR(name->groups);
                user->n_groups = name->n_groups;
        }
}

static void user_log_name(const User *user, const LookupName *name) {
        if (name->naming == USER_NAME_UNKNOWN)
                log_warning("cannot look up the name of uid %u: %s; its [user NAME] section and "
                            "its classes do not apply until a lookup succeeds",
                            (unsigned)user->uid, strerror(-name->error));
        if (name->groups_error < 0)
                log_warning("cannot look up the groups of user %s: %s; no [class NAME] section "
                            "applies until a lookup succeeds",
                            user->name, strerror(-name->groups_error));
}

int user_new(uid_t uid, gid_t gid, LookupName *name, const Config *config, Quota *quotas,
             User **ret_user) {
        _cleanup_(user_freep) User *user = NULL;
        int r;

        user = calloc(1, sizeof(*user));
        if (!user)
                return -ENOMEM;

        user->uid = uid;
        user->gid = gid;
        user->person = user;
        user->quotas = quotas;
        if (asprintf(&user->name, "%u", (unsigned)uid) < 0) {
                user->name = NULL;
                return -ENOMEM;
        }
        TAILQ_INIT(&user->jobs);
        TAILQ_INIT(&user->backlog.ending);
        TAILQ_INIT(&user->backlog.following);
        TAILQ_INIT(&user->backlog.closing);
        LIST_INIT(&user->sessions);
        load_person_init(&user->loads);
        LIST_INIT(&user->cursors);

        r = history_new(&user->history);
        if (r < 0)
                return r;
        r = duration_new(&user->duration);
        if (r < 0)
                return r;

        user_take_name(user, name);
        user_log_name(user, name);
        user_configure(user, config);
        *ret_user = TAKE_PTR(user);
        return 0;
}

User *user_free(User *user) {
        if (!user)
                return NULL;

        assert(TAILQ_EMPTY(&user->jobs));
        assert(LIST_EMPTY(&user->sessions));
        assert(user->n_held == 0);
        assert(TAILQ_EMPTY(&user->loads.waiting) && user->loads.n_running == 0);
        for (size_t i = 0; i < _USER_RESOURCE_N; ++i)
                assert(user->used[i] == 0);

        duration_free(user->duration);
        history_free(user->history);
        free(user->lanes);
        free(user->groups);
        free(user->name);
        free(user);
        return NULL;
}

void user_leave_person(User *user) {
        if (user->person == user)
                return;
        user->person->n_parts--;
        user_release(user->person);
        user->person = user;
}

UserBacklog *user_has_backlog(User *user, Engine *engine) {
        User *person = user->person;

        if (!person->backlog.is_listed)
                TAILQ_INSERT_TAIL(&engine->backlog, person, backlog.link);
        person->backlog.is_listed = true;
        return &person->backlog;
}

void user_configure(User *user, const Config *config) {
        user->limits =
                *config_limits_in(config, user->name, user->uid, user->groups, user->n_groups);
        user->limits.weight = config_weight(config, &user->limits, user->name, user->uid);
        user->window_ns = config->gpu_window_s * 1000000000ull;
        /* With a half-life of ln 2 windows, steady use sums to the use in one window. */
        user->half_life_ns = (uint64_t)((double)user->window_ns * M_LN2);
        for (size_t i = 0; i < user->n_lanes; ++i)
                if (user->lanes[i])
                        fairshare_set_weight(user->lanes[i]->device->share, &user->lanes[i]->share,
                                             user->limits.weight);
}

/* ---- persons --------------------------------------------------------------- */

static int user_add(Engine *engine, uid_t uid, gid_t gid, LookupName *name, User **ret_user) {
        User *user;
        int r;

        r = user_new(uid, gid, name, engine->config, engine->quotas, &user);
        if (r < 0)
                return r;
        user->look_up_ns = engine_now(engine) + USER_LOOK_UP_NS;
        HASH_ADD(hh, engine->users, uid, sizeof(user->uid), user);
        if (!user->hh.tbl) {
                user_free(user);
                return -ENOMEM;
        }
        *ret_user = user;
        return 0;
}

_Static_assert(HISTORY_MAX *(sizeof(HistoryEntry) + 6 + HISTORY_TEXT_MAX) <= FOOTPRINT_HISTORY,
               "a history takes more than gpuqd --check says");

static User *user_find(const Engine *engine, uid_t uid) {
        User *user;

        HASH_FIND(hh, engine->users, &uid, sizeof(uid), user);
        return user;
}

/* A uid with a name is a user of its own, even if it is in a range of subordinate uids. So is a
 * uid whose owner is unknown. */
static int user_join_person(Engine *engine, User *user, LookupAnswer *answer) {
        User *person = answer->has_owner ? user_find(engine, answer->owner) : NULL;
        char *name;
        int r;

        if (!answer->has_owner)
                return 0;
        r = person ? 0 : user_add(engine, answer->owner, (gid_t)-1, &answer->owner_name, &person);
        if (r < 0)
                return r;
        if (person->naming != USER_NAMED)
                return 0;
        if (engine->ledger && ledger_join(engine->ledger, user->uid, person->uid) < 0)
                return -ENOMEM;
        if (asprintf(&name, "%s of %s", user->name, person->name) < 0)
                return -ENOMEM;
        free(user->name);
        user->name = name;
        user->person = user_hold(person);
        person->n_parts++;
        return 0;
}

/* ---- lookups --------------------------------------------------------------- */

static bool user_wants_groups(const Engine *engine) {
        return engine->config->sections[CONFIG_CLASSES];
}

/* What its name or its groups would be is not known. */
static bool user_is_vague(const User *user, const Engine *engine) {
        return user->naming == USER_NAME_UNKNOWN ||
               (user->naming == USER_NAMED && !user->groups && user_wants_groups(engine));
}

/* A late answer does not make it a part of its owner: what it has is charged to it. */
static void user_take_answer(Engine *engine, User *user, LookupAnswer *answer) {
        user_take_name(user, &answer->self);
        user_log_name(user, &answer->self);
        user_configure(user, engine->config);
}

static void user_ask_again(Engine *engine, User *user) {
        uint64_t now_ns = engine_now(engine);
        LookupAnswer answer;

        if (!user_is_vague(user, engine) || now_ns < user->look_up_ns)
                return;
        user->look_up_ns = now_ns + USER_LOOK_UP_NS;
        if (engine->lookups) {
                lookups_ask(engine->lookups, user->uid, user_wants_groups(engine), now_ns);
                return;
        }
        lookup_run(user->uid, user_wants_groups(engine), &answer);
        user_take_answer(engine, user, &answer);
        lookup_answer_clear(&answer);
}

bool user_is_awaited(Engine *engine, uid_t uid) {
        User *user = user_find(engine, uid);
        uint64_t now_ns = engine_now(engine);

        if (user) {
                user_ask_again(engine, user);
                return false;
        }
        if (!engine->lookups)
                return false;
        lookups_ask(engine->lookups, uid, user_wants_groups(engine), now_ns);
        return lookups_is_awaited(engine->lookups, uid, now_ns);
}

static void user_look_up(Engine *engine, uid_t uid, LookupAnswer *ret_answer) {
        Lookups *lookups = engine->lookups;

        if (!lookups) {
                lookup_run(uid, user_wants_groups(engine), ret_answer);
                return;
        }
        lookups_ask(lookups, uid, user_wants_groups(engine), engine_now(engine));
        lookups_await(lookups, uid);
        if (!lookups_take(lookups, uid, ret_answer))
                *ret_answer = (LookupAnswer){
                        .self = {.naming = USER_NAME_UNKNOWN, .error = -ETIMEDOUT},
                };
}

int user_get(Engine *engine, uid_t uid, gid_t gid, User **ret_user) {
        User *user = user_find(engine, uid);
        LookupAnswer answer;
        int r;

        if (!user) {
                user_look_up(engine, uid, &answer);
                r = user_add(engine, uid, gid, &answer.self, &user);
                if (r == 0)
                        r = user_join_person(engine, user, &answer);
                lookup_answer_clear(&answer);
                if (r < 0)
                        return r;
        }
        *ret_user = user;
        return 0;
}

void users_take_answers(Engine *engine) {
        LookupAnswer answer;
        User *user;
        uid_t uid;

        while (engine->lookups && lookups_next(engine->lookups, &uid, &answer)) {
                user = user_find(engine, uid);
                if (user)
                        user_take_answer(engine, user, &answer);
                lookup_answer_clear(&answer);
        }
}

void users_ask_again(Engine *engine) {
        User *user;

        for (user = engine->users; user; user = user->hh.next) {
                user->look_up_ns = 0;
                user_ask_again(engine, user);
        }
}

/* ---- limits ---------------------------------------------------------------- */

static uint64_t user_own_limit(const User *user, UserResource resource) {
        switch (resource) {
                case USER_SESSIONS:
                        return user->limits.sessions;
                case USER_JOBS:
                        return user->limits.jobs;
                case USER_QUEUED_BYTES:
                        return user->limits.queued_bytes;
                case USER_ARENAS:
                        return UINT64_MAX; /* the quota is the limit */
                case USER_ARENA_BYTES:
                        return user->limits.arena_bytes;
                case USER_DEVICE_BYTES:
                        return user->limits.device_bytes;
                case USER_MODULES:
                        return user->limits.modules;
                case USER_PREPARED_BYTES:
                        return USER_PREPARED_MAX;
                case USER_DETACHED_JOBS:
                        return user->limits.detached_jobs;
                case USER_DETACHED_BYTES:
                        return user->limits.detached_bytes;
                case USER_BUFFER_BYTES:
                        return USER_BUFFERS_MAX;
                case USER_RING_BYTES:
                        return USER_RINGS_MAX;
                case USER_RECORD_BYTES:
                        return USER_RECORDS_MAX;
                case USER_WAITS:
                        return LIMIT_USER_WAITS;
                case USER_TRANSIT_FDS:
                case USER_WORKERS:
                        return UINT64_MAX; /* the quota is the limit */
                case _USER_RESOURCE_N:
                        break;
        }
        return 0;
}

uint64_t user_limit(const User *user, UserResource resource) {
        return user_own_limit(user->person, resource);
}

uint64_t user_used(const User *user, UserResource resource) {
        return user->person->used[resource];
}

uint64_t user_left(const User *user, UserResource resource) {
        uint64_t used = user_used(user, resource);
        uint64_t most = MIN(user_limit(user, resource), quota_most(&user->quotas[resource], used));

        if (most == UINT64_MAX)
                return UINT64_MAX;
        return used < most ? most - used : 0;
}

const char *user_resource_key(UserResource resource) {
        static const char *const keys[_USER_RESOURCE_N] = {
                [USER_SESSIONS] = "sessions",           [USER_JOBS] = "jobs",
                [USER_QUEUED_BYTES] = "queued_bytes",   [USER_ARENA_BYTES] = "arena_bytes",
                [USER_DEVICE_BYTES] = "device_bytes",   [USER_MODULES] = "modules",
                [USER_DETACHED_JOBS] = "detached_jobs", [USER_DETACHED_BYTES] = "detached_bytes",
        };

        return keys[resource];
}

/* A reload may have put the limit below the use. */
static bool user_is_within_limit(const User *person, UserResource resource, uint64_t amount) {
        uint64_t limit = user_own_limit(person, resource), used = person->used[resource];

        return used <= limit && amount <= limit - used;
}

bool user_may_charge(const User *user, UserResource resource, uint64_t amount) {
        uint64_t used = user_used(user, resource);
        uint64_t most = quota_most(&user->quotas[resource], used);

        return user_is_within_limit(user->person, resource, amount) && used <= most &&
               amount <= most - used;
}

int user_charge(User *user, UserCharge *charge, UserResource resource, uint64_t amount) {
        User *person = user->person;

        assert(!charge->user);

        if (!user_is_within_limit(person, resource, amount) ||
            !quota_take(&person->quotas[resource], person->used[resource], amount))
                return USER_E_QUOTA;
        person->used[resource] += amount;
        *charge = (UserCharge){.user = person, .resource = resource, .amount = amount};
        return 0;
}

void user_uncharge(UserCharge *charge) {
        User *person = charge->user;

        if (!person)
                return;

        assert(person->used[charge->resource] >= charge->amount);
        quota_give(&person->quotas[charge->resource], person->used[charge->resource],
                   charge->amount);
        person->used[charge->resource] -= charge->amount;
        *charge = (UserCharge){};
}

int user_recharge(User *user, UserCharge *charge, UserResource resource, uint64_t amount) {
        UserCharge more = {};
        int r;

        if (amount < charge->amount) {
                UserCharge less = *charge;

                less.amount -= amount;
                user_uncharge(&less);
        } else {
                r = user_charge(user, &more, resource, amount - charge->amount);
                if (r)
                        return r;
        }
        *charge =
                amount ? (UserCharge){.user = user->person, .resource = resource, .amount = amount}
                       : (UserCharge){};
        return 0;
}

static Human user_amount(UserResource resource, uint64_t amount) {
        Human human;

        if (resource == USER_ARENA_BYTES || resource == USER_DEVICE_BYTES ||
            resource == USER_DETACHED_BYTES || resource == USER_QUEUED_BYTES ||
            resource == USER_RECORD_BYTES)
                return human_bytes(amount);
        snprintf(human.text, sizeof(human.text), "%llu", (unsigned long long)amount);
        return human;
}

/* What is short is not the user's limit but what all users share. */
static Failure *user_shortage_failure(const User *user, UserResource resource, uint64_t asked) {
        static const char *const names[_USER_RESOURCE_N] = {
                [USER_SESSIONS] = "connections",
                [USER_QUEUED_BYTES] = "memory for unfinished jobs",
                [USER_ARENAS] = "arenas",
                [USER_MODULES] = "modules",
                [USER_ARENA_BYTES] = "bytes of host memory",
                [USER_WORKERS] = "worker processes",
        };
        const Quota *quota = &user->quotas[resource];
        uint64_t used = user_used(user, resource);

        return failure_new(FAILURE_QUOTA,
                           "too few %s are left for user %s: %s requested, %s in use, at most %s "
                           "while all users have %s of %s; free some, or try again later",
                           names[resource], user->name, user_amount(resource, asked).text,
                           user_amount(resource, used).text,
                           user_amount(resource, quota_most(quota, used)).text,
                           user_amount(resource, quota->taken).text,
                           user_amount(resource, quota->capacity).text);
}

Failure *user_quota_failure(const User *user, UserResource resource, uint64_t asked) {
        const char *key = user_resource_key(resource);

        if (resource == USER_WAITS)
                return failure_new(FAILURE_QUOTA,
                                   "%llu concurrent waits and fetches of user %s; the limit is %u",
                                   (unsigned long long)user_used(user, resource),
                                   user->person->name, LIMIT_USER_WAITS);
        if (user_is_within_limit(user->person, resource, asked))
                return user_shortage_failure(user, resource, asked);
        if (!key)
                return failure_new(FAILURE_QUOTA,
                                   "gpuqd holds too much for user %s: %s requested, %s of %s in "
                                   "use for open arenas, modules, waits, detached jobs and unread "
                                   "texts; close or fetch some, this limit is fixed",
                                   user->person->name, user_amount(resource, asked).text,
                                   user_amount(resource, user_used(user, resource)).text,
                                   user_amount(resource, user_limit(user, resource)).text);
        return failure_new(FAILURE_QUOTA,
                           "over the limit %s of user %s: %s requested, %s of %s in use; see %s in "
                           "gpuqd.conf",
                           key, user->person->name, user_amount(resource, asked).text,
                           user_amount(resource, user_used(user, resource)).text,
                           user_amount(resource, user_limit(user, resource)).text, key);
}

void user_add_gpu_time(User *user, uint64_t ns, uint64_t now_ns) {
        User *person = user->person;

        user->totals.gpu_ns += ns;
        decay_add(&person->window, person->half_life_ns, (double)ns, now_ns);
}

double user_window_seconds(const User *user, uint64_t now_ns) {
        const User *person = user->person;

        return decay_sum(&person->window, person->half_life_ns, now_ns) / 1e9;
}

double user_over_seconds(const User *user, uint64_t now_ns) {
        const User *person = user->person;
        double limit = (double)person->limits.gpu_seconds, used;

        if (!person->limits.gpu_seconds)
                return 0;
        used = user_window_seconds(person, now_ns);
        return used > limit ? log(used / limit) * (double)person->window_ns / 1e9 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not uv_queue_work(): libuv aborts if it cannot start its threads, and lookups that never end would
 * occupy its few threads for ever.
 */
#include "lookup.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "subids.h"
#include "util/list.h"
#include "util/names.h"
#include "util/table.h"

#define LOOKUP_STACK_BYTES (1u << 20) /* name services are written for ordinary stacks */

typedef enum LookupState {
        LOOKUP_WAITING, /* for a thread */
        LOOKUP_RUNNING,
        LOOKUP_DONE,
} LookupState;

/* The loop's, but for the answer, which is the thread's while it is RUNNING. */
typedef struct Lookup {
        Lookups *lookups;
        uid_t uid;
        bool wants_groups;
        ConfigNames *names; /* of LOOKUP_NAMES: the thread's while it is RUNNING */
        LookupState state;
        uint64_t asked_ns;
        LookupAnswer answer;
        TAILQ_ENTRY(Lookup) link; /* lookups->waiting, ->ended or ->done */
        UT_hash_handle hh;        /* lookups->table */
} Lookup;

TAILQ_HEAD(LookupList, Lookup);

struct Lookups {
        uv_async_t async;
        void (*answered)(void *userdata);
        void *userdata;
        Lookup *table; /* by uid */
        struct LookupList waiting;
        struct LookupList done;
        unsigned n_running;
        uint64_t patience_ns; /* left of lookups_await() */

        pthread_mutex_t lock; /* of these: */
        pthread_cond_t cond;
        struct LookupList ended; /* their threads have ended */
        bool is_closed;          /* a thread frees its lookup itself */
        unsigned n_left;         /* then: threads, and the loop */
};

/* ---- in the thread --------------------------------------------------------- */

static void lookup_name(uid_t uid, bool wants_groups, LookupName *name) {
        int r;

        r = names_find_uid(uid, &name->name, &name->gid);
        name->naming = r == 0 ? USER_NAMED : r < 0 ? USER_NAME_UNKNOWN : USER_NAMELESS;
        name->error = MIN(r, 0);
        if (r == 0 && wants_groups)
                name->groups_error =
                        names_find_groups(name->name, name->gid, &name->groups, &name->n_groups);
}

void lookup_run(uid_t uid, bool wants_groups, LookupAnswer *ret_answer) {
        LookupAnswer answer = {};
        int r;

        lookup_name(uid, wants_groups, &answer.self);
        if (answer.self.naming == USER_NAMELESS) {
                r = subids_owner(uid, &answer.owner);
                answer.has_owner = r == 0;
                if (r == 0)
                        lookup_name(answer.owner, wants_groups, &answer.owner_name);
                if (r < 0) {
                        answer.self.naming = USER_NAME_UNKNOWN;
                        answer.self.error = r;
                }
        }
        *ret_answer = answer;
}

void lookup_name_clear(LookupName *name) {
        free(name->name);
        free(name->groups);
        *name = (LookupName){};
}

void lookup_answer_clear(LookupAnswer *answer) {
        lookup_name_clear(&answer->self);
        lookup_name_clear(&answer->owner_name);
}

/* By the loop and by each thread that is left when it closes: the last one frees it. */
static void lookups_leave(Lookups *lookups) {
        bool is_last;

        pthread_mutex_lock(&lookups->lock);
        is_last = --lookups->n_left == 0;
        pthread_mutex_unlock(&lookups->lock);
        if (!is_last)
                return;
        pthread_cond_destroy(&lookups->cond);
        pthread_mutex_destroy(&lookups->lock);
        free(lookups);
}

static void lookup_clear(Lookup *lookup) {
        lookup_answer_clear(&lookup->answer);
        lookup->names = config_names_free(lookup->names);
}

static void *lookup_thread(void *userdata) {
        Lookup *lookup = userdata;
        Lookups *lookups = lookup->lookups;
        bool is_closed;

        if (lookup->names)
                config_names_find(lookup->names);
        else
                lookup_run(lookup->uid, lookup->wants_groups, &lookup->answer);
        pthread_mutex_lock(&lookups->lock);
        is_closed = lookups->is_closed;
        if (!is_closed) {
                TAILQ_INSERT_TAIL(&lookups->ended, lookup, link);
                pthread_cond_signal(&lookups->cond);
                uv_async_send(&lookups->async);
        }
        pthread_mutex_unlock(&lookups->lock);
        if (is_closed) {
                lookup_clear(lookup);
                free(lookup);
                lookups_leave(lookups);
        }
        return NULL;
}

/* ---- one lookup ------------------------------------------------------------ */

static Lookup *lookups_find(const Lookups *lookups, uid_t uid) {
        Lookup *lookup;

        HASH_FIND(hh, lookups->table, &uid, sizeof(uid), lookup);
        return lookup;
}

static void lookup_free(Lookup *lookup) {
        HASH_DEL(lookup->lookups->table, lookup);
        lookup_clear(lookup);
        free(lookup);
}

static int lookup_start_thread(Lookup *lookup) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;
        int r;

        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, LOOKUP_STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, lookup_thread, lookup);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
        return -r;
}

/* A limit of threads is a failure of the name service like others: it is asked again later. */
static void lookup_fail(Lookup *lookup, int r) {
        lookup->answer.self = (LookupName){.naming = USER_NAME_UNKNOWN, .error = r};
        lookup->state = LOOKUP_DONE;
        TAILQ_INSERT_TAIL(&lookup->lookups->done, lookup, link);
        uv_async_send(&lookup->lookups->async);
}

static void lookup_start(Lookup *lookup) {
        int r;

        lookup->state = LOOKUP_RUNNING;
        r = lookup_start_thread(lookup);
        if (r < 0)
                lookup_fail(lookup, r);
        else
                lookup->lookups->n_running++;
}

/* ---- all lookups ----------------------------------------------------------- */

static void lookups_start(Lookups *lookups) {
        Lookup *lookup;

        while (lookups->n_running < LOOKUPS_MAX && (lookup = TAILQ_FIRST(&lookups->waiting))) {
                TAILQ_REMOVE(&lookups->waiting, lookup, link);
                lookup_start(lookup);
        }
}

/* Under the lock. */
static void lookups_collect(Lookups *lookups) {
        Lookup *lookup;

        while ((lookup = TAILQ_FIRST(&lookups->ended))) {
                TAILQ_REMOVE(&lookups->ended, lookup, link);
                TAILQ_INSERT_TAIL(&lookups->done, lookup, link);
                lookup->state = LOOKUP_DONE;
                lookups->n_running--;
        }
}

static void lookups_on_ended(uv_async_t *async) {
        Lookups *lookups = async->data;

        pthread_mutex_lock(&lookups->lock);
        lookups_collect(lookups);
        pthread_mutex_unlock(&lookups->lock);
        lookups_start(lookups);
        lookups->answered(lookups->userdata);
}

int lookups_new(uv_loop_t *loop, void (*answered)(void *userdata), void *userdata,
                Lookups **ret_lookups) {
        pthread_condattr_t clock;
        Lookups *lookups;
        int r;

        lookups = calloc(1, sizeof(*lookups));
        if (!lookups)
                return -ENOMEM;
        r = uv_async_init(loop, &lookups->async, lookups_on_ended);
        if (r < 0) {
                free(lookups);
                return r;
        }
        lookups->async.data = lookups;
        lookups->answered = answered;
        lookups->userdata = userdata;
        lookups->patience_ns = LOOKUP_PATIENCE_NS;
        TAILQ_INIT(&lookups->waiting);
        TAILQ_INIT(&lookups->ended);
        TAILQ_INIT(&lookups->done);
        pthread_mutex_init(&lookups->lock, NULL);
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&lookups->cond, &clock);
        pthread_condattr_destroy(&clock);
        *ret_lookups = lookups;
        return 0;
}

static void lookups_on_close(uv_handle_t *handle) {
        lookups_leave(handle->data);
}

bool lookups_close(Lookups *lookups) {
        struct LookupList *lists[] = {&lookups->waiting, &lookups->done};
        bool is_running;
        Lookup *lookup;

        pthread_mutex_lock(&lookups->lock);
        lookups_collect(lookups);
        HASH_CLEAR(hh, lookups->table);
        is_running = lookups->n_running > 0;
        lookups->is_closed = true;
        lookups->n_left = lookups->n_running + 1;
        pthread_mutex_unlock(&lookups->lock);
        for (size_t i = 0; i < ARRAY_SIZE(lists); ++i)
                while ((lookup = TAILQ_FIRST(lists[i]))) {
                        TAILQ_REMOVE(lists[i], lookup, link);
                        lookup_clear(lookup);
                        free(lookup);
                }
        uv_close((uv_handle_t *)&lookups->async, lookups_on_close);
        return is_running;
}

/* Return: NULL: it was asked for, or there is no memory, and nobody waits for it. */
static Lookup *lookups_add(Lookups *lookups, uid_t uid, uint64_t now_ns) {
        Lookup *lookup = lookups_find(lookups, uid);

        if (lookup)
                return NULL;
        lookup = calloc(1, sizeof(*lookup));
        if (!lookup)
                return NULL;
        *lookup = (Lookup){.lookups = lookups, .uid = uid, .asked_ns = now_ns};
        HASH_ADD(hh, lookups->table, uid, sizeof(lookup->uid), lookup);
        if (!lookup->hh.tbl) {
                free(lookup);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&lookups->waiting, lookup, link);
        return lookup;
}

void lookups_ask(Lookups *lookups, uid_t uid, bool wants_groups, uint64_t now_ns) {
        Lookup *lookup = lookups_add(lookups, uid, now_ns);

        if (!lookup)
                return;
        lookup->wants_groups = wants_groups;
        lookups_start(lookups);
}

bool lookups_ask_names(Lookups *lookups, ConfigNames *names, uint64_t now_ns) {
        Lookup *lookup = lookups_add(lookups, LOOKUP_NAMES, now_ns);

        if (!lookup) {
                config_names_free(names);
                return false;
        }
        lookup->names = names;
        lookups_start(lookups);
        return true;
}

ConfigNames *lookups_take_names(Lookups *lookups) {
        Lookup *lookup = lookups_find(lookups, LOOKUP_NAMES);
        ConfigNames *names;

        if (!lookup || lookup->state != LOOKUP_DONE)
                return NULL;
        TAILQ_REMOVE(&lookups->done, lookup, link);
        names = TAKE_PTR(lookup->names);
        lookup_free(lookup);
        return names;
}

bool lookups_is_awaited(const Lookups *lookups, uid_t uid, uint64_t now_ns) {
        const Lookup *lookup = lookups_find(lookups, uid);

        return lookup && lookup->state != LOOKUP_DONE &&
               now_ns < lookup->asked_ns + LOOKUP_PATIENCE_NS;
}

void lookups_await(Lookups *lookups, uid_t uid) {
        const Lookup *lookup = lookups_find(lookups, uid);
        uint64_t begin_ns = uv_hrtime(), end_ns = begin_ns + lookups->patience_ns;
        struct timespec until = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
        int r = 0;

        pthread_mutex_lock(&lookups->lock);
        while (lookup && lookup->state == LOOKUP_RUNNING && lookups->patience_ns && r == 0) {
                if (TAILQ_EMPTY(&lookups->ended))
                        r = pthread_cond_timedwait(&lookups->cond, &lookups->lock, &until);
                lookups_collect(lookups);
        }
        pthread_mutex_unlock(&lookups->lock);
        lookups->patience_ns -= MIN(uv_hrtime() - begin_ns, lookups->patience_ns);
}

void lookups_serve(Lookups *lookups) {
        lookups->patience_ns = 0;
}

/* The answer of one that is RUNNING is taken when it comes. */
bool lookups_take(Lookups *lookups, uid_t uid, LookupAnswer *ret_answer) {
        Lookup *lookup = lookups_find(lookups, uid);
        bool is_done = lookup && lookup->state == LOOKUP_DONE;

        if (!lookup || lookup->state == LOOKUP_RUNNING)
                return false;
        TAILQ_REMOVE(is_done ? &lookups->done : &lookups->waiting, lookup, link);
        *ret_answer = lookup->answer;
        lookup->answer = (LookupAnswer){};
        lookup_free(lookup);
        return is_done;
}

bool lookups_next(Lookups *lookups, uid_t *ret_uid, LookupAnswer *ret_answer) {
        Lookup *lookup = TAILQ_FIRST(&lookups->done);

        if (lookup && lookup->uid == LOOKUP_NAMES)
                lookup = TAILQ_NEXT(lookup, link);
        if (!lookup)
                return false;
        *ret_uid = lookup->uid;
        return lookups_take(lookups, lookup->uid, ret_answer);
}

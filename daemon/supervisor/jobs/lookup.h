/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_LOOKUP_H
#define GPUQ_SUPERVISOR_LOOKUP_H

/*
 * Lookup
 *
 * Asks the system who a uid is: its name and groups, or whose subordinate uid it is; and what it knows
 * of the names in the configuration. A name service on the network may be slow or never answer, so
 * each question has a thread of its own. At most LOOKUPS_MAX of them ask at a time; the other
 * questions wait for one of these to end.
 *
 * A connection waits for the answer for LOOKUP_PATIENCE_NS. Without one the user is served as if
 * the lookup had failed, and a late answer still counts. So a name service that never answers costs
 * each new user a moment, and nobody else anything.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "util/config-names.h"
#include "util/macro.h"

#define LOOKUPS_MAX        32u
#define LOOKUP_PATIENCE_NS 5000000000ull
#define LOOKUP_NAMES       ((uid_t)-1) /* nobody's uid: the question about the configuration's names */

typedef enum UserNaming {
        USER_NAMED,
        USER_NAMELESS,     /* the system knows no name */
        USER_NAME_UNKNOWN, /* the lookup failed, or has not ended */
} UserNaming;

typedef struct LookupName {
        UserNaming naming;
        char *name; /* NULL unless NAMED */
        gid_t gid;
        gid_t *groups; /* NULL: not asked for, or no answer */
        size_t n_groups;
        int error;        /* UNKNOWN: a negative errno */
        int groups_error; /* 0, or a negative errno */
} LookupName;

typedef struct LookupAnswer {
        LookupName self;
        bool has_owner; /* it is a subordinate uid of: */
        uid_t owner;
        LookupName owner_name;
} LookupAnswer;

typedef struct Lookups Lookups;

/** lookup_run() - ask now, for as long as it takes; in any thread. @wants_groups: ask for groups, too. */
void lookup_run(uid_t uid, bool wants_groups, LookupAnswer *ret_answer);
/** lookup_name_clear() - free the texts. */
void lookup_name_clear(LookupName *name);
/** lookup_answer_clear() - the same. */
void lookup_answer_clear(LookupAnswer *answer);

/** lookups_new() - @answered: called in the loop when there is an answer. Return: 0, or a negative errno. */
int lookups_new(uv_loop_t *loop, void (*answered)(void *userdata), void *userdata,
                Lookups **ret_lookups);
/**
 * lookups_close() - freed once the loop has run and all lookups have ended
 *
 * Return: whether a lookup is still running. Then the program must end by _exit(): the thread may be
 * anywhere in the name service's code.
 */
bool lookups_close(Lookups *lookups);
/** lookups_ask() - unless it was asked for and not taken yet. */
void lookups_ask(Lookups *lookups, uid_t uid, bool wants_groups, uint64_t now_ns);
/**
 * lookups_ask_names() - the same of a configuration's names; lookups_await() takes LOOKUP_NAMES
 * @names: consumed
 *
 * Return: whether they are asked for: else an earlier such question has no answer yet, or there is no memory.
 */
bool lookups_ask_names(Lookups *lookups, ConfigNames *names, uint64_t now_ns);
/** lookups_take_names() - Return: the names that were looked up, the caller's; NULL: there is no answer. */
ConfigNames *lookups_take_names(Lookups *lookups);
/** lookups_is_awaited() - it was asked for, and is worth waiting for. */
bool lookups_is_awaited(const Lookups *lookups, uid_t uid, uint64_t now_ns);
/**
 * lookups_await() - wait for an answer that was asked for, before clients are served
 *
 * All such waits together take at most LOOKUP_PATIENCE_NS.
 */
void lookups_await(Lookups *lookups, uid_t uid);
/** lookups_serve() - clients are served from now on: lookups_await() does not wait any more. */
void lookups_serve(Lookups *lookups);
/** lookups_take() - Return: whether there was an answer; it is the caller's. Else none is waited for any more. */
bool lookups_take(Lookups *lookups, uid_t uid, LookupAnswer *ret_answer);
/** lookups_next() - the same for any user. */
bool lookups_next(Lookups *lookups, uid_t *ret_uid, LookupAnswer *ret_answer);

#endif

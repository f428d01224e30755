/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_ACTIVITY_H
#define GPUQ_UTIL_ACTIVITY_H

/*
 * Activity
 *
 * What the supervisor is doing now, in a page of memory that the keeper reads when it kills a
 * supervisor that hangs. The page holds numbers alone, no text of users. The supervisor pays a few
 * plain stores for each request and for each message of a worker. Without a page (tests) it
 * stores into memory of its own.
 *
 * The keeper does not trust the page: it maps it read-only, seals keep its size, and
 * activity_read() reads each number once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ActivityKind {
        ACTIVITY_NONE,       /* nothing that has a name here */
        ACTIVITY_EVENTS,     /* waits for events, or handles one of no kind below */
        ACTIVITY_START,      /* starts */
        ACTIVITY_TAKEOVER,   /* takes over from the previous supervisor */
        ACTIVITY_KEEPER,     /* a message of the keeper; detail: KeeperKind */
        ACTIVITY_CONNECTION, /* accepts connections */
        ACTIVITY_REQUEST, /* id: session; detail: number of the request in gpuq.proto; 0: reads its bytes */
        ACTIVITY_WORKER,   /* id: worker; detail: WorkerMessageKind */
        ACTIVITY_CLOSE,    /* ends a session */
        ACTIVITY_ENDING,   /* ends jobs; id: session */
        ACTIVITY_DISPATCH, /* chooses jobs and writes them to workers */
        ACTIVITY_OUTPUT,   /* writes messages to a client; id: session */
        ACTIVITY_TICK,     /* periodic work */
        ACTIVITY_DISK,     /* detached jobs or the history: an answer of a disk thread */
        ACTIVITY_END,      /* ends */
        _ACTIVITY_KIND_N,
} ActivityKind;

typedef struct Activity {
        uint32_t kind; /* ActivityKind */
        uint32_t detail;
        uint32_t uid; /* ACTIVITY_NOBODY: it is not one user's */
        uint32_t id;
} Activity;

#define ACTIVITY_NOBODY UINT32_MAX

/*
 * All stores come from the supervisor's loop, and from a signal handler in the same thread. Two
 * words are an activity: it is noted for each request, and few instructions are to do it.
 */
typedef struct ActivityPage {
        volatile uint64_t what;     /* kind, detail << 32 */
        volatile uint64_t whose;    /* uid, id << 32 */
        volatile uint64_t since_ns; /* monotonic: when a sample first found it; 0: none has yet */
        volatile uint64_t sampled_what, sampled_whose; /* by that sample */
} ActivityPage;

#define ACTIVITY_PAGE_BYTES 4096u

/* Where this process stores; never NULL. */
extern ActivityPage *activity_page;

/** activity_begin() - from now on the process is doing this, until it says what it does next. */
static inline void activity_begin(ActivityKind kind, uint32_t detail, uint32_t uid, uint32_t id) {
        activity_page->what = kind | (uint64_t)detail << 32;
        activity_page->whose = uid | (uint64_t)id << 32;
}

/** activity_shift() - to one that is not any user's. */
static inline void activity_shift(ActivityKind kind) {
        activity_begin(kind, 0, ACTIVITY_NOBODY, 0);
}

/** activity_now() - of this process. */
Activity activity_now(void);
/** activity_pause() - the loop gets to other work: how long one has been going on counts from now. */
void activity_pause(void);
/** activity_sample() - in a signal handler: note how long this has been going on. */
void activity_sample(uint64_t now_ns);

/** activity_adopt() - store into page @fd from now on; stays the caller's. Return: 0, or a negative errno: that is no page. */
int activity_adopt(int fd);

/** activity_new() - a page for another process. @ret_fd: to inherit. @ret_page: read-only. Return: 0 or a negative errno. */
int activity_new(int *ret_fd, const ActivityPage **ret_page);
/** activity_free() - NULL is fine. Return: NULL. */
const ActivityPage *activity_free(const ActivityPage *page);

/**
 * activity_read() - the activity, whatever the page holds
 * @ret_for_ms: how long it has been going on; 0: not known
 *
 * A kind that does not exist becomes ACTIVITY_NONE.
 */
Activity activity_read(const ActivityPage *page, uint64_t now_ns, uint64_t *ret_for_ms);
/** activity_describe() - "serving request cancel (session 5, uid 1001)". Details that do not exist appear as numbers. */
void activity_describe(const Activity *activity, char *text, size_t n_text);
/** activity_request_name() - of the request with that number in gpuq.proto. Return: NULL: there is none. */
const char *activity_request_name(uint32_t number);
/** activity_is_same() - the same work for the same user. */
bool activity_is_same(const Activity *one, const Activity *other);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "util/activity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/macro.h"

#define ACTIVITY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(ActivityPage) <= ACTIVITY_PAGE_BYTES, "one page holds it");

static ActivityPage activity_own;
ActivityPage *activity_page = &activity_own;

/* ---- the process that works -------------------------------------------------- */

static Activity activity_unpack(uint64_t what, uint64_t whose) {
        return (Activity){
                .kind = (uint32_t)what,
                .detail = (uint32_t)(what >> 32),
                .uid = (uint32_t)whose,
                .id = (uint32_t)(whose >> 32),
        };
}

Activity activity_now(void) {
        return activity_unpack(activity_page->what, activity_page->whose);
}

void activity_pause(void) {
        activity_page->since_ns = 0;
}

static bool activity_is_sampled(const ActivityPage *page, uint64_t what, uint64_t whose) {
        return page->sampled_what == what && page->sampled_whose == whose;
}

void activity_sample(uint64_t now_ns) {
        ActivityPage *page = activity_page;

        if (page->since_ns && activity_is_sampled(page, page->what, page->whose))
                return;
        page->since_ns = now_ns;
        page->sampled_what = page->what;
        page->sampled_whose = page->whose;
}

/* The descriptor may be any that the starter of this process left open. */
static bool activity_is_page(int fd) {
        int seals = fcntl(fd, F_GET_SEALS);
        struct stat st;

        return seals >= 0 && (seals & ACTIVITY_SEALS) == ACTIVITY_SEALS && fstat(fd, &st) == 0 &&
               st.st_size == ACTIVITY_PAGE_BYTES;
}

int activity_adopt(int fd) {
        void *page;

        if (!activity_is_page(fd))
                return -EINVAL;
        page = mmap(NULL, ACTIVITY_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        activity_page = page;
        return 0;
}

/* ---- the process that watches ------------------------------------------------ */

/* A supervisor that could shrink it would kill the keeper by SIGBUS. */
static int activity_make(int fd, const ActivityPage **ret_page) {
        void *page;

        if (ftruncate(fd, ACTIVITY_PAGE_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, ACTIVITY_SEALS) < 0)
                return -errno;
        page = mmap(NULL, ACTIVITY_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        *ret_page = page;
        return 0;
}

int activity_new(int *ret_fd, const ActivityPage **ret_page) {
        _cleanup_(closep) int fd = -1;
        int r;

        fd = memfd_create("gpuqd-activity", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = activity_make(fd, ret_page);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

const ActivityPage *activity_free(const ActivityPage *page) {
        if (page)
                munmap((void *)page, ACTIVITY_PAGE_BYTES);
        return NULL;
}

Activity activity_read(const ActivityPage *page, uint64_t now_ns, uint64_t *ret_for_ms) {
        uint64_t what = page->what, whose = page->whose, since_ns = page->since_ns;
        Activity activity = activity_unpack(what, whose);
        bool is_known = since_ns && since_ns < now_ns && activity_is_sampled(page, what, whose);

        *ret_for_ms = is_known ? (now_ns - since_ns) / 1000000 : 0;
        if (activity.kind == ACTIVITY_NONE || activity.kind >= _ACTIVITY_KIND_N)
                return (Activity){.kind = ACTIVITY_NONE, .uid = ACTIVITY_NOBODY};
        return activity;
}

/* ---- text -------------------------------------------------------------------- */

/* By their numbers in gpuq.proto: no process that describes a page need know protobuf. */
static const char *const activity_requests[] = {
        [2] = "hello",        [3] = "arena_create",  [4] = "arena_open",   [5] = "arena_close",
        [6] = "module_load",  [7] = "module_unload", [8] = "submit",       [9] = "wait",
        [10] = "cancel",      [11] = "queue_get",    [12] = "status_get",  [13] = "prepare",
        [14] = "unprepare",   [15] = "fires",        [20] = "drain",       [21] = "resume",
        [22] = "resumed",     [24] = "detach",       [25] = "fetch",       [26] = "discard",
        [28] = "ring_open",   [29] = "ring_begin",   [30] = "history_get", [31] = "report_get",
        [32] = "explain_get", [33] = "trace_get",    [34] = "direct_open", [35] = "direct_begin",
        [36] = "direct_end",
};

static const char *const activity_kinds[_ACTIVITY_KIND_N] = {
        [ACTIVITY_NONE] = "an unknown activity",
        [ACTIVITY_EVENTS] = "waiting for events or handling one",
        [ACTIVITY_START] = "starting",
        [ACTIVITY_TAKEOVER] = "taking over from the previous supervisor",
        [ACTIVITY_KEEPER] = "a message of the keeper",
        [ACTIVITY_CONNECTION] = "accepting connections",
        [ACTIVITY_REQUEST] = "a request",
        [ACTIVITY_WORKER] = "a message of a worker",
        [ACTIVITY_CLOSE] = "ending a session",
        [ACTIVITY_ENDING] = "ending jobs",
        [ACTIVITY_DISPATCH] = "dispatching jobs",
        [ACTIVITY_OUTPUT] = "writing messages to a client",
        [ACTIVITY_TICK] = "periodic work",
        [ACTIVITY_DISK] = "an answer of the disk thread",
        [ACTIVITY_END] = "ending",
};

const char *activity_request_name(uint32_t number) {
        return number < ARRAY_SIZE(activity_requests) ? activity_requests[number] : NULL;
}

static void activity_describe_work(const Activity *activity, char *text, size_t n_text) {
        const char *kind =
                activity->kind < _ACTIVITY_KIND_N ? activity_kinds[activity->kind] : NULL;
        const char *request = activity_request_name(activity->detail);

        if (!kind)
                kind = activity_kinds[ACTIVITY_NONE];
        if (!activity->detail)
                snprintf(text, n_text, "%s", kind);
        else if (activity->kind == ACTIVITY_REQUEST && request)
                snprintf(text, n_text, "request %s", request);
        else
                snprintf(text, n_text, "%s of kind %u", kind, activity->detail);
}

static void activity_describe_owner(const Activity *activity, char *text, size_t n_text) {
        const char *what = activity->kind == ACTIVITY_WORKER ? "worker" : "session";

        if (activity->uid == ACTIVITY_NOBODY && !activity->id)
                *text = '\0';
        else if (activity->uid == ACTIVITY_NOBODY)
                snprintf(text, n_text, " (%s %u)", what, activity->id);
        else if (!activity->id)
                snprintf(text, n_text, " (uid %u)", activity->uid);
        else
                snprintf(text, n_text, " (%s %u, uid %u)", what, activity->id, activity->uid);
}

void activity_describe(const Activity *activity, char *text, size_t n_text) {
        char work[80], owner[48];

        activity_describe_work(activity, work, sizeof(work));
        activity_describe_owner(activity, owner, sizeof(owner));
        snprintf(text, n_text, "%s%s", work, owner);
}

bool activity_is_same(const Activity *one, const Activity *other) {
        return one->kind == other->kind && one->detail == other->detail && one->uid == other->uid &&
               one->id == other->id;
}

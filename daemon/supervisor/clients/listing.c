/* SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"

#include <time.h>

#include "detached_ops.h"
#include "registry.h"
#include "session.h"
#include "util/list.h"

#define LISTING_BYTES_MAX  (3u << 20) /* of one page */
#define LISTING_REASON_MAX 160u
#define LISTING_SKIP_STEP  16u /* detached jobs and modules passed over that cost one step */

struct Listing {
        uint64_t number; /* in its session */
        uint32_t uid;    /* the user, if one_user */
        bool one_user;
        bool all_users;
        User *user;        /* whose jobs are being listed; NULL: detached ones */
        JobCursor cursor;  /* among them */
        size_t n_detached; /* of the detached jobs, so many were passed */
        size_t n_modules;  /* of the loading modules */
        bool is_complete;
        TAILQ_ENTRY(Listing) link; /* session->reports.listings */
};

/* One page; all in one bump that ends with the request. */
typedef struct Page {
        Session *session;
        Listing *listing;
        uint64_t now_ns;
        Gpuq__V1__QueueEntry *entries;
        Gpuq__V1__QueueEntry **list;
        Gpuq__V1__QueueModule *modules;
        Gpuq__V1__QueueModule **module_list;
        char (*reasons)[LISTING_REASON_MAX];
        size_t n; /* jobs */
        size_t n_modules;
        size_t n_bytes;
        size_t n_passed;         /* detached jobs that were looked at */
        size_t n_modules_passed; /* loading modules */
        size_t n_steps;
} Page;

/* ---- one job --------------------------------------------------------------- */

static bool page_is_full(const Page *page) {
        return page->n + page->n_modules >= LISTING_PAGE || page->n_bytes > LISTING_BYTES_MAX;
}

static bool page_is_open(const Page *page, const User *user) {
        return page->session->peer.is_admin || page->session->submitter.user == user;
}

static Gpuq__V1__QueueEntry *page_add(Page *page, const User *user) {
        Gpuq__V1__QueueEntry *entry = &page->entries[page->n];

        gpuq__v1__queue_entry__init(entry);
        entry->uid = user->uid;
        entry->user = user->name;
        return entry;
}

static void page_added(Page *page, Gpuq__V1__QueueEntry *entry) {
        page->list[page->n++] = entry;
        page->n_bytes += gpuq__v1__queue_entry__get_packed_size(entry) + 8;
        page->n_steps++;
}

/* A detached job has an id of its own, and the job that runs for it has another. */
static uint64_t page_job_id(const Job *job) {
        return job->submitter && job->submitter->ops != &session_submitter_ops ? (uint32_t)job->id
                                                                               : job->id;
}

static void page_add_job(Page *page, const Job *job) {
        char *reason = page->reasons[page->n];
        Gpuq__V1__QueueEntry *entry = page_add(page, job->user);

        entry->id = page_job_id(job);
        if (page_is_open(page, job->user)) {
                entry->label = job->label;
                entry->slurm_job = job->work.slurm_job;
                if (job->work.n_kernels)
                        entry->kernel = (char *)job->work.kernels[0].name;
        }
        entry->state = (Gpuq__V1__State)job->state;
        entry->waited_us = job_waited_us(job, page->now_ns);
        entry->priority = job->entry.priority;
        entry->device = job->device ? job->device->index + 1 : 0;
        entry->retries = job->retries;
        if (job->state == JOB_RUNNING)
                entry->ran_us = (page->now_ns - job->clock.started_ns) / 1000;
        reason_write(job, reason, LISTING_REASON_MAX);
        entry->reason = reason;
        page_added(page, entry);
}

static void page_add_detached(Page *page, const DetachedEntry *detached) {
        Gpuq__V1__QueueEntry *entry = page_add(page, detached->user);
        const Gpuq__V1__Job *job = detached->job;
        uint64_t now_s = (uint64_t)time(NULL);

        entry->id = detached->id;
        if (page_is_open(page, detached->user)) {
                entry->label = job->label;
                entry->slurm_job = detached->slurm_job;
                if (job->n_kernels)
                        entry->kernel = job->kernels[0]->name;
        }
        entry->state = GPUQ__V1__STATE__WAITING;
        entry->reason = (char *)detached->reason;
        entry->priority = job->priority;
        if (now_s > detached->made_s)
                entry->waited_us = (now_s - detached->made_s) * 1000000;
        page_added(page, entry);
}

/* ---- one module ------------------------------------------------------------ */

static void page_add_module(Page *page, const Module *module) {
        Gpuq__V1__QueueModule *entry = &page->modules[page->n_modules];
        char *reason = page->reasons[page->n + page->n_modules];

        gpuq__v1__queue_module__init(entry);
        entry->uid = module->user->uid;
        entry->user = module->user->name;
        if (page_is_open(page, module->user))
                entry->name = module->name;
        entry->waited_us = (page->now_ns - module->asked_ns) / 1000;
        entry->device = module->slot ? module->slot->device->index + 1 : 0;
        reason_write_module(module, reason, LISTING_REASON_MAX);
        entry->reason = reason;
        page->module_list[page->n_modules++] = entry;
        page->n_bytes += gpuq__v1__queue_module__get_packed_size(entry) + 8;
        page->n_steps++;
}

/* ---- a page ---------------------------------------------------------------- */

static bool listing_wants(const Listing *listing, const Session *session, const User *user) {
        if (listing->one_user)
                return user->uid == listing->uid;
        return listing->all_users || user == session->submitter.user;
}

static void listing_enter_user(Listing *listing, const Session *session, User *user) {
        while (user && !listing_wants(listing, session, user))
                user = user->hh.next;
        cursor_end(&listing->cursor);
        listing->user = user;
        if (user)
                cursor_begin(&listing->cursor, user);
}

static void page_fill_user(Page *page) {
        const Job *job;

        if (!page_is_full(page))
                page->n_steps += reason_count(page->listing->user);
        while (!page_is_full(page)) {
                job = cursor_next(&page->listing->cursor);
                if (!job)
                        return;
                page_add_job(page, job);
        }
}

static void page_visit_detached(const DetachedEntry *entry, void *userdata) {
        Listing *listing = ((Page *)userdata)->listing;
        Page *page = userdata;

        if (page->n_passed++ < listing->n_detached || page_is_full(page))
                return;
        listing->n_detached++;
        if (entry->reason && listing_wants(listing, page->session, entry->user))
                page_add_detached(page, entry);
}

static void page_visit_module(Page *page, const Module *module) {
        Listing *listing = page->listing;

        if (page->n_modules_passed++ < listing->n_modules || page_is_full(page))
                return;
        listing->n_modules++;
        if (module->submitter && listing_wants(listing, page->session, module->user))
                page_add_module(page, module);
}

static void page_fill_modules(Page *page) {
        const Engine *engine = page->session->engine;
        const Module *module;
        const Slot *slot;

        TAILQ_FOREACH (module, &engine->unplaced.modules, wait_link)
                page_visit_module(page, module);
        for (slot = engine->slots; slot; slot = slot->hh.next)
                TAILQ_FOREACH (module, &slot->loading, wait_link)
                        page_visit_module(page, module);
        page->n_steps += page->n_modules_passed / LISTING_SKIP_STEP;
        page->listing->is_complete = page->n_modules_passed == page->listing->n_modules;
}

static void page_fill(Page *page) {
        const Clients *clients = page->session->clients;
        Listing *listing = page->listing;

        while (listing->user) {
                page_fill_user(page);
                if (listing->cursor.next)
                        return;
                listing_enter_user(listing, page->session, listing->user->hh.next);
        }
        clients->detached_ops->visit(clients->detached, page_visit_detached, page);
        page->n_steps += page->n_passed / LISTING_SKIP_STEP;
        if (page->n_passed == listing->n_detached)
                page_fill_modules(page);
}

static void *page_take(Bump *bump, size_t size) {
        ProtobufCAllocator *allocator = bump_allocator(bump);

        return allocator->alloc(allocator->allocator_data, LISTING_PAGE * size);
}

static bool page_alloc(Page *page) {
        Bump *bump = page->session->clients->bump;

        page->entries = page_take(bump, sizeof(*page->entries));
        page->list = page_take(bump, sizeof(*page->list));
        page->modules = page_take(bump, sizeof(*page->modules));
        page->module_list = page_take(bump, sizeof(*page->module_list));
        page->reasons = page_take(bump, sizeof(*page->reasons));
        return page->entries && page->list && page->modules && page->module_list && page->reasons;
}

static void listing_free(Session *session, Listing *listing) {
        TAILQ_REMOVE(&session->reports.listings, listing, link);
        session->reports.n_listings--;
        cursor_end(&listing->cursor);
        free(listing);
}

static void listing_fail(Session *session, uint32_t serial, Listing *listing) {
        session_fail_request(
                session, serial,
                failure_new(FAILURE_MEMORY, "gpuqd has no memory for the list of jobs"));
        if (listing)
                listing_free(session, listing);
}

static void listing_reply(Listing *listing, Session *session, uint32_t serial) {
        Page page = {
                .session = session,
                .listing = listing,
                .now_ns = engine_now(session->engine),
        };
        Gpuq__V1__Reply reply = GPUQ__V1__REPLY__INIT;
        Gpuq__V1__Queue queue = GPUQ__V1__QUEUE__INIT;

        if (!page_alloc(&page)) {
                listing_fail(session, serial, listing);
                return;
        }
        page_fill(&page);
        serving_pay(&session->serving, page.n_steps);
        queue.entries = page.list;
        queue.n_entries = page.n;
        queue.modules = page.module_list;
        queue.n_modules = page.n_modules;
        queue.next = listing->is_complete ? 0 : listing->number;
        reply.serial = serial;
        reply.body_case = GPUQ__V1__REPLY__BODY_QUEUE;
        reply.queue = &queue;
        session_reply(session, &reply, -1);
        if (listing->is_complete)
                listing_free(session, listing);
}

/* ---- listings of a session ------------------------------------------------- */

static Listing *listing_new(Session *session, const Gpuq__V1__QueueGet *get) {
        SessionReports *reports = &session->reports;
        Listing *listing;

        listing = calloc(1, sizeof(*listing));
        if (!listing)
                return NULL;

        if (reports->n_listings == LISTING_MAX)
                listing_free(session, TAILQ_FIRST(&reports->listings));
        listing->number = ++reports->last_listing;
        listing->one_user = get->one_user;
        listing->all_users = get->all_users;
        listing->uid = get->uid;
        TAILQ_INSERT_TAIL(&reports->listings, listing, link);
        reports->n_listings++;
        listing_enter_user(listing, session, session->engine->users);
        return listing;
}

void listing_begin(Session *session, uint32_t serial, const Gpuq__V1__QueueGet *get) {
        Listing *listing = listing_new(session, get);

        if (listing)
                listing_reply(listing, session, serial);
        else
                listing_fail(session, serial, NULL);
        bump_reset(session->clients->bump);
}

void listing_continue(Session *session, uint32_t serial, uint64_t number) {
        Listing *listing;

        TAILQ_FOREACH (listing, &session->reports.listings, link)
                if (listing->number == number)
                        break;
        if (listing)
                listing_reply(listing, session, serial);
        else
                session_fail_request(
                        session, serial,
                        failure_new(FAILURE_NOT_FOUND,
                                    "there is no such list of jobs: it is complete, or it was "
                                    "dropped because the session began %u others; begin "
                                    "again",
                                    LISTING_MAX));
}

void listing_drop_all(Session *session) {
        while (!TAILQ_EMPTY(&session->reports.listings))
                listing_free(session, TAILQ_FIRST(&session->reports.listings));
}

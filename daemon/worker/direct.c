/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct
 */
#include "worker/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/list.h"
#include "util/macro.h"

#define DIRECT_TURN_JOBS 32u /* taken from one ring in a turn */
#define DIRECT_REPORT_MS 50u
#define DIRECT_WATCH_NS  UINT64_C(1000000)
#define DIRECT_LONG_NS   UINT64_C(5000000) /* a job that takes longer is no small one */

struct Direct {
        Directs *directs;
        struct DirectList *list; /* that it is in */
        TAILQ_ENTRY(Direct) link;
        uint32_t session;
        DirectRing ring;
        int bell_fd; /* -1: not there yet */
        uv_poll_t bell;
        DirectTemplate *templates;
        size_t n_templates;
        size_t hint; /* the template that was found last */
        uint32_t last_tag;
        unsigned n_in_flight; /* jobs */
        unsigned n_max;       /* of them */
        unsigned weight;      /* of one of them, in directs->load */
        bool has_ends;        /* that its client was not woken for */
};

void directs_init(Directs *directs, Runner *runner, Outbox *outbox, uv_loop_t *loop) {
        directs->runner = runner;
        directs->outbox = outbox;
        directs->loop = loop;
        TAILQ_INIT(&directs->lent);
        TAILQ_INIT(&directs->partial);
        uv_timer_init(loop, &directs->timer);
        directs->timer.data = directs;
}

/* ---- reports --------------------------------------------------------------------------- */

/* The device's time for one of all jobs that were done since the last report. */
static uint64_t directs_each_ns(const Directs *directs) {
        uint64_t n_done = 0;
        const Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link)
                for (size_t i = 0; i < direct->n_templates; ++i)
                        n_done += direct->templates[i].n_done;
        return directs->busy_ns / MAX(n_done, 1u);
}

static size_t direct_fill_report(Direct *direct, uint64_t each_ns, WorkerLent *lent) {
        size_t n = 0;

        for (size_t i = 0; i < direct->n_templates; ++i) {
                DirectTemplate *template = &direct->templates[i];

                if (!template->n_done)
                        continue;
                lent[n++] = (WorkerLent){
                        .session = direct->session,
                        .prepared = (uint32_t) template->message->id,
                        .n_done = template->n_done,
                        .waited_us = template->waited_us,
                        .ran_us = template->ran_us,
                        .busy_ns = template->n_done * each_ns,
                };
                template->n_done = 0;
                template->waited_us = template->ran_us = 0;
        }
        return n;
}

/* The first report has all of the time, which the user pays for. */
static int direct_report(Direct *direct, uint64_t each_ns) {
        Directs *directs = direct->directs;
        WorkerLent lent[WORKER_TEMPLATES_MAX];
        WorkerMessage message = {
                {.kind = FROM_WORKER_LENT, .number = directs->busy_ns},
                .items = lent,
        };
        size_t n = direct_fill_report(direct, each_ns, lent);

        if (!n)
                return 0;
        directs->busy_ns = 0;
        message.head.n_items = (uint32_t)(n * sizeof(*lent));
        return outbox_send(directs->outbox, &message, -1);
}

static void directs_on_timer(uv_timer_t *timer) {
        Directs *directs = timer->data;
        uint64_t each_ns = directs_each_ns(directs);
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link)
                if (direct_report(direct, each_ns))
                        directs->has_failed = true;
}

/* ---- the end of a loan -------------------------------------------------------------------- */

static void direct_on_close(uv_handle_t *handle) {
        Direct *direct = handle->data;

        direct_ring_release(&direct->ring);
        closep(&direct->bell_fd);
        for (size_t i = 0; i < direct->n_templates; ++i)
                free(direct->templates[i].message);
        free(direct->templates);
        free(direct);
}

/* @list: of its directs, or NULL. */
static void direct_move(Direct *direct, struct DirectList *list) {
        if (direct->list)
                TAILQ_REMOVE(direct->list, direct, link);
        if (list)
                TAILQ_INSERT_TAIL(list, direct, link);
        direct->list = list;
}

static void direct_free(Direct *direct) {
        direct_move(direct, NULL);
        if (direct->bell_fd >= 0)
                uv_close((uv_handle_t *)&direct->bell, direct_on_close);
        else
                direct_on_close(&(uv_handle_t){.data = direct});
}

/* They are ordinary jobs from now on. Return: how many. */
static uint32_t direct_release(const Direct *direct, struct JobList *jobs, WorkerTaken *taken) {
        uint32_t n = 0;
        Job *job;

        TAILQ_FOREACH (job, jobs, link) {
                if (job->fired.direct != direct)
                        continue;
                taken[n++] =
                        (WorkerTaken){(uint32_t)job->id, (uint32_t)job->fired.template->prepared};
                job->fired.direct = NULL;
        }
        return n;
}

static int direct_compare_taken(const void *a, const void *b) {
        uint32_t tag = ((const WorkerTaken *)a)->tag, other = ((const WorkerTaken *)b)->tag;

        return (tag > other) - (tag < other);
}

/* gpuqd is told which jobs these are: it does not trust the ring, in which the client may write anything. */
static uint32_t direct_release_all(const Direct *direct, WorkerTaken *taken) {
        Runner *runner = direct->directs->runner;
        uint32_t n = direct_release(direct, &runner->waiting, taken);

        n += direct_release(direct, &runner->in_flight, taken + n);
        n += direct_release(direct, &runner->ended, taken + n);
        qsort(taken, n, sizeof(*taken), direct_compare_taken);
        return n;
}

static int direct_give_back(Direct *direct) {
        Directs *directs = direct->directs;
        WorkerTaken taken[WORKER_DIRECT_JOBS];
        WorkerMessage message = {
                {
                        .kind = FROM_WORKER_RETURNED,
                        .id = direct->session,
                        .number = WORKER_TAKEN(direct->ring.position, direct->last_tag),
                },
                .items = taken,
        };
        int r;

        message.head.n_items = direct_release_all(direct, taken);
        directs->n_in_flight -= direct->n_in_flight;
        directs->load -= direct->n_in_flight * direct->weight;
        r = direct_report(direct, directs_each_ns(directs));
        if (r == 0)
                r = outbox_send(directs->outbox, &message, -1);
        direct_free(direct);
        return r;
}

static Direct *directs_find(const Directs *directs, uint32_t session) {
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link)
                if (direct->session == session)
                        return direct;
        return NULL;
}

static Direct *directs_find_partial(const Directs *directs, uint32_t session) {
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->partial, link)
                if (direct->session == session)
                        return direct;
        return NULL;
}

int directs_recall(Directs *directs, uint32_t session) {
        Direct *direct = directs_find(directs, session);

        return direct ? direct_give_back(direct) : 0;
}

int directs_give_back_all(Directs *directs) {
        Direct *direct;
        int r;

        while ((direct = TAILQ_FIRST(&directs->lent))) {
                r = direct_give_back(direct);
                if (r)
                        return r;
        }
        return 0;
}

/* ---- a loan -------------------------------------------------------------------------------- */

static void direct_on_bell(uv_poll_t *poll, int status, int events) {
        const Direct *direct = poll->data;

        /* Its client is gone, as gpuqd will say. */
        if (status < 0 || !direct_bell_hear(direct->bell_fd))
                uv_poll_stop(poll);
}

int directs_open(Directs *directs, uint32_t session, int fd) {
        Direct *direct;
        int r;

        if (directs_find(directs, session) || directs_find_partial(directs, session))
                return -EBADMSG;
        direct = calloc(1, sizeof(*direct));
        if (!direct)
                return -ENOMEM;

        direct->directs = directs;
        direct->session = session;
        direct->bell_fd = -1;
        r = direct_ring_adopt(&direct->ring, fd);
        if (r < 0) {
                free(direct);
                return r;
        }
        direct_move(direct, &directs->partial);
        return 0;
}

int directs_set_bell(Directs *directs, uint32_t session, int fd) {
        Direct *direct = directs_find_partial(directs, session);
        int r;

        r = direct && direct->bell_fd < 0 ? uv_poll_init(directs->loop, &direct->bell, fd)
                                          : -EBADMSG;
        if (r < 0) {
                close(fd);
                return r;
        }
        direct->bell_fd = fd;
        direct->bell.data = direct;
        return uv_poll_start(&direct->bell, UV_READABLE, direct_on_bell);
}

/* Return: the template, in a list that has room for it; NULL: no memory. */
static DirectTemplate *direct_add_template(Direct *direct, const WorkerJob *job) {
        DirectTemplate *template = &direct->templates[direct->n_templates];

        template->message = malloc(job->n_bytes);
        if (!template->message)
                return NULL;
        memcpy(template->message, job, job->n_bytes);
        template->prepared = job->id;
        direct->n_templates++;
        (void)protocol_job((const uint8_t *)template->message, job->n_bytes, &template->parts);
        return template;
}

static int direct_add_templates(Direct *direct, const WorkerMessage *message) {
        const uint8_t *data = message->items;
        size_t n_left = message->head.n_items;

        direct->templates = calloc(WORKER_TEMPLATES_MAX, sizeof(*direct->templates));
        if (!direct->templates)
                return -ENOMEM;
        while (n_left > 0) {
                WorkerJobParts parts;
                const WorkerJob *job = protocol_job(data, n_left, &parts);

                if (!job || direct->n_templates == WORKER_TEMPLATES_MAX)
                        return -EBADMSG;
                if (!direct_add_template(direct, job))
                        return -ENOMEM;
                data += job->n_bytes;
                n_left -= job->n_bytes;
        }
        return 0;
}

/* From numbers to places in the list. */
static void direct_link(Direct *direct, DirectTemplate *template) {
        for (uint32_t i = 0; i < template->message->n_after; ++i)
                for (size_t k = 0; k < direct->n_templates; ++k)
                        if (direct->templates[k].prepared == template->parts.after[i] &&
                            template->n_after < WORKER_TEMPLATES_MAX)
                                template->after[template->n_after++] = (uint8_t)k;
}

int directs_lend(Directs *directs, uint32_t session, const WorkerMessage *message) {
        Direct *direct = directs_find_partial(directs, session);
        int r;

        if (!direct || direct->bell_fd < 0)
                return -EBADMSG;
        r = direct_add_templates(direct, message);
        if (r < 0)
                return r;

        for (size_t i = 0; i < direct->n_templates; ++i)
                direct_link(direct, &direct->templates[i]);
        direct->ring.position = (uint32_t)message->head.number;
        direct->last_tag = (uint32_t)(message->head.number >> 32);
        direct->n_max = (unsigned)MIN(MAX(message->head.detail, 1u), WORKER_DIRECT_JOBS);
        direct->weight = DIRECTS_FULL / direct->n_max;
        direct_move(direct, &directs->lent);
        return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Clients fire the same one again and again, or each in turn. */
static DirectTemplate *direct_find_template(Direct *direct, uint64_t prepared) {
        for (size_t i = 0; i < direct->n_templates; ++i) {
                size_t k = (direct->hint + i) % direct->n_templates;

                if (direct->templates[k].prepared != prepared)
                        continue;
                direct->hint = k;
                return &direct->templates[k];
        }
        return NULL;
}

/* Jobs in this worker that it must follow: a template names others as `after`. */
static uint32_t direct_find_after(const Direct *direct, const DirectTemplate *template,
                                  uint64_t after[WORKER_TEMPLATES_MAX]) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < template->n_after; ++i) {
                uint64_t last = direct->templates[template->after[i]].last;

                if (last && runner_find(direct->directs->runner, last))
                        after[n++] = last;
        }
        return n;
}

static int direct_run(Direct *direct, DirectTemplate *template, uint32_t tag, uint64_t now_ns) {
        uint64_t after[WORKER_TEMPLATES_MAX];
        WorkerJobParts parts = template->parts;
        WorkerJob message = *template->message;
        Job *job;
        int r;

        message.id = (uint64_t)direct->session << 32 | tag;
        message.n_after = direct_find_after(direct, template, after);
        parts.after = after;
        r = runner_add(direct->directs->runner, &message, &parts, &job);
        if (r < 0)
                return r;

        job->fired = (JobFired){
                .direct = direct,
                .template = template,
                .entry = direct->ring.position - 1,
                .taken_ns = now_ns,
        };
        template->last = message.id;
        direct->n_in_flight++;
        direct->directs->runner->n_direct++;
        direct->directs->n_in_flight++;
        direct->directs->load += direct->weight;
        return 0;
}

/* The last one may be more than what is left, so that jobs of each weight get their turn. */
static bool direct_has_room(const Direct *direct) {
        return direct->n_in_flight < direct->n_max && direct->directs->load < DIRECTS_FULL;
}

/* An entry that makes no sense is gpuqd's business: it answers the client. */
static int direct_take(Direct *direct, uint64_t now_ns, bool *ret_any) {
        DirectTemplate *template;
        uint32_t tag, prepared;
        int r;

        for (unsigned i = 0; i < DIRECT_TURN_JOBS && direct_has_room(direct); ++i) {
                if (!direct_ring_look(&direct->ring, &tag, &prepared))
                        return 0;
                template = direct_find_template(direct, prepared);
                if (!template || tag <= direct->last_tag)
                        return direct_give_back(direct);

                *ret_any = true;
                direct->last_tag = tag;
                direct_ring_begin(&direct->ring, tag);
                direct_ring_take(&direct->ring, tag);
                r = direct_run(direct, template, tag, now_ns);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Of one batch: the first ring that has a job in it, or NULL. */
static Direct *direct_of_batch(const Batch *batch) {
        const Job *job;

        TAILQ_FOREACH (job, &batch->jobs, queue)
                if (job->fired.direct)
                        return job->fired.direct;
        return NULL;
}

static int directs_give_back_long(Directs *directs, uint64_t now_ns) {
        const Batch *batch;
        Direct *direct;
        int r = 0;

        if (now_ns < directs->watch_ns)
                return 0;
        directs->watch_ns = now_ns + DIRECT_WATCH_NS;
        TAILQ_FOREACH (batch, &directs->runner->batches, link)
                while (r == 0 && now_ns > batch->issued_ns + DIRECT_LONG_NS &&
                       (direct = direct_of_batch(batch)))
                        r = direct_give_back(direct);
        return r;
}

static void directs_count_time(Directs *directs, uint64_t now_ns) {
        if (directs->was_busy)
                directs->busy_ns += now_ns - directs->turned_ns;
        directs->was_busy = directs->n_in_flight > 0;
        directs->turned_ns = now_ns;
}

/* Each turn begins with another ring, for the first ones may leave no room. */
static void directs_rotate(Directs *directs) {
        Direct *first = TAILQ_FIRST(&directs->lent);

        if (first && TAILQ_NEXT(first, link))
                direct_move(first, &directs->lent);
}

int directs_take(Directs *directs, uint64_t now_ns, bool *ret_any) {
        Direct *direct, *next;
        int r = 0;

        if (directs->has_failed)
                return CHANNEL_E_CLOSED;
        TAILQ_FOREACH_SAFE (direct, &directs->lent, link, next) {
                r = direct_take(direct, now_ns, ret_any);
                if (r)
                        break;
        }
        directs_rotate(directs);
        directs_count_time(directs, now_ns);
        if (r == 0 && directs->n_in_flight)
                r = directs_give_back_long(directs, now_ns);
        return r;
}

/* ---- ends -------------------------------------------------------------------------------------- */

static void direct_end(Job *job, uint64_t now_ns) {
        Direct *direct = job->fired.direct;
        DirectTemplate *template = job->fired.template;
        uint64_t past_us = (now_ns - job->fired.taken_ns) / 1000;
        uint64_t waited_us = past_us > job->run.ran_us ? past_us - job->run.ran_us : 0;

        direct_ring_end(&direct->ring, job->fired.entry, (uint32_t)job->id,
                        (uint32_t)MIN(waited_us, UINT32_MAX),
                        (uint32_t)MIN(job->run.ran_us, UINT32_MAX));
        template->n_done++;
        template->waited_us += waited_us;
        template->ran_us += job->run.ran_us;
        direct->n_in_flight--;
        direct->directs->n_in_flight--;
        direct->directs->load -= direct->weight;
        direct->has_ends = true;
}

static void directs_wake_clients(Directs *directs) {
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link) {
                if (direct->has_ends && direct_ring_must_wake_client(&direct->ring))
                        direct_bell_ring(direct->bell_fd);
                direct->has_ends = false;
        }
        if (!uv_is_active((uv_handle_t *)&directs->timer))
                uv_timer_start(&directs->timer, directs_on_timer, DIRECT_REPORT_MS, 0);
}

int directs_end(Directs *directs, uint64_t now_ns) {
        bool any = false;
        Job *job, *next;
        int r = 0;

        for (job = TAILQ_FIRST(&directs->runner->ended); r == 0 && job; job = next) {
                next = TAILQ_NEXT(job, link);
                if (!job->fired.direct)
                        continue;
                if (!job_is_plain(job)) {
                        r = direct_give_back(job->fired.direct);
                        continue;
                }
                direct_end(job, now_ns);
                any = true;
                TAILQ_REMOVE(&directs->runner->ended, job, link);
                job_free(job, &directs->runner->blocks);
        }
        if (any)
                directs_wake_clients(directs);
        return r;
}

int directs_late(Directs *directs, Job *job) {
        return job->fired.direct ? direct_give_back(job->fired.direct) : 0;
}

/* ---- sleeping ------------------------------------------------------------------------------------ */

bool directs_sleep(Directs *directs) {
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link)
                /* With as many jobs as there may be, the end of one wakes the worker. */
                if (direct_has_room(direct) && !direct_ring_sleep(&direct->ring)) {
                        directs_wake(directs);
                        return false;
                }
        return true;
}

void directs_wake(Directs *directs) {
        Direct *direct;

        TAILQ_FOREACH (direct, &directs->lent, link)
                direct_ring_wake(&direct->ring);
}

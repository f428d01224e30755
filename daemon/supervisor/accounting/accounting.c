/* SPDX-License-Identifier: Apache-2.0 */
#include "accounting_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/activity.h"
#include "util/log.h"
#include "proto/text.h"

#define ACCOUNTING_FILE                                                                            \
        "history/history.db" /* in state_dir; the keeper made this user the folder's owner */
#define ACCOUNTING_WRITE_NS 1000000000ull
#define ACCOUNTING_RETRY_NS 5000000000ull
#define ACCOUNTING_VISIT_NS 3600000000000ull
#define ACCOUNTING_DAY_MS   86400000ull

static uint64_t accounting_now_ms(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- ended jobs ------------------------------------------------------------ */

static void row_copy(char *to, size_t n_to, const char *text) {
        snprintf(to, n_to, "%.*s", (int)text_cut(text, n_to - 1), text);
}

static void row_copy_kernels(TallyRow *row, const Job *job) {
        char all[2 * sizeof(row->kernels)];
        size_t n = 0;

        all[0] = '\0';
        for (size_t i = 0; i < job->work.n_kernels && n < sizeof(row->kernels); ++i)
                n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%.*s", i ? ", " : "",
                                      (int)sizeof(row->kernels), job->work.kernels[i].name);
        row_copy(row->kernels, sizeof(row->kernels), all);
}

/* A detached job has an id of its own, and the job that runs for it has another. */
static uint64_t row_id(const Job *job) {
        bool is_detached = job->submitter && job->submitter->ops != &session_submitter_ops;

        return is_detached ? (uint32_t)job->id : job->id;
}

static TallyRow accounting_row(const Job *job, const LedgerEnd *end) {
        TallyRow row = {
                .n_jobs = 1,
                .waited_us = end->waited_us,
                .ran_us = end->ran_us,
                .gpu_ns = job->cost.spent_ns + job->cost.busy_ns,
                .n_bytes = job->work.n_moved,
                .n_retries = job->retries,
                .id = row_id(job),
                .uid = (uint32_t)job->user->uid,
                .person = (uint32_t)job->user->person->uid,
                .gid = (uint32_t)job->user->gid,
                .device = job->device ? (int32_t)job->device->index : -1,
                .state = end->state,
                .code = end->code,
                .slurm_job = job->work.slurm_job,
        };

        row_copy(row.label, sizeof(row.label), job->label);
        row_copy_kernels(&row, job);
        if (job->outcome.failure)
                row_copy(row.reason, sizeof(row.reason), job->outcome.failure->text);
        return row;
}

__attribute__((noinline)) static void accounting_add(Accounting *accounting, const Job *job,
                                                     const LedgerEnd *end) {
        TallyRow row = accounting_row(job, end);

        tally_add(accounting->tally, &row, job->cost.class);
}

/* For every job: what is most frequent needs a few counters. */
static void accounting_on_end(EndObserver *observer, const Job *job, const LedgerEnd *end) {
        Accounting *accounting = container_of(observer, Accounting, observer);
        Tally *tally = accounting->tally;
        uint32_t uid = (uint32_t)job->user->uid, slurm_job = job->work.slurm_job;
        TallyShare *share = NULL;

        if (end->state == JOB_DONE && end->ran_us < TALLY_SHORT_US && !*job->label && !job->retries)
                share = tally_find(tally,
                                   tally_key(tally, job->cost.class, uid, slurm_job, end->device),
                                   uid, slurm_job);
        if (share)
                tally_count(tally, share, end->waited_us, end->ran_us, job->cost.busy_ns,
                            job->work.n_moved);
        else
                accounting_add(accounting, job, end);
}

static void accounting_on_done(EndObserver *observer, const Job *job, uint64_t n,
                               uint64_t waited_us, uint64_t ran_us) {
        Accounting *accounting = container_of(observer, Accounting, observer);
        LedgerEnd end = {.state = JOB_DONE, .waited_us = waited_us, .ran_us = ran_us};
        TallyRow row = accounting_row(job, &end);

        row.n_jobs = n;
        row.gpu_ns = ran_us * 1000;
        row.n_bytes = n * job->work.n_moved;
        tally_add(accounting->tally, &row, job->cost.class);
}

/* ---- the thread ------------------------------------------------------------ */

/* Return: as archive_open(). */
static int work_open(AccountingWork *work) {
        Accounting *accounting = work->accounting;
        int r;

        if (accounting->archive)
                return 0;
        r = archive_open(accounting->path, &accounting->archive);
        if (r != ARCHIVE_E_DAMAGED)
                return r;
        r = archive_set_aside(accounting->path);
        if (r < 0)
                return r;
        work->set_aside = true;
        return archive_open(accounting->path, &accounting->archive);
}

static int work_write(AccountingWork *work) {
        Accounting *accounting = work->accounting;
        int r;

        r = work_open(work);
        if (r == 0 && work->batch)
                r = archive_write(accounting->archive, work->batch, accounting->slurm_dir);
        if (r == 0)
                r = archive_prune(accounting->archive, work->before_ms, ARCHIVE_BYTES_MAX,
                                  &work->has_more);
        return r;
}

/* Damage may show only now. */
static void work_write_anew(AccountingWork *work) {
        Accounting *accounting = work->accounting;

        accounting->archive = archive_free(accounting->archive);
        work->r = archive_set_aside(accounting->path);
        work->set_aside = work->r == 0;
        if (work->r == 0)
                work->r = work_write(work);
}

static void work_in_thread(void *userdata) {
        AccountingWork *work = userdata;
        Accounting *accounting = work->accounting;

        if (work->removes) {
                accounting->archive = archive_free(accounting->archive);
                archive_remove(accounting->path);
                work->r = 0;
                return;
        }
        work->r = work_write(work);
        if (work->r == ARCHIVE_E_DAMAGED)
                work_write_anew(work);
        if (work->closes)
                accounting->archive = archive_free(accounting->archive);
}

static const char *work_words(int r) {
        if (r == ARCHIVE_E_BUSY)
                return "another gpuqd uses it";
        if (r == ARCHIVE_E_VERSION)
                return "a newer version of gpuqd wrote it";
        if (r == ARCHIVE_E_DAMAGED)
                return "it is damaged";
        return strerror(-r);
}

/* Each problem is logged once, and its end. */
static void accounting_set_problem(Accounting *accounting, const char *problem) {
        if (strcmp(problem, accounting->problem) == 0)
                return;
        if (*problem)
                log_warning("%s; jobs are not affected", problem);
        else
                log_info("the history is being written again");
        snprintf(accounting->problem, sizeof(accounting->problem), "%s", problem);
}

static void accounting_note(Accounting *accounting, int r) {
        char problem[ACCOUNTING_PROBLEM_MAX] = "";

        if (r)
                snprintf(problem, sizeof(problem), "cannot write the history to %s: %s",
                         accounting->path, work_words(r));
        accounting_set_problem(accounting, problem);
}

void accounting_note_set_aside(const Accounting *accounting) {
        log_warning("the history in %s was damaged: it is now %s.damaged, and a new one begins",
                    accounting->path, accounting->path);
}

static void work_on_done(void *userdata) {
        AccountingWork *work = userdata;
        Accounting *accounting = work->accounting;

        accounting->is_busy = false;
        if (work->set_aside)
                accounting_note_set_aside(accounting);
        accounting_note(accounting, work->r);
        if (work->r == 0)
                work->batch = tally_batch_free(work->batch);
        if (work->has_more)
                accounting->visit_ns = 0;
        if (work->r)
                accounting->write_ns = engine_now(accounting->engine) + ACCOUNTING_RETRY_NS;
        queries_serve(accounting);
}

static uint64_t accounting_before_ms(const Accounting *accounting) {
        uint64_t keep_ms = accounting->engine->config->keep.history_days * ACCOUNTING_DAY_MS;
        uint64_t now_ms = accounting_now_ms();

        return now_ms > keep_ms ? now_ms - keep_ms : 0;
}

static void accounting_call(Accounting *accounting, AccountingWork *work, DiskFunc done) {
        work->accounting = accounting;
        work->call = (DiskCall){.run = work_in_thread, .done = done, .userdata = work};
        work->before_ms = accounting_before_ms(accounting);
        work->removes = !accounting->is_on;
        work->set_aside = work->has_more = false;
        disk_call(accounting->disk, &accounting->line, &work->call);
}

static void accounting_start(Accounting *accounting) {
        accounting->is_busy = true;
        accounting->visit_ns = engine_now(accounting->engine) + ACCOUNTING_VISIT_NS;
        accounting_call(accounting, &accounting->work, work_on_done);
}

/* A batch that could not be written is tried again first; meanwhile the tally collects. */
void accounting_write(Accounting *accounting) {
        AccountingWork *work = &accounting->work;

        if (!accounting->disk || accounting->is_busy || !accounting->is_on)
                return;
        if (!work->batch && accounting->tally->n_jobs)
                (void)tally_take(accounting->tally, &work->batch);
        accounting_start(accounting);
}

/* ---- time ------------------------------------------------------------------ */

static void accounting_configure(Accounting *accounting) {
        bool is_on = accounting->engine->config->keep.history_days > 0;

        if (is_on == accounting->is_on || accounting->is_busy)
                return;
        accounting->is_on = is_on;
        accounting->engine->ends.observer = is_on ? &accounting->observer : NULL;
        accounting->visit_ns = accounting->write_ns = 0;
        if (is_on)
                return;
        accounting->work.batch = tally_batch_free(accounting->work.batch);
        accounting_set_problem(accounting, "");
        accounting_start(accounting);
}

/* A batch that cannot be written is kept and tried again, so jobs are lost only to a full tally. */
static uint64_t accounting_lost(const Accounting *accounting) {
        return accounting->tally->n_lost;
}

static void accounting_tell_lost(Accounting *accounting) {
        if (accounting->has_told_lost || !accounting_lost(accounting))
                return;
        accounting->has_told_lost = true;
        log_warning(
                "the history has no room for all jobs: `gpuq status' shows how many are missing");
}

void accounting_tick(Accounting *accounting, uint64_t now_ns) {
        if (!accounting->disk)
                return;
        accounting_configure(accounting);
        tally_tick(accounting->tally, accounting_now_ms());
        accounting_tell_lost(accounting);
        if (now_ns < accounting->write_ns)
                return;
        accounting->write_ns = now_ns + ACCOUNTING_WRITE_NS;
        if (accounting->tally->n_jobs || accounting->work.batch || now_ns >= accounting->visit_ns)
                accounting_write(accounting);
}

/* ---- clients --------------------------------------------------------------- */

static const char *accounting_problem(const Accounting *accounting) {
        return accounting->problem;
}

const AccountingOps accounting_ops = {
        .history = accounting_on_history,
        .report = accounting_on_report,
        .problem = accounting_problem,
        .n_lost = accounting_lost,
        .forget = accounting_forget,
};

/* ---- life ------------------------------------------------------------------ */

static int accounting_open(Accounting *accounting) {
        const Config *config = accounting->engine->config;
        int r;

        if (!config->state_dir) {
                snprintf(accounting->problem, sizeof(accounting->problem),
                         "there is no history: state_dir is not set in gpuqd.conf");
                return 0;
        }
        if (asprintf(&accounting->path, "%s/" ACCOUNTING_FILE, config->state_dir) < 0) {
                accounting->path = NULL;
                return -ENOMEM;
        }
        accounting->slurm_dir = config->slurm_dir ? strdup(config->slurm_dir) : NULL;
        r = disk_new(accounting->engine->loop, 1, &accounting->disk);
        if (r < 0) {
                accounting_note(accounting, r);
                return 0;
        }
        accounting->is_on = true; /* of which accounting_configure() may find the contrary */
        accounting->engine->ends.observer = &accounting->observer;
        accounting_configure(accounting);
        accounting_write(accounting);
        return 0;
}

int accounting_new(Engine *engine, Accounting **ret_accounting) {
        Accounting *accounting;
        int r;

        accounting = calloc(1, sizeof(*accounting));
        if (!accounting)
                return -ENOMEM;
        *ret_accounting = accounting;
        accounting->engine = engine;
        accounting->observer.job_ended = accounting_on_end;
        accounting->observer.jobs_done = accounting_on_done;
        TAILQ_INIT(&accounting->queries);
        r = tally_new(&accounting->tally);
        if (r < 0)
                return r;
        tally_tick(accounting->tally, accounting_now_ms());
        return accounting_open(accounting);
}

static void last_on_done(void *userdata) {
        AccountingWork *work = userdata;

        if (work->r && work->batch)
                log_warning("%llu ended jobs are missing in the history in %s: %s",
                            (unsigned long long)work->batch->n_jobs, work->accounting->path,
                            work_words(work->r));
}

/* Behind what the thread is doing now, if it is busy. */
void accounting_close(Accounting *accounting) {
        if (!accounting)
                return;
        accounting->engine->ends.observer = NULL;
        if (!accounting->disk)
                return;
        if (!accounting->is_busy && accounting->work.batch)
                accounting_start(accounting);
        if (accounting->is_on) {
                if (accounting->tally->n_jobs)
                        (void)tally_take(accounting->tally, &accounting->last.batch);
                accounting->last.closes = true;
                accounting_call(accounting, &accounting->last, last_on_done);
        }
        disk_close(accounting->disk);
}

Accounting *accounting_free(Accounting *accounting) {
        if (!accounting)
                return NULL;
        archive_free(accounting->archive);
        tally_batch_free(accounting->work.batch);
        tally_batch_free(accounting->last.batch);
        tally_free(accounting->tally);
        free(accounting->path);
        free(accounting->slurm_dir);
        free(accounting);
        return NULL;
}

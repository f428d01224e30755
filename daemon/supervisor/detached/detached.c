/* SPDX-License-Identifier: Apache-2.0 */
#include "detached.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "detached_state.h"
#include "util/list.h"
#include "util/log.h"

#define DETACHED_FOLDER "jobs" /* in state_dir; the keeper made this user its owner */

/* ---- jobs ------------------------------------------------------------------ */

uint64_t detached_id(const Detached *detached) {
        return detached->stored.number;
}

Gpuq__V1__Job *detached_job(const Detached *detached) {
        return detached->stored.record->detach->job;
}

Detached *detached_find(const DetachedTable *table, uint64_t id) {
        uint32_t number = (uint32_t)id;
        Detached *detached = NULL;

        if (detached_is_id(id))
                HASH_FIND(hh, table->jobs, &number, sizeof(number), detached);
        return detached;
}

int detached_make(DetachedTable *table, uint32_t number, uint32_t uid, Detached **ret_detached) {
        Detached *detached;

        detached = calloc(1, sizeof(*detached));
        if (!detached)
                return -ENOMEM;

        detached->stored = (StoredJob){.number = number, .uid = uid};
        detached->table = table;
        LIST_INIT(&detached->asks);
        HASH_ADD(hh, table->jobs, stored.number, sizeof(number), detached);
        if (!detached->hh.tbl) {
                free(detached);
                return -ENOMEM;
        }
        *ret_detached = detached;
        return 0;
}

uint64_t detached_bytes(const Detached *detached) {
        const StoredJob *stored = &detached->stored;
        const Gpuq__V1__Detach *detach = stored->record->detach;
        uint64_t n = detach->note.len + detach->job->operations.len;

        for (size_t i = 0; i < stored->n_extents; ++i)
                n += stored->extents[i].length *
                     (stored->extents[i].read + stored->extents[i].written);
        for (size_t i = 0; i < stored->record->n_modules; ++i)
                n += stored->record->modules[i]->length;
        return n;
}

void detached_destroy(Detached *detached) {
        assert(!detached->n_readers);

        detached_refuse(detached, DETACHED_ASK_ANY,
                        failure_new(FAILURE_NOT_FOUND, "no job " JOB_ID_FORMAT,
                                    JOB_ID_PARTS(detached_id(detached))));
        if (detached->state == DETACHED_QUEUED)
                TAILQ_REMOVE(&detached->owner->queued, detached, link);
        detached_release(detached);
        HASH_DEL(detached->table->jobs, detached);
        user_uncharge(&detached->jobs_charge);
        user_uncharge(&detached->bytes_charge);
        stored_job_clear(&detached->stored);
        free(detached);
}

/* ---- owners ---------------------------------------------------------------- */

static int owner_new(DetachedTable *table, User *user, DetachedOwner **ret_owner) {
        DetachedOwner *owner;
        int r;

        owner = calloc(1, sizeof(*owner));
        if (!owner)
                return -ENOMEM;
        r = submitter_init(&owner->submitter, table->engine, user,
                           session_next_id(table->host.clients), &detached_submitter_ops);
        if (r < 0) {
                free(owner);
                return r;
        }

        owner->uid = user->uid;
        owner->table = table;
        owner->user = user;
        TAILQ_INIT(&owner->queued);
        HASH_ADD(hh, table->owners, uid, sizeof(owner->uid), owner);
        if (!owner->hh.tbl) {
                submitter_fini(&owner->submitter);
                free(owner);
                return -ENOMEM;
        }
        *ret_owner = owner;
        return 0;
}

int detached_own(Detached *detached) {
        DetachedTable *table = detached->table;
        DetachedOwner *owner;
        User *user;
        int r;

        HASH_FIND(hh, table->owners, &detached->stored.uid, sizeof(detached->stored.uid), owner);
        if (!owner) {
                r = user_get(table->engine, detached->stored.uid, detached->stored.record->gid,
                             &user);
                if (r == 0)
                        r = owner_new(table, user, &owner);
                if (r < 0)
                        return r;
        }
        detached->owner = owner;
        return 0;
}

/* ---- what is on disk ------------------------------------------------------- */

/* Filled by a thread, read after the thread is done. */
struct DetachedScan {
        DiskCall call;
        DetachedTable *table;
        Store *store;
        StoreContent content;
        int r;
        bool is_done;
};

static void scan_in_thread(void *userdata) {
        DetachedScan *scan = userdata;

        scan->r = store_open(scan->table->folder, &scan->store, &scan->content);
}

static void scan_free(DetachedScan *scan) {
        store_content_clear(&scan->content);
        store_free(scan->store);
        free(scan);
}

/* Existing jobs count, even above a limit that was lowered. */
static void table_charge(Detached *detached) {
        User *user = detached->owner->user;

        (void)user_charge(user, &detached->jobs_charge, USER_DETACHED_JOBS, 1);
        (void)user_charge(user, &detached->bytes_charge, USER_DETACHED_BYTES,
                          detached_bytes(detached));
}

static int table_add(DetachedTable *table, StoredJob *job) {
        _cleanup_(freep) char *damage = TAKE_PTR(job->damage);
        Detached *detached;
        int r;

        r = detached_make(table, job->number, job->uid, &detached);
        if (r < 0)
                return r;
        if (damage) {
                detached_damaged(detached, damage);
                return 0;
        }
        detached->stored = *job;
        *job = (StoredJob){};
        r = detached_own(detached);
        if (r < 0) {
                detached_destroy(detached);
                return r;
        }

        table_charge(detached);
        if (detached->stored.end)
                detached->state = DETACHED_ENDED;
        else
                detached_enqueue(detached);
        return 0;
}

static void table_add_all(DetachedTable *table, StoreContent *content) {
        const Clients *clients = table->host.clients;
        int r;

        for (size_t i = 0; i < content->n_jobs; ++i) {
                StoredJob *job = &content->jobs[i];
                uint64_t id = job->number;

                if (!job->damage && clients->is_private && job->uid != clients->private_uid) {
                        log_warning("job " JOB_ID_FORMAT " on disk skipped: it belongs to uid %u",
                                    JOB_ID_PARTS(id), job->uid);
                        continue;
                }
                r = table_add(table, job);
                if (r < 0)
                        log_error("job " JOB_ID_FORMAT " on disk skipped until the next start: %s",
                                  JOB_ID_PARTS(id), strerror(-r));
        }
}

static void table_take(DetachedTable *table, DetachedScan *scan) {
        StoreContent *content = &scan->content;
        DetachedOwner *owner;

        table->is_known = true;
        table->store = TAKE_PTR(scan->store);
        table->last = content->last;
        if (content->n_old)
                log_warning("%u detached jobs of an earlier version of gpuqd in %s skipped: this "
                            "version cannot run them",
                            content->n_old, table->folder);
        table_add_all(table, content);
        if (content->n_jobs || table->is_late)
                log_info("found %zu detached job%s on disk", content->n_jobs,
                         content->n_jobs == 1 ? "" : "s");
        for (owner = table->owners; owner; owner = owner->hh.next)
                detached_admit(owner);
}

/* Clients may connect although the store was not read yet. */
static void table_let_in(DetachedTable *table) {
        if (table->is_late)
                return;
        log_warning("%s", table->problem);
        table->is_late = true;
        table->host.may_listen(table->host.userdata);
}

static const char *table_words(int r) {
        if (r == STORE_E_BUSY)
                return "another gpuqd uses it";
        if (r == STORE_E_VERSION)
                return "its database was written by a newer version of gpuqd";
        if (r == STORE_E_DAMAGED)
                return "its database is damaged; try to repair it with sqlite3's .recover";
        return strerror(-r);
}

/* The daemon retries: another gpuqd may be ending, and disks get repaired. */
static void table_miss(DetachedTable *table, int r) {
        uint64_t now_ns = engine_now(table->engine);
        char before[sizeof(table->problem)];

        memcpy(before, table->problem, sizeof(before));
        snprintf(table->problem, sizeof(table->problem), "cannot store detached jobs in %s: %s",
                 table->folder, table_words(r));
        if (table->is_late && strcmp(before, table->problem) != 0)
                log_warning("%s", table->problem);

        if (r == STORE_E_BUSY) {
                table->let_in_ns = MIN(table->let_in_ns, now_ns + DETACHED_BUSY_MS * 1000000ull);
                return;
        }
        table->retry_ns = now_ns + DETACHED_RETRY_MAX_MS * 1000000ull;
        table_let_in(table);
}

static void table_take_in(DetachedTable *table) {
        DetachedScan *scan = table->scan;

        if (!scan || !scan->is_done || !table->has_begun || table->is_stopped)
                return;
        table->scan = NULL;
        if (scan->r)
                table_miss(table, scan->r);
        else
                table_take(table, scan);
        scan_free(scan);
        table->host.may_listen(table->host.userdata);
}

static void scan_on_done(void *userdata) {
        DetachedScan *scan = userdata;

        scan->is_done = true;
        table_take_in(scan->table);
}

static int scan_start(DetachedTable *table) {
        DetachedScan *scan;

        scan = calloc(1, sizeof(*scan));
        if (!scan)
                return -ENOMEM;
        scan->table = table;
        scan->call = (DiskCall){scan_in_thread, scan_on_done, scan, {}};
        table->scan = scan;
        disk_call(table->disk, &scan->call);
        return 0;
}

/* ---- time ------------------------------------------------------------------ */

static bool detached_is_old(const Detached *detached, uint64_t keep_s, uint64_t now_s) {
        return detached->state == DETACHED_ENDED && !detached->n_readers &&
               now_s > detached->stored.end->ended_s &&
               now_s - detached->stored.end->ended_s > keep_s;
}

static void table_sweep(DetachedTable *table) {
        uint64_t keep_s = table->engine->config->detached_keep_s, now_s = (uint64_t)time(NULL);
        Detached *detached, *next;

        HASH_ITER (hh, table->jobs, detached, next)
                if (detached_is_old(detached, keep_s, now_s)) {
                        log_info("job " JOB_ID_FORMAT
                                 " discarded: it was not fetched within %llu s",
                                 JOB_ID_PARTS(detached_id(detached)), (unsigned long long)keep_s);
                        detached_remove(detached);
                }
}

static void table_tick(DetachedTable *table, uint64_t now_ns) {
        DetachedOwner *owner;
        Detached *detached, *next;

        HASH_ITER (hh, table->jobs, detached, next)
                if (detached->retry_ns && now_ns >= detached->retry_ns)
                        detached_retry(detached);
        for (owner = table->owners; owner; owner = owner->hh.next)
                detached_admit(owner);
        if (now_ns - table->sweep_ns >= DETACHED_SWEEP_S * 1000000000ull) {
                table->sweep_ns = now_ns;
                table_sweep(table);
        }
}

void detached_tick(DetachedTable *table, uint64_t now_ns) {
        if (table->is_stopped)
                return;
        if (table->is_known) {
                table_tick(table, now_ns);
                return;
        }
        if (now_ns > table->let_in_ns)
                table_let_in(table);
        if (!table->scan && now_ns >= table->retry_ns)
                (void)scan_start(table); /* without memory at the next tick */
}

/* ---- life ------------------------------------------------------------------ */

static int table_start(DetachedTable *table) {
        const char *state_dir = table->engine->config->state_dir;
        int r = 0;

        if (state_dir && asprintf(&table->folder, "%s/" DETACHED_FOLDER, state_dir) < 0) {
                table->folder = NULL;
                return -ENOMEM;
        }
        if (state_dir)
                r = disk_new(table->engine->loop, &table->disk);
        snprintf(table->problem, sizeof(table->problem), "cannot store detached jobs: %s",
                 !state_dir ? "state_dir is not set in gpuqd.conf"
                 : r < 0    ? strerror(-r)
                            : "the disk has not answered yet");
        table->is_known = !table->disk;
        return table->disk ? scan_start(table) : 0;
}

int detached_new(const DetachedHost *host, DetachedTable **ret_table) {
        DetachedTable *table;

        table = calloc(1, sizeof(*table));
        if (!table)
                return -ENOMEM;
        table->host = *host;
        table->engine = host->clients->engine;
        table->let_in_ns = uv_hrtime() + DETACHED_OPEN_MS * 1000000ull;
        *ret_table = table;
        return table_start(table);
}

void detached_begin(DetachedTable *table) {
        table->has_begun = true;
        table_take_in(table);
}

bool detached_is_known(const DetachedTable *table) {
        return table->is_known || table->is_late;
}

void detached_stop(DetachedTable *table) {
        DetachedOwner *owner;
        Detached *detached;

        if (!table)
                return;
        table->is_stopped = true;
        for (owner = table->owners; owner; owner = owner->hh.next)
                submission_close(&owner->submitter);
        for (detached = table->jobs; detached; detached = detached->hh.next)
                detached_release_modules(detached); /* no thread uses them */
}

void detached_close(DetachedTable *table) {
        if (table)
                disk_close(table->disk);
}

DetachedTable *detached_free(DetachedTable *table) {
        DetachedOwner *owner, *next_owner;
        Detached *detached, *next;

        if (!table)
                return NULL;
        HASH_ITER (hh, table->jobs, detached, next)
                detached_destroy(detached);
        HASH_ITER (hh, table->owners, owner, next_owner) {
                HASH_DEL(table->owners, owner);
                submission_close(&owner->submitter);
                submitter_fini(&owner->submitter);
                free(owner);
        }
        if (table->scan)
                scan_free(table->scan);
        store_free(table->store);
        free(table->folder);
        free(table);
        return NULL;
}

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

_Static_assert(sizeof(Detached) + 128 <= FOOTPRINT_DETACHED,
               "a detached job takes more than gpuqd --check says");

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
                n += load_bytes(stored->record->modules[i]);
        return n;
}

/* Its messages unpacked take some multiple of what they take packed. */
uint64_t detached_record_bytes(const Detached *detached) {
        const StoredJob *stored = &detached->stored;
        uint64_t n = gpuq__detached__record__get_packed_size(stored->record);

        if (stored->end)
                n += gpuq__detached__end__get_packed_size(stored->end);
        return n * DETACHED_UNPACKED + stored->n_extents * sizeof(*stored->extents);
}

/* ---- keys ------------------------------------------------------------------ */

Detached *detached_find_key(const DetachedTable *table, uint32_t uid, uint64_t key) {
        Detached *detached = NULL;
        DetachedOwner *owner;

        HASH_FIND(hh, table->owners, &uid, sizeof(uid), owner);
        if (owner)
                HASH_FIND(hh_key, owner->keys, &key, sizeof(key), detached);
        return detached;
}

/* Without memory it is not found again by its key. */
static void detached_note_key(Detached *detached) {
        detached->key = detached->stored.record->detach->key;
        if (detached->key)
                HASH_ADD(hh_key, detached->owner->keys, key, sizeof(detached->key), detached);
}

static void detached_forget_key(Detached *detached) {
        if (detached->hh_key.tbl)
                HASH_DELETE(hh_key, detached->owner->keys, detached);
}

/* ---- end ------------------------------------------------------------------- */

void detached_destroy(Detached *detached) {
        assert(!detached->n_readers);

        detached_refuse(detached, DETACHED_ASK_ANY,
                        failure_new(FAILURE_NOT_FOUND, "no job " JOB_ID_FORMAT,
                                    JOB_ID_PARTS(detached_id(detached))));
        if (detached->state == DETACHED_QUEUED)
                detached_unqueue(detached);
        detached_forget_key(detached);
        detached_release(detached);
        HASH_DEL(detached->table->jobs, detached);
        user_uncharge(&detached->jobs_charge);
        user_uncharge(&detached->bytes_charge);
        user_uncharge(&detached->record_charge);
        user_release(detached->cancelled_by);
        if (detached->owner)
                detached->owner->n_jobs--;
        stored_job_clear(&detached->stored);
        free(detached);
}

/* ---- owners ---------------------------------------------------------------- */

static DetachedLine *line_get(DetachedTable *table, uint32_t uid) {
        DetachedLine *line;

        HASH_FIND(hh, table->lines, &uid, sizeof(uid), line);
        if (line) {
                line->n_owners++;
                return line;
        }
        line = calloc(1, sizeof(*line));
        if (!line)
                return NULL;
        line->uid = uid;
        line->n_owners = 1;
        HASH_ADD(hh, table->lines, uid, sizeof(line->uid), line);
        if (line->hh.tbl)
                return line;
        free(line);
        return NULL;
}

/* An owner without jobs has no calls. */
static void line_put(DetachedTable *table, DetachedLine *line) {
        if (!line || --line->n_owners)
                return;
        HASH_DEL(table->lines, line);
        free(line);
}

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

        owner->submitter.waits_for_device = true;
        owner->uid = user->uid;
        owner->table = table;
        owner->user = user_hold(user);
        owner->line = line_get(table, user->person->uid);
        for (size_t i = 0; i < ARRAY_SIZE(owner->queued); ++i)
                TAILQ_INIT(&owner->queued[i]);
        if (owner->line)
                HASH_ADD(hh, table->owners, uid, sizeof(owner->uid), owner);
        if (!owner->hh.tbl) {
                line_put(table, owner->line);
                user_release(user);
                submitter_fini(&owner->submitter);
                free(owner);
                return -ENOMEM;
        }
        *ret_owner = owner;
        return 0;
}

static DetachedOwner *owner_find(const DetachedTable *table, uint32_t uid) {
        DetachedOwner *owner;

        HASH_FIND(hh, table->owners, &uid, sizeof(uid), owner);
        return owner;
}

int detached_own(Detached *detached) {
        DetachedTable *table = detached->table;
        DetachedOwner *owner = owner_find(table, detached->stored.uid);
        User *user;
        int r;

        if (!owner) {
                r = user_get(table->engine, detached->stored.uid, detached->stored.record->gid,
                             &user);
                if (r == 0)
                        r = owner_new(table, user, &owner);
                if (r < 0)
                        return r;
        }
        detached->owner = owner;
        owner->n_jobs++;
        detached_note_key(detached);
        return 0;
}

static void owner_free(DetachedOwner *owner) {
        HASH_DEL(owner->table->owners, owner);
        submission_close_now(&owner->submitter);
        submitter_fini(&owner->submitter);
        line_put(owner->table, owner->line);
        user_release(owner->user);
        free(owner);
}

static bool owner_is_idle(const DetachedOwner *owner) {
        const Submitter *submitter = &owner->submitter;

        return !owner->n_jobs && TAILQ_EMPTY(&submitter->jobs) && TAILQ_EMPTY(&submitter->gaps) &&
               LIST_EMPTY(&submitter->modules) && LIST_EMPTY(&submitter->making);
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
        (void)user_charge(user, &detached->record_charge, USER_RECORD_BYTES,
                          detached_record_bytes(detached));
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
        scan->call = (DiskCall){.run = scan_in_thread, .done = scan_on_done, .userdata = scan};
        table->scan = scan;
        disk_call(table->disk, &table->line, &scan->call);
        return 0;
}

/* ---- time ------------------------------------------------------------------ */

static bool detached_is_old(const Detached *detached, uint64_t keep_s, uint64_t now_s) {
        return detached->state == DETACHED_ENDED && !detached->n_readers &&
               now_s > detached->stored.end->ended_s &&
               now_s - detached->stored.end->ended_s > keep_s;
}

static void table_sweep(DetachedTable *table) {
        uint64_t keep_s = table->engine->config->keep.detached_s, now_s = (uint64_t)time(NULL);
        Detached *detached, *next;

        HASH_ITER (hh, table->jobs, detached, next)
                if (detached_is_old(detached, keep_s, now_s)) {
                        log_info("job " JOB_ID_FORMAT
                                 " discarded: it was not fetched within %llu s",
                                 JOB_ID_PARTS(detached_id(detached)), (unsigned long long)keep_s);
                        detached_remove(detached);
                }
}

/* Users who have no detached job any more. */
static void table_drop_owners(DetachedTable *table) {
        DetachedOwner *owner, *next;

        HASH_ITER (hh, table->owners, owner, next)
                if (owner_is_idle(owner))
                        owner_free(owner);
}

static void table_tick(DetachedTable *table, uint64_t now_ns) {
        DetachedOwner *owner;
        Detached *detached, *next;

        table_drop_owners(table);

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
                r = disk_new(table->engine->loop, DETACHED_THREADS, &table->disk);
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
                submission_close_now(&owner->submitter);
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
        HASH_ITER (hh, table->owners, owner, next_owner)
                owner_free(owner);
        if (table->scan)
                scan_free(table->scan);
        store_free(table->store);
        free(table->folder);
        free(table);
        return NULL;
}

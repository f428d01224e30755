/* SPDX-License-Identifier: Apache-2.0 */
#include "detached.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/list.h"
#include "loop.h"
#include "util/log.h"

#define DETACHED_FOLDER "jobs" /* of state_dir; the keeper made it ours */

/* ---- jobs ------------------------------------------------------------------ */

bool detached_is_id(uint64_t id) {
        return id && id <= UINT32_MAX;
}

uint64_t detached_id(const Detached *detached) {
        return detached->number;
}

Detached *detached_find(const Supervisor *supervisor, uint64_t id) {
        uint32_t number = (uint32_t)id;
        Detached *detached = NULL;

        if (detached_is_id(id) && supervisor->detached)
                HASH_FIND(hh, supervisor->detached->jobs, &number, sizeof(number), detached);
        return detached;
}

Detached *detached_first(const Supervisor *supervisor) {
        return supervisor->detached ? supervisor->detached->jobs : NULL;
}

size_t detached_count(const Supervisor *supervisor) {
        return supervisor->detached ? HASH_COUNT(supervisor->detached->jobs) : 0;
}

int detached_new(DetachedTable *table, uint32_t number, uint32_t uid, Detached **ret_detached) {
        Detached *detached;

        detached = calloc(1, sizeof(*detached));
        if (!detached)
                return -ENOMEM;

        detached->number = number;
        detached->uid = uid;
        detached->table = table;
        LIST_INIT(&detached->asks);
        HASH_ADD(hh, table->jobs, number, sizeof(detached->number), detached);
        if (!detached->hh.tbl) {
                free(detached);
                return -ENOMEM;
        }
        *ret_detached = detached;
        return 0;
}

uint64_t detached_bytes(const Gpuq__Spool__Record *record) {
        uint64_t n = record->note.len + record->job->operations.len;

        for (size_t i = 0; i < record->n_extents; ++i)
                n += record->extents[i]->length *
                     (record->extents[i]->read + record->extents[i]->written);
        for (size_t i = 0; i < record->n_modules; ++i)
                n += record->modules[i]->length;
        return n;
}

void detached_end_it(Detached *detached) {
        assert(!detached->is_working && !detached->n_readers);

        detached_refuse(detached, -1,
                        failure_new(FAILURE_NOT_FOUND, "there is no job " JOB_ID_FORMAT,
                                    JOB_ID_PARTS(detached_id(detached))));
        if (detached->state == DETACHED_QUEUED)
                TAILQ_REMOVE(&detached->owner->queued, detached, link);
        detached_release_sources(detached);
        detached_release(detached);
        HASH_DEL(detached->table->jobs, detached);
        user_uncharge(&detached->jobs_charge);
        user_uncharge(&detached->bytes_charge);
        if (detached->record)
                gpuq__spool__record__free_unpacked(detached->record, NULL);
        if (detached->end)
                gpuq__spool__end__free_unpacked(detached->end, NULL);
        free(detached->damage);
        free(detached->image_arenas);
        free(detached->modules);
        free(detached);
}

/* ---- owners ---------------------------------------------------------------- */

static int owner_new(DetachedTable *table, User *user, DetachedOwner **ret_owner) {
        DetachedOwner *owner;
        int r;

        owner = calloc(1, sizeof(*owner));
        if (!owner)
                return -ENOMEM;
        r = session_new_own(&table->supervisor->clients, user, &detached_owner_hooks,
                            &owner->session);
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
                session_free_own(owner->session);
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

        HASH_FIND(hh, table->owners, &detached->uid, sizeof(detached->uid), owner);
        if (!owner) {
                r = engine_get_user(&table->supervisor->engine, detached->uid,
                                    detached->record->gid, &user);
                if (r == 0)
                        r = owner_new(table, user, &owner);
                if (r < 0)
                        return r;
        }
        detached->owner = owner;
        return 0;
}

/* ---- what is on disk ------------------------------------------------------- */

/* Made by a thread, read when it is done. */
typedef struct DetachedScan {
        DiskCall call;
        Supervisor *supervisor;
        Spool *spool;
        uint32_t last;
        int r;
        bool is_done;
        struct DetachedFound {
                SpoolEntry entry;
                SpoolProblem damage;
        } * found;
        size_t n_found;
        size_t n_max;
} DetachedScan;

static int scan_on_found(const SpoolEntry *entry, void *userdata) {
        DetachedScan *scan = userdata;
        struct DetachedFound *found;
        size_t n_max;

        if (scan->n_found == scan->n_max) {
                n_max = scan->n_max ? 2 * scan->n_max : 64;
                found = reallocarray(scan->found, n_max, sizeof(*found));
                if (!found)
                        return -ENOMEM;
                scan->found = found;
                scan->n_max = n_max;
        }

        found = &scan->found[scan->n_found++];
        found->entry = *entry;
        if (entry->damage)
                snprintf(found->damage.text, sizeof(found->damage.text), "%s", entry->damage);
        return 0;
}

static void scan_in_thread(void *userdata) {
        DetachedScan *scan = userdata;

        scan->r = spool_open(scan->supervisor->detached->folder, &scan->spool);
        if (scan->r == 0)
                scan->r = spool_scan(scan->spool, scan_on_found, scan, &scan->last);
}

static void scan_free_entry(SpoolEntry *entry) {
        if (entry->record)
                gpuq__spool__record__free_unpacked(entry->record, NULL);
        if (entry->end)
                gpuq__spool__end__free_unpacked(entry->end, NULL);
}

/* What is there counts, though a limit has fallen below it. */
static void table_charge(Detached *detached) {
        User *user = detached->owner->user;

        (void)user_charge(user, &detached->jobs_charge, USER_DETACHED_JOBS, 1);
        (void)user_charge(user, &detached->bytes_charge, USER_DETACHED_BYTES,
                          detached_bytes(detached->record));
}

static void table_add_damaged(DetachedTable *table, const struct DetachedFound *found) {
        const SpoolEntry *entry = &found->entry;
        Detached *detached = detached_find(table->supervisor, entry->number);

        if (detached) /* set aside twice */
                return;
        if (detached_new(table, entry->number, entry->uid, &detached) == 0)
                detached_damage(detached, found->damage.text);
}

static int table_add_sound(DetachedTable *table, SpoolEntry *entry) {
        Detached *detached;
        int r;

        r = detached_new(table, entry->number, entry->uid, &detached);
        if (r < 0)
                return r;
        detached->record = TAKE_PTR(entry->record);
        detached->end = TAKE_PTR(entry->end);
        r = detached_own(detached);
        if (r < 0) {
                detached_end_it(detached);
                return r;
        }

        table_charge(detached);
        if (detached->end)
                detached->state = DETACHED_ENDED;
        else
                detached_enqueue(detached);
        return 0;
}

static void table_add(DetachedTable *table, struct DetachedFound *found) {
        Supervisor *supervisor = table->supervisor;
        SpoolEntry *entry = &found->entry;
        int r;

        if (entry->damage) {
                table_add_damaged(table, found);
                return;
        }
        if (supervisor->options.is_private && entry->uid != supervisor->options.private_uid) {
                log_warning("job " JOB_ID_FORMAT " on disk is of uid %u, and left there",
                            JOB_ID_PARTS((uint64_t)entry->number), entry->uid);
                return;
        }
        r = table_add_sound(table, entry);
        if (r < 0)
                log_error("job " JOB_ID_FORMAT " stays on disk until the next start: %s",
                          JOB_ID_PARTS((uint64_t)entry->number), strerror(-r));
}

/* Clients are let in though it is not known what is on disk. */
static void table_let_in(DetachedTable *table) {
        if (table->is_late)
                return;
        log_warning("%s", table->problem);
        table->is_late = true;
        supervisor_listen(table->supervisor);
}

/* It is tried again: whoever had it last may hold it for a moment yet, and disks are mended. */
static void table_miss(DetachedTable *table, const DetachedScan *scan) {
        bool is_busy = scan->r == SPOOL_E_BUSY;
        uint64_t now_ns = engine_now(&table->supervisor->engine);
        char before[sizeof(table->problem)];

        memcpy(before, table->problem, sizeof(before));
        snprintf(table->problem, sizeof(table->problem), "detached jobs cannot be kept in %s: %s",
                 table->folder,
                 is_busy ? "another gpuqd uses it" : strerror(scan->r < 0 ? -scan->r : EIO));
        if (table->is_late && strcmp(before, table->problem) != 0)
                log_warning("%s", table->problem);

        table->retry_ns = is_busy ? now_ns : now_ns + DETACHED_RETRY_MAX_MS * 1000000ull;
        if (!is_busy)
                table_let_in(table);
        else if (!table->busy_ns)
                table->busy_ns = now_ns;
}

static void scan_free(DetachedScan *scan) {
        for (size_t i = 0; i < scan->n_found; ++i)
                scan_free_entry(&scan->found[i].entry);
        spool_free(scan->spool);
        free(scan->found);
        free(scan);
}

static void table_take(DetachedTable *table, DetachedScan *scan) {
        DetachedOwner *owner;

        table->spool = TAKE_PTR(scan->spool);
        table->last = scan->last;
        for (size_t i = 0; i < scan->n_found; ++i)
                table_add(table, &scan->found[i]);
        if (scan->n_found || table->is_late)
                log_info("%zu detached jobs are on disk", scan->n_found);
        for (owner = table->owners; owner; owner = owner->hh.next)
                detached_admit(owner);
}

/* Their jobs need a session whose number nobody has, so not before that is known. */
void detached_take_in(Supervisor *supervisor) {
        DetachedTable *table = supervisor->detached;
        DetachedScan *scan = table->scan;

        if (!scan || !scan->is_done || !supervisor->is_started)
                return;
        table->scan = NULL;
        table->is_known = !scan->r;
        if (scan->r)
                table_miss(table, scan);
        else
                table_take(table, scan);
        scan_free(scan);
        supervisor_listen(supervisor);
}

static void scan_on_done(void *userdata) {
        DetachedScan *scan = userdata;

        scan->is_done = true;
        if (!scan->supervisor->detached->is_stopped)
                detached_take_in(scan->supervisor);
}

static int scan_start(Supervisor *supervisor) {
        DetachedScan *scan;

        scan = calloc(1, sizeof(*scan));
        if (!scan)
                return -ENOMEM;
        scan->supervisor = supervisor;
        scan->call = (DiskCall){scan_in_thread, scan_on_done, scan, {}};
        supervisor->detached->scan = scan;
        disk_call(supervisor->detached->disk, &scan->call);
        return 0;
}

/* ---- life ------------------------------------------------------------------ */

int detached_start(Supervisor *supervisor) {
        DetachedTable *table;
        int r;

        r = spool_file_init();
        if (r < 0)
                return r;
        table = calloc(1, sizeof(*table));
        if (!table)
                return -ENOMEM;

        table->supervisor = supervisor;
        table->open_ns = uv_hrtime();
        supervisor->detached = table;
        snprintf(table->problem, sizeof(table->problem),
                 "detached jobs cannot be kept: the disk has not answered yet");
        if (supervisor->config->state_dir) {
                if (asprintf(&table->folder, "%s/" DETACHED_FOLDER, supervisor->config->state_dir) <
                    0) {
                        table->folder = NULL;
                        return -ENOMEM;
                }
                r = disk_new(&supervisor->loop, &table->disk);
        }
        if (table->disk)
                return scan_start(supervisor);

        snprintf(table->problem, sizeof(table->problem), "detached jobs cannot be kept: %s",
                 r < 0 ? strerror(-r) : "gpuqd has no state_dir");
        table->is_known = true;
        return 0;
}

bool detached_is_known(const Supervisor *supervisor) {
        return !supervisor->detached || supervisor->detached->is_known ||
               supervisor->detached->is_late;
}

Failure *detached_check_id(const Supervisor *supervisor, uint64_t id) {
        const DetachedTable *table = supervisor->detached;

        if (!detached_is_id(id) || !table || table->is_known)
                return NULL;
        return failure_new(FAILURE_NO_DEVICE, "%s", table->problem);
}

static bool detached_is_old(const Detached *detached, uint64_t keep_s, uint64_t now_s) {
        return detached->state == DETACHED_ENDED && !detached->n_readers &&
               now_s > detached->end->ended_s && now_s - detached->end->ended_s > keep_s;
}

static void detached_sweep(DetachedTable *table) {
        uint64_t keep_s = table->supervisor->config->detached_keep_s, now_s = (uint64_t)time(NULL);
        Detached *detached, *next;

        HASH_ITER (hh, table->jobs, detached, next)
                if (detached_is_old(detached, keep_s, now_s)) {
                        log_info("job " JOB_ID_FORMAT " was not fetched in %llu s and is discarded",
                                 JOB_ID_PARTS(detached_id(detached)), (unsigned long long)keep_s);
                        detached_remove(detached);
                }
}

static void detached_tick_table(DetachedTable *table, uint64_t now_ns) {
        DetachedOwner *owner;
        Detached *detached, *next;

        HASH_ITER (hh, table->jobs, detached, next)
                if (detached->retry_ns && now_ns >= detached->retry_ns)
                        detached_retry(detached);
        for (owner = table->owners; owner; owner = owner->hh.next)
                if (!TAILQ_EMPTY(&owner->queued))
                        detached_admit(owner);
        if (now_ns - table->sweep_ns >= DETACHED_SWEEP_S * 1000000000ull) {
                table->sweep_ns = now_ns;
                detached_sweep(table);
        }
}

void detached_tick(Supervisor *supervisor, uint64_t now_ns) {
        DetachedTable *table = supervisor->detached;

        if (!table || table->is_stopped)
                return;
        if (table->is_known) {
                detached_tick_table(table, now_ns);
                return;
        }
        if (table->busy_ns ? now_ns - table->busy_ns > DETACHED_BUSY_MS * 1000000ull
                           : now_ns - table->open_ns > DETACHED_OPEN_MS * 1000000ull)
                table_let_in(table);
        if (!table->scan && now_ns >= table->retry_ns)
                (void)scan_start(supervisor); /* without memory at the next tick */
}

void detached_stop(Supervisor *supervisor) {
        DetachedTable *table = supervisor->detached;
        DetachedOwner *owner;
        Detached *detached;

        if (!table)
                return;
        table->is_stopped = true;
        for (owner = table->owners; owner; owner = owner->hh.next)
                session_end_own(owner->session);
        for (detached = table->jobs; detached; detached = detached->hh.next)
                detached_release_modules(detached); /* no thread touches them */
}

void detached_close(Supervisor *supervisor) {
        if (supervisor->detached)
                disk_close(supervisor->detached->disk);
}

void detached_free(Supervisor *supervisor) {
        DetachedTable *table = supervisor->detached;
        DetachedOwner *owner, *next_owner;
        Detached *detached, *next;

        if (!table)
                return;
        HASH_ITER (hh, table->jobs, detached, next)
                detached_end_it(detached);
        HASH_ITER (hh, table->owners, owner, next_owner) {
                HASH_DEL(table->owners, owner);
                session_free_own(owner->session);
                free(owner);
        }
        if (table->scan)
                scan_free(table->scan);
        spool_free(table->spool);
        disk_free(table->disk);
        free(table->folder);
        free(table);
        supervisor->detached = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rollback journal, not a write-ahead log: a log cannot be read on a file system that became
 * read-only. The journal's file is kept between transactions, so that a full disk has room for it.
 */
#include "store.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include <sqlite3.h>

#define STORE_DATABASE "jobs.sqlite"
#define STORE_VERSION  1
#define STORE_NAME_MAX 32u /* bytes of a file's name */

struct Store {
        int fd; /* of the folder */
        char *path;
        pthread_mutex_t lock; /* of db */
        sqlite3 *db;
        bool is_doubtful; /* rows may be missing: files without one are not removed */
};

/* ---- SQLite ---------------------------------------------------------------- */

/* Return: 0, STORE_E_BUSY, STORE_E_DAMAGED, or a negative errno. */
static int store_error(const Store *store, int code) {
        switch (code & 0xff) {
                case SQLITE_OK:
                case SQLITE_ROW:
                case SQLITE_DONE:
                        return 0;
                case SQLITE_BUSY:
                        return STORE_E_BUSY;
                case SQLITE_ERROR: /* the statements are correct, so the tables are not */
                case SQLITE_CORRUPT:
                case SQLITE_NOTADB:
                        return STORE_E_DAMAGED;
                case SQLITE_NOMEM:
                        return -ENOMEM;
                case SQLITE_FULL:
                        return -ENOSPC;
                case SQLITE_READONLY:
                        return -EROFS;
                default:
                        code = store->db ? sqlite3_system_errno(store->db) : 0;
                        return code ? -code : -EIO;
        }
}

static int store_exec(Store *store, const char *sql) {
        return store_error(store, sqlite3_exec(store->db, sql, NULL, NULL, NULL));
}

/* The first value, as text. Return: as store_error(). */
static int store_get(Store *store, const char *sql, char text[PAYLOAD_DAMAGE_MAX]) {
        const unsigned char *value = NULL;
        sqlite3_stmt *statement;
        int code;

        code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
        if (code == SQLITE_OK) {
                code = sqlite3_step(statement);
                value = code == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
                snprintf(text, PAYLOAD_DAMAGE_MAX, "%s", value ? (const char *)value : "");
                sqlite3_finalize(statement);
        }
        return store_error(store, code);
}

/* A row's data with the number and uid that it is stored under. */
static int64_t store_check(const StoredJob *job, const void *data, size_t n_data) {
        uint64_t head[] = {job->number, job->uid, n_data};

        return (int64_t)payload_check(payload_check(0, head, sizeof(head)), data, n_data);
}

/*
 * Runs one statement as a transaction. Its parameters, as far as it has them: the job's number and uid,
 * data, and the checksum of both. Return: 0: synced, or a negative errno.
 */
static int store_run(Store *store, const char *sql, const StoredJob *job, const void *data,
                     size_t n_data) {
        sqlite3_stmt *statement;
        int code, r;

        pthread_mutex_lock(&store->lock);
        code = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
        if (code == SQLITE_OK) {
                sqlite3_bind_int64(statement, 1, job->number);
                sqlite3_bind_int64(statement, 2, job->uid);
                sqlite3_bind_blob64(statement, 3, data, n_data, SQLITE_STATIC);
                sqlite3_bind_int64(statement, 4, store_check(job, data, n_data));
                code = sqlite3_step(statement);
                sqlite3_finalize(statement);
        }
        r = store_error(store, code);
        pthread_mutex_unlock(&store->lock);
        return r > 0 ? -EUCLEAN : r;
}

/* ---- jobs ------------------------------------------------------------------ */

void stored_job_clear(StoredJob *job) {
        if (job->record)
                gpuq__detached__record__free_unpacked(job->record, NULL);
        if (job->end)
                gpuq__detached__end__free_unpacked(job->end, NULL);
        free(job->damage);
        free(job->extents);
        *job = (StoredJob){.number = job->number, .uid = job->uid};
}

static bool stored_job_is_sound(const StoredJob *job) {
        const Gpuq__Detached__Record *record = job->record;
        const Gpuq__V1__Job *what = record->detach ? record->detach->job : NULL;

        if (!what || (job->end && !job->end->completion))
                return false;
        for (size_t i = 0; i < what->n_kernels; ++i)
                if (what->kernels[i]->module >= record->n_modules)
                        return false;
        for (size_t i = 0; i < what->n_buffers; ++i)
                if (what->buffers[i]->arena ||
                    what->buffers[i]->length > UINT64_MAX - what->buffers[i]->offset)
                        return false;
        return true;
}

int stored_job_check(StoredJob *job) {
        const Gpuq__V1__Job *what;

        if (!stored_job_is_sound(job))
                return STORE_E_DAMAGED;
        what = job->record->detach->job;
        job->extents = calloc(what->n_buffers + 1, sizeof(*job->extents));
        if (!job->extents)
                return -ENOMEM;
        job->n_extents = extents_of(what, job->extents);
        return 0;
}

size_t stored_job_parts(const StoredJob *job, bool output, int fd, PayloadPart *parts) {
        size_t n = 0;

        for (size_t i = 0; i < job->n_extents; ++i) {
                const Extent *extent = &job->extents[i];

                if (output ? extent->written : extent->read)
                        parts[n++] = (PayloadPart){fd, extent->offset, extent->length};
        }
        return n;
}

/* ---- calls ----------------------------------------------------------------- */

static void store_name(const StoredJob *job, bool output, char name[STORE_NAME_MAX]) {
        snprintf(name, STORE_NAME_MAX, "%u.%u.%s", job->number, job->uid, output ? "out" : "in");
}

static void store_unlink(Store *store, const StoredJob *job, bool output) {
        char name[STORE_NAME_MAX];

        store_name(job, output, name);
        (void)unlinkat(store->fd, name, 0);
}

static int store_put(Store *store, const StoredJob *job, bool output,
                     const ProtobufCMessage *message) {
        _cleanup_(freep) uint8_t *data = NULL;
        size_t n;

        data = malloc(protobuf_c_message_get_packed_size(message) + 1);
        if (!data)
                return -ENOMEM;
        n = protobuf_c_message_pack(message, data);
        return store_run(store,
                         output ? "INSERT OR REPLACE INTO ends VALUES (?1, ?3, ?4)"
                                : "INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, NULL)",
                         job, data, n);
}

/* First the file, then the row. */
static int store_both(Store *store, const StoredJob *job, bool output, const PayloadPart *parts,
                      size_t n_parts, uint64_t *check, const ProtobufCMessage *message) {
        char name[STORE_NAME_MAX];
        int r;

        store_name(job, output, name);
        r = payload_write(store->fd, name, parts, n_parts, check);
        if (r == 0)
                r = store_put(store, job, output, message);
        if (r < 0)
                store_unlink(store, job, output); /* frees the space of a partial file */
        return r;
}

/* Held before, and new, at most half of free and held before. */
int store_check_share(const Store *store, uint64_t n_held, uint64_t n_new) {
        struct statvfs st;
        uint64_t n_free;

        if (fstatvfs(store->fd, &st) < 0)
                return -errno;
        n_free = (uint64_t)st.f_bavail * st.f_frsize;
        if (n_new > n_free)
                return -ENOSPC;
        return n_held <= n_free - n_new ? 0 : STORE_E_SHARE;
}

int store_add(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts) {
        return store_both(store, job, false, parts, n_parts, &job->record->input_check,
                          &job->record->base);
}

int store_end(Store *store, StoredJob *job, const PayloadPart *parts, size_t n_parts) {
        int r;

        r = store_both(store, job, true, parts, n_parts, &job->end->output_check, &job->end->base);
        if (r == 0)
                store_unlink(store, job, false);
        return r;
}

static void store_set_aside(Store *store, const StoredJob *job, const char *damage) {
        (void)store_run(store, "UPDATE jobs SET damage = CAST(?3 AS TEXT) WHERE number = ?1", job,
                        damage, strlen(damage));
}

int store_load(Store *store, const StoredJob *job, bool output, const PayloadPart *parts,
               size_t n_parts, char damage[PAYLOAD_DAMAGE_MAX]) {
        char name[STORE_NAME_MAX];
        int r;

        store_name(job, output, name);
        r = payload_read(store->fd, name, parts, n_parts,
                         output ? job->end->output_check : job->record->input_check, damage);
        if (r == STORE_E_DAMAGED)
                store_set_aside(store, job, damage);
        return r;
}

/* A trigger removes its end. */
int store_remove(Store *store, const StoredJob *job) {
        int r;

        r = store_run(store, "DELETE FROM jobs WHERE number = ?1", job, NULL, 0);
        if (r == 0) {
                store_unlink(store, job, false);
                store_unlink(store, job, true);
        }
        return r;
}

/* ---- what is in it --------------------------------------------------------- */

/* NULL in the column stays NULL. Return: 0, STORE_E_DAMAGED, or -ENOMEM. */
static int scan_message(sqlite3_stmt *statement, int column, const StoredJob *job,
                        const ProtobufCMessageDescriptor *type, ProtobufCMessage **ret_message) {
        const uint8_t *data = sqlite3_column_blob(statement, column);
        size_t n_data = (size_t)sqlite3_column_bytes(statement, column);

        if (sqlite3_column_type(statement, column) == SQLITE_NULL)
                return 0;
        if (sqlite3_column_int64(statement, column + 1) != store_check(job, data, n_data))
                return STORE_E_DAMAGED;
        *ret_message = protobuf_c_message_unpack(type, NULL, n_data, data);
        return *ret_message ? 0 : -ENOMEM; /* its checksum is right, so it is a valid message */
}

/* Return: 0, or -ENOMEM. */
static int scan_row(Store *store, sqlite3_stmt *statement, StoredJob *job) {
        const char *damage = (const char *)sqlite3_column_text(statement, 2);
        int r = damage ? STORE_E_DAMAGED : 0;

        *job = (StoredJob){.number = (uint32_t)sqlite3_column_int64(statement, 0),
                           .uid = (uint32_t)sqlite3_column_int64(statement, 1)};
        if (r == 0)
                r = scan_message(statement, 3, job, &gpuq__detached__record__descriptor,
                                 (ProtobufCMessage **)&job->record);
        if (r == 0)
                r = scan_message(statement, 5, job, &gpuq__detached__end__descriptor,
                                 (ProtobufCMessage **)&job->end);
        if (r == 0)
                r = job->record ? stored_job_check(job) : STORE_E_DAMAGED;
        if (r != STORE_E_DAMAGED)
                return r;
        stored_job_clear(job);
        store->is_doubtful |= !damage;
        if (!damage)
                damage = STORE_DATABASE ": its row's checksum does not match";
        job->damage = strdup(damage);
        return job->damage ? 0 : -ENOMEM;
}

/* Return: 0, or as store_error(). */
static int scan_jobs(Store *store, StoreContent *content) {
        char text[PAYLOAD_DAMAGE_MAX];
        sqlite3_stmt *statement;
        int code, r;

        r = store_get(store, "SELECT count(*) FROM jobs", text);
        if (r)
                return r;
        content->jobs = calloc(strtoul(text, NULL, 10) + 1, sizeof(*content->jobs));
        if (!content->jobs)
                return -ENOMEM;
        code = sqlite3_prepare_v2(
                store->db,
                "SELECT jobs.number, uid, damage, jobs.data, jobs.\"check\", ends.data, "
                "ends.\"check\" FROM jobs LEFT JOIN ends USING (number) ORDER BY jobs.number",
                -1, &statement, NULL);
        if (code != SQLITE_OK)
                return store_error(store, code);
        while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
                r = scan_row(store, statement, &content->jobs[content->n_jobs++]);
        sqlite3_finalize(statement);
        return r ? r : store_error(store, code);
}

static int compare_jobs(const void *a, const void *b) {
        const StoredJob *x = a, *y = b;

        return x->number < y->number ? -1 : x->number > y->number;
}

static void scan_file(Store *store, StoreContent *content, const char *name) {
        char wanted[2][STORE_NAME_MAX];
        StoredJob key, *job;
        int n = 0;

        if (sscanf(name, "%10u.%10u%n", &key.number, &key.uid, &n) != 2)
                return;
        content->n_old += !name[n];
        for (int output = 0; output < 2; ++output)
                store_name(&key, output, wanted[output]);
        if (strcmp(name, wanted[0]) != 0 && strcmp(name, wanted[1]) != 0)
                return;
        content->last = MAX(content->last, key.number);
        job = bsearch(&key, content->jobs, content->n_jobs, sizeof(key), compare_jobs);
        if (!store->is_doubtful &&
            (!job || (!job->damage && strcmp(name, wanted[job->end != NULL]) != 0)))
                (void)unlinkat(store->fd, name, 0);
}

static int scan_files(Store *store, StoreContent *content) {
        DIR *dir = opendir(store->path);
        struct dirent *entry;

        if (!dir)
                return -errno;
        while ((entry = readdir(dir)))
                scan_file(store, content, entry->d_name);
        closedir(dir);
        return 0;
}

/* ---- open ------------------------------------------------------------------ */

/* Holds the lock from here to the end; a shared lock where nothing can be written. */
static int store_prepare(Store *store) {
        static const char schema[] =
                "CREATE TABLE jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER, "
                "data BLOB, \"check\" INTEGER, damage TEXT);"
                "CREATE TABLE ends (number INTEGER PRIMARY KEY, data BLOB, \"check\" INTEGER);"
                "CREATE TRIGGER removed AFTER DELETE ON jobs BEGIN "
                "DELETE FROM ends WHERE number = OLD.number; END;"
                "PRAGMA user_version = 1"; /* STORE_VERSION */
        char text[PAYLOAD_DAMAGE_MAX] = "";
        long version;
        int r;

        r = store_exec(store, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = PERSIST; "
                              "PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF; "
                              "PRAGMA temp_store = MEMORY");
        if (r == 0)
                r = store_exec(store, sqlite3_db_readonly(store->db, "main") ? "BEGIN"
                                                                             : "BEGIN EXCLUSIVE");
        if (r == 0)
                r = store_get(store, "PRAGMA user_version", text);
        if (r)
                return r;
        version = strtol(text, NULL, 10);
        store->is_doubtful = version == 0;
        if (version == 0)
                r = store_exec(store, schema);
        else if (version != STORE_VERSION)
                r = STORE_E_VERSION;
        if (r == 0)
                r = store_exec(store, "COMMIT");
        return r;
}

static int store_read(Store *store, StoreContent *content) {
        char text[PAYLOAD_DAMAGE_MAX] = "";
        int r;

        /* SQLite's own check reads the whole database, which has no payload. */
        r = store_get(store, "PRAGMA quick_check(1)", text);
        if (r == 0 && strcmp(text, "ok") != 0)
                r = STORE_E_DAMAGED;
        if (r == 0)
                r = store_get(store, "SELECT max(seq) FROM sqlite_sequence", text);
        content->last = (uint32_t)strtoul(text, NULL, 10);
        if (r == 0)
                r = scan_jobs(store, content);
        return r ? r : scan_files(store, content);
}

static int store_connect(Store *store) {
        _cleanup_(freep) char *path = NULL;
        int code;

        store->fd = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (store->fd < 0)
                return -errno;
        if (asprintf(&path, "%s/" STORE_DATABASE, store->path) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        code = sqlite3_open_v2(path, &store->db,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                               NULL);
        return code == SQLITE_OK ? store_prepare(store) : store_error(store, code);
}

int store_open(const char *path, Store **ret_store, StoreContent *ret_content) {
        _cleanup_(store_freep) Store *store = calloc(1, sizeof(*store));
        int r;

        *ret_content = (StoreContent){};
        if (!store)
                return -ENOMEM;
        store->fd = -1;
        pthread_mutex_init(&store->lock, NULL);
        store->path = strdup(path);
        if (!store->path)
                return -ENOMEM;
        r = store_connect(store);
        if (r == 0)
                r = store_read(store, ret_content);
        if (r) {
                store_content_clear(ret_content);
                return r;
        }
        *ret_store = TAKE_PTR(store);
        return 0;
}

void store_content_clear(StoreContent *content) {
        for (size_t i = 0; i < content->n_jobs; ++i)
                stored_job_clear(&content->jobs[i]);
        free(content->jobs);
        *content = (StoreContent){};
}

Store *store_free(Store *store) {
        if (!store)
                return NULL;
        (void)sqlite3_close(store->db);
        closep(&store->fd);
        free(store->path);
        pthread_mutex_destroy(&store->lock);
        free(store);
        return NULL;
}

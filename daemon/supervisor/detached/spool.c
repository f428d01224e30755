/* SPDX-License-Identifier: Apache-2.0 */
#include "spool_state.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SPOOL_LAST      "last"
#define SPOOL_LOCK      "lock"
#define SPOOL_AHEAD     256u  /* numbers noted at once as given out */
#define SPOOL_ASIDE_MAX 1000u /* folders of one number in damaged/ */

/* ---- parts of a job ------------------------------------------------------- */

static void image_name(size_t i, char name[SPOOL_NAME_MAX]) {
        snprintf(name, SPOOL_NAME_MAX, "image.%zu", i);
}

static int spool_open_job(Spool *spool, const Gpuq__Spool__Record *record) {
        char name[SPOOL_NAME_MAX];

        spool_name(record->number, record->uid, name);
        return spool_folder_open(spool->fd, name);
}

/* ---- numbers --------------------------------------------------------------- */

/* A file that is damaged is no loss: numbers are seen from the folders too. */
static int spool_read_last(Spool *spool) {
        _cleanup_(freep) uint8_t *data = NULL;
        SpoolProblem problem;
        size_t n_data;
        int r;

        r = spool_read_sealed(spool->fd, SPOOL_LAST, &data, &n_data, &problem);
        if (r == 0 && n_data == sizeof(spool->noted))
                memcpy(&spool->noted, data, sizeof(spool->noted));
        return r < 0 && r != -ENOENT ? r : 0;
}

/* A number is noted before a job has it, so that none is ever given twice. */
static int spool_note_number(Spool *spool, uint32_t number) {
        uint32_t noted;
        int r = 0;

        pthread_mutex_lock(&spool->lock);
        if (number > spool->noted) {
                noted = number > UINT32_MAX - SPOOL_AHEAD ? UINT32_MAX : number + SPOOL_AHEAD;
                r = spool_write_sealed(spool->fd, SPOOL_LAST, &noted, sizeof(noted));
                if (r == 0)
                        spool->noted = noted;
        }
        pthread_mutex_unlock(&spool->lock);
        return r;
}

/* ---- life ------------------------------------------------------------------ */

static int spool_take_lock(Spool *spool) {
        spool->lock_fd =
                openat(spool->fd, SPOOL_LOCK, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (spool->lock_fd < 0)
                return -errno;
        if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? SPOOL_E_BUSY : -errno;
        return 0;
}

int spool_open(const char *path, Spool **ret_spool) {
        _cleanup_(spool_freep) Spool *spool = NULL;
        int r;

        spool = calloc(1, sizeof(*spool));
        if (!spool)
                return -ENOMEM;
        spool->fd = spool->damaged_fd = spool->lock_fd = -1;
        pthread_mutex_init(&spool->lock, NULL);

        spool->fd = spool_folder_open(AT_FDCWD, path);
        if (spool->fd < 0)
                return spool->fd;
        r = spool_take_lock(spool);
        if (r)
                return r;
        spool->damaged_fd = spool_folder_make(spool->fd, SPOOL_DAMAGED);
        if (spool->damaged_fd < 0)
                return spool->damaged_fd;
        r = spool_read_last(spool);
        if (r < 0)
                return r;

        *ret_spool = TAKE_PTR(spool);
        return 0;
}

Spool *spool_free(Spool *spool) {
        if (!spool)
                return NULL;

        closep(&spool->damaged_fd);
        closep(&spool->lock_fd);
        closep(&spool->fd);
        pthread_mutex_destroy(&spool->lock);
        free(spool);
        return NULL;
}

/* ---- store ----------------------------------------------------------------- */

/* The extents that are in a file, one after the other. Return: how many. */
static size_t spool_parts(const Gpuq__Spool__Record *record, bool output, int fd,
                          SpoolPart *parts) {
        size_t n = 0;

        for (size_t i = 0; i < record->n_extents; ++i) {
                const Gpuq__Spool__Extent *extent = record->extents[i];

                if (output ? extent->written : extent->read)
                        parts[n++] = (SpoolPart){fd, extent->offset, extent->length};
        }
        return n;
}

static int bytes_set(ProtobufCBinaryData *to, const uint8_t digest[SPOOL_DIGEST_BYTES]) {
        uint8_t *data = malloc(SPOOL_DIGEST_BYTES);

        if (!data)
                return -ENOMEM;
        memcpy(data, digest, SPOOL_DIGEST_BYTES);
        free(to->data);
        *to = (ProtobufCBinaryData){SPOOL_DIGEST_BYTES, data};
        return 0;
}

static int store_input(int folder, Gpuq__Spool__Record *record, const SpoolPart *input) {
        _cleanup_(freep) SpoolPart *parts = NULL;
        uint8_t digest[SPOOL_DIGEST_BYTES];
        size_t n = 0;
        int r;

        parts = calloc(record->n_extents + 1, sizeof(*parts));
        if (!parts)
                return -ENOMEM;
        for (size_t i = 0; i < record->n_extents; ++i)
                if (record->extents[i]->read)
                        parts[n++] = input[i];
        r = spool_write_data(folder, "input", parts, n, digest);
        return r < 0 ? r : bytes_set(&record->input_digest, digest);
}

static int store_images(int folder, Gpuq__Spool__Record *record, const SpoolPart *images) {
        uint8_t digest[SPOOL_DIGEST_BYTES];
        char name[SPOOL_NAME_MAX];
        int r;

        for (size_t i = 0; i < record->n_modules; ++i) {
                if (images[i].fd < 0)
                        continue;
                image_name(i, name);
                r = spool_write_data(folder, name, &images[i], 1, digest);
                if (r == 0)
                        r = bytes_set(&record->modules[i]->digest, digest);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int store_message(int folder, const char *name, const ProtobufCMessage *message) {
        _cleanup_(freep) uint8_t *data = NULL;
        size_t n;

        data = malloc(protobuf_c_message_get_packed_size(message) + 1);
        if (!data)
                return -ENOMEM;
        n = protobuf_c_message_pack(message, data);
        return spool_write_sealed(folder, name, data, n);
}

static int store_files(int folder, Gpuq__Spool__Record *record, const SpoolPart *input,
                       const SpoolPart *images) {
        int r;

        r = store_input(folder, record, input);
        if (r == 0)
                r = store_images(folder, record, images);
        return r < 0 ? r : store_message(folder, "job", &record->base);
}

int spool_store(Spool *spool, Gpuq__Spool__Record *record, const SpoolPart *input,
                const SpoolPart *images) {
        char name[SPOOL_NAME_MAX], new_name[SPOOL_NAME_MAX + 8];
        _cleanup_(closep) int folder = -1;
        int r;

        spool_name(record->number, record->uid, name);
        snprintf(new_name, sizeof(new_name), "new-%s", name);
        r = spool_note_number(spool, record->number);
        if (r < 0)
                return r;
        folder = spool_folder_make(spool->fd, new_name);
        if (folder < 0)
                return folder;

        r = store_files(folder, record, input, images);
        if (r == 0 && renameat(spool->fd, new_name, spool->fd, name) < 0)
                r = -errno;
        if (r < 0) {
                (void)spool_folder_remove(spool->fd, new_name);
                return r;
        }
        r = spool_folder_sync(spool->fd);
        if (r < 0)
                (void)spool_remove(spool, record);
        return r;
}

/* ---- load ------------------------------------------------------------------ */

static int check_digest(const ProtobufCBinaryData *digest, const char *name,
                        SpoolProblem *problem) {
        if (digest->len == SPOOL_DIGEST_BYTES)
                return 0;
        snprintf(problem->text, sizeof(problem->text), "%s: it has no checksum", name);
        return SPOOL_E_DAMAGED;
}

static int load_file(int folder, const char *name, const SpoolPart *parts, size_t n_parts,
                     const ProtobufCBinaryData *digest, SpoolProblem *problem) {
        int r;

        r = check_digest(digest, name, problem);
        return r ? r : spool_read_data(folder, name, parts, n_parts, digest->data, problem);
}

static int load_images(int folder, const Gpuq__Spool__Record *record, const int *images,
                       SpoolProblem *problem) {
        char name[SPOOL_NAME_MAX];
        int r;

        for (size_t i = 0; i < record->n_modules; ++i) {
                SpoolPart part = {images[i], 0, record->modules[i]->length};

                if (images[i] < 0)
                        continue;
                image_name(i, name);
                r = load_file(folder, name, &part, 1, &record->modules[i]->digest, problem);
                if (r)
                        return r;
        }
        return 0;
}

int spool_load(Spool *spool, const Gpuq__Spool__Record *record, int arena, const int *images,
               SpoolProblem *problem) {
        _cleanup_(freep) SpoolPart *parts = NULL;
        _cleanup_(closep) int folder = -1;
        int r;

        parts = calloc(record->n_extents + 1, sizeof(*parts));
        if (!parts)
                return -ENOMEM;
        folder = spool_open_job(spool, record);
        if (folder < 0)
                return spool_folder_problem(folder, problem);
        r = load_file(folder, "input", parts, spool_parts(record, false, arena, parts),
                      &record->input_digest, problem);
        return r ? r : load_images(folder, record, images, problem);
}

uint64_t spool_output_bytes(const Gpuq__Spool__Record *record) {
        uint64_t n = 0;

        for (size_t i = 0; i < record->n_extents; ++i)
                if (record->extents[i]->written)
                        n += record->extents[i]->length;
        return n;
}

int spool_load_output(Spool *spool, const Gpuq__Spool__Record *record, const Gpuq__Spool__End *end,
                      int fd, SpoolProblem *problem) {
        SpoolPart part = {fd, 0, spool_output_bytes(record)};
        _cleanup_(closep) int folder = -1;

        folder = spool_open_job(spool, record);
        if (folder < 0)
                return spool_folder_problem(folder, problem);
        return load_file(folder, "output", &part, 1, &end->output_digest, problem);
}

/* ---- end ------------------------------------------------------------------- */

static int end_output(int folder, const Gpuq__Spool__Record *record, Gpuq__Spool__End *end,
                      int arena) {
        _cleanup_(freep) SpoolPart *parts = NULL;
        uint8_t digest[SPOOL_DIGEST_BYTES];
        int r;

        if (arena < 0)
                return 0;
        parts = calloc(record->n_extents + 1, sizeof(*parts));
        if (!parts)
                return -ENOMEM;
        r = spool_write_data(folder, "output", parts, spool_parts(record, true, arena, parts),
                             digest);
        return r < 0 ? r : bytes_set(&end->output_digest, digest);
}

static void end_tidy(int folder, const Gpuq__Spool__Record *record) {
        char name[SPOOL_NAME_MAX];

        (void)unlinkat(folder, "input", 0);
        for (size_t i = 0; i < record->n_modules; ++i) {
                image_name(i, name);
                (void)unlinkat(folder, name, 0);
        }
}

int spool_end(Spool *spool, const Gpuq__Spool__Record *record, Gpuq__Spool__End *end, int arena) {
        _cleanup_(closep) int folder = -1;
        int r;

        folder = spool_open_job(spool, record);
        if (folder < 0)
                return folder;
        r = end_output(folder, record, end, arena);
        if (r == 0)
                r = store_message(folder, "end", &end->base);
        if (r < 0) {
                (void)unlinkat(folder, "output", 0); /* room for what is there */
                return r;
        }
        end_tidy(folder, record);
        return 0;
}

int spool_remove(Spool *spool, const Gpuq__Spool__Record *record) {
        char name[SPOOL_NAME_MAX], old_name[SPOOL_NAME_MAX + 8];
        int r;

        spool_name(record->number, record->uid, name);
        snprintf(old_name, sizeof(old_name), "old-%s", name);
        if (renameat(spool->fd, name, spool->fd, old_name) < 0)
                return -errno;
        r = spool_folder_sync(spool->fd);
        (void)spool_folder_remove(spool->fd, old_name);
        return r;
}

int spool_set_aside(Spool *spool, uint32_t number, uint32_t uid) {
        char name[SPOOL_NAME_MAX], aside[SPOOL_NAME_MAX + 16];
        int r = -EEXIST;

        spool_name(number, uid, name);
        snprintf(aside, sizeof(aside), "%s", name);
        for (unsigned i = 1; i < SPOOL_ASIDE_MAX && r == -EEXIST; ++i) {
                r = renameat2(spool->fd, name, spool->damaged_fd, aside, RENAME_NOREPLACE) < 0
                            ? -errno
                            : 0;
                snprintf(aside, sizeof(aside), "%s.%u", name, i);
        }
        if (r < 0)
                return r;
        r = spool_folder_sync(spool->damaged_fd);
        return r < 0 ? r : spool_folder_sync(spool->fd);
}

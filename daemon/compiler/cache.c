/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <gcrypt.h>

#include "compiler/backend.h"

#define SUFFIX ".gpuq"

static const char magic[8] = "GPUQCCH1";

typedef struct Entry {
        char magic[8];
        uint64_t n_data;
        CacheKey key;
        uint8_t sum[CACHE_KEY_BYTES]; /* SHA-256 of the data */
} Entry;

static char *entry_path(const char *dir, const CacheKey *key) {
        char name[2 * CACHE_KEY_BYTES + sizeof(SUFFIX)];

        for (size_t i = 0; i < CACHE_KEY_BYTES; i++)
                snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
        memcpy(name + 2 * CACHE_KEY_BYTES, SUFFIX, sizeof(SUFFIX));

        return request_path(dir, name);
}

static void make_entry(const CacheKey *key, const void *data, size_t n_data, Entry *ret_entry) {
        Entry entry = {.n_data = n_data, .key = *key};

        memcpy(entry.magic, magic, sizeof(magic));
        gcry_md_hash_buffer(GCRY_MD_SHA256, entry.sum, data, n_data);
        *ret_entry = entry;
}

int cache_get(const char *dir, const CacheKey *key, void **ret_data, size_t *ret_n_data) {
        _cleanup_(freep) char *path = entry_path(dir, key), *file = NULL;
        Entry wanted;
        size_t n_file;
        int r;

        if (!path)
                return -ENOMEM;

        r = backend_read_file(path, &file, &n_file);
        if (r < 0)
                return r;
        if (n_file < sizeof(wanted))
                return -ENOENT;

        n_file -= sizeof(wanted);
        make_entry(key, file + sizeof(wanted), n_file, &wanted);
        if (memcmp(file, &wanted, sizeof(wanted)))
                return -ENOENT;

        /* What was used last stays longest. */
        (void)utimensat(AT_FDCWD, path, NULL, 0);

        memmove(file, file + sizeof(wanted), n_file);
        *ret_data = TAKE_PTR(file);
        *ret_n_data = n_file;
        return 0;
}

typedef struct Old {
        char *name;
        struct timespec used;
        size_t n_bytes;
} Old;

static int compare_used(const void *a, const void *b) {
        const struct timespec *x = &((const Old *)a)->used, *y = &((const Old *)b)->used;

        if (x->tv_sec != y->tv_sec)
                return x->tv_sec < y->tv_sec ? -1 : 1;
        return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_entry(const char *name) {
        size_t n = strlen(name);

        return n > strlen(SUFFIX) && strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

static int list(DIR *dir, Old **ret_files, size_t *ret_n) {
        struct dirent *entry;
        Old *files = NULL;
        size_t n = 0;

        while ((entry = readdir(dir))) {
                Old *more;
                struct stat st;

                if (!is_entry(entry->d_name) ||
                    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                more = reallocarray(files, n + 1, sizeof(*files));
                if (!more)
                        break;
                files = more;
                files[n] = (Old){strdup(entry->d_name), st.st_mtim, st.st_size};
                if (!files[n].name)
                        break;
                n++;
        }
        *ret_files = files;
        *ret_n = n;
        return 0;
}

/* Best done: what is not seen now is seen at the next put. */
static void trim(const char *path, size_t n_bytes_max) {
        DIR *dir = opendir(path);
        size_t n, total = 0;
        Old *files;

        if (!dir)
                return;

        (void)list(dir, &files, &n);
        if (n > 0)
                qsort(files, n, sizeof(*files), compare_used);
        for (size_t i = 0; i < n; i++)
                total += files[i].n_bytes;
        for (size_t i = 0; i < n; i++) {
                if (total > n_bytes_max && unlinkat(dirfd(dir), files[i].name, 0) == 0)
                        total -= files[i].n_bytes;
                free(files[i].name);
        }
        free(files);
        closedir(dir);
}

static int write_file(int fd, const Entry *entry, const void *data, size_t n_data) {
        FILE *f = fdopen(fd, "w");
        bool bad;

        if (!f) {
                close(fd);
                return -ENOMEM;
        }

        fwrite(entry, sizeof(*entry), 1, f);
        fwrite(data, 1, n_data, f);
        bad = ferror(f);
        return fclose(f) != 0 || bad ? -EIO : 0;
}

int cache_put(const char *dir, const CacheKey *key, const void *data, size_t n_data,
              size_t n_bytes_max) {
        _cleanup_(freep) char *path = entry_path(dir, key), *temporary = NULL;
        Entry entry;
        int fd, r;

        temporary = request_path(dir, ".new-XXXXXX");
        if (!path || !temporary)
                return -ENOMEM;

        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;

        make_entry(key, data, n_data, &entry);
        r = write_file(fd, &entry, data, n_data);
        if (r == 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(temporary);
                return r;
        }

        trim(dir, n_bytes_max);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include <gcrypt.h>

#include "compiler/backend.h"
#include "util/grow.h"

#define SUFFIX      ".gpuq"
#define NEW_PREFIX  ".new-"
#define LEFT_OVER_S (24 * 3600)

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

/* ---- room ---------------------------------------------------------------------- */

typedef struct Old {
        char *name;
        struct timespec used;
        uint64_t n_bytes;
} Old;

/* What is in a folder: results, and the bytes of all its files. */
typedef struct Listing {
        Old *files;
        size_t n_files;
        uint64_t n_bytes;
} Listing;

static int compare_used(const void *a, const void *b) {
        const struct timespec *x = &((const Old *)a)->used, *y = &((const Old *)b)->used;

        if (x->tv_sec != y->tv_sec)
                return x->tv_sec < y->tv_sec ? -1 : 1;
        return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool has_suffix(const char *name) {
        size_t n = strlen(name);

        return n > strlen(SUFFIX) && strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

/* A compiler that was killed left it half written. */
static bool is_left_over(const char *name, const struct stat *st) {
        return strncmp(name, NEW_PREFIX, strlen(NEW_PREFIX)) == 0 &&
               st->st_mtime < time(NULL) - LEFT_OVER_S;
}

static int listing_add(Listing *listing, const char *name, const struct stat *st) {
        Old *old;

        listing->n_bytes += (uint64_t)st->st_size;
        if (!has_suffix(name) && !is_left_over(name, st))
                return 0;
        if (grow(&listing->files, listing->n_files, sizeof(*old)) < 0)
                return -ENOMEM;
        old = &listing->files[listing->n_files];
        *old = (Old){strdup(name), st->st_mtim, (uint64_t)st->st_size};
        if (!old->name)
                return -ENOMEM;
        listing->n_files++;
        return 0;
}

static int listing_read(DIR *dir, Listing *listing) {
        struct dirent *entry;
        struct stat st;
        int r;

        while ((entry = readdir(dir))) {
                if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    !S_ISREG(st.st_mode))
                        continue;
                r = listing_add(listing, entry->d_name, &st);
                if (r < 0)
                        return r;
        }
        if (listing->n_files > 0)
                qsort(listing->files, listing->n_files, sizeof(*listing->files), compare_used);
        return 0;
}

static void listing_clear(Listing *listing) {
        for (size_t i = 0; i < listing->n_files; i++)
                free(listing->files[i].name);
        free(listing->files);
}

uint64_t cache_most(const CacheDisk *disk, uint64_t n_own, uint64_t n_bytes_max) {
        uint64_t n_left = disk->n_free + n_own, n_last = disk->n_all / CACHE_DISK_PART;
        uint64_t n_disk = n_left > n_last ? MIN(n_left / 2, n_left - n_last) : 0;

        return MIN(n_disk, n_bytes_max);
}

static int read_disk(int fd, CacheDisk *ret_disk) {
        struct statvfs st;

        if (fstatvfs(fd, &st) < 0)
                return -errno;
        *ret_disk = (CacheDisk){
                .n_all = (uint64_t)st.f_blocks * st.f_frsize,
                .n_free = (uint64_t)st.f_bavail * st.f_frsize,
        };
        return 0;
}

/* Oldest first, until @n_new bytes more are not too much. */
static int trim(int fd, Listing *listing, uint64_t n_new, uint64_t n_most) {
        if (n_new > n_most)
                return -ENOSPC;
        for (size_t i = 0; i < listing->n_files && listing->n_bytes > n_most - n_new; i++)
                if (unlinkat(fd, listing->files[i].name, 0) == 0)
                        listing->n_bytes -= listing->files[i].n_bytes;
        return listing->n_bytes > n_most - n_new ? -ENOSPC : 0;
}

static int make_room(const char *path, uint64_t n_new, uint64_t n_bytes_max) {
        Listing listing = {};
        CacheDisk disk = {};
        DIR *dir;
        int r;

        dir = opendir(path);
        if (!dir)
                return -errno;

        r = listing_read(dir, &listing);
        if (r == 0)
                r = read_disk(dirfd(dir), &disk);
        if (r == 0)
                r = trim(dirfd(dir), &listing, n_new,
                         cache_most(&disk, listing.n_bytes, n_bytes_max));
        listing_clear(&listing);
        closedir(dir);
        return r;
}

/* ---- a new one ----------------------------------------------------------------- */

/* Who can read the folder can read the file. */
static int create_file(const char *dir, char *template) {
        _cleanup_(closep) int fd = -1;
        struct stat st;

        fd = mkostemp(template, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (stat(dir, &st) < 0 || fchmod(fd, st.st_mode & 0644) < 0) {
                int r = -errno;

                (void)unlink(template);
                return r;
        }
        return TAKE_FD(fd);
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
              uint64_t n_bytes_max) {
        _cleanup_(freep) char *path = entry_path(dir, key), *temporary = NULL;
        Entry entry;
        int fd, r;

        temporary = request_path(dir, NEW_PREFIX "XXXXXX");
        if (!path || !temporary)
                return -ENOMEM;
        r = make_room(dir, sizeof(entry) + n_data, n_bytes_max);
        if (r < 0)
                return r;

        fd = create_file(dir, temporary);
        if (fd < 0)
                return fd;

        make_entry(key, data, n_data, &entry);
        r = write_file(fd, &entry, data, n_data);
        if (r == 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(temporary);
                return r;
        }
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "spool_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include <gcrypt.h>

#define SPOOL_MAGIC       "GPUQSPL"
#define SPOOL_BLOCK_BYTES (256u << 10)
#define SPOOL_NEW         ".new" /* what a file is called until it is whole */

typedef struct SpoolHead {
        char magic[8];
        uint32_t version;
        uint32_t reserved;
        uint64_t length;
        uint8_t digest[SPOOL_DIGEST_BYTES];
} SpoolHead;

typedef gcry_md_hd_t Hash;

static void hash_closep(Hash *hash) {
        gcry_md_close(*hash); /* NULL is fine */
}

int spool_file_init(void) {
        if (!gcry_check_version(NULL))
                return -ENOSYS;
        (void)gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
        (void)gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
        return 0;
}

int spool_is_passing(int error) {
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN;
}

/* ---- whole reads and writes ------------------------------------------------ */

static int file_write(int fd, const uint8_t *data, size_t n_data) {
        ssize_t n;

        while (n_data) {
                n = write(fd, data, n_data);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                n_data -= (size_t)n;
        }
        return 0;
}

/* At its place, or fewer at the end. */
static int file_pread(int fd, uint8_t *data, size_t n_data, uint64_t offset, size_t *ret_n) {
        size_t n_done = 0;
        ssize_t n;

        while (n_done < n_data) {
                n = pread(fd, data + n_done, n_data - n_done, (off_t)(offset + n_done));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                n_done += (size_t)n;
        }
        *ret_n = n_done;
        return 0;
}

static int file_pwrite(int fd, const uint8_t *data, size_t n_data, uint64_t offset) {
        ssize_t n;

        while (n_data) {
                n = pwrite(fd, data, n_data, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                offset += (uint64_t)n;
                n_data -= (size_t)n;
        }
        return 0;
}

static int file_sync(int fd) {
        int r;

        do
                r = fsync(fd);
        while (r < 0 && errno == EINTR);
        return r < 0 ? -errno : 0;
}

static int file_create(int folder, const char *name) {
        int fd;

        fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : fd;
}

/* A regular file and nothing else: a pipe would be waited for. */
static int file_open(int folder, const char *name, uint64_t *ret_n_bytes, SpoolProblem *problem) {
        _cleanup_(closep) int fd = -1;
        struct stat st;

        fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
                if (errno == ENOENT || spool_is_passing(-errno))
                        return -errno;
                snprintf(problem->text, sizeof(problem->text), "%s: %s", name, strerror(errno));
                return -EIO;
        }
        if (!S_ISREG(st.st_mode)) {
                snprintf(problem->text, sizeof(problem->text), "%s: is no file", name);
                return -EIO;
        }

        *ret_n_bytes = (uint64_t)st.st_size;
        return TAKE_FD(fd);
}

static int damaged(SpoolProblem *problem, const char *name, const char *what) {
        snprintf(problem->text, sizeof(problem->text), "%s: %s", name, what);
        return SPOOL_E_DAMAGED;
}

/* ---- sealed files ---------------------------------------------------------- */

static int seal(const void *data, size_t n_data, SpoolHead *head) {
        _cleanup_(hash_closep) Hash hash = NULL;

        if (gcry_md_open(&hash, GCRY_MD_SHA256, 0))
                return -ENOMEM;
        *head = (SpoolHead){.magic = SPOOL_MAGIC, .version = SPOOL_VERSION, .length = n_data};
        /* The head's own bytes too, so that no bit of the file may change. */
        gcry_md_write(hash, head, sizeof(*head));
        gcry_md_write(hash, data, n_data);
        memcpy(head->digest, gcry_md_read(hash, GCRY_MD_SHA256), SPOOL_DIGEST_BYTES);
        return 0;
}

static int write_sealed_new(int folder, const char *name, const void *data, size_t n_data) {
        _cleanup_(closep) int fd = -1;
        SpoolHead head;
        int r;

        r = seal(data, n_data, &head);
        if (r < 0)
                return r;
        fd = file_create(folder, name);
        if (fd < 0)
                return fd;
        r = file_write(fd, (const uint8_t *)&head, sizeof(head));
        if (r == 0)
                r = file_write(fd, data, n_data);
        return r < 0 ? r : file_sync(fd);
}

int spool_write_sealed(int folder, const char *name, const void *data, size_t n_data) {
        char new_name[64];
        int r;

        if (n_data > SPOOL_SEALED_MAX)
                return -EFBIG;
        snprintf(new_name, sizeof(new_name), "%s" SPOOL_NEW, name);
        r = write_sealed_new(folder, new_name, data, n_data);
        if (r == 0 && renameat(folder, new_name, folder, name) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlinkat(folder, new_name, 0);
                return r;
        }
        return file_sync(folder);
}

static int check_sealed(const char *name, const SpoolHead *head, const uint8_t *data,
                        uint64_t n_data, SpoolProblem *problem) {
        SpoolHead wanted;
        int r;

        if (memcmp(head->magic, SPOOL_MAGIC, sizeof(head->magic)))
                return damaged(problem, name, "is no file of gpuqd");
        if (head->version != SPOOL_VERSION) {
                snprintf(problem->text, sizeof(problem->text),
                         "%s: is of version %u, this gpuqd reads version %u", name, head->version,
                         SPOOL_VERSION);
                return SPOOL_E_DAMAGED;
        }
        if (head->length != n_data)
                return damaged(problem, name, "is cut short or too long");
        r = seal(data, n_data, &wanted);
        if (r < 0)
                return r;
        return memcmp(head, &wanted, sizeof(wanted))
                       ? damaged(problem, name, "its checksum does not match")
                       : 0;
}

static int read_sealed(int fd, const char *name, uint64_t n_file, uint8_t **ret_data,
                       size_t *ret_n_data, SpoolProblem *problem) {
        _cleanup_(freep) uint8_t *data = NULL;
        SpoolHead head;
        size_t n_head = 0, n_data = 0;
        int r;

        if (n_file < sizeof(head) || n_file > sizeof(head) + SPOOL_SEALED_MAX)
                return damaged(problem, name, "is cut short or too long");
        data = malloc(n_file - sizeof(head) + 1);
        if (!data)
                return -ENOMEM;
        r = file_pread(fd, (uint8_t *)&head, sizeof(head), 0, &n_head);
        if (r == 0)
                r = file_pread(fd, data, n_file - sizeof(head), sizeof(head), &n_data);
        if (r < 0)
                return damaged(problem, name, strerror(-r));
        if (n_head < sizeof(head))
                return damaged(problem, name, "is cut short or too long");
        r = check_sealed(name, &head, data, n_data, problem);
        if (r)
                return r;

        *ret_data = TAKE_PTR(data);
        *ret_n_data = n_data;
        return 0;
}

int spool_read_sealed(int folder, const char *name, uint8_t **ret_data, size_t *ret_n_data,
                      SpoolProblem *problem) {
        _cleanup_(closep) int fd = -1;
        uint64_t n_file;

        fd = file_open(folder, name, &n_file, problem);
        if (fd == -EIO)
                return SPOOL_E_DAMAGED;
        if (fd < 0)
                return fd;
        return read_sealed(fd, name, n_file, ret_data, ret_n_data, problem);
}

/* ---- data files ------------------------------------------------------------ */

typedef struct Stream {
        int fd; /* of the file */
        uint64_t offset;
        Hash hash;
        uint8_t *block;
} Stream;

static void stream_finish(Stream *stream) {
        closep(&stream->fd);
        gcry_md_close(stream->hash);
        free(stream->block);
}

static int stream_init(Stream *stream) {
        stream->block = malloc(SPOOL_BLOCK_BYTES);
        if (!stream->block || gcry_md_open(&stream->hash, GCRY_MD_SHA256, 0))
                return -ENOMEM;
        return 0;
}

static int stream_write_part(Stream *stream, const SpoolPart *part) {
        uint64_t at = 0;
        size_t n = 0;
        int r;

        while (at < part->length) {
                r = file_pread(part->fd, stream->block,
                               (size_t)MIN(part->length - at, SPOOL_BLOCK_BYTES), part->offset + at,
                               &n);
                if (r < 0)
                        return r;
                if (n == 0)
                        return -EIO; /* our own memory, which cannot shrink */
                gcry_md_write(stream->hash, stream->block, n);
                r = file_write(stream->fd, stream->block, n);
                if (r < 0)
                        return r;
                at += n;
        }
        return 0;
}

int spool_write_data(int folder, const char *name, const SpoolPart *parts, size_t n_parts,
                     uint8_t ret_digest[SPOOL_DIGEST_BYTES]) {
        _cleanup_(stream_finish) Stream stream = {.fd = -1};
        int r;

        r = stream_init(&stream);
        if (r < 0)
                return r;
        stream.fd = file_create(folder, name);
        if (stream.fd < 0)
                return stream.fd;
        for (size_t i = 0; i < n_parts; ++i) {
                r = stream_write_part(&stream, &parts[i]);
                if (r < 0)
                        return r;
        }
        r = file_sync(stream.fd);
        if (r < 0)
                return r;

        memcpy(ret_digest, gcry_md_read(stream.hash, GCRY_MD_SHA256), SPOOL_DIGEST_BYTES);
        return 0;
}

/* Return: 0, SPOOL_E_DAMAGED: the file has no more or cannot be read, or a negative errno. */
static int stream_read_part(Stream *stream, const char *name, const SpoolPart *part,
                            SpoolProblem *problem) {
        uint64_t at = 0;
        size_t n = 0;
        int r;

        while (at < part->length) {
                r = file_pread(stream->fd, stream->block,
                               (size_t)MIN(part->length - at, SPOOL_BLOCK_BYTES), stream->offset,
                               &n);
                if (r < 0)
                        return damaged(problem, name, strerror(-r));
                if (n == 0)
                        return damaged(problem, name, "is cut short or too long");
                gcry_md_write(stream->hash, stream->block, n);
                r = file_pwrite(part->fd, stream->block, n, part->offset + at);
                if (r < 0)
                        return r;
                stream->offset += n;
                at += n;
        }
        return 0;
}

int spool_read_data(int folder, const char *name, const SpoolPart *parts, size_t n_parts,
                    const uint8_t digest[SPOOL_DIGEST_BYTES], SpoolProblem *problem) {
        _cleanup_(stream_finish) Stream stream = {.fd = -1};
        uint64_t n_file, n_wanted = 0;
        int r;

        r = stream_init(&stream);
        if (r < 0)
                return r;
        stream.fd = file_open(folder, name, &n_file, problem);
        if (stream.fd == -EIO)
                return SPOOL_E_DAMAGED;
        if (stream.fd == -ENOENT)
                return damaged(problem, name, "is missing");
        if (stream.fd < 0)
                return stream.fd;

        for (size_t i = 0; i < n_parts; ++i)
                n_wanted += parts[i].length;
        if (n_file != n_wanted)
                return damaged(problem, name, "is cut short or too long");
        for (size_t i = 0; i < n_parts; ++i) {
                r = stream_read_part(&stream, name, &parts[i], problem);
                if (r)
                        return r;
        }
        if (memcmp(gcry_md_read(stream.hash, GCRY_MD_SHA256), digest, SPOOL_DIGEST_BYTES))
                return damaged(problem, name, "its checksum does not match");
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/macro.h"

#define PAYLOAD_BLOCK_BYTES (256u << 10)
#define PAYLOAD_DIRTY_BYTES (4u << 20) /* a multiple of the block */

/* Any change of one word changes the result. */
uint64_t payload_check(uint64_t check, const void *data, size_t n_data) {
        const uint8_t *at = data;
        uint64_t word;

        for (size_t n; n_data; at += n, n_data -= n) {
                n = MIN(n_data, sizeof(word));
                word = 0;
                memcpy(&word, at, n);
                check = (check ^ word) * 0xff51afd7ed558ccdull;
                check ^= check >> 32;
        }
        return check;
}

/* ---- bytes ----------------------------------------------------------------- */

/* Return: 0: all bytes, -ENODATA: the file has no more, or a negative errno. */
static int move_bytes(int fd, uint8_t *data, size_t n_data, uint64_t offset, bool write) {
        ssize_t n;

        while (n_data) {
                n = write ? pwrite(fd, data, n_data, (off_t)offset)
                          : pread(fd, data, n_data, (off_t)offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                data += n;
                offset += (uint64_t)n;
                n_data -= (size_t)n;
        }
        return 0;
}

/* A position in the bytes of several consecutive parts. */
typedef struct Cursor {
        const PayloadPart *part;
        uint64_t done; /* of it */
} Cursor;

static int cursor_move(Cursor *cursor, uint8_t *data, size_t n_data, bool write) {
        int r = 0;

        while (n_data && r == 0) {
                const PayloadPart *part = cursor->part;
                size_t n = (size_t)MIN(part->length - cursor->done, (uint64_t)n_data);

                r = move_bytes(part->fd, data, n, part->offset + cursor->done, write);
                data += n;
                n_data -= n;
                cursor->done += n;
                if (cursor->done == part->length)
                        *cursor = (Cursor){.part = part + 1};
        }
        return r;
}

static uint64_t parts_bytes(const PayloadPart *parts, size_t n_parts) {
        uint64_t n = 0;

        for (size_t i = 0; i < n_parts; ++i)
                n += parts[i].length;
        return n;
}

/*
 * Starts to write the last bytes up to @end to the disk, and waits for those before them. Most file
 * systems make every fsync() wait for all that any file has in memory: with a large file there, another
 * user's job of a few bytes took as long to store as the large one.
 */
static int payload_push(int fd, uint64_t end) {
        uint64_t begin = end - PAYLOAD_DIRTY_BYTES;
        int r = 0;

        if (end % PAYLOAD_DIRTY_BYTES)
                return 0;
        r = sync_file_range(fd, (off_t)begin, PAYLOAD_DIRTY_BYTES, SYNC_FILE_RANGE_WRITE);
        if (r == 0 && begin)
                r = sync_file_range(fd, (off_t)(begin - PAYLOAD_DIRTY_BYTES), PAYLOAD_DIRTY_BYTES,
                                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                            SYNC_FILE_RANGE_WAIT_AFTER);
        return r < 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE ? -errno : 0;
}

/* Copies between a file and the parts. @ret_from_file: which side failed. */
static int payload_copy(int fd, const PayloadPart *parts, uint64_t n_bytes, bool write,
                        uint64_t *ret_check, bool *ret_from_file) {
        _cleanup_(freep) uint8_t *block = malloc(PAYLOAD_BLOCK_BYTES);
        Cursor cursor = {parts, 0};
        int r = block ? 0 : -ENOMEM;

        *ret_check = 0;
        *ret_from_file = false;
        for (uint64_t at = 0; at < n_bytes && r == 0; at += PAYLOAD_BLOCK_BYTES) {
                size_t n = (size_t)MIN(n_bytes - at, PAYLOAD_BLOCK_BYTES);

                r = write ? cursor_move(&cursor, block, n, false)
                          : move_bytes(fd, block, n, at, false);
                *ret_from_file = r < 0;
                if (r < 0)
                        break;
                *ret_check = payload_check(*ret_check, block, n);
                r = write ? move_bytes(fd, block, n, at, true)
                          : cursor_move(&cursor, block, n, true);
                if (write && r == 0)
                        r = payload_push(fd, at + n);
        }
        return r;
}

int payload_write(int folder, const char *name, const PayloadPart *parts, size_t n_parts,
                  uint64_t *ret_check) {
        _cleanup_(closep) int fd = -1;
        bool from_file;
        int r;

        fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = payload_copy(fd, parts, parts_bytes(parts, n_parts), true, ret_check, &from_file);
        if (r == 0 && (fsync(fd) < 0 || fsync(folder) < 0))
                r = -errno;
        return r;
}

/* An errno that tells nothing about the disk's content: try again later. */
static bool payload_is_passing(int error) {
        return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN;
}

static int damaged(char damage[PAYLOAD_DAMAGE_MAX], const char *name, const char *what) {
        snprintf(damage, PAYLOAD_DAMAGE_MAX, "%s: %s", name, what);
        return PAYLOAD_E_DAMAGED;
}

/* Regular files only: opening or reading a pipe could block. */
int payload_read(int folder, const char *name, const PayloadPart *parts, size_t n_parts,
                 uint64_t wanted, char damage[PAYLOAD_DAMAGE_MAX]) {
        uint64_t n_bytes = parts_bytes(parts, n_parts), check;
        _cleanup_(closep) int fd = -1;
        bool from_file;
        struct stat st;
        int r;

        fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return payload_is_passing(errno) ? -errno : damaged(damage, name, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return damaged(damage, name, "is not a file");
        if ((uint64_t)st.st_size != n_bytes)
                return damaged(damage, name, "is truncated or too long");
        r = payload_copy(fd, parts, n_bytes, false, &check, &from_file);
        if (r < 0)
                return from_file ? damaged(damage, name, strerror(-r)) : r;
        return check == wanted ? 0 : damaged(damage, name, "its checksum does not match");
}

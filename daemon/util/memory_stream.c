/* SPDX-License-Identifier: Apache-2.0 */
#include "util/memory_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define ROOM_MIN 4096u

typedef struct MemoryStream {
        char **data;
        size_t *n_data;
        size_t n_room;
} MemoryStream;

static int make_room(MemoryStream *stream, size_t n) {
        size_t n_room = stream->n_room ?: ROOM_MIN;
        char *data;

        while (n_room < n)
                n_room *= 2;
        if (n_room == stream->n_room)
                return 0;
        data = realloc(*stream->data, n_room);
        if (!data)
                return -ENOMEM;
        *stream->data = data;
        stream->n_room = n_room;
        return 0;
}

/* Return: fewer than @n: the stream has failed, for good. */
static ssize_t memory_write(void *cookie, const char *from, size_t n) {
        MemoryStream *stream = cookie;

        if (make_room(stream, *stream->n_data + n + 1) < 0) {
                errno = ENOMEM;
                return 0;
        }
        memcpy(*stream->data + *stream->n_data, from, n);
        *stream->n_data += n;
        (*stream->data)[*stream->n_data] = '\0';
        return (ssize_t)n;
}

/* Only to tell where it is, for ftello(). */
static int memory_seek(void *cookie, off64_t *offset, int whence) {
        const MemoryStream *stream = cookie;

        if (whence == SEEK_SET || *offset != 0)
                return -1;
        *offset = (off64_t)*stream->n_data;
        return 0;
}

static int memory_close(void *cookie) {
        free(cookie);
        return 0;
}

FILE *memory_stream_open(char **ret_data, size_t *ret_n_data) {
        static const cookie_io_functions_t functions = {
                .write = memory_write, .seek = memory_seek, .close = memory_close};
        MemoryStream *cookie = malloc(sizeof(*cookie));
        FILE *stream;

        if (!cookie)
                return NULL;
        *ret_data = NULL;
        *ret_n_data = 0;
        *cookie = (MemoryStream){ret_data, ret_n_data, 0};
        stream = make_room(cookie, 1) < 0 ? NULL : fopencookie(cookie, "w", functions);
        if (!stream) {
                free(cookie);
                return NULL;
        }
        **ret_data = '\0';
        return stream;
}

int memory_stream_flush(FILE *stream) {
        return fflush(stream) != 0 || ferror(stream) ? -ENOMEM : 0;
}

int memory_stream_close(FILE *stream) {
        int r = memory_stream_flush(stream);

        return fclose(stream) != 0 ? -ENOMEM : r;
}

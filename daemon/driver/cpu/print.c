/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/print.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "util/macro.h"

struct Print {
        pthread_mutex_t lock;
        char *ring;
        size_t size, start, used; /* bytes */
};

Print *print_free(Print *print) {
        if (!print)
                return NULL;

        pthread_mutex_destroy(&print->lock);
        free(print->ring);
        free(print);
        return NULL;
}

Print *print_new(size_t n_bytes) {
        Print *print;

        print = calloc(1, sizeof(*print));
        if (!print)
                return NULL;

        pthread_mutex_init(&print->lock, NULL);
        if (!print_resize(print, n_bytes))
                return print_free(print);

        return print;
}

bool print_resize(Print *print, size_t n_bytes) {
        char *ring = malloc(MAX(n_bytes, 1));

        if (!ring)
                return false;

        pthread_mutex_lock(&print->lock);
        free(print->ring);
        print->ring = ring;
        print->size = n_bytes;
        print->start = print->used = 0;
        pthread_mutex_unlock(&print->lock);
        return true;
}

/* With the lock held. */
static void print_append(Print *print, const char *text, size_t n) {
        size_t lost, end, first;

        if (n > print->size)
                return;

        lost = print->used + n > print->size ? print->used + n - print->size : 0;
        if (lost) {
                print->start = (print->start + lost) % print->size;
                print->used -= lost;
        }

        end = (print->start + print->used) % MAX(print->size, 1);
        first = MIN(n, print->size - end);
        memcpy(print->ring + end, text, first);
        memcpy(print->ring, text + first, n - first);
        print->used += n;
}

void print_add(Print *print, const char *format, va_list arguments) {
        _cleanup_(freep) char *text = NULL;
        int n;

        n = vasprintf(&text, format, arguments);
        if (n < 0) {
                text = NULL;
                return;
        }

        pthread_mutex_lock(&print->lock);
        print_append(print, text, (size_t)n);
        pthread_mutex_unlock(&print->lock);
}

void print_flush(Print *print) {
        size_t first;

        pthread_mutex_lock(&print->lock);
        if (print->used) {
                first = MIN(print->used, print->size - print->start);
                fwrite(print->ring + print->start, 1, first, stdout);
                fwrite(print->ring, 1, print->used - first, stdout);
                fflush(stdout);
        }
        print->start = print->used = 0;
        pthread_mutex_unlock(&print->lock);
}

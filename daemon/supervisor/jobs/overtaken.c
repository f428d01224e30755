/* SPDX-License-Identifier: Apache-2.0 */
#include "overtaken.h"

#include <stdlib.h>

#include "arena.h"
#include "dependency.h"

#define OVERTAKEN_ON_STACK 32u

/* Bytes that a job writes. */
typedef struct Written {
        uint64_t arena;
        uint64_t begin;
        uint64_t end;
} Written;

static int written_compare(const void *a, const void *b) {
        const Written *first = a, *second = b;

        if (first->arena != second->arena)
                return first->arena < second->arena ? -1 : 1;
        return (first->begin > second->begin) - (first->begin < second->begin);
}

static size_t written_list(const Job *job, Written *list) {
        size_t n = 0;

        for (size_t i = 0; i < job->work.n_buffers; ++i) {
                const JobBuffer *buffer = &job->work.buffers[i];

                if (buffer->direction != JOB_IN)
                        list[n++] = (Written){
                                .arena = buffer->arena->id,
                                .begin = buffer->offset,
                                .end = buffer->offset + buffer->length,
                        };
        }
        return n;
}

/* Sorted, and apart from each other. Return: how many are left. */
static size_t written_merge(Written *list, size_t n) {
        size_t last = 0;

        if (!n)
                return 0;
        qsort(list, n, sizeof(*list), written_compare);
        for (size_t i = 1; i < n; ++i)
                if (list[i].arena == list[last].arena && list[i].begin <= list[last].end)
                        list[last].end = MAX(list[last].end, list[i].end);
                else
                        list[++last] = list[i];
        return last + 1;
}

static bool written_covers(const Written *list, size_t n, const JobBuffer *read, size_t *n_left) {
        uint64_t arena = read->arena->id, end = read->offset + read->length;
        size_t low = 0, high = n;

        /* The last one that begins before the end of what is read. */
        while (low < high) {
                size_t middle = (low + high) / 2;

                *n_left -= *n_left > 0;
                if (list[middle].arena < arena ||
                    (list[middle].arena == arena && list[middle].begin < end))
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 && list[low - 1].arena == arena && list[low - 1].end > read->offset;
}

static bool written_is_read(const Written *list, size_t n, const Job *job, size_t *n_left) {
        for (size_t i = 0; i < job->work.n_buffers; ++i) {
                const JobBuffer *buffer = &job->work.buffers[i];

                if (job_is_read(buffer) && (!*n_left || written_covers(list, n, buffer, n_left)))
                        return true;
        }
        return false;
}

static bool overtaken_is_in_question(const Job *before) {
        return before && !before->was_overtaken &&
               (before->state == JOB_RUNNING || before->is_held);
}

static void overtaken_mark_by(const Job *after, const Written *list, size_t n, size_t *n_left) {
        for (size_t i = 0; i < after->edges.n_order; ++i) {
                Job *before = after->edges.order[i].before;

                if (overtaken_is_in_question(before))
                        before->was_overtaken = written_is_read(list, n, before, n_left);
        }
}

void overtaken_mark(const Job *after, size_t *n_left) {
        Written on_stack[OVERTAKEN_ON_STACK], *list = on_stack;
        _cleanup_(freep) Written *on_heap = NULL;
        size_t n = 1;

        if (!dependency_is_behind(after))
                return;
        if (after->work.n_buffers > OVERTAKEN_ON_STACK)
                list = on_heap = malloc(after->work.n_buffers * sizeof(*on_heap));

        *n_left -= MIN(*n_left, after->work.n_buffers);
        if (list)
                n = written_merge(list, written_list(after, list));
        else
                *n_left = 0; /* without memory all of them count */
        if (n)
                overtaken_mark_by(after, list, n, n_left);
}

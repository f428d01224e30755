/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_REPEAT_H
#define GPUQ_UTIL_REPEAT_H

/*
 * Repeat
 *
 * Decides which lines of a log are written: of a line that comes again and again only the first
 * REPEAT_WRITTEN in REPEAT_NS. The others are counted. Pure: the time is an argument. It has no
 * timer: its caller writes the count before the next line, or at the end.
 */

#include <stdbool.h>
#include <stdint.h>

#define REPEAT_NS       UINT64_C(10000000000) /* after so long the line is written again */
#define REPEAT_WRITTEN  3u
#define REPEAT_TEXT_MAX 2048 /* bytes of a line, with its NUL */

/* All zero: no line yet. */
typedef struct Repeat {
        char text[REPEAT_TEXT_MAX]; /* the last line */
        int level;
        uint64_t first_ns;  /* when it was first written */
        unsigned n_written; /* since then */
        unsigned n_counted;
} Repeat;

/**
 * repeat_take() - a line has come
 * @text:       "": it is written whatever it is
 * @ret_before: if the line is written: the one before it, of which n_counted were not
 *
 * Return: whether it is to be written.
 */
bool repeat_take(Repeat *repeat, int level, const char *text, uint64_t now_ns, Repeat *ret_before);
/** repeat_end() - no line will come. @ret_before: as of repeat_take(). */
void repeat_end(Repeat *repeat, Repeat *ret_before);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_REPEAT_H
#define GPUQ_UTIL_REPEAT_H

/*
 * Repeat
 *
 * Counts a line of the log that comes again and again instead of writing it each time. Pure: the
 * time is an argument. There is no timer: the number is told before the next line, or at exit.
 */

#include <stdbool.h>
#include <stdint.h>

#define REPEAT_NS       UINT64_C(10000000000) /* after so long the line is written again */
#define REPEAT_TEXT_MAX 2048                  /* bytes of a line, with its NUL */

/* All zero: no line yet. */
typedef struct Repeat {
        char text[REPEAT_TEXT_MAX]; /* the last line that was written */
        int level;
        uint64_t written_ns;
        unsigned n; /* times that it came since */
} Repeat;

/**
 * repeat_take() - a line has come
 * @text:      "": it is written whatever it is
 * @ret_n:     if it is to be written: how often the line before it was left out, and
 * @ret_level: its level
 *
 * Return: whether it is to be written.
 */
bool repeat_take(Repeat *repeat, int level, const char *text, uint64_t now_ns, unsigned *ret_n,
                 int *ret_level);
/** repeat_end() - no line will come. Return: how often the last one was left out. */
unsigned repeat_end(Repeat *repeat);

#endif

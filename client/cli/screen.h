/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_SCREEN_H
#define GPUQ_CLI_SCREEN_H

/*
 * Screen
 *
 * The terminal as one screen that is drawn again and again, with keys read as they are typed. The
 * terminal is as before after screen_end(), and after the usual signals that end or stop a program
 * (INT, TERM, HUP, QUIT, ABRT, SEGV, TSTP). There is one screen in a process.
 */

#include <stddef.h>
#include <stdint.h>

typedef enum ScreenEvent {
        SCREEN_TIME, /* it is time, or the size has changed: draw */
        SCREEN_KEY,
        SCREEN_CLOSED, /* no key will come any more */
} ScreenEvent;

enum {
        SCREEN_ESCAPE = 27,
        SCREEN_BACKSPACE = 127,
};

/** screen_begin() - take the terminal. Return: 0; -ENOTTY: this is no terminal, or a dumb one; or a negative errno. */
int screen_begin(void);
/** screen_end() - give it back; harmless without screen_begin(). */
void screen_end(void);
/** screen_size() - columns and rows of the terminal; 80 and 24 where they are not known. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);
/** screen_draw() - show @text: as much of it as there is room for. */
void screen_draw(const char *text);
/**
 * screen_wait() - for a key, for at most @timeout_ms
 * @ret_key: of SCREEN_KEY: a character, SCREEN_ESCAPE, SCREEN_BACKSPACE or '\n'
 */
ScreenEvent screen_wait(int timeout_ms, int *ret_key);

#endif

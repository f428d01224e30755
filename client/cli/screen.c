/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "util/macro.h"

/* The second screen, no cursor, lines cut at the right edge; and the reverse. */
#define SCREEN_ENTER  "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_KEY_MS 25 /* between the bytes that one key sends */
#define SCREEN_LEAVE  "\033[?7h\033[?25h\033[?1049l"

/* Used by handlers of signals, which therefore call nothing but write(), tcsetattr() and raise(). */
static struct {
        struct termios before, raw;
        sigset_t mask; /* while it waits: with SIGWINCH, which is blocked otherwise */
        volatile sig_atomic_t is_taken;
} screen;

static const int ending_signals[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGABRT,
                                     SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGPIPE};

static void screen_write(const char *text, size_t size) {
        while (size > 0) {
                ssize_t n = write(STDOUT_FILENO, text, size);

                if (n < 0 && errno != EINTR)
                        return;
                text += MAX(n, (ssize_t)0);
                size -= (size_t)MAX(n, (ssize_t)0);
        }
}

static void screen_enter(void) {
        screen.is_taken = 1;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.raw);
        screen_write(SCREEN_ENTER, sizeof(SCREEN_ENTER) - 1);
}

static void screen_leave(void) {
        if (!screen.is_taken)
                return;
        screen.is_taken = 0;
        screen_write(SCREEN_LEAVE, sizeof(SCREEN_LEAVE) - 1);
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

/* ---- signals -------------------------------------------------------------------- */

/* The handler is gone by now, and the signal ends the program once it is not blocked any more. */
static void screen_on_end(int number) {
        screen_leave();
        (void)raise(number);
}

static void screen_on_stop(int number) {
        int before = errno;

        screen_leave();
        (void)raise(SIGSTOP);
        screen_enter();
        (void)raise(SIGWINCH); /* to be drawn */
        errno = before;
}

/* It only interrupts the wait. */
static void screen_on_size(int number) {
}

static void screen_set_signals(void) {
        struct sigaction end = {.sa_handler = screen_on_end, .sa_flags = (int)SA_RESETHAND};
        struct sigaction stop = {.sa_handler = screen_on_stop};
        struct sigaction size = {.sa_handler = screen_on_size};

        sigset_t only_size;

        sigemptyset(&only_size);
        sigaddset(&only_size, SIGWINCH);
        sigprocmask(SIG_BLOCK, &only_size, &screen.mask);
        sigdelset(&screen.mask, SIGWINCH);
        sigfillset(&end.sa_mask);
        sigfillset(&stop.sa_mask);
        sigdelset(&stop.sa_mask, SIGTTOU); /* after bg it must not take the shell's terminal */
        for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
                sigaction(ending_signals[i], &end, NULL);
        sigaction(SIGTSTP, &stop, NULL);
        sigaction(SIGWINCH, &size, NULL);
}

static void screen_reset_signals(void) {
        for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++)
                signal(ending_signals[i], SIG_DFL);
        signal(SIGTSTP, SIG_DFL);
        signal(SIGWINCH, SIG_DFL);
        sigprocmask(SIG_SETMASK, &screen.mask, NULL);
}

/* ---- the terminal ----------------------------------------------------------------- */

int screen_begin(void) {
        const char *kind = getenv("TERM");

        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !kind || strcmp(kind, "dumb") == 0)
                return -ENOTTY;
        if (tcgetattr(STDIN_FILENO, &screen.before) < 0)
                return -errno;

        screen.raw = screen.before;
        screen.raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        screen.raw.c_cc[VMIN] = 1;
        screen.raw.c_cc[VTIME] = 0;
        screen_set_signals();
        screen_enter();
        return 0;
}

void screen_end(void) {
        if (!screen.is_taken)
                return;
        screen_leave();
        screen_reset_signals();
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows) {
        struct winsize size = {};

        (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
        *ret_columns = size.ws_col ? size.ws_col : 80;
        *ret_rows = size.ws_row ? size.ws_row : 24;
}

/* In one write, so that no half of it is seen. Each line first erases what is below it. */
void screen_draw(const char *text) {
        _cleanup_(freep) char *data = NULL;
        unsigned columns, rows;
        size_t size = 0;
        FILE *stream;

        screen_size(&columns, &rows);
        stream = open_memstream(&data, &size);
        if (!stream)
                return;
        fputs("\033[H", stream);
        for (unsigned row = 0; row < rows && *text; row++) {
                size_t n = strcspn(text, "\n");

                fprintf(stream, "%s\033[J%.*s\033[m", row ? "\r\n" : "", (int)n, text);
                text += n + (text[n] == '\n');
        }
        if (fclose(stream) == 0)
                screen_write(data, size);
}

/* Of a sequence that began; over a slow line it comes in parts. */
static bool screen_read_byte(char *ret_byte) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

        return poll(&input, 1, SCREEN_KEY_MS) > 0 && read(STDIN_FILENO, ret_byte, 1) == 1;
}

/* The rest of what a key such as an arrow sends: ESC [ ... and a letter. Return: false: there is none. */
static bool screen_skip_sequence(void) {
        char byte;

        if (!screen_read_byte(&byte))
                return false;
        if (byte == '[' || byte == 'O')
                while (screen_read_byte(&byte) && (byte < '@' || byte > '~'))
                        ;
        return true;
}

static ScreenEvent screen_read(int *ret_key) {
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return SCREEN_TIME;
        if (n <= 0)
                return SCREEN_CLOSED;
        if (byte == SCREEN_ESCAPE && screen_skip_sequence())
                return SCREEN_TIME;
        *ret_key = byte == '\b' ? SCREEN_BACKSPACE : (unsigned char)byte;
        return SCREEN_KEY;
}

ScreenEvent screen_wait(int timeout_ms, int *ret_key) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                   .tv_nsec = timeout_ms % 1000 * 1000000L};

        return ppoll(&input, 1, &timeout, &screen.mask) > 0 ? screen_read(ret_key) : SCREEN_TIME;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log
 *
 * log_open() chooses the destination once: the journal's own socket if stderr is the journal (it
 * keeps the fields), else lines on stderr. Errors of logging are ignored, because they cannot be
 * reported.
 */

#include "util/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "proto/text.h"
#include "util/repeat.h"

#if HAVE_SYSTEMD
#include <systemd/sd-journal.h>
#endif

#define LOG_TEXT_MAX REPEAT_TEXT_MAX
#define LOG_N_FIELDS 16

typedef enum LogTarget {
        LOG_PLAIN,    /* a terminal, or anything until log_open() */
        LOG_PREFIXED, /* "<N>" in front, for what reads our stderr */
        LOG_JOURNAL,
} LogTarget;

static const char *log_name = "gpuq";
static int log_level = LOG_INFO;
static LogTarget log_target = LOG_PLAIN;

/* systemd sets JOURNAL_STREAM to DEVICE:INODE of the journal's stream, which a redirected
 * stderr does not match. */
static bool log_stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        unsigned long long device, inode;
        struct stat st;

        if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2)
                return false;
        return fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_open(const char *name, int level) {
        log_name = name;
        log_level = level;
        if (log_stderr_is_journal())
                log_target = HAVE_SYSTEMD ? LOG_JOURNAL : LOG_PREFIXED;
        else
                log_target = LOG_PLAIN;
}

#if HAVE_SYSTEMD
static unsigned log_add_field(struct iovec *iov, unsigned n, const char *text, size_t n_text) {
        if (n_text && n < LOG_N_FIELDS)
                iov[n++] = (struct iovec){.iov_base = (char *)text, .iov_len = n_text};
        return n;
}

static void log_to_journal(int level, const char *fields, const char *text) {
        char message[LOG_TEXT_MAX + sizeof("MESSAGE=")], priority[] = "PRIORITY=0";
        char identifier[64 + sizeof("SYSLOG_IDENTIFIER=")];
        struct iovec iov[LOG_N_FIELDS];
        unsigned n = 0;

        snprintf(message, sizeof(message), "MESSAGE=%s", text);
        snprintf(identifier, sizeof(identifier), "SYSLOG_IDENTIFIER=%s", log_name);
        priority[sizeof(priority) - 2] = (char)('0' + (level & 7));
        n = log_add_field(iov, n, message, strlen(message));
        n = log_add_field(iov, n, priority, strlen(priority));
        n = log_add_field(iov, n, identifier, strlen(identifier));
        while (fields && *fields) {
                size_t n_field = strcspn(fields, " ");

                n = log_add_field(iov, n, fields, n_field);
                fields += n_field + strspn(fields + n_field, " ");
        }

        (void)sd_journal_sendv(iov, (int)n);
}
#else
static void log_to_journal(int level, const char *fields, const char *text) {
}
#endif

static void log_to_stderr(int level, char *text) {
        char line[LOG_TEXT_MAX + 128];
        int n;

        if (log_target == LOG_PREFIXED)
                n = snprintf(line, sizeof(line), "<%d>%s: %s\n", level & 7, log_name, text);
        else
                n = snprintf(line, sizeof(line), "%s: %s\n", log_name, text);
        if (n > 0)
                (void)!write(STDERR_FILENO, line, MIN((size_t)n, sizeof(line) - 1));
}

static void log_write(int level, const char *fields, char *text) {
        if (log_target == LOG_JOURNAL)
                log_to_journal(level, fields, text);
        else
                log_to_stderr(level, text);
}

/* ---- lines that repeat ----------------------------------------------------- */

static Repeat log_repeat;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* of log_repeat */

static void log_write_count(const Repeat *before) {
        char text[LOG_TEXT_MAX + 64];

        if (before->n_counted == 0)
                return;
        snprintf(text, sizeof(text), "repeated %u more time%s: %s", before->n_counted,
                 before->n_counted == 1 ? "" : "s", before->text);
        log_write(before->level, NULL, text);
}

static bool log_may_write(int level, const char *text) {
        struct timespec now;
        Repeat before;
        bool may_write;

        /* Do not wait: after fork() the owner of the lock may not exist in the child. */
        if (pthread_mutex_trylock(&log_lock) != 0)
                return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
        may_write =
                repeat_take(&log_repeat, level, text,
                            (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, &before);
        log_write_count(&before);
        pthread_mutex_unlock(&log_lock);
        return may_write;
}

__attribute__((destructor)) void log_flush(void) {
        Repeat before;

        if (pthread_mutex_trylock(&log_lock) != 0)
                return;
        repeat_end(&log_repeat, &before);
        log_write_count(&before);
        pthread_mutex_unlock(&log_lock);
}

/* The parent writes what it has counted. */
static void log_on_fork(void) {
        log_repeat = (Repeat){};
}

__attribute__((constructor)) static void log_prepare(void) {
        (void)pthread_atfork(NULL, NULL, log_on_fork);
}

void log_full(int level, const char *fields, const char *format, ...) {
        char text[LOG_TEXT_MAX];
        int saved_errno = errno;
        va_list args;

        if ((level & 7) > log_level)
                return;

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_clean_line(text); /* one message is one line, whatever a name in it contains */

        /* The fields of a line may differ though its text does not: it is always written. */
        if (log_may_write(level, fields ? "" : text))
                log_write(level, fields, text);
        errno = saved_errno;
}

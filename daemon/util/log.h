/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_LOG_H
#define GPUQ_UTIL_LOG_H

/*
 * Log
 *
 * Lines for the journal, or for stderr with a "<N>" level prefix under systemd
 * and without one on a terminal. Fields beside the text are journal fields:
 *
 *     log_full(LOG_INFO, "GPUQ_JOB=12.3 GPUQ_UID=1000", "job %s started", id);
 *
 * Of a line without fields that comes again and again only the first three within 10 s are written
 * (repeat.h): "repeated 5 more times: TEXT" is written before the next line, or at exit.
 */

#include <syslog.h>

#include "util/macro.h"

/** log_open() - name the process; messages above @level (LOG_DEBUG…) are dropped. */
void log_open(const char *name, int level);
/** log_full() - @fields: "KEY=VALUE KEY=VALUE" without blanks inside, or NULL. */
void log_full(int level, const char *fields, const char *format, ...) _printf_(3, 4);

/** log_flush() - write what was only counted. exit() does it; call it before _exit(). */
void log_flush(void);

#define log_error(...)   log_full(LOG_ERR, NULL, __VA_ARGS__)
#define log_warning(...) log_full(LOG_WARNING, NULL, __VA_ARGS__)
#define log_notice(...)  log_full(LOG_NOTICE, NULL, __VA_ARGS__)
#define log_info(...)    log_full(LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(...)   log_full(LOG_DEBUG, NULL, __VA_ARGS__)

#endif

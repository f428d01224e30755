/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm_job.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/macro.h"

/* What is left of a line. */
typedef struct SlurmLine {
        const char *at;
        const char *end; /* the line feed */
} SlurmLine;

static bool line_skip(SlurmLine *line, const char *word) {
        size_t n = strlen(word);

        if ((size_t)(line->end - line->at) < n || memcmp(line->at, word, n) != 0)
                return false;
        line->at += n;
        return true;
}

/* Moves behind the next @c. */
static bool line_skip_past(SlurmLine *line, char c) {
        const char *found = memchr(line->at, c, (size_t)(line->end - line->at));

        if (!found)
                return false;
        line->at = found + 1;
        return true;
}

/* The rest of a component. Return: 0: it is not a number from 1 on. */
static uint32_t line_take_number(SlurmLine *line) {
        uint64_t number = 0;

        for (; line->at < line->end && *line->at != '/'; line->at++) {
                if (*line->at < '0' || *line->at > '9')
                        return 0;
                number = number * 10 + (uint64_t)(*line->at - '0');
                if (number > UINT32_MAX)
                        return 0;
        }
        return (uint32_t)number;
}

static uint32_t line_take_job(SlurmLine *line) {
        return line_skip(line, "job_") ? line_take_number(line) : 0;
}

/* Several slurmd on one machine put the names of their nodes before the scope's. */
static bool line_skip_scope(SlurmLine *line) {
        static const char name[] = "slurmstepd.scope/";
        const size_t n_name = sizeof(name) - 1;
        const char *begin = line->at;

        if (!line_skip_past(line, '/') || (size_t)(line->at - begin) < n_name ||
            memcmp(line->at - n_name, name, n_name) != 0)
                return false;
        return line->at - n_name == begin || line->at[-(ptrdiff_t)n_name - 1] == '_';
}

static uint32_t line_job_v2(SlurmLine line) {
        if (!line_skip(&line, "/system.slice/") || !line_skip_scope(&line))
                return 0;
        return line_take_job(&line);
}

static uint32_t line_job_v1(SlurmLine line, uint32_t uid) {
        char user[24];

        snprintf(user, sizeof(user), "uid_%u/", uid);
        if (!line_skip(&line, "/slurm") || !line_skip_past(&line, '/') || !line_skip(&line, user))
                return 0;
        return line_take_job(&line);
}

/* "NUMBER:CONTROLLERS:PATH" */
static uint32_t line_job(SlurmLine line, uint32_t uid) {
        uint32_t job;

        for (unsigned n = 0; n < 2; ++n)
                if (!line_skip_past(&line, ':'))
                        return 0;
        job = line_job_v2(line);
        return job ? job : line_job_v1(line, uid);
}

/* A line without its end may have been cut within the number. */
uint32_t slurm_job_parse(const char *text, size_t n_text, uint32_t uid) {
        SlurmLine line = {.at = text};
        uint32_t job = 0;

        while (!job && (line.end = memchr(line.at, '\n', n_text - (size_t)(line.at - text)))) {
                job = line_job(line, uid);
                line.at = line.end + 1;
        }
        return job;
}

uint32_t slurm_job_of(pid_t pid, uint32_t uid) {
        char path[32], text[SLURM_JOB_TEXT_MAX];
        _cleanup_(closep) int fd = -1;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        return n > 0 ? slurm_job_parse(text, (size_t)n, uid) : 0;
}

/* Names that Slurm accepts are plain. Return: false: the file has none. */
static bool account_clean(char *name, size_t n_name) {
        name[n_name] = '\0';
        name[strcspn(name, "\n")] = '\0';
        for (char *c = name; *c; ++c)
                if (*c <= ' ' || *c > '~')
                        *c = '?';
        return *name;
}

bool slurm_job_account(const char *folder, uint32_t slurm_job, char name[SLURM_ACCOUNT_MAX + 1]) {
        _cleanup_(freep) char *path = NULL;
        _cleanup_(closep) int fd = -1;
        ssize_t n;

        if (asprintf(&path, "%s/account-%u", folder, slurm_job) < 0) {
                path = NULL;
                return false;
        }
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        n = fd < 0 ? -1 : read(fd, name, SLURM_ACCOUNT_MAX);
        return n > 0 && account_clean(name, (size_t)n);
}

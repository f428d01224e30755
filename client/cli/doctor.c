/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>

/* ---- findings -------------------------------------------------------------- */

void doctor_found(Doctor *doctor, DoctorResult result, const char *advice, const char *format,
                  ...) {
        DoctorFinding *findings, *finding;
        va_list args;

        findings = reallocarray(doctor->findings, doctor->n_findings + 1, sizeof(*findings));
        if (!findings) {
                doctor->failed = true;
                return;
        }
        doctor->findings = findings;
        finding = &findings[doctor->n_findings++];
        *finding = (DoctorFinding){.check = doctor->check, .result = result};

        va_start(args, format);
        if (vasprintf(&finding->text, format, args) < 0)
                finding->text = NULL;
        va_end(args);
        finding->advice = advice ? strdup(advice) : NULL;
        if (!finding->text || (advice && !finding->advice))
                doctor->failed = true;
}

void doctor_finish(Doctor *doctor) {
        for (size_t i = 0; i < doctor->n_findings; i++) {
                free(doctor->findings[i].text);
                free(doctor->findings[i].advice);
        }
        free(doctor->findings);
        free(doctor->cache_dir);
        free(doctor->state_dir);
        free(doctor->libraries);
}

/* ---- files ----------------------------------------------------------------- */

static ssize_t read_all(int fd, char text[static DOCTOR_TEXT]) {
        size_t n_text = 0;
        ssize_t n;

        while (n_text < DOCTOR_TEXT - 1 &&
               (n = read(fd, text + n_text, DOCTOR_TEXT - 1 - n_text)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                n_text += (size_t)n;
        }
        text[n_text] = '\0';
        return (ssize_t)n_text;
}

ssize_t doctor_read(const Doctor *doctor, char text[static DOCTOR_TEXT], const char *format, ...) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        va_list args;
        int n = snprintf(path, sizeof(path), "%s", doctor->root);

        *text = '\0';
        va_start(args, format);
        vsnprintf(path + n, sizeof(path) - (size_t)n, format, args);
        va_end(args);

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : read_all(fd, text);
}

/* ---- processes ------------------------------------------------------------- */

DIR *doctor_open_processes(const Doctor *doctor) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/proc", doctor->root);
        return opendir(path);
}

pid_t doctor_next_process(const Doctor *doctor, DIR *processes, char ret_name[static DOCTOR_TEXT]) {
        struct dirent *entry;

        while ((entry = readdir(processes))) {
                if (!isdigit((unsigned char)*entry->d_name))
                        continue;
                if (doctor_read(doctor, ret_name, "/proc/%s/comm", entry->d_name) < 0)
                        continue; /* it has ended */
                ret_name[strcspn(ret_name, "\n")] = '\0';
                return (pid_t)atoi(entry->d_name);
        }
        return 0;
}

/* ---- programs -------------------------------------------------------------- */

static int spawn(const DoctorProgram *program, int output, pid_t *ret_pid) {
        posix_spawn_file_actions_t actions;
        int r;

        r = posix_spawn_file_actions_init(&actions);
        if (r)
                return -r;
        r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (r == 0 && program->no_errors)
                r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
                                                     0);
        else if (r == 0)
                r = posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
        if (r == 0 && program->folder)
                r = posix_spawn_file_actions_addchdir_np(&actions, program->folder);
        if (r == 0)
                r = posix_spawnp(ret_pid, program->argv[0], &actions, NULL, program->argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        return -r;
}

/* Keeps what fits and discards the rest. Return: 1: there may be more, 0: the end, or a negative errno. */
static int output_take(int fd, char text[static DOCTOR_TEXT], size_t *n_text) {
        char rest[DOCTOR_TEXT];
        size_t n_free = DOCTOR_TEXT - 1 - *n_text;
        ssize_t n = read(fd, n_free ? text + *n_text : rest, n_free ? n_free : sizeof(rest));

        if (n < 0)
                return errno == EINTR ? 1 : -errno;
        if (n_free)
                *n_text += (size_t)n;
        return n > 0;
}

static int64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the process @process has ended; its children may keep @fd open. Return: 0 or a negative errno. */
static int output_read(int fd, int process, int timeout_ms, char text[static DOCTOR_TEXT]) {
        struct pollfd polls[] = {{.fd = fd, .events = POLLIN}, {.fd = process, .events = POLLIN}};
        int64_t until_ms = now_ms() + timeout_ms;
        size_t n_text = 0;
        int r = 1;

        while (r > 0 || !polls[1].revents) {
                int64_t left_ms = until_ms - now_ms();
                int n = left_ms > 0 ? poll(polls, ARRAY_SIZE(polls), (int)left_ms) : 0;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ETIMEDOUT;
                if (polls[0].revents)
                        r = output_take(fd, text, &n_text);
                else if (polls[1].revents)
                        r = 0;
                if (r < 0)
                        return r;
                if (r == 0)
                        polls[0].fd = -1;
                text[n_text] = '\0';
        }
        return 0;
}

int doctor_run(const DoctorProgram *program, char ret_text[static DOCTOR_TEXT]) {
        _cleanup_(closep) int output = -1, process = -1;
        int fds[2], status, r;
        pid_t pid;

        *ret_text = '\0';
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        output = fds[0];
        r = spawn(program, fds[1], &pid);
        close(fds[1]);
        if (r < 0)
                return r;

        process = pidfd_open(pid, 0);
        r = process < 0 ? -errno : output_read(output, process, program->timeout_ms, ret_text);
        if (r < 0)
                (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (r < 0)
                return r;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "compiler/bound.h"

#define OUTPUT_MAX   (256u << 10)
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define DATA_MAX     ((rlim_t)BOUND_DEFAULT_MIB << 20)

static const char *search_path(void) {
        const char *path = getenv("PATH");

        return path && *path ? path : DEFAULT_PATH;
}

static int find_one(const char *name, char **ret_path) {
        _cleanup_(freep) char *dirs = strdup(search_path());
        char *save, *dir;

        if (!dirs)
                return -ENOMEM;

        for (dir = strtok_r(dirs, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
                char *path = request_path(dir, name);

                if (!path)
                        return -ENOMEM;
                if (*dir == '/' && access(path, X_OK) == 0) {
                        *ret_path = path;
                        return 0;
                }
                free(path);
        }
        return -ENOENT;
}

int process_find(const char *const *names, char **ret_path) {
        int r = -ENOENT;

        for (; *names && r == -ENOENT; names++)
                r = find_one(*names, ret_path);

        return r;
}

/* In the child, between fork and exec: only async-signal-safe calls. */
static void exec_child(const char *const *argv, char *const *environment, int output) {
        const struct rlimit data = {DATA_MAX, DATA_MAX};
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        /* A source may make its compiler use too much memory, which other users need. */
        (void)setrlimit(RLIMIT_DATA, &data);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
                _exit(127);
        (void)close_range(3, ~0u, 0);
        execve(argv[0], (char *const *)argv, environment);
        _exit(127);
}

static int spawn(const Request *request, const char *const *argv, int output, pid_t *ret_pid) {
        _cleanup_(freep) char *path = NULL, *tmp = NULL;
        char *environment[] = {NULL, NULL, "LC_ALL=C", NULL};
        pid_t pid;

        if (asprintf(&path, "PATH=%s", search_path()) < 0 ||
            asprintf(&tmp, "TMPDIR=%s", request->work ? request->work : "/tmp") < 0)
                return -ENOMEM;
        environment[0] = path;
        environment[1] = tmp;

        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                exec_child(argv, environment, output);

        *ret_pid = pid;
        return 0;
}

/* Reads to the end. Output beyond the limit is dropped, so that the writer never blocks. */
static int read_output(int fd, char **ret_output) {
        char *output = malloc(OUTPUT_MAX + 1), drop[4096];
        size_t n = 0;

        if (!output)
                return -ENOMEM;

        for (;;) {
                bool full = n == OUTPUT_MAX;
                ssize_t got =
                        read(fd, full ? drop : output + n, full ? sizeof(drop) : OUTPUT_MAX - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        break;
                if (!full)
                        n += got;
        }
        output[n] = '\0';
        *ret_output = output;
        return 0;
}

static int wait_for(pid_t pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;

        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_run(const Request *request, const char *const *argv, char **ret_output) {
        _cleanup_(freep) char *output = NULL;
        _cleanup_(closep) int from = -1;
        int fds[2], r;
        pid_t pid = -1;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;

        from = fds[0];
        r = spawn(request, argv, fds[1], &pid);
        close(fds[1]);
        if (r < 0)
                return r;

        r = read_output(from, &output);
        if (r < 0)
                (void)kill(pid, SIGKILL);
        if (r < 0) {
                (void)wait_for(pid);
                return r;
        }

        r = wait_for(pid);
        if (r >= 0)
                *ret_output = TAKE_PTR(output);
        return r;
}

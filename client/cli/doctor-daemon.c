/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor-daemon.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include "util/human.h"
#include "util/socket-path.h"
#include "who.h"

#define FREE_LITTLE (UINT64_C(1) << 30) /* bytes */
#define FILES_FEW   4096ull             /* descriptors */
#define TASKS_FEW   512ull              /* threads */

#define RUN_MAX_MS 10000 /* of a program */

#define ADVICE_LOG "read the log: `journalctl -u gpuqd', or what a private gpuqd printed"

/* ---- socket ---------------------------------------------------------------- */

/* A private gpuqd makes it with mode 0600. The service's may have that too, but root owns it. */
static bool socket_is_of_another(const struct stat *st) {
        return !(st->st_mode & 077) && st->st_uid != 0 && st->st_uid != geteuid();
}

static void socket_missing(Doctor *doctor, int error) {
        char advice[192];

        snprintf(advice, sizeof(advice),
                 "start the service with `systemctl enable --now gpuqd.socket' as root, or your "
                 "own with %s",
                 socket_path_hint());
        doctor_found(doctor, DOCTOR_PROBLEM,
                     error == ENOENT
                             ? advice
                             : "check the path, and that you may enter the folders above it",
                     "%s: %s", doctor->socket, strerror(error));
}

static void socket_closed(Doctor *doctor, const struct stat *st) {
        char advice[192];

        if (!socket_is_of_another(st)) {
                doctor_found(doctor, DOCTOR_PROBLEM,
                             "ask an administrator for write access; gpuqd makes the socket with "
                             "mode 0666, and gpuqd.socket with its SocketMode=",
                             "you may not connect to %s (owner %s, group %s, mode %04o)",
                             doctor->socket, who_user(st->st_uid).name, who_group(st->st_gid).name,
                             st->st_mode & 07777u);
                return;
        }
        snprintf(advice, sizeof(advice),
                 "name the service's socket with --socket or GPUQ_SOCKET, or start your own gpuqd "
                 "with %s",
                 socket_path_hint());
        doctor_found(doctor, DOCTOR_PROBLEM, advice,
                     "%s belongs to the private gpuqd of %s, and only %s may use it",
                     doctor->socket, who_user(st->st_uid).name, who_user(st->st_uid).name);
}

void doctor_check_socket(Doctor *doctor) {
        struct stat st;

        if (stat(doctor->socket, &st) < 0)
                socket_missing(doctor, errno);
        else if (!S_ISSOCK(st.st_mode))
                doctor_found(doctor, DOCTOR_PROBLEM,
                             "name gpuqd's socket with --socket or GPUQ_SOCKET",
                             "%s is not a socket", doctor->socket);
        else if (access(doctor->socket, W_OK) < 0)
                socket_closed(doctor, &st);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "%s (owner %s, mode %04o)", doctor->socket,
                             who_user(st.st_uid).name, st.st_mode & 07777u);
}

/* ---- daemon ---------------------------------------------------------------- */

/* Who called listen(): gpuqd itself, or the systemd that starts it. 0: it cannot be determined. */
static pid_t socket_listener(const char *path) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct ucred peer = {};
        socklen_t n_peer = sizeof(peer);
        _cleanup_(closep) int fd = -1;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
                return 0;
        strcpy(address.sun_path, path);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer) < 0)
                return 0;
        return peer.pid;
}

/* A number from /proc/PID/status. */
static bool process_read(const Doctor *doctor, pid_t pid, const char *key, unsigned *ret_value) {
        char text[DOCTOR_TEXT], *line;

        if (doctor_read(doctor, text, "/proc/%d/status", (int)pid) < 0)
                return false;
        line = strstr(text, key);
        return line && sscanf(line + strlen(key), "%u", ret_value) == 1;
}

void doctor_find_daemon(Doctor *doctor, pid_t listener, uid_t owner) {
        DIR *processes = listener ? doctor_open_processes(doctor) : NULL;
        char name[DOCTOR_TEXT];
        unsigned parent, uid;
        size_t n_found = 0;
        pid_t pid;

        doctor->uid = owner;
        while (processes && (pid = doctor_next_process(doctor, processes, name))) {
                if (strcmp(name, "gpuqd") != 0 || !process_read(doctor, pid, "\nPPid:", &parent) ||
                    !process_read(doctor, pid, "\nUid:", &uid) || uid != owner ||
                    (pid != listener && (pid_t)parent != listener))
                        continue;
                doctor->pid = pid;
                n_found++;
                if (pid == listener) {
                        n_found = 1;
                        break;
                }
        }
        if (processes)
                closedir(processes);

        if (n_found != 1) {
                doctor->pid = 0;
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             n_found ? "several processes may be this gpuqd; its configuration, "
                                       "folders and limits are not checked"
                                     : "the process of this gpuqd was not found; its "
                                       "configuration, folders and limits are not checked");
        }
}

/* Why a daemon that listens does not answer us. */
static const char *refusal_advice(const Doctor *doctor) {
        struct stat st;

        if (doctor->error != GPUQ_E_DENIED)
                return ADVICE_LOG;
        if (stat(doctor->socket, &st) == 0 && socket_is_of_another(&st))
                return "it is a private gpuqd; name the service's socket with --socket or "
                       "GPUQ_SOCKET";
        return "`id' shows your groups; after a change of them, log in again";
}

void doctor_check_daemon(Doctor *doctor) {
        const gpuq_status *status = doctor->status;
        struct stat st;

        if (!status && doctor->n_findings &&
            doctor->findings[doctor->n_findings - 1].result == DOCTOR_PROBLEM)
                return; /* the socket's problem is the reason */
        if (!status) {
                doctor_found(doctor, DOCTOR_PROBLEM, refusal_advice(doctor), "%s", doctor->refusal);
                return;
        }
        if (strcmp(status->daemon, GPUQ_VERSION) != 0)
                doctor_found(doctor, DOCTOR_NOTE,
                             "install the same version of both, and restart gpuqd",
                             "gpuqd %s answers, but this is gpuq %s", status->daemon, GPUQ_VERSION);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "gpuqd %s answers, up %s", status->daemon,
                             human_us(status->uptime_us).text);
        if (stat(doctor->socket, &st) == 0)
                doctor_find_daemon(doctor, socket_listener(doctor->socket), st.st_uid);
}

static void state_check_history(Doctor *doctor, const char *problem) {
        if (strncmp(problem, "there is no history", 19) == 0)
                doctor_found(doctor, DOCTOR_NOTE,
                             "for a history and detached jobs, set state_dir in gpuqd.conf", "%s",
                             problem);
        else
                doctor_found(doctor, DOCTOR_PROBLEM, ADVICE_LOG, "%s", problem);
}

void doctor_check_state(Doctor *doctor) {
        const gpuq_status *status = doctor->status;

        if (!status)
                return;
        if (strcmp(status->state, "ready") != 0)
                doctor_found(doctor, DOCTOR_PROBLEM,
                             doctor->lacks_gpu ? DOCTOR_ADVICE_CPU : ADVICE_LOG, "%s",
                             status->state);
        if (*status->history_problem)
                state_check_history(doctor, status->history_problem);
        if (status->lacks)
                doctor_found(doctor, DOCTOR_NOTE,
                             "the service has this right from gpuqd.service; a private gpuqd works "
                             "without",
                             "%s", status->lacks);
        if (strcmp(status->state, "ready") == 0 && !*status->history_problem && !status->lacks)
                doctor_found(doctor, DOCTOR_OK, NULL, "ready, with the driver %s %s",
                             status->driver, status->driver_version);
}

/* ---- devices --------------------------------------------------------------- */

/* Return: whether it accepts jobs and is well. */
static bool device_check(Doctor *doctor, const gpuq_device_status *device) {
        bool by_admin = device->drained && strcmp(device->drained, "admin") == 0;
        char advice[128];

        snprintf(advice, sizeof(advice),
                 by_admin ? "an administrator can undo it with `gpuq resume %u'"
                          : "repair it, then run `gpuq resume %u' as an administrator",
                 device->index);
        if (device->drained || strcmp(device->state, "ready") != 0)
                doctor_found(doctor, by_admin ? DOCTOR_NOTE : DOCTOR_PROBLEM,
                             device->drained ? advice : ADVICE_LOG, "device %u: %s", device->index,
                             device->state);
        else if (device->xids > 0)
                doctor_found(doctor, DOCTOR_NOTE,
                             "look for Xid in the kernel log: `journalctl -k -g Xid'",
                             "device %u is ready, but NVIDIA's driver logged %lld errors of it",
                             device->index, (long long)device->xids);
        else
                return true;
        return false;
}

void doctor_check_devices(Doctor *doctor) {
        bool is_right = true;

        if (!doctor->status)
                return;
        for (size_t i = 0; i < doctor->status->n_devices; i++)
                is_right &= device_check(doctor, &doctor->status->devices[i]);
        if (is_right && doctor->status->n_devices)
                doctor_found(doctor, DOCTOR_OK, NULL, "%zu ready: %s%s", doctor->status->n_devices,
                             doctor->status->devices[0].name,
                             doctor->status->n_devices > 1 ? ", ..." : "");
}

/* ---- configuration --------------------------------------------------------- */

/* The rest of a line that begins with @key; NULL: there is none, or it is empty. */
static char *line_value(const char *text, const char *key) {
        const char *line = strstr(text, key);
        size_t n;

        if (!line)
                return NULL;
        line += strlen(key);
        n = strcspn(line, "\n");
        return n ? strndup(line, n) : NULL;
}

void doctor_judge_check(Doctor *doctor, int status, char *text) {
        char *line = strncmp(text, "gpuqd: ", 7) == 0 ? text + 7 : text;

        if (status == -ENOENT || status == 127) {
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "cannot be checked: gpuqd is not installed here");
                return;
        }
        if (status < 0) {
                doctor_found(doctor, DOCTOR_NOTE, NULL, "not checked: `gpuqd --check': %s",
                             status == -EINTR       ? "a signal ended it"
                             : status == -ETIMEDOUT ? "it did not end in time"
                                                    : strerror(-status));
                return;
        }
        if (status == 0) {
                doctor->cache_dir = line_value(text, "\ncache_dir: ");
                doctor->state_dir = line_value(text, "\nstate_dir: ");
                doctor->libraries = line_value(text, "\nlibraries: ");
        }

        line[strcspn(line, "\n")] = '\0';
        if (status == 0)
                doctor_found(doctor, DOCTOR_OK, NULL, "%s", line);
        else if (strstr(line, strerror(EACCES)))
                doctor_found(doctor, DOCTOR_NOTE, "run `gpuq doctor' as root", "cannot be read: %s",
                             line);
        else
                doctor_found(doctor, DOCTOR_PROBLEM,
                             "correct it; `gpuqd --check' lists every mistake", "%s", line);
}

/* gpuqd beside this program, else what PATH finds. */
static void find_gpuqd(char path[static PATH_MAX]) {
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
        char *slash;

        if (n > 0) {
                path[n] = '\0';
                slash = strrchr(path, '/');
                snprintf(slash, PATH_MAX - (size_t)(slash - path), "/gpuqd");
                if (access(path, X_OK) == 0)
                        return;
        }
        strcpy(path, "gpuqd");
}

bool doctor_read_arguments(const Doctor *doctor, char text[static DOCTOR_TEXT],
                           char *argv[static DOCTOR_ARGUMENTS]) {
        ssize_t n_text = doctor_read(doctor, text, "/proc/%d/cmdline", (int)doctor->pid);
        size_t n = 1;

        argv[n++] = "--check"; /* first: none of the others can hide it */
        if (doctor->uid != 0)
                argv[n++] = "--private";
        if (n_text <= 0 || n_text == DOCTOR_TEXT - 1)
                return false;
        for (char *word = text; word < text + n_text; word += strlen(word) + 1) {
                if (word == text)
                        continue;
                if (n == DOCTOR_ARGUMENTS - 1)
                        return false;
                argv[n++] = word;
        }
        argv[n] = NULL;
        return true;
}

void doctor_check_config(Doctor *doctor) {
        char text[DOCTOR_TEXT], arguments[DOCTOR_TEXT], program[PATH_MAX], folder[64];
        char *argv[DOCTOR_ARGUMENTS] = {program, "--check"};
        DoctorProgram check = {.argv = argv, .timeout_ms = RUN_MAX_MS};

        /* Its arguments name files, which we would read with our rights. */
        if (doctor->pid && doctor->uid != 0 && doctor->uid != geteuid()) {
                doctor_found(doctor, DOCTOR_NOTE, NULL, "not checked: this gpuqd belongs to %s",
                             who_user(doctor->uid).name);
                return;
        }

        if (doctor->status && !doctor->pid)
                return; /* the check of the daemon says so */
        if (doctor->pid && !doctor_read_arguments(doctor, arguments, argv)) {
                doctor_found(doctor, DOCTOR_NOTE, "run `gpuqd --check' with its arguments",
                             "not checked: gpuqd's command line is too long or cannot be read");
                return;
        }

        find_gpuqd(program);
        snprintf(folder, sizeof(folder), "/proc/%d/cwd", (int)doctor->pid);
        if (doctor->pid && access(folder, X_OK) == 0)
                check.folder = folder;
        doctor_judge_check(doctor, doctor_run(&check, text), text);
}

/* ---- folders --------------------------------------------------------------- */

void doctor_judge_space(Doctor *doctor, const char *what, uint64_t n_free, bool has_inodes) {
        static const char advice[] =
                "free space on its file system, or choose another folder in gpuqd.conf";

        if (n_free == 0)
                doctor_found(doctor, DOCTOR_PROBLEM, advice, "%s: the file system is full", what);
        else if (!has_inodes)
                doctor_found(doctor, DOCTOR_PROBLEM, advice,
                             "%s: the file system can hold no more files (inodes)", what);
        else if (n_free < FREE_LITTLE)
                doctor_found(doctor, DOCTOR_PROBLEM, advice, "%s: only %s are free", what,
                             human_bytes(n_free).text);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "%s: %s are free", what,
                             human_bytes(n_free).text);
}

static void folder_check(Doctor *doctor, const char *key, const char *folder) {
        char path[PATH_MAX], what[PATH_MAX], advice[PATH_MAX + 64];
        struct statvfs space;
        struct stat st;

        snprintf(path, sizeof(path), "%s%s", doctor->root, folder);
        snprintf(what, sizeof(what), "%s %s", key, folder);
        if (stat(path, &st) < 0 || statvfs(path, &space) < 0) {
                doctor_found(doctor, DOCTOR_NOTE, NULL, "%s: %s%s", what, strerror(errno),
                             errno == ENOENT ? "; gpuqd makes it when it needs it" : "");
        } else if (!S_ISDIR(st.st_mode)) {
                doctor_found(doctor, DOCTOR_PROBLEM, "remove it, or choose another in gpuqd.conf",
                             "%s is not a folder", what);
        } else if (st.st_mode & (S_IWGRP | S_IWOTH) || (doctor->pid && st.st_uid != doctor->uid)) {
                snprintf(advice, sizeof(advice), "run `chown %s %s' and `chmod go-w %s' as root",
                         who_user(doctor->uid).name, folder, folder);
                doctor_found(doctor, DOCTOR_PROBLEM, advice,
                             "%s: owner %s, mode %04o, but only gpuqd's user may write to it", what,
                             who_user(st.st_uid).name, st.st_mode & 07777u);
        } else {
                doctor_judge_space(doctor, what, (uint64_t)space.f_bavail * space.f_frsize,
                                   space.f_files == 0 || space.f_favail > 0);
        }
}

void doctor_check_folders(Doctor *doctor) {
        if (doctor->cache_dir)
                folder_check(doctor, "cache_dir", doctor->cache_dir);
        if (doctor->state_dir)
                folder_check(doctor, "state_dir", doctor->state_dir);
        if (!doctor->cache_dir && (doctor->pid || !doctor->status))
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "not checked: they are in a configuration that was not read");
}

/* ---- limits ---------------------------------------------------------------- */

/* Of /proc/PID/limits, the hard one, which gpuqd uses. Return: 0: not found; ULLONG_MAX: no limit. */
static unsigned long long limit_find(const char *text, const char *name) {
        const char *line = strstr(text, name);
        char hard[24];

        if (!line || sscanf(line + strlen(name), "%*s %23s", hard) != 1)
                return 0;
        return strcmp(hard, "unlimited") == 0 ? ULLONG_MAX : strtoull(hard, NULL, 10);
}

/* Of gpuqd's cgroup (version 2). Return: ULLONG_MAX: no limit, or it cannot be read. */
static unsigned long long cgroup_limit(const Doctor *doctor, const char *group, const char *file) {
        char text[DOCTOR_TEXT];

        if (doctor_read(doctor, text, "/sys/fs/cgroup%s/%s", group, file) <= 0 ||
            strncmp(text, "max", 3) == 0)
                return ULLONG_MAX;
        return strtoull(text, NULL, 10);
}

static void cgroup_check(Doctor *doctor) {
        char text[DOCTOR_TEXT], *group;
        unsigned long long memory, tasks;

        if (doctor_read(doctor, text, "/proc/%d/cgroup", (int)doctor->pid) < 0)
                return;
        group = line_value(text, "0::");
        if (!group)
                return;
        memory = cgroup_limit(doctor, group, "memory.max");
        tasks = cgroup_limit(doctor, group, "pids.max");
        free(group);
        if (memory != ULLONG_MAX)
                doctor_found(doctor, DOCTOR_NOTE,
                             "set arenas_bytes in gpuqd.conf below it, or raise MemoryMax= of "
                             "gpuqd.service",
                             "gpuqd, its workers and the buffers in host memory have %s together",
                             human_bytes(memory).text);
        if (tasks < TASKS_FEW)
                doctor_found(doctor, DOCTOR_NOTE, "raise TasksMax= of gpuqd.service",
                             "gpuqd and its workers may have only %llu threads together", tasks);
}

void doctor_check_limits(Doctor *doctor) {
        size_t n_before = doctor->n_findings;
        char text[DOCTOR_TEXT];
        unsigned long long files;

        if (!doctor->status || !doctor->pid)
                return;
        if (doctor_read(doctor, text, "/proc/%d/limits", (int)doctor->pid) < 0) {
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "could not be determined: gpuqd's process has ended");
                return;
        }

        files = limit_find(text, "Max open files");
        if (files && files < FILES_FEW)
                doctor_found(
                        doctor, DOCTOR_NOTE,
                        "raise LimitNOFILE= of gpuqd.service, or `ulimit -Hn' of a private gpuqd",
                        "gpuqd may open only %llu files; each client and each arena takes one",
                        files);
        cgroup_check(doctor);
        if (doctor->n_findings == n_before)
                doctor_found(doctor, DOCTOR_OK, NULL,
                             "%llu open files, nice limit %llu, no limit on memory, enough threads",
                             files, limit_find(text, "Max nice priority"));
}

/* ---- service --------------------------------------------------------------- */

/* Two lines of words that systemctl(1) has; others are an error's. */
static bool units_read(const char *text, const char *const *words, size_t n_words,
                       char service[static 24], char socket[static 24]) {
        size_t n_known = 0;

        if (sscanf(text, "%23s %23s", service, socket) != 2)
                return false;
        for (size_t i = 0; i < n_words; i++)
                n_known += (strcmp(service, words[i]) == 0) + (strcmp(socket, words[i]) == 0);
        return n_known == 2;
}

void doctor_judge_service(Doctor *doctor, const char *active, const char *enabled) {
        static const char *const actives[] = {"active",     "reloading",  "inactive",
                                              "failed",     "activating", "deactivating",
                                              "refreshing", "maintenance"};
        static const char *const enableds[] = {
                "enabled", "enabled-runtime", "linked",   "linked-runtime", "alias",
                "masked",  "masked-runtime",  "static",   "indirect",       "disabled",
                "bad",     "generated",       "transient"};
        char service[24], socket[24], starts[24], listens[24];

        if (!units_read(active, actives, ARRAY_SIZE(actives), service, socket))
                doctor_found(doctor, DOCTOR_NOTE, NULL, "not checked: systemctl does not answer");
        else if (strcmp(service, "failed") == 0 || strcmp(socket, "failed") == 0)
                doctor_found(doctor, DOCTOR_PROBLEM,
                             "see `journalctl -u gpuqd', then `systemctl reset-failed "
                             "gpuqd.service gpuqd.socket' and `systemctl start gpuqd.socket'",
                             "gpuqd.service is %s, gpuqd.socket is %s", service, socket);
        else if (!units_read(enabled, enableds, ARRAY_SIZE(enableds), starts, listens))
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "gpuqd.service is %s, gpuqd.socket is %s; whether they start with the "
                             "machine could not be determined",
                             service, socket);
        else if (strcmp(listens, "enabled") != 0 && strcmp(starts, "enabled") != 0)
                doctor_found(
                        doctor, DOCTOR_NOTE, "run `systemctl enable gpuqd.socket' as root",
                        "gpuqd.service is %s, gpuqd.socket is %s; neither starts with the machine",
                        service, socket);
        else
                doctor_found(doctor, DOCTOR_OK, NULL, "gpuqd.service is %s, gpuqd.socket is %s",
                             service, socket);
}

static void units_ask(const char *verb, char ret_text[static DOCTOR_TEXT]) {
        char *argv[] = {"systemctl", (char *)verb, "gpuqd.service", "gpuqd.socket", NULL};
        DoctorProgram program = {.argv = argv, .timeout_ms = RUN_MAX_MS, .no_errors = true};

        if (doctor_run(&program, ret_text) < 0)
                *ret_text = '\0';
}

void doctor_check_service(Doctor *doctor) {
        char active[DOCTOR_TEXT], enabled[DOCTOR_TEXT], path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/run/systemd/system", doctor->root);
        if (doctor->status && doctor->uid != 0) {
                doctor_found(doctor, DOCTOR_OK, NULL, "none: this gpuqd is private");
                return;
        }
        if (access(path, F_OK) < 0) {
                doctor_found(doctor, DOCTOR_NOTE, NULL,
                             "not checked: this machine is not run by systemd");
                return;
        }
        units_ask("is-active", active);
        units_ask("is-enabled", enabled);
        doctor_judge_service(doctor, active, enabled);
}

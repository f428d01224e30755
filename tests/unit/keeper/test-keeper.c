/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuqd itself, with stand-ins for supervisor and worker: what it starts, how,
 * as whom, and what it does when they or it die.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 60000

typedef struct Place {
        char folder[64];
        char socket[96];
        char libexec[96];
        char config[96];
} Place;

typedef struct Daemon {
        pid_t pid;
        int log;
        char text[65536]; /* of its stderr, so far */
        size_t n_text;
} Daemon;

static Place place;
static Daemon daemon_;

/* ---- set-up ---------------------------------------------------------------- */

static void shell(const char *format, ...) {
        char command[512];
        va_list args;

        va_start(args, format);
        vsnprintf(command, sizeof(command), format, args);
        va_end(args);
        assert_int_equal(system(command), 0);
}

static int set_up(void **state) {
        strcpy(place.folder, "/tmp/test-keeper-XXXXXX");
        assert_non_null(mkdtemp(place.folder));
        assert_return_code(chmod(place.folder, 0755), errno);
        snprintf(place.socket, sizeof(place.socket), "%s/sock", place.folder);
        snprintf(place.libexec, sizeof(place.libexec), "%s/libexec", place.folder);
        snprintf(place.config, sizeof(place.config), "%s/gpuqd.conf", place.folder);
        shell("mkdir %s && cp %s/gpuqd-supervisor %s/gpuqd-worker %s && : > %s", place.libexec,
              getenv("STAND_INS"), getenv("STAND_INS"), place.libexec, place.config);
        return 0;
}

static int clean_up(void **state) {
        shell("rm -r %s", place.folder);
        return 0;
}

static rlim_t n_fds_max; /* of the next gpuqd; 0: as we have */

static void daemon_start(Daemon *daemon, bool is_private, const char *more) {
        char cache[128], *argv[20] = {"gpuqd",       "--socket", place.socket, "--libexec",
                                      place.libexec, "--config", place.config, "--set",
                                      cache,         "--set",    "state_dir="};
        int fds[2], n = 11;

        snprintf(cache, sizeof(cache), "cache_dir=%s/cache", place.folder);
        if (is_private) {
                argv[n++] = "--private";
        } else {
                argv[n++] = "--set";
                argv[n++] = "supervisor_user=daemon";
                argv[n++] = "--set";
                argv[n++] = "worker_user=nobody";
        }
        if (more)
                argv[n++] = (char *)more;

        *daemon = (Daemon){};
        assert_return_code(pipe2(fds, O_CLOEXEC), errno);
        daemon->pid = fork();
        if (daemon->pid == 0) {
                dup2(fds[1], STDERR_FILENO);
                dup2(fds[1], STDOUT_FILENO);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (n_fds_max)
                        setrlimit(RLIMIT_NOFILE, &(struct rlimit){n_fds_max, n_fds_max});
                execv(getenv("GPUQD"), argv);
                _exit(127);
        }
        close(fds[1]);
        daemon->log = fds[0];
}

/* Until @text was logged, or the log ended. */
/* Of a long log the first half goes. */
static void daemon_make_room(Daemon *daemon) {
        size_t n_gone = sizeof(daemon->text) / 2;

        if (daemon->n_text + 1 < sizeof(daemon->text))
                return;
        daemon->n_text -= n_gone;
        memmove(daemon->text, daemon->text + n_gone, daemon->n_text);
        memset(daemon->text + daemon->n_text, 0, n_gone);
}

static bool daemon_logs(Daemon *daemon, const char *text) {
        while (!strstr(daemon->text, text)) {
                struct pollfd poll_fd = {.fd = daemon->log, .events = POLLIN};
                ssize_t n;

                if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
                        fail_msg("not logged: %s\nbut: %s", text, daemon->text);
                daemon_make_room(daemon);
                n = read(daemon->log, daemon->text + daemon->n_text,
                         sizeof(daemon->text) - 1 - daemon->n_text);
                if (n <= 0)
                        return false;
                daemon->n_text += (size_t)n;
        }
        return true;
}

static void daemon_forget_log(Daemon *daemon) {
        memset(daemon->text, 0, sizeof(daemon->text));
        daemon->n_text = 0;
}

static int daemon_wait(Daemon *daemon) {
        int status;

        assert_int_equal(waitpid(daemon->pid, &status, 0), daemon->pid);
        (void)daemon_logs(daemon, "\001"); /* to its end */
        close(daemon->log);
        return status;
}

static void daemon_start_serving(Daemon *daemon, bool is_private) {
        daemon_start(daemon, is_private, NULL);
        if (!daemon_logs(daemon, "serving at"))
                fail_msg("did not serve: %s", daemon->text);
}

static void daemon_stop(Daemon *daemon) {
        struct stat st;
        int status;

        kill(daemon->pid, SIGTERM);
        status = daemon_wait(daemon);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(stat(place.socket, &st), -1);
}

/* One command to the supervisor. Return: its answer, or "" if it died over it. */
static const char *ask(const char *format, ...) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        static char answer[8192];
        char command[128];
        ssize_t n = 0;
        size_t n_answer = 0;
        va_list args;
        int fd;

        va_start(args, format);
        vsnprintf(command, sizeof(command), format, args);
        va_end(args);
        strncpy(address.sun_path, place.socket, sizeof(address.sun_path) - 1);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_return_code(connect(fd, (struct sockaddr *)&address, sizeof(address)), errno);
        assert_true(send(fd, command, strlen(command), 0) > 0);
        while ((n = recv(fd, answer + n_answer, sizeof(answer) - 1 - n_answer, 0)) > 0)
                n_answer += (size_t)n;
        answer[n_answer] = '\0';
        close(fd);
        return answer;
}

static void assert_has(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("no '%s' in: %s", part, text);
}

static void assert_has_not(const char *text, const char *part) {
        if (strstr(text, part))
                fail_msg("'%s' in: %s", part, text);
}

static pid_t number_behind(const char *text, const char *word) {
        const char *found = strstr(text, word);

        assert_non_null(found);
        return (pid_t)atoi(found + strlen(word));
}

/* A process that is not our child ends. */
static void assert_ends(pid_t pid) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        if (fd < 0) {
                assert_int_equal(errno, ESRCH);
                return;
        }
        assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
        close(fd);
}

/* ---- tests ----------------------------------------------------------------- */

static void private_gpuqd_serves_and_leaves_nothing(void **state) {
        char wanted[512];
        struct stat st;

        daemon_start_serving(&daemon_, true);
        assert_return_code(stat(place.socket, &st), errno);
        assert_int_equal(st.st_mode & 0777, 0600);
        snprintf(wanted, sizeof(wanted), "args --private --uid %u.", getuid());
        assert_has(ask("about"), wanted);
        daemon_stop(&daemon_);
}

static void second_gpuqd_at_the_path_is_refused(void **state) {
        Daemon second;
        int status;

        daemon_start_serving(&daemon_, true);
        daemon_start(&second, true, NULL);
        status = daemon_wait(&second);
        assert_int_equal(WEXITSTATUS(status), 1);
        assert_has(second.text, "is in use by another gpuqd");
        assert_has(ask("about"), "uid");
        daemon_stop(&daemon_);
}

static void nothing_survives_a_killed_keeper_and_its_socket_is_taken_over(void **state) {
        const char *answer;
        pid_t worker;

        daemon_start_serving(&daemon_, true);
        answer = ask("spawn 1 %u", getuid());
        worker = number_behind(answer, "pid ");
        /* Without a keeper nobody ends a worker's children but their own kernel's rules. */
        kill(number_behind(answer, "child "), SIGKILL);
        kill(number_behind(answer, "stray "), SIGKILL);
        kill(daemon_.pid, SIGKILL);
        assert_true(WIFSIGNALED(
                daemon_wait(&daemon_))); /* the log's end: the supervisor has ended too */
        assert_ends(worker);
        assert_return_code(access(place.socket, F_OK), errno);

        daemon_start_serving(&daemon_, true);
        assert_has(ask("about"), "uid");
        daemon_stop(&daemon_);
}

static void supervisor_comes_back_with_what_was_kept(void **state) {
        pid_t worker;

        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("keep one"), ".");
        assert_string_equal(ask("keep two"), ".");
        assert_string_equal(ask("keep three"), ".");
        assert_string_equal(ask("drop two"), ".");
        worker = number_behind(ask("spawn 1 %u", getuid()), "pid ");
        assert_string_equal(ask("die"), "");
        assert_true(daemon_logs(&daemon_, "the supervisor exited with status 9"));
        assert_string_equal(ask("held"), "one=bytes-of-one three=bytes-of-three .");
        assert_ends(worker);
        daemon_stop(&daemon_);
}

/* Held by one who traces it, a process that was killed cannot be reaped by its parent. */
static bool hold_back(pid_t pid) {
        return ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
}

/* Return: once it has been killed; its parent reaps it from now on. */
static void let_go(pid_t pid) {
        int status;

        assert_int_equal(waitpid(pid, &status, __WALL), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* Until then they may write into arenas. */
static void the_next_supervisor_waits_until_the_workers_of_the_last_have_ended(void **state) {
        pid_t worker, other;

        daemon_start_serving(&daemon_, true);
        worker = number_behind(ask("spawn 1 %u", getuid()), "pid ");
        other = number_behind(ask("probe 2"), "pid ");
        if (!hold_back(worker)) {
                daemon_stop(&daemon_);
                return; /* it cannot be seen here */
        }
        (void)ask("killed");
        assert_true(daemon_logs(&daemon_, "restarting it"));
        assert_ends(other);
        /* A reload, which the keeper reads after it would have started one. */
        usleep(500000); /* what must not happen has no event */
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "configuration reloaded"));
        assert_has_not(daemon_.text, "up again");
        let_go(worker);
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        assert_has(ask("spawn 1 %u", getuid()), "pid "); /* its number is free */
        assert_string_equal(ask("kill 1"), "id 1 status 9.");
        daemon_stop(&daemon_);
}

static void a_ledger_over_which_supervisors_end_by_themselves_is_set_aside(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("keep ledger"), ".");
        assert_string_equal(ask("keep other"), ".");
        for (unsigned i = 0; i < 4; i++)
                (void)ask("killed");
        assert_string_equal(ask("held"), "ledger=bytes-of-ledger other=bytes-of-other .");
        for (unsigned i = 0; i < 3; i++)
                (void)ask("die");
        assert_true(daemon_logs(&daemon_, "ledger set aside"));
        assert_string_equal(ask("held"), "other=bytes-of-other .");
        daemon_stop(&daemon_);
}

static void kernel_says(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        assert_return_code(fd, errno);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

static bool has_capability(pid_t pid, unsigned bit) {
        unsigned long long set = 0;
        char path[64], line[256];
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file))
                if (sscanf(line, "CapPrm: %llx", &set) == 1)
                        break;
        fclose(file);
        return set >> bit & 1;
}

static void every_supervisor_reads_the_kernels_log_where_the_last_one_was(void **state) {
        char log[96];

        snprintf(log, sizeof(log), "%s/kmsg", place.folder);
        kernel_says(log, "before");
        shell("printf '[gpuqd]\\nkernel_log = %s\\n' >%s", log, place.config);
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("log"), ".");
        kernel_says(log, "one");
        assert_string_equal(ask("log"), "one.");
        (void)ask("killed");
        kernel_says(log, "two");
        assert_string_equal(ask("log"), "two.");
        assert_string_equal(ask("log"), ".");
        daemon_stop(&daemon_);
}

static void a_log_that_cannot_be_read_is_told_where_there_is_a_gpu(void **state) {
        static const char *const devices[] = {"gpu", "cpu"};

        for (unsigned i = 0; i < 2; i++) {
                shell("printf '[gpuqd]\\ndevice = %s\\nkernel_log = /nowhere/kmsg\\n' >%s",
                      devices[i], place.config);
                daemon_start_serving(&daemon_, true);
                if (i == 0)
                        assert_has(daemon_.text, "Xids are not reported: cannot read the kernel "
                                                 "log: /nowhere/kmsg: No such file or directory");
                else
                        assert_has_not(daemon_.text, "Xid");
                daemon_stop(&daemon_);
        }
}

/* Each was duplicated for the new one, more than there could be: every new supervisor was killed. */
static void supervisor_comes_back_to_a_store_that_is_full(void **state) {
        n_fds_max = 1024;
        daemon_start_serving(&daemon_, true);
        n_fds_max = 0;

        assert_string_equal(ask("fill 1000"), ".");
        daemon_forget_log(&daemon_);
        (void)ask("die");
        assert_true(daemon_logs(&daemon_, "is running again"));
        assert_null(strstr(daemon_.text, "supervisor killed"));
        assert_has(ask("held"), "key-0=bytes-of-key-0 ");
        daemon_stop(&daemon_);
}

static void supervisor_that_sends_nonsense_is_replaced(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("nonsense"), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_forget_log(&daemon_);

        /* A key longer than allowed, and a worker without descriptors, are nonsense too. */
        assert_string_equal(ask("keep "
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
                            ".");
        assert_has(ask("about"), "uid");
        daemon_stop(&daemon_);
}

static void a_kill_tells_what_the_supervisor_was_doing(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("busy 1001"), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message; what it was doing: request "
                                          "cancel (session 5, uid 1001), for "));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

static void what_a_dead_supervisor_leaves_behind_cannot_hold_the_keeper_up(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("heirs"), "");
        assert_true(daemon_logs(&daemon_, "the supervisor exited with status 9"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

static void rubbish_in_the_page_harms_no_keeper(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("rubbish"), "");
        assert_true(daemon_logs(&daemon_, "what it was doing: an unknown activity\n"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

static void worker_starts_with_what_it_needs_and_no_more(void **state) {
        const char *answer;
        char wanted[1024];

        setenv("LD_PRELOAD_OF_NOBODY", "x", 1);
        daemon_start_serving(&daemon_, true);
        answer = ask("spawn 1 %u", getuid());
        snprintf(wanted, sizeof(wanted),
                 "--coalesce yes --coalesce-us 0 --in-place yes --fence no "
                 "--cpu-devices 1 --cpu-threads 0 --cache %s/cache/%u "
                 "--builtin-cache %s/cache/builtin "
                 "--cache-bytes 18446744073709551615 --compile-timeout 120\n",
                 place.folder, getuid(), place.folder);
        assert_has(answer, "args --device 5 --driver ");
        assert_has(answer, " --connections 32 --poll-us ");
        assert_has(answer, wanted);
        assert_has(answer, "fds 0 1 2 3 4 5\n");
        assert_has(answer, "session 1 death 9 blocked 0");
        assert_has(answer, "env CUDA_CACHE_DISABLE=1\n");
        assert_has(answer, "env CUDA_DEVICE_ORDER=PCI_BUS_ID\n");
        snprintf(wanted, sizeof(wanted), "env CUDA_MPS_PIPE_DIRECTORY=%s/cache/no-mps\n",
                 place.folder);
        assert_has(answer, wanted);
        assert_has_not(answer, "LD_");
        assert_has(ask("probe 2"), "args --probe --driver ");
        daemon_stop(&daemon_);
}

static void killing_a_worker_ends_its_children_and_is_told(void **state) {
        const char *answer;
        pid_t worker, child, stray;

        daemon_start_serving(&daemon_, true);
        answer = ask("spawn 7 %u", getuid());
        worker = number_behind(answer, "pid ");
        child = number_behind(answer, "child ");
        stray = number_behind(answer, "stray ");
        assert_string_equal(ask("kill 7"), "id 7 status 9.");
        assert_ends(worker);
        assert_ends(child);
        assert_ends(stray);
        daemon_stop(&daemon_);
}

static void worker_that_cannot_start_is_told_with_the_reason(void **state) {
        daemon_start_serving(&daemon_, true);
        shell("rm %s/gpuqd-worker", place.libexec);
        assert_has(ask("spawn 1 %u", getuid()),
                   "gpuqd-worker: cannot execute it: No such file or directory.");
        assert_has(ask("about"), "uid");
        daemon_stop(&daemon_);
}

static void private_gpuqd_starts_nothing_for_others(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("spawn 1 %u", getuid() + 1),
                            "status 32512: a private gpuqd serves only its own uid.");
        daemon_stop(&daemon_);
}

static void supervisor_that_never_comes_up_ends_gpuqd(void **state) {
        shell("rm %s/gpuqd-supervisor", place.libexec);
        daemon_start(&daemon_, true, NULL);
        assert_int_equal(WEXITSTATUS(daemon_wait(&daemon_)), 1);
        assert_has(daemon_.text, "gpuqd-supervisor: cannot execute it: No such file or directory");
        assert_has(daemon_.text, "failed to start repeatedly");
}

static void reload_with_a_right_file_reaches_the_supervisor(void **state) {
        daemon_start_serving(&daemon_, true);
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "configuration reloaded"));
        daemon_stop(&daemon_);
}

static void reload_with_a_wrong_file_keeps_the_old_one(void **state) {
        shell("echo '[gpuqd]\ncompile_timeout_s = 3' > %s", place.config);
        daemon_start_serving(&daemon_, true);
        shell("echo '[gpuqd]\ncompile_timeout_s = many' > %s", place.config);
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "gpuqd.conf:2: compile_timeout_s = many: not a number"));
        assert_has(ask("spawn 1 %u", getuid()), "--compile-timeout 3\n");

        shell("echo '[gpuqd]\ncompile_timeout_s = 4' > %s", place.config);
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "configuration reloaded"));
        assert_has(ask("spawn 2 %u", getuid()), "--compile-timeout 4\n");
        daemon_stop(&daemon_);
}

static void reload_leaves_the_devices_until_a_restart(void **state) {
        daemon_start_serving(&daemon_, true);
        shell("echo '[gpuqd]\ncpu_devices = 7' > %s", place.config);
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "take effect when gpuqd is restarted"));
        assert_has(ask("spawn 1 %u", getuid()), "--cpu-devices 1 ");
        daemon_stop(&daemon_);
}

static void supervisor_that_does_not_end_is_ended(void **state) {
        int status;

        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("hang"), ".");
        kill(daemon_.pid, SIGTERM);
        assert_true(daemon_logs(&daemon_, "ending"));
        kill(daemon_.pid, SIGTERM);
        status = daemon_wait(&daemon_);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* Who is left over when the keeper ends is ours. */
static void what_is_killed_at_the_end_has_ended_before_the_keeper(void **state) {
        const char *answer;
        pid_t child;

        assert_return_code(prctl(PR_SET_CHILD_SUBREAPER, 1), errno);
        daemon_start_serving(&daemon_, true);
        answer = ask("spawn 1 %u", getuid());
        child = number_behind(answer, "stray ");
        assert_string_equal(ask("hang"), ".");
        kill(daemon_.pid, SIGTERM);
        assert_true(daemon_logs(&daemon_, "ending"));
        kill(daemon_.pid, SIGTERM);
        assert_int_equal(daemon_wait(&daemon_), 0);
        while (waitpid(-1, NULL, WNOHANG) > 0) /* what has ended may be ours to reap */
                ;
        assert_int_equal(kill(child, 0), -1);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_return_code(prctl(PR_SET_CHILD_SUBREAPER, 0), errno);
}

/* It was killed at once, so nobody knew how it would have ended. */
static void supervisor_that_closes_the_link_ends_by_itself(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("leave"), ".");
        kill(daemon_.pid, SIGHUP); /* looked at after the link */
        assert_true(daemon_logs(&daemon_, "configuration reloaded"));
        assert_string_equal(ask("die"), "");
        assert_true(daemon_logs(&daemon_, "the supervisor exited with status 9"));
        assert_has_not(daemon_.text, "killed by signal");
        daemon_stop(&daemon_);
}

static void supervisor_that_closes_the_link_and_stays_is_killed(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("leave"), ".");
        assert_true(daemon_logs(&daemon_, "it did not exit in time"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

static void wrong_command_lines_exit_with_2(void **state) {
        daemon_start(&daemon_, true, "--nonsense");
        assert_int_equal(WEXITSTATUS(daemon_wait(&daemon_)), 2);
        daemon_start(&daemon_, true, "nonsense");
        assert_int_equal(WEXITSTATUS(daemon_wait(&daemon_)), 2);
        daemon_start(&daemon_, true, "--check");
        assert_int_equal(WEXITSTATUS(daemon_wait(&daemon_)), 0);
        shell("echo wrong > %s", place.config);
        daemon_start(&daemon_, true, "--check");
        assert_int_equal(WEXITSTATUS(daemon_wait(&daemon_)), 1);
}

static void service_runs_everything_as_somebody_else(void **state) {
        const struct passwd *passwd;
        const char *answer;
        char wanted[128];
        struct stat st;

        if (getuid() != 0 || !getpwnam("daemon") || !getpwnam("nobody"))
                return; /* cannot be seen here */
        daemon_start_serving(&daemon_, false);
        assert_return_code(stat(place.socket, &st), errno);
        assert_int_equal(st.st_mode & 0777, 0666);
        assert_false(has_capability(daemon_.pid, CAP_SYSLOG)); /* given up, once it was used */

        snprintf(wanted, sizeof(wanted), "uid %u groups 0 no_new_privs 1",
                 getpwnam("daemon")->pw_uid);
        assert_has(ask("about"), wanted);

        passwd = getpwnam("nobody");
        answer = ask("spawn 1 54321");
        snprintf(wanted, sizeof(wanted), "uid 54321 gid %u groups 0\n", passwd->pw_gid);
        assert_has(answer, wanted);
        assert_has(answer, "death 9");
        assert_has(answer, "fds 0 1 2 3 4 5\n");
        assert_has(answer, "/cache/54321 ");
        assert_true(daemon_logs(&daemon_, "(uid 54321) wrote: gpuqd: all is well"));
        assert_has_not(daemon_.text, "\033");
        snprintf(wanted, sizeof(wanted), "%s/cache/54321", place.folder);
        assert_return_code(stat(wanted, &st), errno);
        assert_int_equal(st.st_uid, 54321);
        assert_int_equal(st.st_mode & 0777, 0700);

        snprintf(wanted, sizeof(wanted), "uid %u gid %u ", passwd->pw_uid, passwd->pw_gid);
        assert_has(ask("spawn 2 0"), wanted);
        assert_has(ask("probe 3"), wanted);
        assert_has(ask("spawn 5 4294967295"), "a worker must not run as uid 4294967295");
        assert_string_equal(ask("kill 1"), "id 1 status 9.");
        daemon_stop(&daemon_);
}

/* Issue F, 10: any gid was taken from the supervisor, and any system user's uid. */
static void system_users_run_jobs_only_with_a_section(void **state) {
        if (getuid() != 0 || !getpwnam("daemon") || !getpwnam("sys"))
                return; /* cannot be seen here */
        daemon_start_serving(&daemon_, false);
        assert_has(ask("spawn 1 %u", getpwnam("sys")->pw_uid), "add a section [user sys]");
        assert_has(ask("spawn 2 %u", getpwnam("daemon")->pw_uid), "supervisor_user, which may not");
        shell("printf '[user sys]\nweight = 1\n[user daemon]\nweight = 1\n' >%s", place.config);
        kill(daemon_.pid, SIGHUP);
        assert_true(daemon_logs(&daemon_, "configuration reloaded"));
        assert_has(ask("spawn 3 %u", getpwnam("sys")->pw_uid), "pid ");
        assert_has(ask("spawn 4 %u", getpwnam("daemon")->pw_uid), "supervisor_user, which may not");
        daemon_stop(&daemon_);
}

static void a_spare_worker_is_told_whom_it_serves(void **state) {
        const struct passwd *passwd;
        char wanted[512];

        if (getuid() != 0 || !getpwnam("nobody") || !getpwnam("sys"))
                return; /* cannot be seen here */
        passwd = getpwnam("nobody");
        daemon_start_serving(&daemon_, false);
        assert_has(ask("spare 1"), "uid 0 ");
        assert_has(ask("spare 2"), "fds 0 1 2 3 4 5 6\n");
        snprintf(wanted, sizeof(wanted), "assigned uid 54321 gid %u cache %s/cache/54321.",
                 passwd->pw_gid, place.folder);
        assert_string_equal(ask("assign 2 54321"), wanted);
        assert_has(ask("spare 3"), "pid ");
        assert_has(ask("assign 3 %u", getpwnam("sys")->pw_uid), "add a section [user sys]");
        assert_has(ask("about"), "uid");
        daemon_stop(&daemon_);
}

static void a_private_gpuqds_spare_stays_who_it_is(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_has(ask("spare 1"), "--spare");
        assert_has(ask("assign 1 %u", getuid()), "stays, cache ");
        assert_has(ask("spare 2"), "--spare");
        assert_has(ask("assign 2 %u", getuid() + 1), "a private gpuqd serves only its own uid");
        daemon_stop(&daemon_);
}

/* A supervisor that is owned could otherwise make a user's worker another user's. */
static void only_a_spare_is_assigned_and_only_once(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_has(ask("spawn 1 %u", getuid()), "pid ");
        assert_string_equal(ask("assign 1 %u", getuid()), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_forget_log(&daemon_);

        assert_has(ask("spare 1"), "pid ");
        assert_has(ask("assign 1 %u", getuid()), "stays");
        assert_string_equal(ask("assign 1 %u", getuid()), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_forget_log(&daemon_);

        /* It would still be nobody's, and could be assigned again and again. */
        assert_has(ask("spare 1"), "pid ");
        assert_string_equal(ask("assign 1 4294967295"), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
        daemon_stop(&daemon_);
}

/* Issue F, 6: it was seized while it started. The binary is the same for all of its life here. */
static void its_user_can_neither_trace_nor_read_a_worker(void **state) {
        char path[64];
        pid_t worker;
        int status;

        if (getuid() != 0 || !getpwnam("nobody"))
                return; /* cannot be seen here */
        daemon_start_serving(&daemon_, false);
        worker = number_behind(ask("spawn 1 54321"), "pid ");
        if (fork() == 0) {
                snprintf(path, sizeof(path), "/proc/%d/environ", worker);
                if (setgroups(0, NULL) < 0 || setresgid(54321, 54321, 54321) < 0 ||
                    setresuid(54321, 54321, 54321) < 0)
                        _exit(1);
                if (ptrace(PTRACE_SEIZE, worker, NULL, NULL) == 0 || errno != EPERM)
                        _exit(2);
                if (open(path, O_RDONLY) >= 0 && read(open(path, O_RDONLY), path, 1) >= 0)
                        _exit(3);
                if (prlimit(worker, RLIMIT_NOFILE, &(struct rlimit){}, NULL) == 0)
                        _exit(4);
                _exit(kill(worker, SIGKILL) == 0 ? 0 : 5); /* it is its own, though */
        }
        assert_true(wait(&status) > 0);
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_ends(worker);
        daemon_stop(&daemon_);
}

/* A key with a line break was an assignment to systemd: MAINPID=, for one. */
static void owned_supervisor_is_killed_for_what_breaks_the_rules(void **state) {
        static const char *const attacks[] = {"inject", "socket", "ready"};

        daemon_start_serving(&daemon_, true);
        for (unsigned i = 0; i < 3; i++) {
                daemon_forget_log(&daemon_);
                assert_string_equal(ask(attacks[i]), "");
                assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
                assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        }
        daemon_stop(&daemon_);
}

/* The keeper's memory grew by an answer for each. */
static void owned_supervisor_that_never_reads_is_killed(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("flood"), "");
        assert_true(daemon_logs(&daemon_, "it does not read its messages"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

/* Each cost the keeper a process that closed the descriptor. */
static void owned_supervisor_that_passes_what_is_slow_to_close_is_killed(void **state) {
        daemon_start_serving(&daemon_, true);
        assert_string_equal(ask("litter"), "");
        assert_true(daemon_logs(&daemon_, "it sent an invalid message"));
        assert_true(daemon_logs(&daemon_, "the supervisor is running again"));
        daemon_stop(&daemon_);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(private_gpuqd_serves_and_leaves_nothing),
                TEST(second_gpuqd_at_the_path_is_refused),
                TEST(nothing_survives_a_killed_keeper_and_its_socket_is_taken_over),
                TEST(supervisor_comes_back_with_what_was_kept),
                TEST(the_next_supervisor_waits_until_the_workers_of_the_last_have_ended),
                TEST(a_ledger_over_which_supervisors_end_by_themselves_is_set_aside),
                TEST(every_supervisor_reads_the_kernels_log_where_the_last_one_was),
                TEST(a_log_that_cannot_be_read_is_told_where_there_is_a_gpu),
                TEST(supervisor_comes_back_to_a_store_that_is_full),
                TEST(supervisor_that_sends_nonsense_is_replaced),
                TEST(a_kill_tells_what_the_supervisor_was_doing),
                TEST(what_a_dead_supervisor_leaves_behind_cannot_hold_the_keeper_up),
                TEST(rubbish_in_the_page_harms_no_keeper),
                TEST(worker_starts_with_what_it_needs_and_no_more),
                TEST(killing_a_worker_ends_its_children_and_is_told),
                TEST(worker_that_cannot_start_is_told_with_the_reason),
                TEST(private_gpuqd_starts_nothing_for_others),
                TEST(supervisor_that_never_comes_up_ends_gpuqd),
                TEST(reload_with_a_right_file_reaches_the_supervisor),
                TEST(reload_with_a_wrong_file_keeps_the_old_one),
                TEST(reload_leaves_the_devices_until_a_restart),
                TEST(supervisor_that_does_not_end_is_ended),
                TEST(what_is_killed_at_the_end_has_ended_before_the_keeper),
                TEST(supervisor_that_closes_the_link_ends_by_itself),
                TEST(supervisor_that_closes_the_link_and_stays_is_killed),
                TEST(wrong_command_lines_exit_with_2),
                TEST(service_runs_everything_as_somebody_else),
                TEST(system_users_run_jobs_only_with_a_section),
                TEST(a_spare_worker_is_told_whom_it_serves),
                TEST(a_private_gpuqds_spare_stays_who_it_is),
                TEST(only_a_spare_is_assigned_and_only_once),
                TEST(its_user_can_neither_trace_nor_read_a_worker),
                TEST(owned_supervisor_is_killed_for_what_breaks_the_rules),
                TEST(owned_supervisor_that_never_reads_is_killed),
                TEST(owned_supervisor_that_passes_what_is_slow_to_close_is_killed),
        };

        if (!getenv("GPUQD") || !getenv("STAND_INS")) {
                fprintf(stderr,
                        "GPUQD and STAND_INS must name gpuqd and the folder of the stand-ins\n");
                return 1;
        }
        unsetenv("JOURNAL_STREAM");
        return cmocka_run_group_tests(tests, NULL, NULL);
}

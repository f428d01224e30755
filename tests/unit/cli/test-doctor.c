/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor-daemon.h"
#include "doctor-gpu.h"

/* A machine made of files, as the checks see it. */
static char root[64];
static Doctor doctor;
static gpuq_status status;

static void shell(const char *format, ...) {
        char command[1024];
        va_list args;

        va_start(args, format);
        vsnprintf(command, sizeof(command), format, args);
        va_end(args);
        assert_int_equal(system(command), 0);
}

static void make_file(const char *path, const char *text) {
        char full[256], *slash;
        FILE *file;

        snprintf(full, sizeof(full), "%s%s", root, path);
        slash = strrchr(full, '/');
        *slash = '\0';
        shell("mkdir -p '%s'", full);
        *slash = '/';
        file = fopen(full, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static void make_process(int pid, const char *name, const char *open_file) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        make_file(path, name);
        shell("mkdir %s/proc/%d/fd", root, pid);
        if (open_file)
                shell("ln -s %s %s/proc/%d/fd/3", open_file, root, pid);
}

static int set_up(void **state) {
        strcpy(root, "/tmp/gpuq-doctor-XXXXXX");
        assert_non_null(mkdtemp(root));
        shell("mkdir %s/dev %s/proc", root, root);
        status = (gpuq_status){.daemon = GPUQ_VERSION,
                               .driver = "cuda",
                               .driver_version = "550.54.14 (CUDA 12.4)",
                               .state = "ready",
                               .history_problem = ""};
        doctor = (Doctor){
                .root = root, .status = &status, .check = "test", .socket = "/nonexistent"};
        return 0;
}

static int tear_down(void **state) {
        doctor_finish(&doctor);
        shell("rm -r %s", root);
        return 0;
}

/* The only thing that was found since the last time. */
static void assert_found(DoctorResult result, const char *words) {
        assert_int_equal(doctor.n_findings, 1);
        assert_text_has(doctor.findings[0].text, words);
        assert_int_equal(doctor.findings[0].result, result);
        if (result == DOCTOR_PROBLEM)
                assert_non_null(doctor.findings[0].advice);
        doctor_finish(&doctor);
        doctor.findings = NULL;
        doctor.n_findings = 0;
        doctor.cache_dir = doctor.state_dir = NULL;
}

static void a_missing_socket_is_a_problem_and_the_daemon_is_not_blamed_twice(void **state) {
        doctor.status = NULL;
        doctor_check_socket(&doctor);
        doctor_check_daemon(&doctor);
        assert_found(DOCTOR_PROBLEM, "/nonexistent: No such file");
        make_file("/file", "");
        strcat(root, "/file");
        doctor.socket = root;
        doctor_check_socket(&doctor);
        *strrchr(root, '/') = '\0';
        assert_found(DOCTOR_PROBLEM, "is not a socket");
        doctor.socket = "/dev/null/sock";
        doctor_check_socket(&doctor);
        assert_found(DOCTOR_PROBLEM, "Not a directory");
}

static void a_refusal_is_told_with_what_to_do(void **state) {
        doctor.status = NULL;
        doctor.refusal = "only members of these groups may use gpuqd: gpu";
        doctor.error = GPUQ_E_DENIED;
        doctor_check_daemon(&doctor);
        assert_text_has(doctor.findings[0].advice, "log in again");
        assert_found(DOCTOR_PROBLEM, "members of these groups");
}

static void what_the_daemon_reports_is_judged(void **state) {
        doctor_check_state(&doctor);
        assert_found(DOCTOR_OK, "ready");
        status.lacks = "gpuqd may not raise its priority";
        doctor_check_state(&doctor);
        assert_found(DOCTOR_NOTE, "may not raise");
        status.lacks = NULL;
        status.state = "no usable device: none";
        doctor_check_state(&doctor);
        assert_found(DOCTOR_PROBLEM, "no usable device");
        status.daemon = "0.0.0";
        doctor_check_daemon(&doctor);
        assert_found(DOCTOR_NOTE, "gpuqd 0.0.0 answers");
}

static void a_drained_device_is_a_problem_unless_an_administrator_did_it(void **state) {
        gpuq_device_status device = {.index = 3, .name = "GPU", .state = "ready", .xids = -1};

        status.devices = &device;
        status.n_devices = 1;
        doctor_check_devices(&doctor);
        assert_found(DOCTOR_OK, "1 ready");
        device.xids = 2;
        doctor_check_devices(&doctor);
        assert_found(DOCTOR_NOTE, "2 errors");
        device.state = "drained: cleaning";
        device.drained = "admin";
        doctor_check_devices(&doctor);
        assert_text_has(doctor.findings[0].advice, "gpuq resume 3");
        assert_found(DOCTOR_NOTE, "device 3: drained: cleaning");
        device.drained = "itself";
        doctor_check_devices(&doctor);
        assert_found(DOCTOR_PROBLEM, "device 3");
}

static void a_check_of_the_configuration_is_read(void **state) {
        char good[] = "/etc/x: ok\nmemory: 1\ncache_dir: /c\nstate_dir: \n";
        char bad[] = "gpuqd: /etc/x:2: jobs = many: not a number\nmore\n";
        char closed[] = "gpuqd: /etc/x: Permission denied\n", none[] = "";

        doctor_judge_check(&doctor, 0, good);
        assert_string_equal(doctor.cache_dir, "/c");
        assert_null(doctor.state_dir);
        assert_found(DOCTOR_OK, "/etc/x: ok");
        doctor_judge_check(&doctor, 1, bad);
        assert_found(DOCTOR_PROBLEM, "/etc/x:2: jobs = many: not a number");
        doctor_judge_check(&doctor, 1, closed);
        assert_found(DOCTOR_NOTE, "cannot be read");
        doctor_judge_check(&doctor, -ENOENT, none);
        assert_found(DOCTOR_NOTE, "not installed");
}

static void a_full_file_system_is_a_problem(void **state) {
        doctor_judge_space(&doctor, "cache_dir /c", 0, true);
        assert_found(DOCTOR_PROBLEM, "full");
        doctor_judge_space(&doctor, "cache_dir /c", 1 << 20, true);
        assert_found(DOCTOR_PROBLEM, "only 1.00 MiB");
        doctor_judge_space(&doctor, "cache_dir /c", UINT64_C(1) << 40, false);
        assert_found(DOCTOR_PROBLEM, "inodes");
        doctor_judge_space(&doctor, "cache_dir /c", UINT64_C(1) << 40, true);
        assert_found(DOCTOR_OK, "1.00 TiB are free");
}

static void a_folder_that_others_may_write_to_is_a_problem(void **state) {
        doctor.cache_dir = strdup("/cache");
        doctor_check_folders(&doctor);
        assert_found(DOCTOR_NOTE, "cache_dir /cache: No such file");
        shell("mkdir -m 775 %s/cache", root);
        doctor.cache_dir = strdup("/cache");
        doctor_check_folders(&doctor);
        assert_found(DOCTOR_PROBLEM, "mode 0775");
        shell("chmod 755 %s/cache", root);
        doctor.cache_dir = strdup("/cache");
        doctor.pid = 1;
        doctor.uid = geteuid() + 1;
        doctor_check_folders(&doctor);
        assert_found(DOCTOR_PROBLEM, "only gpuqd's user");
        doctor_check_folders(&doctor);
        assert_found(DOCTOR_NOTE, "not checked");
}

static void the_daemon_is_the_listener_or_its_child(void **state) {
        make_process(1, "systemd\n", NULL);
        make_process(20, "gpuqd\n", NULL);
        make_file("/proc/20/status", "Name:\tgpuqd\nPPid:\t99\nUid:\t7\t7\t7\t7\n");
        doctor_find_daemon(&doctor, 1);
        assert_int_equal(doctor.pid, 0);
        make_process(21, "gpuqd\n", NULL);
        make_file("/proc/21/status", "Name:\tgpuqd\nPPid:\t1\nUid:\t0\t0\t0\t0\n");
        doctor_find_daemon(&doctor, 1);
        assert_int_equal(doctor.pid, 21);
        doctor.pid = 0;
        doctor_find_daemon(&doctor, 20);
        assert_int_equal(doctor.pid, 20);
        assert_int_equal(doctor.uid, 7);
}

static void low_limits_are_told(void **state) {
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_NOTE, "was not found");
        doctor.pid = 20;
        make_file("/proc/20/limits",
                  "Limit                     Soft Limit           Hard Limit           Units\n"
                  "Max open files            1024                 524288               files\n"
                  "Max nice priority         0                    30\n");
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_OK, "524288 open files, nice limit 30");
        make_file("/proc/20/cgroup", "0::/system.slice/gpuqd.service\n");
        make_file("/sys/fs/cgroup/system.slice/gpuqd.service/memory.max", "1073741824\n");
        make_file("/sys/fs/cgroup/system.slice/gpuqd.service/pids.max", "max\n");
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_NOTE, "1.00 GiB");
        make_file("/sys/fs/cgroup/system.slice/gpuqd.service/memory.max", "max\n");
        make_file("/sys/fs/cgroup/system.slice/gpuqd.service/pids.max", "64\n");
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_NOTE, "only 64 threads");
        make_file("/proc/20/limits",
                  "Max open files            1024                 1024               files\n");
        make_file("/proc/20/cgroup", "1:name=x:/\n");
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_NOTE, "only 1024 files");
}

static void a_machine_without_systemd_is_a_note(void **state) {
        doctor_check_service(&doctor);
        assert_found(DOCTOR_NOTE, "not run by systemd");
}

static void the_daemon_for_gpus_needs_each_node(void **state) {
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_NOTE, "/dev/nvidia0 does not exist, but gpuqd can use");
        status.state = "no usable device";
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_PROBLEM, "/dev/nvidia0");
        make_file("/dev/nvidia0", "");
        make_file("/dev/nvidia1", "");
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_PROBLEM, "/dev/nvidiactl");
        make_file("/dev/nvidiactl", "");
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_PROBLEM, "/dev/nvidia-uvm");
        make_file("/dev/nvidia-uvm", "");
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_OK, "exist (2)");
        status.driver = "cpu";
        doctor_check_nodes(&doctor);
        assert_found(DOCTOR_NOTE, "CPU driver, but /dev has");
}

static void a_module_unlike_the_daemons_is_a_problem(void **state) {
        doctor_check_driver(&doctor);
        assert_found(DOCTOR_PROBLEM, "not loaded");
        make_file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for "
                                                 "x86_64  570.86.15  Release Build  (a@b)\n"
                                                 "GCC version:  gcc version 12.2.0\n");
        doctor_check_driver(&doctor);
        assert_text_has(doctor.findings[0].advice, "restart gpuqd");
        assert_found(DOCTOR_PROBLEM,
                     "started with driver 550.54.14, but the kernel module is 570.86.15");
}

static void a_newer_compiler_is_a_note(void **state) {
        doctor_judge_compiler(&doctor, 0, 12040);
        assert_found(DOCTOR_NOTE, "no NVRTC");
        doctor_judge_compiler(&doctor, 13000, 12040);
        assert_found(DOCTOR_NOTE, "13.0, newer than the driver's 12.4");
        doctor_judge_compiler(&doctor, 12040, 12040);
        assert_found(DOCTOR_OK, "12.4");
        doctor_judge_compiler(&doctor, 12040, 0);
        assert_found(DOCTOR_OK, "12.4");
}

static void other_users_of_the_gpu_are_named(void **state) {
        make_process(10, "gpuqd-worker\n", "/dev/nvidia0");
        make_process(11, "nvidia-persiste\n", "/dev/nvidiactl");
        make_process(12, "bash\n", "/dev/null");
        doctor_check_others(&doctor);
        assert_found(DOCTOR_OK, "no other process");
        make_process(13, "python3\n", "/dev/nvidia0");
        doctor_check_others(&doctor);
        assert_found(DOCTOR_NOTE, "other processes have a GPU open (1): python3 (13)");
        for (int pid = 14; pid < 20; pid++)
                make_process(pid, "train\n", "/dev/nvidia-uvm");
        doctor_check_others(&doctor);
        assert_found(DOCTOR_NOTE, "and 2 more");
        shell("rm -r %s/proc/1[3-9]", root);
        make_process(30, "nvidia-cuda-mps\n", "/dev/nvidia0");
        doctor_check_others(&doctor);
        assert_int_equal(doctor.n_findings, 2);
        assert_text_has(doctor.findings[0].text, "MPS is running: nvidia-cuda-mps (30)");
        assert_int_equal(doctor.findings[0].result, DOCTOR_NOTE);
}

static void a_program_that_is_not_there_is_an_error(void **state) {
        char text[DOCTOR_TEXT];
        char *none[] = {"gpuq-no-such-program", NULL};
        int r;
        char *both[] = {"sh", "-c", "pwd; echo wrong >&2; exit 3", NULL};

        r = doctor_run(NULL, none, text);
        assert_true(r == -ENOENT || r == 127); /* valgrind does not know vfork() */
        assert_int_equal(doctor_run("/", both, text), 3);
        assert_string_equal(text, "/\nwrong\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(a_missing_socket_is_a_problem_and_the_daemon_is_not_blamed_twice),
                TEST(a_refusal_is_told_with_what_to_do),
                TEST(what_the_daemon_reports_is_judged),
                TEST(a_drained_device_is_a_problem_unless_an_administrator_did_it),
                TEST(a_check_of_the_configuration_is_read),
                TEST(a_full_file_system_is_a_problem),
                TEST(a_folder_that_others_may_write_to_is_a_problem),
                TEST(the_daemon_is_the_listener_or_its_child),
                TEST(low_limits_are_told),
                TEST(a_machine_without_systemd_is_a_note),
                TEST(the_daemon_for_gpus_needs_each_node),
                TEST(a_module_unlike_the_daemons_is_a_problem),
                TEST(a_newer_compiler_is_a_note),
                TEST(other_users_of_the_gpu_are_named),
                TEST(a_program_that_is_not_there_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor-daemon.h"
#include "doctor-gpu.h"

#define NEVER_MS 100000

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
        doctor.cache_dir = doctor.state_dir = doctor.libraries = NULL;
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
        status.state = "ready";
        status.history_problem = "there is no history: state_dir is not set in gpuqd.conf";
        doctor_check_state(&doctor);
        assert_found(DOCTOR_NOTE, "state_dir is not set");
        status.history_problem = "cannot write the history to /h: No space left on device";
        doctor_check_state(&doctor);
        assert_found(DOCTOR_PROBLEM, "cannot write the history");
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
        char good[] = "/etc/x: ok\nmemory: 1\ncache_dir: /c\nstate_dir: \nlibraries: /a:/b\n";
        char bad[] = "gpuqd: /etc/x:2: jobs = many: not a number\nmore\n";
        char closed[] = "gpuqd: /etc/x: Permission denied\n", none[] = "";

        doctor_judge_check(&doctor, 0, good);
        assert_string_equal(doctor.cache_dir, "/c");
        assert_null(doctor.state_dir);
        assert_string_equal(doctor.libraries, "/a:/b");
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

static void make_gpuqd(int pid, int parent, unsigned uid) {
        char path[64], text[128];

        make_process(pid, "gpuqd\n", NULL);
        snprintf(path, sizeof(path), "/proc/%d/status", pid);
        snprintf(text, sizeof(text), "Name:\tgpuqd\nPPid:\t%d\nUid:\t%u\t0\t0\t0\n", parent, uid);
        make_file(path, text);
}

static void the_daemon_is_the_listener_or_its_child_and_owns_the_socket(void **state) {
        make_process(1, "systemd\n", NULL);
        make_gpuqd(20, 99, 7);
        make_gpuqd(22, 1, 12345); /* anybody can start such a process */
        doctor_find_daemon(&doctor, 1, 0);
        assert_int_equal(doctor.pid, 0);
        assert_found(DOCTOR_NOTE, "was not found");
        make_gpuqd(21, 1, 0);
        doctor_find_daemon(&doctor, 1, 0);
        assert_int_equal(doctor.pid, 21);
        doctor_find_daemon(&doctor, 20, 7);
        assert_int_equal(doctor.pid, 20);
        assert_int_equal(doctor.uid, 7);
        assert_int_equal(doctor.n_findings, 0);
        make_gpuqd(23, 1, 0);
        doctor_find_daemon(&doctor, 1, 0);
        assert_int_equal(doctor.pid, 0);
        assert_found(DOCTOR_NOTE, "several processes");
        doctor_check_config(&doctor);
        doctor_check_folders(&doctor);
        doctor_check_limits(&doctor);
        assert_int_equal(doctor.n_findings, 0);
}

static void arguments_begin_with_the_check_and_are_never_cut(void **state) {
        char text[DOCTOR_TEXT], long_word[DOCTOR_TEXT + 8] = "", *argv[DOCTOR_ARGUMENTS];

        doctor.pid = 20;
        doctor.uid = 7;
        shell("mkdir -p %s/proc/20 && printf 'gpuqd\\0--socket\\0/s\\0' > %s/proc/20/cmdline", root,
              root);
        assert_true(doctor_read_arguments(&doctor, text, argv));
        assert_string_equal(argv[1], "--check");
        assert_string_equal(argv[2], "--private");
        assert_string_equal(argv[3], "--socket");
        assert_string_equal(argv[4], "/s");
        assert_null(argv[5]);
        memset(long_word, 'x', sizeof(long_word) - 1);
        make_file("/proc/20/cmdline", long_word);
        assert_false(doctor_read_arguments(&doctor, text, argv));
        shell("yes x | head -n 80 | tr '\\n' '\\0' > %s/proc/20/cmdline", root);
        assert_false(doctor_read_arguments(&doctor, text, argv));
        doctor.uid = geteuid();
        doctor_check_config(&doctor);
        assert_found(DOCTOR_NOTE, "command line is too long");
}

static void low_limits_are_told(void **state) {
        doctor_check_limits(&doctor);
        assert_int_equal(doctor.n_findings,
                         0); /* the check of the daemon says that it was not found */
        doctor.pid = 20;
        doctor_check_limits(&doctor);
        assert_found(DOCTOR_NOTE, "could not be determined");
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

static void only_words_of_systemctl_are_states_of_units(void **state) {
        doctor_judge_service(&doctor, "active\nactive\n", "static\nenabled\n");
        assert_found(DOCTOR_OK, "gpuqd.service is active, gpuqd.socket is active");
        doctor_judge_service(&doctor, "failed\nactive\n", "static\nenabled\n");
        assert_found(DOCTOR_PROBLEM, "gpuqd.service is failed");
        doctor_judge_service(&doctor, "active\nactive\n", "static\ndisabled\n");
        assert_found(DOCTOR_NOTE, "neither starts");
        doctor_judge_service(&doctor, "Failed to connect to bus: No such file\n", "");
        assert_found(DOCTOR_NOTE, "not checked");
        doctor_judge_service(&doctor, "", "");
        assert_found(DOCTOR_NOTE, "not checked");
        doctor_judge_service(&doctor, "active\ninactive\n", "Failed to get\n");
        assert_found(DOCTOR_NOTE, "could not be determined");
}

static void a_machine_without_a_gpu_is_told_of_the_cpu_driver(void **state) {
        status.state = "no usable device";
        doctor_check_gpu(&doctor);
        assert_text_has(doctor.findings[0].advice, "device = cpu");
        assert_found(DOCTOR_PROBLEM, "there is no NVIDIA GPU here");
        doctor_check_state(&doctor);
        assert_text_has(doctor.findings[0].advice, "device = cpu");
        assert_found(DOCTOR_PROBLEM, "no usable device");
        doctor_check_nodes(&doctor);
        doctor_check_driver(&doctor);
        doctor_check_compiler(&doctor);
        doctor_check_mode(&doctor);
        assert_int_equal(doctor.n_findings, 0);
        doctor.status = NULL;
        doctor_check_gpu(&doctor);
        assert_found(DOCTOR_NOTE, "there is no NVIDIA GPU here");
}

static void a_gpu_on_the_bus_needs_no_node_to_be_one(void **state) {
        status.state = "no usable device";
        make_file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        make_file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
        doctor_check_gpu(&doctor);
        assert_false(doctor.lacks_gpu);
        assert_int_equal(doctor.n_findings, 0);
        make_file("/sys/bus/pci/devices/0000:01:00.0/class", "0x020000\n"); /* of a network */
        doctor_check_gpu(&doctor);
        assert_true(doctor.lacks_gpu);
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
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.nvrtc = 13000, .driver = 12040});
        assert_found(DOCTOR_NOTE,
                     "NVRTC of CUDA 13.0 compiles source, newer than the driver's 12.4");
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.nvrtc = 12040, .driver = 12040});
        assert_found(DOCTOR_OK, "12.4");
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.nvrtc = 12040});
        assert_found(DOCTOR_OK, "12.4");
}

static void which_compiler_compiles_is_told(void **state) {
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.driver = 12040});
        assert_found(DOCTOR_NOTE, "neither NVRTC nor clang");
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.driver = 12040, .has_clang = true});
        assert_found(DOCTOR_NOTE, "clang compiles source; this process finds no NVRTC");
        status.driver = "cpu";
        doctor_judge_compiler(&doctor, &(DoctorCompilers){.has_clang = true});
        assert_found(DOCTOR_OK, "clang compiles source");
        make_file("/wheel/libnvrtc.so.12", "");
        doctor.libraries = strdup("/nonexistent:/wheel");
        doctor_check_compiler(&doctor);
        assert_found(DOCTOR_OK, "NVRTC of CUDA 12 in /wheel compiles source");
}

static void other_users_of_the_gpu_are_named(void **state) {
        make_process(10, "gpuqd-worker\n", "/dev/nvidia0");
        make_process(11, "nvidia-persiste\n", "/dev/nvidiactl");
        make_process(12, "bash\n", "/dev/null");
        doctor_check_others(&doctor);
        assert_found(DOCTOR_OK, "no other process");
        make_process(13, "python3\n", "/dev/nvidia0");
        doctor_check_others(&doctor);
        assert_text_has(doctor.findings[0].advice, "programs that draw on the screen");
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
        char *both[] = {"sh", "-c", "pwd; echo wrong >&2; exit 3", NULL};
        DoctorProgram program = {.argv = none, .timeout_ms = NEVER_MS};
        int r;

        r = doctor_run(&program, text);
        assert_true(r == -ENOENT || r == 127); /* valgrind does not know vfork() */
        program.argv = both;
        program.folder = "/";
        assert_int_equal(doctor_run(&program, text), 3);
        assert_string_equal(text, "/\nwrong\n");
        program.no_errors = true;
        assert_int_equal(doctor_run(&program, text), 3);
        assert_string_equal(text, "/\n");
}

static void a_program_may_print_more_than_is_kept(void **state) {
        char text[DOCTOR_TEXT];
        char *more[] = {"sh", "-c", "echo first; yes | head -c 200000; exit 4", NULL};
        DoctorProgram program = {.argv = more, .timeout_ms = NEVER_MS};

        assert_int_equal(doctor_run(&program, text), 4);
        assert_int_equal(strlen(text), DOCTOR_TEXT - 1);
        assert_memory_equal(text, "first\ny\n", 8);
}

static void a_program_that_does_not_end_is_killed(void **state) {
        char text[DOCTOR_TEXT];
        char *silent[] = {"sleep", "1000", NULL};
        char *closed[] = {"sh", "-c", "exec >&- 2>&-; exec sleep 1000", NULL};
        char *child[] = {"sh", "-c", "sleep 1000 & echo $!", NULL};
        DoctorProgram program = {.argv = silent, .timeout_ms = 50};

        assert_int_equal(doctor_run(&program, text), -ETIMEDOUT);
        program.argv = closed;
        assert_int_equal(doctor_run(&program, text), -ETIMEDOUT);
        program.argv = child; /* its child still has the pipe */
        program.timeout_ms = NEVER_MS;
        assert_int_equal(doctor_run(&program, text), 0);
        assert_int_equal(kill(atoi(text), SIGKILL), 0);
        doctor_judge_check(&doctor, -ETIMEDOUT, text);
        assert_found(DOCTOR_NOTE, "did not end in time");
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
                TEST(the_daemon_is_the_listener_or_its_child_and_owns_the_socket),
                TEST(arguments_begin_with_the_check_and_are_never_cut),
                TEST(low_limits_are_told),
                TEST(a_machine_without_systemd_is_a_note),
                TEST(only_words_of_systemctl_are_states_of_units),
                TEST(a_machine_without_a_gpu_is_told_of_the_cpu_driver),
                TEST(a_gpu_on_the_bus_needs_no_node_to_be_one),
                TEST(the_daemon_for_gpus_needs_each_node),
                TEST(a_module_unlike_the_daemons_is_a_problem),
                TEST(a_newer_compiler_is_a_note),
                TEST(which_compiler_compiles_is_told),
                TEST(other_users_of_the_gpu_are_named),
                TEST(a_program_that_is_not_there_is_an_error),
                TEST(a_program_may_print_more_than_is_kept),
                TEST(a_program_that_does_not_end_is_killed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

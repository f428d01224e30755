/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config: every kind of right and wrong line, and the file that is installed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/config-change.h"
#include "util/config-keys.h"
#include "util/config-seal.h"
#include "util/config-load.h"
#include "util/config-names.h"

static char folder[64];
static char file[96];

static int make_folder(void **state) {
        strcpy(folder, "/tmp/test-config-XXXXXX");
        if (!mkdtemp(folder))
                return -1;
        snprintf(file, sizeof(file), "%s/gpuqd.conf", folder);
        return 0;
}

static int remove_folder(void **state) {
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

static void write_file(const char *name, const char *text) {
        char path[160];
        FILE *stream;

        snprintf(path, sizeof(path), "%s/gpuqd.conf.d", folder);
        (void)mkdir(path, 0755);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        stream = fopen(path, "we");
        assert_non_null(stream);
        assert_true(fputs(text, stream) >= 0);
        assert_int_equal(fclose(stream), 0);
}

static Config *load(const char *text, char *const *settings) {
        Config *config = NULL;
        char *error = NULL;

        write_file("gpuqd.conf", text);
        if (config_load(file, settings, &config, &error) != 0)
                fail_msg("%s", error);
        return config;
}

/* @wanted: without the folder in front */
static void assert_error(const char *text, char *const *settings, const char *wanted) {
        Config *config = NULL;
        char *error = NULL, whole[1024];

        write_file("gpuqd.conf", text);
        assert_int_equal(config_load(file, settings, &config, &error), -EINVAL);
        assert_null(config);
        assert_non_null(error);
        snprintf(whole, sizeof(whole), "%s%s%s", *wanted == '-' ? "" : folder,
                 *wanted == '-' ? "" : "/", wanted);
        assert_string_equal(error, whole);
        free(error);
}

static void empty_file_gives_the_defaults(void **state) {
        Config *config = load("", NULL);

        assert_string_equal(config->socket, "/run/gpuq/gpuqd.sock");
        assert_null(config->admission.allow_groups);
        assert_string_equal(config->admission.admin_group, "gpuq-admin");
        assert_string_equal(config->supervisor_user, "gpuq");
        assert_string_equal(config->worker_user, "gpuq-worker");
        assert_string_equal(config->cache_dir, "/var/cache/gpuq");
        assert_int_equal(config->device, CONFIG_DRIVER_AUTO);
        assert_int_equal(config->cpu.devices, 1);
        assert_false(config->isolation.shared);
        assert_false(config->isolation.fence);
        assert_int_equal(config->worker_idle_s, 60);
        assert_int_equal(config->hello_timeout_s, 10);
        assert_int_equal(config->inflight_jobs, 256);
        assert_true(config->express);
        assert_true(config->coalesce);
        assert_int_equal(config->coalesce_us, 0);
        assert_true(config->in_place);
        assert_true(config->rings.messages);
        assert_int_equal(config->compile_timeout_s, 120);
        assert_true(config->limits.weight == 1);
        assert_true(config->limits.arena_bytes > 1 << 20);
        assert_true(config->limits.device_bytes == UINT64_MAX);
        assert_null(config->sections[CONFIG_USERS]);
        config_free(config);
}

static void every_key_is_read(void **state) {
        Config *config = load(
                "; comment\n"
                "  # another, indented, and longer than any line that holds a value may be: "
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"
                "[gpuqd]\r\n"
                "socket=/tmp/s ; trailing\r\n"
                "   allow_groups =  a  b \n"
                "\tadmin_group =\n"
                "supervisor_user = one\nworker_user = two\ncache_dir = /c\ndevice = cpu\n"
                "libraries = /x:/y z\n"
                "cpu_devices = 4\ncpu_threads = 3\nisolation = shared\nfence = yes\nworker_idle_s "
                "= 0\n"
                "connections = 8\ninflight_jobs = 1\ninflight_ms = 9\npoll_us = 12\nrings = no\n"
                "express = no\ncoalesce = no\ncoalesce_us = 14\nin_place = no\njob_timeout_s = 5\n"
                "compile_timeout_s = 6\n"
                "weight = 0.5\nsessions = 7\njobs = 8\narena_bytes = 3G\ndevice_bytes = 2t\n"
                "modules = 10\ngpu_seconds = 11\ndevices = 0,2-3,63\nsms = 25%",
                NULL);

        assert_string_equal(config->socket, "/tmp/s");
        assert_string_equal(config->admission.allow_groups, "a  b");
        assert_null(config->admission.admin_group);
        assert_string_equal(config->supervisor_user, "one");
        assert_string_equal(config->worker_user, "two");
        assert_string_equal(config->cache_dir, "/c");
        assert_string_equal(config->libraries, "/x:/y z");
        assert_int_equal(config->device, CONFIG_DRIVER_CPU);
        assert_int_equal(config->cpu.devices, 4);
        assert_int_equal(config->cpu.threads, 3);
        assert_true(config->isolation.shared);
        assert_true(config_is_fenced(config));
        assert_int_equal(config->worker_idle_s, 0);
        assert_int_equal(config->connections, 8);
        assert_int_equal(config->inflight_jobs, 1);
        assert_int_equal(config->inflight_ms, 9);
        assert_int_equal(config->poll_us, 12);
        assert_false(config->rings.messages);
        assert_false(config->express);
        assert_false(config->coalesce);
        assert_int_equal(config->coalesce_us, 14);
        assert_false(config->in_place);
        assert_int_equal(config->job_timeout_s, 5);
        assert_int_equal(config->compile_timeout_s, 6);
        assert_true(config->limits.weight == 0.5);
        assert_int_equal(config->limits.sessions, 7);
        assert_int_equal(config->limits.jobs, 8);
        assert_int_equal(config->limits.arena_bytes, 3ull << 30);
        assert_int_equal(config->limits.device_bytes, 2ull << 40);
        assert_int_equal(config->limits.modules, 10);
        assert_int_equal(config->limits.gpu_seconds, 11);
        assert_int_equal(config->limits.devices, 1ull << 63 | 0xd);
        assert_true(sms_are_equal(config->limits.sms, (Sms){.n = 25, .is_percent = true}));
        config_free(config);
}

static void wrong_values_name_file_line_and_what_is_allowed(void **state) {
        static const struct {
                const char *text;
                const char *error;
        } cases[] = {
                {"[gpuqd]\n\narena_bytes = lots\n", "gpuqd.conf:3: arena_bytes = lots: not a size; "
                                                    "allowed: bytes, with K, M, G or T, or "
                                                    "unlimited"},
                {"[gpuqd]\nlibraries = /x:lib\n",
                 "gpuqd.conf:2: libraries = /x:lib: not a list of folders; allowed: absolute paths "
                 "separated by colons, none, or nothing"},
                {"[gpuqd]\narena_bytes =\n", "gpuqd.conf:2: arena_bytes = : not a size; allowed: "
                                             "bytes, with K, M, G or T, or unlimited"},
                {"[gpuqd]\narena_bytes = 99999999999G\n",
                 "gpuqd.conf:2: arena_bytes = 99999999999G: not a size; allowed: bytes, with K, M, "
                 "G or T, "
                 "or unlimited"},
                {"[gpuqd]\narena_bytes = 1GB\n", "gpuqd.conf:2: arena_bytes = 1GB: not a size; "
                                                 "allowed: bytes, with K, M, G or T, or unlimited"},
                {"[gpuqd]\narena_bytes = -1\n", "gpuqd.conf:2: arena_bytes = -1: not a size; "
                                                "allowed: bytes, with K, M, G or T, or unlimited"},
                {"[gpuqd]\ncpu_devices = 0\n",
                 "gpuqd.conf:2: cpu_devices = 0: not a number in this range; allowed: 1 to 64"},
                {"[gpuqd]\ncpu_devices = 65\n",
                 "gpuqd.conf:2: cpu_devices = 65: not a number in this range; allowed: 1 to 64"},
                {"[gpuqd]\ncpu_devices = 4 4\n",
                 "gpuqd.conf:2: cpu_devices = 4 4: not a number in this range; allowed: 1 to 64"},
                {"[gpuqd]\ndevice = tpu\n",
                 "gpuqd.conf:2: device = tpu: not a driver; allowed: auto, gpu, cpu"},
                {"[gpuqd]\nisolation = none\n",
                 "gpuqd.conf:2: isolation = none: not a kind of isolation; allowed: user, shared"},
                {"[gpuqd]\nweight = 0\n",
                 "gpuqd.conf:2: weight = 0: not a weight; allowed: 0.001 to 1000"},
                {"[gpuqd]\nweight = nan\n",
                 "gpuqd.conf:2: weight = nan: not a weight; allowed: 0.001 to 1000"},
                {"[gpuqd]\ndevices = 64\n", "gpuqd.conf:2: devices = 64: not a list of devices; "
                                            "allowed: all, or numbers from 0 to 63 such as 0,2-3"},
                {"[gpuqd]\ndevices =\n", "gpuqd.conf:2: devices = : not a list of devices; "
                                         "allowed: all, or numbers from 0 to 63 such as 0,2-3"},
                {"[gpuqd]\ndevices = 3-2\n", "gpuqd.conf:2: devices = 3-2: not a list of devices; "
                                             "allowed: all, or numbers from 0 to 63 such as 0,2-3"},
                {"[gpuqd]\ndevices = 1,\n", "gpuqd.conf:2: devices = 1,: not a list of devices; "
                                            "allowed: all, or numbers from 0 to 63 such as 0,2-3"},
                {"[class a]\nsms = 25 %\n", "gpuqd.conf:2: sms = 25 %: not a share of the SMs; "
                                            "allowed: all, 1% to 100%, or a number of SMs"},
                {"[gpuqd]\nsocket = here\n", "gpuqd.conf:2: socket = here: not a socket's path; "
                                             "allowed: an absolute path, 107 bytes at "
                                             "most"},
                {"[gpuqd]\nworker_user =\n",
                 "gpuqd.conf:2: worker_user = : not a user; allowed: one name"},
                {"[gpuqd]\nwrong\n",
                 "gpuqd.conf:2: syntax error; allowed: [SECTION], KEY = VALUE, # COMMENT"},
                {"[gpuqd\n", "gpuqd.conf:1: missing ] at the end of the section: [gpuqd"},
                {"[gpu]\n", "gpuqd.conf:1: unknown section [gpu]; allowed: [gpuqd], [user NAME], "
                            "[class NAME]"},
                {"[user]\n", "gpuqd.conf:1: unknown section [user]; allowed: [gpuqd], [user NAME], "
                             "[class NAME]"},
                {"[user a b]\n", "gpuqd.conf:1: unknown section [user a b]; allowed: [gpuqd], "
                                 "[user NAME], [class NAME]"},
                {"jobs = 1\n", "gpuqd.conf:1: jobs is before any section; allowed: [gpuqd], [user "
                               "NAME], [class NAME]"},
                {"[user a]\nsocket = /x\n",
                 "gpuqd.conf:2: unknown key socket in a [user NAME] section; allowed: "
                 "weight, sessions, jobs, queued_bytes, arena_bytes, "
                 "device_bytes, modules, detached_jobs, detached_bytes, gpu_seconds, devices, sms"},
                {"[class a]\njobs = 1\n", "gpuqd.conf: [class a] has no group; add group = NAME"},
                {"[class a]\ngroup = b c\n",
                 "gpuqd.conf:2: group = b c: not a group; allowed: one name"},
                {"[user a]\ngroup = b\n",
                 "gpuqd.conf:2: unknown key group in a [user NAME] section; allowed: weight, "
                 "sessions, jobs, queued_bytes, arena_bytes, device_bytes, modules, detached_jobs, "
                 "detached_bytes, gpu_seconds, devices, sms"},
                {"[user a]\nmodules = x\n",
                 "gpuqd.conf:2: modules = x: not a number in this range; allowed: 1 to 1000000"},
                {"wrong\n[gpuqd]\njobs = x\n",
                 "gpuqd.conf:1: syntax error; allowed: [SECTION], KEY = VALUE, # COMMENT"},
                {"[gpuqd]\njobs = x\nwrong\n",
                 "gpuqd.conf:2: jobs = x: not a number in this range; allowed: 1 to 1000000000"},
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                assert_error(cases[i].text, NULL, cases[i].error);
}

static void wrong_key_lists_those_there_are(void **state) {
        Config *config = NULL;
        char *error = NULL;

        write_file("gpuqd.conf", "[gpuqd]\nsockt = /x\n");
        assert_int_equal(config_load(file, NULL, &config, &error), -EINVAL);
        assert_non_null(
                strstr(error, "gpuqd.conf:2: unknown key sockt; allowed: socket, allow_groups, "));
        free(error);
}

static void line_that_is_too_long_is_told(void **state) {
        char text[400] = "[gpuqd]\nallow_groups = ";

        memset(text + strlen(text), 'a', 250);
        assert_error(text, NULL, "gpuqd.conf:2: the line is too long; allowed: 190 bytes");
}

static void fragments_come_after_the_file_by_name(void **state) {
        Config *config;

        write_file("gpuqd.conf.d/20-b.conf", "[gpuqd]\njobs = 20\n");
        write_file("gpuqd.conf.d/10-a.conf", "[gpuqd]\njobs = 10\nsessions = 10\n");
        write_file("gpuqd.conf.d/30-c.conf.old", "[gpuqd]\nnonsense\n");
        config = load("[gpuqd]\njobs = 1\nsessions = 1\nmodules = 1\n", NULL);
        assert_int_equal(config->limits.jobs, 20);
        assert_int_equal(config->limits.sessions, 10);
        assert_int_equal(config->limits.modules, 1);
        config_free(config);

        write_file("gpuqd.conf.d/20-b.conf", "\n[gpuqd]\njobs = -\n");
        assert_error(
                "", NULL,
                "gpuqd.conf.d/20-b.conf:3: jobs = -: not a number in this range; allowed: 1 to "
                "1000000000");
}

static void command_line_is_strongest(void **state) {
        char *const settings[] = {"jobs=30", " sessions = 31 ", NULL};
        Config *config = load("[gpuqd]\njobs = 1\n", settings);

        assert_int_equal(config->limits.jobs, 30);
        assert_int_equal(config->limits.sessions, 31);
        config_free(config);

        assert_error("", (char *[]){"jobs=x", NULL},
                     "--set jobs = x: not a number in this range; allowed: 1 to 1000000000");
        assert_error("", (char *[]){"jobs", NULL}, "--set jobs has no value; allowed: KEY=VALUE");
}

static void user_sections_start_from_the_defaults_of_all_files(void **state) {
        const ConfigLimits *limits;
        Config *config;

        write_file("gpuqd.conf.d/10.conf", "[gpuqd]\nmodules = 5\n[user alice]\nsessions = 3\n");
        config = load("[user alice]\nweight = 2\n[user 1234]\njobs = 9\n[gpuqd]\njobs = 7\n", NULL);

        limits = config_limits(config, "alice", 1000);
        assert_true(limits->weight == 2);
        assert_int_equal(limits->jobs, 7);
        assert_int_equal(limits->modules, 5);
        assert_int_equal(limits->sessions, 3);
        assert_int_equal(config_limits(config, NULL, 1234)->jobs, 9);
        assert_int_equal(config_limits(config, "bob", 1234)->jobs, 9);
        assert_ptr_equal(config_limits(config, "bob", 1001), &config->limits);
        assert_ptr_equal(config_limits(config, NULL, 1001), &config->limits);
        config_free(config);
}

static Config *seal_and_unseal(const Config *config);

static void slurm_changes_the_weight_alone(void **state) {
        const gid_t students[] = {50};
        char text[512];
        const ConfigLimits *limits;
        Config *config, *sealed;

        write_file("weights.conf", "[slurm 1001]\nweight = 3\n[slurm 1000]\nweight = 2.5\n");
        snprintf(text, sizeof(text),
                 "[gpuqd]\nslurm_dir = %s\n[class students]\ngroup = students\njobs = 1\n"
                 "[user alice]\njobs = 9\nweight = 7\n",
                 folder);
        config = load(text, NULL);
        sealed = seal_and_unseal(config);
        assert_true(config_weight(sealed, &sealed->limits, NULL, 1001) == 3);
        config_free(sealed);
        config->sections[CONFIG_CLASSES]->gid = 50;

        limits = config_limits_in(config, "bob", 1001, students, 1);
        assert_int_equal(limits->jobs, 1);
        assert_true(config_weight(config, limits, "bob", 1001) == 3);
        limits = config_limits_in(config, "alice", 1000, students, 1);
        assert_int_equal(limits->jobs, 9);
        assert_true(config_weight(config, limits, "alice", 1000) == 2.5);
        assert_true(config_weight(config, limits, "carol", 1002) == 7);
        config_free(config);

        write_file("weights.conf", "[slurm 1001]\njobs = 3\n");
        assert_error(text, NULL,
                     "weights.conf:2: unknown key jobs in a [slurm NAME] section; allowed: weight");
}

static void classes_apply_to_members_of_their_group_in_order(void **state) {
        const gid_t students[] = {7, 50}, both[] = {60, 50}, none[] = {7};
        Config *config;

        write_file("gpuqd.conf.d/10.conf", "[class guests]\njobs = 5\n");
        config = load("[class students]\ngroup = students\njobs = 1\n[class guests]\nmodules = 2\n"
                      "group = guests\n[user alice]\njobs = 9\n[gpuqd]\nsessions = 3\n",
                      NULL);
        assert_string_equal(config->sections[CONFIG_CLASSES]->group, "students");
        assert_ptr_equal(config_limits_in(config, "bob", 1001, students, 2), &config->limits);

        config->sections[CONFIG_CLASSES]->gid = 50;
        config->sections[CONFIG_CLASSES]->next->gid = 60;
        assert_int_equal(config_limits_in(config, "bob", 1001, students, 2)->jobs, 1);
        assert_int_equal(config_limits_in(config, "bob", 1001, students, 2)->sessions, 3);
        assert_int_equal(config_limits_in(config, "bob", 1001, both, 2)->jobs, 1);
        assert_int_equal(config_limits_in(config, "bob", 1001, both, 1)->jobs, 5);
        assert_int_equal(config_limits_in(config, "bob", 1001, both, 1)->modules, 2);
        assert_ptr_equal(config_limits_in(config, "bob", 1001, none, 1), &config->limits);
        assert_int_equal(config_limits_in(config, "alice", 1000, students, 2)->jobs, 9);
        config_free(config);
}

/* As the supervisor does it. Return: whether all lookups were answered. */
static bool find_names(Config *config) {
        ConfigNames *names = NULL;
        bool has_failed;

        assert_int_equal(config_names_new(config, &names), 0);
        assert_int_equal(config_names_apply(names, config), 0);
        assert_true(config_names_have_failed(names) == config->admission.is_unknown ||
                    !config->admission.allow_groups);
        config_names_find(names);
        assert_int_equal(config_names_apply(names, config), 0);
        has_failed = config_names_have_failed(names);
        config_names_free(names);
        return !has_failed;
}

static void class_of_a_group_that_is_unknown_applies_to_nobody(void **state) {
        const gid_t groups[] = {(gid_t)-1, 0};
        Config *config = load("[class a]\ngroup = gpuq-no-such-group\njobs = 1\n", NULL);

        assert_true(find_names(config));
        assert_ptr_equal(config_limits_in(config, "bob", 1001, groups, 2), &config->limits);
        config_free(config);

        config = load("[class a]\ngroup = root\njobs = 1\n", NULL);
        assert_true(find_names(config));
        assert_int_equal(config_limits_in(config, "bob", 1001, groups, 2)->jobs, 1);
        config_free(config);
}

static void groups_that_may_connect_are_found_one_by_one(void **state) {
        Config *config = load("[gpuqd]\nallow_groups =  gpuq-no-group\troot daemon \n"
                              "admin_group = daemon\n",
                              NULL);
        const ConfigAdmission *admission = &config->admission;

        assert_true(find_names(config));
        assert_int_equal(admission->n_allowed, 2);
        assert_int_equal(admission->allowed[0], 0);
        assert_int_equal(admission->allowed[1], admission->admins);
        assert_int_equal(admission->admins, 1);
        assert_false(admission->is_unknown);
        config_free(config);
}

/* The answer about an earlier configuration holds for the names that both have. */
static void a_name_that_was_not_asked_for_is_unknown(void **state) {
        Config *old = load("[gpuqd]\nallow_groups = root\n", NULL);
        Config *config =
                load("[gpuqd]\nallow_groups = daemon root\n[class a]\ngroup = daemon\n", NULL);
        ConfigNames *names = NULL;

        assert_int_equal(config_names_new(old, &names), 0);
        config_names_find(names);
        assert_int_equal(config_names_apply(names, config), 0);
        assert_int_equal(config->admission.n_allowed, 1);
        assert_true(config->admission.is_unknown);
        assert_int_equal(config->sections[CONFIG_CLASSES]->gid, (gid_t)-1);
        config_names_free(names);
        config_free(config);
        config_free(old);
}

static void assert_same_text(const ConfigKey *key, const void *one, const void *other) {
        char *a = config_key_format(key, one), *b = config_key_format(key, other);

        assert_non_null(a);
        if (strcmp(a, b) != 0)
                fail_msg("%s: %s became %s", key->name, a, b);
        free(a);
        free(b);
}

static void assert_same_sections(const ConfigUser *a, const ConfigUser *b) {
        for (; a && b; a = a->next, b = b->next) {
                assert_string_equal(a->name, b->name);
                assert_string_equal(a->group ? a->group : "", b->group ? b->group : "");
                assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
        }
        assert_null(a);
        assert_null(b);
}

/* By the words of each value; those that words could hide are compared by the caller. */
static void assert_same(const Config *one, const Config *other) {
        const ConfigKey *key;

        for (size_t i = 0; (key = config_key_at(i)); i++)
                assert_same_text(key, (const char *)one + key->offset,
                                 (const char *)other + key->offset);
        for (ConfigKind kind = 0; kind < _CONFIG_KIND_N; kind++)
                assert_same_sections(one->sections[kind], other->sections[kind]);
        assert_memory_equal(&one->limits, &other->limits, sizeof(one->limits));
}

static Config *seal_and_unseal(const Config *config) {
        Config *read = NULL;
        int fd = -1;

        assert_int_equal(config_seal(config, &fd), 0);
        assert_int_equal(pwrite(fd, "x", 1, 0), -1);
        assert_int_equal(errno, EPERM);
        /* Twice, as by one supervisor after another. */
        assert_int_equal(config_unseal(fd, &read), 0);
        config_free(read);
        assert_int_equal(config_unseal(fd, &read), 0);
        close(fd);
        return read;
}

static void sealed_configuration_is_read_back_whole(void **state) {
        char long_path[600] = "cache_dir=/";
        char *const settings[] = {long_path, "allow_groups=a ; b\nc", NULL};
        Config *config, *read;

        memset(long_path + strlen(long_path), 'p', 400);
        config = load("[gpuqd]\nsocket = /tmp/s\nadmin_group =\nsupervisor_user = one\n"
                      "worker_user = two\ndevice = cpu\ncpu_devices = 4\ncpu_threads = 3\n"
                      "isolation = shared\nworker_idle_s = 0\ninflight_jobs = 1\n"
                      "inflight_ms = 9\npoll_us = 13\n"
                      "coalesce = no\ncoalesce_us = 14\nin_place = no\njob_timeout_s = "
                      "5\ncompile_timeout_s = 6\n"
                      "weight = 0.1\nsessions = 7\njobs = 8\narena_bytes = 3G\n"
                      "device_bytes = unlimited\nmodules = 10\ngpu_seconds = 11\n"
                      "[user alice]\nweight = 0.001\ndevice_bytes = 1K\n"
                      "[user 1234]\nweight = 333.333333\nsessions = 1\njobs = 2\n"
                      "arena_bytes = unlimited\nmodules = 3\ngpu_seconds = 4\ndevices = 1,4-6\n"
                      "[class a]\ngroup = g\njobs = 77\nsms = 32\n"
                      "[slurm 1234]\nweight = 12\n[slurm bob]\nweight = 3\n",
                      settings);
        read = seal_and_unseal(config);
        assert_same(config, read);
        assert_string_equal(read->sections[CONFIG_CLASSES]->name, "a");
        assert_string_equal(read->sections[CONFIG_CLASSES]->group, "g");
        assert_int_equal(read->sections[CONFIG_CLASSES]->limits.jobs, 77);
        assert_true(sms_are_equal(read->sections[CONFIG_CLASSES]->limits.sms, (Sms){.n = 32}));
        assert_null(read->sections[CONFIG_CLASSES]->next);
        assert_null(read->admission.admin_group);
        assert_string_equal(read->admission.allow_groups, "a ; b\nc");
        assert_int_equal(strlen(read->cache_dir), 401);
        assert_int_equal(read->device, CONFIG_DRIVER_CPU);
        assert_true(read->isolation.shared);
        config_free(read);
        config_free(config);

        config = load("", NULL);
        read = seal_and_unseal(config);
        assert_same(config, read);
        assert_null(read->sections[CONFIG_USERS]);
        config_free(read);
        config_free(config);
}

static void what_is_no_sealed_configuration_is_refused(void **state) {
        static const char *const texts[] = {"", "jobs", "jobs\0x", "nonsense\0x",
                                            "user\0a\0socket\0/x"};
        static const size_t sizes[] = {0, 5, 7, 11, 17};
        char path[160];

        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                Config *config = NULL;
                FILE *stream;

                snprintf(path, sizeof(path), "%s/sealed", folder);
                stream = fopen(path, "w+e");
                assert_non_null(stream);
                assert_int_equal(fwrite(texts[i], 1, sizes[i], stream), sizes[i]);
                fflush(stream);
                assert_int_equal(config_unseal(fileno(stream), &config), -EINVAL);
                assert_null(config);
                fclose(stream);
        }
}

static void named_file_must_be_there(void **state) {
        Config *config = NULL;
        char *error = NULL;

        assert_int_equal(config_load("/nonexistent/gpuqd.conf", NULL, &config, &error), -ENOENT);
        assert_string_equal(error, "/nonexistent/gpuqd.conf: No such file or directory");
        free(error);
}

static void installed_file_is_right_and_has_every_key(void **state) {
        const char *path = getenv("GPUQD_CONF");
        Config *config = NULL;
        char *error = NULL, text[16384], line[64];
        size_t n_text;
        FILE *stream;

        if (!path)
                return; /* cannot be seen here */
        if (config_load(path, NULL, &config, &error) != 0)
                fail_msg("%s", error);
        assert_int_equal(config->device, CONFIG_DRIVER_GPU);
        config_free(config);

        stream = fopen(path, "re");
        assert_non_null(stream);
        n_text = fread(text, 1, sizeof(text) - 1, stream);
        text[n_text] = '\0';
        fclose(stream);
        for (size_t i = 0; config_key_at(i); i++) {
                const ConfigKey *key = config_key_at(i);

                /* What is commented out shows the default; the service says device = gpu. */
                if (strcmp(key->name, "device") == 0 || !key->initial)
                        snprintf(line, sizeof(line), "%s = ", key->name);
                else
                        snprintf(line, sizeof(line), "\n#%s =%s%s\n", key->name,
                                 *key->initial ? " " : "", key->initial);
                if (!strstr(text, line))
                        fail_msg("%s does not show: %s", path, line);
        }
}

static void assert_changes(const char *before, const char *after, const char *words) {
        Config *old = load(before, NULL), *config = load(after, NULL);
        char *text;

        assert_int_equal(config_describe_changes(old, config, &text), 0);
        assert_string_equal(text, words);
        free(text);
        config_free(old);
        config_free(config);
}

static void changes_are_described_key_by_key(void **state) {
        static const char base[] = "[gpuqd]\npoll_us = 0\n[user anna]\njobs = 10\n";

        assert_changes(base, base, "");
        assert_changes(base, "[gpuqd]\npoll_us = 100\n[user anna]\njobs = 20\n",
                       "poll_us 0 -> 100, [user anna] jobs 10 -> 20");
        assert_changes("[gpuqd]\nadmin_group = a\nrings = yes\nweight = 0.1\nqueued_bytes = 1M\n",
                       "[gpuqd]\nadmin_group =\nrings = no\nweight = 1.25\nqueued_bytes = 3000\n",
                       "admin_group a -> (empty), rings yes -> no, weight 0.1 -> 1.25, "
                       "queued_bytes 1M -> 3000");
}

static void changes_of_sections_are_described(void **state) {
        assert_changes("[gpuqd]\n", "[gpuqd]\n[user anna]\njobs = 5\n[class a]\ngroup = g\n",
                       "[user anna] added, [user anna] jobs 100000 -> 5, [class a] added");
        assert_changes("[user anna]\njobs = 5\n[user 7]\njobs = 5\n", "[user 7]\njobs = 5\n",
                       "[user anna] removed");
        assert_changes("[class a]\ngroup = g\n", "[class a]\ngroup = h\n",
                       "[class a] group g -> h");
        assert_changes("[class a]\ngroup = g\nsms = 25%\n", "[class a]\ngroup = g\nsms = 100%\n",
                       "[class a] sms 25% -> all");
        assert_changes("[class a]\ngroup = g\n[class b]\ngroup = h\n",
                       "[class b]\ngroup = h\n[class a]\ngroup = g\n", "order of the classes");
        assert_changes("[slurm 7]\nweight = 3\n[slurm 8]\nweight = 1\n", "[slurm 7]\nweight = 4\n",
                       "[slurm 7] weight 3 -> 4, [slurm 8] removed");
        assert_changes("[gpuqd]\njobs = 7\n[user anna]\nmodules = 1\n",
                       "[gpuqd]\njobs = 8\n[user anna]\nmodules = 1\n", "jobs 7 -> 8");
        assert_changes("[gpuqd]\njobs = 7\n[user anna]\njobs = 9\n",
                       "[gpuqd]\njobs = 9\n[user anna]\nmodules = 1\n",
                       "jobs 7 -> 9, [user anna] modules 4096 -> 1");
}

static void long_lists_of_changes_are_cut(void **state) {
        char path[128], words[400], before[200], after[500] = "";

        memset(path, 'x', sizeof(path) - 1);
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        snprintf(before, sizeof(before), "[gpuqd]\ncache_dir = %s\n", path);
        snprintf(words, sizeof(words), "cache_dir %.60s... -> /y", path);
        assert_changes(before, "[gpuqd]\ncache_dir = /y\n", words);

        *words = '\0';
        for (unsigned i = 0; i < 12; i++) {
                sprintf(after + strlen(after), "[user u%u]\njobs = 100000\n", i);
                if (i < 10)
                        sprintf(words + strlen(words), "%s[user u%u] added", i ? ", " : "", i);
        }
        strcat(words, " and 2 more");
        assert_changes("[gpuqd]\n", after, words);
}

static void fixed_keys_are_put_back(void **state) {
        Config *old = load("[gpuqd]\nstate_dir = /a\ncpu_devices = 1\n", NULL);
        Config *config = load("[gpuqd]\nstate_dir =\ncpu_devices = 2\nisolation = shared\nfence = "
                              "yes\njobs = 3\n",
                              NULL);
        char *text;

        assert_int_equal(config_keep_fixed(old, config, &text), 0);
        assert_string_equal(
                text, "state_dir /a -> (empty), cpu_devices 1 -> 2, isolation user -> shared, "
                      "fence no -> yes");
        free(text);
        assert_string_equal(config->state_dir, "/a");
        assert_int_equal(config->cpu.devices, 1);
        assert_false(config->isolation.shared);
        assert_int_equal(config->limits.jobs, 3);
        assert_int_equal(config_keep_fixed(old, config, &text), 0);
        assert_string_equal(text, "");
        free(text);
        config_free(old);
        config_free(config);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(empty_file_gives_the_defaults, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(every_key_is_read, make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(wrong_values_name_file_line_and_what_is_allowed,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(wrong_key_lists_those_there_are, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(line_that_is_too_long_is_told, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(fragments_come_after_the_file_by_name, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(command_line_is_strongest, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(slurm_changes_the_weight_alone, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(classes_apply_to_members_of_their_group_in_order,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(class_of_a_group_that_is_unknown_applies_to_nobody,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(groups_that_may_connect_are_found_one_by_one,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(a_name_that_was_not_asked_for_is_unknown,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(user_sections_start_from_the_defaults_of_all_files,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(sealed_configuration_is_read_back_whole,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(what_is_no_sealed_configuration_is_refused,
                                                make_folder, remove_folder),
                cmocka_unit_test_setup_teardown(changes_are_described_key_by_key, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(changes_of_sections_are_described, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(long_lists_of_changes_are_cut, make_folder,
                                                remove_folder),
                cmocka_unit_test_setup_teardown(fixed_keys_are_put_back, make_folder,
                                                remove_folder),
                cmocka_unit_test(named_file_must_be_there),
                cmocka_unit_test(installed_file_is_right_and_has_every_key),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

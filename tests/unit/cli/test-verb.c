/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "verb.h"

static char *help_of(const Verb *verb) {
        char *text = NULL;
        size_t n_text;
        FILE *stream = open_memstream(&text, &n_text);

        verb_print_help(verb, stream);
        fclose(stream);
        return text;
}

static void assert_help_names(const Verb *verb, const char *help, const struct option *option) {
        char word[64];

        snprintf(word, sizeof(word), "--%s%s", option->name, option->has_arg ? " " : "");
        if (!strstr(help, word))
                fail_msg("the help of %s lacks `%s'", verb->name, word);
        if (option->val >= VERB_HELP)
                return;

        snprintf(word, sizeof(word), "-%c, --%s", option->val, option->name);
        if (!strstr(help, word))
                fail_msg("the help of %s lacks `%s'", verb->name, word);
        if (!strchr(verb->shorts, option->val))
                fail_msg("%s does not read -%c", verb->name, option->val);
}

static void every_verbs_help_names_each_of_its_options(void **state) {
        for (const Verb *const *verb = verbs; *verb; verb++) {
                char *help = help_of(*verb);

                for (const struct option *option = (*verb)->options; option->name; option++)
                        assert_help_names(*verb, help, option);
                free(help);
        }
}

static unsigned n_options(const Verb *verb, int value) {
        unsigned n = 0;

        for (const struct option *option = verb->options; option->name; option++)
                n += option->val == value;
        return n;
}

static void every_verb_has_the_common_options(void **state) {
        for (const Verb *const *verb = verbs; *verb; verb++) {
                bool is_text = *verb == &verb_metrics || *verb == &verb_top || *verb == &verb_trace;

                assert_int_equal(n_options(*verb, VERB_HELP), 1);
                assert_int_equal(n_options(*verb, VERB_SOCKET), 1);
                assert_int_equal(n_options(*verb, VERB_JSON), is_text ? 0 : 1);
        }
}

static void every_verb_is_found_by_its_name(void **state) {
        for (const Verb *const *verb = verbs; *verb; verb++)
                assert_ptr_equal(verb_find((*verb)->name), *verb);
        assert_null(verb_find("frob"));
        assert_null(verb_find(""));
}

static void a_slip_finds_the_nearest_verb(void **state) {
        assert_ptr_equal(verb_nearest("stauts"), &verb_status);
        assert_ptr_equal(verb_nearest("kernel"), &verb_kernels);
        assert_ptr_equal(verb_nearest("canel"), &verb_cancel);
        assert_ptr_equal(verb_nearest("q"), NULL);
        assert_ptr_equal(verb_nearest("st"), &verb_status);
        assert_null(verb_nearest("frobnicate"));
        assert_null(verb_nearest("a-word-that-is-longer-than-every-verb-of-gpuq-together"));
}

static void every_verb_refuses_an_unknown_option(void **state) {
        for (const Verb *const *verb = verbs; *verb; verb++) {
                char *argv[] = {(char *)(*verb)->name, "--no-such-option", NULL};
                Cli cli = {.verb = *verb};

                optind = 0;
                assert_int_equal((*verb)->run(&cli, 2, argv), EXIT_USAGE);
                assert_text_has(problem_text(&cli.problem), "unknown option `--no-such-option'");
                problem_clear(&cli.problem);
        }
}

static void assert_usage(const Verb *verb, const char *word, const char *words) {
        char *argv[] = {(char *)verb->name, (char *)word, NULL};
        Cli cli = {.verb = verb};

        optind = 0;
        assert_int_equal(verb->run(&cli, word ? 2 : 1, argv), EXIT_USAGE);
        assert_text_has(problem_text(&cli.problem), words);
        problem_clear(&cli.problem);
}

static void wrong_arguments_are_refused_without_a_daemon(void **state) {
        assert_usage(&verb_status, "x", "unexpected argument");
        assert_usage(&verb_queue, "x", "unexpected argument");
        assert_usage(&verb_queue, "--user=no-such-user!", "--user `no-such-user!'");
        assert_usage(&verb_top, "x", "unexpected argument");
        assert_usage(&verb_top, "--delay=0", "--delay `0': expected seconds, at least 0.1");
        assert_usage(&verb_top, "-d0.01", "--delay `0.01': expected seconds, at least 0.1");
        assert_usage(&verb_top, "-d1e9", "--delay `1e9': expected seconds, at least 0.1");
        assert_usage(&verb_metrics, "x", "unexpected argument");
        assert_usage(&verb_metrics, "--json", "unknown option `--json'");
        assert_usage(&verb_metrics, "--listen=[::]:1", "not a loopback address");
        assert_usage(&verb_cancel, NULL, "expected job ids");
        assert_usage(&verb_cancel, "x", "`x' is not a job id");
        assert_usage(&verb_wait, NULL, "expected one job id");
        assert_usage(&verb_wait, "1.x", "`1.x' is not a job id");
        assert_usage(&verb_run, NULL, "expected FILE:KERNEL");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_verbs_help_names_each_of_its_options),
                cmocka_unit_test(every_verb_has_the_common_options),
                cmocka_unit_test(every_verb_is_found_by_its_name),
                cmocka_unit_test(a_slip_finds_the_nearest_verb),
                cmocka_unit_test(every_verb_refuses_an_unknown_option),
                cmocka_unit_test(wrong_arguments_are_refused_without_a_daemon),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/macro.h"
#include "util/near.h"

static const char *nearest(const char *word) {
        Near near = near_to(word);

        near_offer(&near, "scale_f32");
        near_offer(&near, "add_f64");
        near_offer(&near, "add_f32");
        near_offer(&near, "k");
        return near.found;
}

static void a_slip_or_two_are_near(void **state) {
        assert_string_equal(nearest("scal_f32"), "scale_f32");
        assert_string_equal(nearest("sclae_f32"), "scale_f32");
        assert_string_equal(nearest("add_f46"), "add_f64");
        assert_string_equal(nearest("adf_f32"), "add_f32");
}

static void a_beginning_is_near(void **state) {
        assert_string_equal(nearest("sc"), "scale_f32");
        assert_string_equal(nearest("add"), "add_f64");
}

static void another_word_is_not(void **state) {
        assert_null(nearest("smooth"));
        assert_null(nearest("x"));
        assert_null(nearest(""));
        assert_null(nearest(
                "a_name_that_is_far_longer_than_every_one_of_those_that_were_offered_here"));
}

static const char *verb_near(const char *word) {
        static const char *const verbs[] = {
                "status", "top",   "kernels", "run",    "queue",   "explain", "trace",  "cancel",
                "wait",   "fetch", "history", "report", "metrics", "drain",   "resume", "doctor"};
        Near near = near_to(word);

        for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
                near_offer(&near, verbs[i]);
        return near.found;
}

static void slips_are_measured_by_the_length_of_the_word(void **state) {
        static const char *const pairs[][2] = {
                {"stauts", "status"},   {"sttaus", "status"},    {"xtatus", "status"},
                {"quue", "queue"},      {"que", "queue"},        {"rnu", "run"},
                {"urn", "run"},         {"tpo", "top"},          {"wiat", "wait"},
                {"histroy", "history"}, {"hsitorry", "history"}, {"cancle", "cancel"},
                {"repotr", "report"},   {"doktor", "doctor"},    {"metric", "metrics"},
        };
        static const char *const others[] = {"quit", "exit",  "stop",  "list",   "log",  "ps",
                                             "rm",   "start", "kill",  "show",   "jobs", "sum",
                                             "fun",  "train", "brain", "strain", "init"};

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
                assert_string_equal(verb_near(pairs[i][0]), pairs[i][1]);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (verb_near(others[i]))
                        fail_msg("`%s' is not near `%s'", others[i], verb_near(others[i]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_slip_or_two_are_near),
                cmocka_unit_test(a_beginning_is_near),
                cmocka_unit_test(another_word_is_not),
                cmocka_unit_test(slips_are_measured_by_the_length_of_the_word),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

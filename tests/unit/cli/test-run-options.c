/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <string.h>

#include "run-options.h"

static Cli cli;
static RunOptions options;

static int clear(void **state) {
        problem_clear(&cli.problem);
        run_options_clear(&options);
        return 0;
}

/* @words ends with NULL. */
static int read_words(const char *const *words) {
        char *argv[48] = {"run"};
        int argc = 1;

        for (; *words; words++)
                argv[argc++] = (char *)*words;
        cli = (Cli){.verb = &verb_run};
        optind = 0;
        return run_options_read(&cli, argc, argv, &options);
}

#define READ(...) read_words((const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(int r, const char *words) {
        if (r < 0)
                r = (int)cli.code;
        assert_int_equal(r, EXIT_USAGE);
        assert_text_has(problem_text(&cli.problem), words);
        assert_text_has(problem_text(&cli.problem), "Usage: gpuq run");
        clear(NULL);
}

static void everything_at_once_is_read(void **state) {
        assert_int_equal(READ("--grid", "3,2", "--block=64", "--shared", "48K", "--cluster", "2",
                              "--cooperative", "--priority", "-5", "--timeout", "0.5", "--label",
                              "mine", "--device", "1", "-DN=3", "-U", "M", "--std", "c++17",
                              "--use_fast_math", "-I", "inc", "--maxrregcount", "32", "-G",
                              "--generate-line-info", "-q", "--json", "k/a.cu:add", "in:a.npy",
                              "i32:-5"),
                         0);
        assert_memory_equal(options.config.grid, ((unsigned[]){3, 2, 1}), 12);
        assert_memory_equal(options.config.block, ((unsigned[]){64, 1, 1}), 12);
        assert_memory_equal(options.config.cluster, ((unsigned[]){2, 1, 1}), 12);
        assert_int_equal(options.config.shared_bytes, 49152);
        assert_true(options.config.cooperative);
        assert_int_equal(options.priority, -5);
        assert_int_equal(options.timeout_ms, 500);
        assert_string_equal(options.label, "mine");
        assert_int_equal(options.device, 1);
        assert_int_equal(options.n_compiler, 9);
        assert_string_equal(options.compiler[0], "-DN=3");
        assert_string_equal(options.compiler[1], "-UM");
        assert_string_equal(options.compiler[2], "-std=c++17");
        assert_string_equal(options.compiler[3], "--use_fast_math");
        assert_string_equal(options.compiler[4], "-Iinc");
        assert_string_equal(options.compiler[5], "-maxrregcount=32");
        assert_string_equal(options.compiler[6], "-G");
        assert_string_equal(options.compiler[7], "-lineinfo");
        assert_string_equal(options.compiler[8], "-Ik/");
        assert_null(options.compiler[9]);
        assert_true(options.quiet);
        assert_true(cli.json);
        assert_string_equal(options.file, "k/a.cu");
        assert_string_equal(options.kernel, "add");
        assert_int_equal(options.n_arguments, 2);
}

static void assert_compiler(const char *const *wanted) {
        size_t n = 0;

        for (; *wanted; wanted++)
                assert_string_equal(options.compiler[n++], *wanted);
        assert_int_equal(options.n_compiler, n + 1); /* that of the file's folder is the last */
        clear(NULL);
}

#define COMPILER(...) assert_compiler((const char *const[]){__VA_ARGS__, NULL})

static void options_are_spelled_as_for_nvcc(void **state) {
        assert_int_equal(
                READ("--check", "-lineinfo", "-maxrregcount=32", "-use_fast_math", "a.cu:k"), 0);
        assert_true(options.check);
        COMPILER("-lineinfo", "-maxrregcount=32", "--use_fast_math");
        assert_int_equal(
                READ("--lineinfo", "-maxrregcount", "32", "--maxrregcount=64", "-G", "a.cu:k"), 0);
        COMPILER("-lineinfo", "-maxrregcount=32", "-maxrregcount=64", "-G");
        assert_int_equal(READ("-D", "X=1", "--define-macro=Y", "-undefine-macro=Z", "-I", "a",
                              "-include-path=b", "--include-path", "c", "-std=c++20", "a.cu:k"),
                         0);
        COMPILER("-DX=1", "-DY", "-UZ", "-Ia", "-Ib", "-Ic", "-std=c++20");
        assert_int_equal(READ("--fmad=false", "-ftz=true", "-prec-div", "true", "--prec-sqrt=false",
                              "a.cu:k", "-device-int128", "-device-debug", "-quiet"),
                         0);
        assert_true(options.quiet);
        COMPILER("--fmad=false", "--ftz=true", "--prec-div=true", "--prec-sqrt=false",
                 "--device-int128", "-G");
}

static void options_may_follow_arguments(void **state) {
        assert_int_equal(READ("builtin:add_f32", "f32:1", "--grid", "7", "--", "u64:2"), 0);
        assert_null(options.file);
        assert_int_equal(options.config.grid[0], 7);
        assert_int_equal(options.n_arguments, 2);
        assert_int_equal(options.device, -1);
        assert_string_equal(run_options_source(&options), "builtin");
}

static void the_kernel_follows_the_last_single_colon(void **state) {
        assert_int_equal(READ("a:b.cu:ns::add"), 0);
        assert_string_equal(options.file, "a:b.cu");
        assert_string_equal(options.kernel, "ns::add");
        clear(NULL);
        assert_int_equal(READ("./builtin:add"), 0);
        assert_string_equal(options.file, "./builtin");
}

static void the_ending_tells_the_format(void **state) {
        static const struct {
                const char *target;
                gpuq_format format;
        } targets[] = {
                {"a.cu:k", GPUQ_FORMAT_SOURCE},   {"a.ptx:k", GPUQ_FORMAT_PTX},
                {"a.cubin:k", GPUQ_FORMAT_CUBIN}, {"a.fatbin:k", GPUQ_FORMAT_FATBIN},
                {"a.so:k", GPUQ_FORMAT_AUTO},     {"a:k", GPUQ_FORMAT_AUTO},
        };

        for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
                assert_int_equal(READ(targets[i].target), 0);
                assert_int_equal(run_options_format(&options), targets[i].format);
                clear(NULL);
        }
}

static void wrong_options_are_named(void **state) {
        assert_refused(READ("--grid", "0", "a.cu:k"), "--grid `0': expected X[,Y[,Z]]");
        assert_refused(READ("--block", "8,x", "a.cu:k"), "--block `8,x'");
        assert_refused(READ("--cluster", "", "a.cu:k"), "--cluster `'");
        assert_refused(READ("--shared", "5G", "a.cu:k"), "--shared `5G'");
        assert_refused(READ("--priority", "101", "a.cu:k"),
                       "--priority `101': expected -100 to 100");
        assert_refused(READ("--timeout", "-1", "a.cu:k"), "--timeout `-1'");
        assert_refused(READ("--device", "x", "a.cu:k"), "--device `x'");
        assert_refused(READ("--label",
                            "12345678901234567890123456789012345678901234567890123456789012345",
                            "a.cu:k"),
                       "at most 64 bytes");
        assert_refused(READ("--frob", "a.cu:k"), "unknown option `--frob'");
        assert_refused(READ("-x", "a.cu:k"), "unknown option `-x'");
        assert_refused(READ("--check", "-xy", "a.cu:k"), "unknown option `-xy'");
        assert_refused(READ("--check", "-Gxq", "a.cu:k"), "unknown option `-x'");
        assert_refused(READ("--check", "-maxregcount=32", "a.cu:k"),
                       "unknown option `-maxregcount'; did you mean `--maxrregcount'?");
        assert_refused(READ("--chek", "a.cu:k"),
                       "unknown option `--chek'; did you mean `--check'?");
        assert_refused(READ("-lineinfo=1", "a.cu:k"), "option `-lineinfo' takes no value");
        assert_refused(READ("a.cu:k", "-maxrregcount"), "option `-maxrregcount' needs a value");
        assert_refused(READ("-ftz=1", "a.cu:k"), "--ftz `1': expected true or false");
        assert_refused(READ("--cooperative=1", "a.cu:k"), "option `--cooperative' takes no value");
        assert_refused(READ("a.cu:k", "--grid"), "option `--grid' needs a value");
        assert_refused(READ("a.cu:k", "-D"), "option `-D' needs a value");
}

static void wrong_targets_are_named(void **state) {
        assert_refused(READ("--json"), "expected FILE:KERNEL");
        assert_refused(READ("add"), "`add': expected FILE:KERNEL");
        assert_refused(READ("a.cu:"), "`a.cu:': expected FILE:KERNEL");
        assert_refused(READ(":add"), "`:add'");
        assert_refused(READ("a::b"), "`a::b'");
        assert_refused(READ("-DN=1", "builtin:add"), "`-DN=1' applies to source files");
}

static void a_wrong_argument_has_its_number(void **state) {
        assert_int_equal(READ("builtin:add", "i32:1", "i32:2", "f32:abc"), EXIT_USAGE);
        assert_string_equal(problem_text(&cli.problem), "argument 3 `f32:abc': not a number");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(everything_at_once_is_read, clear),
                cmocka_unit_test_teardown(options_are_spelled_as_for_nvcc, clear),
                cmocka_unit_test_teardown(options_may_follow_arguments, clear),
                cmocka_unit_test_teardown(the_kernel_follows_the_last_single_colon, clear),
                cmocka_unit_test_teardown(the_ending_tells_the_format, clear),
                cmocka_unit_test_teardown(wrong_options_are_named, clear),
                cmocka_unit_test_teardown(wrong_targets_are_named, clear),
                cmocka_unit_test_teardown(a_wrong_argument_has_its_number, clear),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

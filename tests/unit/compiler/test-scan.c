/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step between preprocessing and compiling for the CPU driver.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compiler/scan.h"
#include "util/macro.h"

/* Kernels are found, in that order, under these names; NULL-terminated. */
static void assert_kernels(const char *source, const char *const *names) {
        _cleanup_(freep) char *text = NULL;
        int n = scan_rewrite(source, strlen(source), &text);
        const char *at;

        assert_true(n >= 0);
        at = text;
        for (; *names; names++, n--) {
                _cleanup_(freep) char *line = NULL;

                assert_true(asprintf(&line, ", \"%s\")\n", *names) >= 0);
                at = strstr(at, line);
                if (!at)
                        print_error("no %s in:\n%s\n", *names, text);
                assert_non_null(at);
        }
        assert_int_equal(n, 0);
}

#define KERNELS(source, ...) assert_kernels(source, (const char *const[]){__VA_ARGS__, NULL})
#define NO_KERNELS(source)   assert_kernels(source, (const char *const[]){NULL})

static void kernels_are_found_however_they_are_declared(void **state) {
        KERNELS("__global__ void f(float *p) {}", "f");
        KERNELS("extern \"C\" __global__ void f() {}", "f");
        KERNELS("extern \"C\" { __global__ void f() {} __global__ void g() {} }", "f", "g");
        KERNELS("static __global__ void f() {}", "f");
        KERNELS("__global__ static void f() {}", "f");
        KERNELS("void __global__ f() {}", "f");
        KERNELS("__global__ void __launch_bounds__(256, 2) f() {}", "f");
        KERNELS("__global__ __launch_bounds__(128) void f() {}", "f");
        KERNELS("__global__ void __attribute__((noinline)) f() {}", "f");
        KERNELS("[[maybe_unused]] __global__ void f(int n = (3)) {}", "f");
        KERNELS("__global__ void f();\n__global__ void f() {}", "f");
        KERNELS("__global__ void f(int (*g)(int), float v[3]) {}", "f");
        KERNELS("__global__ auto f() -> void {}", "f");
}

static void declarations_and_other_functions_are_no_kernels(void **state) {
        NO_KERNELS("__global__ void f();");
        NO_KERNELS("void f() {}\n__device__ int g(int a) { return a; }");
        NO_KERNELS("struct S { int f() { return 1; } };");
        NO_KERNELS("const char *s = \"__global__ void f() {}\";");
        NO_KERNELS("const char *s = R\"x(\" __global__ void f() {})x\";");
        NO_KERNELS("# 1 \"__global__ void f() {}\"\n");
        NO_KERNELS("");
}

/* Found by fuzzing: what was taken for the name began behind its end. */
static void parentheses_without_a_name_are_no_kernels(void **state) {
        NO_KERNELS("template <class T> (int) {}");
        NO_KERNELS("extern \"C\" (int) {}");
}

static void namespaces_are_part_of_the_name(void **state) {
        KERNELS("namespace a { namespace b { __global__ void f() {} } __global__ void g() {} }"
                "__global__ void h() {}",
                "a::b::f", "a::g", "h");
        KERNELS("namespace a::b { __global__ void f() {} }", "a::b::f");
        KERNELS("namespace { __global__ void f() {} }", "f");
        KERNELS("namespace a { inline namespace v1 { __global__ void f() {} } }", "a::v1::f");
        KERNELS("namespace x = y; using namespace z; __global__ void f() {}", "f");
        KERNELS("namespace a { struct S { void m() { if (1) { } } }; __global__ void f() {} }",
                "a::f");
        KERNELS("namespace a { extern \"C\" { __global__ void f() {} } }", "a::f");
}

static void templates_count_once_instantiated(void **state) {
        NO_KERNELS("template <class T> __global__ void f(T *p) {}");
        KERNELS("template <class T> __global__ void f(T *p) {}\n"
                "template __global__ void f<float>(float *);\n"
                "template void f<double>(double *);",
                "f<float>", "f<double>");
        KERNELS("template <class T, int N> __global__ void f(T *p) {}\n"
                "template __global__ void f< unsigned  int,4 >(unsigned *);",
                "f<unsigned int, 4>");
        KERNELS("template <class T> __global__ void f(T *p) {}\n"
                "template <> __global__ void f<int>(int *p) {}",
                "f<int>");
        KERNELS("namespace a { template <int N = (1 > 2)> __global__ void f() {}\n"
                "template void f<7>(); }",
                "a::f<7>");
        NO_KERNELS("template <class T> void f(T *p) {}\ntemplate void f<float>(float *);");
}

static void of_overloads_the_first_is_taken(void **state) {
        static const char source[] = "__global__ void f(int a = 1, float b = g(2, 3)) {}\n"
                                     "__global__ void f(float) {}\n";
        _cleanup_(freep) char *text = NULL;

        assert_int_equal(scan_rewrite(source, strlen(source), &text), 1);
        assert_non_null(strstr(text, "(static_cast<void (*)(int a, float b)>(&f))"));
}

static void assert_rewritten(const char *source, const char *wanted) {
        _cleanup_(freep) char *text = NULL;

        assert_true(scan_rewrite(source, strlen(source), &text) >= 0);
        text[MIN(strlen(wanted), strlen(text))] = '\0';
        assert_string_equal(text, wanted);
}

static void dynamic_shared_memory_is_rewritten_in_place(void **state) {
        assert_rewritten("extern __shared__ float s[];", "GPUQ_CPU_DYNAMIC(s, [], float);");
        assert_rewritten("extern __shared__ __align__(16) unsigned char s[];\n",
                         "GPUQ_CPU_DYNAMIC(s, [], unsigned char);\n");
        assert_rewritten("extern __align__(16) __shared__ T s[][4];",
                         "GPUQ_CPU_DYNAMIC(s, [][4], T);");
        assert_rewritten(
                "void f() { if (1) { extern volatile __shared__ float\n s[]; } int a; }",
                "void f() { if (1) { GPUQ_CPU_DYNAMIC(s, [], volatile float);\n } int a; }");
        assert_rewritten(
                "template <class T> void f() { extern __shared__ ns::V<T, 3> s[]; }",
                "template <class T> void f() { GPUQ_CPU_DYNAMIC(s, [], ns :: V < T , 3 >); }");
        assert_rewritten("extern int a[];", "extern int a[];");
        assert_rewritten("extern \"C\" int a[3];", "extern \"C\" int a[3];");
        assert_rewritten("__shared__ float s[4];", "__shared__ float s[4];");
}

/* Found by fuzzing: what lies between was written from the first to the last, which was before it or nowhere. */
static void brackets_that_do_not_match_are_left_to_the_compiler(void **state) {
        static const char *const sources[] = {
                "extern __shared__ float s[;",
                "extern __shared__ float a] s[;",
                "extern __shared__ float ]s[3;",
        };

        for (size_t i = 0; i < ARRAY_SIZE(sources); ++i)
                assert_rewritten(sources[i], sources[i]);
}

static void line_numbers_stay(void **state) {
        static const char source[] = "extern\n__shared__\nfloat\ns[];\nint after;";
        _cleanup_(freep) char *text = NULL;
        size_t lines = 0;

        assert_true(scan_rewrite(source, strlen(source), &text) >= 0);
        for (const char *s = text; s < strstr(text, "int after"); s++)
                lines += *s == '\n';
        assert_int_equal(lines, 4);
}

static void source_cut_anywhere_does_no_harm(void **state) {
        static const char source[] =
                "# 1 \"a.cu\"\nnamespace a::b { extern \"C\" { template <class T, int N = (1 > 2)> "
                "__global__ void __launch_bounds__(32) f(T *p, int n = 3) { extern __shared__ "
                "__align__(8) T s[][2]; const char *r = R\"x(})x\", c = '\\'', *t = \"\\\"\"; "
                "int i = 1'000; } } template void f<float, 4>(float *, int); } __global__ void "
                "g(int){} __global__ void g(float = 1, int = 2){}";

        for (size_t n = 0; n <= strlen(source); n++) {
                _cleanup_(freep) char *part = malloc(n + !n), *text = NULL;

                memcpy(part, source, n);
                assert_true(scan_rewrite(part, n, &text) >= 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kernels_are_found_however_they_are_declared),
                cmocka_unit_test(declarations_and_other_functions_are_no_kernels),
                cmocka_unit_test(parentheses_without_a_name_are_no_kernels),
                cmocka_unit_test(namespaces_are_part_of_the_name),
                cmocka_unit_test(templates_count_once_instantiated),
                cmocka_unit_test(of_overloads_the_first_is_taken),
                cmocka_unit_test(dynamic_shared_memory_is_rewritten_in_place),
                cmocka_unit_test(brackets_that_do_not_match_are_left_to_the_compiler),
                cmocka_unit_test(line_numbers_stay),
                cmocka_unit_test(source_cut_anywhere_does_no_harm),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

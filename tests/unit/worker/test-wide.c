/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in kernels as they were built, loaded into the CPU driver: which have a wide form. What is made of
 * a launch is in test-program.c, what the kernels compute in unit/compiler/test-kernels.c.
 * $GPUQ_TEST_KERNELS is the folder, $GPUQ_TEST_DRIVER the driver's library.
 */
#include "test.h"

#include <stdio.h>

#include "worker/wide.h"

#define KERNELS_MAX 64

static Driver *driver;

static char *read_kernels(const char *name, size_t *ret_n) {
        char path[4096], *data;
        FILE *file;
        long n;

        snprintf(path, sizeof(path), "%s/%s", getenv("GPUQ_TEST_KERNELS"), name);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fseek(file, 0, SEEK_END), 0);
        n = ftell(file);
        data = calloc(1, (size_t)n + 1);
        rewind(file);
        assert_int_equal(fread(data, 1, (size_t)n, file), n);
        fclose(file);
        *ret_n = (size_t)n;
        return data;
}

static uint8_t kind_of(char letter) {
        return (uint8_t)(strchr("bpilfdcswm", letter) - "bpilfdcswm");
}

/* KINDS <tab> SYMBOL <tab> NAME <tab> TEXT, whose newlines are "\n" in words. */
static void describe(CompiledKernel *kernel, char *line) {
        char *kinds = strsep(&line, "\t"), *symbol = strsep(&line, "\t"),
             *name = strsep(&line, "\t");
        char *to = line;

        *kernel = (CompiledKernel){
                .symbol = symbol,
                .name = name,
                .text = line,
                .kinds = (uint8_t *)kinds,
                .n_kinds = strlen(kinds),
                .kinds_known = true,
        };
        for (char *c = kinds; *c; ++c)
                *c = (char)kind_of(*c);
        for (const char *from = line; *from; ++from)
                if (from[0] == '\\' && from[1] == 'n') {
                        *to++ = '\n';
                        ++from;
                } else {
                        *to++ = *from;
                }
        *to = '\0';
}

/* As from a compiler's result. */
static Compiled *compiled_new(char *text, const void *data, size_t n_data) {
        Compiled *compiled = calloc(1, sizeof(*compiled));
        char *line;

        compiled->flags = COMPILED_HAS_TWINS;
        compiled->image = data;
        compiled->n_image = n_data;
        compiled->kernels = calloc(KERNELS_MAX, sizeof(*compiled->kernels));
        compiled->strings = text;
        while ((line = strsep(&text, "\n")) && *line) {
                assert_in_range(compiled->n_kernels, 0, KERNELS_MAX - 1);
                describe(&compiled->kernels[compiled->n_kernels++], line);
        }
        return compiled;
}

static Context *context; /* ends with the process */

static Image *load(void) {
        Failure failure = {0};
        Image *image = NULL;
        size_t n_text, n_data;
        char *text = read_kernels("builtin.txt", &n_text),
             *data = read_kernels("builtin.cpu.so", &n_data);

        if (!context)
                assert_int_equal(context_new(driver, 0, (Sms){}, &context, &failure), 0);
        assert_int_equal(
                image_load(context, compiled_new(text, data, n_data), data, &image, &failure), 0);
        return image;
}

static bool is_reduction(const char *name) {
        static const char *const names[] = {
                "sum_f", "sum_of_squares_f", "dot_f",   "mean_f", "min_f",
                "max_f", "argmin_f",         "argmax_f"};

        for (size_t i = 0; i < ARRAY_SIZE(names); ++i)
                if (strncmp(name, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

static void each_reduction_and_nothing_else_has_a_wide_form(void **state) {
        Image *image = load();
        unsigned n = 0;

        wide_find(image);
        for (size_t i = 0; i < image->n_functions; ++i) {
                const Function *narrow = &image->functions[i], *wide = narrow->wide;

                assert_int_equal(wide != NULL, is_reduction(narrow->name));
                if (!wide)
                        continue;
                ++n;
                assert_ptr_not_equal(wide->function, narrow->function);
                assert_string_equal(wide->name, narrow->name);
                assert_int_equal(wide->n_parameters, narrow->n_parameters + 1);
                assert_int_equal(wide->n_parameter_bytes,
                                 narrow->n_parameter_bytes + sizeof(CUdeviceptr));
                assert_null(wide->twin);
        }
        assert_int_equal(n, 16);
        image_unload(image);
}

static void without_known_lengths_there_are_none(void **state) {
        Image *image = load();

        for (size_t i = 0; i < image->n_functions; ++i)
                image->functions[i].needs = NULL;
        wide_find(image);
        for (size_t i = 0; i < image->n_functions; ++i)
                assert_null(image->functions[i].wide);
        image_unload(image);
}

/* The block of a launch with so many threads, in one dimension. */
static unsigned host_block(Image *image, const char *name, unsigned n_threads) {
        ProgramLaunch launch = {.grid = {1, 1, 1}, .block = {n_threads, 1, 1}};

        for (size_t i = 0; i < image->n_functions; ++i)
                if (strcmp(image->functions[i].name, name) == 0)
                        launch.function = &image->functions[i];
        assert_non_null(launch.function);
        wide_apply_host(&launch, context);
        return launch.block[0];
}

static void the_host_runs_tiles_in_blocks_of_one_thread(void **state) {
        Image *image = load();

        assert_int_equal(host_block(image, "scan_parts_u32", WIDE_TILE_THREADS), 1);
        assert_int_equal(host_block(image, "scan_f64", WIDE_TILE_THREADS), 1);
        assert_int_equal(host_block(image, "sort_move_u64", WIDE_TILE_THREADS), 1);
        assert_int_equal(host_block(image, "sort_move_u64", 33), 33);
        assert_int_equal(host_block(image, "scale_f64", WIDE_TILE_THREADS), WIDE_TILE_THREADS);
        image_unload(image);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_reduction_and_nothing_else_has_a_wide_form),
                cmocka_unit_test(without_known_lengths_there_are_none),
                cmocka_unit_test(the_host_runs_tiles_in_blocks_of_one_thread),
        };
        const char *path = getenv("GPUQ_TEST_DRIVER"), *problem = "GPUQ_TEST_DRIVER names none";

        if (!path || driver_open(path, &driver, &problem) < 0) {
                printf("1..0 # SKIP no driver: %s\n", problem);
                return 0;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}

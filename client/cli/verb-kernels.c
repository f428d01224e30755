/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq kernels - the built-in kernels, their arguments and what they compute; or those of a file
 *
 * The description of the built-in ones is part of the program, so it needs neither a device nor a
 * daemon. A file is loaded as for `gpuq run', and a device tells what its kernels need.
 */

#include <string.h>

#include "io.h"
#include "json.h"
#include "kernel.h"
#include "run-options.h"
#include "table.h"
#include "verb.h"
#include "util/macro.h"

typedef struct Builtin {
        const char *name;
        const char *kinds; /* a letter a parameter: daemon/compiler/compiled.h */
        const char *text;  /* what it computes, its arguments, how to launch it; a line each */
} Builtin;

static const Builtin builtins[] = {
#include "builtin.inc"
};

static const struct {
        char letter;
        gpuq_kind kind;
        size_t size;
} builtin_kinds[] = {
        {'p', GPUQ_POINTER, 8},
        {'l', GPUQ_I64, 8},
        {'f', GPUQ_F32, 4},
        {'d', GPUQ_F64, 8},
};

static void builtin_json_parameter(struct json_object *parameters, char letter) {
        for (size_t i = 0; i < ARRAY_SIZE(builtin_kinds); i++)
                if (builtin_kinds[i].letter == letter) {
                        struct json_object *object = json_array_object(parameters);

                        json_text(object, "kind", kernel_kind_name(builtin_kinds[i].kind));
                        json_number(object, "size", builtin_kinds[i].size);
                }
}

static int kernels_print_json(void) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "kernels");

        for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
                struct json_object *object = json_array_object(array), *parameters;

                json_text(object, "name", builtins[i].name);
                json_text(object, "text", builtins[i].text);
                parameters = json_array(object, "parameters");
                for (const char *letter = builtins[i].kinds; *letter; letter++)
                        builtin_json_parameter(parameters, *letter);
        }
        json_print(document);
        return 0;
}

static int builtin_text_line(const Builtin *builtin, unsigned i, const char **ret_line) {
        const char *text = builtin->text;

        while (i-- > 0 && *text) {
                text += strcspn(text, "\n");
                text += *text == '\n';
        }
        *ret_line = text;
        return (int)strcspn(text, "\n");
}

static int kernels_print(Cli *cli, bool heading) {
        static const TableColumn columns[] = {{"KERNEL"},
                                              {"ARGUMENTS", .wrap = true},
                                              {"WHAT IT DOES", .wrap = true},
                                              {"LAUNCH", .wrap = true, .spare = true}};
        static const unsigned lines[] = {1, 0, 2};
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), heading, &table);
        if (r < 0)
                return cli_no_memory(cli);

        for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
                table_row(table, TABLE_PLAIN);
                table_cell(table, "%s", builtins[i].name);
                for (size_t j = 0; j < ARRAY_SIZE(lines); j++) {
                        const char *line;
                        int length = builtin_text_line(&builtins[i], lines[j], &line);

                        table_cell(table, "%.*s", length, line);
                }
        }
        table_sort(table);
        return table_print(table) < 0 ? cli_no_memory(cli) : 0;
}

/* ---- of a file ----------------------------------------------------------------- */

static void file_json_kernel(struct json_object *array, const gpuq_kernel_info *kernel) {
        struct json_object *object = json_array_object(array), *parameters;

        json_text(object, "name", kernel->name);
        json_text(object, "symbol", kernel->symbol);
        json_number(object, "max_threads_per_block", kernel->max_block);
        json_number(object, "num_regs", kernel->attributes.registers);
        json_number(object, "shared_size_bytes", kernel->attributes.shared_bytes);
        json_number(object, "const_size_bytes", kernel->attributes.const_bytes);
        json_number(object, "local_size_bytes", kernel->attributes.local_bytes);
        json_number(object, "ptx_version", kernel->attributes.ptx_version);
        json_number(object, "binary_version", kernel->attributes.binary_version);
        parameters = json_array(object, "parameters");
        for (size_t i = 0; i < kernel->n_parameters; i++) {
                struct json_object *parameter = json_array_object(parameters);

                json_text(parameter, "kind", kernel_kind_name(kernel->parameters[i].kind));
                json_number(parameter, "size", kernel->parameters[i].size);
        }
}

static int file_print_json(const gpuq_module *module) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "kernels");
        gpuq_kernel_info kernel;

        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++)
                if (gpuq_module_kernel(module, i, &kernel) == 0)
                        file_json_kernel(array, &kernel);
        json_print(document);
        return 0;
}

static int file_add_row(Table *table, const gpuq_kernel_info *kernel) {
        _cleanup_(freep) char *parameters = kernel_parameters(kernel);

        if (!parameters)
                return -ENOMEM;
        table_row(table, TABLE_PLAIN);
        table_cell(table, "%s", kernel->name);
        table_cell(table, "%s", parameters);
        table_cell(table, "%u", kernel->max_block);
        table_cell(table, "%u", kernel->attributes.registers);
        table_cell(table, "%u", kernel->attributes.shared_bytes);
        table_cell(table, "%u", kernel->attributes.local_bytes);
        return 0;
}

static int file_print(Cli *cli, const gpuq_module *module, bool heading) {
        static const TableColumn columns[] = {
                {"KERNEL", .wrap = true},   {"ARGUMENTS", .wrap = true, .spare = true},
                {"THREADS", .right = true}, {"REGISTERS", .right = true},
                {"SHARED", .right = true},  {"LOCAL", .right = true}};
        _cleanup_(table_freep) Table *table = NULL;
        gpuq_kernel_info kernel;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), heading, &table);
        for (size_t i = 0; r == 0 && i < gpuq_module_n_kernels(module); i++)
                if (gpuq_module_kernel(module, i, &kernel) == 0)
                        r = file_add_row(table, &kernel);
        if (r == 0)
                r = table_print(table);
        return r < 0 ? cli_no_memory(cli) : 0;
}

static int file_load(Cli *cli, char *path, gpuq_module **ret_module) {
        _cleanup_(run_options_clear) RunOptions options = {.file = strdup(path)};
        _cleanup_(freep) void *image = NULL;
        gpuq_code code;
        size_t n_image;
        int r;

        if (!options.file || run_options_add_folder(cli, &options))
                return cli_no_memory(cli);
        r = io_read_file(path, &image, &n_image);
        if (r < 0)
                return problem_set(&cli->problem, EXIT_USAGE, "%s: cannot read: %s", path,
                                   strerror(-r));

        code = (gpuq_code){
                .format = run_options_format(&options),
                .image = image,
                .n_image = n_image,
                .name = run_options_module_name(&options),
                .options = (const char *const *)options.compiler,
        };
        r = gpuq_module_load_code(cli->client, &code, ret_module);
        return r < 0 ? cli_failed(cli, EXIT_WHEN_RUN, r) : 0;
}

static int file_run(Cli *cli, char *path, bool heading) {
        gpuq_module *module = NULL;
        int r;

        r = cli_connect(cli);
        if (r == 0)
                r = file_load(cli, path, &module);
        if (r == 0)
                r = cli->json ? file_print_json(module) : file_print(cli, module, heading);
        gpuq_module_free(module);
        return r;
}

static int kernels_run(Cli *cli, int argc, char **argv) {
        bool heading = true;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                heading = false; /* its only option */
        if (r < 0)
                return cli->code;
        if (optind + 1 < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind + 1]);
        if (optind < argc)
                return file_run(cli, argv[optind], heading);
        return cli->json ? kernels_print_json() : kernels_print(cli, heading);
}

static const struct option kernels_options[] = {
        {"noheader", no_argument, NULL, 'h'},
        VERB_OPTIONS,
};

const Verb verb_kernels = {
        .name = "kernels",
        .arguments = "[OPTION...] [FILE]",
        .summary = "show the built-in kernels, or those of a file, and their arguments",
        .help = "FILE is as for `gpuq run'; a device tells what its kernels need: the most threads "
                "of a\n"
                "block, registers of a thread, bytes of static shared memory and of local memory.\n"
                "\n"
                "  -h, --noheader         do not print headings\n",
        .shorts = "h",
        .options = kernels_options,
        .run = kernels_run,
};

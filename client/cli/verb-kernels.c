/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq kernels - the built-in kernels, their arguments and what they compute
 */

#include <string.h>

#include "json.h"
#include "kernel.h"
#include "table.h"
#include "verb.h"

static void kernel_json(struct json_object *array, const gpuq_kernel_info *kernel) {
        struct json_object *object = json_array_object(array);
        struct json_object *parameters;

        json_text(object, "name", kernel->name);
        json_text(object, "text", kernel->text);
        json_number(object, "max_block", kernel->max_block);

        parameters = json_array(object, "parameters");
        for (size_t i = 0; i < kernel->n_parameters; i++) {
                struct json_object *parameter = json_array_object(parameters);

                json_text(parameter, "kind", kernel_kind_name(kernel->parameters[i].kind));
                json_number(parameter, "size", kernel->parameters[i].size);
        }
}

static int kernels_print_json(Cli *cli, const gpuq_module *module) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "kernels");
        gpuq_kernel_info kernel;

        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++)
                if (gpuq_module_kernel(module, i, &kernel) == 0)
                        kernel_json(array, &kernel);
        json_print(document);
        return 0;
}

/* A built-in's text: what it computes, its arguments, how to launch it; a line each. */
static int kernel_text_line(const char *text, unsigned i, const char **ret_line) {
        while (i-- > 0 && *text) {
                text += strcspn(text, "\n");
                text += *text == '\n';
        }
        *ret_line = text;
        return (int)strcspn(text, "\n");
}

static void kernel_row(Table *table, const gpuq_kernel_info *kernel) {
        _cleanup_(freep) char *parameters = kernel_parameters(kernel);
        const char *line;
        int length;

        table_row(table, TABLE_PLAIN);
        table_cell(table, "%s", kernel->name);
        length = kernel_text_line(kernel->text, 1, &line);
        if (length)
                table_cell(table, "%.*s", length, line);
        else
                table_cell(table, "%s", parameters ? parameters : "");
        length = kernel_text_line(kernel->text, 0, &line);
        table_cell(table, "%.*s", length, line);
        length = kernel_text_line(kernel->text, 2, &line);
        table_cell(table, "%.*s", length, line);
}

static int kernels_print(Cli *cli, const gpuq_module *module, bool heading) {
        static const TableColumn columns[] = {{"KERNEL"},
                                              {"ARGUMENTS"},
                                              {"WHAT IT DOES", .wrap = true},
                                              {"LAUNCH", .wrap = true}};
        _cleanup_(table_freep) Table *table = NULL;
        gpuq_kernel_info kernel;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), heading, &table);
        if (r < 0)
                return cli_no_memory(cli);

        for (size_t i = 0; i < gpuq_module_n_kernels(module); i++)
                if (gpuq_module_kernel(module, i, &kernel) == 0)
                        kernel_row(table, &kernel);
        table_sort(table);
        return table_print(table) < 0 ? cli_no_memory(cli) : 0;
}

static int kernels_run(Cli *cli, int argc, char **argv) {
        gpuq_module *module = NULL;
        bool heading = true;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                heading = false; /* its only option */
        if (r < 0)
                return cli->code;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);

        r = cli_connect(cli);
        if (r)
                return r;
        r = gpuq_module_builtin(cli->client, &module);
        if (r < 0)
                return cli_failed(cli, EXIT_WHEN_ASKED, r);

        r = cli->json ? kernels_print_json(cli, module) : kernels_print(cli, module, heading);
        gpuq_module_free(module);
        return r;
}

static const struct option kernels_options[] = {
        {"noheader", no_argument, NULL, 'h'},
        VERB_OPTIONS,
};

const Verb verb_kernels = {
        .name = "kernels",
        .arguments = "[OPTION...]",
        .summary = "show the built-in kernels and their arguments",
        .help = "  -h, --noheader         do not print headings\n",
        .shorts = "h",
        .options = kernels_options,
        .run = kernels_run,
};

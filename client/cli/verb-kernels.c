/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq kernels - the built-in kernels, their arguments and what they compute
 *
 * The description is part of the program, so it needs neither a device nor a daemon.
 */

#include <string.h>

#include "json.h"
#include "kernel.h"
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

static int kernels_run(Cli *cli, int argc, char **argv) {
        bool heading = true;
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                heading = false; /* its only option */
        if (r < 0)
                return cli->code;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        return cli->json ? kernels_print_json() : kernels_print(cli, heading);
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

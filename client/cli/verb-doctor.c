/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq doctor - checks an installation, and says what to do about what is wrong
 */

#include <stdio.h>
#include <string.h>

#include "doctor-daemon.h"
#include "doctor-gpu.h"
#include "json.h"
#include "table.h"
#include "util/socket-path.h"
#include "verb.h"

/* In this order: later checks use what earlier ones found. */
static const struct {
        const char *name;
        void (*run)(Doctor *doctor);
} checks[] = {
        {"gpu", doctor_check_gpu},         {"socket", doctor_check_socket},
        {"daemon", doctor_check_daemon},   {"state", doctor_check_state},
        {"devices", doctor_check_devices}, {"config", doctor_check_config},
        {"folders", doctor_check_folders}, {"limits", doctor_check_limits},
        {"service", doctor_check_service}, {"nodes", doctor_check_nodes},
        {"driver", doctor_check_driver},   {"compiler", doctor_check_compiler},
        {"programs", doctor_check_others}, {"mode", doctor_check_mode},
};

static const char *const results[] = {
        [DOCTOR_OK] = "ok",
        [DOCTOR_NOTE] = "note",
        [DOCTOR_PROBLEM] = "problem",
};

static void doctor_print_json(const Doctor *doctor, size_t n_problems) {
        struct json_object *document = json_document();
        struct json_object *array = json_array(document, "checks");

        for (size_t i = 0; i < doctor->n_findings; i++) {
                const DoctorFinding *finding = &doctor->findings[i];
                struct json_object *object = json_array_object(array);

                json_text(object, "check", finding->check);
                json_text(object, "result", results[finding->result]);
                json_text(object, "text", finding->text);
                json_text(object, "advice", finding->advice);
        }
        json_number(document, "problems", n_problems);
        json_print(document);
}

static int doctor_print(const Doctor *doctor) {
        static const TableColumn columns[] = {{"CHECK"}, {"RESULT"}, {"FOUND", .wrap = true}};
        static const TableColor colors[] = {
                [DOCTOR_OK] = TABLE_GOOD,
                [DOCTOR_PROBLEM] = TABLE_BAD,
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        for (size_t i = 0; i < doctor->n_findings; i++) {
                const DoctorFinding *finding = &doctor->findings[i];

                table_row(table, colors[finding->result]);
                table_cell(table, "%s", finding->check);
                table_cell(table, "%s", results[finding->result]);
                table_cell(table, "%s", finding->text);
                if (!finding->advice)
                        continue;
                table_row(table, TABLE_PLAIN);
                table_cell(table, " ");
                table_cell(table, " ");
                table_cell(table, "-> %s", finding->advice);
        }
        return table_print(table);
}

static int doctor_tell(Cli *cli, const Doctor *doctor) {
        size_t n_problems = 0;

        if (doctor->failed)
                return cli_no_memory(cli);
        for (size_t i = 0; i < doctor->n_findings; i++)
                n_problems += doctor->findings[i].result == DOCTOR_PROBLEM;
        if (cli->json)
                doctor_print_json(doctor, n_problems);
        else if (doctor_print(doctor) < 0)
                return cli_no_memory(cli);
        return n_problems ? EXIT_JOB_FAILED : EXIT_OK;
}

/* This can take a minute, if gpuqd is looking for its devices. */
static int doctor_ask(Cli *cli, const char *socket, gpuq_status **ret_status) {
        static const char waiting[] = "asking gpuqd...";
        bool tell = isatty(STDERR_FILENO);
        int r;

        if (tell)
                fputs(waiting, stderr);
        r = gpuq_connect(socket, &cli->client);
        if (r >= 0)
                r = gpuq_get_status(cli->client, ret_status);
        if (tell)
                fprintf(stderr, "\r%*s\r", (int)strlen(waiting), "");
        return r;
}

static int doctor_run_verb(Cli *cli, int argc, char **argv) {
        char memory[PATH_MAX];
        gpuq_status *status = NULL;
        Doctor doctor = {.root = ""};
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                ;
        if (r < 0)
                return cli->code;
        if (optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);

        doctor.socket = cli->socket ? cli->socket : socket_path_default(memory);
        r = doctor_ask(cli, doctor.socket, &status);
        if (r < 0)
                doctor.refusal = gpuq_error_text();
        doctor.error = r < 0 ? r : 0;
        doctor.status = status;

        for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
                doctor.check = checks[i].name;
                checks[i].run(&doctor);
        }
        r = doctor_tell(cli, &doctor);
        doctor_finish(&doctor);
        gpuq_status_free(status);
        return r;
}

static const struct option doctor_options[] = {
        VERB_OPTIONS,
};

const Verb verb_doctor = {
        .name = "doctor",
        .arguments = "[OPTION...]",
        .summary = "check the installation, and say what to do about what is wrong",
        .help = "Exit status: 0 nothing is wrong, 1 something is. Notes do not count.\n",
        .shorts = "",
        .options = doctor_options,
        .run = doctor_run_verb,
};

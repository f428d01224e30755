/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq run - one kernel on NumPy files
 *
 * Mistakes in the command line or the input files are found before the daemon is asked for
 * anything. Outputs appear only if all of them could be written.
 */

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "attend.h"
#include "util/human.h"
#include "kernel.h"
#include "library.h"
#include "note.h"
#include "operand.h"
#include "result.h"
#include "run-options.h"
#include "waiting.h"

typedef struct Run {
        Cli *cli;
        RunOptions options;
        Operand *operands; /* one for each argument */
        size_t n_operands; /* opened so far */
        gpuq_module *module;
        gpuq_kernel_info kernel;
        gpuq_job *job;
        gpuq_result result;
        int signal;   /* that ended it, or 0 */
        bool written; /* its outputs are in their places */
        uint64_t read_ns, load_ns, write_ns;
} Run;

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* If two arguments wrote the same file, one result would be lost. */
static int run_check_outputs(Run *run) {
        for (size_t i = 0; i < run->n_operands; i++)
                for (size_t j = 0; j < i; j++) {
                        const Operand *a = &run->operands[j], *b = &run->operands[i];

                        if (!operand_is_written(a) || !operand_is_written(b) ||
                            strcmp(a->argument->path, b->argument->path) != 0)
                                continue;
                        problem_set(&run->cli->problem, 0, "argument %u already writes this file",
                                    a->argument->number);
                        return argument_name(b->argument, &run->cli->problem, EXIT_USAGE);
                }
        return 0;
}

static int run_open_operands(Run *run) {
        uint64_t start = now_ns();
        int r;

        run->operands = calloc(run->options.n_arguments + 1, sizeof(*run->operands));
        if (!run->operands)
                return cli_no_memory(run->cli);

        for (size_t i = 0; i < run->options.n_arguments; i++) {
                run->n_operands++;
                r = operand_open(&run->operands[i], &run->options.arguments[i], &run->cli->problem);
                if (r)
                        return r;
        }
        run->read_ns = now_ns() - start;
        return run_check_outputs(run);
}

static int run_load_file(Run *run) {
        _cleanup_(freep) void *image = NULL;
        const char *name = run->options.file, *const names[] = {run->options.kernel, NULL};
        gpuq_code code;
        size_t n_image;
        int r;

        r = io_read_file(name, &image, &n_image);
        if (r < 0)
                return problem_set(&run->cli->problem, EXIT_USAGE, "%s: cannot read: %s", name,
                                   strerror(-r));

        code = (gpuq_code){
                .format = run_options_format(&run->options),
                .image = image,
                .n_image = n_image,
                .name = run_options_module_name(&run->options),
                .options = (const char *const *)run->options.compiler,
                .names = strchr(*names, '<') ? names : NULL, /* others need no instance */
        };
        r = gpuq_module_load_code(run->cli->client, &code, &run->module);
        return r < 0 ? cli_failed(run->cli, EXIT_WHEN_RUN, r) : 0;
}

static int run_load_builtin(Run *run) {
        int r = gpuq_module_builtin(run->cli->client, &run->module);

        return r < 0 ? cli_failed(run->cli, EXIT_WHEN_RUN, r) : 0;
}

static int run_load_module(Run *run) {
        Waiting *waiting =
                waiting_begin(run->cli->socket, run_options_module_name(&run->options), 0);
        uint64_t start = now_ns();
        int r;

        r = run->options.file ? run_load_file(run) : run_load_builtin(run);
        waiting_end(waiting);
        if (r)
                return r;

        run->load_ns = now_ns() - start;
        if (*gpuq_module_log(run->module))
                fprintf(stderr, "%s\n", gpuq_module_log(run->module));
        return 0;
}

static int run_no_such_kernel(Run *run) {
        _cleanup_(freep) char *names = kernel_names(run->module, run->options.kernel);

        return problem_set(&run->cli->problem, EXIT_USAGE, "%s has no kernel `%s'; it has: %s",
                           run_options_source(&run->options), run->options.kernel,
                           names ? names : "?");
}

static int run_check_arrays(Run *run) {
        int r;

        for (size_t i = 0; i < run->options.n_arguments; i++) {
                r = kernel_check_array(&run->kernel, &run->options.arguments[i],
                                       &run->cli->problem);
                if (r)
                        return r;
        }
        return 0;
}

/* The library checks number and kinds too, but only after the data was read. */
static int run_find_kernel(Run *run) {
        _cleanup_(freep) char *parameters = NULL;

        if (run->options.is_library)
                return library_check(run->options.kernel, run->operands, run->n_operands,
                                     &run->cli->problem);
        if (!kernel_find(run->module, run->options.kernel, &run->kernel))
                return run_no_such_kernel(run);
        if (run->kernel.n_parameters == run->options.n_arguments)
                return run_check_arrays(run);

        parameters = kernel_parameters(&run->kernel);
        return problem_set(&run->cli->problem, EXIT_USAGE, "%s takes %zu arguments (%s), not %zu",
                           run->kernel.name, run->kernel.n_parameters,
                           parameters ? parameters : "?", run->options.n_arguments);
}

static int run_load_operands(Run *run) {
        uint64_t start = now_ns();
        int r;

        for (size_t i = 0; i < run->n_operands; i++) {
                r = operand_load(&run->operands[i], run->cli->client, &run->cli->problem);
                if (r)
                        return r;
        }
        run->read_ns += now_ns() - start;
        return 0;
}

static uint64_t run_largest(const Run *run) {
        uint64_t largest = 0;

        for (size_t i = 0; i < run->n_operands; i++)
                if (!run->operands[i].argument->is_scalar)
                        largest = MAX(largest, run->operands[i].argument->array.n_elements);
        return largest;
}

/* Return: 0 or a negative GPUQ_E_. */
static int run_set_options(Run *run) {
        const RunOptions *options = &run->options;
        int r;

        r = gpuq_job_set_timed(run->job, true);
        if (r >= 0)
                r = gpuq_job_set_priority(run->job, options->priority);
        if (r >= 0)
                r = gpuq_job_set_timeout(run->job, options->timeout_ms);
        if (r >= 0)
                r = gpuq_job_set_device(run->job, options->device);
        if (r >= 0)
                r = gpuq_job_set_checked(run->job, options->check);
        if (r >= 0 && options->label)
                r = gpuq_job_set_label(run->job, options->label);
        return r;
}

static int run_make_job(Run *run) {
        _cleanup_(freep) gpuq_arg *args = NULL;
        int r;

        args = calloc(run->n_operands + 1, sizeof(*args));
        if (!args)
                return cli_no_memory(run->cli);
        for (size_t i = 0; i < run->n_operands; i++)
                args[i] = operand_arg(&run->operands[i]);
        kernel_default_launch(&run->options.config, run->kernel.max_block, run_largest(run));

        r = gpuq_job_new(run->cli->client, &run->job);
        if (r >= 0)
                r = run_set_options(run);
        if (r >= 0 && run->options.is_library)
                r = library_append(run->job, run->module, run->options.kernel, run->operands,
                                   run->n_operands);
        else if (r >= 0)
                r = gpuq_job_launch(run->job, run->module, run->options.kernel,
                                    &run->options.config, args, run->n_operands);
        return r < 0 ? cli_failed(run->cli, EXIT_WHEN_RUN, r) : 0;
}

static int run_job_failed(Run *run) {
        Problem *problem = &run->cli->problem;
        int code = (int)exit_code(EXIT_WHEN_RUN, run->result.error);

        /* The job may have been done before the signal arrived; its outputs are not written
         * even then. */
        problem_set(problem, 0, "%s: %s", run->options.kernel,
                    *run->result.text ? run->result.text
                                      : "cancelled; its outputs are not written");
        if (run->signal)
                return EXIT_SIGNAL + run->signal;
        return MAX(code, (int)EXIT_JOB_FAILED);
}

static int run_await(Run *run, Attend *attend) {
        Waiting *waiting = waiting_begin(run->cli->socket, NULL, gpuq_job_id(run->job));
        int r;

        r = attend_job(attend, run->cli->client, run->job);
        waiting_end(waiting);
        return r;
}

static int run_attend(Run *run, Attend *attend) {
        int r;

        r = gpuq_submit(run->job);
        if (r >= 0)
                r = run_await(run, attend);
        run->signal = attend->signal;
        if (r < 0 && run->signal)
                return problem_set(&run->cli->problem, EXIT_SIGNAL + run->signal, "%s: cancelled",
                                   run->options.kernel);
        if (r < 0)
                return cli_failed(run->cli, EXIT_WHEN_RUN, r);

        r = gpuq_job_get_result(run->job, &run->result);
        return r < 0 ? cli_failed(run->cli, EXIT_WHEN_RUN, r) : 0;
}

/* All outputs are written before the first is renamed, so a full disk leaves every old file
 * unchanged. */
static int run_write(Run *run) {
        uint64_t start = now_ns();
        int r;

        for (size_t i = 0; i < run->n_operands; i++)
                if (operand_is_written(&run->operands[i])) {
                        r = operand_store(&run->operands[i], &run->cli->problem);
                        if (r)
                                return r;
                }
        for (size_t i = 0; i < run->n_operands; i++)
                if (operand_is_written(&run->operands[i])) {
                        r = operand_commit(&run->operands[i], &run->cli->problem);
                        if (r)
                                return r;
                }
        run->write_ns = now_ns() - start;
        run->written = true;
        return 0;
}

static void json_dims(struct json_object *document, const char *name, const unsigned dims[3]) {
        struct json_object *array = json_array(document, name);

        for (size_t i = 0; i < 3; i++)
                json_object_array_add(array, json_object_new_uint64(MAX(dims[i], 1u)));
}

static void json_output(struct json_object *array, const Argument *argument) {
        struct json_object *object = json_array_object(array), *shape;

        json_number(object, "argument", argument->number);
        json_text(object, "file", argument->path);
        json_text(object, "dtype", argument->array.dtype->name);
        shape = json_array(object, "shape");
        for (unsigned i = 0; i < argument->array.n_dims; i++)
                json_object_array_add(shape, json_object_new_uint64(argument->array.shape[i]));
}

static void run_print_json(const Run *run) {
        struct json_object *document = json_document();
        struct json_object *outputs;

        result_json(document, gpuq_job_id(run->job), &run->result);
        json_text(document, "source", run_options_source(&run->options));
        json_text(document, "kernel", run->options.kernel);
        json_dims(document, "grid", run->options.config.grid);
        json_dims(document, "block", run->options.config.block);
        json_number(document, "read_us", run->read_ns / 1000);
        json_number(document, "load_us", run->load_ns / 1000);
        json_number(document, "write_us", run->write_ns / 1000);

        outputs = json_array(document, "outputs");
        for (size_t i = 0; i < run->n_operands && run->written; i++)
                if (operand_is_written(&run->operands[i]))
                        json_output(outputs, run->operands[i].argument);
        json_print(document);
}

static void run_print_times(const Run *run) {
        printf("%s: read %s, load %s, waited %s, ran %s", run->options.kernel,
               human_ns(run->read_ns).text, human_ns(run->load_ns).text,
               human_us(run->result.waited_us).text, human_us(run->result.ran_us).text);
        if (run->result.gpu_ns)
                printf(", GPU %s", human_ns(run->result.gpu_ns).text);
        printf(", write %s, device %d\n", human_ns(run->write_ns).text, run->result.device);
}

static int run_finish(Run *run) {
        int r;

        if (!run->cli->json)
                fputs(run->result.output, stdout);

        if (run->result.state != GPUQ_DONE || run->signal)
                r = run_job_failed(run);
        else
                r = run_write(run);

        if (run->cli->json)
                run_print_json(run);
        else if (r == 0 && !run->options.quiet)
                run_print_times(run);
        return r;
}

/* Signals are blocked from the submission to the last rename, so that none leaves half of the
 * outputs. */
static int run_attended(Run *run) {
        Attend attend;
        int r;

        r = attend_begin(&attend);
        if (r < 0)
                return problem_set(&run->cli->problem, EXIT_JOB_FAILED, "cannot handle signals: %s",
                                   strerror(-r));

        r = run_attend(run, &attend);
        if (r == 0)
                r = run_finish(run);
        attend_end(&attend);
        return r;
}

/* ---- detached ---------------------------------------------------------------- */

/* An absolute path, because `gpuq fetch' may run in another folder. */
static char *run_absolute(const char *path) {
        _cleanup_(freep) char *folder = NULL;
        char *absolute;

        if (*path == '/')
                return strdup(path);
        folder = getcwd(NULL, 0);
        return folder && asprintf(&absolute, "%s/%s", folder, path) >= 0 ? absolute : NULL;
}

static int run_fill_note(const Run *run, Note *note) {
        note->source = strdup(run_options_source(&run->options));
        note->kernel = strdup(run->options.kernel);
        note->outputs = calloc(run->n_operands + 1, sizeof(*note->outputs));
        if (!note->source || !note->kernel || !note->outputs)
                return -ENOMEM;
        for (size_t i = 0; i < run->n_operands; i++) {
                const Argument *argument = run->operands[i].argument;
                NoteOutput *output = &note->outputs[note->n_outputs];

                if (!operand_is_written(&run->operands[i]))
                        continue;
                *output = (NoteOutput){.argument = argument->number, .array = argument->array};
                output->path = run_absolute(argument->path);
                if (!output->path)
                        return -ENOMEM;
                note->n_outputs++;
        }
        return 0;
}

static int run_write_note(const Run *run, char **ret_text) {
        Note note = {};
        int r;

        r = run_fill_note(run, &note);
        if (r == 0)
                r = note_write(&note, ret_text);
        note_clear(&note);
        return r < 0 ? cli_no_memory(run->cli) : 0;
}

static void run_print_id(const Run *run, uint64_t id) {
        struct json_object *document;
        char text[24];

        if (!run->cli->json) {
                puts(gpuq_id_format(id, text));
                return;
        }
        document = json_document();
        json_id(document, "id", id);
        json_print(document);
}

static int run_detached(Run *run) {
        _cleanup_(freep) char *note = NULL;
        uint64_t id;
        int r;

        r = run_write_note(run, &note);
        if (r)
                return r;
        r = gpuq_job_detach(run->job, note, strlen(note), &id);
        if (r < 0)
                return cli_failed(run->cli, EXIT_WHEN_RUN, r);
        run_print_id(run, id);
        return 0;
}

static int run_out(Run *run) {
        return run->options.detach ? run_detached(run) : run_attended(run);
}

static int run_steps(Run *run) {
        static int (*const steps[])(Run * run) = {
                run_load_module, run_find_kernel, run_load_operands, run_make_job, run_out,
        };
        int r;

        r = run_open_operands(run);
        if (r)
                return r;
        r = cli_connect(run->cli);
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(steps); i++)
                r = steps[i](run);
        return r;
}

static void run_clear(Run *run) {
        gpuq_job_free(run->job);
        for (size_t i = 0; i < run->n_operands; i++)
                operand_clear(&run->operands[i]);
        free(run->operands);
        gpuq_module_free(run->module);
        run_options_clear(&run->options);
}

static int run_run(Cli *cli, int argc, char **argv) {
        Run run = {.cli = cli};
        int r;

        r = run_options_read(cli, argc, argv, &run.options);
        if (r == 0)
                r = run_steps(&run);
        else if (r < 0)
                r = cli->code;

        run_clear(&run);
        return r;
}

const Verb verb_run = {
        .name = "run",
        .arguments = "[OPTION...] FILE:KERNEL ARG...",
        .summary = "run a kernel on NumPy files, and write its outputs",
        .help = run_option_help,
        .shorts = run_option_shorts,
        .options = run_option_table,
        .long_with_one_dash = true,
        .run = run_run,
};

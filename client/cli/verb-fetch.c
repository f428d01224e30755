/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq fetch - the outputs of a detached job, once it has ended
 *
 * The output files are renamed into place when all of them are written. The daemon keeps its copy
 * until then, so a fetch that fails can be repeated.
 */

#include <inttypes.h>
#include <string.h>

#include "io.h"
#include "note.h"
#include "result.h"
#include "util/human.h"
#include "verb.h"

typedef struct Fetch {
        Cli *cli;
        uint64_t id;
        bool keep;
        bool quiet;
        gpuq_fetched *fetched;
        Note note;
        OutFile **files; /* one for each output */
        bool written;
} Fetch;

static int fetch_problem(Fetch *fetch, const char *path, const char *what) {
        return problem_set(&fetch->cli->problem, EXIT_JOB_FAILED, "%s: %s", path, what);
}

static int fetch_read_note(Fetch *fetch) {
        const gpuq_fetched *fetched = fetch->fetched;
        int r;

        r = note_read(fetched->note, fetched->n_note, &fetch->note);
        if (r == -ENOMEM)
                return cli_no_memory(fetch->cli);
        if (r < 0)
                return problem_set(&fetch->cli->problem, EXIT_JOB_FAILED,
                                   "the job was not detached by `gpuq run'; fetch it with the "
                                   "program that detached it");
        return 0;
}

/* The workspace of a scan or sort is an output without a file, behind those with one. */
static int fetch_check(Fetch *fetch) {
        const gpuq_fetched *fetched = fetch->fetched;

        if (fetch->note.n_outputs > fetched->n_outputs)
                return problem_set(&fetch->cli->problem, EXIT_JOB_FAILED,
                                   "the job has %zu outputs, but its record names %zu files",
                                   fetched->n_outputs, fetch->note.n_outputs);
        for (size_t i = 0; i < fetch->note.n_outputs; i++)
                if (fetch->note.outputs[i].array.n_bytes > fetched->outputs[i].size)
                        return fetch_problem(fetch, fetch->note.outputs[i].path,
                                             "the array is larger than the job's output");
        return 0;
}

static int fetch_store(Fetch *fetch, size_t i) {
        const NoteOutput *output = &fetch->note.outputs[i];
        int r;

        r = outfile_new(output->path, &fetch->files[i]);
        if (r >= 0)
                r = npy_write(outfile_fd(fetch->files[i]), &output->array,
                              fetch->fetched->outputs[i].data);
        return r < 0 ? fetch_problem(fetch, output->path, strerror(-r)) : 0;
}

/* All outputs are written before the first is renamed, as in `gpuq run'. */
static int fetch_write(Fetch *fetch) {
        size_t n = fetch->note.n_outputs;
        int r = 0;

        fetch->files = calloc(n + 1, sizeof(*fetch->files));
        if (!fetch->files)
                return cli_no_memory(fetch->cli);
        for (size_t i = 0; i < n && r == 0; i++)
                r = fetch_store(fetch, i);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = outfile_commit(fetch->files[i]);
                if (r < 0)
                        r = fetch_problem(fetch, fetch->note.outputs[i].path, strerror(-r));
        }
        fetch->written = r == 0;
        return r;
}

static int fetch_outputs(Fetch *fetch) {
        int r;

        r = fetch_read_note(fetch);
        if (r == 0)
                r = fetch_check(fetch);
        return r ? r : fetch_write(fetch);
}

static int fetch_job_failed(Fetch *fetch) {
        const gpuq_result *result = &fetch->fetched->result;
        int code = (int)exit_code(EXIT_WHEN_WAITED, result->error);

        return problem_set(&fetch->cli->problem, MAX(code, (int)EXIT_JOB_FAILED), "%s",
                           result->text);
}

static void fetch_print_json(const Fetch *fetch) {
        struct json_object *document = json_document(), *outputs, *object, *shape;

        result_json(document, fetch->id, &fetch->fetched->result);
        json_text(document, "source", fetch->note.source);
        json_text(document, "kernel", fetch->note.kernel);
        outputs = json_array(document, "outputs");
        for (size_t i = 0; i < fetch->note.n_outputs && fetch->written; i++) {
                const NoteOutput *output = &fetch->note.outputs[i];

                object = json_array_object(outputs);
                json_number(object, "argument", output->argument);
                json_text(object, "file", output->path);
                json_text(object, "dtype", output->array.dtype->name);
                shape = json_array(object, "shape");
                for (unsigned j = 0; j < output->array.n_dims; j++)
                        json_object_array_add(shape,
                                              json_object_new_uint64(output->array.shape[j]));
        }
        json_print(document);
}

static void fetch_print(const Fetch *fetch, int code) {
        const gpuq_result *result = &fetch->fetched->result;

        if (fetch->cli->json) {
                fetch_print_json(fetch);
                return;
        }
        fputs(result->output, stdout);
        if (code == 0 && !fetch->quiet)
                printf("%s: waited %s, ran %s, device %d\n", fetch->note.kernel,
                       human_us(result->waited_us).text, human_us(result->ran_us).text,
                       result->device);
}

/* The outputs are in place. A copy that stays in the daemon is only worth a warning. */
static void fetch_discard(const Fetch *fetch) {
        if (gpuq_discard(fetch->cli->client, fetch->id) < 0)
                fprintf(stderr, "gpuq: fetch: gpuqd could not delete the job: %s\n",
                        gpuq_error_text());
}

static int fetch_job(Fetch *fetch) {
        bool is_told = false;
        int r;

        r = gpuq_fetch(fetch->cli->client, fetch->id, &fetch->fetched);
        if (r < 0)
                return cli_failed(fetch->cli, EXIT_WHEN_ASKED, r);

        if (fetch->fetched->result.state == GPUQ_DONE) {
                r = fetch_outputs(fetch);
                is_told = r == 0;
        } else {
                r = fetch_job_failed(fetch);
                is_told = true;
        }
        fetch_print(fetch, r);
        if (is_told && !fetch->keep)
                fetch_discard(fetch);
        return r;
}

static void fetch_clear(Fetch *fetch) {
        for (size_t i = 0; fetch->files && i < fetch->note.n_outputs; i++)
                outfile_free(fetch->files[i]);
        free(fetch->files);
        gpuq_fetched_free(fetch->fetched);
        note_clear(&fetch->note);
}

enum {
        FETCH_KEEP = VERB_OWN,
};

static int fetch_run(Cli *cli, int argc, char **argv) {
        Fetch fetch = {.cli = cli};
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                fetch.keep |= option == FETCH_KEEP;
                fetch.quiet |= option == 'q';
        }
        if (r < 0)
                return cli->code;
        if (argc - optind != 1)
                return cli_usage(cli, "expected one job id");
        if (gpuq_id_parse(argv[optind], &fetch.id) < 0)
                return cli_usage(cli, "`%s' is not a job id; `gpuq run --detach' prints it",
                                 argv[optind]);

        r = cli_connect(cli);
        if (r == 0)
                r = fetch_job(&fetch);
        fetch_clear(&fetch);
        return r;
}

static const struct option fetch_options[] = {
        {"keep", no_argument, NULL, FETCH_KEEP},
        {"quiet", no_argument, NULL, 'q'},
        VERB_OPTIONS,
};

const Verb verb_fetch = {
        .name = "fetch",
        .arguments = "[OPTION...] ID",
        .summary = "wait for a detached job and write its outputs",
        .help = "      --keep             do not delete the job: it can be fetched again\n"
                "  -q, --quiet            do not print timings\n",
        .shorts = "q",
        .options = fetch_options,
        .run = fetch_run,
};

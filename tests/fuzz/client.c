/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpuq with a daemon that lies (liar.h): each of its calls, in any order, and whatever they
 * return. What it gives out must be what it says it is.
 */

#include <gpuq.h>

#include "input.h"
#include "liar.h"

#define CLIENT_STEPS_MAX 100u
#define CLIENT_OBJECTS   8u

typedef struct Program {
        Input input;
        gpuq_client *client;
        gpuq_buffer *buffers[CLIENT_OBJECTS];
        gpuq_module *modules[2];
        gpuq_job *jobs[CLIENT_OBJECTS];
        gpuq_prepared *prepared[2];
        gpuq_buffer_ref ref;
        unsigned n_ended; /* callbacks */
} Program;

static void use_bytes(const void *bytes, size_t n) {
        const volatile uint8_t *p = bytes;

        for (size_t i = 0; i < n; i += 64)
                (void)p[i];
        if (n)
                (void)p[n - 1];
}

static void use_text(const char *text) {
        use_bytes(text, strlen(text));
}

/* ---- buffers and modules ---------------------------------------------------------------- */

static void try_buffer(Program *program) {
        gpuq_buffer **buffer = &program->buffers[input_below(&program->input, CLIENT_OBJECTS)];
        uint8_t how = input_u8(&program->input);
        size_t size = (size_t)1 << how / 8 % 23;
        int r;

        gpuq_buffer_free(*buffer);
        *buffer = NULL;
        if (how % 8 < 4)
                r = gpuq_buffer_new(program->client, size, buffer);
        else if (how % 8 < 5)
                r = gpuq_buffer_new_uninitialized(program->client, size, buffer);
        else if (how % 8 < 6)
                r = gpuq_buffer_new_device(program->client, size, how / 64 - 1, buffer);
        else
                r = gpuq_buffer_open(program->client, &program->ref, buffer);
        if (r < 0)
                return;
        if (gpuq_buffer_data(*buffer)) {
                use_bytes(gpuq_buffer_data(*buffer), gpuq_buffer_size(*buffer));
                memset(gpuq_buffer_data(*buffer), 1, MIN(gpuq_buffer_size(*buffer), (size_t)64));
        }
        if (gpuq_buffer_get_ref(*buffer, &program->ref) == 0)
                program->ref.offset += input_below(&program->input, 2) * 64u;
}

static void try_slice(Program *program) {
        gpuq_buffer *of = program->buffers[input_below(&program->input, CLIENT_OBJECTS)], *slice;

        if (!of ||
            gpuq_buffer_slice(of, input_u8(&program->input), input_u8(&program->input), &slice) < 0)
                return;
        if (gpuq_buffer_data(slice))
                use_bytes(gpuq_buffer_data(slice), gpuq_buffer_size(slice));
        gpuq_buffer_free(slice);
}

static void try_module(Program *program) {
        gpuq_module **module = &program->modules[input_below(&program->input, 2)];
        static const char *const options[] = {"-DA=1", NULL};
        gpuq_kernel_info info;
        size_t n_bytes;
        int r;

        gpuq_module_free(*module);
        *module = NULL;
        r = input_below(&program->input, 2)
                    ? gpuq_module_builtin(program->client, module)
                    : gpuq_module_load(program->client, GPUQ_FORMAT_AUTO, "source", 6, options,
                                       "a.cu", module);
        if (r < 0)
                return;
        for (size_t i = 0; i < gpuq_module_n_kernels(*module); ++i)
                if (gpuq_module_kernel(*module, i, &info) == 0) {
                        use_text(info.name);
                        use_text(info.text);
                        use_bytes(info.parameters, info.n_parameters * sizeof(*info.parameters));
                }
        use_text(gpuq_module_log(*module));
        (void)gpuq_module_has_variables(*module);
        (void)gpuq_module_variable_size(*module, "a", &n_bytes);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

static void use_result(const gpuq_result *result) {
        use_text(result->text);
        use_text(result->output);
}

static void on_ended(gpuq_job *job, void *userdata) {
        Program *program = userdata;
        gpuq_result result;

        program->n_ended++;
        if (gpuq_job_get_result(job, &result) == 0)
                use_result(&result);
}

static gpuq_job *make_job(Program *program) {
        uint8_t how = input_u8(&program->input);
        gpuq_buffer *a = program->buffers[how % CLIENT_OBJECTS];
        gpuq_buffer *b = program->buffers[how / 8 % CLIENT_OBJECTS];
        gpuq_module *module = program->modules[how / 64 % 2];
        gpuq_config config = {.grid = {1}, .block = {1}};
        gpuq_job *job;

        if (gpuq_job_new(program->client, &job) < 0)
                return NULL;
        if (a && b)
                (void)gpuq_job_copy(job, a, 0, b, 0, 8);
        if (a)
                (void)gpuq_job_fill(job, a, 0, 8, 1, 4);
        if (a && b && module) {
                gpuq_arg args[] = {gpuq_in(a), gpuq_out(b), gpuq_u64(1)};

                (void)gpuq_job_launch(job, module, "twice", &config, args, 3);
                (void)gpuq_job_read_variable(job, module, "v", 0, b, 0, 4);
        }
        if (how & 128)
                (void)gpuq_job_set_callback(job, on_ended, program);
        return job;
}

static void try_job(Program *program) {
        gpuq_job **job = &program->jobs[input_below(&program->input, CLIENT_OBJECTS)];

        gpuq_job_free(*job);
        *job = make_job(program);
        if (*job)
                (void)gpuq_submit(*job);
}

static void try_many(Program *program) {
        gpuq_job *jobs[40];
        size_t n = 0;

        while (n < 40 && (jobs[n] = make_job(program)))
                n++;
        (void)gpuq_submit_many(jobs, n);
        for (size_t i = 0; i < n; ++i) {
                (void)gpuq_wait(jobs[i], input_below(&program->input, 2) ? -1 : 5);
                gpuq_job_free(jobs[i]);
        }
}

static void try_wait(Program *program) {
        gpuq_job *job = program->jobs[input_below(&program->input, CLIENT_OBJECTS)];
        uint8_t how = input_u8(&program->input);
        gpuq_result result;

        if (!job || !gpuq_job_id(job))
                return;
        if (how & 1)
                (void)gpuq_cancel(job);
        if (how & 2)
                (void)gpuq_poll(job);
        else
                (void)gpuq_wait(job, how & 4 ? -1 : how);
        if (gpuq_job_get_result(job, &result) == 0)
                use_result(&result);
}

static void try_prepared(Program *program) {
        gpuq_prepared **prepared = &program->prepared[input_below(&program->input, 2)];
        gpuq_job *job;

        if (!*prepared) {
                job = make_job(program);
                if (job)
                        (void)gpuq_prepare(job, prepared);
                gpuq_job_free(job);
                return;
        }
        if (gpuq_fire(*prepared, NULL, &job) == 0) {
                (void)gpuq_wait(job, 10);
                gpuq_job_free(job);
        }
        if (input_below(&program->input, 4) == 0) {
                gpuq_prepared_free(*prepared);
                *prepared = NULL;
        }
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void try_detached(Program *program) {
        gpuq_fetched *fetched;
        uint64_t id = 1;
        gpuq_job *job;

        if (input_below(&program->input, 2)) {
                job = make_job(program);
                if (job)
                        (void)gpuq_job_detach(job, "note", 4, &id);
                gpuq_job_free(job);
        }
        if (gpuq_fetch(program->client, id, &fetched) == 0) {
                use_result(&fetched->result);
                use_bytes(fetched->note, fetched->n_note);
                for (size_t i = 0; i < fetched->n_outputs; ++i)
                        use_bytes(fetched->outputs[i].data, fetched->outputs[i].size);
                gpuq_fetched_free(fetched);
        }
        (void)gpuq_discard(program->client, id);
}

static void try_status(Program *program) {
        gpuq_status *status;
        gpuq_queue *queue;

        if (gpuq_get_status(program->client, &status) == 0) {
                for (size_t i = 0; i < status->n_devices; ++i)
                        use_text(status->devices[i].name);
                for (size_t i = 0; i < status->n_users; ++i)
                        use_text(status->users[i].user);
                gpuq_status_free(status);
        }
        if (gpuq_get_queue(program->client, -1, &queue) == 0) {
                for (size_t i = 0; i < queue->n_entries; ++i)
                        use_text(queue->entries[i].reason);
                gpuq_queue_free(queue);
        }
}

static void try_ids(Program *program) {
        uint64_t id = (uint64_t)7 << 32 | input_u8(&program->input);
        gpuq_cancelled cancelled;
        gpuq_result result;

        (void)gpuq_cancel_ids(program->client, &id, 1, &cancelled);
        if (gpuq_wait_id(program->client, id, (int)input_u8(&program->input), &result) == 0)
                use_result(&result);
        (void)gpuq_drain(program->client, 0, "why");
        (void)gpuq_resume(program->client, 0);
}

static void try_dispatch(Program *program) {
        if (input_below(&program->input, 4) == 0)
                (void)gpuq_client_fd(program->client);
        (void)gpuq_client_events(program->client);
        (void)gpuq_dispatch(program->client, (int)input_u8(&program->input));
}

static void program_end(Program *program) {
        for (unsigned i = 0; i < CLIENT_OBJECTS; ++i) {
                gpuq_job_free(program->jobs[i]);
                gpuq_buffer_free(program->buffers[i]);
        }
        for (unsigned i = 0; i < 2; ++i) {
                gpuq_prepared_free(program->prepared[i]);
                gpuq_module_free(program->modules[i]);
        }
        gpuq_client_free(program->client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static void (*const steps[])(Program * program) = {
                try_buffer, try_buffer,   try_slice,    try_module, try_job,      try_job, try_many,
                try_wait,   try_prepared, try_detached, try_status, try_dispatch, try_ids,
        };
        Program program = {.input = {data, n_data}};

        liar_start(&program.input);
        if (gpuq_connect(liar_path(), &program.client) == 0) {
                for (unsigned i = 0; i < CLIENT_STEPS_MAX && program.input.n; ++i)
                        steps[input_below(&program.input, 13)](&program);
                program_end(&program);
        }
        liar_stop();
        return 0;
}

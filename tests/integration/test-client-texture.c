/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures: over host and device memory, and in prepared jobs.
 */

#include "test-client.h"

#include <string.h>

#define WIDTH  20
#define HEIGHT 3
#define PITCH  96 /* bytes: a multiple of 32 behind the 80 of a row */

static const char source[] =
        "extern \"C\" __global__ void line(cudaTextureObject_t t, float *out) {\n"
        "  out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);\n"
        "}\n"
        "extern \"C\" __global__ void between(cudaTextureObject_t t, float *out) {\n"
        "  out[threadIdx.x] = tex2D<float>(t, threadIdx.x + 1.0f, 1.0f);\n"
        "}\n";

static const gpuq_config row = {.grid = {1}, .block = {WIDTH}};
static const gpuq_texture_desc line = {.format = GPUQ_TEXEL_F32, .channels = 1, .width = WIDTH};
static const gpuq_texture_desc image = {
        .format = GPUQ_TEXEL_F32,
        .channels = 1,
        .width = WIDTH,
        .height = HEIGHT,
        .pitch = PITCH,
        .linear = true,
};

static gpuq_buffer *numbers(gpuq_client *client, float first) {
        gpuq_buffer *buffer;
        float *data;

        DO(gpuq_buffer_new(client, WIDTH * sizeof(float), &buffer));
        data = gpuq_buffer_data(buffer);
        for (int i = 0; i < WIDTH; i++)
                data[i] = first + (float)i;
        return buffer;
}

static int begins_with(gpuq_buffer *buffer, float first) {
        const float *data = gpuq_buffer_data(buffer);

        for (int i = 0; i < WIDTH; i++)
                if (data[i] != first + (float)i)
                        return 0;
        return 1;
}

static gpuq_job *launch(gpuq_client *client, gpuq_module *module, const char *kernel,
                        gpuq_buffer *buffer, const gpuq_texture_desc *desc, gpuq_buffer *out) {
        gpuq_arg args[] = {gpuq_texture(buffer, desc), gpuq_out(out)};
        gpuq_job *job;

        DO(gpuq_job_new(client, &job));
        DO(gpuq_job_launch(job, module, kernel, &row, args, 2));
        return job;
}

/* A new buffer in device memory begins where a texture may, whatever came before. */
static void fetch_from_device(gpuq_client *client, gpuq_module *module, gpuq_buffer *out) {
        gpuq_buffer *there[4]; /* all stay, so that one lies behind the other */

        for (int i = 0; i < 4; i++) {
                gpuq_buffer *from = numbers(client, (float)i);
                gpuq_job *job;

                DO(gpuq_buffer_new_device(client, (size_t)(i + 1) * WIDTH * sizeof(float), -1,
                                          &there[i]));
                DO(gpuq_job_new(client, &job));
                DO(gpuq_job_copy(job, there[i], 0, from, 0, WIDTH * sizeof(float)));
                DO(gpuq_run(job));
                gpuq_job_free(job);
                job = launch(client, module, "line", there[i], &line, out);
                DO(gpuq_run(job));
                CHECK(begins_with(out, (float)i));
                gpuq_job_free(job);
                gpuq_buffer_free(from);
        }
        for (int i = 0; i < 4; i++)
                gpuq_buffer_free(there[i]);
}

static void fetch_between(gpuq_client *client, gpuq_module *module, gpuq_buffer *out) {
        const float *got = gpuq_buffer_data(out);
        gpuq_buffer *pixels;
        gpuq_job *job;
        float *data;

        DO(gpuq_buffer_new(client, (HEIGHT - 1) * PITCH + WIDTH * sizeof(float), &pixels));
        for (int y = 0; y < HEIGHT; y++) {
                data = (float *)((char *)gpuq_buffer_data(pixels) + (size_t)y * PITCH);
                for (int x = 0; x < WIDTH; x++)
                        data[x] = (float)(4 * x + 100 * y);
        }
        job = launch(client, module, "between", pixels, &image, out);
        DO(gpuq_run(job));
        for (int x = 0; x < WIDTH - 1; x++)
                CHECK(got[x] == 4 * (float)x + 2 + 50);
        CHECK(got[WIDTH - 1] == 4 * (WIDTH - 1) + 50);
        gpuq_job_free(job);
        gpuq_buffer_free(pixels);
}

static void fire_with_another(gpuq_client *client, gpuq_module *module, gpuq_buffer *out) {
        gpuq_buffer *x = numbers(client, 5), *other = numbers(client, 50), *small;
        gpuq_prepared *prepared;
        gpuq_swap swap = {x, other};
        gpuq_fire_args args = {.swaps = &swap, .n_swaps = 1};
        gpuq_set set = {0, 0, gpuq_u64(0)};
        gpuq_job *job = launch(client, module, "line", x, &line, out);

        DO(gpuq_prepare(job, &prepared));
        gpuq_job_free(job);
        for (int i = 0; i < 20; i++) {
                DO(gpuq_fire(prepared, i % 2 ? &args : NULL, &job));
                DO(gpuq_wait(job, -1));
                CHECK(begins_with(out, i % 2 ? 50 : 5));
                gpuq_job_free(job);
        }

        CHECK(gpuq_fire(prepared, &(gpuq_fire_args){.sets = &set, .n_sets = 1}, &job) ==
              GPUQ_E_INVALID);
        CHECK(strstr(gpuq_error_text(), "scalar"));
        DO(gpuq_buffer_new(client, WIDTH * sizeof(float) - 4, &small));
        swap.now = small;
        DO(gpuq_fire(prepared, &args, &job));
        CHECK(gpuq_wait(job, -1) == GPUQ_E_INVALID);
        CHECK(strstr(gpuq_error_text(), "a texture of 80 bytes, but its buffer has 76"));
        gpuq_job_free(job);
        gpuq_prepared_free(prepared);
        gpuq_buffer_free(small);
        gpuq_buffer_free(x);
        gpuq_buffer_free(other);
}

void scenario_textures(void) {
        gpuq_client *client;
        gpuq_module *module;
        gpuq_buffer *out;

        DO(gpuq_connect(NULL, &client));
        DO(gpuq_module_load(client, GPUQ_FORMAT_SOURCE, source, strlen(source), NULL, "t.cu",
                            &module));
        DO(gpuq_buffer_new(client, WIDTH * sizeof(float), &out));
        fetch_from_device(client, module, out);
        fetch_between(client, module, out);
        fire_with_another(client, module, out);
        gpuq_buffer_free(out);
        gpuq_module_free(module);
        gpuq_client_free(client);
}

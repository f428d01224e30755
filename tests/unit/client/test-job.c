/* SPDX-License-Identifier: Apache-2.0 */

#include "support.h"

static const gpuq_config one = {.grid = {1}, .block = {1}};

static gpuq_buffer *made(Session *session, size_t size) {
        gpuq_buffer *buffer = NULL;

        assert_ok(gpuq_buffer_new(session->client, size, &buffer));
        return buffer;
}

static gpuq_job *empty_job(Session *session) {
        gpuq_job *job = NULL;

        assert_ok(gpuq_job_new(session->client, &job));
        return job;
}

static void launch(Session *session, gpuq_job *job, gpuq_arg a, gpuq_arg b) {
        gpuq_arg args[] = {a, b, gpuq_u64(5)};

        assert_ok(gpuq_job_launch(job, session->module, "twice", &one, args, 3));
}

/* Runs it and frees it. Return: what the daemon got, the caller's. */
static Gpuq__V1__Job *sent(Session *session, gpuq_job *job) {
        assert_ok(gpuq_run(job));
        gpuq_job_free(job);
        return fake_last_job(session->fake);
}

static Gpuq__V1__Operations *unpacked(const Gpuq__V1__Job *job) {
        Gpuq__V1__Operations *operations =
                gpuq__v1__operations__unpack(NULL, job->operations.len, job->operations.data);

        assert_non_null(operations);
        return operations;
}

static void job_runs_and_tells_how_it_went(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 21, &from, &to);
        gpuq_result result;

        assert_int_equal(gpuq_job_id(job), 0);
        assert_int_equal(gpuq_job_get_result(job, &result), GPUQ_E_AGAIN);
        assert_ok(gpuq_run(job));
        assert_int_equal(buffer_word(to), 42);
        assert_int_equal(gpuq_job_id(job), (uint64_t)FAKE_SESSION << 32 | 1);
        assert_ok(gpuq_job_get_result(job, &result));
        assert_int_equal(result.state, GPUQ_DONE);
        assert_int_equal(result.error, 0);
        assert_string_equal(result.text, "");
        assert_string_equal(result.output, "said the kernel");
        assert_int_equal(result.waited_us, 11);
        assert_int_equal(result.ran_us, 22);
        assert_int_equal(result.device, 1);
        assert_int_equal(gpuq_submit(job), GPUQ_E_INVALID);
        assert_text("already");
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void failed_job_keeps_code_and_text(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to);
        gpuq_result result;

        fake_set(session->fake, (FakeManners){.job_code = GPUQ__V1__CODE__E_FAULT});
        assert_int_equal(gpuq_run(job), GPUQ_E_FAULT);
        assert_string_equal(gpuq_error_text(), "the kernel \"twice\" went wrong");
        assert_ok(gpuq_job_get_result(job, &result));
        assert_int_equal(result.state, GPUQ_FAILED);
        assert_int_equal(result.error, GPUQ_E_FAULT);
        assert_string_equal(result.text, "the kernel \"twice\" went wrong");
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void unknown_kernel_is_told_with_those_that_are_there(void **state) {
        Session *session = *state;
        gpuq_job *job = empty_job(session);

        assert_int_equal(gpuq_job_launch(job, session->module, "thrice", &one, NULL, 0),
                         GPUQ_E_NOT_FOUND);
        assert_text("thrice");
        assert_text("twice, other");
        gpuq_job_free(job);
}

static void wrong_arguments_are_told_one_by_one(void **state) {
        Session *session = *state;
        gpuq_job *job = empty_job(session);
        gpuq_buffer *x = made(session, 8);
        gpuq_arg number[] = {gpuq_in(x), gpuq_out(x)};
        gpuq_arg size[] = {gpuq_in(x), gpuq_out(x), gpuq_u32(5)};
        gpuq_arg kind[] = {gpuq_in(x), gpuq_out(x), gpuq_f64(5)};
        gpuq_arg scalar[] = {gpuq_u64(1), gpuq_out(x), gpuq_u64(5)};
        gpuq_arg none[] = {gpuq_in(NULL), gpuq_out(x), gpuq_u64(5)};
        gpuq_arg null[] = {gpuq_in(x), gpuq_null(), gpuq_null()};

        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, number, 2),
                         GPUQ_E_INVALID);
        assert_text("takes 3 arguments, not 2");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, size, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 3 must have 8 bytes");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, kind, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 3 must be a 64-bit integer, not a double");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, scalar, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 1 must be a buffer");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, none, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 1 is a NULL buffer");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, null, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 3 must be a 64-bit integer, not a null pointer");
        assert_int_equal(gpuq_submit(job), GPUQ_E_INVALID);
        assert_text("no operation");
        gpuq_job_free(job);
        gpuq_buffer_free(x);
}

static void a_texture_is_told_with_its_buffer(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 4096), *to = made(session, 8);
        gpuq_job *job = empty_job(session);
        gpuq_texture_desc desc = {
                .format = GPUQ_TEXEL_U8,
                .channels = 4,
                .width = 24,
                .height = 10,
                .address = {GPUQ_ADDRESS_BORDER, GPUQ_ADDRESS_MIRROR},
                .linear = true,
                .normalized = true,
                .to_float = true,
        };
        gpuq_arg args[] = {gpuq_in(to), gpuq_out(to), gpuq_texture(x, &desc)};
        Gpuq__V1__Operations *operations;
        const Gpuq__V1__Texture *texture;
        Gpuq__V1__Job *got;

        assert_ok(gpuq_job_launch(job, session->module, "twice", &one, args, 3));
        got = sent(session, job);
        assert_int_equal(got->n_buffers, 2);
        assert_int_equal(got->buffers[1]->direction, GPUQ__V1__DIRECTION__IN);
        operations = unpacked(got);
        assert_int_equal(operations->operations[0]->launch->arguments[2]->value_case,
                         GPUQ__V1__ARGUMENT__VALUE_TEXTURE);
        texture = operations->operations[0]->launch->arguments[2]->texture;
        assert_int_equal(texture->buffer, 1);
        assert_int_equal(texture->format, GPUQ__V1__TEXEL_FORMAT__TEXEL_U8);
        assert_int_equal(texture->channels, 4);
        assert_int_equal(texture->width, 24);
        assert_int_equal(texture->height, 10);
        assert_int_equal(texture->pitch, 96);
        assert_int_equal(texture->address_x, GPUQ__V1__ADDRESS_MODE__ADDRESS_BORDER);
        assert_int_equal(texture->address_y, GPUQ__V1__ADDRESS_MODE__ADDRESS_MIRROR);
        assert_true(texture->linear && texture->normalized && texture->to_float);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
        gpuq_buffer_free(to);
}

static void a_wrong_texture_is_told(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 64);
        gpuq_job *job = empty_job(session);
        gpuq_texture_desc desc = {.format = GPUQ_TEXEL_F32, .channels = 1, .width = 17};
        gpuq_arg large[] = {gpuq_in(x), gpuq_out(x), gpuq_texture(x, &desc)};
        gpuq_arg pointer[] = {gpuq_texture(x, &desc), gpuq_out(x), gpuq_u64(5)};
        gpuq_arg none[] = {gpuq_in(x), gpuq_out(x), gpuq_texture(x, NULL)};

        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, large, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 3 is a texture of 68 bytes, but its buffer has 64");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, pointer, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 1 must be a buffer, not a texture");
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, none, 3),
                         GPUQ_E_INVALID);
        assert_text("argument 3 is a texture without a buffer or description");
        gpuq_job_free(job);
        gpuq_buffer_free(x);
}

static void same_buffer_in_and_out_of_one_launch_is_inout(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 8);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Job *got;

        launch(session, job, gpuq_out(x), gpuq_in(x));
        got = sent(session, job);
        assert_int_equal(got->n_buffers, 1);
        assert_int_equal(got->buffers[0]->direction, GPUQ__V1__DIRECTION__INOUT);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
}

static void what_an_earlier_operation_made_stays_out(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 8), *y = made(session, 8), *z = made(session, 8);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Job *got;

        launch(session, job, gpuq_in(x), gpuq_out(y));
        launch(session, job, gpuq_inout(y), gpuq_out(z));
        launch(session, job, gpuq_in(z), gpuq_out(x));
        got = sent(session, job);
        assert_int_equal(got->n_buffers, 3);
        assert_int_equal(got->n_kernels, 1);
        assert_int_equal(got->buffers[0]->direction,
                         GPUQ__V1__DIRECTION__INOUT); /* x: read, then written */
        assert_int_equal(got->buffers[1]->direction, GPUQ__V1__DIRECTION__OUT);
        assert_int_equal(got->buffers[2]->direction, GPUQ__V1__DIRECTION__OUT);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
        gpuq_buffer_free(y);
        gpuq_buffer_free(z);
}

static void what_is_written_whole_is_told_unless_one_operation_does_not(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 8), *y = made(session, 8), *z = made(session, 8);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Job *got;

        launch(session, job, gpuq_out(y), gpuq_out_whole(y));
        launch(session, job, gpuq_in(y), gpuq_out_whole(x));
        launch(session, job, gpuq_inout(x), gpuq_out_whole(y));
        launch(session, job, gpuq_in(z), gpuq_out_whole(z));
        got = sent(session, job);
        assert_int_equal(got->n_buffers, 3);
        assert_int_equal(got->buffers[0]->direction, GPUQ__V1__DIRECTION__OUT);       /* y */
        assert_int_equal(got->buffers[1]->direction, GPUQ__V1__DIRECTION__OUT_WHOLE); /* x */
        assert_int_equal(got->buffers[2]->direction, GPUQ__V1__DIRECTION__INOUT);     /* z */
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
        gpuq_buffer_free(y);
        gpuq_buffer_free(z);
}

static void writing_a_part_leaves_the_rest(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 80), *y = made(session, 80), *z = made(session, 80);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Operations *operations;
        Gpuq__V1__Job *got;

        assert_ok(gpuq_job_copy(job, y, 8, x, 16, 24));
        assert_ok(gpuq_job_fill(job, z, 0, 80, 7, 4));
        got = sent(session, job);
        assert_int_equal(got->buffers[0]->direction, GPUQ__V1__DIRECTION__IN);
        assert_int_equal(got->buffers[1]->direction, GPUQ__V1__DIRECTION__INOUT);
        assert_int_equal(got->buffers[2]->direction, GPUQ__V1__DIRECTION__OUT_WHOLE);

        operations = unpacked(got);
        assert_int_equal(operations->n_operations, 2);
        assert_int_equal(operations->operations[0]->copy->to->buffer, 1);
        assert_int_equal(operations->operations[0]->copy->to->offset, 8);
        assert_int_equal(operations->operations[0]->copy->from->buffer, 0);
        assert_int_equal(operations->operations[0]->copy->from->offset, 16);
        assert_int_equal(operations->operations[0]->copy->length, 24);
        assert_int_equal(operations->operations[1]->fill->value, 7);
        assert_int_equal(operations->operations[1]->fill->width, 4);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
        gpuq_buffer_free(y);
        gpuq_buffer_free(z);
}

/* Launches are packed by hand: what protobuf-c reads of them it must pack to the same bytes. */
static void assert_as_protobuf_packs(const Gpuq__V1__Job *job, Gpuq__V1__Operations *operations) {
        uint8_t *packed = malloc(job->operations.len + 1);

        assert_int_equal(gpuq__v1__operations__get_packed_size(operations), job->operations.len);
        gpuq__v1__operations__pack(operations, packed);
        assert_memory_equal(packed, job->operations.data, job->operations.len);
        free(packed);
}

static void launch_is_packed_as_given(void **state) {
        Session *session = *state;
        gpuq_config config = {.grid = {3, 4, 5},
                              .block = {6, 7, 8},
                              .shared_bytes = 99,
                              .cluster = {1, 2, 1},
                              .cooperative = true};
        gpuq_buffer *x = made(session, 8), *y = made(session, 8);
        gpuq_arg args[] = {gpuq_in(x), gpuq_out(y), gpuq_i64(-2)};
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Operations *operations;
        const Gpuq__V1__Launch *got;
        Gpuq__V1__Job *message;
        int64_t scalar;

        assert_ok(gpuq_job_launch(job, session->module, "twice", &config, args, 3));
        assert_ok(gpuq_job_set_priority(job, -7));
        assert_ok(gpuq_job_set_timeout(job, 1500));
        assert_ok(gpuq_job_set_label(job, "mine"));
        assert_ok(gpuq_job_set_device(job, 1));
        assert_ok(gpuq_job_set_repeatable(job, true));
        assert_ok(gpuq_job_set_timed(job, true));
        assert_ok(gpuq_job_after(job, 77));
        message = sent(session, job);
        assert_int_equal(message->priority, -7);
        assert_int_equal(message->timeout_ms, 1500);
        assert_string_equal(message->label, "mine");
        assert_int_equal(message->device, 2);
        assert_true(message->repeatable && message->timed);
        assert_int_equal(message->n_after, 1);
        assert_int_equal(message->after[0], 77);
        assert_string_equal(message->kernels[0]->name, "twice");

        operations = unpacked(message);
        assert_as_protobuf_packs(message, operations);
        got = operations->operations[0]->launch;
        assert_int_equal(got->grid_z, 5);
        assert_int_equal(got->block_y, 7);
        assert_int_equal(got->shared_bytes, 99);
        assert_int_equal(got->cluster_y, 2);
        assert_true(got->cooperative);
        assert_int_equal(got->n_arguments, 3);
        assert_int_equal(got->arguments[1]->buffer, 1);
        assert_int_equal(got->arguments[2]->scalar.len, 8);
        memcpy(&scalar, got->arguments[2]->scalar.data, 8);
        assert_int_equal(scalar, -2);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(message, NULL);
        gpuq_buffer_free(x);
        gpuq_buffer_free(y);
}

static void assert_scalar(const Gpuq__V1__Argument *got, gpuq_kind kind, const void *data,
                          size_t size) {
        assert_int_equal(got->value_case, GPUQ__V1__ARGUMENT__VALUE_SCALAR);
        assert_int_equal(got->kind, kind);
        assert_int_equal(got->scalar.len, size);
        if (size > 0)
                assert_memory_equal(got->scalar.data, data, size);
}

static void every_kind_of_argument_is_packed_as_protobuf_does(void **state) {
        enum { N_BUFFERS = 131 }; /* the last index takes two bytes */

        Session *session = *state;
        gpuq_config config = {.grid = {UINT32_MAX, 0, 1}, .block = {1024}, .shared_bytes = 1 << 20};
        gpuq_buffer *buffers[N_BUFFERS];
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Operations *operations;
        Gpuq__V1__Argument **got;
        Gpuq__V1__Job *message;
        char text[20000];

        memset(text, 'x', sizeof(text));
        for (unsigned i = 0; i < N_BUFFERS; i++) {
                buffers[i] = made(session, 8);
                launch(session, job, gpuq_in(buffers[i]), gpuq_in(buffers[0]));
        }
        gpuq_arg args[FAKE_N_KINDS] = {
                gpuq_bytes(NULL, 0),
                gpuq_in(buffers[0]),
                gpuq_i32(-1),
                gpuq_i64(0),
                gpuq_f32(0.5f),
                gpuq_f64(-2),
                gpuq_bytes("q", 1),
                {.kind = GPUQ_I16, .size = 2, .value.i32 = 0x1234},
                gpuq_out(buffers[N_BUFFERS - 1]),
                gpuq_u64(UINT64_MAX),
                gpuq_bytes(text, 127),
                gpuq_bytes(text, 300),
                gpuq_bytes(text, sizeof(text)),
        };
        assert_ok(gpuq_job_launch(job, session->module, "other", &config, args, ARRAY_SIZE(args)));
        launch(session, job, gpuq_in(buffers[1]), gpuq_in(buffers[0]));
        message = sent(session, job);
        operations = unpacked(message);
        assert_as_protobuf_packs(message, operations);
        assert_int_equal(operations->n_operations, N_BUFFERS + 2);

        assert_int_equal(operations->operations[N_BUFFERS]->launch->kernel, 1);
        assert_int_equal(operations->operations[N_BUFFERS]->launch->grid_x, UINT32_MAX);
        assert_int_equal(operations->operations[N_BUFFERS]->launch->grid_z, 1);
        assert_int_equal(operations->operations[N_BUFFERS]->launch->n_arguments, FAKE_N_KINDS);
        got = operations->operations[N_BUFFERS]->launch->arguments;
        for (unsigned i = 0; i < FAKE_N_KINDS; i++)
                if (!args[i].buffer)
                        assert_scalar(got[i], args[i].kind,
                                      args[i].kind == GPUQ_BYTES ? args[i].value.bytes
                                                                 : &args[i].value,
                                      args[i].size);
        assert_int_equal(got[1]->value_case, GPUQ__V1__ARGUMENT__VALUE_BUFFER);
        assert_int_equal(got[1]->buffer, 0);
        assert_int_equal(got[1]->kind, GPUQ__V1__KIND__POINTER);
        assert_int_equal(got[8]->value_case, GPUQ__V1__ARGUMENT__VALUE_BUFFER);
        assert_int_equal(got[8]->buffer, N_BUFFERS - 1);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(message, NULL);
        for (unsigned i = 0; i < N_BUFFERS; i++)
                gpuq_buffer_free(buffers[i]);
}

static void variables_are_named_beside_kernels(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 16);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Operations *operations;
        Gpuq__V1__Job *got;
        char name[] = "counter";

        assert_ok(gpuq_job_write_variable(job, session->module, name, 4, x, 8, 8));
        name[0] = 'C'; /* it was copied */
        assert_ok(gpuq_job_read_variable(job, session->module, "counter", 0, x, 0, 16));
        got = sent(session, job);
        assert_int_equal(got->n_kernels, 1);
        assert_string_equal(got->kernels[0]->name, "counter");
        assert_int_equal(got->buffers[0]->direction, GPUQ__V1__DIRECTION__INOUT);
        operations = unpacked(got);
        assert_int_equal(operations->operations[0]->copy->to->what_case,
                         GPUQ__V1__OPERAND__WHAT_VARIABLE);
        assert_int_equal(operations->operations[0]->copy->to->offset, 4);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
}

static void wrong_settings_and_ranges_are_refused(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 100);
        gpuq_job *job = empty_job(session);
        char label[66];

        memset(label, 'x', 65);
        label[65] = '\0';
        assert_int_equal(gpuq_job_set_label(job, label), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_set_priority(job, 101), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_copy(job, x, 1, x, 0, 100), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_fill(job, x, 0, 6, 1, 4), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_fill(job, x, 0, 6, 1, 3), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_fill(job, x, 100, 4, 1, 4), GPUQ_E_INVALID);
        assert_int_equal(gpuq_wait(job, 0), GPUQ_E_INVALID);
        assert_int_equal(gpuq_cancel(job), GPUQ_E_INVALID);
        gpuq_job_free(job);
        gpuq_buffer_free(x);
}

static void null_handles_are_refused(void **state) {
        Session *session = *state;
        gpuq_job *job = empty_job(session), *none[] = {NULL, NULL}, *other;
        gpuq_buffer *x = made(session, 8), *slice;

        assert_int_equal(gpuq_job_new(NULL, &other), GPUQ_E_INVALID);
        assert_text("NULL");
        assert_int_equal(gpuq_buffer_new(NULL, 8, &slice), GPUQ_E_INVALID);
        assert_int_equal(gpuq_buffer_slice(NULL, 0, 1, &slice), GPUQ_E_INVALID);
        assert_null(gpuq_buffer_data(NULL));
        assert_int_equal(gpuq_job_launch(NULL, session->module, "twice", &one, NULL, 0),
                         GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_launch(job, NULL, "twice", &one, NULL, 0), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", NULL, NULL, 0),
                         GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_launch(job, session->module, "twice", &one, NULL, 3),
                         GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_copy(job, NULL, 0, x, 0, 8), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_copy(job, x, 0, NULL, 0, 8), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_fill(job, NULL, 0, 8, 0, 4), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_read_variable(job, NULL, "v", 0, x, 0, 8), GPUQ_E_INVALID);
        assert_int_equal(gpuq_submit_many(none, 2), GPUQ_E_INVALID);
        assert_int_equal(gpuq_run(NULL), GPUQ_E_INVALID);
        assert_int_equal(gpuq_wait(NULL, -1), GPUQ_E_INVALID);
        assert_int_equal(gpuq_poll(NULL), GPUQ_E_INVALID);
        assert_int_equal(gpuq_dispatch(NULL, 0), GPUQ_E_INVALID);
        gpuq_job_free(job);
        gpuq_buffer_free(x);
}

static void a_thousand_operations_make_one_job(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 8);
        gpuq_job *job = empty_job(session);
        Gpuq__V1__Operations *operations;
        Gpuq__V1__Job *got;

        for (unsigned i = 0; i < 1000; i++)
                launch(session, job, gpuq_inout(x), gpuq_inout(x));
        got = sent(session, job);
        operations = unpacked(got);
        assert_int_equal(operations->n_operations, 1000);
        assert_int_equal(got->n_buffers, 1);
        gpuq__v1__operations__free_unpacked(operations, NULL);
        gpuq__v1__job__free_unpacked(got, NULL);
        gpuq_buffer_free(x);
}

/* Fills @job until it packs to more than @n_bytes. */
static void grow(Session *session, gpuq_job *job, gpuq_buffer *x, size_t n_bytes) {
        gpuq_arg args[] = {gpuq_inout(x), gpuq_inout(x), gpuq_u64(UINT64_MAX)};
        gpuq_config config = {.grid = {1u << 30, 60000, 60000}, .block = {1024, 1024, 64}};

        /* Such a launch packs to more than 40 bytes. */
        for (size_t n = 0; n < n_bytes; n += 40)
                assert_ok(gpuq_job_launch(job, session->module, "twice", &config, args, 3));
}

static void large_submission_is_split_and_one_job_is_not(void **state) {
        Session *session = *state;
        gpuq_buffer *x = made(session, 8);
        gpuq_job *jobs[8], *huge;

        for (unsigned i = 0; i < 8; i++) {
                jobs[i] = empty_job(session);
                grow(session, jobs[i], x, 1200 << 10);
        }
        assert_ok(gpuq_submit_many(jobs, 8));
        for (unsigned i = 0; i < 8; i++) {
                assert_ok(gpuq_wait(jobs[i], -1));
                gpuq_job_free(jobs[i]);
        }
        assert_true(fake_counts(session->fake).n_submits > 1);
        assert_int_equal(fake_counts(session->fake).n_jobs, 8);

        huge = empty_job(session);
        grow(session, huge, x, WIRE_FRAME_MAX + 1000);
        assert_int_equal(gpuq_submit(huge), GPUQ_E_INVALID);
        assert_text("too large");
        gpuq_job_free(huge);
        gpuq_buffer_free(x);
}

static void more_jobs_than_a_message_may_have_are_split(void **state) {
        enum { N = WIRE_JOBS_MAX + 1 };
        static gpuq_job *jobs[N];
        Session *session = *state;
        gpuq_buffer *x = made(session, 8);

        for (unsigned i = 0; i < N; i++) {
                jobs[i] = empty_job(session);
                grow(session, jobs[i], x, 1);
        }
        assert_ok(gpuq_submit_many(jobs, N));
        for (unsigned i = 0; i < N; i++) {
                assert_ok(gpuq_wait(jobs[i], -1));
                gpuq_job_free(jobs[i]);
        }
        assert_int_equal(fake_counts(session->fake).n_submits, 2);
        assert_int_equal(fake_counts(session->fake).n_jobs, N);
        gpuq_buffer_free(x);
}

static void many_jobs_go_in_one_message_or_none(void **state) {
        Session *session = *state;
        gpuq_buffer *from[3], *to[3];
        gpuq_job *jobs[3], *twice[2];

        for (unsigned i = 0; i < 3; i++)
                jobs[i] = session_job(session, i, &from[i], &to[i]);
        twice[0] = twice[1] = jobs[0];
        assert_int_equal(gpuq_submit_many(twice, 2), GPUQ_E_INVALID);
        assert_int_equal(gpuq_job_id(jobs[0]), 0);
        assert_ok(gpuq_submit_many(jobs, 3));
        for (unsigned i = 0; i < 3; i++) {
                assert_ok(gpuq_wait(jobs[i], -1));
                assert_int_equal(buffer_word(to[i]), 2 * i);
                gpuq_job_free(jobs[i]);
                gpuq_buffer_free(from[i]);
                gpuq_buffer_free(to[i]);
        }
        assert_int_equal(fake_counts(session->fake).n_submits, 1);
        assert_ok(gpuq_submit_many(NULL, 0));
}

static void cancelled_job_ends_once(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 1, &from, &to);

        fake_set(session->fake, (FakeManners){.hold = true});
        assert_ok(gpuq_submit(job));
        assert_int_equal(gpuq_poll(job), 0);
        assert_int_equal(gpuq_wait(job, 1), GPUQ_E_AGAIN);
        assert_text("7.1");
        assert_ok(gpuq_cancel(job));
        assert_int_equal(gpuq_wait(job, -1), GPUQ_E_CANCELLED);
        assert_int_equal(gpuq_poll(job), 1);
        assert_ok(gpuq_cancel(job));
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void freed_job_still_runs(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 4, &from, &to);

        assert_ok(gpuq_submit(job));
        gpuq_job_free(job);
        assert_int_equal(gpuq_dispatch(session->client, -1), 1);
        assert_int_equal(buffer_word(to), 8);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void module_is_unloaded_when_its_last_job_ended(void **state) {
        Session *session = *state;
        gpuq_buffer *from, *to;
        gpuq_job *job = session_job(session, 4, &from, &to);

        gpuq_module_free(TAKE_PTR(session->module));
        assert_int_equal(fake_counts(session->fake).n_unloads, 0);
        assert_ok(gpuq_run(job));
        fake_await(session->fake, n_unloads, 1);
        gpuq_job_free(job);
        gpuq_buffer_free(from);
        gpuq_buffer_free(to);
}

static void image_is_sealed_before_it_is_named(void **state) {
        Session *session = *state;
        const char *const options[] = {"-DN=1", NULL}, *const wrong[] = {"-DWRONG=1", NULL};
        gpuq_kernel_info info;
        gpuq_module *module;

        assert_ok(gpuq_module_load(session->client, GPUQ_FORMAT_SOURCE, "source", 6, options,
                                   "a.cu", &module));
        assert_int_equal(fake_counts(session->fake).image_length, 6);
        assert_int_equal(fake_counts(session->fake).image_seals,
                         0x2 | 0x4 | 0x8); /* shrink, grow, write */
        assert_int_equal(gpuq_module_n_kernels(module), 2);
        assert_ok(gpuq_module_kernel(module, 0, &info));
        assert_string_equal(info.name, "twice");
        assert_int_equal(info.n_parameters, 3);
        assert_int_equal(info.parameters[2].kind, GPUQ_I64);
        assert_int_equal(gpuq_module_kernel(module, 2, &info), GPUQ_E_NOT_FOUND);
        assert_string_equal(gpuq_module_log(module), "a.cu:2: warning: odd");
        gpuq_module_free(module);

        assert_int_equal(
                gpuq_module_load(session->client, GPUQ_FORMAT_AUTO, "x", 1, wrong, NULL, &module),
                GPUQ_E_COMPILE);
        assert_string_equal(gpuq_error_text(), "a.cu:1: error: all wrong");
        assert_int_equal(
                gpuq_module_load(session->client, GPUQ_FORMAT_AUTO, "", 0, NULL, NULL, &module),
                GPUQ_E_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                session_test(job_runs_and_tells_how_it_went),
                session_test(failed_job_keeps_code_and_text),
                session_test(unknown_kernel_is_told_with_those_that_are_there),
                session_test(wrong_arguments_are_told_one_by_one),
                session_test(a_texture_is_told_with_its_buffer),
                session_test(a_wrong_texture_is_told),
                session_test(same_buffer_in_and_out_of_one_launch_is_inout),
                session_test(what_an_earlier_operation_made_stays_out),
                session_test(what_is_written_whole_is_told_unless_one_operation_does_not),
                session_test(writing_a_part_leaves_the_rest),
                session_test(launch_is_packed_as_given),
                session_test(every_kind_of_argument_is_packed_as_protobuf_does),
                session_test(variables_are_named_beside_kernels),
                session_test(wrong_settings_and_ranges_are_refused),
                session_test(null_handles_are_refused),
                session_test(a_thousand_operations_make_one_job),
                session_test(large_submission_is_split_and_one_job_is_not),
                session_test(more_jobs_than_a_message_may_have_are_split),
                session_test(many_jobs_go_in_one_message_or_none),
                session_test(cancelled_job_ends_once),
                session_test(freed_job_still_runs),
                session_test(module_is_unloaded_when_its_last_job_ended),
                session_test(image_is_sealed_before_it_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's operations, which the supervisor hands on unread, as the worker decodes them; and
 * the supervisor's quick way to unpack a Submit, which must find what protobuf-c finds.
 */

#include <stdlib.h>

#include "message.h"
#include "submit_scan.h"
#include "worker/program.h"

#define OPERATIONS_BYTES_MAX 16384u

/* ---- operations ------------------------------------------------------------------ */

static CUresult fake_global(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
        return CUDA_ERROR_NOT_FOUND;
}

static CUresult fake_occupancy(int *n_blocks, CUfunction function, int n_threads, size_t n_shared) {
        *n_blocks = 2;
        return CUDA_SUCCESS;
}

static CUresult fake_set_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
        return CUDA_SUCCESS;
}

static Driver fake_driver = {
        .cuModuleGetGlobal = fake_global,
        .cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_occupancy,
        .cuFuncSetAttribute = fake_set_attribute,
};

static const Context context = {
        .cu = &fake_driver,
        .limits =
                {
                        .max_threads = 1024,
                        .max_block = {1024, 1024, 64},
                        .max_grid = {2147483647, 65535, 65535},
                        .max_shared = 232448,
                        .n_multiprocessors = 4,
                        .max_cluster = 8,
                        .cooperative = true,
                        .max_texture_line = 1000,
                        .max_texture = {100, 50},
                        .max_texture_pitch = 4096,
                        .texture_alignment = 512,
                        .texture_pitch_alignment = 1,
                },
};

static FunctionParameter parameters[] = {
        {GPUQ__V1__KIND__POINTER, 8, 0},
        {GPUQ__V1__KIND__I32, 4, 8},
        {GPUQ__V1__KIND__BYTES, 3, 12},
};
static FunctionParameter handle[] = {{GPUQ__V1__KIND__WORD64, 8, 0}};
static Function functions[] = {
        {
                .symbol = "f",
                .name = "f",
                .parameters = parameters,
                .n_parameters = 3,
                .kinds_known = true,
                .max_threads = 512,
                .dynamic_shared = 48 << 10,
                .n_parameter_bytes = 15,
        },
        {
                .symbol = "_Z1gv",
                .name = "g",
                .max_threads = 1024,
                .dynamic_shared = 48 << 10,
        },
        {
                .symbol = "h",
                .name = "h",
                .parameters = handle,
                .n_parameters = 1,
                .kinds_known = true,
                .max_threads = 1024,
                .n_parameter_bytes = 8,
        },
};
static Variable variables[] = {{"table", 0x5000, 64}};
static Image image = {
        .cu = &fake_driver,
        .functions = functions,
        .n_functions = 3,
        .variables = variables,
        .n_variables = 1,
        .has_variables = true,
};
static const ProgramBuffer buffers[] = {{100, 256, true}, {200, 256, false}, {64, 6, true}};
static const ProgramKernel kernels[] = {
        {"f", &image}, {"g", &image}, {"table", &image}, {"h", &image}};

static uint64_t small_number(Input *input, const ProtobufCFieldDescriptor *field, void *userdata) {
        return input_u8(input) < 224 ? input_below(input, 5) : input_edge(input);
}

static size_t pack(Input *input, ProtobufCMessage *message, uint8_t *packed, bool may_spoil) {
        size_t n = protobuf_c_message_get_packed_size(message);

        if (n <= OPERATIONS_BYTES_MAX)
                protobuf_c_message_pack(message, packed);
        protobuf_c_message_free_unpacked(message, NULL);
        if (n > OPERATIONS_BYTES_MAX)
                return 0;
        return may_spoil && input_below(input, 3) == 0 && n
                       ? message_spoil(input, packed, n, OPERATIONS_BYTES_MAX)
                       : n;
}

static void try_program(Input *input) {
        uint8_t room[OPERATIONS_BYTES_MAX], *packed;
        bool is_raw = input_below(input, 8) == 0;
        size_t n = is_raw ? input->n
                          : pack(input,
                                 message_new(input, &gpuq__v1__operations__descriptor, small_number,
                                             NULL),
                                 room, true);
        ProgramInput what = {NULL, n, buffers, 3, kernels, 4, NULL};
        Failure failure = {};
        Program *program;

        packed = malloc(n + !n); /* what is behind it is not to be read */
        memcpy(packed, is_raw ? input->data : room, n);
        what.operations = packed;
        if (program_new(&what, &context, &program, &failure) == 0)
                program_unref(program);
        failure_clear(&failure);
        free(packed);
}

/* ---- the quick way --------------------------------------------------------------- */

static void try_scan(Input *input) {
        static Bump *bump;
        uint8_t room[OPERATIONS_BYTES_MAX], *data, *ours, *theirs;
        bool is_raw = input_below(input, 8) == 0;
        size_t n =
                is_raw ? input->n
                       : pack(input, message_new(input, &gpuq__v1__request__descriptor, NULL, NULL),
                              room, true);
        Gpuq__V1__Request *quick, *slow;

        if (!bump && bump_new(&bump) < 0)
                abort();
        data = malloc(n + !n);
        memcpy(data, is_raw ? input->data : room, n);
        quick = submit_scan(bump, data, n);
        if (quick) {
                slow = gpuq__v1__request__unpack(NULL, n, data);
                if (!slow)
                        abort();
                n = gpuq__v1__request__get_packed_size(slow);
                if (n != gpuq__v1__request__get_packed_size(quick))
                        abort();
                ours = malloc(n + !n);
                theirs = malloc(n + !n);
                gpuq__v1__request__pack(quick, ours);
                gpuq__v1__request__pack(slow, theirs);
                if (memcmp(ours, theirs, n) != 0)
                        abort();
                free(ours);
                free(theirs);
                gpuq__v1__request__free_unpacked(slow, NULL);
        }
        bump_reset(bump);
        free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        Input input = {data, n_data};

        if (input_below(&input, 2))
                try_scan(&input);
        else
                try_program(&input);
        return 0;
}

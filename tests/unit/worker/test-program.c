/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "worker/graph.h"
#include "worker/programs.h"
#include "worker/wide.h"

/* ---- a device and a module that are only tables ------------------------------------------- */

/* One that is in no list. */
static CUresult fake_global(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
        if (strcmp(name, "__hidden") != 0)
                return CUDA_ERROR_NOT_FOUND;
        *address = 0x6000;
        *size = 64;
        return CUDA_SUCCESS;
}

static CUresult fake_occupancy(int *n_blocks, CUfunction function, int n_threads, size_t n_shared) {
        *n_blocks = 2;
        return CUDA_SUCCESS;
}

static unsigned n_attributes_set;

static CUresult fake_set_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
        ++n_attributes_set;
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
                },
};

static FunctionParameter add_parameters[] = {
        {GPUQ__V1__KIND__POINTER, 8},
        {GPUQ__V1__KIND__WORD64, 8},
        {GPUQ__V1__KIND__F32, 4},
        {GPUQ__V1__KIND__I64, 8},
};
static FunctionParameter opaque_parameters[] = {
        {GPUQ__V1__KIND__BYTES, 8},
        {GPUQ__V1__KIND__BYTES, 4},
        {GPUQ__V1__KIND__BYTES, 40},
};
static Function functions[] = {
        {
                .symbol = "add_f32",
                .name = "add_f32",
                .parameters = add_parameters,
                .n_parameters = 4,
                .kinds_known = true,
                .max_threads = 512,
                .static_shared = 1024,
                .dynamic_shared = 48 << 10,
        },
        {
                .symbol = "opaque",
                .name = "opaque",
                .parameters = opaque_parameters,
                .n_parameters = 3,
                .max_threads = 1024,
                .dynamic_shared = 48 << 10,
        },
        {.symbol = "_Z4nonev", .name = "none", .max_threads = 1024, .kinds_known = true},
        {.symbol = "_Z4gemmIfEvv", .name = "gemm<float>", .max_threads = 1, .kinds_known = true},
        {.symbol = "_Z4gemmIdEvv", .name = "gemm<double>", .max_threads = 1, .kinds_known = true},
};
static Variable variables[] = {{"table", 0x5000, 64}};
static Image image = {
        .cu = &fake_driver,
        .functions = functions,
        .n_functions = 5,
        .variables = variables,
        .has_variables = true,
        .n_variables = 1,
};

/* Another, of a built-in reduction and its wide form. */
static FunctionParameter sum_parameters[] = {
        {GPUQ__V1__KIND__POINTER, 8},
        {GPUQ__V1__KIND__POINTER, 8},
        {GPUQ__V1__KIND__I64, 8},
        {GPUQ__V1__KIND__POINTER, 8},
};
static Need sum_needs[] = {
        {.element = 4, .n_fixed = 1, .n_lengths = 1, .lengths = {2}},
        {.element = 4, .n_fixed = 1},
        {0},
};
static Function wide_sum = {
        .name = "sum_f32",
        .parameters = sum_parameters,
        .n_parameters = 4,
        .max_threads = WIDE_THREADS,
};
static Function sum = {
        .symbol = "sum_f32",
        .name = "sum_f32",
        .parameters = sum_parameters,
        .n_parameters = 3,
        .needs = sum_needs,
        .kinds_known = true,
        .max_threads = 1024,
        .dynamic_shared = 48 << 10,
        .wide = &wide_sum,
};
static Image builtin = {.cu = &fake_driver, .functions = &sum, .n_functions = 1};

/* ---- a job of one operation ------------------------------------------------------------------- */

static const ProgramBuffer buffers[] = {
        {100, 256, true}, {200, 256, false}, {64, 6, true}, {UINT64_C(1) << 40, 256, false}};

static Failure failure;

static int build_many(const char *kernel, Gpuq__V1__Operation **list, size_t n,
                      Program **ret_program) {
        Gpuq__V1__Operations operations = GPUQ__V1__OPERATIONS__INIT;
        bool is_sum = strcmp(kernel, "sum_f32") == 0;
        ProgramKernel kernels[] = {{kernel, is_sum ? &builtin : &image}};
        uint8_t packed[65536];
        ProgramInput input = {packed, 0, buffers, is_sum ? 4 : 3, kernels, 1};

        operations.operations = list;
        operations.n_operations = n;
        assert_true(gpuq__v1__operations__get_packed_size(&operations) <= sizeof(packed));
        input.n_operations = gpuq__v1__operations__pack(&operations, packed);
        failure_clear(&failure);
        return program_new(&input, &context, ret_program, &failure);
}

static int build(const char *kernel, Gpuq__V1__Operation *operation, Program **ret_program) {
        return build_many(kernel, &operation, 1, ret_program);
}

static void assert_refused(const char *kernel, Gpuq__V1__Operation *operation, const char *text) {
        Program *program = NULL;

        assert_int_equal(build(kernel, operation, &program), FAILURE_E_SET);
        assert_null(program);
        assert_string_equal(failure.text, text);
        failure_clear(&failure);
}

static void assert_taken(const char *kernel, Gpuq__V1__Operation *operation) {
        Program *program = NULL;
        int r = build(kernel, operation, &program);

        if (r)
                fail_msg("refused: %s", failure.text);
        program_unref(program);
}

typedef struct Call {
        Gpuq__V1__Argument arguments[4], *pointers[4];
        uint8_t scalars[4][64];
        Gpuq__V1__Launch launch;
        Gpuq__V1__Operation operation;
} Call;

static void call_scalar(Call *call, size_t i, Gpuq__V1__Kind kind, size_t n) {
        call->arguments[i].value_case = GPUQ__V1__ARGUMENT__VALUE_SCALAR;
        call->arguments[i].scalar.data = call->scalars[i];
        call->arguments[i].scalar.len = n;
        call->arguments[i].kind = kind;
}

static void call_buffer(Call *call, size_t i, uint32_t buffer) {
        call->arguments[i].value_case = GPUQ__V1__ARGUMENT__VALUE_BUFFER;
        call->arguments[i].buffer = buffer;
}

static void call_init(Call *call, size_t n_arguments) {
        memset(call, 0, sizeof(*call));
        gpuq__v1__launch__init(&call->launch);
        gpuq__v1__operation__init(&call->operation);
        for (size_t i = 0; i < 4; ++i) {
                gpuq__v1__argument__init(&call->arguments[i]);
                call->pointers[i] = &call->arguments[i];
                memset(call->scalars[i], (int)(0x10 * (i + 1)), sizeof(call->scalars[i]));
        }
        call->launch.arguments = call->pointers;
        call->launch.n_arguments = n_arguments;
        call->operation.what_case = GPUQ__V1__OPERATION__WHAT_LAUNCH;
        call->operation.launch = &call->launch;
}

/* add_f32(pointer, word, f32, i64), right in every way */
static void call_init_add(Call *call) {
        call_init(call, 4);
        call_buffer(call, 0, 0);
        call_buffer(call, 1, 1);
        call_scalar(call, 2, GPUQ__V1__KIND__F32, 4);
        call_scalar(call, 3, GPUQ__V1__KIND__I64, 8);
        call->launch.grid_x = 10;
        call->launch.block_x = 256;
}

/* ---- arguments ------------------------------------------------------------------------------------ */

static void right_launch_has_its_values_in_place(void **state) {
        Program *program = NULL;
        const ProgramLaunch *launch;
        Call call;

        call_init_add(&call);
        assert_int_equal(build("add_f32", &call.operation, &program), 0);
        assert_int_equal(program->n_steps, 1);
        launch = &program->steps[0].launch;
        assert_ptr_equal(launch->function, &functions[0]);
        assert_int_equal(launch->grid[0], 10);
        assert_int_equal(launch->grid[1], 1);
        assert_int_equal(launch->block[0], 256);

        program->addresses[0] = 0xabc;
        program->addresses[1] = 0xdef;
        assert_int_equal(*(CUdeviceptr *)launch->values[0], 0xabc);
        assert_int_equal(*(CUdeviceptr *)launch->values[1], 0xdef);
        assert_memory_equal(launch->values[2], call.scalars[2], 4);
        assert_memory_equal(launch->values[3], call.scalars[3], 8);
        assert_int_equal((uintptr_t)launch->values[3] % 16, 0);
        program_unref(program);
}

static void wrong_number_of_arguments_is_told(void **state) {
        Call call;

        call_init_add(&call);
        call.launch.n_arguments = 3;
        assert_refused("add_f32", &call.operation, "kernel add_f32 takes 4 arguments, not 3");
        call.launch.n_arguments = 1;
        assert_refused("none", &call.operation, "kernel none takes 0 arguments, not 1");
}

static void wrong_kind_of_argument_names_what_is_wanted_and_given(void **state) {
        Call call;

        call_init_add(&call);
        call_scalar(&call, 2, GPUQ__V1__KIND__I32, 4);
        assert_refused("add_f32", &call.operation, "argument 3 of add_f32 must be f32, not i32");
        call_buffer(&call, 2, 0);
        assert_refused("add_f32", &call.operation,
                       "argument 3 of add_f32 must be f32, not a buffer");

        call_init_add(&call);
        call_scalar(&call, 0, GPUQ__V1__KIND__I64, 8);
        assert_refused("add_f32", &call.operation,
                       "argument 1 of add_f32 must be a buffer, not i64");
        call_init_add(&call);
        call_scalar(&call, 1, GPUQ__V1__KIND__F64, 8);
        assert_refused("add_f32", &call.operation,
                       "argument 2 of add_f32 must be a buffer or i64, not f64");
        call_init_add(&call);
        call.arguments[3].value_case = GPUQ__V1__ARGUMENT__VALUE__NOT_SET;
        assert_refused("add_f32", &call.operation,
                       "argument 4 of add_f32 must be i64, not nothing");
}

static void a_word_takes_a_buffer_or_an_integer(void **state) {
        Call call;

        call_init_add(&call);
        call_scalar(&call, 1, GPUQ__V1__KIND__I64, 8);
        assert_taken("add_f32", &call.operation);
        call_scalar(&call, 1, GPUQ__V1__KIND__BYTES, 8);
        assert_taken("add_f32", &call.operation);
}

static void wrong_size_of_argument_is_told(void **state) {
        Call call;

        call_init_add(&call);
        call_scalar(&call, 2, GPUQ__V1__KIND__F32, 8);
        assert_refused("add_f32", &call.operation,
                       "argument 3 of add_f32 must be f32, not 8 bytes");

        call_init(&call, 3);
        call_buffer(&call, 0, 0);
        call_scalar(&call, 1, GPUQ__V1__KIND__F32, 4);
        call_scalar(&call, 2, GPUQ__V1__KIND__BYTES, 40);
        assert_taken("opaque", &call.operation);
        call_scalar(&call, 1, GPUQ__V1__KIND__F64, 8);
        assert_refused("opaque", &call.operation,
                       "argument 2 of opaque must be 4 bytes, not 8 bytes (this module records "
                       "sizes of parameters, not their types)");
}

static void buffer_that_the_job_does_not_have_is_told(void **state) {
        Call call;

        call_init_add(&call);
        call_buffer(&call, 0, 3);
        assert_refused("add_f32", &call.operation,
                       "argument 1 of add_f32: buffer 4 does not exist: the job has 3");
}

/* ---- wide forms ---------------------------------------------------------------------------------- */

static void call_init_sum(Call *call, uint64_t n) {
        call_init(call, 3);
        call_buffer(call, 0, 3);
        call_buffer(call, 1, 0);
        call_scalar(call, 2, GPUQ__V1__KIND__I64, 8);
        memcpy(call->scalars[2], &n, sizeof(n));
        call->launch.grid_x = 1;
        call->launch.block_x = 1024;
}

/* A launch of so many numbers: how many blocks it gets, 0 if it is the kernel's own. */
static unsigned count_wide_blocks(Call *call) {
        Program *program = NULL;
        const ProgramLaunch *launch;
        unsigned n = 0;

        assert_int_equal(build("sum_f32", &call->operation, &program), 0);
        launch = program_only_launch(program);
        assert_int_equal(program->is_wide, launch->function == &wide_sum);
        if (program->is_wide) {
                n = launch->grid[0];
                assert_int_equal(launch->block[0], WIDE_THREADS);
                assert_ptr_equal(launch->values[0], &program->addresses[3]);
                assert_memory_equal(launch->values[2], call->scalars[2], 8);
                assert_ptr_equal(launch->values[3], &program->wide);
        } else {
                assert_ptr_equal(launch->function, &sum);
                assert_int_equal(launch->block[0], 1024);
        }
        program_unref(program);
        return n;
}

static unsigned wide_blocks(uint64_t n) {
        Call call;

        call_init_sum(&call, n);
        return count_wide_blocks(&call);
}

static void a_reduction_of_many_numbers_gets_a_block_for_each_part(void **state) {
        assert_int_equal(wide_blocks(0), 0);
        assert_int_equal(wide_blocks(1), 0);
        assert_int_equal(wide_blocks(WIDE_ONE_PART), 0);
        assert_int_equal(wide_blocks(WIDE_ONE_PART + 1), 3);
        assert_int_equal(wide_blocks(10 * WIDE_PART), 10);
        assert_int_equal(wide_blocks(10000000), 306);
        assert_int_equal(wide_blocks(WIDE_PART * WIDE_PARTS_MAX), WIDE_PARTS_MAX);
        assert_int_equal(wide_blocks(WIDE_PART * WIDE_PARTS_MAX + 1), WIDE_PARTS_MAX / 2 + 1);
        assert_int_equal(wide_blocks(100000000), 1526);
}

static void there_are_never_more_parts_than_their_memory_holds(void **state) {
        for (uint64_t n = 1; n < UINT64_C(1) << 62; n += n / 3 + 1)
                assert_in_range(wide_parts(n), 1, WIDE_PARTS_MAX);
        assert_in_range(wide_parts(UINT64_MAX), 1, WIDE_PARTS_MAX);
}

static void what_asks_for_clusters_or_cooperation_stays_as_it_is(void **state) {
        Call call;

        call_init_sum(&call, 1000000);
        call.launch.cooperative = true;
        assert_int_equal(count_wide_blocks(&call), 0);
        call_init_sum(&call, 1000000);
        call.launch.cluster_x = 1;
        assert_int_equal(count_wide_blocks(&call), 0);
}

static void the_geometry_of_a_wide_reduction_is_checked_all_the_same(void **state) {
        Call call;

        call_init_sum(&call, 1000000);
        call.launch.block_x = 2000;
        assert_refused("sum_f32", &call.operation,
                       "kernel sum_f32: block.x is 2000; the device's limit is 1024");
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void unknown_kernel_lists_those_there_are(void **state) {
        Call call;

        call_init(&call, 0);
        assert_refused("sub", &call.operation,
                       "the module has no kernel sub; it has: add_f32, opaque, none, "
                       "gemm<float>, gemm<double>");
        assert_refused("gemm", &call.operation,
                       "kernel name gemm is ambiguous; it may be one of gemm<float>, gemm<double>");
        assert_taken("gemm<float>", &call.operation);
        assert_taken("_Z4nonev", &call.operation);
        call.launch.kernel = 1;
        assert_refused("none", &call.operation, "kernel 2 does not exist: the job has 1");
}

/* ---- geometry -------------------------------------------------------------------------------------------- */

static void sizes_beyond_the_device_name_the_limit(void **state) {
        Call call;

        call_init_add(&call);
        call.launch.grid_y = 70000;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: grid.y is 70000; the device's limit is 65535");
        call_init_add(&call);
        call.launch.block_z = 65;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: block.z is 65; the device's limit is 64");
        call_init_add(&call);
        call.launch.block_y = 8;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: the block has 2048 threads; the device's limit is 1024");
        call.launch.block_y = 4;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: the block has 1024 threads; this kernel's limit is 512");
        call_init_add(&call);
        call.launch.shared_bytes = 232000;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: a block needs 233024 bytes of shared memory (1024 "
                       "static, 232000 dynamic); the device's limit is 232448");
}

static void more_shared_memory_is_asked_for_once(void **state) {
        Call call;

        call_init_add(&call);
        n_attributes_set = 0;
        call.launch.shared_bytes = 40000;
        assert_taken("add_f32", &call.operation);
        assert_int_equal(n_attributes_set, 0);
        call.launch.shared_bytes = 100000;
        assert_taken("add_f32", &call.operation);
        assert_taken("add_f32", &call.operation);
        assert_int_equal(n_attributes_set, 1);
}

static void cooperative_grid_fits_the_device_at_once(void **state) {
        Call call;

        call_init_add(&call);
        call.launch.cooperative = true;
        call.launch.grid_x = 8;
        assert_taken("add_f32", &call.operation);
        call.launch.grid_x = 9;
        assert_refused(
                "add_f32", &call.operation,
                "kernel add_f32: the cooperative grid has 9 x 1 x 1 blocks; the device can run "
                "8 of them at once");
        call.launch.grid_x = 2147483647;
        call.launch.grid_y = 65535;
        call.launch.grid_z = 65535;
        assert_refused(
                "add_f32", &call.operation,
                "kernel add_f32: the cooperative grid has 2147483647 x 65535 x 65535 blocks; "
                "the device can run 8 of them at once");
}

static void cluster_divides_the_grid(void **state) {
        Call call;

        call_init_add(&call);
        call.launch.cluster_x = 2;
        assert_taken("add_f32", &call.operation);
        call.launch.cluster_x = 4;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: grid.x is 10, which is not a multiple of cluster.x, 4");
        call.launch.cluster_x = 3;
        call.launch.cluster_y = 3;
        assert_refused("add_f32", &call.operation,
                       "kernel add_f32: the cluster has 3 x 3 x 1 blocks; the limit is 8 blocks");
        call.launch.cluster_x = call.launch.cluster_y = call.launch.cluster_z = 4294967295u;
        assert_refused(
                "add_f32", &call.operation,
                "kernel add_f32: the cluster has 4294967295 x 4294967295 x 4294967295 blocks; "
                "the limit is 8 blocks");
}

/* ---- copies and fills --------------------------------------------------------------------------------------- */

typedef struct Move {
        Gpuq__V1__Operand to, from;
        Gpuq__V1__Copy copy;
        Gpuq__V1__Operation operation;
} Move;

static void move_init(Move *move, uint32_t to, uint32_t from, uint64_t length) {
        gpuq__v1__operand__init(&move->to);
        gpuq__v1__operand__init(&move->from);
        gpuq__v1__copy__init(&move->copy);
        gpuq__v1__operation__init(&move->operation);
        move->to.what_case = move->from.what_case = GPUQ__V1__OPERAND__WHAT_BUFFER;
        move->to.buffer = to;
        move->from.buffer = from;
        move->copy.to = &move->to;
        move->copy.from = &move->from;
        move->copy.length = length;
        move->operation.what_case = GPUQ__V1__OPERATION__WHAT_COPY;
        move->operation.copy = &move->copy;
}

static void copy_stays_inside_both_ends(void **state) {
        Move move;

        move_init(&move, 0, 1, 100);
        assert_taken("none", &move.operation);
        move.to.offset = 1;
        assert_refused("none", &move.operation,
                       "copy to buffer 1: 100 bytes at offset 1 are outside of its 100 bytes");
        move.to.offset = UINT64_MAX;
        assert_refused("none", &move.operation,
                       "copy to buffer 1: 100 bytes at offset 18446744073709551615 are outside of "
                       "its 100 bytes");
        move_init(&move, 1, 0, 10);
        assert_refused("none", &move.operation,
                       "copy to buffer 2, which the job declared as in (read-only)");
        move_init(&move, 0, 0, 10);
        move.to.offset = 9;
        assert_refused("none", &move.operation, "copy within buffer 1: the ranges overlap");
        move.to.offset = 10;
        assert_taken("none", &move.operation);
        move.copy.from = NULL;
        assert_refused("none", &move.operation, "copy from neither a buffer nor a variable");
}

/* Whoever wrote to it wrote to that of all others who have the same module. */
static void variable_that_is_in_no_list_is_not_written(void **state) {
        Move move;

        move_init(&move, 0, 1, 64);
        move.to.what_case = GPUQ__V1__OPERAND__WHAT_VARIABLE;
        move.to.variable = 0;
        assert_taken("table", &move.operation);
        assert_refused("__hidden", &move.operation,
                       "variable __hidden is a constant and cannot be written");
        image.has_variables = false;
        assert_refused("table", &move.operation, "the module has no variable table; it has: table");
        image.has_variables = true;
}

static void variable_is_found_and_its_range_checked(void **state) {
        Program *program = NULL;
        Move move;

        move_init(&move, 0, 0, 64);
        move.from.what_case = GPUQ__V1__OPERAND__WHAT_VARIABLE;
        assert_int_equal(build("table", &move.operation, &program), 0);
        assert_int_equal(place_address(&program->steps[0].copy.from), 0x5000);
        program_unref(program);

        move.from.offset = 1;
        assert_refused(
                "table", &move.operation,
                "copy from variable table: 64 bytes at offset 1 are outside of its 64 bytes");
        assert_refused("tabel", &move.operation, "the module has no variable tabel; it has: table");
        assert_refused(
                "__hidden", &move.operation,
                "copy from variable __hidden: 64 bytes at offset 1 are outside of its 64 bytes");
}

static void fill_is_aligned_and_inside(void **state) {
        Gpuq__V1__Operation operation = GPUQ__V1__OPERATION__INIT;
        Gpuq__V1__Fill fill = GPUQ__V1__FILL__INIT;
        Program *program = NULL;

        operation.what_case = GPUQ__V1__OPERATION__WHAT_FILL;
        operation.fill = &fill;
        fill.length = 100;
        fill.value = 0x12345678;
        fill.width = 3;
        assert_refused("none", &operation, "fill: the value has 3 bytes; it must have 1, 2 or 4");
        fill.width = 4;
        assert_taken("none", &operation);
        fill.length = 98;
        assert_refused("none", &operation,
                       "fill: 98 bytes are not a multiple of the value's 4 bytes");
        fill.length = 4;
        fill.offset = 2;
        assert_refused("none", &operation, "fill of buffer 1: offset 2 is not aligned to 4 bytes");
        fill.offset = 100;
        assert_refused("none", &operation,
                       "fill of buffer 1: 4 bytes at offset 100 are outside of its 100 bytes");
        fill.offset = 0;
        fill.buffer = 2; /* at offset 6 of device memory */
        assert_refused("none", &operation, "fill of buffer 3: offset 0 is not aligned to 4 bytes");

        fill.buffer = 0;
        fill.width = 2;
        assert_int_equal(build("none", &operation, &program), 0);
        assert_int_equal(program->steps[0].fill.value, 0x5678);
        assert_int_equal(program->steps[0].fill.n, 2);
        program_unref(program);
}

/* ---- whole jobs ----------------------------------------------------------------------------------------------- */

static void rubbish_is_refused(void **state) {
        uint8_t rubbish[] = {0xff, 0xff, 0xff, 0xff};
        ProgramInput input = {rubbish, sizeof(rubbish), NULL, 0, NULL, 0};
        Program *program = NULL;

        assert_int_equal(program_new(&input, &context, &program, &failure), FAILURE_E_SET);
        assert_int_equal(failure.code, GPUQ__V1__CODE__E_INVALID);
        failure_clear(&failure);
}

static void the_operation_that_is_wrong_is_named(void **state) {
        Gpuq__V1__Operation *list[3];
        Program *program = NULL;
        Call right, wrong;

        call_init_add(&right);
        call_init_add(&wrong);
        wrong.launch.n_arguments = 2;
        list[0] = list[2] = &right.operation;
        list[1] = &wrong.operation;
        assert_int_equal(build_many("add_f32", list, 3, &program), FAILURE_E_SET);
        assert_string_equal(failure.text, "operation 2: kernel add_f32 takes 4 arguments, not 2");
        failure_clear(&failure);
}

static void a_thousand_operations_are_taken(void **state) {
        static Gpuq__V1__Operation *list[1000];
        Program *program = NULL;
        Call call;

        call_init_add(&call);
        for (size_t i = 0; i < 1000; ++i)
                list[i] = &call.operation;
        assert_int_equal(build_many("add_f32", list, 1000, &program), 0);
        assert_int_equal(program->n_steps, 1000);
        assert_memory_equal(program->steps[999].launch.values[3], call.scalars[3], 8);
        program_unref(program);
}

static uint8_t *shape_of(const Program *program, size_t *ret_n) {
        uint8_t *key = calloc(1, graph_key_room(program) + 1);

        graph_key(program, key);
        *ret_n = graph_key_room(program);
        return key;
}

static bool same_shape(Gpuq__V1__Operation *a, Gpuq__V1__Operation *b) {
        Program *programs[2] = {NULL, NULL};
        uint8_t *keys[2];
        size_t n[2];
        bool same;

        assert_int_equal(build("add_f32", a, &programs[0]), 0);
        assert_int_equal(build("add_f32", b, &programs[1]), 0);
        keys[0] = shape_of(programs[0], &n[0]);
        keys[1] = shape_of(programs[1], &n[1]);
        same = n[0] == n[1] && memcmp(keys[0], keys[1], n[0]) == 0;
        for (unsigned i = 0; i < 2; ++i) {
                free(keys[i]);
                program_unref(programs[i]);
        }
        return same;
}

static void shapes_tell_apart_what_patching_cannot_change(void **state) {
        Call a, b;
        Move move;

        call_init_add(&a);
        call_init_add(&b);
        call_buffer(&b, 0, 2);
        b.scalars[2][0] ^= 1;
        assert_true(same_shape(&a.operation, &b.operation));

        b.launch.grid_x = 11;
        assert_false(same_shape(&a.operation, &b.operation));
        call_init_add(&b);
        b.launch.cooperative = true;
        b.launch.grid_x = a.launch.grid_x = 4;
        assert_false(same_shape(&a.operation, &b.operation));
        call_init_add(&b);
        b.launch.shared_bytes = 16;
        assert_false(same_shape(&a.operation, &b.operation));
        move_init(&move, 0, 1, 10);
        assert_false(same_shape(&a.operation, &move.operation));
}

/* The bytes of two kernels and a launch, and those of one kernel and operations that begin as a kernel would. */
static void programs_tell_kernels_from_operations(void **state) {
        static const ProgramKernel kernels[] = {{"none", &image}, {"none", &image}};
        static Programs programs;
        Gpuq__V1__Operations operations = GPUQ__V1__OPERATIONS__INIT;
        Gpuq__V1__Operation *list;
        Call call;
        uint8_t packed[256];
        size_t n_head = sizeof(Image *) + sizeof("none");
        ProgramInput input = {packed + n_head, 0, buffers, 3, kernels, 2};
        Program *program = NULL;

        call_init(&call, 0);
        list = &call.operation;
        operations.operations = &list;
        operations.n_operations = 1;
        input.n_operations = gpuq__v1__operations__pack(&operations, packed + n_head);
        memcpy(packed, &kernels[1].image, sizeof(Image *));
        memcpy(packed + sizeof(Image *), "none", sizeof("none"));

        assert_int_equal(programs_init(&programs, (Context *)&context), 0);
        assert_int_equal(programs_make(&programs, &input, &program, &failure), 0);
        assert_int_equal(program->number, 1);
        assert_int_equal(program->n_buffers, 3);
        program_unref(program);
        program = programs_find(&programs, &input);
        assert_non_null(program);
        program_unref(program);

        input = (ProgramInput){packed, input.n_operations + n_head, buffers, 3, kernels, 1};
        assert_null(programs_find(&programs, &input));
        programs_clear(&programs);
        bump_free(programs.bump);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(right_launch_has_its_values_in_place),
                cmocka_unit_test(wrong_number_of_arguments_is_told),
                cmocka_unit_test(wrong_kind_of_argument_names_what_is_wanted_and_given),
                cmocka_unit_test(a_word_takes_a_buffer_or_an_integer),
                cmocka_unit_test(wrong_size_of_argument_is_told),
                cmocka_unit_test(buffer_that_the_job_does_not_have_is_told),
                cmocka_unit_test(a_reduction_of_many_numbers_gets_a_block_for_each_part),
                cmocka_unit_test(there_are_never_more_parts_than_their_memory_holds),
                cmocka_unit_test(what_asks_for_clusters_or_cooperation_stays_as_it_is),
                cmocka_unit_test(the_geometry_of_a_wide_reduction_is_checked_all_the_same),
                cmocka_unit_test(unknown_kernel_lists_those_there_are),
                cmocka_unit_test(sizes_beyond_the_device_name_the_limit),
                cmocka_unit_test(more_shared_memory_is_asked_for_once),
                cmocka_unit_test(cooperative_grid_fits_the_device_at_once),
                cmocka_unit_test(cluster_divides_the_grid),
                cmocka_unit_test(copy_stays_inside_both_ends),
                cmocka_unit_test(variable_is_found_and_its_range_checked),
                cmocka_unit_test(variable_that_is_in_no_list_is_not_written),
                cmocka_unit_test(programs_tell_kernels_from_operations),
                cmocka_unit_test(fill_is_aligned_and_inside),
                cmocka_unit_test(rubbish_is_refused),
                cmocka_unit_test(the_operation_that_is_wrong_is_named),
                cmocka_unit_test(a_thousand_operations_are_taken),
                cmocka_unit_test(shapes_tell_apart_what_patching_cannot_change),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}

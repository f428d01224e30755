/* SPDX-License-Identifier: Apache-2.0 */
#include "run-options.h"

#include <string.h>

#include "number.h"

#define RUN_LABEL_MAX 64  /* gpuq.h's limit */
#define RUN_NAME_MAX  256 /* bytes of a module's name, by the protocol */

enum {
        RUN_GRID = VERB_OWN,
        RUN_BLOCK,
        RUN_CLUSTER,
        RUN_SHARED,
        RUN_COOPERATIVE,
        RUN_PRIORITY,
        RUN_TIMEOUT,
        RUN_LABEL,
        RUN_DEVICE,
        RUN_DEFINE,
        RUN_UNDEFINE,
        RUN_STD,
        RUN_FAST_MATH,
        RUN_REGISTERS,
        RUN_LINE_INFO,
        RUN_FMAD,
        RUN_FTZ,
        RUN_PREC_DIV,
        RUN_PREC_SQRT,
        RUN_INT128,
        RUN_DETACH,
        RUN_CHECK,
};

const char run_option_shorts[] = "D:U:I:Gq";
const struct option run_option_table[] = {
        {"grid", required_argument, NULL, RUN_GRID},
        {"block", required_argument, NULL, RUN_BLOCK},
        {"cluster", required_argument, NULL, RUN_CLUSTER},
        {"shared", required_argument, NULL, RUN_SHARED},
        {"cooperative", no_argument, NULL, RUN_COOPERATIVE},
        {"priority", required_argument, NULL, RUN_PRIORITY},
        {"timeout", required_argument, NULL, RUN_TIMEOUT},
        {"label", required_argument, NULL, RUN_LABEL},
        {"device", required_argument, NULL, RUN_DEVICE},
        {"define", required_argument, NULL, 'D'},
        {"define-macro", required_argument, NULL, RUN_DEFINE},
        {"undefine", required_argument, NULL, 'U'},
        {"undefine-macro", required_argument, NULL, RUN_UNDEFINE},
        {"std", required_argument, NULL, RUN_STD},
        {"use_fast_math", no_argument, NULL, RUN_FAST_MATH},
        {"include-path", required_argument, NULL, 'I'},
        {"maxrregcount", required_argument, NULL, RUN_REGISTERS},
        {"fmad", required_argument, NULL, RUN_FMAD},
        {"ftz", required_argument, NULL, RUN_FTZ},
        {"prec-div", required_argument, NULL, RUN_PREC_DIV},
        {"prec-sqrt", required_argument, NULL, RUN_PREC_SQRT},
        {"device-int128", no_argument, NULL, RUN_INT128},
        {"generate-line-info", no_argument, NULL, RUN_LINE_INFO},
        {"lineinfo", no_argument, NULL, RUN_LINE_INFO},
        {"device-debug", no_argument, NULL, 'G'},
        {"check", no_argument, NULL, RUN_CHECK},
        {"detach", no_argument, NULL, RUN_DETACH},
        {"quiet", no_argument, NULL, 'q'},
        VERB_OPTIONS,
};
const char run_option_help[] =
        "FILE is CUDA C++ source (.cu), OpenCL C (.cl), PTX (.ptx), a cubin (.cubin), a fatbin\n"
        "(.fatbin), or the word builtin for the kernels of `gpuq kernels'. KERNEL may be an\n"
        "instance of a template, such as 'sum<float, 256>'. library:matmul A B C, library:fft IN\n"
        "OUT (fft2, fft3, ifft, ifft2, ifft3), library:scan IN OUT (exclusive_scan), library:sort\n"
        "KEYS SORTED [VALUES MOVED] (sort_descending) and library:random_uniform OUT SEED\n"
        "[OFFSET] (random_normal, random_bits) run library operations.\n"
        "Each ARG is one argument of the kernel:\n"
        "  in:FILE                an input array from a NumPy file (.npy)\n"
        "  inout:FILE             the same; the result is written back to the file\n"
        "  out:FILE:DTYPE:N[,M...]  a new array, filled with zeros, such as out:y.npy:float64:100\n"
        "  TYPE:VALUE             a scalar: i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 bool\n"
        "  null                   a null pointer\n"
        "  local:BYTES            memory for a __local argument of OpenCL C\n"
        "\n"
        "      --grid X[,Y[,Z]]   blocks; default: one thread per element of the largest array\n"
        "      --block X[,Y[,Z]]  threads in a block; default: 256 or the kernel's maximum\n"
        "      --cluster X[,Y[,Z]]  blocks in a cluster\n"
        "      --shared BYTES     dynamic shared memory per block; accepts K and M\n"
        "      --cooperative      launch cooperatively: all blocks are resident at once\n"
        "      --priority N       priority among your jobs, -100 (last) to 100 (first)\n"
        "      --timeout S        fail after S seconds of running; default: the daemon's\n"
        "      --label TEXT       label for `gpuq queue'; at most 64 bytes\n"
        "      --device N         run on this device\n"
        "  -D, --define NAME[=VALUE]  define a macro (source only)\n"
        "  -U, --undefine NAME    undefine a macro (source only)\n"
        "      --std STANDARD     C++ standard, such as c++17 (source only)\n"
        "      --use_fast_math    use faster, less exact functions (source only)\n"
        "      --fmad true|false  join a product and a sum into one operation (source only)\n"
        "      --ftz true|false   take denormal numbers as 0 (source only)\n"
        "      --prec-div true|false, --prec-sqrt true|false  exact quotients, exact square roots\n"
        "                         (source only)\n"
        "      --device-int128    let kernels use __int128 (source only)\n"
        "  -I, --include-path DIR  a folder of headers; that of FILE is the last one\n"
        "      --maxrregcount N   registers of a thread at most (source and PTX; not on the CPU)\n"
        "      --lineinfo         keep line numbers, for profilers (not on the CPU)\n"
        "  -G, --device-debug     compile for a debugger (not on the CPU)\n"
        "      --check            fail at the first access outside of the arguments, or read of\n"
        "                         what nobody wrote, and name it\n"
        "      --detach           print the job's id and exit; `gpuq fetch' writes its outputs\n"
        "  -q, --quiet            do not print timings\n"
        "nvcc's spellings work, too: --define-macro NAME[=VALUE], --undefine-macro NAME,\n"
        "-maxrregcount=32 with one dash, --generate-line-info for --lineinfo.\n";

static int option_dims(Cli *cli, const char *name, unsigned dims[3]) {
        if (number_dims(optarg, dims) < 0)
                return cli_option(cli, name, "X[,Y[,Z]], each from 1 to 4294967295");
        return 0;
}

static int option_shared(Cli *cli, RunOptions *options) {
        uint64_t bytes;

        if (number_bytes(optarg, UINT32_MAX, &bytes) < 0)
                return cli_option(cli, "--shared", "a number of bytes, such as 4096 or 48K");
        options->config.shared_bytes = (unsigned)bytes;
        return 0;
}

static int option_priority(Cli *cli, RunOptions *options) {
        int64_t priority;

        if (number_signed(optarg, -100, 100, &priority) < 0)
                return cli_option(cli, "--priority", "-100 to 100");
        options->priority = (int)priority;
        return 0;
}

static int option_timeout(Cli *cli, RunOptions *options) {
        if (number_ms(optarg, &options->timeout_ms) < 0)
                return cli_option(cli, "--timeout", "seconds above 0, such as 2.5");
        return 0;
}

static int option_label(Cli *cli, RunOptions *options) {
        if (strlen(optarg) > RUN_LABEL_MAX)
                return cli_option(cli, "--label", "at most 64 bytes");
        options->label = optarg;
        return 0;
}

static int option_compiler(Cli *cli, RunOptions *options, const char *flag, const char *value) {
        char **compiler;

        /* One more element for the NULL at the end. */
        compiler = reallocarray(options->compiler, options->n_compiler + 2, sizeof(*compiler));
        if (!compiler)
                return cli_no_memory(cli);
        options->compiler = compiler;

        if (asprintf(&compiler[options->n_compiler], "%s%s", flag, value) < 0) {
                compiler[options->n_compiler] = NULL;
                return cli_no_memory(cli);
        }
        compiler[++options->n_compiler] = NULL;
        return 0;
}

static int option_switch(Cli *cli, RunOptions *options, const char *name) {
        char flag[16];

        if (strcmp(optarg, "true") != 0 && strcmp(optarg, "false") != 0)
                return cli_option(cli, name, "true or false");
        snprintf(flag, sizeof(flag), "%s=", name);
        return option_compiler(cli, options, flag, optarg);
}

static int option_read(Cli *cli, RunOptions *options, int option) {
        switch (option) {
                case RUN_GRID:
                        return option_dims(cli, "--grid", options->config.grid);
                case RUN_BLOCK:
                        return option_dims(cli, "--block", options->config.block);
                case RUN_CLUSTER:
                        return option_dims(cli, "--cluster", options->config.cluster);
                case RUN_SHARED:
                        return option_shared(cli, options);
                case RUN_COOPERATIVE:
                        options->config.cooperative = true;
                        return 0;
                case RUN_PRIORITY:
                        return option_priority(cli, options);
                case RUN_TIMEOUT:
                        return option_timeout(cli, options);
                case RUN_LABEL:
                        return option_label(cli, options);
                case RUN_DEVICE:
                        return cli_device(cli, &options->device);
                case 'D':
                case RUN_DEFINE:
                        return option_compiler(cli, options, "-D", optarg);
                case 'U':
                case RUN_UNDEFINE:
                        return option_compiler(cli, options, "-U", optarg);
                case RUN_STD:
                        return option_compiler(cli, options, "-std=", optarg);
                case RUN_FAST_MATH:
                        return option_compiler(cli, options, "--use_fast_math", "");
                case 'I':
                        return option_compiler(cli, options, "-I", optarg);
                case RUN_REGISTERS:
                        return option_compiler(cli, options, "-maxrregcount=", optarg);
                case RUN_LINE_INFO:
                        return option_compiler(cli, options, "-lineinfo", "");
                case RUN_FMAD:
                        return option_switch(cli, options, "--fmad");
                case RUN_FTZ:
                        return option_switch(cli, options, "--ftz");
                case RUN_PREC_DIV:
                        return option_switch(cli, options, "--prec-div");
                case RUN_PREC_SQRT:
                        return option_switch(cli, options, "--prec-sqrt");
                case RUN_INT128:
                        return option_compiler(cli, options, "--device-int128", "");
                case 'G':
                        return option_compiler(cli, options, "-G", "");
                case RUN_CHECK:
                        options->check = true;
                        return 0;
                case RUN_DETACH:
                        options->detach = true;
                        return 0;
                default:
                        options->quiet = true;
                        return 0;
        }
}

/* The last colon that is not half of a C++ `::'. */
static const char *target_colon(const char *text) {
        for (const char *p = text + strlen(text); p-- > text;)
                if (*p == ':' && p[1] != ':' && (p == text || p[-1] != ':'))
                        return p;
        return NULL;
}

/* What stands beside the file, its quoted includes find, as with every compiler. */
int run_options_add_folder(Cli *cli, RunOptions *options) {
        const char *slash = strrchr(options->file, '/');
        _cleanup_(freep) char *folder = NULL;

        folder = slash ? strndup(options->file, (size_t)(slash - options->file) + 1) : strdup(".");
        return folder ? option_compiler(cli, options, "-I", folder) : cli_no_memory(cli);
}

static int target_read(Cli *cli, RunOptions *options, const char *text) {
        const char *colon = target_colon(text);

        if (!colon || colon == text || !colon[1])
                return cli_usage(
                        cli, "`%s': expected FILE:KERNEL, such as add.cu:add or builtin:add_f32",
                        text);

        options->kernel = colon + 1;
        options->is_library = strncmp(text, "library:", colon + 1 - text) == 0;
        if (options->is_library || strncmp(text, "builtin:", colon + 1 - text) == 0) {
                if (options->n_compiler)
                        return cli_usage(cli,
                                         "`%s' applies to source files, not to built-in kernels",
                                         options->compiler[0]);
                return 0;
        }

        options->file = strndup(text, (size_t)(colon - text));
        return options->file ? run_options_add_folder(cli, options) : cli_no_memory(cli);
}

static int arguments_read(Cli *cli, RunOptions *options, char **words, size_t n_words) {
        int r;

        options->arguments = calloc(n_words + 1, sizeof(*options->arguments));
        if (!options->arguments)
                return cli_no_memory(cli);

        for (size_t i = 0; i < n_words; i++) {
                r = argument_parse(words[i], (unsigned)i + 1, &cli->problem,
                                   &options->arguments[i]);
                if (r)
                        return r;
                options->n_arguments++;
        }
        return 0;
}

int run_options_read(Cli *cli, int argc, char **argv, RunOptions *options) {
        int option, r;

        *options = (RunOptions){.device = -1};
        while ((r = verb_next(cli, argc, argv, &option)) > 0) {
                r = option_read(cli, options, option);
                if (r)
                        return r;
        }
        if (r < 0)
                return r;

        if (optind == argc)
                return cli_usage(cli, "expected FILE:KERNEL");
        r = target_read(cli, options, argv[optind]);
        if (r)
                return r;
        return arguments_read(cli, options, argv + optind + 1, (size_t)(argc - optind - 1));
}

void run_options_clear(RunOptions *options) {
        for (size_t i = 0; i < options->n_compiler; i++)
                free(options->compiler[i]);
        for (size_t i = 0; i < options->n_arguments; i++)
                argument_clear(&options->arguments[i]);
        free(options->compiler);
        free(options->arguments);
        free(options->file);
        *options = (RunOptions){};
}

gpuq_format run_options_format(const RunOptions *options) {
        static const struct {
                const char *ending;
                gpuq_format format;
        } endings[] = {
                {".cu", GPUQ_FORMAT_SOURCE},     {".cl", GPUQ_FORMAT_OPENCL},
                {".ptx", GPUQ_FORMAT_PTX},       {".cubin", GPUQ_FORMAT_CUBIN},
                {".fatbin", GPUQ_FORMAT_FATBIN},
        };
        const char *dot = strrchr(options->file, '.');

        for (size_t i = 0; dot && i < ARRAY_SIZE(endings); i++)
                if (strcmp(endings[i].ending, dot) == 0)
                        return endings[i].format;
        return GPUQ_FORMAT_AUTO;
}

/* The end of a long path says more than its beginning. */
const char *run_options_module_name(const RunOptions *options) {
        const char *name = run_options_source(options);

        return strlen(name) > RUN_NAME_MAX ? name + strlen(name) - RUN_NAME_MAX : name;
}

const char *run_options_source(const RunOptions *options) {
        return options->is_library ? "library" : options->file ? options->file : "builtin";
}

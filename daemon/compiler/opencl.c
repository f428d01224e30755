/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL
 *
 * OpenCL C to PTX by clang and libclc, which has OpenCL's built-in functions as bitcode. Work-items
 * are threads, work-groups are blocks.
 *
 * The host chooses the size of a __local argument. Clang makes it a pointer to shared memory, but a
 * host cannot know where in shared memory a launch's dynamic part begins. So the argument is an
 * offset in that part, to which the PTX adds the address.
 */

#include "compiler/opencl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compiler/headers.h"
#include "compiler/options.h"
#include "compiler/process.h"

#define ARGUMENTS_MAX 320u /* with a folder for each option of a client */
#define LOCAL         "gpuq_local_memory"

/* No access is moved over a call of this function: gpuq_device.h says why clang would do it. */
#define NO_MOVES      "__asm__ volatile(\"\" ::: \"memory\"); "
#define ORDERED(name) "-D" name "(...)=({ " NO_MOVES name "(__VA_ARGS__); " NO_MOVES "})"

/* libclc 14 lacks both. A launch always has three axes, and no offset. */
#define WORK_DIM      "-Dget_work_dim()=(get_global_size(2) > 1 ? 3u : get_global_size(1) > 1 ? 2u : 1u)"
#define GLOBAL_OFFSET "-Dget_global_offset(axis)=((void)(axis), (size_t)0)"

/* Debian, Ubuntu, Fedora. */
static const char *const libraries[] = {
        "/usr/lib/clc/nvptx64--nvidiacl.bc",
        "/usr/share/clc/nvptx64--nvidiacl.bc",
        "/usr/lib64/clc/nvptx64--nvidiacl.bc",
};

const char *opencl_library(void) {
        for (size_t i = 0; i < ARRAY_SIZE(libraries); i++)
                if (access(libraries[i], R_OK) == 0)
                        return libraries[i];
        return NULL;
}

/* ---- local memory ---------------------------------------------------------------- */

typedef struct Rewrite {
        FILE *out;
        const char *names[OPENCL_LOCALS_MAX]; /* of the entry's __local parameters, as "[name]" */
        size_t n_names;
        size_t n_lengths[OPENCL_LOCALS_MAX];
} Rewrite;

/* "\t.param .u64 .ptr .shared .align 4 scale_param_2," Return: whether there is room for it. */
static bool note_parameter(Rewrite *rewrite, const char *line, size_t n_line) {
        const char *end = line + n_line, *name;

        if (!memmem(line, n_line, ".ptr .shared", strlen(".ptr .shared")))
                return true;
        if (rewrite->n_names == OPENCL_LOCALS_MAX)
                return false;

        while (end > line && (end[-1] == ',' || end[-1] == ' '))
                end--;
        for (name = end; name > line && name[-1] != ' '; name--)
                ;
        rewrite->names[rewrite->n_names] = name;
        rewrite->n_lengths[rewrite->n_names++] = (size_t)(end - name);
        return true;
}

static bool names_local(const Rewrite *rewrite, const char *line, size_t n_line) {
        for (size_t i = 0; i < rewrite->n_names; i++) {
                size_t n = rewrite->n_lengths[i];
                const char *found = memmem(line, n_line, rewrite->names[i], n);

                if (found && found > line && found[-1] == '[' && found[n] == ']')
                        return true;
        }
        return false;
}

/* "\tld.param.u64 \t%rd6, [scale_param_2];" Return: whether it is such a line. */
static bool write_sum(const Rewrite *rewrite, const char *line, size_t n_line) {
        const char *end = memchr(line, ',', n_line), *start = memchr(line, '%', n_line);

        if (!memmem(line, n_line, "ld.param.u64", strlen("ld.param.u64")) || !start || !end ||
            start > end)
                return false;
        fprintf(rewrite->out, "\tadd.s64 \t%.*s, %.*s, %%gpuq_local;\n", (int)(end - start), start,
                (int)(end - start), start);
        return true;
}

static bool starts_with(const char *line, size_t n_line, const char *prefix) {
        return n_line >= strlen(prefix) && !memcmp(line, prefix, strlen(prefix));
}

/* Constant memory is what a host cannot fill for a kernel's argument, so all of it is global memory. */
static void write_line(FILE *f, const char *line, size_t n_line) {
        static const char word[] = ".const";
        const char *end = line + n_line;

        while (line < end) {
                const char *found = memmem(line, (size_t)(end - line), word, strlen(word));
                const char *behind = found ? found + strlen(word) : end;
                bool is_whole = found && (behind == end || strchr(". \t", *behind));

                if (!found) {
                        fwrite(line, 1, (size_t)(end - line), f);
                        break;
                }
                fwrite(line, 1, (size_t)(found - line), f);
                fputs(is_whole ? ".global" : word, f);
                line = behind;
        }
        fputc('\n', f);
}

/* ".global .align 4 .u32 counter;", with what may stand before it. */
static bool is_variable(const char *line, size_t n_line) {
        const char *found = memmem(line, n_line, ".global ", strlen(".global "));

        return found && *line == '.' && !memmem(line, n_line, "(", 1);
}

/* Return: 0, OPENCL_E_LOCAL or OPENCL_E_VARIABLE. */
static int rewrite_line(Rewrite *rewrite, const char *line, size_t n_line) {
        if (is_variable(line, n_line))
                return OPENCL_E_VARIABLE;
        if (starts_with(line, n_line, ".target"))
                n_line = MIN(n_line,
                             strcspn(line, ",")); /* no textures, so their mode does not matter */
        if (memmem(line, n_line, ".entry ", strlen(".entry ")))
                rewrite->n_names = 0;
        write_line(rewrite->out, line, n_line);
        if (starts_with(line, n_line, ".address_size"))
                fputs(".extern .shared .align 16 .b8 " LOCAL "[];\n", rewrite->out);
        if (starts_with(line, n_line, "\t.param"))
                return note_parameter(rewrite, line, n_line) ? 0 : OPENCL_E_LOCAL;
        if (starts_with(line, n_line, "{") && rewrite->n_names)
                fputs("\t.reg .b64 \t%gpuq_local;\n\tmov.u64 \t%gpuq_local, " LOCAL ";\n",
                      rewrite->out);
        if (names_local(rewrite, line, n_line) && !write_sum(rewrite, line, n_line))
                return OPENCL_E_LOCAL;
        return 0;
}

int opencl_rewrite(const char *text, char **ret_text, size_t *ret_n_text) {
        _cleanup_(freep) char *written = NULL;
        Rewrite rewrite = {};
        size_t n_written;
        int r = 0;

        rewrite.out = open_memstream(&written, &n_written);
        if (!rewrite.out)
                return -ENOMEM;
        for (const char *line = text; *line && r == 0;) {
                size_t n_line = strcspn(line, "\n");

                r = rewrite_line(&rewrite, line, n_line);
                line += n_line + (line[n_line] == '\n');
        }
        if (fclose(rewrite.out) != 0)
                return -ENOMEM;
        if (r)
                return r;

        *ret_text = TAKE_PTR(written);
        *ret_n_text = n_written;
        return 0;
}

void opencl_hide_spaces(char *text, size_t n_text) {
        static const char words[] = ".ptr .shared";
        char *found = text;

        while ((found = memmem(found, (size_t)(text + n_text - found), words, strlen(words)))) {
                found += strlen(".ptr ");
                memset(found, ' ', strlen(".shared"));
        }
}

/* ---- the compiler ------------------------------------------------------------------ */

typedef struct OpenCl {
        char *program;
        char *source;
        char *ptx;
} OpenCl;

static void opencl_finish(OpenCl *opencl) {
        free(opencl->program);
        free(opencl->source);
        free(opencl->ptx);
}

static int run(const OpenCl *opencl, const Request *request, const char *library,
               char **ret_output) {
        const char *argv[ARGUMENTS_MAX] = {
                opencl->program,
                "-x",
                "cl",
                "-target",
                "nvptx64-unknown-nvcl",
                "-nostdlibinc",
                "-S",
                "-O3",
                "-Wno-linker-warnings",
                "-Xclang",
                "-finclude-default-header",
                "-Xclang",
                "-target-cpu",
                "-Xclang",
                "sm_60",
                "-Xclang",
                "-target-feature",
                "-Xclang",
                "+ptx63",
                "-Xclang",
                "-mlink-builtin-bitcode",
                "-Xclang",
                library,
                /* libclc 14 makes of these what clang cannot translate */
                "-Dnative_sin=sin",
                "-Dnative_cos=cos",
                "-Dnative_tan=tan",
                "-Dnative_exp=exp",
                "-Dnative_exp2=exp2",
                "-Dnative_log=log",
                "-Dnative_log2=log2",
                "-Dnative_powr=powr",
                WORK_DIM,
                GLOBAL_OFFSET,
                ORDERED("barrier"),
                ORDERED("work_group_barrier"),
                ORDERED("mem_fence"),
                ORDERED("read_mem_fence"),
                ORDERED("write_mem_fence"),
                "-o",
                opencl->ptx,
                opencl->source,
        };
        _cleanup_(headers_free_optionsp) char **folders = NULL;
        size_t n = 0;
        int r;

        r = headers_options(request, &folders);
        if (r < 0)
                return r;

        while (argv[n])
                n++;
        for (char **folder = folders; *folder; folder++)
                argv[n++] = *folder;
        /* There are fewer that differ. */
        for (size_t i = 0; i < request->n_options && n < ARGUMENTS_MAX - 4; i++)
                if (options_is_opencl(request->options[i]))
                        argv[n++] = request->options[i];
        /* Later versions of DWARF have .file lines that PTX does not have. */
        if (request->checked) {
                argv[n++] = "-gdwarf-2";
                argv[n++] = "-gline-directives-only";
        }
        if (options_fast_math(request->options, request->n_options))
                argv[n++] = "-cl-fast-relaxed-math";
        return process_run(request, argv, ret_output);
}

static int take_ptx(const Request *request, Result *result, const OpenCl *opencl, Ptx *ret_ptx) {
        _cleanup_(freep) char *text = NULL;
        size_t n_text;
        int r;

        r = backend_read_file(opencl->ptx, &text, &n_text);
        if (r < 0)
                return r;
        r = opencl_rewrite(text, &ret_ptx->text, &ret_ptx->n_text);
        if (r == OPENCL_E_LOCAL)
                return result_fail(result, COMPILED_FAILED,
                                   "%s: a kernel has more than %u __local arguments, or its PTX "
                                   "uses one in an unknown way",
                                   request->name, OPENCL_LOCALS_MAX);
        if (r == OPENCL_E_VARIABLE)
                return result_fail(result, COMPILED_FAILED,
                                   "%s: a variable outside of all functions must be __constant",
                                   request->name);
        return r;
}

int opencl_compile(const Request *request, Result *result, Ptx *ret_ptx) {
        static const char *const programs[] = {"clang", NULL};
        _cleanup_(opencl_finish) OpenCl opencl = {};
        _cleanup_(freep) char *output = NULL;
        const char *library = opencl_library();
        int r;

        r = process_find(programs, &opencl.program);
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == -ENOENT || !library)
                return result_fail(
                        result, COMPILED_NO_COMPILER, "cannot compile OpenCL C: install %s",
                        library ? "clang" : "clang and its libclc-NN (libclc-14 on Debian 12)");

        opencl.source = request_path(request->work, "source.cl");
        opencl.ptx = request_path(request->work, "module.ptx");
        if (!opencl.source || !opencl.ptx)
                return -ENOMEM;
        r = backend_write_source(request, opencl.source);
        if (r == 0)
                r = run(&opencl, request, library, &output);
        if (r < 0)
                return r;
        if (r > 0)
                return result_fail(result, COMPILED_FAILED, "%s", output);

        result->signature->is_opencl = true;
        r = result_add_log(result, output);
        return r < 0 ? r : take_ptx(request, result, &opencl, ret_ptx);
}

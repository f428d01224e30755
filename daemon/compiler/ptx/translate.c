/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate
 *
 * The frame around instructions: variables, functions, and the image's table of entries.
 */

#include "compiler/ptx/translate.h"

#include <string.h>

#include "compiler/ptx/translator.h"

#define LOCAL_MAX  (128u << 10) /* bytes of a function; a thread has a stack of 256 KiB */
#define SHARED_MAX (1u << 20)   /* bytes of static shared memory of a module */

/* ---- variables ------------------------------------------------------------------------ */

static bool is_printed(const PtxVariable *variable) {
        return variable->space == PTX_GLOBAL || variable->space == PTX_CONST;
}

/* Static variables first, then those that lie in dynamic shared memory, all at its start. */
static void place_shared(Translator *t) {
        uint64_t end = 0;

        for (size_t i = 0; i < t->module->n_variables; i++) {
                const PtxVariable *variable = &t->module->variables[i];

                if (variable->space != PTX_SHARED || variable->n_elements == 0)
                        continue;
                end = (end + variable->align - 1) / variable->align * variable->align;
                t->shared[i] = (uint32_t)end;
                end += ptx_variable_size(variable);
                if (end > SHARED_MAX) {
                        translator_fail(t, variable->line,
                                        "the module has more than 1 MiB of shared memory");
                        return;
                }
        }
        t->n_shared = (uint32_t)(end + 1023) / 1024 * 1024;
        for (size_t i = 0; i < t->module->n_variables; i++)
                if (t->module->variables[i].space == PTX_SHARED &&
                    t->module->variables[i].n_elements == 0) {
                        t->shared[i] = t->n_shared;
                        t->has_dynamic = true;
                }
        fprintf(t->out,
                "#define PTX_STATIC_SHARED %u\n#define PTX_RESERVED_AT (%u%s)\n"
                "#define PTX_WINDOW_BYTES (PTX_RESERVED_AT + PTX_RESERVED_BYTES)\n"
                "static __thread unsigned char ptx_window[PTX_WINDOW_BYTES + 16] "
                "__attribute__((aligned(1024)));\n#define PTX_WINDOW ptx_window\n",
                t->n_shared, t->n_shared, t->has_dynamic ? " + GPUQ_CPU_SHARED_MAX" : "");
}

static unsigned element_size(const PtxVariable *variable) {
        return ptx_type_size(variable->type) == 16 ? 8 : ptx_type_size(variable->type);
}

static void print_head(Translator *t, size_t i, bool is_visible) {
        const PtxVariable *variable = &t->module->variables[i];
        unsigned size = element_size(variable);
        size_t n = ptx_variable_size(variable) / size;

        fprintf(t->out, "%suint%u_t v%zu[%zu]", is_visible ? "" : "static ", 8 * size, i,
                MAX(n, 1));
        if (is_visible)
                fprintf(t->out, " __asm__(GPUQ_CPU_VARIABLE \"%.*s\")", (int)variable->name.n,
                        variable->name.s);
        fprintf(t->out, " __attribute__((aligned(%zu)))", MAX(variable->align, 1));
}

static void print_initial(Translator *t, const PtxVariable *variable, const PtxInitial *initial) {
        const PtxVariable *target = &t->module->variables[initial->index];

        if (!initial->is_address) {
                fprintf(t->out, "0x%llxull, ", (unsigned long long)initial->bits);
        } else if (element_size(variable) != 8 || (!initial->is_function && !is_printed(target))) {
                translator_fail(t, variable->line,
                                "the CPU driver does not support the value of %.*s",
                                (int)MIN(variable->name.n, 200), variable->name.s);
        } else if (initial->is_function && !t->module->functions[initial->index].is_defined) {
                const PtxFunction *function = &t->module->functions[initial->index];

                translator_fail(t, variable->line, "there is no function \"%.*s\"",
                                (int)MIN(function->name.n, 200), function->name.s);
        } else {
                fprintf(t->out, "(uint64_t)%s%u + 0x%llxull, ", initial->is_function ? "f" : "v",
                        initial->index, (unsigned long long)initial->offset);
        }
}

static void check_variable(Translator *t, const PtxVariable *variable) {
        if (variable->is_extern || variable->n_elements == 0)
                translator_fail(t, variable->line,
                                "variable %.*s is .extern, but nothing defines it",
                                (int)MIN(variable->name.n, 200), variable->name.s);
}

static void print_variables(Translator *t, bool (*is_visible)(const PtxVariable *variable)) {
        for (size_t i = 0; i < t->module->n_variables && !t->r; i++) {
                const PtxVariable *variable = &t->module->variables[i];
                bool visible = is_printed(variable) && is_visible(variable);

                if (!is_printed(variable))
                        continue;
                check_variable(t, variable);
                print_head(t, i, visible);
                fputs(";\n", t->out);
        }
}

static void print_values(Translator *t, bool (*is_visible)(const PtxVariable *variable)) {
        for (size_t i = 0; i < t->module->n_variables && !t->r; i++) {
                const PtxVariable *variable = &t->module->variables[i];

                if (!is_printed(variable) || variable->n_initials == 0)
                        continue;
                fprintf(t->out, "%suint%u_t v%zu[%zu] = {", is_visible(variable) ? "" : "static ",
                        8 * element_size(variable), i,
                        ptx_variable_size(variable) / element_size(variable));
                for (size_t k = 0; k < variable->n_initials; k++)
                        print_initial(t, variable, &variable->initials[k]);
                fputs("};\n", t->out);
        }
}

/* ---- instructions ------------------------------------------------------------------------- */

/* "ld.global.L1::evict_last.u32" is four parts and the name. */
static void split_opcode(Translator *t) {
        PtxToken opcode = t->in->opcode;
        size_t at = 0;

        t->n_parts = 0;
        memset(t->taken, 0, sizeof(t->taken));
        while (at <= opcode.n && t->n_parts < TRANSLATOR_PARTS_MAX) {
                const char *dot = memchr(opcode.s + at, '.', opcode.n - at);
                size_t end = dot ? (size_t)(dot - opcode.s) : opcode.n;

                t->parts[t->n_parts++] = (PtxToken){opcode.s + at, end - at};
                at = end + 1;
        }
        if (at <= opcode.n)
                translator_refuse(t, "%s", "");
}

static void print_instruction(Translator *t) {
        char name[16];
        bool known;

        split_opcode(t);
        t->takes_wider = false;
        snprintf(name, sizeof(name), "%.*s", (int)MIN(t->parts[0].n, sizeof(name) - 1),
                 t->parts[0].s);
        if (t->in->is_guarded) {
                fputs("if (", t->out);
                translator_value(t, &t->in->guard, PTX_PRED);
                fputs(") ", t->out);
        }
        fputs("{ ", t->out);
        known = translate_memory(t, name) || translate_data(t, name) ||
                translate_arithmetic(t, name) || translate_control(t, name) ||
                translate_convert(t, name) || translate_warp(t, name) ||
                translate_matrix(t, name) || translate_wmma(t, name) ||
                translate_mbarrier(t, name) || translate_video(t, name) ||
                translate_texture(t, name);
        fputs(" }\n", t->out);
        if (!known)
                translator_refuse(t, "%s", "");
        for (size_t i = 1; i < t->n_parts; i++)
                if (!t->taken[i])
                        translator_refuse(t, "it does not know .%.*s", (int)MIN(t->parts[i].n, 40),
                                          t->parts[i].s);
}

/* ---- functions --------------------------------------------------------------------------------- */

static void print_signature(Translator *t, size_t i) {
        const PtxFunction *function = &t->module->functions[i];

        fprintf(t->out, "static __attribute__((unused)) int f%zu(const PtxThread *t", i);
        for (size_t k = 0; k < function->n_returns + function->n_params; k++)
                fprintf(t->out, ", unsigned char *a%zu", k);
        fputs(")", t->out);
}

/* Arguments come as addresses. A parameter in a register is copied in, and a result copied out. */
static void print_arguments(Translator *t, const PtxOperand *operands, size_t n, size_t first,
                            bool is_result, bool at_end) {
        for (size_t i = 0; i < n; i++) {
                const PtxOperand *operand = &operands[i];

                if (operand->kind == PTX_VARIABLE && !at_end)
                        fprintf(t->out, "unsigned char *const v%u = a%zu;\n", operand->index,
                                first + i);
                else if (operand->kind == PTX_REGISTER && is_result && at_end)
                        fprintf(t->out, "*(__typeof__(r%u) *)a%zu = r%u;\n", operand->index,
                                first + i, operand->index);
                else if (operand->kind == PTX_REGISTER && !is_result && !at_end)
                        fprintf(t->out, "r%u = *(__typeof__(r%u) *)a%zu;\n", operand->index,
                                operand->index, first + i);
        }
}

static void print_registers(Translator *t) {
        for (size_t i = 0; i < t->function->n_registers; i++) {
                unsigned size = ptx_type_size(t->function->registers[i].type);

                if (size == 16)
                        translator_fail(t, t->function->line,
                                        "the CPU driver does not support registers of 128 bits");
                fprintf(t->out, "uint%u_t r%zu = 0;\n", 8 * MIN(size, 8), i);
        }
}

/* The variables of each function, in the order of the text. */
static void list_variables(Translator *t) {
        for (size_t i = t->module->n_variables; i-- > 0;) {
                const PtxVariable *variable = &t->module->variables[i];

                if (!variable->in_function)
                        continue;
                t->next[i] = t->first[variable->function];
                t->first[variable->function] = (uint32_t)i + 1;
        }
}

static bool is_argument(const PtxFunction *function, size_t variable) {
        for (size_t i = 0; i < function->n_returns; i++)
                if (function->returns[i].kind == PTX_VARIABLE &&
                    function->returns[i].index == variable)
                        return true;
        for (size_t i = 0; i < function->n_params; i++)
                if (function->params[i].kind == PTX_VARIABLE &&
                    function->params[i].index == variable)
                        return true;
        return false;
}

/* Local memory, and the parameters of calls. */
static void print_locals(Translator *t, size_t i) {
        size_t n_bytes = 0;

        for (uint32_t at = t->first[i]; at; at = t->next[at - 1]) {
                const PtxVariable *variable = &t->module->variables[at - 1];

                if (is_printed(variable) || variable->space == PTX_SHARED ||
                    is_argument(t->function, at - 1))
                        continue;
                n_bytes += ptx_variable_size(variable);
                fprintf(t->out, "unsigned char v%u[%zu] __attribute__((aligned(%zu)));\n", at - 1,
                        MAX(ptx_variable_size(variable), 1), MAX(variable->align, 8));
                if (n_bytes > LOCAL_MAX) {
                        translator_fail(t, variable->line,
                                        "the CPU driver has 128 KiB of local memory for a "
                                        "function, and this one needs more");
                        return;
                }
        }
}

static void print_labels(Translator *t, size_t at, size_t *next) {
        const PtxFunction *function = t->function;

        for (; *next < function->n_labels; ++*next) {
                const PtxLabel *label = &function->labels[*next];

                if (!label->is_table && label->at > at)
                        return;
                if (!label->is_table)
                        fprintf(t->out, "L%zu: __attribute__((unused));\n", *next);
        }
}

static void print_function(Translator *t, size_t i) {
        const PtxFunction *function = &t->module->functions[i];
        size_t label = 0;

        t->function = function;
        print_signature(t, i);
        fputs(" {\nuint8_t cc = 0, ignored = 0; char frame;\n", t->out);
        print_registers(t);
        print_arguments(t, function->returns, function->n_returns, 0, true, false);
        print_arguments(t, function->params, function->n_params, function->n_returns, false, false);
        print_locals(t, i);
        for (size_t k = 0; k < function->n_instructions && !t->r; k++) {
                print_labels(t, k, &label);
                t->in = &function->instructions[k];
                print_instruction(t);
        }
        print_labels(t, function->n_instructions, &label);
        fputs("end: __attribute__((unused));\n", t->out);
        print_arguments(t, function->returns, function->n_returns, 0, true, true);
        fputs("return 0;\n}\n", t->out);
}

/* ---- entries --------------------------------------------------------------------------------------- */

/* Sizes and offsets as in a struct. */
static void print_layout(Translator *t, size_t i) {
        const PtxFunction *function = &t->module->functions[i];
        size_t end = 0, align = 0;

        fprintf(t->out, "static const uint32_t sizes%zu[] = {", i);
        for (size_t k = 0; k < function->n_params; k++)
                fprintf(t->out, "%zu, ",
                        ptx_variable_size(&t->module->variables[function->params[k].index]));
        fprintf(t->out, "0};\nstatic const uint32_t offsets%zu[] = {", i);
        for (size_t k = 0; k < function->n_params; k++) {
                const PtxVariable *param = &t->module->variables[function->params[k].index];

                end = (end + param->align - 1) / param->align * param->align;
                fprintf(t->out, "%zu, ", end);
                end += ptx_variable_size(param);
                align = MAX(align, param->align);
        }
        fprintf(t->out, "0};\n#define ALIGN%zu %zu\n", i, align);
}

static void print_threads(Translator *t, size_t i) {
        const PtxFunction *function = &t->module->functions[i];

        print_layout(t, i);
        fprintf(t->out,
                "static void threads%zu(void *const *params) {\n"
                "const PtxParams own = {params, sizes%zu};\nPTX_THREADS(own, f%zu(&thread",
                i, i, i);
        for (size_t k = 0; k < function->n_params; k++)
                fprintf(t->out, ", (unsigned char *)params[%zu]", k);
        fputs("))\n}\n", t->out);
}

static void check_entry(Translator *t, const PtxFunction *function) {
        for (size_t k = 0; k < function->n_params; k++)
                if (function->params[k].kind != PTX_VARIABLE ||
                    t->module->variables[function->params[k].index].n_elements == 0)
                        translator_fail(t, function->line, "a parameter of kernel %.*s has no size",
                                        (int)MIN(function->name.n, 200), function->name.s);
}

static void print_entries(Translator *t) {
        size_t n = 0;

        for (size_t i = 0; i < t->module->n_functions && !t->r; i++)
                if (t->module->functions[i].is_entry && t->module->functions[i].is_defined) {
                        check_entry(t, &t->module->functions[i]);
                        if (!t->r)
                                print_threads(t, i);
                }
        fputs("static const GpuqCpuEntry entries[] = {\n", t->out);
        for (size_t i = 0; i < t->module->n_functions; i++) {
                const PtxFunction *function = &t->module->functions[i];

                if (!function->is_entry || !function->is_defined)
                        continue;
                fprintf(t->out,
                        "{\"%.*s\", threads%zu, sizes%zu, offsets%zu, %zu, ALIGN%zu, %u, {%u, %u, "
                        "%u}},\n",
                        (int)function->name.n, function->name.s, i, i, i, function->n_params, i,
                        function->max_threads, function->block[0], function->block[1],
                        function->block[2]);
                n++;
        }
        fprintf(t->out,
                "{0}};\n__attribute__((visibility(\"default\"), used)) GpuqCpuImage "
                "gpuq_cpu_image = {GPUQ_CPU_IMAGE_VERSION, sizeof(GpuqCpuImage), entries, "
                "entries + %zu, ptx_place, 0};\n",
                n);
}

/* ---- the module -------------------------------------------------------------------------------------- */

static void print_module(Translator *t, bool (*is_visible)(const PtxVariable *variable)) {
        list_variables(t);
        place_shared(t);
        for (size_t i = 0; i < t->module->n_functions; i++)
                if (t->module->functions[i].is_defined) {
                        print_signature(t, i);
                        fputs(";\n", t->out);
                }
        print_variables(t, is_visible);
        print_values(t, is_visible);
        for (size_t i = 0; i < t->module->n_functions && !t->r; i++)
                if (t->module->functions[i].is_defined)
                        print_function(t, i);
        if (!t->r)
                print_entries(t);
}

int ptx_translate(const PtxModule *module, bool (*is_visible)(const PtxVariable *variable),
                  char **ret_source, char **ret_error) {
        _cleanup_(freep) uint32_t *shared = calloc(MAX(module->n_variables, 1), sizeof(*shared));
        _cleanup_(freep) uint32_t *first = calloc(MAX(module->n_functions, 1), sizeof(*first));
        _cleanup_(freep) uint32_t *next = calloc(MAX(module->n_variables, 1), sizeof(*next));
        Translator t = {.module = module, .shared = shared, .first = first, .next = next};
        _cleanup_(freep) char *body = NULL;
        size_t n_body = 0;

        if (!shared || !first || !next)
                return -ENOMEM;
        t.out = open_memstream(&body, &n_body);
        if (!t.out)
                return -ENOMEM;
        print_module(&t, is_visible);
        if (fclose(t.out) != 0 && !t.r)
                t.r = -ENOMEM;
        if (t.r) {
                *ret_error = t.error;
                return t.r;
        }

        /* Only the finished translation shows what the module uses, but the #defines come first. */
        if (asprintf(ret_source, "%s%s%s%s#include \"gpuq_ptx.h\"\n%s",
                     t.prints ? "#define PTX_PRINTS\n" : "",
                     t.uses_library ? "#define PTX_LIBRARY\n" : "",
                     t.uses_textures ? "#define PTX_TEXTURES\n" : "",
                     t.uses_reserved ? "#define PTX_RESERVES\n" : "", body) < 0)
                return -ENOMEM;
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, in PTX, that fenced modules call: whether an access is of the module's own variables, and
 * printf() and assert() with texts of the module alone.
 *
 * A text that is printed could name memory that it does not have: by having no end, or by a conversion
 * of a string. So only those are printed that the module holds whole, and kernels cannot write to them.
 */
#include <string.h>

#include "compiler/fence.h"
#include "compiler/fence_text.h"
#include "compiler/signature.h"

#define GRID_WORDS_BYTES 64 /* of a cooperative launch: where its blocks meet */

/* The rest of a variable with fewer values is zeros. */
static bool has_end(const PtxVariable *variable) {
        const PtxInitial *last = &variable->initials[variable->n_initials - 1];

        return variable->n_initials < variable->n_elements ||
               (last->bits == 0 && !last->is_address);
}

/* Not put there by a compiler, beside the user's variables. */
static bool is_users(const PtxVariable *variable) {
        const SignatureVariable described = {
                .name = variable->name.s,
                .n_name = variable->name.n,
                .has_value = variable->n_initials > 0,
                .is_byte = variable->type == PTX_B8 && variable->n_dimensions == 1 &&
                           variable->n_elements == 1,
        };

        return signature_is_variable(&described);
}

static bool is_text(const PtxVariable *variable) {
        return variable->space == PTX_GLOBAL && variable->type == PTX_B8 &&
               variable->n_dimensions == 1 && variable->n_initials > 0 && has_end(variable) &&
               !is_users(variable);
}

/* "%d", "%-5.2f" and "%%", but not "%s", nor "%5%", behind which a conversion may go on. */
static bool is_format(const PtxVariable *variable) {
        bool is_open = false, is_first = false;

        if (!is_text(variable))
                return false;
        for (size_t i = 0; i < variable->n_initials; i++) {
                int c = (int)(variable->initials[i].bits & 0xff);

                if (is_open && (c == 's' || c == 'S' || c == 'n'))
                        return false;
                if (c == '%' && is_open && !is_first)
                        return false;
                is_first = c == '%' && !is_open;
                if (c == '%')
                        is_open = is_first;
                else if (!strchr("#0123456789.*+- hlqjzt'", c) || c == 0)
                        is_open = false;
        }
        return true;
}

/* ---- own variables ------------------------------------------------------------------------------ */

static void print_inside(FILE *out, size_t n_bytes) {
        fprintf(out,
                "\tsub.s64 %%gpuq_fence_o, %%gpuq_fence_a, %%gpuq_fence_begin;\n"
                "\tadd.s64 %%gpuq_fence_e, %%gpuq_fence_o, %%gpuq_fence_bytes;\n"
                "\tsetp.lt.u64 %%gpuq_fence_p, %%gpuq_fence_o, %zu;\n"
                "\tsetp.le.and.u64 %%gpuq_fence_p, %%gpuq_fence_e, %zu, %%gpuq_fence_p;\n",
                n_bytes, n_bytes);
}

bool fence_may_access(const PtxVariable *variable, CheckKind kind) {
        return kind == CHECK_LOAD || (variable->space == PTX_GLOBAL && is_users(variable));
}

static void print_variable(const FenceText *fence, FILE *out, const PtxVariable *variable) {
        bool is_const = variable->space == PTX_CONST;

        if ((!is_const && variable->space != PTX_GLOBAL) || ptx_variable_size(variable) == 0)
                return;
        fprintf(out,
                "\tmov.u64 %%gpuq_fence_begin, %.*s;\n\tcvta.%s.u64 %%gpuq_fence_begin, "
                "%%gpuq_fence_begin;\n",
                (int)variable->name.n, variable->name.s, is_const ? "const" : "global");
        print_inside(out, ptx_variable_size(variable));
        if (!fence_may_access(variable, CHECK_STORE))
                fputs("\tsetp.eq.and.u32 %gpuq_fence_p, %gpuq_fence_w, 0, %gpuq_fence_p;\n", out);
        fputs("\t@%gpuq_fence_p ret;\n", out);
}

/*
 * The driver sets these registers for each launch, to zeros if it is not cooperative: so
 * grid_group::is_valid() of NVIDIA's headers tells.
 */
static void print_grid_words(FILE *out) {
        fputs("\tmov.u32 %gpuq_fence_x, %envreg1;\n\tmov.u32 %gpuq_fence_y, %envreg2;\n"
              "\tmov.b64 %gpuq_fence_begin, {%gpuq_fence_y, %gpuq_fence_x};\n",
              out);
        print_inside(out, GRID_WORDS_BYTES);
        fputs("\tsetp.ne.and.u64 %gpuq_fence_p, %gpuq_fence_begin, 0, %gpuq_fence_p;\n"
              "\t@%gpuq_fence_p ret;\n",
              out);
}

static void print_own(const FenceText *fence, FILE *out) {
        fputs(".func (.reg .b32 %gpuq_fence_r) gpuq_fence_own(.reg .b64 %gpuq_fence_a, .reg .b32 "
              "%gpuq_fence_n, "
              ".reg .b32 %gpuq_fence_w)\n{\n"
              "\t.reg .pred %gpuq_fence_p;\n"
              "\t.reg .b32 %gpuq_fence_x, %gpuq_fence_y;\n"
              "\t.reg .b64 %gpuq_fence_o, %gpuq_fence_e, %gpuq_fence_begin, %gpuq_fence_bytes;\n"
              "\tcvt.u64.u32 %gpuq_fence_bytes, %gpuq_fence_n;\n"
              "\tmov.u32 %gpuq_fence_r, 1;\n",
              out);
        for (size_t i = 0; i < fence->module->n_variables; i++)
                print_variable(fence, out, &fence->module->variables[i]);
        if (fence->has_grid_words)
                print_grid_words(out);
        fputs("\tmov.u32 %gpuq_fence_r, 0;\n\tret;\n}\n", out);
}

/* ---- what is printed -------------------------------------------------------------------------------- */

/* Its result is 1 if the address is that of such a variable. */
static void print_finder(const FenceText *fence, FILE *out, const char *name,
                         bool (*is_one)(const PtxVariable *)) {
        fprintf(out,
                ".func (.reg .b32 %%gpuq_fence_r) %s(.reg .b64 %%gpuq_fence_a)\n{\n"
                "\t.reg .pred %%gpuq_fence_p;\n\t.reg .b64 %%gpuq_fence_o;\n\tmov.u32 "
                "%%gpuq_fence_r, 1;\n",
                name);
        for (size_t i = 0; i < fence->module->n_variables; i++) {
                const PtxVariable *variable = &fence->module->variables[i];

                if (is_one(variable))
                        fprintf(out,
                                "\tmov.u64 %%gpuq_fence_o, %.*s;\n"
                                "\tcvta.global.u64 %%gpuq_fence_o, %%gpuq_fence_o;\n"
                                "\tsetp.eq.u64 %%gpuq_fence_p, %%gpuq_fence_o, "
                                "%%gpuq_fence_a;\n\t@%%gpuq_fence_p ret;\n",
                                (int)variable->name.n, variable->name.s);
        }
        fputs("\tmov.u32 %gpuq_fence_r, 0;\n\tret;\n}\n", out);
}

/* The arguments are on the thread's stack, or there are none. */
static const char vprintf_body[] =
        ".func (.param .b32 gpuq_fence_r) gpuq_fence_vprintf(.param .b64 gpuq_fence_0, "
        ".param .b64 gpuq_fence_1)\n{\n"
        "\t.reg .pred %gpuq_fence_p, %gpuq_fence_q;\n\t.reg .b32 %gpuq_fence_x;\n\t.reg .b64 "
        "%gpuq_fence_f, %gpuq_fence_a;\n"
        "\tld.param.b64 %gpuq_fence_f, [gpuq_fence_0];\n\tld.param.b64 %gpuq_fence_a, "
        "[gpuq_fence_1];\n"
        "\tcall (%gpuq_fence_x), gpuq_fence_format, (%gpuq_fence_f);\n"
        "\tsetp.eq.u64 %gpuq_fence_p, %gpuq_fence_a, 0;\n"
        "\tisspacep.local %gpuq_fence_q, %gpuq_fence_a;\n"
        "\tor.pred %gpuq_fence_p, %gpuq_fence_p, %gpuq_fence_q;\n"
        "\tsetp.ne.and.u32 %gpuq_fence_p, %gpuq_fence_x, 0, %gpuq_fence_p;\n"
        "\tmov.u32 %gpuq_fence_x, -1;\n"
        "\t@!%gpuq_fence_p bra gpuq_fence_end;\n"
        "\t{\n\t.param .b64 gpuq_fence_f;\n\tst.param.b64 [gpuq_fence_f], %gpuq_fence_f;\n"
        "\t.param .b64 gpuq_fence_a;\n\tst.param.b64 [gpuq_fence_a], %gpuq_fence_a;\n"
        "\t.param .b32 gpuq_fence_n;\n"
        "\tcall.uni (gpuq_fence_n), vprintf, (gpuq_fence_f, gpuq_fence_a);\n"
        "\tld.param.b32 %gpuq_fence_x, [gpuq_fence_n];\n\t}\n"
        "gpuq_fence_end:\n"
        "\tst.param.b32 [gpuq_fence_r], %gpuq_fence_x;\n\tret;\n}\n";

static const char vprintf_head[] =
        ".func (.param .b32 gpuq_fence_r) gpuq_fence_vprintf(.param .b64 gpuq_fence_0, "
        ".param .b64 gpuq_fence_1);\n";

/* An assertion that fails ends the context: what else could the kernel go on with? */
static const char assert_body[] =
        ".func gpuq_fence_assertfail(.param .b64 gpuq_fence_0, .param .b64 gpuq_fence_1, "
        ".param .b32 gpuq_fence_2, .param .b64 gpuq_fence_3, .param .b64 gpuq_fence_4)\n{\n"
        "\t.reg .pred %gpuq_fence_p;\n\t.reg .b32 %gpuq_fence_x, %gpuq_fence_line;\n"
        "\t.reg .b64 %gpuq_fence_0, %gpuq_fence_1, %gpuq_fence_3;\n"
        "\tld.param.b64 %gpuq_fence_0, [gpuq_fence_0];\n\tld.param.b64 %gpuq_fence_1, "
        "[gpuq_fence_1];\n"
        "\tld.param.b32 %gpuq_fence_line, [gpuq_fence_2];\n\tld.param.b64 %gpuq_fence_3, "
        "[gpuq_fence_3];\n"
        "\tcall (%gpuq_fence_x), gpuq_fence_string, (%gpuq_fence_0);\n"
        "\tsetp.eq.u32 %gpuq_fence_p, %gpuq_fence_x, 0;\n"
        "\tcall (%gpuq_fence_x), gpuq_fence_string, (%gpuq_fence_1);\n"
        "\tsetp.eq.or.u32 %gpuq_fence_p, %gpuq_fence_x, 0, %gpuq_fence_p;\n"
        "\tcall (%gpuq_fence_x), gpuq_fence_string, (%gpuq_fence_3);\n"
        "\tsetp.eq.or.u32 %gpuq_fence_p, %gpuq_fence_x, 0, %gpuq_fence_p;\n"
        "\t@%gpuq_fence_p trap;\n"
        "\t{\n\t.param .b64 gpuq_fence_a;\n\tst.param.b64 [gpuq_fence_a], %gpuq_fence_0;\n"
        "\t.param .b64 gpuq_fence_b;\n\tst.param.b64 [gpuq_fence_b], %gpuq_fence_1;\n"
        "\t.param .b32 gpuq_fence_c;\n\tst.param.b32 [gpuq_fence_c], %gpuq_fence_line;\n"
        "\t.param .b64 gpuq_fence_d;\n\tst.param.b64 [gpuq_fence_d], %gpuq_fence_3;\n"
        "\t.param .b64 gpuq_fence_e;\n\tst.param.b64 [gpuq_fence_e], 1;\n"
        "\tcall.uni __assertfail, (gpuq_fence_a, gpuq_fence_b, gpuq_fence_c, gpuq_fence_d, "
        "gpuq_fence_e);\n\t}\n"
        "\tret;\n}\n";

static const char assert_head[] =
        ".func gpuq_fence_assertfail(.param .b64 gpuq_fence_0, .param .b64 gpuq_fence_1, "
        ".param .b32 gpuq_fence_2, .param .b64 gpuq_fence_3, .param .b64 gpuq_fence_4);\n";

static bool has_function(const FenceText *fence, const char *name) {
        for (size_t i = 0; i < fence->module->n_functions; i++)
                if (ptx_token_is(fence->module->functions[i].name, name))
                        return true;
        return false;
}

void fence_functions_declare(const FenceText *fence, FILE *out) {
        if (fence->has_variables)
                fputs(".func (.reg .b32 %gpuq_fence_r) gpuq_fence_own(.reg .b64 %gpuq_fence_a, "
                      ".reg .b32 %gpuq_fence_n, .reg .b32 %gpuq_fence_w);\n",
                      out);
        if (has_function(fence, "vprintf"))
                fputs(vprintf_head, out);
        if (has_function(fence, "__assertfail"))
                fputs(assert_head, out);
}

void fence_functions_define(const FenceText *fence, FILE *out) {
        if (fence->has_variables)
                print_own(fence, out);
        if (has_function(fence, "vprintf")) {
                print_finder(fence, out, "gpuq_fence_format", is_format);
                fputs(vprintf_body, out);
        }
        if (has_function(fence, "__assertfail")) {
                print_finder(fence, out, "gpuq_fence_string", is_text);
                fputs(assert_body, out);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fenced accesses
 *
 * A load, store or atomic operation gets a predicate, as this costs less than another address. All
 * threads of a warp run the instructions on matrices together, so there a thread outside ends.
 */
#include <string.h>

#include "compiler/check_access.h"
#include "compiler/fence.h"
#include "compiler/fence_text.h"
#include "util/macro.h"

#define STRIDE_MAX (1u << 24) /* elements from line to line of a matrix */

#define P "%%gpuq_fence_p" /* the address is inside */
#define G "%%gpuq_fence_g" /* the instruction's own predicate, if it has one */
#define Q "%%gpuq_fence_q" /* both */
#define A "%%gpuq_fence_a" /* the address */
#define H "%%gpuq_fence_h" /* what was inside before */
#define T "%%gpuq_fence_t"

static bool is_texture(const PtxInstruction *in) {
        static const char *const names[] = {"tex", "tld4", "suld", "sust", "sured", "txq", "suq"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (ptx_opcode_is(in, names[i]))
                        return true;
        return false;
}

/* A variable's name with an offset inside of it. */
static bool is_own(const FenceText *fence, const CheckAccess *access) {
        const PtxOperand *address = access->address;
        const PtxVariable *variable;
        size_t n_bytes;

        if (address->kind != PTX_VARIABLE || access->length || access->matrix.n_lines > 0 ||
            address->offset < 0)
                return false;
        variable = &fence->module->variables[address->index];
        n_bytes = ptx_variable_size(variable);
        return variable->space == PTX_GLOBAL && fence_may_access(variable, access->kind) &&
               n_bytes >= access->n_bytes && (uint64_t)address->offset <= n_bytes - access->n_bytes;
}

static void refuse_address(FenceText *fence, const PtxInstruction *in) {
        ptx_edits_refuse(&fence->edits, "line %u: the address of %.*s is not understood", in->line,
                         (int)MIN(in->opcode.n, 80), in->opcode.s);
}

size_t fence_find_accesses(FenceText *fence, const PtxFunction *function, const PtxInstruction *in,
                           CheckAccess accesses[CHECK_ACCESSES_MAX]) {
        size_t n, n_kept = 0;

        if (is_texture(in)) {
                ptx_edits_refuse(&fence->edits, "line %u: textures and surfaces cannot be fenced",
                                 in->line);
                return 0;
        }
        if (check_accesses(fence->module, function, in, accesses, &n)) {
                ptx_edits_refuse(&fence->edits, "line %u: what %.*s accesses cannot be fenced",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
                return 0;
        }
        for (size_t i = 0; i < n; i++) {
                if (accesses[i].address->negated)
                        refuse_address(fence, in);
                if (accesses[i].space != PTX_SHARED && !is_own(fence, &accesses[i]))
                        accesses[n_kept++] = accesses[i];
        }
        return n_kept;
}

/* ---- inside or not ---------------------------------------------------------------------------- */

static PtxType register_type(const PtxFunction *function, const PtxOperand *operand) {
        return operand->kind == PTX_REGISTER ? function->registers[operand->index].type : PTX_NONE;
}

static void print_address(FenceText *fence, FILE *out, const PtxFunction *function,
                          const PtxInstruction *in, const PtxOperand *address) {
        int n = (int)address->text.n;
        const char *name = address->text.s;

        if (address->kind == PTX_REGISTER && ptx_type_size(register_type(function, address)) == 8)
                fprintf(out, "\tadd.s64 " A ", %.*s, %lld;\n", n, name, (long long)address->offset);
        else if (address->kind == PTX_VARIABLE)
                fprintf(out,
                        "\tmov.u64 " A ", %.*s;\n\tcvta.global.u64 " A ", " A ";\n"
                        "\tadd.s64 " A ", " A ", %lld;\n",
                        n, name, (long long)address->offset);
        else if (address->kind == PTX_INTEGER)
                fprintf(out, "\tmov.u64 " A ", 0x%llx;\n",
                        (unsigned long long)address->bits + (unsigned long long)address->offset);
        else
                refuse_address(fence, in);
}

/*
 * Of several accesses the lowest, and the highest in the same range, as a range has no holes. The lowest is inside if
 * it is not before the range and the highest is inside, as no range has 2^63 bytes.
 */
static void print_range(FILE *out, unsigned i, int64_t reach, bool is_more) {
        const char *to = i > 0 && reach > 0 ? "%gpuq_fence_q" : "%gpuq_fence_p";
        const char *how = reach > 0 || is_more ? ".and" : i > 0 ? ".or" : "";

        fprintf(out, "\tsub.s64 " T ", " A ", %%gpuq_fence_b%u;\n", i);
        if (reach > 0)
                fprintf(out, "\tsetp.ge%s.s64 %s, " T ", 0%s;\n\tadd.s64 " T ", " T ", %lld;\n",
                        is_more ? ".and" : "", to, is_more ? ", %gpuq_fence_p" : "",
                        (long long)reach);
        fprintf(out, "\tsetp.lt%s.u64 %s, " T ", %%gpuq_fence_n%u%s%s;\n", how, to, i,
                *how ? ", " : "", *how ? to : "");
        if (i > 0 && reach > 0)
                fprintf(out, "\tor.pred " P ", " P ", " Q ";\n");
}

/* @is_more: of one range, and P is to stay false where it is */
static void print_ranges(const FenceText *fence, FILE *out, int64_t reach, bool is_more) {
        fence_print_bounds(fence, out);
        for (unsigned i = 0; i < (fence->is_one_range ? 1 : FENCE_RANGES); i++)
                print_range(out, i, reach, is_more);
}

/* Memory that only the thread's block has, in a window of generic addresses. */
static void print_windows(const FenceText *fence, FILE *out) {
        static const struct {
                const char *space,
                        *maker; /* an instruction without which there are no such addresses */
        } windows[] = {
                {"shared", NULL},
                {"local", NULL},
                {"param", "cvta.param"},
                {"shared::cluster", "mapa"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
                if (!windows[i].maker || ptx_token_has(fence->edits.text, windows[i].maker))
                        fprintf(out,
                                "\tisspacep.%s " Q ", " A ";\n\tor.pred " P ", " P ", " Q ";\n",
                                windows[i].space);
}

/* A call, as there may be many variables; most accesses are of none. y: how many bytes. */
static void print_variables(FILE *out, const CheckAccess *access) {
        fprintf(out,
                "\tmov.u32 %%gpuq_fence_x, 0;\n"
                "\tmov.u32 %%gpuq_fence_w, %d;\n"
                "\t@!" P " call (%%gpuq_fence_x), gpuq_fence_own, (" A
                ", %%gpuq_fence_y, %%gpuq_fence_w);\n"
                "\tsetp.ne.or.u32 " P ", %%gpuq_fence_x, 0, " P ";\n",
                access->kind != CHECK_LOAD);
}

/* @span: what else is compared with it, or NULL */
static void print_compare(const FenceText *fence, FILE *out, const CheckAccess *access,
                          const FenceSpan *span) {
        bool is_more = span && !span->begins_run,
             is_simple = fence->is_one_range && !fence->has_variables;

        if (is_more && !is_simple)
                fprintf(out, "\tmov.pred " H ", " P ";\n");
        print_ranges(fence, out, span ? span->last - span->begin : 0, is_more && is_simple);
        if (access->space == PTX_GENERIC)
                print_windows(fence, out);
        if (fence->has_variables) {
                fprintf(out, "\tmov.u32 %%gpuq_fence_y, %u;\n", access->n_bytes);
                print_variables(out, access);
        }
        if (is_more && !is_simple)
                fprintf(out, "\tand.pred " P ", " P ", " H ";\n");
}

static void print_guard(FILE *out, const PtxInstruction *in) {
        if (in->is_guarded)
                fprintf(out, "\t%s.pred " G ", %.*s;\n", in->guard.negated ? "not" : "mov",
                        (int)in->guard.text.n, in->guard.text.s);
}

/* ---- a predicate ------------------------------------------------------------------------------- */

static void print_zero(FenceText *fence, FILE *out, const PtxFunction *function,
                       const PtxInstruction *in, const PtxOperand *to) {
        unsigned size = ptx_type_size(register_type(function, to));

        if (to->kind == PTX_SINK)
                return;
        if (to->kind == PTX_VECTOR) {
                for (size_t i = 0; i < to->n_elements; i++)
                        print_zero(fence, out, function, in, &to->elements[i]);
        } else if (size == 2 || size == 4 || size == 8) {
                fprintf(out, "\t@" Q " mov.b%u %.*s, 0;\n", 8 * size, (int)to->text.n, to->text.s);
        } else {
                ptx_edits_refuse(&fence->edits, "line %u: the result of %.*s is not understood",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
        }
}

/* What an instruction loads, where it has not run though its own predicate let it. */
static void print_zeros(FenceText *fence, const PtxFunction *function, const PtxInstruction *in) {
        FILE *out = ptx_edit(&fence->edits, in->end, 0);

        fprintf(out, "\n\tnot.pred " Q ", " P ";\n");
        if (in->is_guarded)
                fprintf(out, "\tand.pred " Q ", " Q ", " G ";\n");
        print_zero(fence, out, function, in, &in->operands[0]);
        fputc('\t', out);
}

/* All of a span, as one access. */
static CheckAccess span_access(const FenceSpan *span, const CheckAccess *first,
                               PtxOperand *address) {
        CheckAccess access = *first;

        *address = *first->address;
        address->offset = span->begin;
        access.address = address;
        access.kind = span->kind;
        access.n_bytes = (unsigned)(span->end - span->begin);
        return access;
}

static void print_inside(FenceText *fence, FILE *out, const PtxFunction *function,
                         const PtxInstruction *in, const CheckAccess *access,
                         const FenceSpan *span) {
        PtxOperand address;
        CheckAccess all = span ? span_access(span, access, &address) : *access;

        print_address(fence, out, function, in, all.address);
        print_compare(fence, out, &all, span);
        print_guard(out, in);
        if (!span || span->ends_run)
                fprintf(out, "\t%sand.pred %%gpuq_fence_ok, %%gpuq_fence_ok, " P ";\n",
                        in->is_guarded ? "@%gpuq_fence_g " : "");
}

static void fence_by_predicate(FenceText *fence, const PtxFunction *function,
                               const PtxInstruction *in, const CheckAccess *access) {
        size_t i = (size_t)(in - function->instructions);
        const FenceSpan *span = fence->span_of[i] ? &fence->spans[fence->span_of[i] - 1] : NULL;
        FILE *out = ptx_edit(&fence->edits, in->begin, (size_t)(in->opcode.s - in->begin));

        fputc('\n', out);
        if (span && span->first < i)
                print_guard(out, in);
        else
                print_inside(fence, out, function, in, access, span);
        if (in->is_guarded)
                fprintf(out, "\tand.pred " Q ", " P ", " G ";\n");
        fprintf(out, in->is_guarded ? "\t@" Q " " : "\t@" P " ");
        if (ptx_opcode_is(in, "ld") || ptx_opcode_is(in, "ldu") || ptx_opcode_is(in, "atom"))
                print_zeros(fence, function, in);
}

/* ---- the end of the thread ---------------------------------------------------------------------- */

/* Adds what lies between the first byte and the last one. */
static void print_matrix_end(FILE *out, const CheckMatrix *matrix) {
        const PtxOperand *stride = matrix->stride;

        fprintf(out, "\tmov.u32 %%gpuq_fence_x, %u;\n",
                matrix->n_lines * matrix->n_line_bytes - matrix->element);
        if (stride && stride->kind == PTX_INTEGER)
                fprintf(out, "\tmov.b32 %%gpuq_fence_x, %u;\n", (unsigned)stride->bits);
        else if (stride)
                fprintf(out, "\tmov.b32 %%gpuq_fence_x, %.*s;\n", (int)stride->text.n,
                        stride->text.s);
        fprintf(out, "\tmul.wide.u32 " T ", %%gpuq_fence_x, %u;\n",
                stride ? (matrix->n_lines - 1) * matrix->element : 1);
        fprintf(out, "\tadd.s64 " A ", " A ", " T ";\n");
        if (stride)
                fprintf(out, "\tadd.s64 " A ", " A ", %u;\n",
                        matrix->n_line_bytes - matrix->element);
}

/* First and last element in one range: a range has no holes. */
static void print_matrix(const FenceText *fence, FILE *out, const CheckAccess *access) {
        fprintf(out, "\tmov.b64 %%gpuq_fence_s, " A ";\n");
        print_matrix_end(out, &access->matrix);
        fence_print_bounds(fence, out);
        for (unsigned i = 0; i < (fence->is_one_range ? 1 : FENCE_RANGES); i++)
                fprintf(out,
                        "\tsub.s64 " T ", " A ", %%gpuq_fence_b%u;\n"
                        "\tsetp.lt.u64 " Q ", " T ", %%gpuq_fence_n%u;\n"
                        "\tsub.s64 " T ", %%gpuq_fence_s, %%gpuq_fence_b%u;\n"
                        "\tsetp.lt.and.u64 " Q ", " T ", %%gpuq_fence_n%u, " Q ";\n"
                        "\t%s.pred " P ", %s" Q ";\n",
                        i, i, i, i, i ? "or" : "mov", i ? "%gpuq_fence_p, " : "");
        /* More may be negative to the hardware. */
        if (access->matrix.stride)
                fprintf(out, "\tsetp.lt.and.u32 " P ", %%gpuq_fence_x, %u, " P ";\n", STRIDE_MAX);
        fprintf(out,
                "\tsub.s64 " T ", " A ", %%gpuq_fence_s;\n\tmin.u64 " T ", " T ", 0x7fffffff;\n"
                "\tcvt.u32.u64 %%gpuq_fence_y, " T ";\n"
                "\tadd.u32 %%gpuq_fence_y, %%gpuq_fence_y, %u;\n"
                "\tmov.b64 " A ", %%gpuq_fence_s;\n",
                access->matrix.element);
        if (access->space == PTX_GENERIC)
                print_windows(fence, out);
        if (fence->has_variables)
                print_variables(out, access);
}

static void print_lanes(FILE *out, const CheckAccess *access) {
        if (access->n_lanes >= 32)
                return;
        fprintf(out,
                "\tmov.u32 %%gpuq_fence_x, %%laneid;\n"
                "\tsetp.ge.or.u32 " P ", %%gpuq_fence_x, %u, " P ";\n",
                access->n_lanes);
}

void fence_print_exit(const FenceText *fence, FILE *out, const char *predicate) {
        fence_print_word(fence, out, "f");
        fprintf(out, "\t@!%s st.global.u32 [%%gpuq_fence_f], 1;\n\t@!%s exit;\n", predicate,
                predicate);
}

static void fence_by_exit(FenceText *fence, const PtxFunction *function, const PtxInstruction *in,
                          const CheckAccess *access) {
        FILE *out = ptx_edit(&fence->edits, in->begin, 0);

        fputc('\n', out);
        print_address(fence, out, function, in, access->address);
        if (access->matrix.n_lines > 0)
                print_matrix(fence, out, access);
        else
                print_compare(fence, out, access, NULL);
        print_lanes(out, access);
        print_guard(out, in);
        if (in->is_guarded)
                fprintf(out, "\tnot.pred " G ", " G ";\n\tor.pred " P ", " P ", " G ";\n");
        fence_print_exit(fence, out, "%gpuq_fence_p");
        fputc('\t', out);
}

/* ---- which ---------------------------------------------------------------------------------------- */

static bool takes_predicate(const PtxInstruction *in) {
        static const char *const names[] = {"ld", "ldu", "st", "atom", "red"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (ptx_opcode_is(in, names[i]))
                        return true;
        return ptx_opcode_is(in, "cp") && !ptx_token_has(in->opcode, "mbarrier");
}

void fence_access(FenceText *fence, const PtxFunction *function, const PtxInstruction *in) {
        CheckAccess accesses[CHECK_ACCESSES_MAX];
        size_t n = fence_find_accesses(fence, function, in, accesses);

        if (n > 1)
                ptx_edits_refuse(&fence->edits, "line %u: what %.*s accesses cannot be fenced",
                                 in->line, (int)MIN(in->opcode.n, 80), in->opcode.s);
        else if (n == 1 && takes_predicate(in))
                fence_by_predicate(fence, function, in, &accesses[0]);
        else if (n == 1)
                fence_by_exit(fence, function, in, &accesses[0]);
}

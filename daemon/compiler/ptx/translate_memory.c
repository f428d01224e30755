/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores, atomics, and addresses.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

/* What says how long data stays in which cache; a host has one kind of memory. */
static void take_hints(Translator *t) {
        while (translator_take_one(
                t, "ca cg cs lu cv wb wt nc weak gpu cta sys cluster noftz "
                   "L1::evict_last L1::evict_first L1::no_allocate "
                   "L1::evict_normal L1::evict_unchanged L2::64B L2::128B "
                   "L2::256B L2::cache_hint L2::evict_last L2::evict_first L2::evict_normal "
                   "unified"))
                ;
}

static bool take_order(Translator *t) {
        return translator_take_one(t, "volatile relaxed acquire release acq_rel mmio") != NULL;
}

/* The type that a load has in its function's name: only sizes and signs matter. */
static const char *access_type(PtxType type) {
        switch (ptx_type_size(type)) {
                case 1:
                        return type == PTX_S8 ? "s8" : "u8";
                case 2:
                        return type == PTX_S16 ? "s16" : "u16";
                case 4:
                        return type == PTX_S32 ? "s32" : "u32";
                default:
                        return "u64";
        }
}

static size_t take_vector(Translator *t) {
        return translator_take(t, "v2")   ? 2
               : translator_take(t, "v4") ? 4
               : translator_take(t, "v8") ? 8
                                          : 1;
}

typedef struct Access {
        PtxSpace space;
        PtxType type;
        const char *order; /* in the function's name */
        size_t n;          /* elements */
} Access;

/* Nobody else changes local memory, so a thread that reads it does not wait for anybody. */
static const char *take_access_order(Translator *t, PtxSpace *ret_space) {
        bool is_ordered = take_order(t);

        *ret_space = translator_take_space(t);
        return !is_ordered ? "" : *ret_space == PTX_LOCAL ? "own_" : "volatile_";
}

static Access take_access(Translator *t, const PtxOperand *value) {
        Access access;

        access.order = take_access_order(t, &access.space);
        take_hints(t);
        access.n = take_vector(t);
        access.type = translator_take_type(t);
        if (ptx_type_size(access.type) == 0 || access.type == PTX_PRED || access.type == PTX_B128)
                translator_refuse(t, "%s", "");
        if (access.n != (value->kind == PTX_VECTOR ? value->n_elements : 1))
                translator_refuse(t, "a vector has another size than the instruction");
        return access;
}

static const PtxOperand *element_of(const PtxOperand *value, size_t i) {
        return value->kind == PTX_VECTOR ? &value->elements[i] : value;
}

/* All of a vector is loaded before a register changes, which may be the address. */
static void print_load(Translator *t) {
        const PtxOperand *to = translator_operand(t, 0);
        Access access = take_access(t, to);

        fputs("{ uint64_t at = ", t->out);
        translator_address(t, translator_operand(t, 1), access.space);
        fputs("; ", t->out);
        for (size_t i = 0; i < access.n && !t->r; i++) {
                const PtxOperand *element = element_of(to, i);

                if (element->kind != PTX_SINK && translator_register(t, element) &&
                    ptx_type_size(translator_register(t, element)->type) <
                            ptx_type_size(access.type))
                        translator_refuse(t, "a register is too small");
                translator_begin(t, element, 0);
                fprintf(t->out, "ptx_ld_%s%s(at + %zu); ", access.order, access_type(access.type),
                        i * ptx_type_size(access.type));
        }
        fputs("}", t->out);
}

static void print_store(Translator *t) {
        const PtxOperand *from = translator_operand(t, 1);
        Access access = take_access(t, from);

        t->takes_wider = true;
        fputs("{ uint64_t at = ", t->out);
        translator_address(t, translator_operand(t, 0), access.space);
        fputs("; ", t->out);
        for (size_t i = 0; i < access.n && !t->r; i++) {
                fprintf(t->out, "ptx_st_%s%s(at + %zu, ", access.order, access_type(access.type),
                        i * ptx_type_size(access.type));
                translator_value(t, element_of(from, i), access.type);
                fputs("); ", t->out);
        }
        fputs("}", t->out);
}

/* ---- atomics --------------------------------------------------------------------- */

static const struct {
        const char *operation;
        const char *types;
} atomics[] = {
        {"and", "b32 b64"},
        {"or", "b32 b64"},
        {"xor", "b32 b64"},
        {"exch", "b32 b64"},
        {"cas", "b16 b32 b64"},
        {"add", "u32 s32 u64 s64 f32 f64 f16 f16x2 bf16 bf16x2"},
        {"inc", "u32"},
        {"dec", "u32"},
        {"min", "u32 s32 u64 s64 f16 f16x2 bf16 bf16x2"},
        {"max", "u32 s32 u64 s64 f16 f16x2 bf16 bf16x2"},
};

static const char *take_atomic(Translator *t, PtxType *ret_type) {
        (void)translator_take(t, "noftz");
        for (size_t i = 0; i < ARRAY_SIZE(atomics); i++)
                if (translator_take(t, atomics[i].operation)) {
                        *ret_type = translator_take_type(t);
                        if (translator_has(atomics[i].types, ptx_type_name(*ret_type)))
                                return atomics[i].operation;
                        break;
                }
        translator_refuse(t, "%s", "");
        return "";
}

const char *translator_take_atomic(Translator *t, const char **ret_type) {
        PtxType type = PTX_NONE;
        const char *operation = take_atomic(t, &type);

        *ret_type = ptx_type_name(type);
        return operation;
}

/* "ptx_atom_add_f32(at + 4, ...)" of element @i. */
static void print_atomic_call(Translator *t, const char *operation, PtxType type, size_t first,
                              size_t i) {
        fprintf(t->out, "ptx_atom_%s_%s(at + %zu", operation, ptx_type_name(type),
                i * ptx_type_size(type));
        for (size_t k = first; k < t->in->n_operands; k++) {
                fputs(", ", t->out);
                translator_value(t, element_of(translator_operand(t, k), i), type);
        }
        fputs("); ", t->out);
}

static bool has_elements(const PtxOperand *operand, size_t n) {
        return n == 1 ? operand->kind != PTX_VECTOR
                      : operand->kind == PTX_VECTOR && operand->n_elements == n;
}

static void print_atomic(Translator *t, bool has_result) {
        PtxSpace space;
        PtxType type = PTX_NONE;
        const char *operation;
        size_t at = has_result, n, n_values;

        (void)take_order(t);
        space = translator_take_space(t);
        take_hints(t);
        n = take_vector(t);
        operation = take_atomic(t, &type);
        n_values = strcmp(operation, "cas") == 0 ? 2 : 1;
        if (t->in->n_operands != at + 1 + n_values ||
            !has_elements(translator_operand(t, at + 1), n) ||
            (has_result && translator_operand(t, 0)->kind != PTX_SINK &&
             !has_elements(translator_operand(t, 0), n))) {
                translator_refuse(t, "it has %zu operands", t->in->n_operands);
                return;
        }
        fputs("{ uint64_t at = ", t->out);
        translator_address(t, translator_operand(t, at), space);
        fputs("; ", t->out);
        for (size_t i = 0; i < n; i++) {
                fprintf(t->out, "uint64_t x%zu = ", i);
                print_atomic_call(t, operation, type, at + 1, i);
        }
        for (size_t i = 0; i < n && has_result; i++) {
                translator_begin(t, element_of(translator_operand(t, 0), i), ptx_type_size(type));
                fprintf(t->out, "x%zu; ", i);
        }
        fputs("}", t->out);
}

/* ---- addresses ----------------------------------------------------------------------- */

static void print_cvta(Translator *t) {
        bool to = translator_take(t, "to");
        PtxSpace space = translator_take_space(t);
        PtxType type = translator_take_type(t);
        const char *function = space == PTX_LOCAL && !to     ? "ptx_near("
                               : space == PTX_CLUSTER && to  ? "PTX_TO_CLUSTER("
                               : space == PTX_CLUSTER && !to ? "ptx_cluster_at(t, "
                                                             : "(";
        const char *change = space == PTX_LOCAL && !to    ? ", (uint64_t)&frame"
                             : space == PTX_SHARED && to  ? " - (uint64_t)t->window"
                             : space == PTX_SHARED && !to ? " + (uint64_t)t->window"
                                                          : "";

        if (type != PTX_U64 || space == PTX_GENERIC)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 8);
        fputs(function, t->out);
        translator_value(t, translator_operand(t, 1), PTX_U64);
        fprintf(t->out, "%s);", change);
}

/* The same place in another block of the cluster: a generic address, or one of .shared::cluster. */
static void print_mapa(Translator *t) {
        bool is_shared = translator_take(t, "shared::cluster");
        PtxType type = translator_take_type(t);

        if ((type != PTX_U64 && (type != PTX_U32 || !is_shared)) || t->in->n_operands != 3) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), ptx_type_size(type));
        fputs(is_shared ? "((" : "(uint64_t)gpuq_cpu_image.runtime->shared_of((void *)", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs(is_shared ? " & 0xffffff) | (uint64_t)(1 + " : ", ", t->out);
        translator_value(t, translator_operand(t, 2), PTX_U32);
        fputs(is_shared ? ") << 24);" : ");", t->out);
}

static void print_rank(Translator *t) {
        bool is_shared = translator_take_space(t) == PTX_CLUSTER;
        PtxType type = translator_take_type(t);

        if (type != PTX_U64 && (type != PTX_U32 || !is_shared))
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 4);
        fputs(is_shared ? "PTX_RANK_OF(ptx_cluster_at(t, " : "PTX_RANK_OF((", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs("));", t->out);
}

/* Whether "at" is in a variable of .const. */
static void print_is_constant(Translator *t) {
        fputs("(0", t->out);
        for (size_t i = 0; i < t->module->n_variables; i++)
                if (t->module->variables[i].space == PTX_CONST)
                        fprintf(t->out, " || at - (uint64_t)v%zu < %zu", i,
                                ptx_variable_size(&t->module->variables[i]));
        fputs(")", t->out);
}

/* Local is the whole stack of the thread. Global is what is nothing else. */
static void print_isspacep(Translator *t) {
        PtxSpace space = translator_take_space(t);

        if (space == PTX_GENERIC) {
                translator_refuse(t, "%s", "");
                return;
        }
        fputs("{ uint64_t at = ", t->out);
        translator_value(t, translator_operand(t, 1), PTX_U64);
        fputs("; ", t->out);
        translator_begin(t, translator_operand(t, 0), 1);
        if (space == PTX_SHARED)
                fputs("at - (uint64_t)t->window < PTX_WINDOW_BYTES", t->out);
        else if (space == PTX_CLUSTER)
                fputs("PTX_RANK_OF(at) < ptx_cluster_n(t)", t->out);
        else if (space == PTX_PARAM)
                fputs("ptx_is_param(t, at)", t->out);
        else if (space == PTX_LOCAL)
                fputs("gpuq_cpu_image.runtime->is_local(at)", t->out);
        else if (space == PTX_GLOBAL)
                fputs("!gpuq_cpu_image.runtime->is_local(at) && !ptx_is_param(t, at) && "
                      "PTX_RANK_OF(at) == ptx_cluster_n(t) && !",
                      t->out);
        if (space == PTX_CONST || space == PTX_GLOBAL)
                print_is_constant(t);
        fputs("; }", t->out);
}

/* ---- asynchronous copies --------------------------------------------------------------- */

/* cp.async.mbarrier.arrive{.noinc}: without .noinc the barrier expects one arrival more first. */
static void print_async_arrival(Translator *t) {
        bool counts = translator_take(t, "noinc");
        PtxSpace space = translator_take_space(t);

        if (!translator_take(t, "arrive") || translator_take_type(t) != PTX_B64)
                translator_refuse(t, "%s", "");
        if (counts) {
                fputs("(void)ptx_mbarrier_arrive(", t->out);
                translator_address(t, translator_operand(t, 0), space);
                fputs(", 1, 0)", t->out);
        }
        fputs(";", t->out);
}

/* The copy is done at once, so that waiting for it has nothing to do. */
static void print_async(Translator *t) {
        size_t n = t->in->n_operands;

        if (!translator_take(t, "async"))
                translator_refuse(t, "%s", "");
        if (translate_bulk(t, translator_take(t, "reduce")))
                return;
        if (translator_take_one(t, "commit_group wait_group wait_all")) {
                fputs(";", t->out);
                return;
        }
        if (translator_take(t, "mbarrier")) {
                print_async_arrival(t);
                return;
        }
        if (!translator_take_one(t, "ca cg") ||
            !(translator_take(t, "shared") || translator_take(t, "shared::cta")) ||
            !translator_take(t, "global") || n < 3 || n > 4) {
                translator_refuse(t, "%s", "");
                return;
        }
        (void)translator_take_one(t, "L2::64B L2::128B L2::256B");
        fputs("ptx_copy(", t->out);
        translator_address(t, translator_operand(t, 0), PTX_SHARED);
        fputs(", ", t->out);
        translator_address(t, translator_operand(t, 1), PTX_GLOBAL);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 2), PTX_U32);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, n - 1), PTX_U32);
        fputs(");", t->out);
}

/* What it makes is used by hints only. */
static void print_policy(Translator *t) {
        if (!translator_take(t, "fractional") || translator_take_type(t) != PTX_B64)
                translator_refuse(t, "%s", "");
        while (translator_take_one(t, "L2::evict_last L2::evict_first L2::evict_normal "
                                      "L2::evict_unchanged"))
                ;
        translator_begin(t, translator_operand(t, 0), 8);
        fputs("0;", t->out);
}

static bool is_prefetch(Translator *t, const char *name) {
        if (!translator_has("prefetch prefetchu discard applypriority", name))
                return false;

        (void)translator_take_space(t);
        (void)translator_take_one(t, "L1 L2 L2::evict_last L2::evict_normal");
        fputs(";", t->out);
        return true;
}

bool translate_memory(Translator *t, const char *name) {
        if ((strcmp(name, "st") == 0 || strcmp(name, "red") == 0) &&
            translate_async_store(t, *name == 'r'))
                return true;
        if (strcmp(name, "ld") == 0 || strcmp(name, "ldu") == 0)
                print_load(t);
        else if (strcmp(name, "st") == 0)
                print_store(t);
        else if (strcmp(name, "atom") == 0 || strcmp(name, "red") == 0)
                print_atomic(t, *name == 'a');
        else if (strcmp(name, "cvta") == 0)
                print_cvta(t);
        else if (strcmp(name, "mapa") == 0)
                print_mapa(t);
        else if (strcmp(name, "getctarank") == 0)
                print_rank(t);
        else if (strcmp(name, "isspacep") == 0)
                print_isspacep(t);
        else if (strcmp(name, "cp") == 0)
                print_async(t);
        else if (strcmp(name, "createpolicy") == 0)
                print_policy(t);
        else
                return is_prefetch(t, name);
        return true;
}

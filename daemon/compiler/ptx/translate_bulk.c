/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk copies, and stores that count for an mbarrier. Each is done at once, so groups of them have
 * nothing to wait for. Copies of tensors are refused: their descriptions are the GPU's own.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

#define COUNTS "mbarrier::complete_tx::bytes"

/* "ptx_mbarrier_expect(BARRIER, -(int64_t)n);" */
static void print_complete(Translator *t, size_t barrier, const char *n) {
        fputs("ptx_mbarrier_expect(", t->out);
        translator_address(t, translator_operand(t, barrier), PTX_CLUSTER);
        fprintf(t->out, ", -(int64_t)%s); ", n);
}

/* Of a bulk copy, in the order of the opcode: where to, and where from. */
static bool take_direction(Translator *t, PtxSpace *ret_to, PtxSpace *ret_from) {
        PtxToken to = {}, from = {};

        for (size_t i = 1; i < t->n_parts; i++) {
                bool is_space = ptx_token_is(t->parts[i], "global") ||
                                ptx_token_is(t->parts[i], "shared::cta") ||
                                ptx_token_is(t->parts[i], "shared::cluster");

                if (!is_space)
                        continue;
                if (!to.n)
                        to = t->parts[i];
                else
                        from = t->parts[i];
                t->taken[i] = true;
        }
        *ret_to = ptx_token_is(to, "global") ? PTX_GLOBAL : PTX_CLUSTER;
        *ret_from = ptx_token_is(from, "global") ? PTX_GLOBAL : PTX_CLUSTER;
        return from.n != 0;
}

/* [to], [from], size {, [barrier]} {, policy} */
static void print_bulk(Translator *t, bool reduces) {
        bool counts = translator_take(t, COUNTS), hints = translator_take(t, "L2::cache_hint");
        const char *type = "", *operation = "";
        PtxSpace to, from;

        if ((!translator_take(t, "bulk_group") && !counts) || !take_direction(t, &to, &from) ||
            t->in->n_operands != 3u + counts + hints) {
                translator_refuse(t, "%s", "");
                return;
        }
        if (reduces)
                operation = translator_take_atomic(t, &type);
        fputs("{ uint64_t to = ", t->out);
        translator_address(t, translator_operand(t, 0), to);
        fputs(", from = ", t->out);
        translator_address(t, translator_operand(t, 1), from);
        fputs("; uint32_t n = ", t->out);
        translator_value(t, translator_operand(t, 2), PTX_U32);
        if (reduces)
                fprintf(t->out, "; PTX_REDUCE(%s_%s, to, from, n); ", operation, type);
        else
                fputs("; ptx_copy(to, from, n, n); ", t->out);
        if (counts)
                print_complete(t, 3, "n");
        fputs("}", t->out);
}

static void print_nothing(Translator *t) {
        while (translator_take_one(t, "read L2 global L2::cache_hint"))
                ;
        fputs(";", t->out);
}

bool translate_bulk(Translator *t, bool reduces) {
        if (!translator_take(t, "bulk"))
                return false;

        if (translator_take(t, "tensor"))
                translator_refuse(t, "bulk copies of tensors");
        else if (translator_take_one(t, "commit_group wait_group prefetch"))
                print_nothing(t);
        else
                print_bulk(t, reduces);
        return true;
}

/* st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{.vec}.type [a], b, [barrier] */
static void print_async_store(Translator *t) {
        const PtxOperand *from = translator_operand(t, 1);
        size_t n = from->kind == PTX_VECTOR ? from->n_elements : 1;
        char bytes[16];
        PtxType type;

        (void)translator_take(t, "weak");
        (void)translator_take_one(t, "v2 v4");
        type = translator_take_type(t);
        fputs("{ uint64_t at = ", t->out);
        translator_address(t, translator_operand(t, 0), PTX_CLUSTER);
        fputs("; ", t->out);
        for (size_t i = 0; i < n; i++) {
                fprintf(t->out, "ptx_st_u%u(at + %zu, ", 8 * ptx_type_size(type),
                        i * ptx_type_size(type));
                translator_value(t, from->kind == PTX_VECTOR ? &from->elements[i] : from, type);
                fputs("); ", t->out);
        }
        snprintf(bytes, sizeof(bytes), "%zu", n * ptx_type_size(type));
        print_complete(t, 2, bytes);
        fputs("}", t->out);
}

/* red.async...op.type [a], b, [barrier] */
static void print_async_reduction(Translator *t) {
        const char *name, *operation = translator_take_atomic(t, &name);
        PtxType type = ptx_type_find((PtxToken){name, strlen(name)});
        char bytes[16];

        while (translator_take_one(t, "relaxed cluster"))
                ;
        fprintf(t->out, "(void)ptx_atom_%s_%s(", operation, name);
        translator_address(t, translator_operand(t, 0), PTX_CLUSTER);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs("); ", t->out);
        snprintf(bytes, sizeof(bytes), "%u", ptx_type_size(type));
        print_complete(t, 2, bytes);
}

bool translate_async_store(Translator *t, bool reduces) {
        if (!translator_take(t, "async"))
                return false;

        if (!translator_take(t, COUNTS) || translator_take_space(t) != PTX_CLUSTER ||
            t->in->n_operands != 3)
                translator_refuse(t, "%s", "");
        else if (reduces)
                print_async_reduction(t);
        else
                print_async_store(t);
        return true;
}

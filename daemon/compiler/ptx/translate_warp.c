/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers, fences, and what the threads of a warp do together.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

/* The mask is the last operand; without .sync, of the threads that stand here. */
static void print_mask(Translator *t, bool is_sync) {
        if (is_sync)
                translator_value(t, translator_operand(t, t->in->n_operands - 1), PTX_U32);
        else
                fputs("PTX_ACTIVE()", t->out);
}

/* ---- barriers ------------------------------------------------------------------- */

/* "0, 0" for the number of the barrier and that of threads; none is all. */
static void print_barrier_numbers(Translator *t, size_t first, size_t n) {
        translator_value(t, translator_operand(t, first), PTX_U32);
        fputs(", ", t->out);
        if (n > 1)
                translator_value(t, translator_operand(t, first + 1), PTX_U32);
        else
                fputs("0", t->out);
}

/* bar.red.op p, a, {b,} {!}c */
static void print_barrier_reduction(Translator *t) {
        bool is_count = translator_take(t, "popc"), is_all = translator_take(t, "and");
        size_t n = t->in->n_operands;

        if (!is_count && !is_all && !translator_take(t, "or"))
                translator_refuse(t, "%s", "");
        if (is_count ? translator_take_type(t) != PTX_U32 : !translator_take(t, "pred"))
                translator_refuse(t, "%s", "");
        if (n != 3 && n != 4) {
                translator_refuse(t, "it has %zu operands", n);
                return;
        }
        translator_begin(t, translator_operand(t, 0), is_count ? 4 : 1);
        fprintf(t->out, "ptx_bar_%s(t, ", is_count ? "popc" : is_all ? "and" : "or");
        print_barrier_numbers(t, 1, n - 2);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, n - 1), PTX_PRED);
        fputs(");", t->out);
}

/* All threads of a cluster arrive, and all wait, so the whole barrier can be where they wait. */
static void print_cluster_barrier(Translator *t) {
        bool waits = translator_take(t, "wait");

        if (!waits && !translator_take(t, "arrive"))
                translator_refuse(t, "%s", "");
        while (translator_take_one(t, "aligned release acquire relaxed"))
                ;
        fprintf(t->out, "%s;",
                waits ? "(void)gpuq_cpu_image.runtime->barrier(GPUQ_CPU_BARRIER_CLUSTER, 0)" : "");
}

static void print_barrier(Translator *t) {
        bool arrives;

        if (translator_take(t, "cluster")) {
                print_cluster_barrier(t);
                return;
        }
        arrives = translator_take(t, "arrive");
        (void)translator_take_one(t, "cta");
        (void)translator_take_one(t, "aligned");
        if (translator_take(t, "red")) {
                print_barrier_reduction(t);
                return;
        }
        if (!arrives && !translator_take(t, "sync"))
                translator_refuse(t, "%s", "");
        if (t->in->n_operands > 2 || (arrives && t->in->n_operands != 2))
                translator_refuse(t, "it has %zu operands", t->in->n_operands);
        fprintf(t->out, "ptx_bar_%s(t, ", arrives ? "arrive" : "sync");
        print_barrier_numbers(t, 0, t->in->n_operands);
        fputs(");", t->out);
}

static void print_warp_barrier(Translator *t) {
        if (!translator_take(t, "sync"))
                translator_refuse(t, "%s", "");
        fputs("(void)ptx_warp(GPUQ_CPU_WARP_SYNC, ", t->out);
        translator_value(t, translator_operand(t, 0), PTX_U32);
        fputs(", 0, 0);", t->out);
}

/* All accesses go the same way here, so a fence between proxies is one more fence. */
static void print_fence(Translator *t) {
        if (translator_take(t, "proxy"))
                (void)translator_take_one(t, "alias async async::generic");
        while (translator_take_one(t, "sc acq_rel acquire release cta cluster gpu sys gl global "
                                      "shared::cta shared::cluster mbarrier_init "
                                      "sync_restrict::shared::cta sync_restrict::shared::cluster"))
                ;
        fputs("ptx_fence();", t->out);
}

/* ---- shuffles and votes ------------------------------------------------------------------ */

/* The register behind the bar gets p. */
static void print_pair(Translator *t, const PtxOperand *to) {
        if (to->kind != PTX_PAIR)
                return;
        translator_begin(t, &to->elements[1], 1);
        fputs("p; ", t->out);
}

static const PtxOperand *first_of(const PtxOperand *to) {
        return to->kind == PTX_PAIR ? &to->elements[0] : to;
}

static void print_shuffle(Translator *t) {
        const PtxOperand *to = translator_operand(t, 0);
        bool is_sync = translator_take(t, "sync");
        const char *mode = translator_take_one(t, "up down bfly idx");

        if (!mode || translator_take_type(t) != PTX_B32 || t->in->n_operands != 4u + is_sync) {
                translator_refuse(t, "%s", "");
                return;
        }
        fputs("{ uint8_t p; ", t->out);
        translator_begin(t, first_of(to), 4);
        fprintf(t->out, "ptx_shfl_%s(t, ", mode);
        print_mask(t, is_sync);
        for (size_t i = 1; i <= 3; i++) {
                fputs(", ", t->out);
                translator_value(t, translator_operand(t, i), PTX_U32);
        }
        fputs(", &p); ", t->out);
        print_pair(t, to);
        fputs("}", t->out);
}

static void print_vote(Translator *t) {
        bool is_sync = translator_take(t, "sync");
        const char *mode = translator_take_one(t, "all any uni ballot");
        PtxType type = translator_take_type(t);

        if (!mode || type != (strcmp(mode, "ballot") == 0 ? PTX_B32 : PTX_PRED) ||
            t->in->n_operands != 2u + is_sync) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), ptx_type_size(type));
        fprintf(t->out, "ptx_vote_%s(", mode);
        print_mask(t, is_sync);
        fputs(", ", t->out);
        if (translator_operand(t, 1)->kind == PTX_INTEGER)
                fputs(translator_operand(t, 1)->bits ? "1" : "0", t->out);
        else
                translator_value(t, translator_operand(t, 1), PTX_PRED);
        fputs(");", t->out);
}

static void print_match(Translator *t) {
        const PtxOperand *to = translator_operand(t, 0);
        bool is_all = translator_take(t, "all"), is_any = translator_take(t, "any");
        PtxType type;

        (void)translator_take(t, "sync");
        type = translator_take_type(t);
        if (is_all == is_any || (type != PTX_B32 && type != PTX_B64) || t->in->n_operands != 3) {
                translator_refuse(t, "%s", "");
                return;
        }
        fputs("{ uint8_t p = 0; ", t->out);
        translator_begin(t, first_of(to), 4);
        fprintf(t->out, "ptx_match_%s(", is_all ? "all" : "any");
        translator_value(t, translator_operand(t, 2), PTX_U32);
        fprintf(t->out, ", (uint%u_t)", 8 * ptx_type_size(type));
        translator_value(t, translator_operand(t, 1), type);
        fprintf(t->out, "%s); ", is_all ? ", &p" : "");
        print_pair(t, to);
        fputs("}", t->out);
}

static void print_reduction(Translator *t) {
        const char *operation;
        bool is_bits;
        PtxType type;
        char name[8];

        (void)translator_take(t, "sync");
        operation = translator_take_one(t, "add min max and or xor");
        snprintf(name, sizeof(name), "%s", operation ? operation : "");
        is_bits = strcmp(name, "and") == 0 || strcmp(name, "or") == 0 || strcmp(name, "xor") == 0;
        type = translator_take_type(t);
        if (!operation || (is_bits ? type != PTX_B32 : type != PTX_U32 && type != PTX_S32)) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        fprintf(t->out, "ptx_redux_%s_%s(", name, ptx_type_name(type));
        translator_value(t, translator_operand(t, 2), PTX_U32);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 1), type);
        fputs(");", t->out);
}

/* The lowest lane of the mask is elected. */
static void print_elect(Translator *t) {
        const PtxOperand *to = translator_operand(t, 0);

        if (!translator_take(t, "sync") || to->kind != PTX_PAIR) {
                translator_refuse(t, "%s", "");
                return;
        }
        fputs("{ uint8_t p; uint32_t leader = ptx_elect(t, ", t->out);
        translator_value(t, translator_operand(t, 1), PTX_U32);
        fputs(", &p); ", t->out);
        translator_begin(t, first_of(to), 4);
        fputs("leader; ", t->out);
        print_pair(t, to);
        fputs("}", t->out);
}

static void print_find_set(Translator *t) {
        if (translator_take_type(t) != PTX_B32 || t->in->n_operands != 4) {
                translator_refuse(t, "%s", "");
                return;
        }
        translator_begin(t, translator_operand(t, 0), 4);
        fputs("ptx_fns(", t->out);
        for (size_t i = 1; i <= 3; i++) {
                fputs(i > 1 ? ", " : "", t->out);
                translator_value(t, translator_operand(t, i), PTX_U32);
        }
        fputs(");", t->out);
}

static void print_activemask(Translator *t) {
        if (translator_take_type(t) != PTX_B32)
                translator_refuse(t, "%s", "");
        translator_begin(t, translator_operand(t, 0), 4);
        fputs("PTX_ACTIVE();", t->out);
}

bool translate_warp(Translator *t, const char *name) {
        static const struct {
                const char *name;
                void (*print)(Translator *t);
        } table[] = {
                {"barrier", print_barrier}, {"membar", print_fence},
                {"fence", print_fence},     {"shfl", print_shuffle},
                {"vote", print_vote},       {"match", print_match},
                {"redux", print_reduction}, {"activemask", print_activemask},
                {"elect", print_elect},     {"fns", print_find_set},
        };

        if (strcmp(name, "bar") == 0) {
                if (translator_take(t, "warp"))
                        print_warp_barrier(t);
                else
                        print_barrier(t);
                return true;
        }
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (strcmp(name, table[i].name) == 0) {
                        table[i].print(t);
                        return true;
                }
        return false;
}

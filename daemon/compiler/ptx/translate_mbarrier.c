/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mbarrier
 */

#include <string.h>

#include "compiler/ptx/translator.h"

static void take_scope(Translator *t) {
        while (translator_take_one(t, "release acquire relaxed cta cluster"))
                ;
}

/* The barrier's address, which is operand @i. */
static void print_place(Translator *t, size_t i, PtxSpace space) {
        translator_address(t, translator_operand(t, i), space);
}

static void print_init(Translator *t, PtxSpace space) {
        fputs("ptx_mbarrier_init(", t->out);
        print_place(t, 0, space);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 1), PTX_U32);
        fputs(");", t->out);
}

static void print_inval(Translator *t, PtxSpace space) {
        fputs("ptx_mbarrier_inval(", t->out);
        print_place(t, 0, space);
        fputs(");", t->out);
}

/* {expect,complete}_tx [p], bytes: operands @first and the next one. */
static void print_expect(Translator *t, PtxSpace space, size_t first, const char *sign) {
        fputs("ptx_mbarrier_expect(", t->out);
        print_place(t, first, space);
        fprintf(t->out, ", %s(int64_t)(uint32_t)", sign);
        translator_value(t, translator_operand(t, first + 1), PTX_U32);
        fputs(");", t->out);
}

/* arrive{.noComplete} state, [p] {, count}; one that may not complete the phase arrives as any other. */
static void print_arrive(Translator *t, PtxSpace space, bool drops) {
        (void)translator_take(t, "noComplete");
        if (translator_take(t, "expect_tx")) {
                print_expect(t, space, 1, "");
                fputs(" ", t->out);
                translator_begin(t, translator_operand(t, 0), 8);
                fputs("ptx_mbarrier_arrive(", t->out);
                print_place(t, 1, space);
                fprintf(t->out, ", 1, %u);", drops);
                return;
        }
        translator_begin(t, translator_operand(t, 0), 8);
        fputs("ptx_mbarrier_arrive(", t->out);
        print_place(t, 1, space);
        fputs(", ", t->out);
        if (t->in->n_operands > 2)
                translator_value(t, translator_operand(t, 2), PTX_U32);
        else
                fputs("1", t->out);
        fprintf(t->out, ", %u);", drops);
}

/* {test,try}_wait{.parity} p, [p], state or parity {, time} */
static void print_test(Translator *t, PtxSpace space) {
        bool is_parity = translator_take(t, "parity");

        translator_begin(t, translator_operand(t, 0), 1);
        fprintf(t->out, "ptx_mbarrier_test%s(", is_parity ? "_parity" : "");
        print_place(t, 1, space);
        fputs(", ", t->out);
        translator_value(t, translator_operand(t, 2), is_parity ? PTX_U32 : PTX_U64);
        fputs(");", t->out);
}

static void print_pending(Translator *t) {
        translator_begin(t, translator_operand(t, 0), 4);
        fputs("ptx_mbarrier_pending(", t->out);
        translator_value(t, translator_operand(t, 1), PTX_U64);
        fputs(");", t->out);
}

bool translate_mbarrier(Translator *t, const char *name) {
        PtxSpace space;

        if (strcmp(name, "mbarrier") != 0)
                return false;

        space = translator_take_space(t);
        if (translator_take_type(t) != PTX_B64 ||
            (space != PTX_GENERIC && space != PTX_SHARED && space != PTX_CLUSTER))
                translator_refuse(t, "%s", "");
        take_scope(t);
        if (translator_take(t, "init"))
                print_init(t, space);
        else if (translator_take(t, "inval"))
                print_inval(t, space);
        else if (translator_take(t, "arrive"))
                print_arrive(t, space, false);
        else if (translator_take(t, "arrive_drop"))
                print_arrive(t, space, true);
        else if (translator_take_one(t, "test_wait try_wait"))
                print_test(t, space);
        else if (translator_take(t, "expect_tx"))
                print_expect(t, space, 0, "");
        else if (translator_take(t, "complete_tx"))
                print_expect(t, space, 0, "-");
        else if (translator_take(t, "pending_count"))
                print_pending(t);
        else
                translator_refuse(t, "%s", "");
        return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches, calls, and the end of a thread.
 *
 * A function gives whether the thread has ended (exit), and then its caller ends too.
 */

#include <string.h>

#include "compiler/ptx/translator.h"

/* ---- branches ---------------------------------------------------------------------- */

static void print_branch(Translator *t) {
        const PtxOperand *target = translator_operand(t, 0);

        (void)translator_take(t, "uni");
        if (target->kind == PTX_LABEL)
                fprintf(t->out, "goto L%u;", target->index);
        else
                translator_refuse_text(t, "there is no label \"%.*s\"",
                                       (int)MIN(target->text.n, 80), target->text.s);
}

static void print_table_branch(Translator *t) {
        const PtxOperand *table = translator_operand(t, 1), *list = NULL;

        (void)translator_take(t, "uni");
        if (!translator_take(t, "idx") || table->kind != PTX_TABLE) {
                translator_refuse(t, "%s", "");
                return;
        }
        list = &t->function->labels[table->index].list;
        fputs("switch ((uint32_t)", t->out);
        translator_value(t, translator_operand(t, 0), PTX_U32);
        fputs(") {", t->out);
        for (size_t i = 0; i < list->n_elements; i++) {
                if (list->elements[i].kind != PTX_LABEL)
                        translator_refuse_text(t, "a target is not a label");
                fprintf(t->out, " case %zu: goto L%u;", i, list->elements[i].index);
        }
        fputs(" }", t->out);
}

/* ---- calls ---------------------------------------------------------------------------- */

/* The operands of a call, which are optional at both ends. */
typedef struct Call {
        const PtxOperand *target;
        const PtxOperand *returns, *params; /* lists, or NULL */
} Call;

static Call call_of(Translator *t) {
        Call call = {};
        size_t i = 0;

        if (t->in->n_operands > 1 && t->in->operands[0].kind == PTX_LIST)
                call.returns = &t->in->operands[i++];
        call.target = translator_operand(t, i++);
        if (i < t->in->n_operands && t->in->operands[i].kind == PTX_LIST)
                call.params = &t->in->operands[i];
        return call;
}

/* Registers are passed in variables of their own: "uint32_t a0 = r5;". */
static void print_temporaries(Translator *t, const PtxOperand *list, const char *prefix,
                              bool has_value) {
        for (size_t i = 0; list && i < list->n_elements; i++) {
                const PtxOperand *operand = &list->elements[i];

                if (translator_is_param(t, operand) || !translator_register(t, operand))
                        continue;
                fprintf(t->out, "__typeof__(r%u) %s%zu", operand->index, prefix, i);
                if (has_value)
                        fprintf(t->out, " = r%u", operand->index);
                fputs("; ", t->out);
        }
}

static void print_addresses(Translator *t, const PtxOperand *list, const char *prefix) {
        for (size_t i = 0; list && i < list->n_elements; i++)
                if (translator_is_param(t, &list->elements[i]))
                        fprintf(t->out, ", (unsigned char *)v%u", list->elements[i].index);
                else
                        fprintf(t->out, ", (unsigned char *)&%s%zu", prefix, i);
}

static void print_target(Translator *t, const Call *call) {
        size_t n = (call->returns ? call->returns->n_elements : 0) +
                   (call->params ? call->params->n_elements : 0);

        if (call->target->kind == PTX_FUNCTION) {
                fprintf(t->out, "f%u", call->target->index);
                return;
        }
        fputs("((int (*)(const PtxThread *", t->out);
        for (size_t i = 0; i < n; i++)
                fputs(", unsigned char *", t->out);
        fputs("))", t->out);
        translator_value(t, call->target, PTX_U64);
        fputs(")", t->out);
}

static bool has_arguments(const Call *call, const PtxFunction *function) {
        return function->n_returns == (call->returns ? call->returns->n_elements : 0) &&
               function->n_params == (call->params ? call->params->n_elements : 0);
}

static bool check_target(Translator *t, const Call *call) {
        const PtxFunction *function;

        if (call->target->kind == PTX_REGISTER)
                return true;
        if (call->target->kind != PTX_FUNCTION) {
                translator_refuse_text(t, "there is no function \"%.*s\"",
                                       (int)MIN(call->target->text.n, 200), call->target->text.s);
                return false;
        }
        function = &t->module->functions[call->target->index];
        if (!function->is_defined || function->is_entry)
                translator_refuse_text(t, "there is no function \"%.*s\"",
                                       (int)MIN(function->name.n, 200), function->name.s);
        else if (!has_arguments(call, function))
                translator_refuse_text(t, "\"%.*s\" has other parameters",
                                       (int)MIN(function->name.n, 200), function->name.s);
        return !t->r;
}

static void print_call(Translator *t) {
        Call call = call_of(t);

        (void)translator_take(t, "uni");
        if (call.target->kind == PTX_FUNCTION &&
            !t->module->functions[call.target->index].is_defined &&
            translate_extern(t, t->module->functions[call.target->index].name, call.returns,
                             call.params))
                return;
        if (!check_target(t, &call))
                return;

        fputs("{ ", t->out);
        print_temporaries(t, call.returns, "x", false);
        print_temporaries(t, call.params, "a", true);
        fputs("if (", t->out);
        print_target(t, &call);
        fputs("(t", t->out);
        print_addresses(t, call.returns, "x");
        print_addresses(t, call.params, "a");
        fputs(")) return 1; ", t->out);
        for (size_t i = 0; call.returns && i < call.returns->n_elements; i++)
                if (!translator_is_param(t, &call.returns->elements[i]))
                        fprintf(t->out, "r%u = x%zu; ", call.returns->elements[i].index, i);
        fputs("}", t->out);
}

/* ---- ends ------------------------------------------------------------------------------- */

bool translate_control(Translator *t, const char *name) {
        if (strcmp(name, "bra") == 0) {
                print_branch(t);
        } else if (strcmp(name, "brx") == 0) {
                print_table_branch(t);
        } else if (strcmp(name, "call") == 0) {
                print_call(t);
        } else if (strcmp(name, "ret") == 0) {
                (void)translator_take(t, "uni");
                fputs("goto end;", t->out);
        } else if (strcmp(name, "exit") == 0) {
                fputs("return 1;", t->out);
        } else if (strcmp(name, "trap") == 0) {
                fputs("gpuq_cpu_image.runtime->trap();", t->out);
        } else if (strcmp(name, "nanosleep") == 0) {
                (void)translator_take_type(t);
                fputs("gpuq_cpu_image.runtime->relax(1);", t->out);
        } else if (translator_has("brkpt pmevent griddepcontrol setmaxnreg", name)) {
                while (translator_take_one(t, "wait launch_dependents inc dec sync aligned u32"))
                        ;
                fputs(";", t->out);
        } else {
                return false;
        }
        return true;
}

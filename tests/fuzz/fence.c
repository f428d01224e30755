/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX that a user wrote, with a fence: it is rewritten into text that the reader takes, in which every load, store and
 * atomic operation on global or generic memory has a predicate of the fence, or names a variable of the module; or it is
 * refused with a message of one line.
 */

#include <stdlib.h>
#include <string.h>

#include "compiler/check_access.h"
#include "compiler/fence.h"
#include "compiler/fence_rewrite.h"
#include "compiler/ptx/module.h"
#include "input.h"
#include "util/macro.h"

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static bool is_of_fence(const PtxOperand *operand) {
        return ptx_token_starts(operand->text, "%" FENCE_NAME);
}

/* Others end the thread before they run. */
static bool takes_predicate(const PtxInstruction *in) {
        static const char *const names[] = {"ld.", "ldu.", "st.", "atom.", "red."};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (ptx_token_starts(in->opcode, names[i]))
                        return true;
        return false;
}

static bool is_variable(const PtxModule *module, const CheckAccess *access) {
        const PtxOperand *address = access->address;

        return address->kind == PTX_VARIABLE && address->offset >= 0 &&
               (uint64_t)address->offset + access->n_bytes <=
                       ptx_variable_size(&module->variables[address->index]);
}

static void check_instruction(const PtxModule *module, const PtxFunction *function,
                              const PtxInstruction *in) {
        CheckAccess accesses[CHECK_ACCESSES_MAX];
        size_t n;

        if (!takes_predicate(in))
                return;
        must(check_accesses(module, function, in, accesses, &n) == 0);
        for (size_t i = 0; i < n; i++)
                must(accesses[i].space == PTX_SHARED || is_of_fence(accesses[i].address) ||
                     (in->is_guarded && !in->guard.negated && is_of_fence(&in->guard)) ||
                     is_variable(module, &accesses[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(fenced_finish) Fenced fenced = {};
        _cleanup_(freep) char *error = NULL;
        int r;

        r = fence_rewrite((const char *)data, n_data, &fenced, &error);
        must(r == 0 || r == FENCE_REWRITE_E_REFUSED);
        must(r == 0 ? fenced.text && !error : error && !strchr(error, '\n'));
        if (r)
                return 0;

        must(ptx_module_read(fenced.text, fenced.n_text, &module, &error) == 0);
        for (size_t i = 0; i < module->n_functions; i++)
                for (size_t k = 0; k < module->functions[i].n_instructions; k++)
                        check_instruction(module, &module->functions[i],
                                          &module->functions[i].instructions[k]);
        return 0;
}

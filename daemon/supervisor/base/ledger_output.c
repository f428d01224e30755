/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ledger: what kernels printed, of the jobs that printed last. See ledger.h.
 */

#include <string.h>

#include "ledger_layout.h"

_Static_assert(sizeof(LedgerOutput) % 8 == 0, "checked in words");

/* Of the text no more than there is of it. */
static uint64_t ledger_output_check(uint32_t i, const LedgerOutput *output) {
        size_t n_bytes = offsetof(LedgerOutput, text) - offsetof(LedgerOutput, id) + output->n_text;

        return ledger_check(LEDGER_OUTPUT, i, &output->id, (n_bytes + 7) / 8 * 8);
}

uint32_t ledger_write_output(Ledger *ledger, uint64_t id, const char *text) {
        LedgerCount *count = &ledger->head->n_outputs;
        uint32_t i = (uint32_t)(count->value % LEDGER_OUTPUTS);
        LedgerOutput *output = &ledger->outputs[i];

        ledger_set_count(ledger, count, count->value + 1);
        ledger_begin(ledger, LEDGER_OUTPUT, i);
        output->check = 0;
        ledger_barrier();
        output->id = id;
        output->n_text = strnlen(text, LEDGER_OUTPUT_MAX);
        memcpy(output->text, text, output->n_text);
        memset(output->text + output->n_text, 0, LEDGER_TEXT_PAD);
        ledger_barrier();
        output->check = ledger_output_check(i, output);
        ledger_end(ledger);
        return i + 1;
}

const char *ledger_find_output(const Ledger *ledger, uint32_t number, uint64_t id) {
        const LedgerOutput *output = &ledger->outputs[number ? number - 1 : 0];

        return number && output->check && output->id == id ? output->text : "";
}

int ledger_outputs_open(Ledger *ledger) {
        for (uint32_t i = 0; i < LEDGER_OUTPUTS; ++i) {
                LedgerOutput *output = &ledger->outputs[i];

                if (!output->check || (output->n_text <= LEDGER_OUTPUT_MAX &&
                                       output->check == ledger_output_check(i, output)))
                        continue;
                if (ledger->head->writing != LEDGER_WRITING(LEDGER_OUTPUT, i))
                        return LEDGER_E_DAMAGED;
                output->check = 0;
        }
        return 0;
}

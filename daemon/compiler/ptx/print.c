/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/print.h"

static void print_token(FILE *out, PtxToken token) {
        fwrite(token.s, 1, token.n, out);
}

static void print_elements(FILE *out, const PtxOperand *operand, const char *between) {
        for (size_t i = 0; i < operand->n_elements; i++) {
                if (i > 0)
                        fputs(between, out);
                ptx_operand_print(out, &operand->elements[i]);
        }
}

static void print_within(FILE *out, const PtxOperand *operand, char opening, char closing) {
        fputc(opening, out);
        print_elements(out, operand, ", ");
        fputc(closing, out);
}

static void print_name(FILE *out, const PtxOperand *operand) {
        print_token(out, operand->text);
        if (operand->offset)
                fprintf(out, "+%lld", (long long)operand->offset);
}

void ptx_operand_print(FILE *out, const PtxOperand *operand) {
        if (operand->negated)
                fputc('!', out);
        if (operand->minus)
                fputc('-', out);
        switch (operand->kind) {
                case PTX_REGISTER:
                case PTX_VARIABLE:
                case PTX_FUNCTION:
                case PTX_LABEL:
                case PTX_TABLE:
                case PTX_PROTOTYPE:
                case PTX_SPECIAL:
                case PTX_SINK:
                        print_name(out, operand);
                        break;
                case PTX_INTEGER:
                        fprintf(out, "%lld", (long long)operand->bits);
                        break;
                case PTX_FLOAT32:
                        fprintf(out, "0f%08llx", (unsigned long long)operand->bits);
                        break;
                case PTX_FLOAT64:
                        fprintf(out, "0d%016llx", (unsigned long long)operand->bits);
                        break;
                case PTX_ADDRESS:
                        print_within(out, operand, '[', ']');
                        break;
                case PTX_VECTOR:
                        print_within(out, operand, '{', '}');
                        break;
                case PTX_LIST:
                        print_within(out, operand, '(', ')');
                        break;
                case PTX_PAIR:
                        print_elements(out, operand, "|");
                        break;
        }
}

void ptx_instruction_print(FILE *out, const PtxInstruction *instruction) {
        if (instruction->is_guarded) {
                fputc('@', out);
                ptx_operand_print(out, &instruction->guard);
                fputc(' ', out);
        }
        print_token(out, instruction->opcode);
        for (size_t i = 0; i < instruction->n_operands; i++) {
                fputs(i > 0 ? ", " : " ", out);
                ptx_operand_print(out, &instruction->operands[i]);
        }
        fputc(';', out);
}

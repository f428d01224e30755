/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables, parameters and registers: their types, sizes and values.
 */

#include <stdio.h>
#include <string.h>

#include "compiler/ptx/reader.h"

#define REGISTERS_MAX (1u << 20) /* of a function */
#define VARIABLES_MAX (1u << 20)
#define ALIGN_MAX     4096u
#define INITIALS_MAX  (1u << 26)

/* ---- types ------------------------------------------------------------------------ */

static void read_align(Reader *reader, PtxVariable *variable) {
        uint64_t align = reader_number(reader);

        if (align == 0 || align > ALIGN_MAX || align & (align - 1))
                reader_fail(reader, ".align must be a power of two up to %u", ALIGN_MAX);
        else if (!variable->is_pointer)
                variable->align = align;
}

static void read_attribute(Reader *reader) {
        reader_expect(reader, "(");
        if (!reader->r && !ptx_tokens_skip(&reader->tokens, "(", ")"))
                reader_fail(reader, "\")\" is missing");
}

static bool is_space(PtxToken token) {
        return ptx_token_is(token, ".global") || ptx_token_is(token, ".shared") ||
               ptx_token_is(token, ".local") || ptx_token_is(token, ".const") ||
               ptx_token_is(token, ".generic") || ptx_token_is(token, ".param");
}

static void read_type_word(Reader *reader, PtxToken token, PtxVariable *variable) {
        PtxType type = ptx_type_find((PtxToken){token.s + 1, token.n - 1});

        if (ptx_token_is(token, ".align"))
                read_align(reader, variable);
        else if (ptx_token_is(token, ".attribute"))
                read_attribute(reader);
        else if (ptx_token_is(token, ".ptr"))
                variable->is_pointer = true;
        else if (ptx_token_is(token, ".v2") || ptx_token_is(token, ".v4"))
                variable->vector = (unsigned)(token.s[2] - '0');
        else if (type != PTX_NONE)
                variable->type = type;
        else if (!(variable->is_pointer && is_space(token)))
                reader_fail(reader, "type \"%.*s\" is not supported", (int)MIN(token.n, 80),
                            token.s);
}

/* Everything up to the name. */
static PtxVariable read_type(Reader *reader, PtxSpace space) {
        PtxVariable variable = {.space = space, .vector = 1, .n_elements = 1};

        while (ptx_token_starts(reader_peek(reader), "."))
                read_type_word(reader, reader_next(reader), &variable);
        if (variable.type == PTX_NONE || (variable.type == PTX_PRED && space != PTX_REG))
                reader_fail(reader, "a declaration has no type");
        if (variable.align == 0)
                variable.align = ptx_type_size(variable.type) * variable.vector;
        return variable;
}

/* ---- names, dimensions and values ----------------------------------------------------- */

static PtxToken read_name(Reader *reader) {
        PtxToken name = reader_next(reader);

        if (!ptx_token_is_name(name))
                reader_fail(reader, "a name is expected, not \"%.*s\"", (int)MIN(name.n, 80),
                            name.s);
        return name;
}

static void read_dimensions(Reader *reader, PtxVariable *variable, size_t *ret_inner) {
        *ret_inner = 1;
        while (reader_accept(reader, "[")) {
                uint64_t n = 0;

                if (!reader_accept(reader, "]")) {
                        n = reader_number(reader);
                        reader_expect(reader, "]");
                }
                if (n > PTX_VARIABLE_MAX || (variable->n_dimensions > 0 && n == 0) ||
                    variable->n_elements > PTX_VARIABLE_MAX) {
                        reader_fail(reader, "%.*s has a size that is not supported",
                                    (int)MIN(variable->name.n, 200), variable->name.s);
                        return;
                }
                variable->n_elements *= n;
                if (variable->n_dimensions++ > 0)
                        *ret_inner *= n;
        }
        if (variable->n_elements > PTX_VARIABLE_MAX ||
            ptx_variable_size(variable) > PTX_VARIABLE_MAX || *ret_inner > PTX_VARIABLE_MAX)
                reader_fail(reader, "%.*s is larger than 1 GiB", (int)MIN(variable->name.n, 200),
                            variable->name.s);
}

static void add_initial(Reader *reader, PtxVariable *variable, const PtxInitial *initial) {
        if (variable->n_initials >= INITIALS_MAX) {
                reader_fail(reader, "too many values");
                return;
        }
        if (reader_grow(reader, &variable->initials, variable->n_initials,
                        sizeof(*variable->initials)))
                variable->initials[variable->n_initials++] = *initial;
}

static void read_address_value(Reader *reader, PtxVariable *variable) {
        PtxInitial initial = {.is_address = true};
        PtxOperand target;

        if (ptx_token_is(reader_peek(reader), "generic")) {
                initial.is_generic = true;
                (void)reader_next(reader);
                reader_expect(reader, "(");
        }
        target = reader_operand(reader);
        if (target.kind != PTX_VARIABLE && target.kind != PTX_FUNCTION) {
                reader_fail(reader, "\"%.*s\" is not a name that was declared before",
                            (int)MIN(target.text.n, 80), target.text.s);
                return;
        }
        initial.is_function = target.kind == PTX_FUNCTION;
        initial.index = target.index;
        initial.offset = target.offset;
        if (initial.is_generic) {
                reader_expect(reader, ")");
                initial.offset =
                        (int64_t)((uint64_t)initial.offset + (uint64_t)reader_offset(reader));
        }
        add_initial(reader, variable, &initial);
}

/* As many bits as the element has. */
static void read_number_value(Reader *reader, PtxVariable *variable) {
        PtxOperand value = reader_operand(reader);
        PtxInitial initial = {.bits = value.bits};

        if (value.kind == PTX_FLOAT64 && variable->type == PTX_F32) {
                double wide;
                float narrow;

                memcpy(&wide, &value.bits, sizeof(wide));
                narrow = (float)wide;
                initial.bits = 0;
                memcpy(&initial.bits, &narrow, sizeof(narrow));
        } else if (value.kind == PTX_INTEGER && ptx_type_is_float(variable->type)) {
                if (value.bits != 0)
                        reader_fail(reader, "an integer is the value of a floating-point variable");
        } else if (value.kind != PTX_INTEGER &&
                   value.kind != (variable->type == PTX_F64 ? PTX_FLOAT64 : PTX_FLOAT32)) {
                reader_fail(reader, "a value of another type than its variable");
        }
        add_initial(reader, variable, &initial);
}

static void read_value(Reader *reader, PtxVariable *variable) {
        if (ptx_token_is_name(reader_peek(reader)))
                read_address_value(reader, variable);
        else
                read_number_value(reader, variable);
        if (ptx_token_is(reader_peek(reader), "("))
                reader_fail(reader, "a value that is one byte of an address is not supported");
}

/* A row may have fewer values than elements; the rest is zero. */
static void read_row(Reader *reader, PtxVariable *variable, size_t n_row) {
        size_t end = variable->n_initials + n_row;

        do {
                if (reader_accept(reader, "}"))
                        break;
                read_value(reader, variable);
        } while (reader_accept(reader, ",") || (reader_expect(reader, "}"), false));

        if (variable->n_initials > end)
                reader_fail(reader, "%.*s has more values in a row than elements",
                            (int)MIN(variable->name.n, 200), variable->name.s);
        while (!reader->r && variable->n_initials < end)
                add_initial(reader, variable, &(PtxInitial){});
}

static void read_values(Reader *reader, PtxVariable *variable, size_t n_inner) {
        if (!reader_accept(reader, "{")) {
                read_value(reader, variable);
                return;
        }

        do {
                if (reader_accept(reader, "}"))
                        return;
                if (reader_accept(reader, "{"))
                        read_row(reader, variable,
                                 variable->n_dimensions > 1 ? n_inner : variable->vector);
                else
                        read_value(reader, variable);
        } while (reader_accept(reader, ","));
        reader_expect(reader, "}");
}

static void read_initials(Reader *reader, PtxVariable *variable, size_t n_inner) {
        if (!reader_accept(reader, "="))
                return;

        read_values(reader, variable, n_inner);
        if (variable->n_elements == 0)
                variable->n_elements = variable->n_initials / variable->vector;
        if (variable->n_initials > variable->n_elements * variable->vector)
                reader_fail(reader, "%.*s has more values than elements",
                            (int)MIN(variable->name.n, 200), variable->name.s);
}

/* ---- declarations ------------------------------------------------------------------------ */

/* Return: whether the name is new in its scope. */
static bool check_new(Reader *reader, PtxToken name) {
        const Name *known = names_find(reader->names, name);

        if (!names_is_here(reader->names, known))
                return true;
        reader_fail(reader, "%.*s is declared twice", (int)MIN(name.n, 200), name.s);
        return false;
}

void reader_note_local(Reader *reader, PtxToken name, bool is_range) {
        PtxModule *module = reader->module;

        if (!reader->in_function ||
            !reader_grow(reader, &module->locals, module->n_locals, sizeof(*module->locals)))
                return;
        module->locals[module->n_locals++] = (PtxLocal){
                .name = name,
                .line = reader->line,
                .is_range = is_range,
        };
}

/* Return: its index. */
static uint32_t add_variable(Reader *reader, const PtxVariable *variable) {
        PtxModule *module = reader->module;
        Name *name;

        if (module->n_variables == VARIABLES_MAX)
                reader_fail(reader, "too many variables");
        reader_note_local(reader, variable->name, false);
        if (!reader_grow(reader, &module->variables, module->n_variables,
                         sizeof(*module->variables)))
                return 0;
        module->variables[module->n_variables] = *variable;
        if (!ptx_token_is(variable->name, "_")) {
                name = names_add(reader->names, variable->name, NAME_VARIABLE, NULL);
                if (reader_fail_memory(reader, name))
                        return 0;
                name->index = module->n_variables;
        }
        return module->n_variables++;
}

/* A declaration of a variable that is known replaces one that is .extern. */
static bool replace_extern(Reader *reader, const PtxVariable *variable) {
        const Name *known = names_find(reader->names, variable->name);
        PtxVariable *old;

        if (!names_is_here(reader->names, known) || known->kind != NAME_VARIABLE)
                return false;
        old = &reader->module->variables[known->index];
        if (!old->is_extern && !variable->is_extern)
                return false;
        if (old->is_extern)
                *old = *variable;
        return true;
}

static void finish_variable(Reader *reader, PtxVariable *variable) {
        variable->line = reader->line;
        variable->in_function = reader->in_function;
        variable->function = reader->function;
}

void reader_variables(Reader *reader, PtxSpace space, bool is_extern) {
        PtxVariable type = read_type(reader, space);

        do {
                PtxVariable variable = type;
                size_t n_inner;

                variable.name = read_name(reader);
                variable.is_extern = is_extern;
                read_dimensions(reader, &variable, &n_inner);
                finish_variable(reader, &variable);
                read_initials(reader, &variable, n_inner);
                if (reader->r)
                        return;
                if (!replace_extern(reader, &variable) && check_new(reader, variable.name))
                        (void)add_variable(reader, &variable);
        } while (reader_accept(reader, ","));
        reader_expect(reader, ";");
}

uint32_t reader_add_register(Reader *reader, PtxToken name, PtxType type) {
        PtxFunction *function = reader_function(reader);

        if (function->n_registers == REGISTERS_MAX)
                reader_fail(reader, "too many registers");
        if (!reader_grow(reader, &function->registers, function->n_registers,
                         sizeof(*function->registers)))
                return 0;

        function->registers[function->n_registers] = (PtxRegister){name, type};
        return function->n_registers++;
}

static PtxOperand name_register(Reader *reader, PtxToken text, PtxType type) {
        PtxOperand operand = {.kind = PTX_REGISTER, .text = text};
        Name *name;

        if (reader->r || !check_new(reader, text))
                return operand;
        reader_note_local(reader, text, false);
        operand.index = reader_add_register(reader, text, type);
        name = names_add(reader->names, text, NAME_REGISTER, NULL);
        if (!reader_fail_memory(reader, name))
                name->index = operand.index;
        return operand;
}

static void read_register(Reader *reader, PtxType type) {
        PtxToken text = read_name(reader);
        uint64_t count;
        Name *name;

        if (!reader_accept(reader, "<")) {
                (void)name_register(reader, text, type);
                return;
        }

        /* Its registers are added when they are used: a range may be far larger than needed. */
        reader_note_local(reader, text, true);
        name = reader->r ? NULL : names_add(reader->names, text, NAME_RANGE, NULL);
        if (reader_fail_memory(reader, name))
                return;
        name->type = type;
        count = reader_number(reader);
        name->count = (uint32_t)MIN(count, UINT32_MAX);
        reader_expect(reader, ">");
}

void reader_registers(Reader *reader) {
        PtxVariable type = read_type(reader, PTX_REG);

        if (type.vector > 1)
                reader_fail(reader, "registers that are vectors are not supported");
        do
                read_register(reader, type.type);
        while (reader_accept(reader, ","));
        reader_expect(reader, ";");
}

/* ---- parameters ----------------------------------------------------------------------------- */

static PtxOperand read_parameter(Reader *reader) {
        bool is_register = reader_accept(reader, ".reg");
        PtxOperand operand = {.kind = PTX_VARIABLE};
        PtxVariable variable;
        size_t n_inner;

        if (!is_register)
                reader_expect(reader, ".param");
        variable = read_type(reader, is_register ? PTX_REG : PTX_PARAM);
        variable.name = read_name(reader);
        if (is_register)
                return name_register(reader, variable.name, variable.type);

        read_dimensions(reader, &variable, &n_inner);
        finish_variable(reader, &variable);
        operand.text = variable.name;
        if (!reader->r && (ptx_token_is(variable.name, "_") || check_new(reader, variable.name)))
                operand.index = add_variable(reader, &variable);
        return operand;
}

void reader_parameters(Reader *reader, PtxOperand **ret_params, size_t *ret_n_params) {
        *ret_params = NULL;
        *ret_n_params = 0;
        if (reader_accept(reader, ")"))
                return;

        do {
                PtxOperand parameter = read_parameter(reader);

                if (!reader_grow(reader, ret_params, *ret_n_params, sizeof(**ret_params)))
                        return;
                (*ret_params)[(*ret_n_params)++] = parameter;
        } while (reader_accept(reader, ","));
        reader_expect(reader, ")");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/ptx/module.h"

#include <string.h>

static const struct {
        const char *name;
        unsigned size;
} types[PTX_N_TYPES] = {
        [PTX_NONE] = {"", 0},       [PTX_PRED] = {"pred", 1},   [PTX_B8] = {"b8", 1},
        [PTX_B16] = {"b16", 2},     [PTX_B32] = {"b32", 4},     [PTX_B64] = {"b64", 8},
        [PTX_B128] = {"b128", 16},  [PTX_U8] = {"u8", 1},       [PTX_U16] = {"u16", 2},
        [PTX_U32] = {"u32", 4},     [PTX_U64] = {"u64", 8},     [PTX_S8] = {"s8", 1},
        [PTX_S16] = {"s16", 2},     [PTX_S32] = {"s32", 4},     [PTX_S64] = {"s64", 8},
        [PTX_U16X2] = {"u16x2", 4}, [PTX_S16X2] = {"s16x2", 4}, [PTX_F16] = {"f16", 2},
        [PTX_F16X2] = {"f16x2", 4}, [PTX_BF16] = {"bf16", 2},   [PTX_BF16X2] = {"bf16x2", 4},
        [PTX_F32] = {"f32", 4},     [PTX_F64] = {"f64", 8},
};

PtxType ptx_type_find(PtxToken name) {
        for (PtxType type = PTX_PRED; type < PTX_N_TYPES; type++)
                if (ptx_token_is(name, types[type].name))
                        return type;
        return PTX_NONE;
}

const char *ptx_type_name(PtxType type) {
        return types[type].name;
}

unsigned ptx_type_size(PtxType type) {
        return types[type].size;
}

bool ptx_type_is_signed(PtxType type) {
        return type >= PTX_S8 && type <= PTX_S64;
}

bool ptx_type_is_float(PtxType type) {
        return type >= PTX_F16;
}

bool ptx_opcode_is(const PtxInstruction *instruction, const char *name) {
        PtxToken opcode = instruction->opcode;
        size_t n = strlen(name);

        return ptx_token_starts(opcode, name) && (opcode.n == n || opcode.s[n] == '.');
}

size_t ptx_variable_size(const PtxVariable *variable) {
        return variable->n_elements * variable->vector * ptx_type_size(variable->type);
}

PtxModule *ptx_module_free(PtxModule *module) {
        if (!module)
                return NULL;

        arena_free(module->arena);
        free(module);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument
 */
#include "worker/argument.h"

#include <stdio.h>
#include <string.h>

static const char *kind_name(Gpuq__V1__Kind kind) {
        switch ((int)kind) {
                case GPUQ__V1__KIND__POINTER:
                        return "a buffer";
                case GPUQ__V1__KIND__I32:
                        return "i32";
                case GPUQ__V1__KIND__I64:
                        return "i64";
                case GPUQ__V1__KIND__F32:
                        return "f32";
                case GPUQ__V1__KIND__F64:
                        return "f64";
                case GPUQ__V1__KIND__I8:
                        return "i8";
                case GPUQ__V1__KIND__I16:
                        return "i16";
                case GPUQ__V1__KIND__WORD64:
                        return "a buffer or i64";
                case GPUQ__V1__KIND__LOCAL:
                        return "local memory";
                default:
                        return NULL;
        }
}

/* "f32", or "12 bytes". */
static const char *kind_describe(Gpuq__V1__Kind kind, size_t size, char *text, size_t n_text) {
        const char *name = kind_name(kind);

        if (name)
                return name;
        snprintf(text, n_text, "%zu byte%s", size, size == 1 ? "" : "s");
        return text;
}

size_t argument_slots(const Gpuq__V1__Argument *argument) {
        if (argument->value_case != GPUQ__V1__ARGUMENT__VALUE_SCALAR)
                return 0;
        return (argument->scalar.len + sizeof(ArgumentSlot) - 1) / sizeof(ArgumentSlot);
}

static bool kind_takes_buffer(const FunctionParameter *parameter) {
        switch ((int)parameter->kind) {
                case GPUQ__V1__KIND__POINTER:
                case GPUQ__V1__KIND__WORD64:
                        return true;
                case GPUQ__V1__KIND__BYTES: /* a struct around a pointer, or unknown */
                        return parameter->size == sizeof(CUdeviceptr);
                default:
                        return false;
        }
}

/* A handle is an integer of 8 bytes, to those who do not know better. */
static bool kind_takes_texture(const FunctionParameter *parameter) {
        switch ((int)parameter->kind) {
                case GPUQ__V1__KIND__WORD64:
                case GPUQ__V1__KIND__I64:
                        return true;
                case GPUQ__V1__KIND__BYTES:
                        return parameter->size == sizeof(CUtexObject);
                default:
                        return false;
        }
}

TextureShape argument_texture(const Gpuq__V1__Texture *message) {
        return (TextureShape){
                .width = message->width,
                .height = message->height,
                .pitch = message->pitch,
                .format = (uint32_t)message->format,
                .channels = message->channels,
                .address = {(uint32_t)message->address_x, (uint32_t)message->address_y},
                .linear = message->linear,
                .normalized = message->normalized,
                .to_float = message->to_float,
        };
}

/* A pointer that is no buffer's address is the null pointer. */
static bool scalar_is_null(const ProtobufCBinaryData *scalar) {
        static const uint8_t null[sizeof(CUdeviceptr)];

        return scalar->len == sizeof(null) && !memcmp(scalar->data, null, sizeof(null));
}

static bool kind_takes_scalar(Gpuq__V1__Kind wants, Gpuq__V1__Kind given) {
        if (wants == GPUQ__V1__KIND__BYTES || wants == given)
                return wants != GPUQ__V1__KIND__POINTER;
        if (wants == GPUQ__V1__KIND__POINTER)
                return false;
        if (given == GPUQ__V1__KIND__BYTES)
                return true;
        return wants == GPUQ__V1__KIND__WORD64 && given == GPUQ__V1__KIND__I64;
}

static int argument_misfit(const Function *function, unsigned i, const char *given,
                           Failure *failure) {
        const FunctionParameter *parameter = &function->parameters[i];
        char wants[32];

        return failure_set(failure, GPUQ__V1__CODE__E_INVALID,
                           "argument %u of %s must be %s, not %s%s", i + 1, function->name,
                           kind_describe(parameter->kind, parameter->size, wants, sizeof(wants)),
                           given,
                           function->kinds_known
                                   ? ""
                                   : " (this module records sizes of parameters, not their types)");
}

int argument_check(const Function *function, unsigned i, const Gpuq__V1__Argument *argument,
                   Failure *failure) {
        const FunctionParameter *parameter = &function->parameters[i];
        char given[32], size[48];

        if (argument->value_case == GPUQ__V1__ARGUMENT__VALUE_BUFFER)
                return kind_takes_buffer(parameter)
                               ? 0
                               : argument_misfit(function, i, "a buffer", failure);
        if (argument->value_case == GPUQ__V1__ARGUMENT__VALUE_TEXTURE)
                return kind_takes_texture(parameter)
                               ? 0
                               : argument_misfit(function, i, "a texture", failure);
        if (argument->value_case != GPUQ__V1__ARGUMENT__VALUE_SCALAR)
                return argument_misfit(function, i, "nothing", failure);

        if (argument->kind == GPUQ__V1__KIND__POINTER && kind_takes_buffer(parameter) &&
            scalar_is_null(&argument->scalar))
                return 0;

        if (!kind_takes_scalar(parameter->kind, argument->kind)) {
                const char *text =
                        kind_describe(argument->kind, argument->scalar.len, given, sizeof(given));
                return argument_misfit(
                        function, i, argument->kind == GPUQ__V1__KIND__POINTER ? "a pointer" : text,
                        failure);
        }
        if (argument->scalar.len != parameter->size) {
                snprintf(size, sizeof(size), "%zu byte%s", argument->scalar.len,
                         argument->scalar.len == 1 ? "" : "s");
                return argument_misfit(function, i, size, failure);
        }
        return 0;
}

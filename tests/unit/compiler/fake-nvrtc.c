/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compiler as NVRTC is one, for tests on any machine: whatever the source is, its PTX has the
 * kernel "of_a_stand_in", and a comment for each option.
 */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Program {
        char *ptx;
} Program;

/* No header declares them: the compiler finds them by name. */
EXPORT int nvrtcCreateProgram(Program **program, const char *source, const char *name,
                              int n_headers, const char *const *headers, const char *const *names);
EXPORT int nvrtcCompileProgram(Program *program, int n_options, const char *const *options);
EXPORT int nvrtcDestroyProgram(Program **program);
EXPORT int nvrtcGetProgramLogSize(Program *program, size_t *ret_n);
EXPORT int nvrtcGetProgramLog(Program *program, char *log);
EXPORT int nvrtcGetPTXSize(Program *program, size_t *ret_n);
EXPORT int nvrtcGetPTX(Program *program, char *ptx);
EXPORT int nvrtcGetCUBINSize(Program *program, size_t *ret_n);
EXPORT int nvrtcGetCUBIN(Program *program, char *cubin);
EXPORT int nvrtcAddNameExpression(Program *program, const char *name);
EXPORT int nvrtcGetLoweredName(Program *program, const char *name, const char **ret_symbol);
EXPORT int nvrtcGetNumSupportedArchs(int *ret_n);
EXPORT int nvrtcGetSupportedArchs(int *architectures);
EXPORT const char *nvrtcGetErrorString(int error);

int nvrtcCreateProgram(Program **program, const char *source, const char *name, int n_headers,
                       const char *const *headers, const char *const *names) {
        *program = calloc(1, sizeof(**program));
        return *program == NULL;
}

int nvrtcCompileProgram(Program *program, int n_options, const char *const *options) {
        size_t n;
        FILE *ptx = open_memstream(&program->ptx, &n);

        if (!ptx)
                return 1;
        fputs("//\n.version 6.0\n.target sm_60\n.address_size 64\n", ptx);
        for (int i = 0; i < n_options; i++)
                fprintf(ptx, "// %s\n", options[i]);
        fputs(".visible .entry of_a_stand_in()\n{\nret;\n}\n", ptx);
        return fclose(ptx) != 0;
}

int nvrtcDestroyProgram(Program **program) {
        free((*program)->ptx);
        free(*program);
        return 0;
}

int nvrtcGetProgramLogSize(Program *program, size_t *ret_n) {
        *ret_n = 1;
        return 0;
}

int nvrtcGetProgramLog(Program *program, char *log) {
        *log = '\0';
        return 0;
}

int nvrtcGetPTXSize(Program *program, size_t *ret_n) {
        *ret_n = strlen(program->ptx) + 1;
        return 0;
}

int nvrtcGetPTX(Program *program, char *ptx) {
        strcpy(ptx, program->ptx);
        return 0;
}

int nvrtcGetCUBINSize(Program *program, size_t *ret_n) {
        *ret_n = 0;
        return 0;
}

int nvrtcGetCUBIN(Program *program, char *cubin) {
        return 1;
}

int nvrtcAddNameExpression(Program *program, const char *name) {
        return 0;
}

int nvrtcGetLoweredName(Program *program, const char *name, const char **ret_symbol) {
        return 1;
}

int nvrtcGetNumSupportedArchs(int *ret_n) {
        *ret_n = 1;
        return 0;
}

int nvrtcGetSupportedArchs(int *architectures) {
        *architectures = 60;
        return 0;
}

const char *nvrtcGetErrorString(int error) {
        return "the stand-in failed";
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX that a user wrote, or had clang write, in the compiler's process: it is read and becomes C, or is refused with a
 * message of one line; and what OpenCL C became is rewritten.
 */

#include <stdlib.h>
#include <string.h>

#include "compiler/opencl.h"
#include "compiler/ptx/translate.h"
#include "input.h"

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static bool every_variable(const PtxVariable *variable) {
        return variable->n_initials % 2;
}

static void try_locals(const uint8_t *data, size_t n_data) {
        _cleanup_(freep) char *given = strndup((const char *)data, n_data), *text = NULL;
        size_t n_text;
        int r;

        must(given != NULL);
        r = opencl_rewrite(given, &text, &n_text);
        must(r == 0 || r == OPENCL_E_LOCAL || r == OPENCL_E_VARIABLE);
        must(r == 0 ? strlen(text) == n_text : text == NULL);
}

static void try_translation(const uint8_t *data, size_t n_data) {
        _cleanup_(ptx_module_freep) PtxModule *module = NULL;
        _cleanup_(freep) char *source = NULL, *error = NULL;
        int r;

        r = ptx_module_read((const char *)data, n_data, &module, &error);
        if (r == 0)
                r = ptx_translate(module, every_variable, &source, &error);
        must(r == 0 || r == PTX_E_INVALID);
        must(r == 0 ? source != NULL && !error : error && !strchr(error, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        try_translation(data, n_data);
        try_locals(data, n_data);
        return 0;
}

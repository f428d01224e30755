/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/advice.h"

#include <string.h>

bool advice_is_of_host(const char *log) {
        return strstr(log, "not allowed in JIT mode") != NULL;
}

/* texture<float, 1, cudaReadModeElementType> name; */
static bool is_of_texture_reference(const char *log) {
        return strstr(log, "texture is not a template") ||
               strstr(log, "no template named 'texture'") ||
               strstr(log, "undeclared identifier 'cudaReadMode");
}

const char *advice(const char *log) {
        if (is_of_texture_reference(log))
                return "\n(texture references are not supported, nor are they by CUDA since "
                       "version 12: give the "
                       "kernel a parameter of type cudaTextureObject_t, and gpuq_texture() or "
                       "gpuq.Texture() as its "
                       "argument)";
        if (advice_is_of_host(log))
                return "\n(gpuq compiles the code for the device, and the functions of the host "
                       "could not be compiled "
                       "as such; leave them out, or put them between #ifndef __CUDACC_RTC__ and "
                       "#endif)";
        return "";
}

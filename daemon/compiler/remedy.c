/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/remedy.h"

#include <string.h>

/* As a variable of the device, one of the host would have a value of its own, which nobody sets. */
bool remedy_is_of_host(const char *log) {
        return (strstr(log, "__host__ function is not allowed in JIT mode") ||
                strstr(log, "host functions are not allowed in JIT mode")) &&
               !strstr(log, "host variables are not allowed in JIT mode");
}

/* texture<float, 1, cudaReadModeElementType> name; */
static bool is_of_texture_reference(const char *log) {
        return strstr(log, "texture is not a template") ||
               strstr(log, "no template named 'texture'") ||
               strstr(log, "undeclared identifier 'cudaReadMode");
}

const char *remedy(const char *log) {
        if (is_of_texture_reference(log))
                return "\n(CUDA 12 removed texture references. Give the kernel a parameter of type "
                       "cudaTextureObject_t, and as its argument gpuq_texture() or gpuq.Texture.)";
        if (strstr(log, "not allowed in JIT mode"))
                return "\n(gpuq compiles for the device, and these functions or variables of the "
                       "host cannot be the device's. Put them between #ifndef __CUDACC_RTC__ and "
                       "#endif.)";
        return "";
}

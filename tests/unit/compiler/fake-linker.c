/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linker as nvJitLink is one, for tests on any machine: its cubin is the PTX, and a
 * library behind it. It does not like twins where the PTX says so: REFUSE_TWINS is an
 * error, CRASH_TWINS ends the process. REFUSE_PTX is an error without twins, too. Calls of the device runtime need a library.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define INPUT_LIBRARY 6

typedef struct Linker {
        char *text;
        const char *error;
        bool has_library;
} Linker;

/* No header declares them: the compiler finds them by name. */
EXPORT int nvJitLinkCreate(Linker **linker, uint32_t n_options, const char **options);
EXPORT int nvJitLinkDestroy(Linker **linker);
EXPORT int nvJitLinkAddData(Linker *linker, int type, const void *data, size_t n_data,
                            const char *name);
EXPORT int nvJitLinkComplete(Linker *linker);
EXPORT int nvJitLinkGetLinkedCubinSize(Linker *linker, size_t *ret_n);
EXPORT int nvJitLinkGetLinkedCubin(Linker *linker, void *cubin);
EXPORT int nvJitLinkGetErrorLogSize(Linker *linker, size_t *ret_n);
EXPORT int nvJitLinkGetErrorLog(Linker *linker, char *log);

int nvJitLinkCreate(Linker **linker, uint32_t n_options, const char **options) {
        *linker = calloc(1, sizeof(**linker));
        return *linker == NULL;
}

int nvJitLinkDestroy(Linker **linker) {
        free((*linker)->text);
        free(*linker);
        return 0;
}

int nvJitLinkAddData(Linker *linker, int type, const void *data, size_t n_data, const char *name) {
        char *text = NULL;

        linker->has_library |= type == INPUT_LIBRARY;
        if (asprintf(&text, "%s%.*s", linker->text ? linker->text : "", (int)n_data,
                     (const char *)data) < 0)
                return 1;
        free(linker->text);
        linker->text = text;
        return 0;
}

int nvJitLinkComplete(Linker *linker) {
        linker->error = "Unsupported .version";
        if (strstr(linker->text, "REFUSE_PTX"))
                return 1;
        linker->error = "no twins, please";
        if (strstr(linker->text, "__cudaCDP2LaunchDeviceV2") && !linker->has_library) {
                linker->error = "Undefined reference to '__cudaCDP2LaunchDeviceV2' in 'x'";
                return 1;
        }
        if (!strstr(linker->text, "$gpuq_batch"))
                return 0;
        if (strstr(linker->text, "CRASH_TWINS"))
                raise(SIGKILL); /* a sanitizer would catch another */
        return strstr(linker->text, "REFUSE_TWINS") != NULL;
}

int nvJitLinkGetLinkedCubinSize(Linker *linker, size_t *ret_n) {
        *ret_n = strlen(linker->text);
        return 0;
}

int nvJitLinkGetLinkedCubin(Linker *linker, void *cubin) {
        memcpy(cubin, linker->text, strlen(linker->text));
        return 0;
}

int nvJitLinkGetErrorLogSize(Linker *linker, size_t *ret_n) {
        *ret_n = strlen(linker->error) + 1;
        return 0;
}

int nvJitLinkGetErrorLog(Linker *linker, char *log) {
        strcpy(log, linker->error);
        return 0;
}

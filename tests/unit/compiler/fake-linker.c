/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linker as nvJitLink is one, for tests on any machine: its cubin is the PTX. It
 * does not like twins where the PTX says so: REFUSE_TWINS is an error, CRASH_TWINS
 * ends the process.
 */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Linker {
        char *text;
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
        linker->text = strndup(data, n_data);
        return linker->text == NULL;
}

int nvJitLinkComplete(Linker *linker) {
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
        *ret_n = sizeof("no twins, please");
        return 0;
}

int nvJitLinkGetErrorLog(Linker *linker, char *log) {
        strcpy(log, "no twins, please");
        return 0;
}

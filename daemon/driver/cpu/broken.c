/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/broken.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/macro.h"

/* The word behind @name in the file. Return: false: there is none. */
static bool broken_look_up(const char *name, char word[static 16]) {
        const char *path = getenv("GPUQ_CPU_BROKEN");
        char line_name[128];
        bool found = false;
        FILE *file;

        if (!path || !*path)
                return false;
        file = fopen(path, "re");
        if (!file)
                return false;
        while (!found && fscanf(file, "%127s %15s", line_name, word) == 2)
                found = strcmp(line_name, name) == 0;
        fclose(file);
        return found;
}

static bool broken_look_up_device(int number, char word[static 16]) {
        char name[16];

        snprintf(name, sizeof(name), "%d", number);
        return broken_look_up(name, word);
}

/* Of a word that is no number: CUDA_SUCCESS. */
static CUresult broken_code(const char *word) {
        return (CUresult)strtol(word, NULL, 10);
}

CUresult broken_driver(void) {
        char word[16];

        return broken_look_up("driver", word) ? broken_code(word) : CUDA_SUCCESS;
}

CUresult broken_device(int number) {
        char word[16];

        return broken_look_up_device(number, word) ? broken_code(word) : CUDA_SUCCESS;
}

CUresult broken_call(const char *name) {
        char word[16];

        return broken_look_up(name, word) ? broken_code(word) : CUDA_SUCCESS;
}

bool broken_is_full(int number) {
        char word[16];
        int pid;

        return broken_look_up_device(number, word) && sscanf(word, "full:%d", &pid) == 1 &&
               (kill(pid, 0) == 0 || errno != ESRCH);
}

bool broken_is_gone(int number) {
        char word[16];

        return broken_look_up_device(number, word) && strcmp(word, "gone") == 0;
}

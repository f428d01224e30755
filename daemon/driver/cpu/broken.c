/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/broken.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "util/macro.h"

/* The word after @name in the file. Return: false: there is none. */
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

/* The result code that a word stands for; CUDA_SUCCESS if it is not a number. */
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

/* The kernel releases the lock when the process ends. Return: false: another process has it, or
 * there is no such file. */
static bool broken_lock(unsigned place) {
        char path[4096];
        int fd;

        snprintf(path, sizeof(path), "%s.%u", getenv("GPUQ_CPU_BROKEN"), place);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
                return true;
        close(fd);
        return false;
}

bool broken_take_room(int number) {
        char word[16];
        unsigned n;

        if (!broken_look_up_device(number, word) || sscanf(word, "room:%u", &n) != 1)
                return true;
        for (unsigned i = 0; i < n; ++i)
                if (broken_lock(i))
                        return true;
        return false;
}

bool broken_is_gone(int number) {
        char word[16];

        return broken_look_up_device(number, word) && strcmp(word, "gone") == 0;
}

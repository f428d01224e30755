/* SPDX-License-Identifier: Apache-2.0 */
#include "util/socket-path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_PATH_SYSTEM "/run/gpuq/gpuqd.sock"

/* Nobody else can put a socket there. It may be another user's folder: su and sudo keep the variable. */
static bool socket_path_is_own_folder(const char *path) {
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
               !(st.st_mode & (S_IWGRP | S_IWOTH));
}

const char *socket_path_default(char memory[static PATH_MAX]) {
        const char *path = secure_getenv("GPUQ_SOCKET");
        const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
        int n;

        if (path && path[0] != '\0')
                return path;
        if (!runtime || runtime[0] == '\0' || !socket_path_is_own_folder(runtime))
                return SOCKET_PATH_SYSTEM;

        n = snprintf(memory, PATH_MAX, "%s/gpuq.sock", runtime);
        return n < PATH_MAX && access(memory, F_OK) == 0 ? memory : SOCKET_PATH_SYSTEM;
}

const char *socket_path_hint(void) {
        const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

        if (runtime && *runtime == '/')
                return "'gpuqd --private'";
        return "'gpuqd --private --socket PATH' and set GPUQ_SOCKET=PATH";
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http-request.h"

#include <string.h>

int http_request_check(const char *target, char *request) {
        char *rest, *method = strtok_r(request, " \r\n", &rest);
        char *asked = strtok_r(NULL, " \r\n", &rest), *version = strtok_r(NULL, " \r\n", &rest);
        size_t n = strlen(target);

        if (!method || !asked || !version || strncmp(version, "HTTP/1.", 7) != 0)
                return 400;
        if (strcmp(method, "GET") != 0)
                return 405;
        if (strncmp(asked, target, n) != 0 || (asked[n] && asked[n] != '?'))
                return 404;
        return 200;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "http-address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

static int address_read_path(const char *text, HttpAddress *ret_address) {
        if (strlen(text) >= sizeof(ret_address->un.sun_path))
                return -ENAMETOOLONG;
        ret_address->un.sun_family = AF_UNIX;
        strcpy(ret_address->un.sun_path, text);
        return 0;
}

static int address_read_host(const char *host, uint16_t port, HttpAddress *ret_address) {
        size_t n = strlen(host);
        char inner[64];

        if (inet_pton(AF_INET, host, &ret_address->in.sin_addr) == 1) {
                ret_address->in.sin_family = AF_INET;
                ret_address->in.sin_port = htons(port);
                return ntohl(ret_address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                               ? 0
                               : HTTP_E_EXPOSED;
        }
        if (n < 3 || n >= sizeof(inner) || host[0] != '[' || host[n - 1] != ']')
                return HTTP_E_FORM;
        snprintf(inner, sizeof(inner), "%.*s", (int)n - 2, host + 1);
        if (inet_pton(AF_INET6, inner, &ret_address->in6.sin6_addr) != 1)
                return HTTP_E_FORM;
        ret_address->in6.sin6_family = AF_INET6;
        ret_address->in6.sin6_port = htons(port);
        return IN6_IS_ADDR_LOOPBACK(&ret_address->in6.sin6_addr) ? 0 : HTTP_E_EXPOSED;
}

int http_address_read(const char *text, HttpAddress *ret_address) {
        const char *colon = strrchr(text, ':');
        uint64_t port;
        char host[64];

        *ret_address = (HttpAddress){};
        if (strchr(text, '/'))
                return address_read_path(text, ret_address);
        if (!colon || (size_t)(colon - text) >= sizeof(host) ||
            number_unsigned(colon + 1, UINT16_MAX, &port) < 0)
                return HTTP_E_FORM;
        snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
        return address_read_host(host, (uint16_t)port, ret_address);
}

socklen_t http_address_size(const HttpAddress *address) {
        switch (address->any.sa_family) {
                case AF_UNIX:
                        return sizeof(address->un);
                case AF_INET:
                        return sizeof(address->in);
                default:
                        return sizeof(address->in6);
        }
}

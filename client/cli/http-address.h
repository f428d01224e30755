/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_HTTP_ADDRESS_H
#define GPUQ_CLI_HTTP_ADDRESS_H

/*
 * HTTP address
 *
 * Where a server listens that nobody on another machine may reach: a Unix socket or a loopback address.
 */

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
        _HTTP_E_SUCCESS,
        HTTP_E_FORM,    /* neither a path nor a numeric address with a port */
        HTTP_E_EXPOSED, /* other machines could connect */
};

typedef union HttpAddress {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
} HttpAddress;

/**
 * http_address_read() - @text: a path with a slash, 127.0.0.1:PORT or [::1]:PORT
 *
 * Names of hosts are not looked up: what they mean may change.
 * Return: 0, HTTP_E_FORM, HTTP_E_EXPOSED, or -ENAMETOOLONG.
 */
int http_address_read(const char *text, HttpAddress *ret_address);
/** http_address_size() - as bind() wants it. */
socklen_t http_address_size(const HttpAddress *address);

#endif

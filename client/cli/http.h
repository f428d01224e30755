/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_HTTP_H
#define GPUQ_CLI_HTTP_H

/*
 * HTTP
 *
 * Serves one text to GET, at one path, on a Unix socket or a loopback address. A connection has
 * HTTP_PEER_MS for its request and as long for reading the answer, and the text must be there within
 * HTTP_ANSWER_MS. Each connection ends after its answer. A child process makes the text, one for all
 * requests that wait for it, so that it can be ended.
 */

#include <stdio.h>

#include "http-address.h"
#include "util/macro.h"

#define HTTP_PEER_MS   2000
#define HTTP_ANSWER_MS 5000

typedef struct Http Http;

/**
 * HttpAnswer - write the text, in a child process
 *
 * Return: 0; else the answer is 503, and what was written is the reason.
 */
typedef int (*HttpAnswer)(FILE *stream, void *userdata);

/**
 * http_new() - listen
 * @address: a path with a slash, 127.0.0.1:PORT or [::1]:PORT; port 0: any that is free
 *
 * Return: 0, a positive HTTP_E_ code, or a negative errno.
 */
int http_new(const char *address, Http **ret_http);
/** http_free() - stop listening, and remove the socket; NULL is fine. Return: NULL. */
Http *http_free(Http *http);
DEFINE_CLEANUP(Http, http_free)
/** http_address() - where it listens, with the port. */
const char *http_address(const Http *http);
/**
 * http_serve() - answer GET @path until SIGINT, SIGTERM or SIGHUP
 * @type: the content type of the text
 *
 * Return: 0, or a negative errno.
 */
int http_serve(Http *http, const char *path, const char *type, HttpAnswer answer, void *userdata);

#endif

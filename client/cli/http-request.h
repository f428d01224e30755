/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_HTTP_REQUEST_H
#define GPUQ_CLI_HTTP_REQUEST_H

/** http_request_check() - @request: its head; taken apart. Return: 200 if it is GET @target, or the status of a refusal. */
int http_request_check(const char *target, char *request);

#endif

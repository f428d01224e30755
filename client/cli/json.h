/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_JSON_H
#define GPUQ_CLI_JSON_H

/*
 * JSON documents, as described in gpuq(1): one object per command. Its member "version" changes
 * only when a member is removed or changes its meaning.
 */

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#define JSON_VERSION 1

/** json_document() - an object that has its version. Free it with json_object_put(). */
struct json_object *json_document(void);
/** json_text() - a member of text; bytes that are no UTF-8 become U+FFFD; NULL becomes null. */
void json_text(struct json_object *object, const char *name, const char *text);
/** json_number() - a member that is an unsigned number. */
void json_number(struct json_object *object, const char *name, uint64_t value);
/** json_truth() - true or false. */
void json_truth(struct json_object *object, const char *name, bool value);
/** json_signed() - one that may be negative. */
void json_signed(struct json_object *object, const char *name, int64_t value);
/** json_real() - one with decimals. */
void json_real(struct json_object *object, const char *name, double value);
/** json_id() - a job's id, as text: "12.3". */
void json_id(struct json_object *object, const char *name, uint64_t id);
/** json_member() - an empty object as a member. */
struct json_object *json_member(struct json_object *object, const char *name);
/** json_array() - an empty array as a member, for json_array_object(). */
struct json_object *json_array(struct json_object *object, const char *name);
/** json_array_object() - append an empty object. */
struct json_object *json_array_object(struct json_object *array);
/** json_print() - to standard output; frees @document. */
void json_print(struct json_object *document);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <gpuq.h>

#include "util/macro.h"

/* Length of the UTF-8 character at @p in bytes; 0: there is none. Surrogates and overlong forms
 * are invalid. */
static size_t utf8_length(const unsigned char *p) {
        size_t length = *p < 0x80   ? 1
                        : *p < 0xc2 ? 0
                        : *p < 0xe0 ? 2
                        : *p < 0xf0 ? 3
                        : *p < 0xf5 ? 4
                                    : 0;

        for (size_t i = 1; i < length; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
            (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
                return 0;
        return length;
}

/* @ret has three bytes for each of @text. Return: the bytes written. */
static size_t utf8_clean(const char *text, char *ret) {
        char *to = ret;

        while (*text) {
                size_t length = utf8_length((const unsigned char *)text);

                memcpy(to, length ? text : "\xef\xbf\xbd", length ? length : 3);
                to += length ? length : 3;
                text += length ? length : 1;
        }
        return (size_t)(to - ret);
}

struct json_object *json_document(void) {
        struct json_object *document = json_object_new_object();

        json_number(document, "version", JSON_VERSION);
        return document;
}

void json_text(struct json_object *object, const char *name, const char *text) {
        _cleanup_(freep) char *clean = text ? malloc(3 * strlen(text) + 1) : NULL;
        struct json_object *value = NULL;

        if (clean)
                value = json_object_new_string_len(clean, (int)utf8_clean(text, clean));
        json_object_object_add(object, name, value);
}

void json_number(struct json_object *object, const char *name, uint64_t value) {
        json_object_object_add(object, name, json_object_new_uint64(value));
}

void json_truth(struct json_object *object, const char *name, bool value) {
        json_object_object_add(object, name, json_object_new_boolean(value));
}

void json_signed(struct json_object *object, const char *name, int64_t value) {
        json_object_object_add(object, name, json_object_new_int64(value));
}

void json_real(struct json_object *object, const char *name, double value) {
        char text[64];
        size_t n;

        snprintf(text, sizeof(text), "%.6f", value);
        /* A fraction keeps one digit, so that it stays one. */
        for (n = strlen(text); text[n - 1] == '0' && text[n - 2] != '.'; n--)
                text[n - 1] = '\0';
        json_object_object_add(object, name, json_object_new_double_s(value, text));
}

void json_id(struct json_object *object, const char *name, uint64_t id) {
        char text[24];

        json_text(object, name, gpuq_id_format(id, text));
}

struct json_object *json_member(struct json_object *object, const char *name) {
        struct json_object *member = json_object_new_object();

        json_object_object_add(object, name, member);
        return member;
}

struct json_object *json_array(struct json_object *object, const char *name) {
        struct json_object *array = json_object_new_array();

        json_object_object_add(object, name, array);
        return array;
}

struct json_object *json_array_object(struct json_object *array) {
        struct json_object *object = json_object_new_object();

        json_object_array_add(array, object);
        return object;
}

void json_print(struct json_object *document) {
        puts(json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY |
                                                              JSON_C_TO_STRING_SPACED |
                                                              JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(document);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "note.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "util/macro.h"

/* ---- write ----------------------------------------------------------------- */

/* A path is written byte for byte, even if it is not UTF-8: only gpuq reads it again. */
static void write_bytes(struct json_object *object, const char *name, const char *text) {
        json_object_object_add(object, name, json_object_new_string(text));
}

static void write_output(struct json_object *array, const NoteOutput *output) {
        struct json_object *object = json_array_object(array), *shape;

        json_number(object, "argument", output->argument);
        write_bytes(object, "path", output->path);
        json_text(object, "dtype", output->array.dtype->name);
        json_truth(object, "fortran_order", output->array.fortran_order);
        shape = json_array(object, "shape");
        for (unsigned i = 0; i < output->array.n_dims; i++)
                json_object_array_add(shape, json_object_new_uint64(output->array.shape[i]));
}

int note_write(const Note *note, char **ret_text) {
        struct json_object *document = json_document(), *outputs;
        const char *text;

        write_bytes(document, "source", note->source);
        write_bytes(document, "kernel", note->kernel);
        outputs = json_array(document, "outputs");
        for (size_t i = 0; i < note->n_outputs; i++)
                write_output(outputs, &note->outputs[i]);

        text = json_object_to_json_string_ext(document, JSON_C_TO_STRING_PLAIN);
        *ret_text = text ? strdup(text) : NULL;
        json_object_put(document);
        return *ret_text ? 0 : -ENOMEM;
}

/* ---- read ------------------------------------------------------------------ */

static struct json_object *member(struct json_object *object, const char *name,
                                  enum json_type type) {
        struct json_object *value;

        if (!json_object_object_get_ex(object, name, &value) || !json_object_is_type(value, type))
                return NULL;
        return value;
}

static int read_text(struct json_object *object, const char *name, char **ret_text) {
        struct json_object *value = member(object, name, json_type_string);

        if (!value ||
            strlen(json_object_get_string(value)) != (size_t)json_object_get_string_len(value))
                return -EINVAL;
        *ret_text = strdup(json_object_get_string(value));
        return *ret_text ? 0 : -ENOMEM;
}

static int read_array(struct json_object *object, NpyArray *array) {
        struct json_object *dtype = member(object, "dtype", json_type_string);
        struct json_object *order = member(object, "fortran_order", json_type_boolean);
        struct json_object *shape = member(object, "shape", json_type_array);
        uint64_t dims[NPY_DIMS_MAX];
        size_t n;

        if (!dtype || !order || !shape ||
            dtype_from_name(json_object_get_string(dtype), &array->dtype) != 0)
                return -EINVAL;
        n = json_object_array_length(shape);
        if (n > NPY_DIMS_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                struct json_object *dim = json_object_array_get_idx(shape, i);

                if (!json_object_is_type(dim, json_type_int) || json_object_get_int64(dim) < 0)
                        return -EINVAL;
                dims[i] = json_object_get_uint64(dim);
        }
        array->fortran_order = json_object_get_boolean(order);
        return npy_array_set_shape(array, dims, (unsigned)n) < 0 ? -EINVAL : 0;
}

static int read_output(struct json_object *object, NoteOutput *output) {
        struct json_object *argument = member(object, "argument", json_type_int);
        int r;

        if (!argument)
                return -EINVAL;
        output->argument = (unsigned)json_object_get_int(argument);
        r = read_text(object, "path", &output->path);
        if (r < 0)
                return r;
        return *output->path == '/' ? read_array(object, &output->array) : -EINVAL;
}

static int read_outputs(struct json_object *array, Note *note) {
        size_t n = array ? json_object_array_length(array) : 0;
        int r;

        if (!array)
                return -EINVAL;
        note->outputs = calloc(n + 1, sizeof(*note->outputs));
        if (!note->outputs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                note->n_outputs++;
                r = read_output(json_object_array_get_idx(array, i), &note->outputs[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_document(struct json_object *document, Note *note) {
        struct json_object *version = member(document, "version", json_type_int);
        int r;

        if (!version || json_object_get_int(version) != JSON_VERSION)
                return -EINVAL;
        r = read_text(document, "source", &note->source);
        if (r == 0)
                r = read_text(document, "kernel", &note->kernel);
        return r < 0 ? r : read_outputs(member(document, "outputs", json_type_array), note);
}

int note_read(const void *text, size_t n_text, Note *ret_note) {
        struct json_tokener *tokener = json_tokener_new();
        struct json_object *document;
        int r;

        *ret_note = (Note){};
        if (!tokener)
                return -ENOMEM;
        document = json_tokener_parse_ex(tokener, text, (int)n_text);
        r = document && json_tokener_get_parse_end(tokener) == n_text
                    ? read_document(document, ret_note)
                    : -EINVAL;
        json_object_put(document);
        json_tokener_free(tokener);
        return r;
}

void note_clear(Note *note) {
        for (size_t i = 0; i < note->n_outputs; i++)
                free(note->outputs[i].path);
        free(note->outputs);
        free(note->source);
        free(note->kernel);
        *note = (Note){};
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The dictionary in an NPY header:
 *
 *     {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
 *
 * numpy evaluates any literal; what its writers really produce is one dictionary
 * with these three keys, once each, and that alone is accepted here.
 */

#include "npy.h"

#include <string.h>

enum {
        HEADER_DESCR = 1 << 0,
        HEADER_ORDER = 1 << 1,
        HEADER_SHAPE = 1 << 2,
        HEADER_ALL = HEADER_DESCR | HEADER_ORDER | HEADER_SHAPE,
};

typedef struct Header {
        const char *start, *p, *end;
        const char *name;
        Problem *problem;
        unsigned seen;
        char descr[64];
        bool fortran_order;
        unsigned n_dims;
        uint64_t shape[NPY_DIMS_MAX];
} Header;

static int header_broken(Header *header, const char *wanted) {
        return problem_set(header->problem, -EINVAL,
                           "%s: malformed NPY header: expected %s at byte %zu of the header",
                           header->name, wanted, (size_t)(header->p - header->start));
}

static void header_skip_blanks(Header *header) {
        while (header->p < header->end && *header->p && strchr(" \t\r\n", *header->p))
                header->p++;
}

/* Blanks, then @c. */
static bool header_take(Header *header, char c) {
        header_skip_blanks(header);
        if (header->p == header->end || *header->p != c)
                return false;
        header->p++;
        return true;
}

static bool header_take_word(Header *header, const char *word) {
        size_t length = strlen(word);

        header_skip_blanks(header);
        if ((size_t)(header->end - header->p) < length || memcmp(header->p, word, length) != 0)
                return false;
        header->p += length;
        return true;
}

/* A string without escapes; no key and no dtype that we take has any. */
static int header_string(Header *header, char *ret, size_t n_ret) {
        const char *start, *end;
        char quote;

        header_skip_blanks(header);
        if (header->p == header->end || (*header->p != '\'' && *header->p != '"'))
                return header_broken(header, "a quoted word");

        quote = *header->p;
        start = header->p + 1;
        end = memchr(start, quote, (size_t)(header->end - start));
        if (!end || (size_t)(end - start) >= n_ret || memchr(start, '\\', (size_t)(end - start)))
                return header_broken(header, "a short quoted word");

        memcpy(ret, start, (size_t)(end - start));
        ret[end - start] = '\0';
        header->p = end + 1;
        return 0;
}

static int header_number(Header *header, uint64_t *ret_value) {
        uint64_t value = 0;
        const char *start;

        header_skip_blanks(header);
        for (start = header->p; header->p < header->end; header->p++) {
                if (*header->p < '0' || *header->p > '9')
                        break;
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*header->p - '0'), &value))
                        return header_broken(header, "a length of at most 64 bits");
        }
        if (header->p == start)
                return header_broken(header, "a length");
        /* Python 2 wrote long integers in this way. */
        if (header->p < header->end && *header->p == 'L')
                header->p++;

        *ret_value = value;
        return 0;
}

static int header_shape(Header *header) {
        bool comma = true;
        int r;

        if (!header_take(header, '('))
                return header_broken(header, "`('");

        while (!header_take(header, ')')) {
                if (!comma)
                        return header_broken(header, "`,' or `)'");
                if (header->n_dims == NPY_DIMS_MAX)
                        return header_broken(header, "`)': an array has at most 64 dimensions");

                r = header_number(header, &header->shape[header->n_dims]);
                if (r < 0)
                        return r;
                header->n_dims++;
                comma = header_take(header, ',');
        }

        /* (3) is a number in Python, (3,) is a tuple. */
        if (header->n_dims == 1 && !comma)
                return header_broken(header, "`,' after a shape's only dimension");
        return 0;
}

static int header_order(Header *header) {
        if (header_take_word(header, "False"))
                header->fortran_order = false;
        else if (header_take_word(header, "True"))
                header->fortran_order = true;
        else
                return header_broken(header, "True or False");
        return 0;
}

static int header_descr(Header *header) {
        header_skip_blanks(header);
        if (header->p < header->end && *header->p == '[')
                return problem_set(
                        header->problem, -EINVAL,
                        "%s: its elements are records (a structured dtype); expected one of %s",
                        header->name, dtype_names());
        return header_string(header, header->descr, sizeof(header->descr));
}

static int header_entry(Header *header) {
        static const struct {
                const char *key;
                unsigned bit;
                int (*parse)(Header *header);
        } entries[] = {
                {"descr", HEADER_DESCR, header_descr},
                {"fortran_order", HEADER_ORDER, header_order},
                {"shape", HEADER_SHAPE, header_shape},
        };
        char key[32];
        int r;

        r = header_string(header, key, sizeof(key));
        if (r < 0)
                return r;
        if (!header_take(header, ':'))
                return header_broken(header, "`:'");

        for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
                if (strcmp(entries[i].key, key) != 0)
                        continue;
                if (header->seen & entries[i].bit)
                        break;
                header->seen |= entries[i].bit;
                return entries[i].parse(header);
        }
        return header_broken(header, "descr, fortran_order and shape once each");
}

static int header_dictionary(Header *header) {
        bool comma = true;
        int r;

        if (!header_take(header, '{'))
                return header_broken(header, "`{'");

        while (!header_take(header, '}')) {
                if (!comma)
                        return header_broken(header, "`,' or `}'");
                r = header_entry(header);
                if (r < 0)
                        return r;
                comma = header_take(header, ',');
        }
        if (header->seen != HEADER_ALL)
                return header_broken(header, "descr, fortran_order and shape once each");

        header_skip_blanks(header);
        if (header->p != header->end)
                return header_broken(header, "the end of the header");
        return 0;
}

static int header_dtype(Header *header, const Dtype **ret_dtype) {
        switch (dtype_from_descr(header->descr, ret_dtype)) {
                case 0:
                        return 0;
                case DTYPE_E_BIG_ENDIAN:
                        return problem_set(
                                header->problem, -EINVAL,
                                "%s: its elements are big-endian (`%s'); expected "
                                "little-endian, as a.astype(a.dtype.newbyteorder('<')) gives",
                                header->name, header->descr);
                default:
                        if (strchr(header->descr, 'O'))
                                return problem_set(header->problem, -EINVAL,
                                                   "%s: its elements are Python objects (`%s'); "
                                                   "expected one of %s",
                                                   header->name, header->descr, dtype_names());
                        return problem_set(header->problem, -EINVAL,
                                           "%s: its dtype is `%s'; expected one of %s",
                                           header->name, header->descr, dtype_names());
        }
}

int npy_array_set_shape(NpyArray *array, const uint64_t *shape, unsigned n_dims) {
        uint64_t n_elements = 1, n_bytes;
        bool empty = false, overflow = false;

        /* A length of 0 makes the product 0, even if an earlier part overflowed. */
        for (unsigned i = 0; i < n_dims; i++) {
                empty = empty || shape[i] == 0;
                overflow = __builtin_mul_overflow(n_elements, shape[i], &n_elements) || overflow;
        }
        if (empty)
                n_elements = 0;
        else if (overflow)
                return -EOVERFLOW;
        if (__builtin_mul_overflow(n_elements, array->dtype->size, &n_bytes) || n_bytes > INT64_MAX)
                return -EOVERFLOW;

        for (unsigned i = 0; i < n_dims; i++)
                array->shape[i] = shape[i];
        array->n_dims = n_dims;
        array->n_elements = n_elements;
        array->n_bytes = n_bytes;
        return 0;
}

int npy_parse_header(const char *text, size_t n_text, const char *name, Problem *problem,
                     NpyArray *ret_array) {
        Header header = {
                .start = text, .p = text, .end = text + n_text, .name = name, .problem = problem};
        NpyArray array = {};
        int r;

        r = header_dictionary(&header);
        if (r < 0)
                return r;
        r = header_dtype(&header, &array.dtype);
        if (r < 0)
                return r;

        array.fortran_order = header.fortran_order;
        if (npy_array_set_shape(&array, header.shape, header.n_dims) < 0)
                return problem_set(problem, -EINVAL, "%s: the array is larger than any memory",
                                   name);

        *ret_array = array;
        return 0;
}

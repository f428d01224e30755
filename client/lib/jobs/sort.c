/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sort
 *
 * By each digit of eight bits, the lowest first, in three launches. A pass moves the keys to a workspace, and the next
 * one moves them on to the result: all types have an even number of digits.
 */

#include <stdio.h>

#include "compose.h"
#include "error.h"
#include "parts.h"

#define SORT_DIGIT_BITS 8u
#define SORT_DIGITS     256u
#define SORT_COUNT      8u /* bytes */
#define SORT_WORD       4u /* bytes */

/* What kernels/sort.cuh calls order. */
enum {
        SORT_SIGNED = 1,
        SORT_FLOAT = 2,
        SORT_DESCENDING = 4,
};

typedef struct Sort {
        Composition composition;
        const gpuq_sort *sort;
        unsigned element;
        uint64_t words;   /* of a value */
        uint64_t columns; /* of counts: one for each part, and one for the sum */
        uint64_t order;
        gpuq_buffer *keys, *values, *counts; /* the workspace; values is NULL if there are none */
} Sort;

/* ---- checks ----------------------------------------------------------------------------- */

static int sort_check_values(const Composition *composition, const gpuq_sort *sort) {
        int r;

        if (sort->value_bytes % SORT_WORD)
                return error_set(GPUQ_E_INVALID,
                                 "sort: a value has %u bytes; it must be a multiple of %u",
                                 sort->value_bytes, SORT_WORD);
        r = compose_check(composition, "values", sort->values, sort->n, sort->value_bytes,
                          SORT_WORD);
        if (r == 0)
                r = compose_check(composition, "values_to", sort->values_to, sort->n,
                                  sort->value_bytes, SORT_WORD);
        return r;
}

static int sort_check(const Composition *composition, const gpuq_sort *sort) {
        unsigned element;
        int r;

        if (!sort)
                return error_set(GPUQ_E_INVALID, "gpuq_job_sort(): the sort is NULL");
        element = compose_element(sort->type);
        if (element == 0)
                return error_set(GPUQ_E_INVALID,
                                 "sort: type %d is none of f32, f64, i32, u32, i64 and u64",
                                 (int)sort->type);
        r = compose_check(composition, "keys", sort->keys, sort->n, element, element);
        if (r == 0)
                r = compose_check(composition, "to", sort->to, sort->n, element, element);
        if (r == 0 && sort->value_bytes > 0)
                return sort_check_values(composition, sort);
        if (r == 0 && (sort->values || sort->values_to))
                return error_set(GPUQ_E_INVALID,
                                 "sort: there are values, but value_bytes is 0; set it to the "
                                 "bytes of a value");
        return r;
}

/* ---- buffers ------------------------------------------------------------------------------ */

static uint64_t sort_order(const gpuq_sort *sort) {
        uint64_t order = sort->descending ? SORT_DESCENDING : 0;

        if (sort->type == GPUQ_TYPE_F32 || sort->type == GPUQ_TYPE_F64)
                return order | SORT_FLOAT;
        return sort->type == GPUQ_TYPE_I32 || sort->type == GPUQ_TYPE_I64 ? order | SORT_SIGNED
                                                                          : order;
}

static gpuq_arg sort_result(const Sort *sort) {
        return compose_result(sort->sort->to, sort->sort->n * sort->element);
}

static gpuq_arg sort_values_result(const Sort *sort) {
        return compose_result(sort->sort->values_to, sort->sort->n * sort->sort->value_bytes);
}

static int sort_make_workspace(Sort *sort) {
        const gpuq_buffer *like = sort->sort->to;
        uint64_t n = sort->sort->n;
        int r;

        r = compose_workspace(&sort->composition, like, n * sort->element, &sort->keys);
        if (r == 0 && sort->words > 0)
                r = compose_workspace(&sort->composition, like, n * sort->sort->value_bytes,
                                      &sort->values);
        if (r == 0)
                r = compose_workspace(&sort->composition, like,
                                      SORT_DIGITS * sort->columns * SORT_COUNT, &sort->counts);
        return r;
}

static int sort_keep_apart(Sort *sort) {
        const gpuq_sort *given = sort->sort;
        const uint64_t n_bytes = given->n * sort->element, n_values = given->n * given->value_bytes;
        const ApartSide keys = compose_side("keys", given->keys, n_bytes);
        const ApartSide to = compose_side("to", given->to, n_bytes);
        ApartSide values, values_to;
        int r;

        r = compose_apart(&sort->composition, keys, to, true);
        if (r < 0 || sort->words == 0)
                return r;

        values = compose_side("values", given->values, n_values);
        values_to = compose_side("values_to", given->values_to, n_values);
        const struct {
                ApartSide a, b;
                bool may_be_same;
        } pairs[] = {
                {values, values_to, true}, {keys, values, false},  {to, values, false},
                {keys, values_to, false},  {to, values_to, false},
        };

        for (unsigned i = 0; i < ARRAY_SIZE(pairs) && r == 0; i++)
                r = compose_apart(&sort->composition, pairs[i].a, pairs[i].b, pairs[i].may_be_same);
        return r;
}

/* The user's come before the workspace. */
static int sort_name_buffers(Sort *sort) {
        Composition *composition = &sort->composition;
        int r;

        r = compose_name(composition, gpuq_in(sort->sort->keys));
        if (r == 0)
                r = compose_name(composition, sort_result(sort));
        if (r == 0 && sort->words > 0)
                r = compose_name(composition, gpuq_in(sort->sort->values));
        if (r == 0 && sort->words > 0)
                r = compose_name(composition, sort_values_result(sort));
        return r;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int sort_launch_count(Sort *sort, gpuq_buffer *keys, unsigned shift) {
        gpuq_arg args[] = {
                gpuq_in(keys),           gpuq_out_whole(sort->counts),
                gpuq_u64(sort->sort->n), gpuq_u64(sort->columns),
                gpuq_u64(shift),         gpuq_u64(sort->order),
        };

        return compose_launch(&sort->composition,
                              sort->element == 4 ? "sort_count_u32" : "sort_count_u64",
                              sort->columns - 1, args, ARRAY_SIZE(args));
}

static int sort_launch_offsets(Sort *sort) {
        gpuq_arg args[] = {gpuq_inout(sort->counts), gpuq_u64(sort->columns)};

        return compose_launch(&sort->composition, "sort_offsets_u64", SORT_DIGITS, args,
                              ARRAY_SIZE(args));
}

/* Without values their kernel's arguments are those of the keys, of which it takes no words. */
static int sort_launch_move(Sort *sort, gpuq_buffer *keys, gpuq_buffer *values, gpuq_arg to,
                            gpuq_arg values_to, unsigned shift) {
        gpuq_arg args[] = {
                gpuq_in(keys),
                gpuq_in(sort->words ? values : keys),
                gpuq_in(sort->counts),
                to,
                sort->words ? values_to : to,
                gpuq_u64(sort->sort->n),
                gpuq_u64(sort->words),
                gpuq_u64(sort->columns),
                gpuq_u64(shift),
                gpuq_u64(sort->order),
        };

        return compose_launch(&sort->composition,
                              sort->element == 4 ? "sort_move_u32" : "sort_move_u64",
                              sort->columns - 1, args, ARRAY_SIZE(args));
}

static int sort_pass(Sort *sort, unsigned pass) {
        const gpuq_sort *given = sort->sort;
        bool is_odd = pass % 2;
        gpuq_buffer *keys = pass == 0 ? given->keys : is_odd ? sort->keys : given->to;
        gpuq_buffer *values = pass == 0 ? given->values : is_odd ? sort->values : given->values_to;
        gpuq_arg to = is_odd ? sort_result(sort) : gpuq_out_whole(sort->keys);
        gpuq_arg values_to = to;
        int r;

        if (sort->words > 0)
                values_to = is_odd ? sort_values_result(sort) : gpuq_out_whole(sort->values);
        r = sort_launch_count(sort, keys, pass * SORT_DIGIT_BITS);
        if (r == 0)
                r = sort_launch_offsets(sort);
        if (r == 0)
                r = sort_launch_move(sort, keys, values, to, values_to, pass * SORT_DIGIT_BITS);
        return r;
}

static int sort_append(Sort *sort) {
        int r;

        r = sort_check(&sort->composition, sort->sort);
        if (r < 0)
                return r;
        sort->element = compose_element(sort->sort->type);
        sort->words = sort->sort->value_bytes / SORT_WORD;
        sort->columns = parts_number(sort->sort->n) + 1;
        sort->order = sort_order(sort->sort);

        r = sort_make_workspace(sort);
        if (r == 0)
                r = sort_keep_apart(sort);
        if (r == 0)
                r = sort_name_buffers(sort);
        for (unsigned pass = 0; pass < sort->element && r == 0; pass++)
                r = sort_pass(sort, pass);
        return r;
}

int gpuq_job_sort(gpuq_job *job, const gpuq_sort *given) {
        Sort sort = {.sort = given};
        int r;

        r = compose_begin(&sort.composition, "sort", job);
        if (r < 0)
                return r;
        return compose_end(&sort.composition, sort_append(&sort));
}

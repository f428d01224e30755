/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of parts of buffers that must not overlap
 */

#include "apart.h"

#include "error.h"
#include "util/grow.h"

static uint64_t apart_begin(const ApartSide *side) {
        return side->buffer->offset + side->offset;
}

static bool apart_is_same(const ApartSide *a, const ApartSide *b) {
        return apart_begin(a) == apart_begin(b) && a->length == b->length;
}

/* Columns of one array: rows of the same pitch that no row of the other reaches into. */
static bool apart_is_beside(const ApartSide *a, const ApartSide *b) {
        uint64_t pitch = a->pitch, x, y;

        if (pitch == 0 || pitch != b->pitch)
                return false;
        x = apart_begin(a) % pitch;
        y = apart_begin(b) % pitch;
        return (y + pitch - x) % pitch >= a->width && (x + pitch - y) % pitch >= b->width;
}

static int apart_check_pair(const ApartPair *pair) {
        const ApartSide *a = &pair->sides[0], *b = &pair->sides[1];

        if (a->buffer->arena != b->buffer->arena || apart_begin(a) >= apart_begin(b) + b->length ||
            apart_begin(b) >= apart_begin(a) + a->length ||
            (pair->may_be_same && apart_is_same(a, b)) || apart_is_beside(a, b))
                return 0;
        return error_set(
                GPUQ_E_INVALID, "%s: the buffers of %s and %s overlap; they must be apart%s",
                pair->operation, a->name, b->name, pair->may_be_same ? ", or the same" : "");
}

static int apart_append(ApartPairs *pairs, const ApartPair *pair) {
        if (grow(&pairs->pairs, pairs->n_pairs, sizeof(*pairs->pairs)) < 0)
                return error_memory();

        pairs->pairs[pairs->n_pairs++] = *pair;
        buffer_ref(pair->sides[0].buffer);
        buffer_ref(pair->sides[1].buffer);
        return 0;
}

int apart_add(ApartPairs *pairs, const ApartPair *pair) {
        int r;

        r = apart_check_pair(pair);
        return r < 0 ? r : apart_append(pairs, pair);
}

int apart_copy(ApartPairs *pairs, const ApartPairs *from) {
        int r = 0;

        for (size_t i = 0; i < from->n_pairs && r == 0; i++)
                r = apart_append(pairs, &from->pairs[i]);
        return r;
}

void apart_forget(ApartPairs *pairs, size_t n_pairs) {
        while (pairs->n_pairs > n_pairs) {
                const ApartPair *pair = &pairs->pairs[--pairs->n_pairs];

                buffer_unref(pair->sides[0].buffer);
                buffer_unref(pair->sides[1].buffer);
        }
        if (n_pairs > 0)
                return;
        free(pairs->pairs);
        pairs->pairs = NULL;
}

/* ---- other buffers ------------------------------------------------------------------------ */

static gpuq_buffer *apart_replaced(const ApartSide *side, const BufferUse *uses,
                                   gpuq_buffer *const *now, size_t n_buffers) {
        for (size_t i = 0; i < n_buffers; i++)
                if (buffer_is_same(uses[i].buffer, side->buffer))
                        return now[i];
        return side->buffer;
}

int apart_check(const ApartPairs *pairs, const BufferUse *uses, gpuq_buffer *const *now,
                size_t n_buffers) {
        int r = 0;

        for (size_t i = 0; i < pairs->n_pairs && r == 0; i++) {
                ApartPair pair = pairs->pairs[i];

                for (unsigned k = 0; k < ARRAY_SIZE(pair.sides); k++)
                        pair.sides[k].buffer = apart_replaced(&pair.sides[k], uses, now, n_buffers);
                r = apart_check_pair(&pair);
        }
        return r;
}

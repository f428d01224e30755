/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names
 *
 * A hash table in which new names come first in their bucket, so the innermost of several is found.
 */

#include "compiler/ptx/names.h"

#include <ctype.h>
#include <string.h>

#define BUCKETS_FIRST 1024u /* a power of two */

struct Names {
        Arena *arena;
        Name **buckets;
        size_t n_buckets, n_names;
        Name *scopes[NAMES_SCOPES_MAX]; /* the names of each open scope */
        unsigned depth;                 /* the index of the innermost */
};

int names_new(Arena *arena, Names **ret_names) {
        _cleanup_(names_freep) Names *names = calloc(1, sizeof(*names));

        if (!names)
                return -ENOMEM;

        names->arena = arena;
        names->n_buckets = BUCKETS_FIRST;
        names->buckets = calloc(BUCKETS_FIRST, sizeof(*names->buckets));
        if (!names->buckets)
                return -ENOMEM;

        *ret_names = TAKE_PTR(names);
        return 0;
}

Names *names_free(Names *names) {
        if (!names)
                return NULL;

        free(names->buckets);
        free(names);
        return NULL;
}

/* FNV-1a */
static uint64_t hash_of(PtxToken text) {
        uint64_t hash = 0xcbf29ce484222325u;

        for (size_t i = 0; i < text.n; i++)
                hash = (hash ^ (unsigned char)text.s[i]) * 0x100000001b3u;
        return hash;
}

static Name **bucket_of(const Names *names, uint64_t hash) {
        return &names->buckets[(hash ^ hash >> 32) & (names->n_buckets - 1)];
}

/* Keeps the order of equal names, which share a bucket before and after. */
static int grow_buckets(Names *names) {
        size_t n_old = names->n_buckets;
        Name **old = names->buckets, **bigger = calloc(n_old * 2, sizeof(*bigger));

        if (!bigger)
                return -ENOMEM;

        names->buckets = bigger;
        names->n_buckets = n_old * 2;
        for (size_t i = 0; i < n_old; i++) {
                Name *reversed = NULL, *next;

                for (Name *name = old[i]; name; name = next) {
                        next = name->next;
                        name->next = reversed;
                        reversed = name;
                }
                for (Name *name = reversed; name; name = next) {
                        Name **bucket = bucket_of(names, name->hash);

                        next = name->next;
                        name->next = *bucket;
                        *bucket = name;
                }
        }
        free(old);
        return 0;
}

bool names_open(Names *names) {
        if (names->depth + 1 >= NAMES_SCOPES_MAX)
                return false;

        names->scopes[++names->depth] = NULL;
        return true;
}

void names_close(Names *names) {
        for (Name *name = names->scopes[names->depth]; name; name = name->next_in_scope) {
                Name **at = bucket_of(names, name->hash);

                while (*at != name)
                        at = &(*at)->next;
                *at = name->next;
                names->n_names--;
        }
        names->scopes[names->depth--] = NULL;
}

Name *names_find(const Names *names, PtxToken text) {
        uint64_t hash = hash_of(text);

        for (Name *name = *bucket_of(names, hash); name; name = name->next)
                if (name->hash == hash && name->kind != NAME_RANGE &&
                    ptx_token_same(name->text, text))
                        return name;
        return NULL;
}

Name *names_find_range(const Names *names, PtxToken text) {
        unsigned long number;
        PtxToken prefix = text, digits;
        uint64_t hash;

        while (prefix.n > 0 && isdigit((unsigned char)prefix.s[prefix.n - 1]))
                prefix.n--;
        digits = (PtxToken){prefix.s + prefix.n, text.n - prefix.n};
        if (digits.n == 0 || (digits.n > 1 && *digits.s == '0') ||
            !ptx_token_number(digits, &number))
                return NULL;

        hash = hash_of(prefix);
        for (Name *name = *bucket_of(names, hash); name; name = name->next)
                if (name->kind == NAME_RANGE && number < name->count &&
                    ptx_token_same(name->text, prefix))
                        return name;
        return NULL;
}

bool names_is_here(const Names *names, const Name *name) {
        return name && name->depth == names->depth;
}

Name *names_add(Names *names, PtxToken text, NameKind kind, const Name *beside) {
        unsigned depth = beside ? beside->depth : names->depth;
        uint64_t hash = hash_of(text);
        Name *name, **bucket;

        if (names->n_names >= names->n_buckets && grow_buckets(names) < 0)
                return NULL;
        name = arena_take(names->arena, sizeof(*name));
        if (!name)
                return NULL;

        bucket = bucket_of(names, hash);
        *name = (Name){
                .next = *bucket,
                .next_in_scope = names->scopes[depth],
                .text = text,
                .hash = hash,
                .kind = kind,
                .depth = depth,
        };
        *bucket = name;
        names->scopes[depth] = name;
        names->n_names++;
        return name;
}

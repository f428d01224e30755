/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs
 */
#include "worker/programs.h"

#include <string.h>

struct ProgramEntry {
        uint64_t hash;
        Program *program;
        size_t n_buffers, n_kernels, n_key;
        uint8_t key[];
};

int programs_init(Programs *programs, Context *context) {
        *programs = (Programs){.context = context};
        return bump_new(&programs->bump);
}

static ProgramEntry *entry_free(ProgramEntry *entry) {
        if (!entry)
                return NULL;
        program_unref(entry->program);
        free(entry);
        return NULL;
}

void programs_clear(Programs *programs) {
        for (size_t i = 0; i < PROGRAMS_SETS; ++i)
                for (size_t k = 0; k < PROGRAMS_WAYS; ++k)
                        programs->entries[i][k] = entry_free(programs->entries[i][k]);
}

/* ---- keys: for each kernel its image and name, then the operations ---------------- */

static size_t key_room(const ProgramInput *input) {
        size_t n = input->n_operations;

        for (size_t i = 0; i < input->n_kernels; ++i)
                n += sizeof(Image *) + strlen(input->kernels[i].name) + 1;
        return n;
}

static void key_fill(const ProgramInput *input, uint8_t *key) {
        for (size_t i = 0; i < input->n_kernels; ++i) {
                size_t n_name = strlen(input->kernels[i].name) + 1;

                memcpy(key, &input->kernels[i].image, sizeof(Image *));
                memcpy(key + sizeof(Image *), input->kernels[i].name, n_name);
                key += sizeof(Image *) + n_name;
        }
        memcpy(key, input->operations, input->n_operations);
}

static uint64_t key_mix(uint64_t hash, uint64_t word) {
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        return hash ^ hash >> 32;
}

static uint64_t key_hash(const uint8_t *key, size_t n_key) {
        uint64_t hash = 0x9e3779b97f4a7c15u ^ n_key, word;
        size_t i = 0;

        for (; i + sizeof(word) <= n_key; i += sizeof(word)) {
                memcpy(&word, key + i, sizeof(word));
                hash = key_mix(hash, word);
        }
        if (i == n_key)
                return hash;
        word = 0;
        memcpy(&word, key + i, n_key - i);
        return key_mix(hash, word);
}

typedef struct Key {
        uint8_t bytes[PROGRAMS_KEY_MAX];
        size_t n;
        uint64_t hash;
} Key;

static bool key_make(const ProgramInput *input, Key *key) {
        key->n = key_room(input);
        if (key->n > sizeof(key->bytes))
                return false;
        key_fill(input, key->bytes);
        key->hash = key_hash(key->bytes, key->n);
        return true;
}

/* ---- the table ---------------------------------------------------------------------- */

static bool entry_is(const ProgramEntry *entry, const ProgramInput *input, const Key *key) {
        return entry && entry->hash == key->hash && entry->n_buffers == input->n_buffers &&
               entry->n_kernels == input->n_kernels && entry->n_key == key->n &&
               memcmp(entry->key, key->bytes, key->n) == 0;
}

/* Moves the entry to the front of its set; the last one is dropped. */
static void set_push(ProgramEntry **set, size_t at, ProgramEntry *entry) {
        memmove(set + 1, set, at * sizeof(*set));
        set[0] = entry;
}

Program *programs_find(Programs *programs, const ProgramInput *input) {
        ProgramEntry **set;
        Key key;

        if (!key_make(input, &key))
                return NULL;

        set = programs->entries[key.hash % PROGRAMS_SETS];
        for (size_t i = 0; i < PROGRAMS_WAYS; ++i)
                if (entry_is(set[i], input, &key)) {
                        set_push(set, i, set[i]);
                        return program_ref(set[0]->program);
                }
        return NULL;
}

static void programs_keep(Programs *programs, const ProgramInput *input, Program *program) {
        ProgramEntry **set, *entry;
        Key key;

        if (!program->launches_only || !key_make(input, &key))
                return;
        entry = malloc(sizeof(*entry) + key.n);
        if (!entry)
                return;

        *entry = (ProgramEntry){
                .hash = key.hash,
                .program = program_ref(program),
                .n_buffers = input->n_buffers,
                .n_kernels = input->n_kernels,
                .n_key = key.n,
        };
        memcpy(entry->key, key.bytes, key.n);
        program->number = ++programs->n_kept;

        set = programs->entries[key.hash % PROGRAMS_SETS];
        entry_free(set[PROGRAMS_WAYS - 1]);
        set_push(set, PROGRAMS_WAYS - 1, entry);
}

int programs_make(Programs *programs, const ProgramInput *input, Program **ret_program,
                  Failure *failure) {
        ProgramInput with = *input;
        int r;

        with.allocator = bump_allocator(programs->bump);
        r = program_new(&with, programs->context, ret_program, failure);
        bump_reset(programs->bump);
        if (r)
                return r;

        programs_keep(programs, input, *ret_program);
        return 0;
}

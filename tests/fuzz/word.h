/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_FUZZ_WORD_H
#define GPUQ_FUZZ_WORD_H

/*
 * Word
 *
 * A message of a worker, of any kind, as the bytes of an input say. Most name something that is there.
 */

#include "input.h"
#include "worker/protocol.h"

/* With memory for its parts. */
typedef struct Word {
        WorkerMessage message;
        char text[64], more[64];
        uint64_t items[256];
} Word;

/* What the message may name. */
typedef struct WordNames {
        uint64_t (*job)(void *userdata); /* takes from the input as it likes */
        void *userdata;
        uint64_t last_arena, last_module; /* the ids before them are older ones */
} WordNames;

/** word_make() - @word points to itself afterwards. */
void word_make(Input *input, const WordNames *names, Word *word);

#endif

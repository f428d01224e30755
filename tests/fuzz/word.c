/* SPDX-License-Identifier: Apache-2.0 */
#include "word.h"

#include "message.h"
#include "proto/gpuq.pb-c.h"

#define WORD_LOAN_FIRST 234u /* choices from here on are of direct rings */

static char *word_text(Input *input, char text[static 64]) {
        size_t n;
        const uint8_t *data = input_take(input, input_below(input, 16) * 4u, &n);

        if (n)
                memcpy(text, data, n);
        text[n] = '\0';
        return text;
}

/* Jobs and their phases, or ends. */
static void word_jobs(Input *input, const WordNames *names, Word *word, size_t n_numbers) {
        for (unsigned i = 0; i < word->message.head.n_items; ++i) {
                uint64_t *item = &word->items[i * n_numbers];

                item[0] = names->job(names->userdata);
                for (size_t k = 1; k < n_numbers; ++k)
                        item[k] = n_numbers == 2 ? input_below(input, 5) : input_edge(input);
        }
}

static void word_packed(Input *input, Word *word, const ProtobufCMessageDescriptor *descriptor) {
        ProtobufCMessage *message = message_new(input, descriptor, NULL, NULL);
        size_t n = protobuf_c_message_get_packed_size(message);

        if (n <= sizeof(word->items))
                word->message.head.n_items =
                        (uint32_t)protobuf_c_message_pack(message, (uint8_t *)word->items);
        protobuf_c_message_free_unpacked(message, NULL);
}

static void word_items(Input *input, const WordNames *names, Word *word) {
        WorkerHead *head = &word->message.head;
        const uint8_t *data;
        size_t n;

        head->n_items = input_below(input, 8);
        switch (head->kind) {
                case FROM_WORKER_ENDS:
                        word_jobs(input, names, word, sizeof(WorkerEnd) / sizeof(uint64_t));
                        break;
                case FROM_WORKER_STOPPED:
                        word_jobs(input, names, word, sizeof(WorkerInFlight) / sizeof(uint64_t));
                        break;
                case FROM_WORKER_MODULE_ADDED:
                        word_packed(input, word, &gpuq__v1__module_ready__descriptor);
                        break;
                case FROM_WORKER_STATS:
                        word_packed(input, word, &gpuq__v1__worker_counters__descriptor);
                        break;
                default: /* of devices, texts with an end or without */
                        data = input_take(input, input_u8(input), &n);
                        if (n)
                                memcpy(word->items, data, n);
        }
        if (input_u8(input) >= 250)
                head->n_items = input_below(input, 8);
}

static uint64_t word_last(Input *input, uint64_t last) {
        uint8_t choice = input_u8(input);

        return choice < 250 ? last - choice % 8 : input_edge(input);
}

/* Bytes of older inputs mean what they did. */
static uint32_t word_kind(uint8_t choice) {
        if (choice >= 250)
                return choice % 32u;
        if (choice >= WORD_LOAN_FIRST)
                return choice % 2 ? FROM_WORKER_RETURNED : FROM_WORKER_LENT;
        choice %= 9;
        return choice < 8 ? FROM_WORKER_PROBED + choice : FROM_WORKER_STATS;
}

void word_make(Input *input, const WordNames *names, Word *word) {
        WorkerHead *head = &word->message.head;
        uint8_t choice;

        *word = (Word){.message = {.items = word->items}};
        choice = input_u8(input);
        head->kind = word_kind(choice);
        head->code = input_below(input, 2) ? 0 : (uint32_t)input_edge(input);
        if (input_below(input, 2))
                head->id = names->job(names->userdata);
        else
                head->id = word_last(input, input_below(input, 2) ? names->last_arena
                                                                  : names->last_module);
        head->number = input_u8(input) < 200 ? WORKER_PROTOCOL : input_edge(input);
        head->detail = input_below(input, 3);
        word->message.text = word_text(input, word->text);
        word->message.more = word_text(input, word->more);
        word_items(input, names, word);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as the worker reads it where it stands, which must be what protobuf-c finds. What the
 * supervisor writes has names and operations of clients in it.
 */

#include <stdlib.h>

#include "message.h"
#include "same_job.h"

#define JOB_BYTES_MAX 16384u

static size_t pack(Input *input, uint8_t *packed) {
        ProtobufCMessage *message =
                message_new(input, &gpuq__worker__worker_job__descriptor, NULL, NULL);
        size_t n = protobuf_c_message_get_packed_size(message);

        if (n <= JOB_BYTES_MAX)
                protobuf_c_message_pack(message, packed);
        protobuf_c_message_free_unpacked(message, NULL);
        if (n > JOB_BYTES_MAX)
                return 0;
        return input_below(input, 3) == 0 && n ? message_spoil(input, packed, n, JOB_BYTES_MAX) : n;
}

static void try_job(const uint8_t *data, size_t n_data) {
        Gpuq__Worker__WorkerJob *message;
        static SameJob same;
        Job *job = NULL;

        if (same_job_new(&same, data, n_data, &job) == 0) {
                message = gpuq__worker__worker_job__unpack(NULL, n_data, data);
                if (message && !same_job_is(job, message)) /* it refuses numbers written too long */
                        abort();
                if (message)
                        gpuq__worker__worker_job__free_unpacked(message, NULL);
        }
        if (!same_job_end(&same, job))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        Input input = {data, n_data};
        uint8_t room[JOB_BYTES_MAX], *exact;
        bool is_raw = input_below(&input, 8) == 0;
        size_t n = is_raw ? input.n : pack(&input, room);

        exact = malloc(n + !n); /* what is behind it is not to be read */
        memcpy(exact, is_raw ? input.data : room, n);
        try_job(exact, n);
        free(exact);
        return 0;
}

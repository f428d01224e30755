/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people and other programs write for us: gpuqd.conf, NPY files, the note that a detached
 * job carries, the words of a command line, points in time among them, what a monitoring system sends.
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "argument.h"
#include "http-address.h"
#include "http-request.h"
#include "input.h"
#include "note.h"
#include "npy.h"
#include "number.h"
#include "slurm_job.h"
#include "when.h"
#include "xid.h"
#include "util/config-seal.h"
#include "util/config-load.h"

static void must(bool is_so) {
        if (!is_so)
                abort();
}

static int text_file(const uint8_t *data, size_t n_data) {
        int fd = memfd_create("fuzz", MFD_CLOEXEC);

        must(fd >= 0 && write(fd, data, n_data) == (ssize_t)n_data && lseek(fd, 0, SEEK_SET) == 0);
        return fd;
}

/* What is taken can be handed on, and is the same there. */
static void try_config(const uint8_t *data, size_t n_data) {
        Config *config = NULL, *again = NULL;
        char path[40], *error = NULL;
        int fd = text_file(data, n_data), sealed = -1;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (config_load(path, NULL, &config, &error) == 0) {
                must(config_seal(config, &sealed) == 0 && config_unseal(sealed, &again) == 0);
                must(again->takeover_s == config->takeover_s && again->poll_us == config->poll_us);
                must(config_limits(again, "nobody", 1)->jobs ==
                     config_limits(config, "nobody", 1)->jobs);
        }
        if (sealed >= 0)
                close(sealed);
        close(fd);
        config_free(config);
        config_free(again);
        free(error);
}

static void try_sealed_config(const uint8_t *data, size_t n_data) {
        Config *config = NULL;
        int fd = text_file(data, n_data);

        (void)config_unseal(fd, &config);
        config_free(config);
        close(fd);
}

static void try_npy(const uint8_t *data, size_t n_data) {
        Problem problem = {};
        NpyArray array;
        void *elements;
        int fd = text_file(data, n_data);

        if (npy_read_header(fd, "a.npy", &problem, &array) == 0 && array.n_bytes < 1 << 20) {
                elements = malloc(array.n_bytes + !array.n_bytes);
                (void)npy_read_data(fd, "a.npy", &array, elements, &problem);
                free(elements);
        }
        problem_clear(&problem);
        close(fd);
}

static void try_npy_header(const uint8_t *data, size_t n_data) {
        Problem problem = {};
        NpyArray array;

        if (npy_parse_header((const char *)data, n_data, "a.npy", &problem, &array) == 0)
                must(array.n_dims <= NPY_DIMS_MAX);
        problem_clear(&problem);
}

/* What is read can be written and read again. */
static void try_note(const uint8_t *data, size_t n_data) {
        Note note = {}, again = {};
        char *text = NULL;

        if (note_read(data, n_data, &note) == 0 && note_write(&note, &text) == 0) {
                must(note_read(text, strlen(text), &again) == 0);
                must(again.n_outputs == note.n_outputs);
        }
        free(text);
        note_clear(&note);
        note_clear(&again);
}

static void try_argument(const uint8_t *data, size_t n_data) {
        char *text = strndup((const char *)data, n_data);
        Problem problem = {};
        Argument argument = {};

        if (argument_parse(text, 1, &problem, &argument) == 0)
                argument_clear(&argument);
        problem_clear(&problem);
        free(text);
}

static void try_number(const uint8_t *data, size_t n_data) {
        char *text = strndup((const char *)data, n_data);
        uint64_t number;
        int64_t signed_number;
        uint32_t ms;
        unsigned dims[3];
        double real;

        if (number_unsigned(text, 1000, &number) == 0)
                must(number <= 1000);
        if (number_signed(text, -5, 5, &signed_number) == 0)
                must(signed_number >= -5 && signed_number <= 5);
        (void)number_float(text, 0, &real);
        (void)number_float(text, 1, &real);
        if (number_bytes(text, 1 << 20, &number) == 0)
                must(number <= 1 << 20);
        (void)number_ms(text, &ms);
        if (number_dims(text, dims) == 0)
                must(dims[0] && dims[1] && dims[2]);
        free(text);
}

static void try_http_request(const uint8_t *data, size_t n_data) {
        char *text = strndup((const char *)data, n_data);
        int status = http_request_check("/metrics", text);

        must(status == 200 || status == 400 || status == 404 || status == 405);
        free(text);
}

/* Nobody on another machine gets in. */
static void try_http_address(const uint8_t *data, size_t n_data) {
        char *text = strndup((const char *)data, n_data);
        HttpAddress address;

        if (http_address_read(text, &address) == 0) {
                must(http_address_size(&address) <= sizeof(address));
                must(address.any.sa_family != AF_INET ||
                     ntohl(address.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET);
                must(address.any.sa_family != AF_INET6 ||
                     IN6_IS_ADDR_LOOPBACK(&address.in6.sin6_addr));
        }
        free(text);
}

/* A line of the kernel's log, of which any driver may write what it likes. */
static void try_xid(const uint8_t *data, size_t n_data) {
        char *text = strndup((const char *)data, n_data);
        Xid xid;

        if (xid_parse(text, &xid)) {
                must(memchr(xid.text, 0, sizeof(xid.text)) != NULL);
                (void)xid_is_at(&xid, "0000:18:00.0");
        }
        free(text);
}

/* The control groups of a process, some of which users name. */
static void try_slurm_job(const uint8_t *data, size_t n_data) {
        char *text = malloc(n_data + !n_data);

        memcpy(text, data, n_data);
        (void)slurm_job_parse(text, n_data, 1000);
        free(text);
}

/* What is shown of a time is a time, and the same one where no hour comes twice. */
static void try_when(const uint8_t *data, size_t n_data) {
        static const char *const zones[] = {"UTC", "Europe/Berlin", "America/St_Johns",
                                            "Pacific/Apia"};
        Input input = {data, n_data};
        const char *zone = zones[input_below(&input, ARRAY_SIZE(zones))];
        time_t now = (time_t)(input_edge(&input) % (1ull << 33));
        char *text = strndup((const char *)input.data, input.n);
        uint64_t ms, again_ms;

        setenv("TZ", zone, 1);
        tzset();
        if (when_parse(text, now, &ms) == 0) {
                must(ms % 1000 == 0 && strlen(when_iso(ms).text) > strlen("1970-01-01T00:00:00"));
                must(when_parse(when_show(ms).text, now, &again_ms) == 0);
                must(again_ms == ms || strcmp(zone, "UTC") != 0);
                must(when_midnight((time_t)(ms / 1000), 0) <= (time_t)(ms / 1000));
                must(when_month((time_t)(ms / 1000), 1) > (time_t)(ms / 1000));
        }
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static void (*const what[])(const uint8_t *data, size_t n_data) = {
                try_config,       try_config,    try_sealed_config, try_npy, try_npy_header,
                try_note,         try_argument,  try_number,        try_xid, try_http_request,
                try_http_address, try_slurm_job, try_when,
        };

        if (n_data)
                what[data[0] % ARRAY_SIZE(what)](data + 1, n_data - 1);
        return 0;
}

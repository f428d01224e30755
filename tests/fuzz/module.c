/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are, or claim to be, modules, and what a compiler says of them: in the compiler's
 * process, which runs as the user, and in the worker, where what it says is not believed.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/batch_rewrite.h"
#include "compiler/cache.h"
#include "compiler/compiled.h"
#include "compiler/cubin.h"
#include "compiler/fatbin.h"
#include "compiler/format.h"
#include "compiler/headers.h"
#include "compiler/options.h"
#include "compiler/ptx.h"
#include "input.h"
#include "util/kernel-name.h"
#include "util/symbol.h"

static void must(bool is_so) {
        if (!is_so)
                abort();
}

/* What was found is written, and what is written is read. */
static void try_signature(const Signature *signature) {
        _cleanup_(freep) char *kernels = NULL, *variables = NULL;
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        _cleanup_(freep) void *data = NULL;
        CompiledSections sections = {.image = "image", .n_image = 5};
        size_t n_data;

        if (signature_pack(signature, &kernels, &variables) < 0)
                return;
        sections.signature = kernels;
        sections.n_signature = strlen(kernels);
        sections.variables = variables;
        sections.n_variables = strlen(variables);
        must(compiled_pack(&sections, &data, &n_data) == 0);
        must(compiled_parse(data, n_data, &compiled) == 0);
        must(compiled->n_kernels == signature->n_kernels);
}

static void try_format(const uint8_t *data, size_t n_data) {
        char text[80];

        (void)format_detect(data, n_data);
        format_describe(data, n_data, text, sizeof(text));
        must(strlen(text) < sizeof(text));
}

static void try_cubin(const uint8_t *data, size_t n_data) {
        _cleanup_(signature_freep) Signature *signature = NULL;
        unsigned sm;

        must(signature_new(&signature) == 0);
        if (cubin_scan(data, n_data, signature, &sm) == 0)
                try_signature(signature);
}

static void try_fatbin(const uint8_t *data, size_t n_data) {
        size_t position = 0;
        FatbinEntry entry;
        char text[100];

        while (fatbin_next(data, n_data, &position, &entry) == 0) {
                must((const uint8_t *)entry.data >= data && entry.n_data <= n_data);
                if (!entry.compressed && entry.kind == FATBIN_CUBIN)
                        try_cubin(entry.data, entry.n_data);
        }
        (void)fatbin_find(data, n_data, 90, &entry);
        fatbin_describe(data, n_data, text, sizeof(text));
}

static void try_ptx(const uint8_t *data, size_t n_data) {
        _cleanup_(signature_freep) Signature *signature = NULL, *again = NULL;
        _cleanup_(freep) char *text = NULL;
        size_t n_text = 0;
        int n_twins;

        must(signature_new(&signature) == 0 && signature_new(&again) == 0);
        must(ptx_scan((const char *)data, n_data, signature) == 0);
        try_signature(signature);
        n_twins = batch_rewrite((const char *)data, n_data, &text, &n_text);
        must(n_twins >= 0);
        if (n_twins == 0)
                return;
        must(strlen(text) == n_text || memchr(data, 0, n_data));
        must(ptx_scan(text, n_text, again) == 0);
        must(again->n_kernels >= signature->n_kernels);
}

static void try_compiled(const uint8_t *data, size_t n_data) {
        _cleanup_(compiled_freep) Compiled *compiled = NULL;
        size_t n = 0;

        if (compiled_parse(data, n_data, &compiled) != 0)
                return;
        must(compiled_status_name(compiled->status) != NULL);
        for (size_t i = 0; i < compiled->n_kernels; ++i) {
                n += strlen(compiled->kernels[i].symbol) + strlen(compiled->kernels[i].name) +
                     strlen(compiled->kernels[i].text);
                for (size_t k = 0; k < compiled->kernels[i].n_kinds; ++k)
                        n += compiled->kernels[i].kinds[k];
        }
        for (size_t i = 0; i < compiled->n_variables; ++i)
                n += strlen(compiled->variables[i]);
        n += strlen(compiled->log) + compiled->n_image;
        __asm__ volatile("" : : "r"(n));
}

static void try_options(const uint8_t *data, size_t n_data) {
        _cleanup_(freep) char *text = strndup((const char *)data, n_data);
        const char *option = text;

        (void)options_find_bad(&option, 1);
        (void)options_standard(&option, 1, 11);
        (void)options_fast_math(&option, 1);
        (void)options_switch(&option, 1, OPTIONS_FTZ);
        (void)options_nearest(option);
        (void)options_registers(&option, 1);
        must(!options_folder(option) || options_is_path(options_folder(option)));
}

/* Two names, a NUL between them. */
static void try_names(const uint8_t *data, size_t n_data) {
        _cleanup_(freep) char *a = strndup((const char *)data, n_data);
        size_t n_a = strlen(a);
        _cleanup_(freep) char *b = n_a < n_data
                                           ? strndup((const char *)data + n_a + 1, n_data - n_a - 1)
                                           : strdup("f<int>");

        must(kernel_name_equal(a, a) && kernel_name_equal(b, b));
        must(kernel_name_equal(a, b) == kernel_name_equal(b, a));
        (void)symbol_matches(a, b);
        (void)name_matches(a, b);
}

static void try_headers(const uint8_t *data, size_t n_data) {
        _cleanup_(freep) char *headers = malloc(n_data + 1);
        Request request = {.headers = headers, .n_headers = n_data};

        must(headers != NULL);
        memcpy(headers, data, n_data);
        headers[n_data] = '\0';
        (void)headers_has(&request, headers, strlen(headers));
        (void)headers_has(&request, "../a/b.h", 8);
}

/* An entry is written by ourselves, then something of it is other. */
static void try_cache(const uint8_t *data, size_t n_data) {
        char folder[40] = "/tmp/gpuq-fuzz-XXXXXX";
        static const CacheKey key = {{1, 2, 3}};
        char path[40 + 80];
        Input input = {data, n_data};
        uint16_t at = input_u16(&input);
        uint8_t byte = input_u8(&input);
        void *found = NULL;
        size_t n_found;
        int fd;

        must(mkdtemp(folder) != NULL);
        must(cache_put(folder, &key, input.data, input.n, UINT64_MAX) == 0);
        snprintf(path, sizeof(path), "%s/010203%058d.gpuq", folder, 0);
        fd = open(path, O_RDWR | O_CLOEXEC);
        must(fd >= 0);
        if (byte & 1)
                must(pwrite(fd, &byte, 1, at % (input.n + 80)) == 1);
        else if (byte & 2)
                must(ftruncate(fd, at % (input.n + 80)) == 0);
        close(fd);
        if (cache_get(folder, &key, &found, &n_found) == 0)
                must(n_found == input.n && memcmp(found, input.data, n_found) == 0);
        free(found);
        must(unlink(path) == 0 && rmdir(folder) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_data) {
        static void (*const what[])(const uint8_t *data, size_t n_data) = {
                try_format,  try_cubin, try_fatbin, try_ptx,     try_compiled,
                try_options, try_cache, try_names,  try_headers,
        };

        if (n_data)
                what[data[0] % ARRAY_SIZE(what)](data + 1, n_data - 1);
        return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error
 *
 * Texts are kept in full, however long they are, because one may be a compiler's log. They belong
 * to the thread, and the destructor of a thread-specific key frees them when the thread ends. For
 * that reason the library is linked so that it is never unloaded.
 */

#include "error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct ThreadTexts {
        char *error;
        char *text;   /* lent by gpuq_wait_id() */
        char *output; /* the same */
} ThreadTexts;

static __thread ThreadTexts thread_texts;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static const struct {
        int error;
        const char *name;
} error_names[] = {
        {GPUQ_OK, "GPUQ_OK"},
        {GPUQ_E_PROTOCOL, "GPUQ_E_PROTOCOL"},
        {GPUQ_E_VERSION, "GPUQ_E_VERSION"},
        {GPUQ_E_INVALID, "GPUQ_E_INVALID"},
        {GPUQ_E_NOT_FOUND, "GPUQ_E_NOT_FOUND"},
        {GPUQ_E_DENIED, "GPUQ_E_DENIED"},
        {GPUQ_E_QUOTA, "GPUQ_E_QUOTA"},
        {GPUQ_E_NO_DEVICE, "GPUQ_E_NO_DEVICE"},
        {GPUQ_E_COMPILE, "GPUQ_E_COMPILE"},
        {GPUQ_E_IMAGE, "GPUQ_E_IMAGE"},
        {GPUQ_E_DEPENDENCY, "GPUQ_E_DEPENDENCY"},
        {GPUQ_E_CYCLE, "GPUQ_E_CYCLE"},
        {GPUQ_E_LAUNCH, "GPUQ_E_LAUNCH"},
        {GPUQ_E_FAULT, "GPUQ_E_FAULT"},
        {GPUQ_E_TIMEOUT, "GPUQ_E_TIMEOUT"},
        {GPUQ_E_CANCELLED, "GPUQ_E_CANCELLED"},
        {GPUQ_E_HALF_WRITTEN, "GPUQ_E_HALF_WRITTEN"},
        {GPUQ_E_VARIABLES_LOST, "GPUQ_E_VARIABLES_LOST"},
        {GPUQ_E_MEMORY, "GPUQ_E_MEMORY"},
        {GPUQ_E_SHUTDOWN, "GPUQ_E_SHUTDOWN"},
        {GPUQ_E_INTERNAL, "GPUQ_E_INTERNAL"},
        {GPUQ_E_CONNECT, "GPUQ_E_CONNECT"},
        {GPUQ_E_CLOSED, "GPUQ_E_CLOSED"},
        {GPUQ_E_FORKED, "GPUQ_E_FORKED"},
        {GPUQ_E_AGAIN, "GPUQ_E_AGAIN"},
        {GPUQ_E_SYSTEM, "GPUQ_E_SYSTEM"},
};

static void thread_texts_free(void *userdata) {
        ThreadTexts *texts = userdata;

        free(texts->error);
        free(texts->text);
        free(texts->output);
        *texts = (ThreadTexts){0};
}

static void thread_key_make(void) {
        if (pthread_key_create(&thread_key, thread_texts_free) != 0)
                abort(); /* the process has used up all keys before its first call */
}

static ThreadTexts *thread_texts_get(void) {
        pthread_once(&thread_once, thread_key_make);
        pthread_setspecific(thread_key, &thread_texts);
        return &thread_texts;
}

void error_remember(const char *format, ...) {
        ThreadTexts *texts = thread_texts_get();
        char *text = NULL;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);

        free(texts->error); /* only after the text is made, which may quote the previous one */
        texts->error = r < 0 ? NULL : text;
}

int error_from_code(unsigned code) {
        if (code == 0 || code > (unsigned)-GPUQ_E_INTERNAL)
                return GPUQ_E_INTERNAL;

        return -(int)code;
}

int error_lend_texts(const char *text, const char *output, const char **ret_text,
                     const char **ret_output) {
        ThreadTexts *texts = thread_texts_get();

        free(texts->text);
        free(texts->output);
        texts->text = strdup(text);
        texts->output = strdup(output);
        if (!texts->text || !texts->output)
                return error_memory();

        *ret_text = texts->text;
        *ret_output = texts->output;
        return 0;
}

const char *gpuq_error_text(void) {
        return thread_texts.error ? thread_texts.error : "no call of this thread has failed";
}

const char *gpuq_error_name(int error) {
        for (size_t i = 0; i < ARRAY_SIZE(error_names); i++)
                if (error_names[i].error == error)
                        return error_names[i].name;

        return "unknown error";
}

const char *gpuq_version(void) {
        return GPUQ_VERSION;
}

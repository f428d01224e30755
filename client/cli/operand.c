/* SPDX-License-Identifier: Apache-2.0 */
#include "operand.h"

#include <fcntl.h>
#include <string.h>

#include "exit.h"

/* An empty array still needs an address. More would hide an access behind the end of a small one. */
#define OPERAND_BYTES_MIN 1u

static int operand_problem(const Operand *operand, Problem *problem, const char *what, int r) {
        problem_set(problem, 0, "%s: %s: %s", operand->argument->path, what, strerror(-r));
        return argument_name(operand->argument, problem, EXIT_USAGE);
}

static int operand_open_input(Operand *operand, Problem *problem) {
        Argument *argument = operand->argument;
        int r;

        operand->fd = open(argument->path, O_RDONLY | O_CLOEXEC);
        if (operand->fd < 0)
                return operand_problem(operand, problem, "cannot open", -errno);

        r = npy_read_header(operand->fd, argument->path, problem, &argument->array);
        return r < 0 ? argument_name(argument, problem, EXIT_USAGE) : 0;
}

int operand_open(Operand *operand, Argument *argument, Problem *problem) {
        int r;

        *operand = (Operand){.argument = argument, .fd = -1};
        if (argument->is_scalar)
                return 0;

        if (argument->direction != GPUQ_OUT) {
                r = operand_open_input(operand, problem);
                if (r)
                        return r;
        }
        if (operand_is_written(operand)) {
                r = outfile_check(argument->path);
                if (r < 0)
                        return operand_problem(operand, problem, "cannot write", r);
        }
        return 0;
}

int operand_load(Operand *operand, gpuq_client *client, Problem *problem) {
        Argument *argument = operand->argument;
        int r;

        if (argument->is_scalar)
                return 0;

        r = gpuq_buffer_new(client, MAX(argument->array.n_bytes, OPERAND_BYTES_MIN),
                            &operand->buffer);
        if (r < 0) {
                problem_set(problem, 0, "%s", gpuq_error_text());
                return argument_name(argument, problem, (int)exit_code(EXIT_WHEN_RUN, r));
        }
        if (operand->fd < 0)
                return 0;

        r = npy_read_data(operand->fd, argument->path, &argument->array,
                          gpuq_buffer_data(operand->buffer), problem);
        if (r < 0)
                return argument_name(argument, problem, EXIT_USAGE);
        close(TAKE_FD(operand->fd));
        return 0;
}

gpuq_arg operand_arg(const Operand *operand) {
        const Argument *argument = operand->argument;
        gpuq_arg arg = {.buffer = operand->buffer, .direction = argument->direction};

        if (operand->buffer) {
                arg.kind = GPUQ_POINTER;
                arg.size = sizeof(uint64_t);
                return arg;
        }

        arg.kind = argument->kind;
        arg.size = argument->size;
        if (argument->kind == GPUQ_BYTES)
                arg.value.bytes = &argument->bits;
        else
                arg.value.u64 = argument->bits;
        return arg;
}

bool operand_is_written(const Operand *operand) {
        return !operand->argument->is_scalar && operand->argument->direction != GPUQ_IN;
}

int operand_store(Operand *operand, Problem *problem) {
        const Argument *argument = operand->argument;
        int r;

        r = outfile_new(argument->path, &operand->file);
        if (r >= 0)
                r = npy_write(outfile_fd(operand->file), &argument->array,
                              gpuq_buffer_data(operand->buffer));
        if (r < 0) {
                operand_problem(operand, problem, "cannot write", r);
                return EXIT_JOB_FAILED;
        }
        return 0;
}

int operand_commit(Operand *operand, Problem *problem) {
        int r;

        r = outfile_commit(operand->file);
        if (r < 0) {
                operand_problem(operand, problem, "cannot write", r);
                return EXIT_JOB_FAILED;
        }
        return 0;
}

void operand_clear(Operand *operand) {
        if (operand->fd >= 0)
                close(TAKE_FD(operand->fd));
        gpuq_buffer_free(operand->buffer);
        operand->buffer = NULL;
        operand->file = outfile_free(operand->file);
}

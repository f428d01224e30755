/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_OPERAND_H
#define GPUQ_CLI_OPERAND_H

/*
 * Operand
 *
 * An argument of the kernel with the file that it is read from, the buffer that holds it, and the
 * file that it is written to. Problems name the argument.
 */

#include <gpuq.h>

#include "argument.h"
#include "io.h"

typedef struct Operand {
        Argument *argument;
        int fd;              /* of an input, until its data is read; else -1 */
        gpuq_buffer *buffer; /* NULL: a scalar */
        OutFile *file;       /* of an output, while it is written */
} Operand;

/** operand_open() - read an input's header, or check that an output could be written. Return: 0
 * or an exit code. */
int operand_open(Operand *operand, Argument *argument, Problem *problem);
/** operand_load() - make the buffer and read an input's data into it. Return: 0 or an exit code. */
int operand_load(Operand *operand, gpuq_client *client, Problem *problem);
/** operand_arg() - the argument in the library's form. */
gpuq_arg operand_arg(const Operand *operand);
/** operand_is_written() - whether it has a file to write. */
bool operand_is_written(const Operand *operand);
/** operand_store() - write an output to a temporary file. Return: 0 or an exit code. */
int operand_store(Operand *operand, Problem *problem);
/** operand_commit() - rename the temporary file to the output's name. Return: 0 or an exit code. */
int operand_commit(Operand *operand, Problem *problem);
/** operand_clear() - free everything, and remove a file that was not committed. */
void operand_clear(Operand *operand);

#endif

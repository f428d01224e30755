/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_DOCTOR_H
#define GPUQ_CLI_DOCTOR_H

/*
 * Doctor
 *
 * What `gpuq doctor' knows of this machine, and what its checks found. A check that cannot be made
 * is a note. Checks change nothing, and create no CUDA context.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <gpuq.h>

#include "util/macro.h"

#define DOCTOR_TEXT 4096u /* bytes of a file or of a program's output that a check reads */

#define DOCTOR_ADVICE_CPU                                                                          \
        "to run kernels on the host's cores, set device = cpu in gpuqd.conf and restart gpuqd"

typedef enum DoctorResult {
        DOCTOR_OK,
        DOCTOR_NOTE,
        DOCTOR_PROBLEM,
} DoctorResult;

typedef struct DoctorFinding {
        const char *check; /* its name */
        DoctorResult result;
        char *text;
        char *advice; /* what to do; NULL: nothing */
} DoctorFinding;

typedef struct Doctor {
        const char *root; /* in front of every path that is read; "", but for tests */
        const char *socket;
        const gpuq_status *status; /* NULL: no daemon answers */
        const char *refusal;       /* then the reason, */
        int error;                 /* and its code, GPUQ_E_ */
        pid_t pid;                 /* of gpuqd; 0: not found */
        uid_t uid;                 /* of that process, or of the socket's owner */
        char *cache_dir;           /* from gpuqd's configuration; NULL: not known */
        char *state_dir;           /* the same; NULL also if it is empty */
        char *libraries;           /* the same */
        bool lacks_gpu;            /* this machine has none, and gpuqd needs one */
        const char *check;         /* the one that is being made */
        DoctorFinding *findings;
        size_t n_findings;
        bool failed; /* out of memory */
} Doctor;

/** doctor_found() - add what the current check found. @advice: copied; NULL: none. */
void doctor_found(Doctor *doctor, DoctorResult result, const char *advice, const char *format, ...)
        _printf_(4, 5);
/** doctor_finish() - free what it holds; the struct itself is the caller's memory. */
void doctor_finish(Doctor *doctor);

/** doctor_read() - the beginning of a file, with a NUL after it. Return: its bytes, or a negative errno. */
ssize_t doctor_read(const Doctor *doctor, char text[static DOCTOR_TEXT], const char *format, ...)
        _printf_(3, 4);
/** doctor_open_processes() - /proc, for doctor_next_process() and closedir(). Return: NULL: not readable. */
DIR *doctor_open_processes(const Doctor *doctor);
/** doctor_next_process() - @ret_name: of the process, without a line end. Return: its pid; 0: no other one. */
pid_t doctor_next_process(const Doctor *doctor, DIR *processes, char ret_name[static DOCTOR_TEXT]);

typedef struct DoctorProgram {
        char *const *argv;
        const char *folder; /* where it runs; NULL: here */
        int timeout_ms;     /* then it is killed */
        bool no_errors;     /* its stderr is not read */
} DoctorProgram;

/**
 * doctor_run() - run a program to its end
 * @ret_text: the beginning of what it printed
 *
 * Return: its exit status; -EINTR: a signal ended it; -ETIMEDOUT: it was killed; or another negative
 * errno: it could not be run.
 */
int doctor_run(const DoctorProgram *program, char ret_text[static DOCTOR_TEXT]);

#endif

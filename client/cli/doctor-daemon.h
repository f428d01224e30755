/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_DOCTOR_DAEMON_H
#define GPUQ_CLI_DOCTOR_DAEMON_H

/*
 * Checks of gpuqd: its socket, its answers, its configuration, folders and limits
 */

#include <stdint.h>

#include "doctor.h"

#define DOCTOR_ARGUMENTS 64u /* of gpuqd, with the NULL after them */

/** doctor_check_socket() - it exists, and this user may write to it. */
void doctor_check_socket(Doctor *doctor);
/** doctor_check_daemon() - it answers, and is of our version. Finds its process. */
void doctor_check_daemon(Doctor *doctor);
/** doctor_check_state() - what gpuqd reports about itself. */
void doctor_check_state(Doctor *doctor);
/** doctor_check_devices() - what gpuqd reports about each. */
void doctor_check_devices(Doctor *doctor);
/** doctor_check_config() - `gpuqd --check', with the arguments of the running gpuqd. Finds the folders. */
void doctor_check_config(Doctor *doctor);
/** doctor_check_folders() - cache_dir and state_dir: owner, mode and space. */
void doctor_check_folders(Doctor *doctor);
/** doctor_check_limits() - of gpuqd's process and its cgroup. */
void doctor_check_limits(Doctor *doctor);
/** doctor_check_service() - the systemd units. */
void doctor_check_service(Doctor *doctor);

/**
 * doctor_find_daemon() - the gpuqd that listens, or that @listener started. Sets pid and uid.
 * @owner: of the socket. Anybody may start a program named gpuqd, whose parent is pid 1 in the end.
 */
void doctor_find_daemon(Doctor *doctor, pid_t listener, uid_t owner);
/**
 * doctor_read_arguments() - for a check with the arguments of the running gpuqd
 * @text: of its command line
 * @argv: all but the first are set; they point into @text
 *
 * Return: whether the whole command line was read. A part of it can mean something else.
 */
bool doctor_read_arguments(const Doctor *doctor, char text[static DOCTOR_TEXT],
                           char *argv[static DOCTOR_ARGUMENTS]);
/** doctor_judge_service() - what systemctl printed for is-active and is-enabled. */
void doctor_judge_service(Doctor *doctor, const char *active, const char *enabled);
/** doctor_judge_space() - of a folder's file system, in bytes. */
void doctor_judge_space(Doctor *doctor, const char *what, uint64_t n_free, bool has_inodes);
/** doctor_judge_check() - what `gpuqd --check' printed, and its exit status. */
void doctor_judge_check(Doctor *doctor, int status, char *text);

#endif

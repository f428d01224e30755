/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_SLURM_JOB_H
#define GPUQ_SUPERVISOR_SLURM_JOB_H

/*
 * Slurm job
 *
 * Slurm puts the processes of each job on a node into a control group (cgroup) that is named after the
 * job. Only root can make or enter these groups, so the name tells which job a process belongs to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SLURM_JOB_TEXT_MAX 4096u /* bytes of /proc/PID/cgroup that are read */
#define SLURM_ACCOUNT_MAX  64u   /* bytes of an account's name */

/**
 * slurm_job_parse() - the number of the Slurm job in the text of /proc/PID/cgroup
 * @uid: the process's user; with cgroup v1 the groups are named after it too
 *
 * These groups count, and what is below them:
 *
 *     /system.slice/[NODE_]slurmstepd.scope/job_N    cgroup v2
 *     /slurm[...]/uid_UID/job_N                      cgroup v1
 *
 * Pure. Return: 0: the process is in none.
 */
uint32_t slurm_job_parse(const char *text, size_t n_text, uint32_t uid);
/** slurm_job_of() - of a process that is alive. Return: 0: it is in none, or is not visible. */
uint32_t slurm_job_of(pid_t pid, uint32_t uid);
/**
 * slurm_job_account() - from the file that Slurm's prolog wrote for the job
 * @folder: slurm_dir of gpuqd.conf
 *
 * Return: false: it is not known.
 */
bool slurm_job_account(const char *folder, uint32_t slurm_job, char name[SLURM_ACCOUNT_MAX + 1]);

#endif

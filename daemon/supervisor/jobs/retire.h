/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_RETIRE_H
#define GPUQ_SUPERVISOR_RETIRE_H

/*
 * Retire
 *
 * Frees users that have had nothing for RETIRE_NS: no session, job, arena, module or worker. A
 * person stays until its use of the devices is forgotten, so leaving pays no debt; a subordinate uid
 * has none of its own. Without this, 65,536 uids of one range would stay for ever.
 *
 * A user namespace can connect as all of them within minutes, and each has a history. So a person
 * has USER_PARTS_MAX of them at once, and those that have nothing make room at once.
 */

#include <stdbool.h>
#include <stdint.h>

#define RETIRE_NS 600000000000ull

typedef struct Engine Engine;
typedef struct User User;

/** retire_users() - once in a tick. */
void retire_users(Engine *engine, uint64_t now_ns);
/**
 * retire_make_room() - for a user that is about to have a session
 *
 * Return: false: its person has too many subordinate uids with something, and @user, which had nothing, was freed.
 */
bool retire_make_room(Engine *engine, User *user, uint64_t now_ns);

#endif

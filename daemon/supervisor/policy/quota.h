/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_SUPERVISOR_QUOTA_H
#define GPUQ_SUPERVISOR_QUOTA_H

/*
 * Quota
 *
 * Divides something finite, such as records or descriptors, among users who come and go. Each user
 * is guaranteed a QUOTA_PARTS-th, and QUOTA_PARTS / 2 users have it whatever the others do. The other
 * half is open: a user may take up to half of what the other users left of it. So the first greedy
 * user gets a quarter of all, the next an eighth, and nobody the last. dbus-broker divides its
 * resources in this manner (its src/util/user.h). Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#define QUOTA_PARTS      128u
#define QUOTA_OPEN_PARTS 512u

/* Zeroed: there is no end to it, and everybody may take any amount. */
typedef struct Quota {
        uint64_t capacity;
        uint64_t part;    /* guaranteed to each user */
        uint64_t for_all; /* what is not guaranteed */
        uint64_t taken;   /* by all users */
        uint64_t open;    /* the part of it that is beyond the users' guaranteed parts */
} Quota;

/** quota_init() - @capacity: of all users together; nothing is taken. */
void quota_init(Quota *quota, uint64_t capacity);
/**
 * quota_init_open() - the same with an eighth of it guaranteed instead of half, for what is worth
 * most in one hand: the first greedy user gets seven sixteenths of all
 */
void quota_init_open(Quota *quota, uint64_t capacity);
/** quota_most() - what a user who holds @held may hold at most, as long as the others take no more. */
uint64_t quota_most(const Quota *quota, uint64_t held);
/** quota_take() - a user who holds @held takes @amount more. Return: false: that is too much; nothing was taken. */
bool quota_take(Quota *quota, uint64_t held, uint64_t amount);
/** quota_give() - a user who holds @held gives @amount of it back. */
void quota_give(Quota *quota, uint64_t held, uint64_t amount);

#endif

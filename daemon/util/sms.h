/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_SMS_H
#define GPUQ_UTIL_SMS_H

/*
 * SMs
 *
 * A share of a device's streaming multiprocessors (SMs), as the key sms of gpuqd.conf names it: "all",
 * a part such as "25%", or a number of SMs. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#define SMS_MAX  65535u /* SMs that a share may name */
#define SMS_TEXT 16u    /* bytes of the longest text */

typedef struct Sms {
        uint32_t n : 31; /* SMs, or percent; 0: all */
        uint32_t is_percent : 1;
} Sms;

/** sms_are_all() - it is no limit. */
static inline bool sms_are_all(Sms sms) {
        return sms.n == 0;
}
/** sms_are_equal() */
static inline bool sms_are_equal(Sms a, Sms b) {
        return a.n == b.n && a.is_percent == b.is_percent;
}
/** sms_are_valid() - whether sms_parse() can give them: to check what another process sent. */
bool sms_are_valid(Sms sms);
/** sms_parse() - Return: false: not such a text, and @ret_sms is unchanged. */
bool sms_parse(const char *text, Sms *ret_sms);
/** sms_text() - as gpuqd.conf has it. Return: @text. */
const char *sms_text(Sms sms, char text[static SMS_TEXT]);
/**
 * sms_count() - SMs of a device with @n_all
 * @n_least: of the smallest part that the device allows; at least 1
 * @n_step:  whose multiple a part must be; at least 1
 *
 * Return: the share, rounded up to what the device allows; @n_all: no part is as large.
 */
unsigned sms_count(Sms sms, unsigned n_all, unsigned n_least, unsigned n_step);

#endif

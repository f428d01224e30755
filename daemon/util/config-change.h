/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_UTIL_CONFIG_CHANGE_H
#define GPUQ_UTIL_CONFIG_CHANGE_H

/*
 * Config changes
 *
 * What a reload changes, for the log: "poll_us 0 -> 100, [user anna] jobs 10 -> 20 and 3 more".
 * A key that a section has from [gpuqd] is listed there only.
 */

#include "util/config.h"

/** config_describe_changes() - @ret_text: the caller's; "": there are none. Return: 0 or -ENOMEM. */
int config_describe_changes(const Config *old, const Config *config, char **ret_text);
/**
 * config_keep_fixed() - put back the keys that a reload cannot change
 * @ret_text: what would have changed, as above
 *
 * Return: 0 or -ENOMEM.
 */
int config_keep_fixed(const Config *old, Config *config, char **ret_text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PROTO_TEXT_H
#define GPUQ_PROTO_TEXT_H

/*
 * Text
 *
 * Checks text of users and workers that other people read. It must be valid UTF-8 without control
 * characters (C0, DEL and C1), bidirectional marks, overrides and isolates, line and paragraph
 * separators, and invisible characters that carry text (tags, annotations, byte order marks). It
 * is checked when it is received, and cleaned again before it is shown.
 */

#include <stdbool.h>
#include <stddef.h>

/** text_is_clean() - one line without such a character, at most @max bytes. */
bool text_is_clean(const char *text, size_t max);
/** text_clean() - replace each such character by "?", in place; line feeds and tabs stay. Return: @text. */
char *text_clean(char *text);
/** text_clean_line() - the same, and line feeds and tabs become spaces. Return: @text. */
char *text_clean_line(char *text);
/** text_cut() - how many bytes of @text are at most @max, without a part of a character at their end. */
size_t text_cut(const char *text, size_t max);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_CLI_TABLE_H
#define GPUQ_CLI_TABLE_H

/*
 * Table
 *
 * Rows and columns, by libsmartcols. On a terminal they are fitted to its width,
 * and coloured unless NO_COLOR is set; in a pipe they are complete. Cells may contain text of
 * other users, so control characters are escaped.
 *
 * On a narrow terminal spare columns are left out, the rightmost first; then texts are broken between
 * words or cut.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/macro.h"

typedef enum TableColor {
        TABLE_PLAIN,
        TABLE_GOOD,
        TABLE_BAD,
} TableColor;

typedef struct TableColumn {
        const char *name;
        bool right;   /* numbers */
        bool shorten; /* may be cut where the terminal is narrow */
        bool wrap;    /* may take several lines there */
        bool spare;   /* may be left out there */
        bool rare;    /* shown only if a cell says more than "-" */
} TableColumn;

typedef struct Table Table;

/** table_new() - an empty table. @columns are borrowed. Return: 0 or -ENOMEM. */
int table_new(const TableColumn *columns, size_t n_columns, bool heading, Table **ret_table);
/** table_row() - begin a row. table_print() reports a failure. */
void table_row(Table *table, TableColor color);
/** table_cell() - the next cell of the row. */
void table_cell(Table *table, const char *format, ...) _printf_(2, 3);
/** table_sort() - by the first column's text. */
void table_sort(Table *table);
/** table_terminal() - columns of the terminal that standard output is; 0: it is none. */
size_t table_terminal(void);
/** table_print() - to standard output. Return: 0 or -ENOMEM. */
int table_print(Table *table);
/** table_print_to() - to a stream, fitted to @width columns; 0: complete. Return: 0 or -ENOMEM. */
int table_print_to(Table *table, FILE *stream, size_t width);
/** table_print_text() - one text, on lines of at most @width columns that are broken between words. Return: as above. */
int table_print_text(FILE *stream, const char *text, size_t width);
/** table_free() - NULL is fine. Return: NULL. */
Table *table_free(Table *table);

DEFINE_CLEANUP(Table, table_free)

#endif

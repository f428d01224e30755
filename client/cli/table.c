/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <stdarg.h>
#include <stdio.h>

#include <libsmartcols.h>

#include "proto/text.h"

struct Table {
        struct libscols_table *scols;
        struct libscols_line *line; /* the row that is being filled */
        size_t column;              /* its next cell */
        bool failed;                /* memory ran out; kept until the table is printed */
        bool heading;
};

static bool table_wants_color(void) {
        const char *no_color = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static int table_add_columns(Table *table, const TableColumn *columns, size_t n_columns) {
        for (size_t i = 0; i < n_columns; i++) {
                int flags = (columns[i].right ? SCOLS_FL_RIGHT : 0) |
                            (columns[i].shorten ? SCOLS_FL_TRUNC : 0) |
                            (columns[i].wrap ? SCOLS_FL_WRAP : 0);

                if (!scols_table_new_column(table->scols, columns[i].name, 0, flags))
                        return -ENOMEM;
        }
        return 0;
}

int table_new(const TableColumn *columns, size_t n_columns, bool heading, Table **ret_table) {
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        table = calloc(1, sizeof(*table));
        if (!table)
                return -ENOMEM;
        table->scols = scols_new_table();
        if (!table->scols)
                return -ENOMEM;

        table->heading = heading;
        scols_table_enable_noheadings(table->scols, !heading);
        scols_table_enable_colors(table->scols, table_wants_color());
        r = table_add_columns(table, columns, n_columns);
        if (r < 0)
                return r;

        *ret_table = TAKE_PTR(table);
        return 0;
}

void table_row(Table *table, TableColor color) {
        static const char *const colors[] = {[TABLE_GOOD] = "green", [TABLE_BAD] = "red"};

        table->column = 0;
        table->line = scols_table_new_line(table->scols, NULL);
        if (!table->line ||
            (color != TABLE_PLAIN && scols_line_set_color(table->line, colors[color]) != 0))
                table->failed = true;
}

void table_cell(Table *table, const char *format, ...) {
        char *text = NULL;
        va_list args;
        int r;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);

        if (r >= 0)
                text_clean_line(text); /* labels and reasons come from other users */
        /* On success the line owns the text. */
        if (r < 0 || !table->line ||
            scols_line_refer_data(table->line, table->column++, text) != 0) {
                table->failed = true;
                if (r >= 0)
                        free(text);
        }
}

void table_sort(Table *table) {
        struct libscols_column *column = scols_table_get_column(table->scols, 0);

        scols_column_set_cmpfunc(column, scols_cmpstr_cells, NULL);
        scols_sort_table(table->scols, column);
}

/* libsmartcols does not even print the headings of a table without rows. */
static void table_print_heading(Table *table) {
        for (size_t i = 0; i < scols_table_get_ncols(table->scols); i++)
                printf("%s%s", i ? " " : "",
                       scols_column_get_name(scols_table_get_column(table->scols, i)));
        printf("\n");
}

int table_print(Table *table) {
        if (table->failed)
                return -ENOMEM;
        if (scols_table_is_empty(table->scols)) {
                if (table->heading)
                        table_print_heading(table);
                return 0;
        }
        return scols_print_table(table->scols) < 0 ? -ENOMEM : 0;
}

Table *table_free(Table *table) {
        if (!table)
                return NULL;

        scols_unref_table(table->scols);
        free(table);
        return NULL;
}

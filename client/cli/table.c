/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include <libsmartcols.h>

#include "proto/text.h"
#include "screen.h"

#define TABLE_COLUMNS_MAX 16u
#define TABLE_CUT_MIN     8u  /* characters that a text keeps when it is cut */
#define TABLE_WRAP_MIN    18u /* characters a line of a text that is broken */
#define TABLE_WORD_MAX    32u /* characters of a word for which other columns give way */

struct Table {
        const TableColumn *columns;
        struct libscols_table *scols;
        struct libscols_line *line; /* the row that is being filled */
        size_t column;              /* its next cell */
        bool failed;                /* memory ran out; kept until the table is printed */
        bool heading;
};

size_t table_terminal(void) {
        unsigned columns, rows;

        if (!isatty(STDOUT_FILENO))
                return 0;
        screen_size(&columns, &rows);
        return columns;
}

static bool table_wants_color(void) {
        const char *no_color = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static int table_add_columns(Table *table, const TableColumn *columns, size_t n_columns) {
        for (size_t i = 0; i < n_columns; i++) {
                int flags = (columns[i].right ? SCOLS_FL_RIGHT : 0) |
                            (columns[i].shorten ? SCOLS_FL_TRUNC : 0) |
                            (columns[i].wrap ? SCOLS_FL_WRAP : 0);
                struct libscols_column *column =
                        scols_table_new_column(table->scols, columns[i].name, 0, flags);

                if (!column)
                        return -ENOMEM;
                if (columns[i].wrap &&
                    (scols_column_set_safechars(column, "\n") != 0 ||
                     scols_column_set_wrapfunc(column, scols_wrapnl_chunksize,
                                               scols_wrapnl_nextchunk, NULL) != 0))
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

        table->columns = columns;
        table->heading = heading;
        scols_table_enable_noheadings(table->scols, !heading);
        scols_table_enable_colors(table->scols, table_wants_color());
        assert(n_columns <= TABLE_COLUMNS_MAX);
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

/* ---- the width ------------------------------------------------------------- */

#define TEXT_ESCAPED 4u /* libsmartcols prints a byte that is no character of this locale as \xc3 */

/* Of the first @n_bytes of a text, in characters of the terminal. */
static size_t text_width(const char *text, size_t n_bytes) {
        mbstate_t state = {};
        wchar_t character;
        size_t width = 0;

        while (n_bytes > 0) {
                size_t n = mbrtowc(&character, text, n_bytes, &state);

                if (n == 0 || n > n_bytes) { /* not in the encoding of this locale */
                        state = (mbstate_t){};
                        character = L'\0';
                        n = 1;
                }
                width += character && wcwidth(character) >= 0 ? (size_t)wcwidth(character)
                                                              : TEXT_ESCAPED * n;
                text += n;
                n_bytes -= n;
        }
        return width;
}

/* Turns blanks into line ends, so that a line is longer than @width only if a word is. */
static void text_wrap(char *text, size_t width) {
        char *blank = NULL;
        size_t used = 0;

        for (;;) {
                size_t n_word = strcspn(text, " "), word = text_width(text, n_word);

                used += word + (blank ? 1 : 0);
                if (blank && used > width) {
                        *blank = '\n';
                        used = word;
                }
                if (!text[n_word])
                        return;
                blank = text + n_word;
                text = blank + 1;
        }
}

/* Return: NULL: the row has no such cell. */
static struct libscols_cell *table_get_cell(const Table *table, size_t row, size_t column) {
        return scols_line_get_cell(scols_table_get_line(table->scols, row), column);
}

static size_t table_column_width(const Table *table, size_t column) {
        size_t width = table->heading ? strlen(table->columns[column].name) : 0;

        for (size_t i = 0; i < scols_table_get_nlines(table->scols); i++) {
                const char *text = scols_cell_get_data(table_get_cell(table, i, column));

                width = MAX(width, text ? text_width(text, strlen(text)) : 0);
        }
        return width;
}

static bool table_says_nothing(const Table *table, size_t column) {
        for (size_t i = 0; i < scols_table_get_nlines(table->scols); i++) {
                const char *text = scols_cell_get_data(table_get_cell(table, i, column));

                if (text && strcmp(text, "-") != 0)
                        return false;
        }
        return true;
}

static bool table_is_hidden(const Table *table, size_t column) {
        return scols_column_is_hidden(scols_table_get_column(table->scols, column));
}

static void table_hide(Table *table, size_t column) {
        scols_column_set_flags(scols_table_get_column(table->scols, column), SCOLS_FL_HIDDEN);
}

static void table_hide_rare(Table *table) {
        for (size_t i = 0; i < scols_table_get_ncols(table->scols); i++)
                if (table->columns[i].rare && table_says_nothing(table, i))
                        table_hide(table, i);
}

static size_t text_longest_word(const char *text) {
        size_t longest = 0;

        while (*text) {
                size_t n_word = strcspn(text, " ");

                longest = MAX(longest, text_width(text, n_word));
                text += n_word + (text[n_word] == ' ');
        }
        return longest;
}

/* Of texts that are broken between words; even a long word must not take the whole terminal. */
static size_t table_wrapped_width(const Table *table, size_t column) {
        size_t width = TABLE_WRAP_MIN;

        for (size_t i = 0; i < scols_table_get_nlines(table->scols); i++) {
                const char *text = scols_cell_get_data(table_get_cell(table, i, column));

                width = MAX(width, text ? text_longest_word(text) : 0);
        }
        return MIN(width, TABLE_WORD_MAX);
}

static size_t table_least_width(const Table *table, size_t column, size_t width) {
        if (table->columns[column].wrap)
                return MIN(width, table_wrapped_width(table, column));
        return table->columns[column].shorten ? MIN(width, TABLE_CUT_MIN) : width;
}

static int table_wrap_column(Table *table, size_t column, size_t width) {
        for (size_t i = 0; i < scols_table_get_nlines(table->scols); i++) {
                struct libscols_cell *cell = table_get_cell(table, i, column);
                char *text = strdup(scols_cell_get_data(cell));

                if (!text)
                        return -ENOMEM;
                text_wrap(text, width);
                scols_cell_refer_data(cell, text); /* the cell owns the text */
        }
        return 0;
}

/* What the terminal has beyond the least widths is divided by what each column lacks. */
static int table_fit(Table *table) {
        size_t widths[TABLE_COLUMNS_MAX], least[TABLE_COLUMNS_MAX], left, need = 0, lack = 0;
        size_t n_columns = scols_table_get_ncols(table->scols);
        size_t terminal = scols_table_get_termwidth(table->scols);
        int r = 0;

        for (size_t i = 0; i < n_columns; i++) {
                widths[i] = least[i] = 0;
                if (table_is_hidden(table, i))
                        continue;
                widths[i] = table_column_width(table, i);
                least[i] = table_least_width(table, i, widths[i]);
                need += least[i] + 1; /* with the blank before the next column */
        }
        for (size_t i = n_columns; i-- > 0 && need > terminal + 1;)
                if (table->columns[i].spare && !table_is_hidden(table, i)) {
                        table_hide(table, i);
                        need -= least[i] + 1;
                        widths[i] = least[i];
                }
        for (size_t i = 0; i < n_columns && need > terminal + 1; i++)
                if (table->columns[i].wrap && least[i] > TABLE_WRAP_MIN) {
                        need -= least[i] - TABLE_WRAP_MIN;
                        least[i] = TABLE_WRAP_MIN;
                }
        left = need > terminal + 1 ? 0 : terminal + 1 - need;
        for (size_t i = 0; i < n_columns; i++)
                lack += widths[i] - least[i];
        for (size_t i = 0; i < n_columns && r == 0 && lack > left; i++)
                if (table->columns[i].wrap)
                        r = table_wrap_column(table, i,
                                              least[i] + (widths[i] - least[i]) * left / lack);
        return r;
}

/* ---- printing -------------------------------------------------------------- */

/* libsmartcols does not even print the headings of a table without rows. */
static void table_print_heading(Table *table, FILE *stream) {
        for (size_t i = 0; i < scols_table_get_ncols(table->scols); i++)
                if (!table->columns[i].rare)
                        fprintf(stream, "%s%s", i ? " " : "",
                                scols_column_get_name(scols_table_get_column(table->scols, i)));
        fprintf(stream, "\n");
}

int table_print_to(Table *table, FILE *stream, size_t width) {
        if (table->failed)
                return -ENOMEM;
        if (scols_table_is_empty(table->scols)) {
                if (table->heading)
                        table_print_heading(table, stream);
                return 0;
        }
        table_hide_rare(table);
        scols_table_set_stream(table->scols, stream);
        scols_table_set_termforce(table->scols,
                                  width ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
        if (width) {
                scols_table_set_termwidth(table->scols, width);
                if (table_fit(table) < 0)
                        return -ENOMEM;
        }
        return scols_print_table(table->scols) < 0 ? -ENOMEM : 0;
}

int table_print(Table *table) {
        return table_print_to(table, stdout, table_terminal());
}

int table_print_text(FILE *stream, const char *text, size_t width) {
        static const TableColumn column = {"", .wrap = true};
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(&column, 1, false, &table);
        if (r < 0)
                return r;
        table_row(table, TABLE_PLAIN);
        table_cell(table, "%s", text);
        return table_print_to(table, stream, width);
}

Table *table_free(Table *table) {
        if (!table)
                return NULL;

        scols_unref_table(table->scols);
        free(table);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "explain.h"

#include <stdarg.h>
#include <string.h>

#include "util/human.h"
#include "table.h"

static const struct {
        const char *advice;
        const char *text;
} explain_texts[] = {
        {"nothing", "Nothing to gain: no change of this job would save much of its time."},
        {"less-memory", "Use less device memory: the device has too little for this job now. Free "
                        "buffers that are "
                        "no longer needed, or work on smaller parts."},
        {"pin",
         "Name a device for this job: gpuqd loads modules once per device; this job ran where "
         "they were not loaded."},
        {"keep-data",
         "Keep the data in device buffers: copying it takes at least half of the running time."},
        {"in-flight",
         "Submit more jobs before you wait for one: this short job was alone in its worker, so "
         "the device was idle between the jobs."},
        {"prepare",
         "Prepare this job once and fire it: many equal jobs ran, and each took about as long to "
         "handle as to run."},
};

static const char *explain_text(const char *advice) {
        for (size_t i = 0; i < ARRAY_SIZE(explain_texts); i++)
                if (strcmp(explain_texts[i].advice, advice) == 0)
                        return explain_texts[i].text;
        return advice;
}

static int explain_line(FILE *stream, size_t width, const char *format, ...) _printf_(3, 4);

static int explain_line(FILE *stream, size_t width, const char *format, ...) {
        char line[2048];
        va_list args;

        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        return table_print_text(stream, line, width);
}

static const char *explain_verb(const char *state) {
        if (strcmp(state, "failed") == 0)
                return "";
        return strcmp(state, "cancelled") == 0 ? "was " : "is ";
}

static int explain_write_head(FILE *stream, const gpuq_explanation *explanation, size_t width) {
        char id[24], where[64] = "";

        gpuq_id_format(explanation->id, id);
        if (explanation->device >= 0)
                snprintf(where, sizeof(where), ", device %d", explanation->device);
        return explain_line(stream, width, "job %s%s%s%s%s %s%s%s%s%s", id,
                            *explanation->kernel ? ", kernel " : "", explanation->kernel,
                            *explanation->label ? ", label " : "", explanation->label,
                            explain_verb(explanation->state), explanation->state, where,
                            *explanation->reason ? ": " : "", explanation->reason);
}

static void explain_row(Table *table, const gpuq_explanation *explanation, const char *what,
                        uint64_t us, uint64_t median_us) {
        table_row(table, TABLE_PLAIN);
        table_cell(table, "%s", what);
        table_cell(table, "%s", human_us(us).text);
        table_cell(table, "%s", explanation->n_median ? human_us(median_us).text : "-");
}

static void explain_rows(Table *table, const gpuq_explanation *explanation) {
        const gpuq_job_times *times = &explanation->times, *median = &explanation->median;

        explain_row(table, explanation, "waited for jobs before it", times->dependencies_us,
                    median->dependencies_us);
        explain_row(table, explanation, "waited for its modules", times->module_us,
                    median->module_us);
        explain_row(table, explanation, "waited for its turn", times->queue_us, median->queue_us);
        explain_row(table, explanation, "in its worker, not running", times->launch_us,
                    median->launch_us);
        explain_row(table, explanation, "ran, with copies", times->ran_us, median->ran_us);
        if (times->gpu_ns || median->gpu_ns)
                explain_row(table, explanation, "  of this on the device", times->gpu_ns / 1000,
                            median->gpu_ns / 1000);
        if (times->moved_bytes || median->moved_bytes) {
                table_row(table, TABLE_PLAIN);
                table_cell(table, "  host data");
                table_cell(table, "%s", human_bytes(times->moved_bytes).text);
                table_cell(table, "%s",
                           explanation->n_median ? human_bytes(median->moved_bytes).text : "-");
        }
}

static int explain_write_times(FILE *stream, const gpuq_explanation *explanation, size_t width) {
        static const TableColumn columns[] = {
                {"PART"},
                {"TIME", .right = true},
                {"MEDIAN", .right = true},
        };
        _cleanup_(table_freep) Table *table = NULL;
        int r;

        r = table_new(columns, ARRAY_SIZE(columns), true, &table);
        if (r < 0)
                return r;
        explain_rows(table, explanation);
        fputc('\n', stream);
        r = table_print_to(table, stream, width);
        fputc('\n', stream);
        return r;
}

static int explain_write_median(FILE *stream, size_t n, size_t width) {
        if (n == 0)
                return explain_line(stream, width,
                                    "No other job of these kernels and this size has been done.");
        return explain_line(stream, width,
                            "MEDIAN is of %zu done job%s of the same kernels and size.", n,
                            n == 1 ? "" : "s");
}

/* Its times are no ground for advice. */
static bool explain_has_failed(const gpuq_explanation *explanation) {
        return strcmp(explanation->state, "failed") == 0 ||
               strcmp(explanation->state, "cancelled") == 0;
}

int explain_write(FILE *stream, const gpuq_explanation *explanation, size_t width) {
        int r;

        r = explain_write_head(stream, explanation, width);
        if (r == 0)
                r = explain_write_times(stream, explanation, width);
        if (r == 0)
                r = explain_write_median(stream, explanation->n_median, width);
        if (r == 0 && !explain_has_failed(explanation))
                r = explain_line(stream, width, "%s", explain_text(explanation->advice));
        return r;
}

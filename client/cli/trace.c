/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"
#include "who.h"

#define TRACE_TEXT_MAX     1024u /* bytes of a text */
#define TRACE_LANES_SORTED 4096u /* lanes of a track that viewers keep in order */

typedef enum TraceRowKind {
        TRACE_SESSION, /* its number */
        TRACE_DEVICE,  /* its index */
} TraceRowKind;

/* A process. */
typedef struct TraceRow {
        TraceRowKind kind;
        uint32_t number; /* as its kind says */
        uint32_t uid;    /* of a session */
        int client_pid;  /* of a session; 0: not known */
        char program[65];
        unsigned n_tracks;
        unsigned n_threads;
} TraceRow;

/* Threads of one name. */
typedef struct TraceTrack {
        size_t row;      /* in file->rows */
        int worker_pid;  /* 0: not of a worker, or not known */
        int stream;      /* -1: not of a stream, or not known */
        unsigned number; /* among those of its row, from 0 */
        uint64_t *ends;  /* of each lane's last event, in ns */
        unsigned *tids;  /* of each lane */
        size_t n_lanes;
} TraceTrack;

struct TraceFile {
        FILE *stream;
        uint64_t from_ns;
        bool has_events; /* the next one follows a comma */
        TraceRow *rows;
        size_t n_rows;
        TraceTrack *tracks;
        size_t n_tracks;
        uint64_t n_jobs, n_unfinished;
};

/* The threads of one job. */
typedef struct TracePlace {
        size_t pid;
        unsigned tid;
} TracePlace;

/* A part of a job's time. */
typedef struct TracePart {
        const char *category;
        const char *name;
        uint64_t begin_ns, end_ns;
} TracePart;

/* ---- JSON -------------------------------------------------------------------- */

static void trace_text(FILE *stream, const char *text) {
        char clean[TRACE_TEXT_MAX + 1];
        size_t n = text_cut(text, TRACE_TEXT_MAX);

        memcpy(clean, text, n);
        clean[n] = '\0';
        text_clean_line(clean);
        fputc('"', stream);
        for (const char *p = clean; *p; p++) {
                if (*p == '"' || *p == '\\')
                        fputc('\\', stream);
                fputc(*p, stream);
        }
        fputc('"', stream);
}

/* Of at most as many bytes as text_cut() measures. */
static void trace_member_text(FILE *stream, const char *name, const char *text) {
        fprintf(stream, ",\"%s\":", name);
        trace_text(stream, text);
}

static void trace_member_number(FILE *stream, const char *name, uint64_t value) {
        fprintf(stream, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* Nanoseconds as microseconds, the unit of the format. */
static void trace_member_us(FILE *stream, const char *name, uint64_t ns) {
        fprintf(stream, ",\"%s\":%llu.%03u", name, (unsigned long long)(ns / 1000),
                (unsigned)(ns % 1000));
}

/* trace_event_end() follows. */
static void trace_event_begin(TraceFile *file, char phase, TracePlace place) {
        fprintf(file->stream, "%s\n{\"ph\":\"%c\",\"pid\":%zu,\"tid\":%u",
                file->has_events ? "," : "", phase, place.pid, place.tid);
        file->has_events = true;
}

static void trace_event_end(TraceFile *file) {
        fputc('}', file->stream);
}

/* ---- rows, tracks and lanes ------------------------------------------------------ */

/* Pids begin with 1; 0 is the trace itself. */
static size_t trace_pid(size_t row) {
        return row + 1;
}

static int trace_row(TraceFile *file, TraceRowKind kind, uint32_t number, size_t *ret_row) {
        TraceRow *rows;

        for (size_t i = 0; i < file->n_rows; i++)
                if (file->rows[i].kind == kind && file->rows[i].number == number) {
                        *ret_row = i;
                        return 0;
                }
        rows = reallocarray(file->rows, file->n_rows + 1, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        file->rows = rows;
        rows[file->n_rows] = (TraceRow){.kind = kind, .number = number};
        *ret_row = file->n_rows++;
        return 0;
}

static int trace_track(TraceFile *file, size_t row, int worker_pid, int stream,
                       TraceTrack **ret_track) {
        TraceTrack *tracks;

        for (size_t i = 0; i < file->n_tracks; i++) {
                TraceTrack *track = &file->tracks[i];

                if (track->row == row && track->worker_pid == worker_pid &&
                    track->stream == stream) {
                        *ret_track = track;
                        return 0;
                }
        }
        tracks = reallocarray(file->tracks, file->n_tracks + 1, sizeof(*tracks));
        if (!tracks)
                return -ENOMEM;
        file->tracks = tracks;
        tracks[file->n_tracks] = (TraceTrack){
                .row = row,
                .worker_pid = worker_pid,
                .stream = stream,
                .number = file->rows[row].n_tracks++,
        };
        *ret_track = &tracks[file->n_tracks++];
        return 0;
}

static int trace_track_grow(TraceTrack *track) {
        size_t n = track->n_lanes ? 2 * track->n_lanes : 1;
        unsigned *tids;
        uint64_t *ends;

        if (track->n_lanes & (track->n_lanes - 1))
                return 0;
        ends = reallocarray(track->ends, n, sizeof(*ends));
        if (!ends)
                return -ENOMEM;
        track->ends = ends;
        tids = reallocarray(track->tids, n, sizeof(*tids));
        if (!tids)
                return -ENOMEM;
        track->tids = tids;
        return 0;
}

/* The lane on which nothing overlaps with an event. */
static int trace_lane(TraceFile *file, TraceTrack *track, uint64_t begin_ns, uint64_t end_ns,
                      TracePlace *ret_place) {
        size_t i = 0;

        while (i < track->n_lanes && track->ends[i] > begin_ns)
                i++;
        if (i == track->n_lanes) {
                if (trace_track_grow(track) < 0)
                        return -ENOMEM;
                track->tids[i] = ++file->rows[track->row].n_threads;
                track->n_lanes++;
        }
        track->ends[i] = end_ns;
        *ret_place = (TracePlace){trace_pid(track->row), track->tids[i]};
        return 0;
}

/* ---- a job ----------------------------------------------------------------------- */

static bool trace_is_unfinished(const gpuq_trace_job *job) {
        return strcmp(job->state, "waiting") == 0 || strcmp(job->state, "running") == 0;
}

/* "LABEL: KERNELS", as far as there are any. */
static void trace_job_name(const gpuq_trace_job *job, char *name, size_t n_name) {
        bool has_both = *job->label && *job->kernels;

        snprintf(name, n_name, "%s%s%s", job->label, has_both ? ": " : "", job->kernels);
        if (!*name)
                snprintf(name, n_name, "job without a kernel");
}

/* Of a job that has not, only how long it waited in all is known. */
static bool trace_has_ended(const gpuq_trace_job *job) {
        return strcmp(job->state, "running") != 0 && strcmp(job->state, "waiting") != 0;
}

static uint64_t trace_run_begin(const gpuq_trace_job *job) {
        uint64_t worker_ns = job->ended_ns - job->started_ns;

        return job->ended_ns - MIN(job->ran_us * 1000, worker_ns);
}

static void trace_job_args(FILE *stream, const gpuq_trace_job *job, const char *reason) {
        char id[24];

        fprintf(stream, ",\"args\":{\"job\":\"%s\"", gpuq_id_format(job->id, id));
        trace_member_text(stream, "state", job->state);
        trace_member_text(stream, "user", who_user(job->uid).name);
        trace_member_text(stream, "label", job->label);
        trace_member_text(stream, "kernels", job->kernels);
        if (*job->code)
                trace_member_text(stream, "code", job->code);
        if (*reason)
                trace_member_text(stream, "waits", reason);
        trace_member_number(
                stream, "waited_us",
                ((job->started_ns ? job->started_ns : job->ended_ns) - job->submitted_ns) / 1000);
        if (trace_has_ended(job)) {
                trace_member_number(stream, "waited_for_jobs_us", job->behind_ns / 1000);
                trace_member_number(stream, "waited_for_modules_us", job->parked_ns / 1000);
        }
        trace_member_number(stream, "ran_us", job->ran_us);
        if (job->gpu_ns)
                trace_member_us(stream, "gpu_us", job->gpu_ns);
        trace_member_number(stream, "moved_bytes", job->moved_bytes);
        trace_member_number(stream, "retries", job->retries);
        if (job->n_beside)
                trace_member_number(stream, "jobs_in_worker", job->n_beside);
        fputc('}', stream);
}

static void trace_part(TraceFile *file, TracePlace place, const TracePart *part,
                       const gpuq_trace_job *job, const char *reason) {
        uint64_t begin_ns = MAX(part->begin_ns, file->from_ns);

        trace_event_begin(file, 'X', place);
        trace_member_us(file->stream, "ts", begin_ns);
        trace_member_us(file->stream, "dur", part->end_ns - begin_ns);
        trace_member_text(file->stream, "cat", part->category);
        trace_member_text(file->stream, "name", part->name);
        trace_job_args(file->stream, job, reason);
        trace_event_end(file);
}

/* What a job did, one after the other. Return: how many parts. */
static size_t trace_parts(const gpuq_trace_job *job, const char *name, TracePart *parts) {
        uint64_t started_ns = job->started_ns ? job->started_ns : job->ended_ns;
        uint64_t behind_ns = MIN(job->behind_ns, started_ns - job->submitted_ns);
        uint64_t parked_ns = MIN(job->parked_ns, started_ns - job->submitted_ns - behind_ns);
        uint64_t run_ns = job->started_ns ? trace_run_begin(job) : job->ended_ns;
        const TracePart all[] = {
                {"supervisor", "waits for jobs before it", .end_ns = job->submitted_ns + behind_ns},
                {"supervisor", "waits for its modules",
                 .end_ns = job->submitted_ns + behind_ns + parked_ns},
                {"supervisor", trace_has_ended(job) ? "waits for its turn" : "waits",
                 .end_ns = started_ns},
                {"worker", "in its worker, not running", .end_ns = run_ns},
                {"job", name, .end_ns = job->ended_ns},
        };
        uint64_t at_ns = job->submitted_ns;
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                parts[n] = all[i];
                parts[n].begin_ns = at_ns;
                at_ns = all[i].end_ns;
                n += all[i].end_ns > parts[n].begin_ns;
        }
        if (n == 0)
                parts[n++] = (TracePart){"job", name, at_ns, at_ns};
        return n;
}

static void trace_arrow_end(TraceFile *file, char phase, TracePlace place, uint64_t at_ns) {
        trace_event_begin(file, phase, place);
        trace_member_us(file->stream, "ts", MAX(at_ns, file->from_ns));
        trace_member_number(file->stream, "id", file->n_jobs);
        trace_member_text(file->stream, "cat", "job");
        trace_member_text(file->stream, "name", "submitted");
        if (phase == 'f')
                trace_member_text(file->stream, "bp", "e");
        trace_event_end(file);
}

/* ---- where it is drawn ------------------------------------------------------------- */

static void trace_row_note_client(TraceRow *row, const gpuq_trace_job *job) {
        row->uid = job->uid;
        if (!*job->program)
                return;
        row->client_pid = job->client_pid;
        snprintf(row->program, sizeof(row->program), "%s", job->program);
}

static int trace_add_to_session(TraceFile *file, const gpuq_trace_job *job, const char *name,
                                const char *reason, TracePlace *ret_place) {
        TracePart parts[5];
        TraceTrack *track;
        size_t row, n;

        if (trace_row(file, TRACE_SESSION, (uint32_t)(job->id >> 32), &row) < 0 ||
            trace_track(file, row, 0, -1, &track) < 0 ||
            trace_lane(file, track, MAX(job->submitted_ns, file->from_ns), job->ended_ns,
                       ret_place) < 0)
                return -ENOMEM;
        trace_row_note_client(&file->rows[row], job);
        n = trace_parts(job, name, parts);
        for (size_t i = 0; i < n; i++)
                if (parts[i].end_ns >= file->from_ns)
                        trace_part(file, *ret_place, &parts[i], job, reason);
        return 0;
}

static int trace_add_to_device(TraceFile *file, const gpuq_trace_job *job, const char *name,
                               TracePlace from) {
        const TracePart run = {"kernel", name, trace_run_begin(job), job->ended_ns};
        TraceTrack *track;
        TracePlace place;
        size_t row;

        if (trace_row(file, TRACE_DEVICE, (uint32_t)job->device, &row) < 0 ||
            trace_track(file, row, job->worker_pid, job->stream, &track) < 0 ||
            trace_lane(file, track, MAX(run.begin_ns, file->from_ns), run.end_ns, &place) < 0)
                return -ENOMEM;
        trace_part(file, place, &run, job, "");
        trace_arrow_end(file, 's', from, job->submitted_ns);
        trace_arrow_end(file, 'f', place, run.begin_ns);
        return 0;
}

int trace_file_add(TraceFile *file, const gpuq_trace_job *job, const char *reason) {
        char name[TRACE_TEXT_MAX];
        TracePlace place;
        int r;

        if (job->ended_ns < MAX(job->submitted_ns, file->from_ns) ||
            job->ended_ns < job->started_ns)
                return 0;
        file->n_jobs++;
        file->n_unfinished += trace_is_unfinished(job);
        trace_job_name(job, name, sizeof(name));
        r = trace_add_to_session(file, job, name, reason, &place);
        if (r == 0 && job->started_ns && job->device >= 0)
                r = trace_add_to_device(file, job, name, place);
        return r;
}

void trace_file_mark(TraceFile *file, uint64_t at_ns, const char *text) {
        trace_event_begin(file, 'i', (TracePlace){0, 0});
        trace_member_us(file->stream, "ts", MAX(at_ns, file->from_ns));
        trace_member_text(file->stream, "s", "g");
        trace_member_text(file->stream, "name", text);
        trace_event_end(file);
}

/* ---- names --------------------------------------------------------------------------- */

/* As metadata of a process, or of a thread. */
static void trace_name(TraceFile *file, TracePlace place, const char *kind, const char *name) {
        trace_event_begin(file, 'M', place);
        trace_member_text(file->stream, "name", kind);
        fputs(",\"args\":{\"name\":", file->stream);
        trace_text(file->stream, name);
        fputc('}', file->stream);
        trace_event_end(file);
}

static void trace_sort(TraceFile *file, TracePlace place, const char *kind, size_t index) {
        trace_event_begin(file, 'M', place);
        trace_member_text(file->stream, "name", kind);
        fprintf(file->stream, ",\"args\":{\"sort_index\":%zu}", index);
        trace_event_end(file);
}

static void trace_row_name(const TraceRow *row, char *name, size_t n_name) {
        if (row->kind == TRACE_DEVICE)
                snprintf(name, n_name, "device %u", row->number);
        else if (*row->program)
                snprintf(name, n_name, "%s (pid %d) of %s, session %u", row->program,
                         row->client_pid, who_user(row->uid).name, row->number);
        else
                snprintf(name, n_name, "session %u of %s", row->number, who_user(row->uid).name);
}

static void trace_track_name(const TraceRow *row, const TraceTrack *track, char *name,
                             size_t n_name) {
        if (row->kind == TRACE_SESSION)
                snprintf(name, n_name, "jobs");
        else if (!track->worker_pid)
                snprintf(name, n_name, "unfinished jobs");
        else if (track->stream < 0)
                snprintf(name, n_name, "worker %d, no stream", track->worker_pid);
        else
                snprintf(name, n_name, "worker %d, stream %d", track->worker_pid, track->stream);
}

static void trace_name_row(TraceFile *file, size_t i) {
        TracePlace place = {trace_pid(i), 0};
        char name[256];

        trace_row_name(&file->rows[i], name, sizeof(name));
        trace_name(file, place, "process_name", name);
        trace_sort(file, place, "process_sort_index",
                   file->rows[i].kind == TRACE_DEVICE ? file->n_rows + file->rows[i].number : i);
}

static void trace_name_track(TraceFile *file, const TraceTrack *track) {
        char name[64], lane[96];

        trace_track_name(&file->rows[track->row], track, name, sizeof(name));
        for (size_t i = 0; i < track->n_lanes; i++) {
                TracePlace place = {trace_pid(track->row), track->tids[i]};

                if (i)
                        snprintf(lane, sizeof(lane), "%s, lane %zu", name, i + 1);
                else
                        snprintf(lane, sizeof(lane), "%s", name);
                trace_name(file, place, "thread_name", lane);
                trace_sort(file, place, "thread_sort_index",
                           track->number * (size_t)TRACE_LANES_SORTED +
                                   MIN(i, TRACE_LANES_SORTED - 1));
        }
}

/* ---- the document ----------------------------------------------------------------------- */

int trace_file_new(FILE *stream, uint64_t from_ns, TraceFile **ret_file) {
        TraceFile *file;

        file = calloc(1, sizeof(*file));
        if (!file)
                return -ENOMEM;

        file->stream = stream;
        file->from_ns = from_ns;
        fputs("{\"traceEvents\":[", stream);
        *ret_file = file;
        return 0;
}

static void trace_write_summary(const TraceFile *file, const TraceSummary *summary) {
        FILE *stream = file->stream;

        fputs("\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"version\":\"gpuq " GPUQ_VERSION
              "\"",
              stream);
        trace_member_text(stream, "clock",
                          "ts is CLOCK_MONOTONIC of gpuqd in microseconds; at monotonic_us it was "
                          "unix_us since 1970");
        trace_member_us(stream, "monotonic_us", summary->now_ns);
        trace_member_us(stream, "unix_us", summary->unix_ns);
        trace_member_us(stream, "began_us", file->from_ns);
        trace_member_text(stream, "users", summary->all_users ? "all" : "one");
        trace_member_number(stream, "jobs", file->n_jobs);
        trace_member_number(stream, "unfinished_jobs", file->n_unfinished);
        trace_member_number(stream, "missing_jobs", summary->n_lost);
        trace_member_number(stream, "gaps", summary->n_gaps);
        fputs("}}\n", stream);
}

void trace_file_end(TraceFile *file, const TraceSummary *summary) {
        trace_name(file, (TracePlace){0, 0}, "process_name", "gpuq trace");
        for (size_t i = 0; i < file->n_rows; i++)
                trace_name_row(file, i);
        for (size_t i = 0; i < file->n_tracks; i++)
                trace_name_track(file, &file->tracks[i]);
        trace_write_summary(file, summary);
}

TraceFile *trace_file_free(TraceFile *file) {
        if (!file)
                return NULL;

        for (size_t i = 0; i < file->n_tracks; i++) {
                free(file->tracks[i].ends);
                free(file->tracks[i].tids);
        }
        free(file->tracks);
        free(file->rows);
        free(file);
        return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * gpuq top - one screen of devices, users and jobs, again and again
 */

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "proto/text.h"
#include "number.h"
#include "screen.h"
#include "top.h"
#include "verb.h"
#include "who.h"

#define TOP_DELAY_MS 1000
#define TOP_PART_US  4 /* gpuqd's answers may take at most one in so many parts of the time */

typedef enum TopAsks {
        TOP_ASKS_NOTHING,
        TOP_ASKS_USER,
        TOP_ASKS_JOB,
} TopAsks;

typedef struct Top {
        Cli *cli;
        gpuq_status *status, *before;
        gpuq_queue *queue;
        Nvml *nvml;            /* NULL: there is none */
        NvmlReading *readings; /* of each device of `status` */
        int64_t uid;
        TopSort sort;
        uint32_t delay_ms;
        TopAsks asks;
        char answer[64]; /* what was typed so far */
        char message[160];
} Top;

static const char *const sort_names[] = {[TOP_SORT_SHARE] = "share",
                                         [TOP_SORT_JOBS] = "jobs",
                                         [TOP_SORT_WAIT] = "wait",
                                         [TOP_SORT_NAME] = "name"};

enum {
        TOP_ONCE = VERB_OWN,
};

static int64_t now_us(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* ---- what gpuqd says -------------------------------------------------------------- */

static int top_read(Top *top, const gpuq_status *status) {
        NvmlReading *readings = calloc(MAX(status->n_devices, 1u), sizeof(*readings));

        if (!readings)
                return -ENOMEM;
        for (size_t i = 0; i < status->n_devices; i++)
                nvml_read(top->nvml, status->devices[i].uuid, &readings[i]);
        free(top->readings);
        top->readings = readings;
        return 0;
}

static int top_ask(Top *top) {
        gpuq_status *status = NULL;
        gpuq_queue *queue = NULL;
        int r;

        r = gpuq_get_status(top->cli->client, &status);
        if (r >= 0)
                r = gpuq_get_queue(top->cli->client, top->uid, &queue);
        if (r < 0) {
                gpuq_status_free(status);
                return cli_failed(top->cli, EXIT_WHEN_ASKED, r);
        }
        if (top_read(top, status) < 0) {
                gpuq_status_free(status);
                gpuq_queue_free(queue);
                return cli_no_memory(top->cli);
        }

        gpuq_status_free(top->before);
        gpuq_queue_free(top->queue);
        top->before = top->status;
        top->status = status;
        top->queue = queue;
        return 0;
}

/* Return: 0 or an exit code. */
static int top_fetch(Top *top) {
        int r = 0;

        if (!top->cli->client)
                r = cli_connect(top->cli);
        if (r == 0)
                r = top_ask(top);
        return r;
}

/* A gpuqd that has gone may come back: connect anew the next time. */
static void top_refresh(Top *top) {
        bool was_away = !top->cli->client;

        if (top_fetch(top) == 0) {
                if (was_away)
                        top->message[0] = '\0';
                return;
        }
        snprintf(top->message, sizeof(top->message), "%s", problem_text(&top->cli->problem));
        gpuq_client_free(top->cli->client);
        top->cli->client = NULL;
}

/* ---- the screen ------------------------------------------------------------------- */

static void top_line(const Top *top, char *line, size_t size) {
        if (top->asks == TOP_ASKS_USER)
                snprintf(line, size, "user (empty: all): %s_", top->answer);
        else if (top->asks == TOP_ASKS_JOB)
                snprintf(line, size, "id of the job to cancel: %s_", top->answer);
        else if (*top->message)
                snprintf(line, size, "%s", top->message);
        else
                snprintf(line, size, "q quit  u user%s  s sort (%s)  k cancel a job",
                         top->uid == TOP_ALL ? "" : " (one)", sort_names[top->sort]);
        text_clean_line(line);
}

static TopView top_view(const Top *top) {
        return (TopView){
                .status = top->status,
                .before = top->before,
                .queue = top->queue,
                .readings = top->readings,
                .uid = top->uid,
                .sort = top->sort,
        };
}

/* @ret_text: the caller's to free. */
static int top_write_text(const TopView *view, char **ret_text) {
        _cleanup_(freep) char *text = NULL;
        size_t size;
        FILE *stream;
        int r;

        stream = open_memstream(&text, &size);
        if (!stream)
                return -ENOMEM;
        r = top_write(stream, view);
        if (fclose(stream) != 0)
                r = -ENOMEM;
        if (r == 0)
                *ret_text = TAKE_PTR(text);
        return r;
}

static int top_show(const Top *top) {
        _cleanup_(freep) char *text = NULL;
        TopView view = top_view(top);
        char line[256];
        int r;

        top_line(top, line, sizeof(line));
        screen_size(&view.columns, &view.rows);
        view.line = line;
        r = top_write_text(&view, &text);
        if (r == 0)
                screen_draw(text);
        return r;
}

/* As other verbs: fitted to a terminal, and complete in a pipe. The last row is for the next prompt. */
static int top_once(const Top *top) {
        _cleanup_(freep) char *text = NULL;
        TopView view = top_view(top);
        const char *end;
        int r;

        if (isatty(STDOUT_FILENO))
                screen_size(&view.columns, &view.rows);
        r = top_write_text(&view, &text);
        if (r < 0)
                return r;

        end = text;
        for (unsigned i = 1; *end && (!view.rows || i < view.rows); i++)
                end += strcspn(end, "\n") + 1;
        fwrite(text, 1, (size_t)(end - text), stdout);
        return 0;
}

/* ---- keys ------------------------------------------------------------------------- */

static void top_choose_user(Top *top) {
        if (!*top->answer)
                top->uid = TOP_ALL;
        else if (who_find_user(top->answer, &top->uid) < 0)
                snprintf(top->message, sizeof(top->message), "this machine has no user `%s'",
                         top->answer);
        top_refresh(top);
}

static void top_cancel(Top *top) {
        gpuq_cancelled cancelled = {};
        const char *outcome;
        uint64_t id;
        int r;

        if (gpuq_id_parse(top->answer, &id) < 0) {
                snprintf(top->message, sizeof(top->message), "`%s' is not a job id", top->answer);
                return;
        }
        if (!top->cli->client) {
                snprintf(top->message, sizeof(top->message), "gpuqd cannot be reached");
                return;
        }
        r = gpuq_cancel_ids(top->cli->client, &id, 1, &cancelled);
        if (r < 0)
                outcome = gpuq_error_text();
        else if (cancelled.n_denied)
                outcome = "permission denied: the job belongs to another user";
        else
                outcome = cancelled.n_unknown ? "no such job" : "cancelled";
        snprintf(top->message, sizeof(top->message), "%s: %s", top->answer, outcome);
}

static void top_end_answer(Top *top) {
        TopAsks asks = top->asks;

        top->asks = TOP_ASKS_NOTHING;
        if (asks == TOP_ASKS_USER)
                top_choose_user(top);
        else if (*top->answer)
                top_cancel(top);
}

static void top_type(Top *top, int key) {
        size_t n = strlen(top->answer);

        if (key == '\n' || key == '\r')
                top_end_answer(top);
        else if (key == SCREEN_ESCAPE)
                top->asks = TOP_ASKS_NOTHING;
        else if (key == SCREEN_BACKSPACE && n > 0)
                top->answer[n - 1] = '\0';
        else if (isgraph(key) && n + 1 < sizeof(top->answer)) {
                top->answer[n] = (char)key;
                top->answer[n + 1] = '\0';
        }
}

/* Return: false: the program ends. */
static bool top_take_key(Top *top, int key) {
        top->message[0] = '\0';
        if (top->asks != TOP_ASKS_NOTHING) {
                top_type(top, key);
                return true;
        }
        top->answer[0] = '\0';
        switch (key) {
                case 'q':
                case 'Q':
                        return false;
                case 'u':
                        top->asks = TOP_ASKS_USER;
                        break;
                case 'k':
                        top->asks = TOP_ASKS_JOB;
                        break;
                case 's':
                        top->sort = (top->sort + 1) % _TOP_SORT_N;
                        break;
        }
        return true;
}

/* ---- life ------------------------------------------------------------------------- */

/* A long queue is asked for less often. Return: when it is asked for next. */
static int64_t top_refresh_now(Top *top) {
        int64_t begin_us = now_us(), took_us;

        top_refresh(top);
        took_us = now_us() - begin_us;
        return begin_us + MAX((int64_t)top->delay_ms * 1000, TOP_PART_US * took_us);
}

static int top_loop(Top *top) {
        int64_t due_us = now_us() + (int64_t)top->delay_ms * 1000;
        ScreenEvent event;
        int key = 0, r;

        for (;;) {
                r = top_show(top);
                if (r < 0)
                        return r;
                event = screen_wait((int)MAX((due_us - now_us() + 999) / 1000, INT64_C(0)), &key);
                if (event == SCREEN_CLOSED || (event == SCREEN_KEY && !top_take_key(top, key)))
                        return 0;
                if (now_us() >= due_us)
                        due_us = top_refresh_now(top);
        }
}

static int top_live(Top *top) {
        int r;

        r = screen_begin();
        if (r == -ENOTTY)
                return cli_usage(top->cli, "expected a terminal; --once prints one screen");
        if (r == 0)
                r = top_loop(top);
        screen_end();
        return r < 0 ? problem_set(&top->cli->problem, EXIT_JOB_FAILED, "%s", strerror(-r)) : 0;
}

static int top_read_options(Cli *cli, int argc, char **argv, Top *top, bool *ret_once) {
        int option, r;

        while ((r = verb_next(cli, argc, argv, &option)) > 0)
                switch (option) {
                        case 'd':
                                if (number_ms(optarg, &top->delay_ms) < 0 || top->delay_ms < 100 ||
                                    top->delay_ms > INT32_MAX)
                                        return cli_option(cli, "--delay", "seconds, at least 0.1");
                                break;
                        case 'u':
                                r = who_read_user(cli, &top->uid);
                                if (r)
                                        return r;
                                break;
                        case TOP_ONCE:
                                *ret_once = true;
                                break;
                }
        if (r == 0 && optind < argc)
                return cli_usage(cli, "unexpected argument `%s'", argv[optind]);
        return r;
}

static int top_run(Cli *cli, int argc, char **argv) {
        _cleanup_(nvml_freep) Nvml *nvml = NULL;
        Top top = {.cli = cli, .uid = TOP_ALL, .delay_ms = TOP_DELAY_MS};
        bool once = false;
        int r;

        r = top_read_options(cli, argc, argv, &top, &once);
        if (r)
                return r < 0 ? (int)cli->code : r;

        top.nvml = nvml = nvml_new();
        r = top_fetch(&top);
        if (r == 0 && once)
                r = top_once(&top) < 0 ? cli_no_memory(cli) : 0;
        else if (r == 0)
                r = top_live(&top);
        gpuq_status_free(top.before);
        gpuq_status_free(top.status);
        gpuq_queue_free(top.queue);
        free(top.readings);
        return r;
}

static const struct option top_options[] = {
        {"delay", required_argument, NULL, 'd'},
        {"user", required_argument, NULL, 'u'},
        {"once", no_argument, NULL, TOP_ONCE},
        VERB_OPTIONS_TEXT,
};

const Verb verb_top = {
        .name = "top",
        .arguments = "[OPTION...]",
        .summary = "show devices, users and jobs on one screen, again and again",
        .help = "  -d, --delay SECONDS    the time between two screens; default: 1\n"
                "  -u, --user USER        show this user and its jobs, a name or number\n"
                "      --once             print one screen and end\n"
                "Keys: q quit, u show one user, s sort, k cancel a job\n",
        .shorts = "d:u:",
        .options = top_options,
        .run = top_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session of a random program (tests/harness/serial_program.py), as a process of its own
 *
 *     gpuq-test-serial FD UID N_BUFFERS N_JOBS <SCRIPT
 *
 * Each line of the script is a command with its arguments, all numbers but names;
 * the table at the end has them. FD is memory that all sessions share: cells, through which one
 * tells the others the names of its arenas and jobs, and bytes, from which arenas
 * are filled and to which they are dumped. How each job ended is printed.
 */

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test-client.h"

#define WORDS_MAX    64
#define PREPARED_MAX 8

/* One value that somebody will tell, once. */
typedef struct Cell {
        uint64_t value;
        _Atomic uint32_t is_told;
        uint32_t reserved;
} Cell;

typedef struct Play {
        gpuq_client *client;
        char *memory;
        gpuq_buffer **buffers;
        gpuq_job **jobs;
        uint64_t *job_cells;
        size_t n_buffers, n_jobs;
        gpuq_module *modules[4];
        gpuq_prepared *prepared[PREPARED_MAX];
        gpuq_job *job;     /* under construction */
        size_t first, end; /* jobs made and not submitted */
        size_t untold;     /* the first whose id the others do not know */
} Play;

/* ---- what the sessions share ----------------------------------------------------- */

static Cell *cell(const Play *play, uint64_t i) {
        return (Cell *)play->memory + i;
}

static void cell_tell(const Play *play, uint64_t i, uint64_t value) {
        Cell *c = cell(play, i);

        c->value = value;
        atomic_store(&c->is_told, 1);
        syscall(SYS_futex, &c->is_told, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static uint64_t cell_ask(const Play *play, uint64_t i) {
        Cell *c = cell(play, i);

        while (!atomic_load(&c->is_told))
                syscall(SYS_futex, &c->is_told, FUTEX_WAIT, 0, NULL, NULL, 0);
        return c->value;
}

/* ---- words ----------------------------------------------------------------------- */

static uint64_t number(const char *word) {
        uint64_t value;
        char *end;

        CHECK(word);
        errno = 0;
        value = strtoull(word, &end, 0);
        CHECK(!errno && !*end && end != word);
        return value;
}

static gpuq_buffer *buffer(const Play *play, const char *word) {
        uint64_t i = number(word);

        CHECK(i < play->n_buffers && play->buffers[i]);
        return play->buffers[i];
}

static gpuq_buffer **new_buffer(const Play *play, const char *word) {
        uint64_t i = number(word);

        CHECK(i < play->n_buffers && !play->buffers[i]);
        return &play->buffers[i];
}

static gpuq_job *job(const Play *play, const char *word) {
        uint64_t i = number(word);

        CHECK(i < play->n_jobs && play->jobs[i]);
        return play->jobs[i];
}

/* ---- memory ---------------------------------------------------------------------- */

/* Device memory goes through a host buffer of its own. @in: to it, from the shared bytes; else back. */
static void move_bytes(const Play *play, gpuq_buffer *b, uint64_t at, bool in) {
        size_t size = gpuq_buffer_size(b);
        gpuq_buffer *host = b;
        gpuq_job *copy = NULL;

        if (gpuq_buffer_device(b) >= 0)
                DO(gpuq_buffer_new(play->client, size, &host));
        if (in)
                memcpy(gpuq_buffer_data(host), play->memory + at, size);
        if (host != b) {
                DO(gpuq_job_new(play->client, &copy));
                DO(gpuq_job_copy(copy, in ? b : host, 0, in ? host : b, 0, size));
                DO(gpuq_run(copy));
                gpuq_job_free(copy);
        }
        if (!in)
                memcpy(play->memory + at, gpuq_buffer_data(host), size);
        if (host != b)
                gpuq_buffer_free(host);
}

static void command_new(Play *play, char **words) {
        gpuq_buffer **b = new_buffer(play, words[0]);

        if (!strcmp(words[1], "device"))
                DO(gpuq_buffer_new_device(play->client, number(words[2]), 0, b));
        else
                DO(gpuq_buffer_new(play->client, number(words[2]), b));
}

static void command_load(Play *play, char **words) {
        move_bytes(play, buffer(play, words[0]), number(words[1]), true);
}

static void command_dump(Play *play, char **words) {
        move_bytes(play, buffer(play, words[0]), number(words[1]), false);
}

static void command_share(Play *play, char **words) {
        uint64_t at = number(words[1]);
        gpuq_buffer_ref ref;

        DO(gpuq_buffer_get_ref(buffer(play, words[0]), &ref));
        cell_tell(play, at, ref.arena);
        cell_tell(play, at + 1, ref.offset);
        cell_tell(play, at + 2, ref.length);
}

static void command_open(Play *play, char **words) {
        uint64_t at = number(words[1]);
        gpuq_buffer_ref ref = {
                .arena = cell_ask(play, at),
                .offset = cell_ask(play, at + 1),
                .length = cell_ask(play, at + 2),
        };

        DO(gpuq_buffer_open(play->client, &ref, new_buffer(play, words[0])));
}

static void command_slice(Play *play, char **words) {
        DO(gpuq_buffer_slice(buffer(play, words[1]), number(words[2]), number(words[3]),
                             new_buffer(play, words[0])));
}

static void command_free(Play *play, char **words) {
        gpuq_buffer_free(buffer(play, words[0]));
        play->buffers[number(words[0])] = NULL;
}

static void command_module(Play *play, char **words) {
        gpuq_module **m = &play->modules[number(words[0])];

        if (!strcmp(words[1], "builtin"))
                DO(gpuq_module_builtin(play->client, m));
        else
                DO(gpuq_module_load(play->client, GPUQ_FORMAT_SOURCE,
                                    play->memory + number(words[1]), number(words[2]), NULL,
                                    "serial.cu", m));
}

/* ---- jobs ------------------------------------------------------------------------ */

static void command_job(Play *play, char **words) {
        uint64_t i = number(words[0]);

        CHECK(i < play->n_jobs && i == play->end);
        DO(gpuq_job_new(play->client, &play->job));
        play->jobs[i] = play->job;
        play->job_cells[i] = number(words[1]);
        play->end++;
}

static void command_template(Play *play, char **words) {
        (void)words;
        DO(gpuq_job_new(play->client, &play->job));
}

/* in=3 out=3 whole=3 inout=3: a buffer; u32=7 …: a scalar; bytes=00ff: anything else, by value. @room: for those. */
static gpuq_arg argument(const Play *play, char *word, unsigned char *room) {
        char *value = strchr(word, '=');
        size_t n = 0;

        CHECK(value);
        *value++ = 0;
        if (!strcmp(word, "in"))
                return gpuq_in(buffer(play, value));
        if (!strcmp(word, "out"))
                return gpuq_out(buffer(play, value));
        if (!strcmp(word, "whole"))
                return gpuq_out_whole(buffer(play, value));
        if (!strcmp(word, "inout"))
                return gpuq_inout(buffer(play, value));
        if (!strcmp(word, "u32"))
                return gpuq_u32((uint32_t)number(value));
        if (!strcmp(word, "u64"))
                return gpuq_u64(number(value));
        if (!strcmp(word, "f32"))
                return gpuq_f32(strtof(value, NULL));

        CHECK(!strcmp(word, "bytes"));
        for (; sscanf(value, "%2hhx", &room[n]) == 1; value += 2)
                n++;
        return gpuq_bytes(room, n);
}

static void command_launch(Play *play, char **words) {
        unsigned char room[WORDS_MAX][64];
        gpuq_arg args[WORDS_MAX];
        gpuq_config config = {0};
        size_t n = 0;

        for (int i = 0; i < 3; i++) {
                config.grid[i] = (unsigned)number(words[2 + i]);
                config.block[i] = (unsigned)number(words[5 + i]);
        }
        config.shared_bytes = (unsigned)number(words[8]);
        for (char **word = words + 9; *word; word++, n++)
                args[n] = argument(play, *word, room[n]);
        DO(gpuq_job_launch(play->job, play->modules[number(words[0])], words[1], &config, args, n));
}

static void command_copy(Play *play, char **words) {
        DO(gpuq_job_copy(play->job, buffer(play, words[0]), number(words[1]),
                         buffer(play, words[2]), number(words[3]), number(words[4])));
}

static void command_fill(Play *play, char **words) {
        DO(gpuq_job_fill(play->job, buffer(play, words[0]), number(words[1]), number(words[2]),
                         (uint32_t)number(words[3]), (unsigned)number(words[4])));
}

static void command_after(Play *play, char **words) {
        DO(gpuq_job_after(play->job, cell_ask(play, number(words[0]))));
}

static void command_behind(Play *play, char **words) {
        uint64_t id = gpuq_job_id(job(play, words[0]));

        CHECK(id);
        DO(gpuq_job_after(play->job, id));
}

static void command_set(Play *play, char **words) {
        int value = atoi(words[1]);

        if (!strcmp(words[0], "priority"))
                DO(gpuq_job_set_priority(play->job, value));
        else if (!strcmp(words[0], "timeout"))
                DO(gpuq_job_set_timeout(play->job, (unsigned)value));
        else if (!strcmp(words[0], "timed"))
                DO(gpuq_job_set_timed(play->job, true));
        else if (!strcmp(words[0], "device"))
                DO(gpuq_job_set_device(play->job, value));
        else
                CHECK(!"a setting that is known");
}

static void command_submit(Play *play, char **words) {
        bool together = !strcmp(words[0], "together");
        size_t n = play->end - play->first;

        if (together)
                DO(gpuq_submit_many(&play->jobs[play->first], n));
        for (; !together && play->first < play->end; play->first++)
                DO(gpuq_submit(play->jobs[play->first]));
        play->first = play->end;
}

static gpuq_prepared **prepared(Play *play, const char *word) {
        uint64_t i = number(word);

        CHECK(i < PREPARED_MAX);
        return &play->prepared[i];
}

static void command_prepare(Play *play, char **words) {
        gpuq_prepared **p = prepared(play, words[0]);

        gpuq_prepared_free(*p);
        *p = NULL;
        DO(gpuq_prepare(play->job, p));
        gpuq_job_free(play->job);
}

/* swap=3:4 one buffer for another, or set=0:2:7 an u32 of an operation. */
static void change(const Play *play, char *word, gpuq_fire_args *args, gpuq_swap *swaps,
                   gpuq_set *sets) {
        char *first = strchr(word, '='), *second = first ? strchr(first, ':') : NULL, *third;

        CHECK(second);
        *first++ = 0;
        *second++ = 0;
        if (!strcmp(word, "swap")) {
                swaps[args->n_swaps++] = (gpuq_swap){buffer(play, first), buffer(play, second)};
                return;
        }
        third = strchr(second, ':');
        CHECK(!strcmp(word, "set") && third);
        *third++ = 0;
        sets[args->n_sets++] = (gpuq_set){
                .operation = number(first),
                .argument = number(second),
                .value = gpuq_u32((uint32_t)number(third)),
        };
}

static void command_fire(Play *play, char **words) {
        gpuq_swap swaps[WORDS_MAX];
        gpuq_set sets[WORDS_MAX];
        gpuq_fire_args args = {.swaps = swaps, .sets = sets};
        uint64_t i = number(words[1]);

        CHECK(i < play->n_jobs && i == play->end && i == play->first);
        for (char **word = words + 3; *word; word++)
                change(play, *word, &args, swaps, sets);
        DO(gpuq_fire(*prepared(play, words[0]), &args, &play->jobs[i]));
        play->job_cells[i] = number(words[2]);
        play->first = ++play->end;
}

/* Two sockets have no order between them: once something is answered the jobs before it are known. */
static void command_tell(Play *play, char **words) {
        gpuq_status *status = NULL;

        (void)words;
        DO(gpuq_get_status(play->client, &status));
        gpuq_status_free(status);
        for (; play->untold < play->first; play->untold++)
                cell_tell(play, play->job_cells[play->untold],
                          gpuq_job_id(play->jobs[play->untold]));
}

static void command_wait(Play *play, char **words) {
        int r = gpuq_wait(job(play, words[0]), -1);

        CHECK(r != GPUQ_E_AGAIN && r != GPUQ_E_CLOSED);
}

static void command_poll(Play *play, char **words) {
        DO(gpuq_poll(job(play, words[0])));
}

static void command_cancel(Play *play, char **words) {
        DO(gpuq_cancel(job(play, words[0])));
}

/* Waits for all of them and prints how they ended. */
static void command_finish(Play *play, char **words) {
        gpuq_result result;

        for (size_t i = 0; i < play->n_jobs; i++) {
                CHECK(gpuq_wait(play->jobs[i], -1) != GPUQ_E_CLOSED);
                DO(gpuq_job_get_result(play->jobs[i], &result));
                for (const char *p = result.output; *p; p++)
                        CHECK(*p != '\t');
                printf("%zu\t%d\t%d\t%s\t", i, result.state, result.error, result.text);
                for (const char *p = result.output; *p; p++)
                        putchar(*p == '\n' ? ';' : *p);
                putchar('\n');
                gpuq_job_free(play->jobs[i]);
        }
        fflush(stdout);
        cell_tell(play, number(words[0]), 1);
}

/* Until another session has told a cell. */
static void command_ask(Play *play, char **words) {
        cell_ask(play, number(words[0]));
}

/* ---- the script ------------------------------------------------------------------- */

static const struct {
        const char *name;
        void (*run)(Play *play, char **words);
        size_t n_words; /* at least */
} commands[] = {
        {"new", command_new, 3},           /* BUFFER host|device SIZE */
        {"load", command_load, 2},         /* BUFFER AT: fill it with the shared bytes there */
        {"dump", command_dump, 2},         /* BUFFER AT: and back */
        {"share", command_share, 2},       /* BUFFER CELL: and the next two: its name */
        {"open", command_open, 2},         /* BUFFER CELL */
        {"slice", command_slice, 4},       /* BUFFER OF OFFSET SIZE */
        {"free", command_free, 1},         /* BUFFER */
        {"module", command_module, 2},     /* MODULE builtin, or AT SIZE of its source */
        {"job", command_job, 2},           /* JOB CELL: begins one; what follows is about it */
        {"launch", command_launch, 9},     /* MODULE KERNEL GRID×3 BLOCK×3 SHARED ARGUMENT… */
        {"copy", command_copy, 5},         /* TO OFFSET FROM OFFSET SIZE */
        {"fill", command_fill, 5},         /* BUFFER OFFSET SIZE VALUE WIDTH */
        {"after", command_after, 1},       /* CELL of another session's job */
        {"behind", command_behind, 1},     /* JOB, submitted */
        {"set", command_set, 2},           /* NAME VALUE */
        {"submit", command_submit, 1},     /* together|singly: all jobs made since */
        {"template", command_template, 0}, /* begins a job that is only prepared */
        {"prepare", command_prepare, 1},   /* PREPARED: what was made; another of the number goes */
        {"fire", command_fire, 3},         /* PREPARED JOB CELL CHANGE… */
        {"tell", command_tell, 0},         /* the others the ids of those */
        {"wait", command_wait, 1},         /* JOB */
        {"poll", command_poll, 1},         /* JOB */
        {"cancel", command_cancel, 1},     /* JOB */
        {"finish", command_finish, 1},     /* CELL: all jobs have ended */
        {"ask", command_ask, 1},           /* CELL */
};

static void play_line(Play *play, char *line) {
        char *words[WORDS_MAX + 1] = {0}, *rest = NULL;
        size_t n = 0;

        for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
                CHECK(n < WORDS_MAX);
                words[n++] = word;
        }
        for (size_t i = 0; n > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
                if (strcmp(words[0], commands[i].name))
                        continue;
                CHECK(n > commands[i].n_words);
                commands[i].run(play, words + 1);
                return;
        }
        CHECK(!"a command that is known");
}

/* The kernel notes who connects at the moment of connect(): being it for that moment is enough. */
static void play_connect(Play *play, uid_t uid) {
        uid_t own = geteuid();

        CHECK(own == uid || (setgroups(0, NULL) == 0 && setegid(uid) == 0 && seteuid(uid) == 0));
        DO(gpuq_connect(NULL, &play->client));
        CHECK(own == uid || seteuid(own) == 0);
}

static void play_free(Play *play) {
        for (size_t i = 0; i < play->n_buffers; i++)
                gpuq_buffer_free(play->buffers[i]);
        for (size_t i = 0; i < sizeof(play->modules) / sizeof(play->modules[0]); i++)
                gpuq_module_free(play->modules[i]);
        for (size_t i = 0; i < PREPARED_MAX; i++)
                gpuq_prepared_free(play->prepared[i]);
        gpuq_client_free(play->client);
        free(play->buffers);
        free(play->jobs);
        free(play->job_cells);
}

int main(int argc, char **argv) {
        size_t n_line = 0;
        char *line = NULL;
        Play play = {0};
        struct stat st;

        CHECK(argc == 5);
        CHECK(fstat((int)number(argv[1]), &st) == 0);
        play.memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                           (int)number(argv[1]), 0);
        CHECK(play.memory != MAP_FAILED);
        play.n_buffers = number(argv[3]);
        play.n_jobs = number(argv[4]);
        play.buffers = calloc(play.n_buffers, sizeof(play.buffers[0]));
        play.jobs = calloc(play.n_jobs + 1, sizeof(play.jobs[0]));
        play.job_cells = calloc(play.n_jobs + 1, sizeof(play.job_cells[0]));
        CHECK(play.buffers && play.jobs && play.job_cells);
        play_connect(&play, (uid_t)number(argv[2]));

        while (getline(&line, &n_line, stdin) > 0)
                play_line(&play, line);
        free(line);
        play_free(&play);
        return 0;
}

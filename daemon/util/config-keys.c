/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Config keys
 *
 * Defaults are texts in the table and are parsed like a file's values. Only defaults that depend
 * on the machine are computed.
 */

#include "util/config-keys.h"

#include <ctype.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "util/macro.h"

#define CONFIG_POLL_US    5000u /* two slices of 2.4 ms, as the driver gives contexts that compete */
#define CONFIG_POLL_CORES 4     /* on machines with fewer cores no process polls */

/* ---- types ----------------------------------------------------------------- */

static bool parse_number(const char *value, uint64_t min, uint64_t max, uint64_t *ret) {
        unsigned long long n;
        char *end;

        if (!isdigit((unsigned char)*value))
                return false;
        errno = 0;
        n = strtoull(value, &end, 10);
        if (errno || *end || n < min || n > max)
                return false;
        *ret = n;
        return true;
}

static bool parse_unsigned(const ConfigKey *key, const char *value, void *place) {
        uint64_t n;

        if (!parse_number(value, key->min, key->max, &n))
                return false;
        *(unsigned *)place = (unsigned)n;
        return true;
}

static bool parse_u64(const ConfigKey *key, const char *value, void *place) {
        return parse_number(value, key->min, key->max, place);
}

static bool parse_size(const ConfigKey *key, const char *value, void *place) {
        static const char suffixes[] = "KMGT";
        size_t n_digits = strspn(value, "0123456789");
        char digits[24];
        const char *suffix;
        unsigned shift = 0;
        uint64_t n;

        if (strcmp(value, "unlimited") == 0) {
                *(uint64_t *)place = UINT64_MAX;
                return true;
        }
        if (n_digits >= sizeof(digits))
                return false;
        snprintf(digits, sizeof(digits), "%.*s", (int)n_digits, value);

        if (value[n_digits]) {
                suffix = strchr(suffixes, toupper((unsigned char)value[n_digits]));
                if (!suffix || value[n_digits + 1])
                        return false;
                shift = 10 * (unsigned)(suffix - suffixes + 1);
        }
        if (!parse_number(digits, 0, UINT64_MAX >> shift, &n))
                return false;
        *(uint64_t *)place = n << shift;
        return true;
}

static bool parse_weight(const ConfigKey *key, const char *value, void *place) {
        double weight;
        char *end;

        if (!isdigit((unsigned char)*value) || strspn(value, "0123456789.") != strlen(value))
                return false;
        weight = strtod(value, &end);
        if (*end || !(weight >= 0.001 && weight <= 1000))
                return false;
        *(double *)place = weight;
        return true;
}

/* One part of a list: N or N-M. */
static bool parse_device_range(const char *text, size_t n_text, uint64_t *devices) {
        uint64_t first, last;
        char range[16], *dash;

        if (n_text >= sizeof(range))
                return false;
        snprintf(range, sizeof(range), "%.*s", (int)n_text, text);
        dash = strchr(range, '-');
        if (dash)
                *dash = '\0';
        if (!parse_number(range, 0, CONFIG_DEVICES_MAX - 1, &first) ||
            !parse_number(dash ? dash + 1 : range, first, CONFIG_DEVICES_MAX - 1, &last))
                return false;
        for (uint64_t i = first; i <= last; ++i)
                *devices |= UINT64_C(1) << i;
        return true;
}

static bool parse_devices(const ConfigKey *key, const char *value, void *place) {
        uint64_t devices = 0;

        if (strcmp(value, "all") == 0) {
                *(uint64_t *)place = UINT64_MAX;
                return true;
        }
        for (size_t n;; value += n + 1) {
                n = strcspn(value, ",");
                if (!parse_device_range(value, n, &devices))
                        return false;
                if (!value[n])
                        break;
        }
        *(uint64_t *)place = devices;
        return true;
}

static bool parse_sms(const ConfigKey *key, const char *value, void *place) {
        return sms_parse(value, place);
}

static bool set_text(const char *value, void *place) {
        char *copy = NULL;

        if (*value) {
                copy = strdup(value);
                if (!copy)
                        return false;
        }
        free(*(char **)place);
        *(char **)place = copy;
        return true;
}

/* May be empty, which is NULL. */
static bool parse_words(const ConfigKey *key, const char *value, void *place) {
        return set_text(value, place);
}

static bool parse_name(const ConfigKey *key, const char *value, void *place) {
        return *value && !strpbrk(value, " \t/:,") && set_text(value, place);
}

static bool parse_optional_name(const ConfigKey *key, const char *value, void *place) {
        return !*value ? set_text(value, place) : parse_name(key, value, place);
}

static bool parse_path(const ConfigKey *key, const char *value, void *place) {
        return *value == '/' && strlen(value) <= key->max && set_text(value, place);
}

static bool parse_optional_path(const ConfigKey *key, const char *value, void *place) {
        return !*value ? set_text(value, place) : parse_path(key, value, place);
}

/* Folders, with colons between them. */
static bool parse_libraries(const ConfigKey *key, const char *value, void *place) {
        for (const char *colon = value; (colon = strchr(colon, ':')); ++colon)
                if (colon[1] != '/')
                        return false;
        return strcmp(value, "none") == 0 ? set_text(value, place)
                                          : parse_optional_path(key, value, place);
}

static const char *const device_names[] = {
        [CONFIG_DRIVER_AUTO] = "auto",
        [CONFIG_DRIVER_GPU] = "gpu",
        [CONFIG_DRIVER_CPU] = "cpu",
};

static bool parse_device(const ConfigKey *key, const char *value, void *place) {
        for (size_t i = 0; i < ARRAY_SIZE(device_names); i++)
                if (strcmp(value, device_names[i]) == 0) {
                        *(ConfigDriver *)place = (ConfigDriver)i;
                        return true;
                }
        return false;
}

static bool parse_isolation(const ConfigKey *key, const char *value, void *place) {
        bool shared = strcmp(value, "shared") == 0;

        if (!shared && strcmp(value, "user") != 0)
                return false;
        *(bool *)place = shared;
        return true;
}

static bool parse_flag(const ConfigKey *key, const char *value, void *place) {
        bool yes = strcmp(value, "yes") == 0;

        if (!yes && strcmp(value, "no") != 0)
                return false;
        *(bool *)place = yes;
        return true;
}

/* ---- and back to text ------------------------------------------------------ */

static char *format_text(const char *format, ...) _printf_(1, 2);

static char *format_text(const char *format, ...) {
        va_list args;
        char *text;

        va_start(args, format);
        if (vasprintf(&text, format, args) < 0)
                text = NULL;
        va_end(args);
        return text;
}

static char *format_unsigned(const void *place) {
        return format_text("%u", *(const unsigned *)place);
}

static char *format_u64(const void *place) {
        return format_text("%llu", (unsigned long long)*(const uint64_t *)place);
}

static char *format_size(const void *place) {
        static const char *const suffixes[] = {"", "K", "M", "G", "T"};
        uint64_t n = *(const uint64_t *)place;
        size_t i = 0;

        if (n == UINT64_MAX)
                return strdup("unlimited");
        for (; n && n % 1024 == 0 && i + 1 < ARRAY_SIZE(suffixes); i++)
                n /= 1024;
        return format_text("%llu%s", (unsigned long long)n, suffixes[i]);
}

static char *format_devices(const void *place) {
        uint64_t devices = *(const uint64_t *)place;
        char text[CONFIG_DEVICES_TEXT];

        return strdup(config_devices_text(devices, text));
}

static char *format_sms(const void *place) {
        char text[SMS_TEXT];

        return strdup(sms_text(*(const Sms *)place, text));
}

/* No exponent, and just digits enough for the very same double. */
static char *format_weight(const void *place) {
        double weight = *(const double *)place;
        char text[32];

        for (int n_digits = 0; n_digits <= 20; n_digits++) {
                snprintf(text, sizeof(text), "%.*f", n_digits, weight);
                if (strtod(text, NULL) == weight)
                        break;
        }
        return strdup(text);
}

static char *format_string(const void *place) {
        const char *text = *(char *const *)place;

        return strdup(text ? text : "");
}

static char *format_device(const void *place) {
        return strdup(device_names[*(const ConfigDriver *)place]);
}

static char *format_isolation(const void *place) {
        return strdup(*(const bool *)place ? "shared" : "user");
}

static char *format_flag(const void *place) {
        return strdup(*(const bool *)place ? "yes" : "no");
}

/* ---- the table ------------------------------------------------------------- */

#define AT(member)     .offset = offsetof(Config, member)
#define RANGE(a, b)    .min = (a), .max = (b), .allowed = #a " to " #b
#define IN_RANGE       .what = "a number in this range"
#define NUMBER(member) .name = #member, IN_RANGE, AT(member)
#define CPU(member)    .name = "cpu_" #member, IN_RANGE, AT(cpu.member)
#define LIMIT(member)  .name = #member, AT(limits.member), .user = true
#define FLAG           .what = "a yes or no", .parse = parse_flag, .format = format_flag, .allowed = "yes, no"
#define COUNT          IN_RANGE, .parse = parse_u64, .format = format_u64
#define SIZE                                                                                       \
        .what = "a size", .parse = parse_size, .format = format_size,                              \
        .allowed = "bytes, with K, M, G or T, or unlimited"

static const ConfigKey config_keys[] = {
        {.name = "socket",
         .what = "a socket's path",
         .parse = parse_path,
         .format = format_string,
         AT(socket),
         .max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1,
         .allowed = "an absolute path, 107 bytes at most",
         .fixed = true,
         .initial = "/run/gpuq/gpuqd.sock"},
        {.name = "allow_groups",
         .what = "a list of groups",
         .parse = parse_words,
         .format = format_string,
         AT(admission.allow_groups),
         .allowed = "names separated by blanks, or nothing",
         .initial = ""},
        {.name = "admin_group",
         .what = "a group",
         .parse = parse_optional_name,
         .format = format_string,
         AT(admission.admin_group),
         .allowed = "one name, or nothing",
         .initial = "gpuq-admin"},
        {.name = "supervisor_user",
         .what = "a user",
         .parse = parse_name,
         .format = format_string,
         AT(supervisor_user),
         .allowed = "one name",
         .fixed = true,
         .initial = "gpuq"},
        {.name = "worker_user",
         .what = "a user",
         .parse = parse_name,
         .format = format_string,
         AT(worker_user),
         .allowed = "one name",
         .initial = "gpuq-worker"},
        {.name = "cache_dir",
         .what = "a folder's path",
         .parse = parse_path,
         .format = format_string,
         AT(cache_dir),
         .max = 3000,
         .allowed = "an absolute path",
         .initial = "/var/cache/gpuq"},
        {.name = "cache_bytes", SIZE, AT(cache_bytes), .initial = "unlimited"},
        {.name = "state_dir",
         .what = "a folder's path",
         .parse = parse_optional_path,
         .format = format_string,
         AT(state_dir),
         .max = 3000,
         .allowed = "an absolute path, or nothing",
         .fixed = true,
         .initial = "/var/lib/gpuqd"},
        {.name = "slurm_dir",
         .what = "a folder's path",
         .parse = parse_optional_path,
         .format = format_string,
         AT(slurm_dir),
         .max = 3000,
         .allowed = "an absolute path, or nothing",
         .fixed = true,
         .initial = "/run/gpuq-slurm"},
        {.name = "kernel_log",
         .what = "a file's path",
         .parse = parse_optional_path,
         .format = format_string,
         AT(kernel_log),
         .max = 4096,
         .allowed = "an absolute path, or nothing",
         .fixed = true,
         .initial = "/dev/kmsg"},
        {.name = "libraries",
         .what = "a list of folders",
         .parse = parse_libraries,
         .format = format_string,
         AT(libraries),
         .max = 3000,
         .allowed = "absolute paths separated by colons, none, or nothing",
         .initial = ""},
        {.name = "device",
         .what = "a driver",
         .parse = parse_device,
         .format = format_device,
         AT(device),
         .allowed = "auto, gpu, cpu",
         .fixed = true,
         .initial = "auto"},
        {CPU(devices), .fixed = true, .parse = parse_unsigned, .format = format_unsigned,
         RANGE(1, 64), .initial = "1"},
        {.name = "cpu_broken",
         .what = "a file's path",
         .parse = parse_optional_path,
         .format = format_string,
         AT(cpu.broken),
         .max = 4096,
         .allowed = "an absolute path, or nothing",
         .initial = ""},
        {CPU(threads), .parse = parse_unsigned, .format = format_unsigned, RANGE(0, 1024),
         .initial = "0"},
        {.name = "isolation",
         .what = "a kind of isolation",
         .parse = parse_isolation,
         .format = format_isolation,
         AT(isolation.shared),
         .allowed = "user, shared",
         .fixed = true,
         .initial = "user"},
        {.name = "fence", AT(isolation.fence), FLAG, .fixed = true, .initial = "no"},
        {NUMBER(worker_idle_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(0, 31536000), .initial = "60"},
        {NUMBER(spare_workers), .parse = parse_unsigned, .format = format_unsigned, RANGE(0, 16),
         .initial = "1"},
        {NUMBER(takeover_s), .parse = parse_unsigned, .format = format_unsigned, RANGE(1, 3600),
         .initial = "10"},
        {NUMBER(hello_timeout_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(1, 3600), .initial = "10"},
        {NUMBER(connections), .parse = parse_unsigned, .format = format_unsigned, RANGE(1, 32),
         .initial = "32"},
        {NUMBER(inflight_jobs), .parse = parse_unsigned, .format = format_unsigned, RANGE(1, 65536),
         .initial = "256"},
        {NUMBER(inflight_ms), .parse = parse_unsigned, .format = format_unsigned, RANGE(1, 60000),
         .initial = "4"},
        {NUMBER(poll_us), .parse = parse_unsigned, .format = format_unsigned, RANGE(0, 100000)},
        {.name = "rings", AT(rings.messages), FLAG, .initial = "yes"},
        {.name = "direct", AT(rings.direct), FLAG, .initial = "yes"},
        {NUMBER(quantum_ms), .parse = parse_unsigned, .format = format_unsigned, RANGE(0, 60000),
         .initial = "2"},
        {NUMBER(usage_half_life_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(0, 31536000), .initial = "3600"},
        {NUMBER(gpu_window_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(1, 31536000), .initial = "86400"},
        {.name = "express", AT(express), FLAG, .initial = "yes"},
        {.name = "coalesce", AT(coalesce), FLAG, .initial = "yes"},
        {NUMBER(coalesce_us), .parse = parse_unsigned, .format = format_unsigned, RANGE(0, 1000000),
         .initial = "0"},
        {.name = "in_place", AT(in_place), FLAG, .initial = "yes"},
        {NUMBER(job_timeout_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(0, 4000000), .initial = "0"},
        {NUMBER(compile_timeout_s), .parse = parse_unsigned, .format = format_unsigned,
         RANGE(1, 86400), .initial = "120"},
        {.name = "detached_keep_s",
         .what = "a number in this range",
         AT(keep.detached_s),
         .parse = parse_unsigned,
         .format = format_unsigned,
         RANGE(1, 315360000),
         .initial = "604800"},
        {.name = "history_keep_days",
         .what = "a number in this range",
         AT(keep.history_days),
         .parse = parse_unsigned,
         .format = format_unsigned,
         RANGE(0, 36500),
         .initial = "90"},
        {.name = "arenas_bytes", SIZE, AT(arenas_bytes)},
        {LIMIT(weight), .what = "a weight", .parse = parse_weight, .format = format_weight,
         .allowed = "0.001 to 1000", .initial = "1"},
        {LIMIT(sessions), COUNT, RANGE(1, 1000000), .initial = "1024"},
        {LIMIT(jobs), COUNT, RANGE(1, 1000000000), .initial = "100000"},
        {LIMIT(queued_bytes), SIZE, .initial = "256M"},
        {LIMIT(arena_bytes), SIZE},
        {LIMIT(device_bytes), SIZE, .initial = "unlimited"},
        {LIMIT(modules), COUNT, RANGE(1, 1000000), .initial = "4096"},
        {LIMIT(detached_jobs), COUNT, RANGE(0, 1000000), .initial = "1000"},
        {LIMIT(detached_bytes), SIZE, .initial = "16G"},
        {LIMIT(gpu_seconds), COUNT, RANGE(0, 1000000000), .initial = "0"},
        {LIMIT(devices), .what = "a list of devices", .parse = parse_devices,
         .format = format_devices, .allowed = "all, or numbers from 0 to 63 such as 0,2-3",
         .initial = "all"},
        {LIMIT(sms), .what = "a share of the SMs", .parse = parse_sms, .format = format_sms,
         .allowed = "all, 1% to 100%, or a number of SMs", .initial = "all"},
};

static const ConfigKey config_group = {
        .name = "group",
        .what = "a group",
        .parse = parse_name,
        .format = format_string,
        .allowed = "one name",
        .user = true,
};

/* ---- access ---------------------------------------------------------------- */

const ConfigKey *config_key_at(size_t i) {
        return i < ARRAY_SIZE(config_keys) ? &config_keys[i] : NULL;
}

const ConfigKey *config_key_group(void) {
        return &config_group;
}

const ConfigKey *config_key_find(const char *name, bool user) {
        for (size_t i = 0; i < ARRAY_SIZE(config_keys); i++)
                if (strcmp(config_keys[i].name, name) == 0)
                        return user && !config_keys[i].user ? NULL : &config_keys[i];
        return NULL;
}

char *config_key_names(bool user) {
        char *text = NULL;
        size_t n_text = 0;
        FILE *stream;

        stream = open_memstream(&text, &n_text);
        if (!stream)
                return NULL;
        for (size_t i = 0, n = 0; i < ARRAY_SIZE(config_keys); i++)
                if (!user || config_keys[i].user)
                        fprintf(stream, "%s%s", n++ ? ", " : "", config_keys[i].name);
        if (fclose(stream) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

bool config_key_parse(const ConfigKey *key, const char *value, void *place) {
        return key->parse(key, value, place);
}

char *config_key_format(const ConfigKey *key, const void *place) {
        return key->format(place);
}

void *config_key_user_place(const ConfigKey *key, ConfigUser *user) {
        return (char *)&user->limits + (key->offset - offsetof(Config, limits));
}

static uint64_t config_machine_memory(void) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

        return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 1u << 30;
}

/* Supervisor, worker and client may poll at the same time, and one core must be left for others. */
static unsigned config_default_poll_us(void) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return 0;
        return CPU_COUNT(&set) >= CONFIG_POLL_CORES ? CONFIG_POLL_US : 0;
}

int config_key_set_defaults(Config *config) {
        /* Arenas are pinned, and the rest of the machine must live. */
        config->limits.arena_bytes = config_machine_memory() / 2;
        config->arenas_bytes = config_machine_memory() / 8 * 7;
        config->poll_us = config_default_poll_us();
        for (size_t i = 0; i < ARRAY_SIZE(config_keys); i++) {
                const ConfigKey *key = &config_keys[i];

                /* The defaults are valid, so only the lack of memory can make this fail. */
                if (key->initial &&
                    !config_key_parse(key, key->initial, (char *)config + key->offset))
                        return -ENOMEM;
        }
        return 0;
}

char *config_trim(char *text) {
        size_t n;

        text += strspn(text, " \t");
        n = strlen(text);
        while (n && isblank((unsigned char)text[n - 1]))
                text[--n] = '\0';
        return text;
}

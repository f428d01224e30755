/* SPDX-License-Identifier: Apache-2.0 */
#include "who.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

#define WHO_KNOWN 64u

/* What was asked for, by the low bits of its number. */
typedef struct WhoKnown {
        uint32_t number;
        Who who; /* "": nothing is known here */
} WhoKnown;

static Who who_make(uint32_t number, const char *name) {
        Who who;

        if (name)
                snprintf(who.name, sizeof(who.name), "%s", name);
        else
                snprintf(who.name, sizeof(who.name), "%u", number);
        return who;
}

static WhoKnown *who_known(WhoKnown *known, uint32_t number) {
        WhoKnown *one = &known[number % WHO_KNOWN];

        if (*one->who.name && one->number == number)
                return one;
        one->who.name[0] = '\0';
        one->number = number;
        return one;
}

Who who_user(uint32_t uid) {
        static WhoKnown all[WHO_KNOWN];
        WhoKnown *known = who_known(all, uid);

        if (!*known->who.name) {
                const struct passwd *entry = getpwuid(uid);

                known->who = who_make(uid, entry ? entry->pw_name : NULL);
        }
        return known->who;
}

Who who_group(uint32_t gid) {
        static WhoKnown all[WHO_KNOWN];
        WhoKnown *known = who_known(all, gid);

        if (!*known->who.name) {
                const struct group *entry = getgrgid(gid);

                known->who = who_make(gid, entry ? entry->gr_name : NULL);
        }
        return known->who;
}

/* Look up a name first: a user may be called 1000. */
int who_find_user(const char *text, int64_t *ret_uid) {
        const struct passwd *entry = getpwnam(text);
        uint64_t uid;

        if (entry) {
                *ret_uid = entry->pw_uid;
                return 0;
        }
        if (number_unsigned(text, UINT32_MAX - 1, &uid) < 0)
                return -ENOENT;

        *ret_uid = (int64_t)uid;
        return 0;
}

int who_read_user(Cli *cli, int64_t *ret_uid) {
        if (who_find_user(optarg, ret_uid) < 0)
                return cli_usage(cli, "--user `%s': this machine has no such user", optarg);
        return 0;
}

int who_read_users(Cli *cli, WhoUsers *users) {
        const char *name;
        int64_t uid;

        while ((name = strsep(&optarg, ","))) {
                if (who_find_user(name, &uid) < 0)
                        return cli_usage(cli, "--user `%s': this machine has no such user", name);
                if (users->n == WHO_USERS_MAX)
                        return cli_usage(cli, "--user: more than %u users", WHO_USERS_MAX);
                users->uids[users->n++] = (uint32_t)uid;
        }
        return 0;
}

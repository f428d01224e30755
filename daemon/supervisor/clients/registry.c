/* SPDX-License-Identifier: Apache-2.0 */
#include "registry.h"

#include "session.h"

Session *registry_find(const Clients *clients, uint32_t id) {
        Session *session;

        HASH_FIND(hh, clients->sessions, &id, sizeof(id), session);
        return session;
}

/* Numbers come back after 2^32 sessions. */
uint32_t registry_next_id(Clients *clients) {
        uint32_t id;

        do {
                id = ++clients->last_session;
                ledger_note_id(clients->engine->ledger, LEDGER_SESSION, id);
        } while (id == 0 || registry_find(clients, id));
        return id;
}

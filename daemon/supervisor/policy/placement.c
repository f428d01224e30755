/* SPDX-License-Identifier: Apache-2.0 */
#include "placement.h"

#include "util/macro.h"

uint64_t placement_left_ns(uint64_t expected_ns, uint64_t elapsed_ns, bool is_known) {
        if (!is_known)
                return MAX(expected_ns, elapsed_ns);
        return expected_ns > elapsed_ns ? expected_ns - elapsed_ns : elapsed_ns - expected_ns;
}

uint64_t placement_peer_ns(uint64_t n_bytes) {
        return n_bytes / PLACEMENT_PEER_RATE;
}

uint64_t placement_home_ns(const PlacementSite *home) {
        uint64_t mine_ns = home->own_ns + home->start_ns + home->run_ns;

        return mine_ns + MIN(home->others_ns, home->n_others * (mine_ns + home->quantum_ns));
}

uint64_t placement_away_ns(const PlacementSite *away) {
        return away->own_ns + away->others_ns + away->start_ns + away->run_ns;
}

bool placement_pays(uint64_t home_ns, uint64_t away_ns) {
        return away_ns <= home_ns / 2 && away_ns + PLACEMENT_GAIN_NS <= home_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cpu/range.h"

#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <shared_mutex>

namespace {

/* By start; ranges in one map do not overlap. */
typedef std::map<uintptr_t, Range> Map;

/* Reservations contain mapped ranges, so they are kept apart. */
struct Maps {
        std::shared_mutex lock;
        Map memory, reserved;

        Map &of(int kinds) {
                return kinds & RANGE_RESERVED ? reserved : memory;
        }
};

/* Never destroyed: threads of the driver outlive main(). */
alignas(Maps) char maps_memory[sizeof(Maps)];
Maps &maps = *new (maps_memory) Maps;

Map::iterator range_at(Map &map, uintptr_t address) {
        Map::iterator i = map.upper_bound(address);

        if (i == map.begin())
                return map.end();
        --i;
        return address - i->first < i->second.size ? i : map.end();
}

} // namespace

int range_add(const Range *range) {
        std::unique_lock<std::shared_mutex> guard(maps.lock);
        Map &map = maps.of(range->kind);
        Map::iterator next = map.lower_bound(range->start);

        if (next != map.end() && next->first - range->start < range->size)
                return RANGE_E_OVERLAP;
        if (range_at(map, range->start) != map.end())
                return RANGE_E_OVERLAP;

        try {
                map.emplace(range->start, *range);
        } catch (const std::bad_alloc &) {
                return -ENOMEM;
        }
        return 0;
}

bool range_remove(uintptr_t start, int kinds, Range *ret_range) {
        std::unique_lock<std::shared_mutex> guard(maps.lock);
        Map &map = maps.of(kinds);
        Map::iterator i = map.find(start);

        if (i == map.end() || !(i->second.kind & kinds))
                return false;

        *ret_range = i->second;
        map.erase(i);
        return true;
}

bool range_find(uintptr_t address, int kinds, Range *ret_range) {
        std::shared_lock<std::shared_mutex> guard(maps.lock);
        Map &map = maps.of(kinds);
        Map::iterator i = range_at(map, address);

        if (i == map.end() || !(i->second.kind & kinds))
                return false;

        *ret_range = i->second;
        return true;
}

bool range_covers(uintptr_t start, size_t size, int kinds) {
        std::shared_lock<std::shared_mutex> guard(maps.lock);
        Map &map = maps.of(kinds);

        for (;;) {
                Map::iterator i = range_at(map, start);

                if (i == map.end() || !(i->second.kind & kinds))
                        return false;

                size_t left = i->second.size - (start - i->first);

                if (size <= left)
                        return true;
                start += left;
                size -= left;
        }
}

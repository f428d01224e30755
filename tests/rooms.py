#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rooms of the code: prints their sizes and which room includes which.

    python3 tests/rooms.py [--check] [--circles] [--structs] [ROOT]

--check prints one line per violation instead and exits with 1 if there is any. --circles and --structs print every
include circle, and every structure with more than half of the permitted members. The rules:

- A room includes only the rooms that the table below permits.
- Across rooms of the supervisor only the umbrella header ROOM/ROOM.h is included.
- The modules of one room (x.h with x.c or x.cpp) do not include each other in a circle.
- No structure has more than MEMBERS_MAX members, those of its inline unnamed structures and unions included.
- No include starts with "../", and every quoted include is found.
- Every folder with code, but for the tests, is in the table.
- An include guard is unique in the tree. In a room it is GPUQ_FOLDER_NAME_H with the room's last folder (GPUQ_SUPERVISOR_NAME_H
  or GPUQ_SUPERVISOR_ROOM_NAME_H in the supervisor, GPUQ_SUPERVISOR_NAME_ROOM_H for an umbrella header).

A private header without a source file of its own (runner_state.h) may include the public header of its object (runner.h);
that is not counted towards circles.
"""

import argparse
import os
import re
import sys

MEMBERS_MAX = 35
SUPERVISOR = 'daemon/supervisor/'
CLIENT_LIBRARY = 'client/lib/'

# Room: the rooms it may include. A room is a folder without its subfolders.
MAY_INCLUDE = {
    'proto': [],
    'daemon/util': ['proto'],
    'daemon/keeper': ['daemon/util', 'proto:pass.h'],
    'daemon/driver': ['daemon/util'],
    'daemon/driver/cpu': ['daemon/driver', 'daemon/util', 'daemon/compiler:batch.h'],
    'daemon/compiler/ptx': ['daemon/util'],
    'daemon/compiler': ['daemon/compiler/ptx', 'daemon/driver', 'daemon/util', 'daemon/driver/cpu:image.h'],
    'daemon/worker': ['daemon/driver', 'daemon/util', 'proto',
                      'daemon/compiler:batch.h', 'daemon/compiler:check.h', 'daemon/compiler:compiled.h', 'daemon/compiler:fence.h',
                      'daemon/compiler:compiler.h'],
    'client/lib/base': ['client/include', 'daemon/util'],
    'client/lib/link': ['client/lib/base', 'client/include', 'daemon/util', 'proto'],
    'client/lib/memory': ['client/lib/link', 'client/lib/base', 'client/include', 'daemon/util', 'proto'],
    'client/lib/jobs': ['client/lib/memory', 'client/lib/link', 'client/lib/base', 'client/include', 'daemon/util', 'proto'],
    'client/lib/session': ['client/lib/jobs', 'client/lib/memory', 'client/lib/link', 'client/lib/base', 'client/include',
                           'daemon/util', 'proto'],
    'client/cli': ['client/include', 'daemon/util', 'proto'],
    'client': ['client/include', 'daemon/util'],
    'client/include': [],

    'daemon/supervisor/policy': ['daemon/util'],
    'daemon/supervisor/base': ['policy'],
    'daemon/supervisor/jobs': ['base', 'policy'],
    'daemon/supervisor/clients': ['jobs', 'base', 'policy'],
    'daemon/supervisor/workers': ['jobs', 'base', 'policy'],
    'daemon/supervisor/devices': ['jobs', 'base', 'policy'],
    'daemon/supervisor/detached': ['clients', 'jobs', 'base', 'policy'],
    'daemon/supervisor/accounting': ['clients', 'jobs', 'base', 'policy'],
    'daemon/supervisor/restart': ['clients', 'jobs', 'base', 'policy'],
    'daemon/supervisor/loop': ['restart', 'detached', 'accounting', 'devices', 'workers', 'clients', 'jobs', 'base', 'policy'],
}
# What every room of the supervisor but policy may include, besides rooms of the supervisor.
SUPERVISOR_MAY_INCLUDE = ['daemon/util', 'proto', 'daemon/keeper:protocol.h', 'daemon/worker:protocol.h']

# What kernels include, and stand-ins for CUDA's own headers.
FOREIGN = ('daemon/compiler/include/', 'daemon/compiler/gpuq_device.h',
           'daemon/driver/cpu/ptx/', 'daemon/driver/gpuq_ptx.h')
# Layouts that CUDA dictates, and its table of functions.
FOREIGN_STRUCTS = {'daemon/driver/cuda_types.h', 'daemon/driver/driver.h'}
SOURCE = ('.c', '.h', '.cpp')


def read_tree(root):
    """Every source and header of ours under root: {path: text}."""
    files = {}
    for top in ('proto', 'daemon', 'client', 'tests'):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [name for name in folders if not name.startswith(('.', 'build'))]
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), root)
                if path.endswith(SOURCE) and not path.startswith(FOREIGN):
                    with open(os.path.join(folder, name), encoding='utf-8') as file:
                        files[path] = file.read()
    return files


def room_of(path):
    folder = os.path.dirname(path)
    return folder if folder in MAY_INCLUDE else None


def short(room):
    return room.removeprefix(SUPERVISOR)


def permitted(room):
    """The rooms that a room may include: {room: the headers, or None for all}."""
    rooms = {}
    names = list(MAY_INCLUDE[room])
    if room.startswith(SUPERVISOR) and room != SUPERVISOR + 'policy':
        names += SUPERVISOR_MAY_INCLUDE
    for name in names:
        name, _, header = name.partition(':')
        name = name if name in MAY_INCLUDE else SUPERVISOR + name
        rooms[name] = rooms.get(name, set()) | {header} if header else None
    return rooms


def find_header(path, name, files):
    """The file that path means by an include of name. The rooms of the supervisor see each other's folders, and so do libgpuq's."""
    folders = [os.path.dirname(path), 'daemon', '', 'client/include']
    for house in (SUPERVISOR, CLIENT_LIBRARY):
        if path.startswith(house):
            folders += [room for room in MAY_INCLUDE if room.startswith(house)]
    for folder in folders:
        found = os.path.normpath(os.path.join(folder, name))
        if found in files:
            return found
    return name if re.fullmatch(r'proto/\w+\.pb-c\.h|(builtin|sandbox-filters)\.inc', name) else None # generated


def includes_of(text):
    """The quoted includes of a file: (line number, name)."""
    return [(number, match[1]) for number, line in enumerate(text.split('\n'), 1)
            if (match := re.match(r'\s*#\s*include\s+"([^"]+)"', line))]


def module_of(path):
    return os.path.splitext(path)[0]


def circles_of(graph):
    """The circles of a graph {node: nodes}, as sorted lists (Tarjan's strongly connected components)."""
    order, low, stack, circles = {}, {}, [], []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            circle = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return circles


def without_comments(text):
    """The text with comments, strings and preprocessor lines blanked, on the same lines."""
    def blank(match):
        return '\n' * match[0].count('\n') or ' '

    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)


def closing(text, start):
    """The place of the brace that closes the one at start."""
    depth = 0
    for place in range(start, len(text)):
        depth += {'{': 1, '}': -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


# Declarations of a class that are no members: types, and functions, but for pointers to functions.
NO_MEMBER = re.compile(r'\s*(?:$|(?:enum|struct|union|class)\b[^{]*\{\}\s*$|static\b|using\b|friend\b)'
                       r'|(?![^=]*\(\s*\*)[^=]*\([^=]*\)\s*(?:const\b\s*)?(?:noexcept\b\s*)?$')


def declared_in(statement):
    """How many members one declaration declares; what stands in braces is cut out of it."""
    flat = re.sub(r'__attribute__\s*\(\(.*?\)\)|\b_Alignas\([^)]*\)', '', statement, flags=re.S)
    flat = re.sub(r'^(?:\s*(?:public|private|protected)\s*:)+|\[\[.*?\]\]', '', flat)
    if NO_MEMBER.match(flat):
        return 0
    while (smaller := re.sub(r'\([^()]*\)|\[[^\[\]]*\]|<[^<>]*>', '', flat)) != flat:
        flat = smaller
    return 1 + flat.count(',')


def members_of(body):
    """How many members a structure's body declares."""
    count, statement, place, inline = 0, '', 0, 0
    while place < len(body):
        if body[place] == '{':
            end = closing(body, place)
            if re.match(r'\s*(?:const\s+)?(?:struct|union)\s*$', statement): # unnamed
                inline = members_of(body[place + 1:end])
            statement += '{}'
            place = end
            if re.search(r'\)\s*(?:const\s*)?\{\}$', statement): # a function's body
                statement = ''
        elif body[place] == ';':
            count += inline or declared_in(statement)
            statement, inline = '', 0
        else:
            statement += body[place]
        place += 1
    return count


def structs_of(text):
    """The structures that a file defines: (line number, name, members)."""
    text = without_comments(text)
    structs = []
    for match in re.finditer(r'^(?:typedef\s+|static\s+|const\s+)*(?:struct|class)\s*(\w*)[^;{}()=]*\{', text, re.M):
        end = closing(text, match.end() - 1)
        after = re.match(r'\s*(\w*)', text[end + 1:])
        structs.append((text.count('\n', 0, match.start()) + 1, match[1] or after[1],
                        members_of(text[match.end():end])))
    return structs


class Tree:
    """What is known of a source tree: sizes, includes between rooms, circles, structures, violations."""

    def __init__(self, root):
        self.files = read_tree(root)
        self.rooms = [room for room in MAY_INCLUDE if any(room_of(path) == room for path in self.files)]
        self.arrows = {room: {} for room in self.rooms}
        self.graph = {room: {} for room in self.rooms}
        self.violations = []
        self.read_includes()
        self.circles = {room: circles_of(self.graph[room]) for room in self.rooms}
        for circles in self.circles.values():
            for circle in circles:
                self.complain(circle[0], None, f'{len(circle)} modules include each other in a circle: '
                              + ', '.join(os.path.basename(module) for module in circle))
        self.structs = []
        self.read_structs()
        self.read_guards()

    def complain(self, path, line, what):
        self.violations.append(f'{path}:{line}: {what}' if line else f'{path}: {what}')

    def read_includes(self):
        for path, text in sorted(self.files.items()):
            room = room_of(path)
            if room:
                self.graph[room].setdefault(module_of(path), set())
            elif not path.startswith('tests/'):
                self.complain(path, None, f'{os.path.dirname(path)} is not in the table of rooms')
            for line, name in includes_of(text):
                if name.startswith('../') or '/../' in name:
                    self.complain(path, line, f'"{name}" leaves its folder by ".."')
                elif room:
                    self.read_include(path, room, line, name)

    def read_include(self, path, room, line, name):
        header = find_header(path, name, self.files)
        if not header:
            self.complain(path, line, f'"{name}" is not found')
            return
        target = room_of(header)
        if target == room:
            if module_of(header) != module_of(path) and not self.extends(path, header):
                self.graph[room][module_of(path)].add(module_of(header))
        elif target:
            self.arrows[room].setdefault(target, []).append((path, line, name))
            may = permitted(room)
            header = os.path.basename(header)
            if target not in may:
                self.complain(path, line, f'{short(room)} may not include {short(target)} ("{name}")')
            elif may[target] and header not in may[target]:
                self.complain(path, line, f'of {short(target)}, {short(room)} may include only '
                              + ', '.join(sorted(may[target])) + f' ("{name}")')
            elif target.startswith(SUPERVISOR) and header != short(target) + '.h':
                self.complain(path, line, f'"{name}" is internal to {short(target)}: include "{short(target)}.h"')

    def extends(self, path, header):
        """Whether a header is a private part of the object whose public header it includes."""
        module = module_of(path)
        return (path.endswith('.h') and not any(module + end in self.files for end in ('.c', '.cpp'))
                and re.match(re.escape(module_of(header)) + '[_-]', module))

    def read_structs(self):
        for path, text in sorted(self.files.items()):
            if not room_of(path) or path in FOREIGN_STRUCTS or room_of(path) == 'client/include':
                continue
            for line, name, members in structs_of(text):
                self.structs.append((members, name, path))
                if members > MEMBERS_MAX:
                    self.complain(path, line, f'struct {name} has {members} members, more than {MEMBERS_MAX}')

    def read_guards(self):
        seen = {}
        for path, text in sorted(self.files.items()):
            if not path.endswith('.h'):
                continue
            match = re.search(r'^#ifndef (\w+)\n#define \1\n', text, re.M)
            if not match:
                self.complain(path, None, 'has no include guard')
                continue
            if match[1] in seen:
                self.complain(path, None, f'has the include guard of {seen[match[1]]}, {match[1]}')
            seen[match[1]] = path
            if room_of(path) and match[1] not in self.guards_of(path):
                self.complain(path, None, f'its include guard is {match[1]}, not {self.guards_of(path)[0]}')

    @staticmethod
    def guards_of(path):
        """The include guards that a room's header may have."""
        folder, name = os.path.split(re.sub(r'[-.]', '_', path).upper())
        last = os.path.basename(folder)
        if not path.startswith(SUPERVISOR):
            return [f'GPUQ_{last}_{name}', 'GPUQ_H']
        umbrella = [f'GPUQ_SUPERVISOR_{last}_ROOM_H'] if name == last + '_H' else []
        return umbrella + [f'GPUQ_SUPERVISOR_{name}', f'GPUQ_SUPERVISOR_{last}_{name}']

    def print_table(self):
        print(f'{"room":<13} {"lines":>6} {"files":>5} {"in a circle":>11}  {"largest structure":<26} includes')
        for part, rooms in (('the supervisor, from the top', [r for r in reversed(self.rooms) if r.startswith(SUPERVISOR)]),
                            ('the rest', [r for r in self.rooms if not r.startswith(SUPERVISOR)])):
            print(f'-- {part}')
            for room in rooms:
                self.print_room(room)
        if self.violations:
            print(f'\n{len(self.violations)} violations; --check lists them')

    def print_room(self, room):
        paths = [path for path in self.files if room_of(path) == room]
        lines = sum(self.files[path].count('\n') for path in paths)
        circle = sum(len(circle) for circle in self.circles[room])
        largest = max((s for s in self.structs if os.path.dirname(s[2]) == room), default=(0, '', ''))
        may = permitted(room)
        arrows = ', '.join(f'{short(target).removeprefix("daemon/")} {len(uses)}' + ('' if target in may else ' (forbidden)')
                           for target, uses in sorted(self.arrows[room].items(), key=lambda item: -len(item[1])))
        print(f'{short(room).removeprefix("daemon/"):<13} {lines:>6} {len(paths):>5} {circle:>11}  '
              f'{largest[1] + " " + str(largest[0]) if largest[1] else "":<26} {arrows}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--check', action='store_true', help='print violations only, and fail if there is any')
    parser.add_argument('--circles', action='store_true', help='print the include circles, one to a line')
    parser.add_argument('--structs', action='store_true', help='print the large structures')
    parser.add_argument('root', nargs='?', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    options = parser.parse_args()

    tree = Tree(options.root)
    if options.check:
        for violation in tree.violations:
            print(violation)
        return 1 if tree.violations else 0
    if options.circles:
        for room, circles in tree.circles.items():
            for circle in circles:
                print(f'{short(room)}: {len(circle)}:', *(os.path.basename(module) for module in circle))
    if options.structs:
        for members, name, path in sorted(tree.structs, reverse=True):
            if members > MEMBERS_MAX // 2:
                print(f'{members:>4} {name} ({path})')
    if not options.circles and not options.structs:
        tree.print_table()
    return 0


if __name__ == '__main__':
    sys.exit(main())

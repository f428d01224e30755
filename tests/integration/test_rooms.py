# SPDX-License-Identifier: Apache-2.0
"""tests/rooms.py: it finds each kind of violation in a small tree, and none in a clean one."""

import pathlib
import subprocess
import sys

ROOMS = pathlib.Path(__file__).parent.parent / "rooms.py"

CLEAN = {
    "daemon/util/macro.h": "#ifndef GPUQ_UTIL_MACRO_H\n#define GPUQ_UTIL_MACRO_H\n#endif\n",
    "daemon/supervisor/jobs/jobs.h":
        "#ifndef GPUQ_SUPERVISOR_JOBS_ROOM_H\n#define GPUQ_SUPERVISOR_JOBS_ROOM_H\n#include \"job.h\"\n#endif\n",
    "daemon/supervisor/jobs/job.h":
        "#ifndef GPUQ_SUPERVISOR_JOB_H\n#define GPUQ_SUPERVISOR_JOB_H\nstruct Job {\n        int a, b;\n};\n#endif\n",
    "daemon/supervisor/jobs/job.c": "#include \"job.h\"\n#include \"util/macro.h\"\n",
    "daemon/supervisor/jobs/slot.h":
        "#ifndef GPUQ_SUPERVISOR_SLOT_H\n#define GPUQ_SUPERVISOR_SLOT_H\n#include \"job.h\"\n#endif\n",
    "daemon/supervisor/clients/session.c": "#include \"jobs.h\"\n#include \"proto/gpuq.pb-c.h\"\n",
}


def rooms(folder, changes, *options):
    """What rooms.py says of the clean tree with these files changed."""
    for path, text in {**CLEAN, **changes}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = subprocess.run([sys.executable, ROOMS, *options, folder], stdout=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()


def violation(folder, changes):
    """The only violation of a tree."""
    status, lines = rooms(folder, changes, "--check")
    assert status == 1 and len(lines) == 1, lines
    return lines[0]


def test_clean_tree_has_no_violation(tmp_path):
    assert rooms(tmp_path, {}, "--check") == (0, [])


def test_table_shows_rooms_and_their_includes(tmp_path):
    status, lines = rooms(tmp_path, {})
    clients = next(line for line in lines if line.startswith("clients"))
    assert status == 0 and "jobs 1" in clients and "proto 1" in clients


def test_include_against_the_direction(tmp_path):
    path = "daemon/supervisor/jobs/job.c"
    found = violation(tmp_path, {path: "#include \"job.h\"\n#include \"clients.h\"\n", "daemon/supervisor/clients/clients.h":
                                 "#ifndef GPUQ_SUPERVISOR_CLIENTS_ROOM_H\n#define GPUQ_SUPERVISOR_CLIENTS_ROOM_H\n#endif\n"})
    assert found.startswith(path + ":2: jobs may not include clients")


def test_client_never_includes_the_daemons_rooms(tmp_path):
    assert "client/lib/jobs may not include jobs" in violation(
        tmp_path, {"client/lib/jobs/job.c": "#include \"daemon/supervisor/jobs/jobs.h\"\n"})


def test_internal_header_of_another_room(tmp_path):
    assert "is internal to jobs" in violation(
        tmp_path, {"daemon/supervisor/clients/session.c": "#include \"job.h\"\n"})


def test_only_named_headers_of_some_rooms(tmp_path):
    assert "may include only protocol.h" in violation(tmp_path, {
        "daemon/keeper/link.h": "#ifndef GPUQ_KEEPER_LINK_H\n#define GPUQ_KEEPER_LINK_H\n#endif\n",
        "daemon/supervisor/base/base.c": "#include \"keeper/link.h\"\n"})


def test_circle_of_modules(tmp_path):
    found = violation(tmp_path, {"daemon/supervisor/jobs/job.c": "#include \"job.h\"\n#include \"slot.h\"\n"})
    assert "2 modules include each other in a circle: job, slot" in found


def test_private_header_with_its_public_one_is_no_circle(tmp_path):
    assert rooms(tmp_path, {
        "daemon/supervisor/jobs/job.c": "#include \"job.h\"\n#include \"job_state.h\"\n",
        "daemon/supervisor/jobs/job_state.h":
            "#ifndef GPUQ_SUPERVISOR_JOB_STATE_H\n#define GPUQ_SUPERVISOR_JOB_STATE_H\n#include \"job.h\"\n#endif\n",
    }, "--check") == (0, [])


def test_structure_with_too_many_members(tmp_path):
    fields = "int a[2], *b; /* int c; */ void (*call)(int d, int e); struct { bool f : 1, g : 1; }; struct { int h; } i;"
    text = "struct Large {\n        %s\n        int %s;\n};\n"
    path = "daemon/supervisor/clients/session.c"
    allowed = ", ".join("x%d" % i for i in range(29))
    assert rooms(tmp_path, {path: text % (fields, allowed)}, "--check") == (0, [])
    assert violation(tmp_path, {path: text % (fields, allowed + ", y")}) == \
        path + ":1: struct Large has 36 members, more than 35"


def test_functions_and_types_of_a_class_are_no_members(tmp_path):
    methods = "".join("        uint32_t f%d(int a, void *b) const;\n" % i for i in range(40))
    text = ("struct Base {};\nclass Large : public Base {\n      public:\n" + methods +
            "        enum State : uint8_t { A, B };\n        struct Inner {\n                int a;\n        };\n"
            "        static void run();\n        Large() : a(0) { a = 1; }\n        std::vector<std::pair<int, int>> pairs;\n"
            "        CUresult (*guarded)(void *) = nullptr;\n        int a = 0, b;\n};\n")
    path = tmp_path / "daemon/driver/cpu/large.cpp"
    assert rooms(tmp_path, {"daemon/driver/cpu/large.cpp": text}, "--check") == (0, [])
    path.write_text(text.replace("int a = 0, b;", "int a = 0, " + ", ".join("x%d" % i for i in range(33)) + ";"))
    status, lines = rooms(tmp_path, {}, "--check")
    assert status == 1 and lines[0].endswith("struct Large has 36 members, more than 35")


def test_include_by_dots(tmp_path):
    path = "tests/unit/test-job.c"
    assert violation(tmp_path, {path: "#include \"../daemon/util/macro.h\"\n"}).startswith(path + ":1: ")


def test_include_that_is_not_found(tmp_path):
    assert "\"nowhere.h\" is not found" in violation(tmp_path, {"daemon/util/log.c": "#include \"nowhere.h\"\n"})


def test_folder_that_is_no_room(tmp_path):
    assert "daemon/attic is not in the table" in violation(tmp_path, {"daemon/attic/job.c": "int x;\n"})


def test_include_guards(tmp_path):
    guard = "#ifndef %s\n#define %s\n#endif\n"
    assert "its include guard is GPUQ_SCAN_H, not GPUQ_COMPILER_SCAN_H" in violation(
        tmp_path / "name", {"daemon/compiler/scan.h": guard % (("GPUQ_SCAN_H",) * 2)})
    assert "has the include guard of daemon/util/macro.h" in violation(
        tmp_path / "twice", {"tests/unit/test.h": guard % (("GPUQ_UTIL_MACRO_H",) * 2)})
    assert "has no include guard" in violation(tmp_path / "none", {"tests/unit/test.h": "\n"})

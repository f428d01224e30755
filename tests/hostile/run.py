#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile users beside an ordinary one: how long the victim's small jobs wait, and what is lost, during each attack.

    python3 tests/hostile/run.py [--users 1|8] [--only NAME,...] [--seconds S] [--device cpu|gpu] [--short] [--json FILE]

Needs root and an installed tree (GPUQ_STAGE, by default build/stage). Starts a service of its own for each attack: a
keeper as root, an unprivileged supervisor, and real uids for the victim and the attackers, two processes of one uid or
one process of each of eight. `burners` is no attack, but the same number of processes that only take processor time.
Ends with 1 if the victim lost a job or data, if the service was restarted, if a device was drained, if something was
possible that must not be, or if processes were left behind.

--short: each attack for a moment, on one service: what CI runs. No time is judged.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attack  # noqa: E402
import table  # noqa: E402
# In the order in which they are played: those after which a user's workers start late come last.
import wire_attacks  # noqa: E402, F401, I001 # pylint: disable=unused-import
import job_attacks  # noqa: E402, F401, I001 # pylint: disable=unused-import
import report_attacks  # noqa: E402, F401, I001 # pylint: disable=unused-import
import worker_attacks  # noqa: E402, F401, I001 # pylint: disable=unused-import
from harness import folders, place, processes  # noqa: E402
from theatre import Theatre, Unable, private_mounts  # noqa: E402


def names(text):
    found = text.split(",")
    unknown = sorted(set(found) - set(attack.ALL))
    if unknown:
        raise argparse.ArgumentTypeError(f"no attack {', '.join(unknown)}; there are {', '.join(attack.ALL)}")
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, choices=(1, 8), default=1, help="how many uids attack")
    parser.add_argument("--only", type=names, default=list(attack.ALL), metavar="NAME,...")
    parser.add_argument("--seconds", type=float, help="how long each attack goes on (10; 0.4 if short)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default=place.DEVICE)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, nargs="+", metavar="FILE",
                        help="plays nothing: prints what --json wrote in these files as the table of docs/reliability.md")
    return parser.parse_args()


def play(theatre, one):
    """A row of the table."""
    try:
        return theatre.play(one)
    except Unable as reason:
        return {"attack": one.name, "skipped": str(reason)}


def run(options):
    rows = []
    theatre = Theatre(options.users, options.seconds or (0.4 if options.short else 10), options.short)
    try:
        for name in options.only:
            rows.append(play(theatre, attack.ALL[name]))
            print(table.line(rows[-1]), flush=True)
            if options.json:  # a run that is cut off leaves what it had reached
                options.json.write_text(json.dumps({"users": options.users, "device": options.device, "rows": rows}, indent=1))
    finally:
        problems = theatre.close()
    return rows, problems


def main():
    options = parse()
    if options.markdown:
        print(table.markdown([json.loads(path.read_text()) for path in options.markdown]))
        return 0
    if os.geteuid() != 0:
        sys.exit("run.py needs root, to be several users")
    place.DEVICE = options.device
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is ended
    processes.adopt_orphans()
    private_mounts()
    begin = time.monotonic()
    remove = folders.share()
    try:
        print(table.head(), flush=True)
        rows, problems = run(options)
    finally:
        processes.end_all()
        remove()
    print(table.summary(rows, problems, time.monotonic() - begin))
    return 1 if problems or any(table.is_bad(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

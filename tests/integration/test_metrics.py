# SPDX-License-Identifier: Apache-2.0
"""gpuq metrics: what it tells, that monitoring systems understand it, and that its server serves nobody else badly."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from harness import kernels, place, processes
from harness.client import Job
from harness.patience import until

text_string_to_metric_families = pytest.importorskip(
    "prometheus_client.openmetrics.parser", reason="no prometheus_client").text_string_to_metric_families

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def samples(text):
    """{(name, label values...): value}, for a device or the only user."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values = [value for name, value in sample.labels.items() if name not in ("uid", "user")]
            found[(sample.name, *values)] = sample.value
    return found


def metrics(gpuqd):
    ended = gpuqd.run("metrics")
    assert ended.returncode == 0, ended.stderr
    return samples(ended.stdout)


# ---- the text ----

def test_the_text_is_openmetrics_and_each_family_has_a_help_and_its_unit(gpuqd):
    families = list(text_string_to_metric_families(gpuqd.run("metrics").stdout))
    assert len(families) > 15
    for family in families:
        assert family.name.startswith("gpuq_") and family.documentation.endswith(".")
        for unit in ("seconds", "bytes", "ratio"):
            assert (family.unit == unit) == family.name.endswith(f"_{unit}")


def test_jobs_are_counted_by_state_and_by_outcome(gpuqd, client):
    module = client.load(kernels.BASIC)
    before = metrics(gpuqd)
    client.run_well(Job().launch(module, "nothing"))
    client.run(Job().launch(module, "no_such_kernel"))
    gate = kernels.GateJob(client, module)
    waiting = client.submit(Job(after=[gate.id]).launch(module, "nothing"))
    until(lambda: metrics(gpuqd)["gpuq_device_jobs", "0", "running"] == 1, "the gate to be reached")

    now = metrics(gpuqd)
    assert now["gpuq_user_jobs", "running"] == now["gpuq_user_jobs", "waiting"] == 1
    assert now["gpuq_device_workers", "0"] >= 1 and now["gpuq_device_state", "0", "ready"] == 1
    assert now["gpuq_device_buffer_bytes", "0"] >= 12  # the gate's words
    assert now["gpuq_daemon_sessions",] >= 2 and now["gpuq_daemon_ready",] == 1
    client.cancel(waiting)
    client.wait(waiting)
    gate.open()
    client.wait(gate.id)

    after = metrics(gpuqd)
    ended = {outcome: after["gpuq_user_jobs_ended_total", outcome] - before["gpuq_user_jobs_ended_total", outcome]
             for outcome in ("done", "failed", "cancelled")}
    assert ended == {"done": 3, "failed": 1, "cancelled": 1}  # the gate is opened by a job too
    assert after["gpuq_user_gpu_seconds_total",] > before["gpuq_user_gpu_seconds_total",]


def test_a_drained_device_has_another_state(gpuqd):
    gpuqd.run("drain", "0", "--reason", 'a "new" fan')
    states = {key[2]: value for key, value in metrics(gpuqd).items() if key[0] == "gpuq_device_state"}
    gpuqd.run("resume", "0")
    assert states == {"ready": 0, "drained": 1, "failed": 0, "unavailable": 0}


def plain(text):
    """The text as promtool reads it: it knows the older format only, where a family is named like its samples."""
    def rename(match):
        name, kind = match[2], match[3]
        return f"{match[1]} {name}{ {'counter': '_total', 'info': '_info'}.get(kind, '') } " + \
               {"info": "gauge", "stateset": "gauge"}.get(kind, kind)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    text = re.sub(r"^(# TYPE) (\S+) (\S+)$", rename, text, flags=re.M)
    return re.sub(r"^# HELP (\S+)", lambda match: "# HELP " + match[1] +
                  {"counter": "_total", "info": "_info"}.get(kinds[match[1]], ""), text, flags=re.M)


@pytest.mark.skipif(not shutil.which("promtool"), reason="no promtool, which the package prometheus has")
def test_promtool_has_nothing_to_say(gpuqd):
    checked = subprocess.run(["promtool", "check", "metrics"], input=plain(gpuqd.run("metrics").stdout), text=True,
                             capture_output=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


# ---- the server ----

@contextlib.contextmanager
def serving(gpuqd, address="127.0.0.1:0"):
    """A server, and where it listens: (host, port) or a path."""
    process = gpuqd.start_program("gpuq", "metrics", "--listen", address)
    try:
        told = process.stdout.readline()
        listening = re.fullmatch(r"gpuq: metrics: listening on (.*)\n", told)
        assert listening, told + process.stdout.read()
        where = listening[1]
        yield process, where if "/" in where else (where.rpartition(":")[0].strip("[]"), int(where.rpartition(":")[2]))
    finally:
        process.terminate()
        process.communicate(timeout=place.PATIENCE_S)


def connect(where):
    if isinstance(where, str):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(where)
    else:
        stream = socket.create_connection(where)
    stream.settimeout(place.PATIENCE_S)
    return stream


def answer_of(stream):
    """Status, headers, text."""
    told = b""
    while part := stream.recv(65536):
        told += part
    head, _, text = told.decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert len(text.encode()) == int(headers["Content-Length"]) and headers["Connection"] == "close"
    return int(first.split()[1]), headers, text


def ask(where, request="GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"):
    with connect(where) as stream:
        stream.sendall(request.encode())
        return answer_of(stream)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.8.9.10:0", "[::1]:0", "path"])
def test_it_serves_the_same_text(gpuqd, tmp_path, address):
    if address == "[::1]:0" and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6 here")
    with serving(gpuqd, str(tmp_path / "metrics.sock") if address == "path" else address) as (process, where):
        for _ in range(3):
            status, headers, text = ask(where)
            assert status == 200 and headers["Content-Type"] == TYPE
            assert set(samples(text)) == set(metrics(gpuqd))
        process.terminate()
        assert process.wait(place.PATIENCE_S) == 0
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("address, words", [
    ("0.0.0.0:9000", "not a loopback address: other machines could read"),
    ("192.168.1.1:9000", "not a loopback address: other machines could read"),
    ("[::]:9000", "not a loopback address: other machines could read"),
    ("[::ffff:127.0.0.1]:9000", "not a loopback address"),
    ("localhost:9000", "expected the path of a socket"),
    ("9000", "expected the path of a socket"),
    ("127.0.0.1:65536", "expected the path of a socket"),
    ("127.0.0.1", "expected the path of a socket"),
])
def test_other_addresses_are_refused_with_the_reason(gpuqd, address, words):
    ended = gpuqd.run("metrics", "--listen", address)
    assert ended.returncode == 2 and words in ended.stderr and not ended.stdout


def test_a_file_or_a_link_at_its_place_is_left_alone(gpuqd, tmp_path):
    """To connect to one fails just as to a socket of which nobody listens."""
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        ended = gpuqd.run("metrics", "--listen", tmp_path / name)
        assert ended.returncode == 1 and "in use" in ended.stderr
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "precious"


def test_an_address_in_use_is_told_and_a_socket_left_behind_is_replaced(gpuqd, tmp_path):
    path = str(tmp_path / "metrics.sock")
    with serving(gpuqd, path) as (first, where):
        second = gpuqd.run("metrics", "--listen", path)
        assert second.returncode == 1 and "Address already in use" in second.stderr
        assert ask(where)[0] == 200
        first.kill()
        first.wait()
        assert os.path.exists(path)
        with serving(gpuqd, path):
            assert ask(path)[0] == 200


@pytest.mark.parametrize("request_text, status", [
    ("GET / HTTP/1.1\r\n\r\n", 404),
    ("GET /metricsx HTTP/1.1\r\n\r\n", 404),
    ("GET /metrics?name[]=x HTTP/1.0\r\n\r\n", 200),
    ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
    ("GET /metrics\r\n\r\n", 400),
    ("\r\n\r\n", 400),
    ("GET /metrics FTP/1.1\r\n\r\n", 400),
    ("GET /metrics HTTP/1.1\r\nX: " + 20000 * "x" + "\r\n\r\n", 431),
])
def test_other_requests_are_refused(gpuqd, request_text, status):
    with serving(gpuqd) as (_, where):
        assert ask(where, request_text)[0] == status
        assert ask(where)[0] == 200


def test_a_silent_client_is_dropped_and_the_next_one_served(gpuqd):
    with serving(gpuqd) as (_, where):
        with connect(where) as silent, connect(where) as slow, connect(where) as deaf, connect(where) as gone:
            slow.sendall(b"GET /met")
            deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            gone.close()
            assert ask(where)[0] == 200
            assert answer_of(silent)[0] == answer_of(slow)[0] == 408
            assert answer_of(deaf)[0] == 200


def test_many_silent_and_deaf_clients_delay_nobody(gpuqd):
    """They were served one after the other, 2 s each: whoever kept connecting left a monitoring system blind."""
    with serving(gpuqd) as (_, where), contextlib.ExitStack() as stack:
        others = [stack.enter_context(connect(where)) for _ in range(100)]
        for one in others[::2]:
            one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        begin = time.monotonic()
        for _ in range(3):
            assert ask(where)[0] == 200
        assert time.monotonic() - begin < 2


def test_without_gpuqd_the_answer_is_503_with_the_reason(start_gpuqd):
    gpuqd = start_gpuqd()
    with serving(gpuqd) as (_, where):
        assert ask(where)[0] == 200
        gpuqd.stop()
        status, headers, text = ask(where)
        assert status == 503 and headers["Content-Type"].startswith("text/plain")
        assert str(gpuqd.socket) in text


def test_a_gpuqd_that_does_not_answer_is_503_too(start_gpuqd):
    gpuqd = start_gpuqd()
    with serving(gpuqd) as (process, where):
        with processes.stopped(gpuqd.supervisor()):
            assert ask(where)[::2] == (503, "gpuqd did not answer in time\n")
        assert ask(where)[0] == 200
        assert not processes.children(process.pid)


def test_a_signal_ends_it_while_it_waits_for_gpuqd(start_gpuqd, tmp_path):
    gpuqd = start_gpuqd()
    path = str(tmp_path / "metrics.sock")
    with serving(gpuqd, path) as (process, where):
        with processes.stopped(gpuqd.supervisor()), connect(where) as stream:
            stream.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            (child,) = until(lambda: processes.children(process.pid), "it to ask gpuqd")
            process.send_signal(signal.SIGTERM)
            assert process.wait(place.PATIENCE_S) == 0
            assert not processes.is_alive(child) and not os.path.exists(path)


# ---- a real Prometheus ----

DASHBOARD = place.ROOT / "docs" / "grafana-dashboard.json"
PROMETHEUS = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: gpuq
    static_configs: [{{targets: ["{address}"]}}]
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def prometheus(folder, address):
    """One that scrapes there; yields a function that answers a query."""
    (folder / "prometheus.yml").write_text(PROMETHEUS.format(address=address))
    at = f"127.0.0.1:{free_port()}"
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                    f"--web.listen-address={at}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def query(expression):
        url = f"http://{at}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=place.PATIENCE_S) as reply:
                return json.load(reply)["data"]["result"]
        except urllib.error.HTTPError as problem:
            if problem.code == 503:  # not ready yet
                return []
            raise AssertionError(f"{expression}: {problem.read().decode()}") from None
        except urllib.error.URLError:
            assert process.poll() is None, (folder / "log").read_text()
            return []

    try:
        yield query
    finally:
        process.terminate()
        process.wait(place.PATIENCE_S)


def dashboard_queries():
    """As Grafana puts them, with all machines chosen."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$machine", ".*").replace("$__rate_interval", "1m")


@pytest.mark.skipif(not shutil.which("prometheus"), reason="no prometheus")
def test_prometheus_answers_every_query_of_the_dashboard(gpuqd, client, tmp_path):
    client.run_well(Job().launch(client.load(kernels.BASIC), "nothing"))
    with serving(gpuqd) as (_, where), prometheus(tmp_path, f"{where[0]}:{where[1]}") as query:
        until(lambda: query("count_over_time(gpuq_daemon_ready[1m]) >= 3"), "three scrapes")
        assert query("gpuq_user_jobs_ended_total{outcome='done'}")[0]["value"][1] == "1"
        unanswered = [expression for expression in dashboard_queries() if not query(expression)]
        assert not unanswered, unanswered


def test_the_dashboard_is_one_that_grafana_loads():
    """What its importer needs: each panel a place of its own, a data source that is asked for, and queries of different names."""
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["uid"] and dashboard["title"] and dashboard["schemaVersion"] >= 36
    variables = {variable["name"]: variable["type"] for variable in dashboard["templating"]["list"]}
    assert variables == {"source": "datasource", "machine": "query"}
    panels, taken = dashboard["panels"], set()
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place_of = panel["gridPos"]
        cells = {(x, y) for x in range(place_of["x"], place_of["x"] + place_of["w"]) for y in range(place_of["y"], place_of["y"] + place_of["h"])}
        assert place_of["x"] + place_of["w"] <= 24 and not taken & cells, panel["title"]
        taken |= cells
        assert panel["type"] in ("stat", "timeseries") and panel["title"] and panel["description"].endswith(".")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0

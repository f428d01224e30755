// SPDX-License-Identifier: Apache-2.0
// Perfetto's own reader of traces, as its web page has it, under node:
//
//     node perfetto.js FOLDER TRACE QUERY...
//
// FOLDER has engine_bundle.js and trace_processor.wasm. Prints the rows of each query as one line of JSON. The page
// talks to the reader by messages of perfetto/trace_processor/trace_processor.proto, of which this has what it needs.

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.request
const LENGTHS = 2, NUMBER = 0; // wire types
const CELL_NULL = 1, CELL_NUMBER = 2, CELL_FLOAT = 3, CELL_TEXT = 4;

// ---- protobuf ----

function varint(number) {
    const bytes = [];
    for (; number > 127; number = Math.floor(number / 128))
        bytes.push(number % 128 | 128);
    return Buffer.from([...bytes, number]);
}

const number = (field, value) => Buffer.concat([varint(field << 3 | NUMBER), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint(field << 3 | LENGTHS), varint(data.length), data]);

function take(reader) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
        const byte = reader.data[reader.at++];
        value |= BigInt(byte & 127) << shift;
        if (byte < 128)
            return Number(BigInt.asIntN(64, value));
    }
}

function takeBytes(reader, n) {
    reader.at += n;
    return reader.data.subarray(reader.at - n, reader.at);
}

// [field, value] of a message.
function* fields(data) {
    const reader = {data, at: 0};
    while (reader.at < data.length) {
        const key = take(reader);
        if ((key & 7) === NUMBER)
            yield [key >> 3, take(reader)];
        else
            yield [key >> 3, takeBytes(reader, (key & 7) === LENGTHS ? take(reader) : (key & 7) === 1 ? 8 : 4)];
    }
}

function* packed(data) {
    for (const reader = {data, at: 0}; reader.at < data.length;)
        yield take(reader);
}

// ---- the reader ----

class Request {
    open(method, url) { this.url = url; }
    send() {
        this.status = 200;
        this.response = new Uint8Array(fs.readFileSync(path.join(folder, path.basename(this.url)))).buffer;
    }
}

function start() {
    const replies = [];
    const port = {postMessage: data => replies.push(Buffer.from(data))};
    Object.assign(globalThis, {self: globalThis, WorkerGlobalScope: Object, importScripts() {}, XMLHttpRequest: Request,
                               location: {href: "file:///"}});
    delete globalThis.process; // the code must take this for a browser
    vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
    self.onmessage({data: port});
    return (...parts) => {
        replies.length = 0;
        port.onmessage({data: new Uint8Array(bytes(1, Buffer.concat(parts)))});
        return replies.flatMap(reply => [...fields(reply)].map(([, message]) => message));
    };
}

function check(text) {
    if (text)
        throw new Error(text);
}

// ---- what it answers ----

function cells(batch) {
    const kinds = [], numbers = [], floats = [];
    let texts = [];
    for (const [field, value] of fields(batch)) {
        if (field === 1)
            kinds.push(...packed(value));
        else if (field === 2)
            numbers.push(...packed(value));
        else if (field === 3)
            for (let i = 0; i < value.length; i += 8)
                floats.push(value.readDoubleLE(i));
        else if (field === 5)
            texts = value.toString("utf8").split("\0");
    }
    return kinds.map(kind => kind === CELL_NULL ? null : kind === CELL_NUMBER ? numbers.shift()
        : kind === CELL_FLOAT ? floats.shift() : kind === CELL_TEXT ? texts.shift() : null);
}

function rows(results) {
    let n_columns = 0;
    const all = [];
    for (const result of results)
        for (const [field, value] of fields(result)) {
            check(field === 2 && value.toString());
            n_columns += field === 1;
            if (field === 3)
                all.push(...cells(value));
        }
    return Array.from({length: n_columns ? all.length / n_columns : 0},
                      (_, i) => all.slice(i * n_columns, (i + 1) * n_columns));
}

function results(replies, wanted) {
    return replies.flatMap(reply => [...fields(reply)].filter(([field]) => field === wanted).map(([, value]) => value));
}

const {exit, stdout} = process;
const ask = start();
setTimeout(() => {
    let serial = 0;
    const call = (request, ...more) => ask(number(1, serial++), number(2, request), ...more);
    for (const result of results(call(APPEND, bytes(101, fs.readFileSync(trace))), 201))
        for (const [field, value] of fields(result))
            check(field === 2 && value.toString());
    call(FINALIZE);
    for (const query of queries)
        stdout.write(JSON.stringify(rows(results(call(QUERY, bytes(103, bytes(1, Buffer.from(query)))), 203))) + "\n");
    exit(0);
}, 0);

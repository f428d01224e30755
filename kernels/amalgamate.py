#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make one source of the built-in kernels and two copies of their description.

amalgamate.py BUILTIN.cu BUILTIN.txt BUILTIN.inc HEADER.cuh... KERNEL.cu...

The head comment of every kernel that users may run says

    @kernel NAME     there are NAME_f32 and NAME_f64
    @types  those of its elements, instead of f32 and f64
    @text   what it computes
    @args   in:NAME:TYPE:SHAPE, out:…, inout:… for buffers; u64:NAME; real:NAME. TYPE is f32, f64, i32, u32, i64, u64 or
            real, which is each of the types in turn. SHAPE is how many elements the kernel reaches at most: names of u64 arguments
            or numbers, with commas between, which are multiplied: "m,k". libgpuq and the workers refuse smaller
            buffers (daemon/util/need.h)
    @launch which grid and block it takes

A file without @kernel is for workers alone, as are kernels called gpuq_internal_NAME. BUILTIN.txt has one line a
kernel, as daemon/compiler/compiled.h describes a signature: KINDS, symbol, name, text, between tabs, newlines as "\\n".
BUILTIN.inc has the same as initializers in C: {"NAME", "KINDS", "TEXT"}.
"""
import re
import sys

LETTERS = {'in': 'p', 'out': 'p', 'inout': 'p', 'u64': 'l', 'f32': 'f', 'f64': 'd'}
TYPES = ('f32', 'f64', 'i32', 'u32', 'i64', 'u64')


def check(path, args):
    """Every buffer has a type and a shape, and every length in a shape is an argument."""
    lengths = {arg.split(':')[1] for arg in args if arg.startswith('u64:')}
    for arg in args:
        direction, _, rest = arg.partition(':')
        if LETTERS[direction] != 'p':
            continue
        _, kind, shape = rest.split(':') if rest.count(':') == 2 else ('', '', '')
        if kind not in TYPES or not all(length.isdecimal() or length in lengths for length in shape.split(',')):
            sys.exit(f'{path}: {arg} should be {direction}:NAME:TYPE:SHAPE, with lengths among {sorted(lengths)}')


def describe(path, source):
    fields = dict(re.findall(r'^ \* @(\w+) +(.+)$', source, re.M))
    for real in fields.get('types', 'f32 f64').split():
        try:
            name = f"{fields['kernel']}_{real}"
            args = re.sub(r'\breal:', real + ':', fields['args'])
            kinds = ''.join(LETTERS[arg.split(':')[0]] for arg in args.split())
            check(path, args.split())
            text = '\\n'.join((fields['text'], args, fields['launch']))
        except KeyError as missing:
            sys.exit(f'{path}: the head comment lacks or does not know {missing}')
        if f' {name}(' not in source:
            sys.exit(f'{path}: the head comment tells of {name}, which is not there')
        yield kinds, name, text


def main():
    target, description, initializers, *paths = sys.argv[1:]
    with open(target, 'w', encoding='utf-8') as cu, open(description, 'w', encoding='utf-8') as txt, \
            open(initializers, 'w', encoding='utf-8') as inc:
        for path in paths:
            with open(path, encoding='utf-8') as f:
                source = f.read()
            cu.write(re.sub(r'^#(include "\w+\.cuh"|pragma once)\n', '', source, flags=re.M))
            if re.search(r'^ \* @kernel ', source, re.M):
                for kinds, name, text in describe(path, source):
                    txt.write(f'{kinds}\t{name}\t{name}\t{text}\n')
                    inc.write(f'{{"{name}", "{kinds}", "{text}"}},\n')


main()

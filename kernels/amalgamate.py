#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make one source and one description of the built-in kernels.

amalgamate.py BUILTIN.cu BUILTIN.txt common.cuh KERNEL.cu...

The head comment of every kernel that users may run says

    @kernel NAME     there are NAME_f32 and NAME_f64
    @text   what it computes
    @args   in:NAME, out:NAME, inout:NAME for buffers; u64:NAME; real:NAME, which is f32 or f64
    @launch which grid and block it takes

A file without @kernel is for workers alone. BUILTIN.txt has one line a kernel, as daemon/compiler/compiled.h describes a
signature: KINDS, symbol, name, text, between tabs, newlines as "\\n".
"""
import re
import sys

LETTERS = {'in': 'p', 'out': 'p', 'inout': 'p', 'u64': 'l', 'f32': 'f', 'f64': 'd'}


def describe(path, source):
    fields = dict(re.findall(r'^ \* @(\w+) +(.+)$', source, re.M))
    for real in ('f32', 'f64'):
        try:
            name = f"{fields['kernel']}_{real}"
            args = fields['args'].replace('real:', real + ':')
            kinds = ''.join(LETTERS[arg.split(':')[0]] for arg in args.split())
            text = '\\n'.join((fields['text'], args, fields['launch']))
        except KeyError as missing:
            sys.exit(f'{path}: the head comment lacks or does not know {missing}')
        if f' {name}(' not in source:
            sys.exit(f'{path}: the head comment tells of {name}, which is not there')
        yield f'{kinds}\t{name}\t{name}\t{text}\n'


def main():
    target, description, *paths = sys.argv[1:]
    with open(target, 'w', encoding='utf-8') as cu, open(description, 'w', encoding='utf-8') as txt:
        for path in paths:
            with open(path, encoding='utf-8') as f:
                source = f.read()
            cu.write(re.sub(r'^#(include "common.cuh"|pragma once)\n', '', source, flags=re.M))
            if re.search(r'^ \* @kernel ', source, re.M):
                txt.writelines(describe(path, source))


main()

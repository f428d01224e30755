# SPDX-License-Identifier: Apache-2.0
"""PTX instructions with inputs and the bits that the PTX ISA says they give.

A row: the instruction, the classes of its result and its sources, its sources, the result. Classes: h, r, d: 16, 32 and 64
bits; p: a predicate. An instruction with braces is written out; otherwise its operands are appended.
"""

import struct

from . import ptx_video


def f32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def f16(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


M32, M64 = 0xffffffff, 0xffffffffffffffff
NAN, INF, MINUS = 0x7fc00000, 0x7f800000, 0x80000000
NAN64, SUBNORMAL = 0x7ff8000000000000, 0x00400000
ONE, TWO, HALF = f32(1), f32(2), f32(.5)

INTEGER = [
    ("add.u32", "r", "rr", (M32, 2), 1),
    ("add.sat.s32", "r", "rr", (0x7fffffff, 1), 0x7fffffff),
    ("add.sat.s32", "r", "rr", (0x80000000, M32), 0x80000000),
    ("sub.sat.s32", "r", "rr", (0x80000000, 1), 0x80000000),
    ("add.u16", "h", "hh", (0xffff, 2), 1),
    ("add.s64", "d", "dd", (M64, 2), 1),
    ("sub.u32", "r", "rr", (1, 2), M32),
    ("sub.s64", "d", "dd", (0, 1), M64),
    ("mul.lo.s32", "r", "rr", (0x10001, 0x10001), 0x20001),
    ("mul.hi.s32", "r", "rr", (M32, M32), 0),
    ("mul.hi.u32", "r", "rr", (M32, M32), 0xfffffffe),
    ("mul.hi.s64", "d", "dd", (M64, M64), 0),
    ("mul.hi.u64", "d", "dd", (M64, M64), M64 - 1),
    ("mul.lo.u64", "d", "dd", (1 << 63, 3), 1 << 63),
    ("mul.wide.s32", "d", "rr", (M32, 2), M64 - 1),
    ("mul.wide.u32", "d", "rr", (M32, 2), 2 * M32),
    ("mul.wide.s16", "r", "hh", (0xffff, 2), M32 - 1),
    ("mul.wide.u16", "r", "hh", (0xffff, 0xffff), 0xfffe0001),
    ("mul.lo.u16", "h", "hh", (0x101, 0x101), 0x201),
    ("mul.hi.u16", "h", "hh", (0xffff, 0xffff), 0xfffe),
    ("mad.lo.s32", "r", "rrr", (3, M32, 5), 2),
    ("mad.hi.u32", "r", "rrr", (M32, M32, 2), 0),
    ("mad.hi.sat.s32", "r", "rrr", (0x40000000, 4, 0x7fffffff), 0x7fffffff),
    ("mad.wide.s32", "d", "rrd", (M32, 3, 10), 7),
    ("mad.wide.u16", "r", "hhr", (3, 4, 5), 17),
    ("mul24.lo.u32", "r", "rr", (0xff000003, 5), 15),
    ("mul24.lo.s32", "r", "rr", (0x00ffffff, 5), M32 - 4),
    ("mul24.hi.u32", "r", "rr", (0xffffff, 0xffffff), 0xfffffe00),
    ("div.s32", "r", "rr", (M32 - 6, 2), M32 - 2),
    ("div.u32", "r", "rr", (7, 2), 3),
    ("rem.s32", "r", "rr", (M32 - 6, 4), M32 - 2),
    ("rem.u64", "d", "dd", (M64, 10), 5),
    ("div.s64", "d", "dd", (M64 - 99, 7), M64 - 13),
    ("div.u16", "h", "hh", (0xffff, 16), 0xfff),
    ("abs.s32", "r", "r", (M32 - 4,), 5),
    ("abs.s64", "d", "d", (M64,), 1),
    ("neg.s32", "r", "r", (5,), M32 - 4),
    ("neg.s16", "h", "h", (1,), 0xffff),
    ("min.s32", "r", "rr", (M32, 1), M32),
    ("min.u32", "r", "rr", (M32, 1), 1),
    ("max.s64", "d", "dd", (M64, 1), 1),
    ("max.u16", "h", "hh", (0xffff, 1), 0xffff),
    ("sad.s32", "r", "rrr", (M32, 2, 10), 13),
    ("sad.u32", "r", "rrr", (2, 7, 10), 15),
    ("popc.b32", "r", "r", (0xf0f,), 8),
    ("popc.b64", "r", "d", (M64,), 64),
    ("clz.b32", "r", "r", (0,), 32),
    ("clz.b64", "r", "d", (1,), 63),
    ("bfind.u32", "r", "r", (0x8000,), 15),
    ("bfind.u32", "r", "r", (0,), M32),
    ("bfind.s32", "r", "r", (M32,), M32),
    ("bfind.s32", "r", "r", (0xfffffff0,), 3),
    ("bfind.shiftamt.u32", "r", "r", (1,), 31),
    ("bfind.u64", "r", "d", (1 << 40,), 40),
    ("brev.b32", "r", "r", (1,), 0x80000000),
    ("brev.b64", "d", "d", (2,), 1 << 62),
    ("bfe.u32", "r", "rrr", (0xabcd1234, 8, 8), 0x12),
    ("bfe.s32", "r", "rrr", (0x0000f000, 12, 4), M32),
    ("bfe.s32", "r", "rrr", (0x80000000, 28, 8), 0xfffffff8),
    ("bfe.u32", "r", "rrr", (M32, 40, 8), 0),
    ("bfe.s32", "r", "rrr", (M32, 3, 0), 0),
    ("bfe.u64", "d", "drr", (0x123456789abcdef0, 16, 16), 0x9abc),
    ("bfe.s64", "d", "drr", (M64, 8, 64), M64),
    ("bfi.b32", "r", "rrrr", (0xff, 0, 8, 4), 0xf00),
    ("bfi.b32", "r", "rrrr", (0, M32, 28, 8), 0x0fffffff),
    ("bfi.b32", "r", "rrrr", (5, 77, 32, 4), 77),
    ("bfi.b64", "d", "ddrr", (1, 0, 40, 1), 1 << 40),
    ("and.b32", "r", "rr", (0xff00, 0x0ff0), 0x0f00),
    ("or.b64", "d", "dd", (1 << 63, 1), 1 << 63 | 1),
    ("xor.b16", "h", "hh", (0xffff, 0x00ff), 0xff00),
    ("not.b32", "r", "r", (0,), M32),
    ("cnot.b32", "r", "r", (0,), 1),
    ("cnot.b32", "r", "r", (9,), 0),
    ("shl.b32", "r", "rr", (1, 31), 0x80000000),
    ("shl.b32", "r", "rr", (1, 32), 0),
    ("shl.b64", "d", "dr", (1, 63), 1 << 63),
    ("shl.b16", "h", "hr", (1, 15), 0x8000),
    ("shr.u32", "r", "rr", (0x80000000, 31), 1),
    ("shr.s32", "r", "rr", (0x80000000, 100), M32),
    ("shr.u32", "r", "rr", (0x80000000, 32), 0),
    ("shr.s64", "d", "dr", (1 << 63, 63), M64),
    ("shr.s16", "h", "hr", (0x8000, 3), 0xf000),
    ("shf.l.wrap.b32", "r", "rrr", (0x80000000, 1, 1), 3),
    ("shf.r.wrap.b32", "r", "rrr", (2, 1, 1), 0x80000001),
    ("shf.l.clamp.b32", "r", "rrr", (7, 9, 40), 7),
    ("shf.r.clamp.b32", "r", "rrr", (7, 9, 40), 9),
    ("shf.l.wrap.b32", "r", "rrr", (7, 9, 32), 9),
    ("lop3.b32 {d}, {a}, {b}, {c}, 0x96;", "r", "rrr", (0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa), 0x96969696),
    ("lop3.b32 {d}, {a}, {b}, {c}, 0xe8;", "r", "rrr", (0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa), 0xe8e8e8e8),
    ("prmt.b32", "r", "rrr", (0x33221100, 0x77665544, 0x7531), 0x77553311),
    ("prmt.b32", "r", "rrr", (0x00008000, 0, 0x0009), 0x000000ff),
    ("prmt.b32.f4e", "r", "rrr", (0x33221100, 0x77665544, 1), 0x44332211),
    ("prmt.b32.b4e", "r", "rrr", (0x33221100, 0x77665544, 1), 0x66770011),
    ("prmt.b32.rc8", "r", "rrr", (0x33221100, 0, 2), 0x22222222),
    ("prmt.b32.ecl", "r", "rrr", (0x33221100, 0, 2), 0x33222222),
    ("prmt.b32.ecr", "r", "rrr", (0x33221100, 0, 2), 0x22221100),
    ("prmt.b32.rc16", "r", "rrr", (0x33221100, 0, 1), 0x33223322),
    ("dp4a.s32.s32", "r", "rrr", (0xff020304, 0x01010101, 10), 18),
    ("dp4a.u32.u32", "r", "rrr", (0xff020304, 0x01010101, 10), 274),
    ("dp4a.u32.s32", "r", "rrr", (0x00000001, 0x000000ff, 0), M32),
    ("dp2a.lo.s32.s32", "r", "rrr", (0xffff0002, 0x00000304, 1), 6),
    ("dp2a.hi.u32.u32", "r", "rrr", (0x00010002, 0x03040000, 1), 12),
    ("{{ .reg .b32 t; add.cc.u32 t, {a}, {b}; addc.u32 {d}, 0, 0; }}", "r", "rr", (M32, 1), 1),
    ("{{ .reg .b32 t; add.cc.u32 t, {a}, {b}; addc.u32 {d}, 5, 6; }}", "r", "rr", (1, 1), 11),
    ("{{ .reg .b32 t; sub.cc.u32 t, {a}, {b}; subc.u32 {d}, 5, 0; }}", "r", "rr", (1, 2), 4),
    ("{{ .reg .b32 t; sub.cc.u32 t, {a}, {b}; subc.u32 {d}, 5, 0; }}", "r", "rr", (2, 2), 5),
    ("{{ .reg .b32 t; sub.cc.u32 t, {a}, {b}; addc.u32 {d}, 0, 0; }}", "r", "rr", (1, 2), 0),
    ("{{ .reg .b32 t; sub.cc.u32 t, {a}, {b}; addc.u32 {d}, 0, 0; }}", "r", "rr", (2, 2), 1),
    ("{{ .reg .b32 t; add.cc.u32 t, {a}, {b}; subc.u32 {d}, 0, 0; }}", "r", "rr", (0, 0), M32),
    ("{{ .reg .b32 t; sub.cc.u32 t, 0, {a}; subc.cc.u32 t, {b}, {b}; subc.u32 {d}, 9, 0; }}", "r", "rr", (1, 3), 8),
    ("{{ .reg .b64 t; sub.cc.u64 t, {a}, {b}; subc.u64 {d}, 5, 0; }}", "d", "dd", (1, 2), 4),
    ("{{ .reg .b32 t; mad.lo.cc.u32 t, {a}, {b}, 1; madc.hi.u32 {d}, {a}, {b}, 0; }}", "r", "rr", (M32, M32), M32 - 1),
    ("{{ .reg .b16 l, h; mov.b32 {{l, h}}, {a}; mov.b32 {d}, {{h, l}}; }}", "r", "r", (0x12345678,), 0x56781234),
    ("{{ .reg .b32 l, h; mov.b64 {{l, h}}, {a}; mov.b64 {d}, {{h, l}}; }}", "d", "d", (0x123456789abcdef0,), 0x9abcdef012345678),
]

FLOAT = [
    ("add.f32", "r", "rr", (ONE, TWO), f32(3)),
    ("add.rn.f32", "r", "rr", (ONE, f32(2 ** -24)), ONE),
    ("add.rp.f32", "r", "rr", (ONE, f32(2 ** -24)), ONE + 1),
    ("add.rm.f32", "r", "rr", (f32(-1), f32(-2 ** -24)), f32(-1) + 1),
    ("add.rz.f32", "r", "rr", (ONE, f32(-2 ** -26)), ONE - 1),
    ("add.ftz.f32", "r", "rr", (SUBNORMAL, 0), 0),
    ("add.f32", "r", "rr", (SUBNORMAL, 0), SUBNORMAL),
    ("add.sat.f32", "r", "rr", (ONE, ONE), ONE),
    ("add.sat.f32", "r", "rr", (NAN, ONE), 0),
    ("sub.f32", "r", "rr", (ONE, TWO), f32(-1)),
    ("mul.f32", "r", "rr", (f32(3), HALF), f32(1.5)),
    ("mul.rz.f32", "r", "rr", (ONE + 1, ONE + 1), ONE + 2),
    ("mul.rp.f32", "r", "rr", (ONE + 1, ONE + 1), ONE + 3),
    ("fma.rn.f32", "r", "rrr", (ONE + 1, ONE + 1, f32(-1)), f32(2 ** -22 + 2 ** -46)),
    ("fma.rz.f32", "r", "rrr", (ONE, ONE, f32(-2 ** -26)), ONE - 1),
    ("mad.rn.f32", "r", "rrr", (TWO, TWO, ONE), f32(5)),
    ("div.rn.f32", "r", "rr", (ONE, f32(3)), 0x3eaaaaab),
    ("div.rz.f32", "r", "rr", (ONE, f32(3)), 0x3eaaaaaa),
    ("rcp.rn.f32", "r", "r", (f32(3),), 0x3eaaaaab),
    ("sqrt.rn.f32", "r", "r", (TWO,), 0x3fb504f3),
    ("sqrt.rp.f32", "r", "r", (TWO,), 0x3fb504f4),
    ("neg.f32", "r", "r", (ONE,), f32(-1)),
    ("abs.f32", "r", "r", (f32(-1),), ONE),
    ("min.f32", "r", "rr", (NAN, ONE), ONE),
    ("max.f32", "r", "rr", (ONE, f32(-1)), ONE),
    ("min.f32", "r", "rr", (0, MINUS), MINUS),
    ("max.f32", "r", "rr", (MINUS, 0), 0),
    ("max.f32", "r", "rr", (NAN, NAN), 0x7fffffff),
    ("min.ftz.f32", "r", "rr", (SUBNORMAL, ONE), 0),
    ("copysign.f32", "r", "rr", (MINUS, ONE), f32(-1)),
    ("testp.subnormal.f32", "p", "r", (SUBNORMAL,), 1),
    ("testp.finite.f32", "p", "r", (INF,), 0),
    ("testp.notanumber.f32", "p", "r", (NAN,), 1),
    ("testp.normal.f32", "p", "r", (ONE,), 1),
    ("ex2.approx.f32", "r", "r", (f32(3),), f32(8)),
    ("lg2.approx.f32", "r", "r", (f32(8),), f32(3)),
    ("rsqrt.approx.f32", "r", "r", (f32(4),), HALF),
    ("rcp.approx.ftz.f32", "r", "r", (f32(4),), f32(.25)),
    ("sqrt.approx.f32", "r", "r", (f32(4),), TWO),
    ("sin.approx.f32", "r", "r", (0,), 0),
    ("cos.approx.f32", "r", "r", (0,), ONE),
    ("div.approx.f32", "r", "rr", (f32(6), TWO), f32(3)),
    ("div.full.f32", "r", "rr", (f32(6), TWO), f32(3)),
    ("add.f64", "d", "dd", (f64(1), f64(2)), f64(3)),
    ("add.rp.f64", "d", "dd", (f64(1), f64(2 ** -53)), f64(1) + 1),
    ("add.rm.f64", "d", "dd", (f64(1), f64(-2 ** -54)), f64(1) - 1),
    ("add.rm.f64", "d", "dd", (f64(1), f64(2 ** -53)), f64(1)),
    ("mul.rn.f64", "d", "dd", (f64(3), f64(.5)), f64(1.5)),
    ("fma.rn.f64", "d", "ddd", (f64(1 + 2 ** -52), f64(1 + 2 ** -52), f64(-1)), f64(2 ** -51 + 2 ** -104)),
    ("div.rn.f64", "d", "dd", (f64(1), f64(3)), f64(1 / 3)),
    ("sqrt.rn.f64", "d", "d", (f64(2),), f64(2 ** .5)),
    ("rcp.rn.f64", "d", "d", (f64(3),), f64(1 / 3)),
    ("neg.f64", "d", "d", (f64(1),), f64(-1)),
    ("abs.f64", "d", "d", (f64(-1),), f64(1)),
    ("max.f64", "d", "dd", (NAN64, f64(1)), f64(1)),
    ("add.f16", "h", "hh", (f16(1), f16(2)), f16(3)),
    ("add.f16", "h", "hh", (f16(2048), f16(1)), f16(2048)),
    ("mul.f16", "h", "hh", (f16(256), f16(256)), 0x7c00),
    ("sub.f16", "h", "hh", (f16(1), f16(3)), f16(-2)),
    ("fma.rn.f16", "h", "hhh", (f16(3), f16(5), f16(.5)), f16(15.5)),
    ("neg.f16", "h", "h", (f16(1),), f16(-1)),
    ("add.f16x2", "r", "rr", (f16(1) << 16 | f16(2), f16(3) << 16 | f16(4)), f16(4) << 16 | f16(6)),
    ("fma.rn.f16x2", "r", "rrr", (f16(2) << 16 | f16(3), f16(2) << 16 | f16(3), f16(1) << 16 | f16(1)), f16(5) << 16 | f16(10)),
]

COMPARE = [
    ("setp.lt.s32", "p", "rr", (M32, 0), 1),
    ("setp.lt.u32", "p", "rr", (M32, 0), 0),
    ("setp.lo.u32", "p", "rr", (0, M32), 1),
    ("setp.hs.u64", "p", "dd", (M64, 1), 1),
    ("setp.eq.b16", "p", "hh", (5, 5), 1),
    ("setp.ne.s64", "p", "dd", (5, 5), 0),
    ("setp.eq.f32", "p", "rr", (NAN, NAN), 0),
    ("setp.ne.f32", "p", "rr", (NAN, ONE), 0),
    ("setp.neu.f32", "p", "rr", (NAN, ONE), 1),
    ("setp.equ.f32", "p", "rr", (NAN, ONE), 1),
    ("setp.ltu.f32", "p", "rr", (TWO, ONE), 0),
    ("setp.geu.f64", "p", "dd", (NAN64, f64(1)), 1),
    ("setp.num.f32", "p", "rr", (ONE, NAN), 0),
    ("setp.nan.f32", "p", "rr", (ONE, NAN), 1),
    ("setp.eq.f32", "p", "rr", (MINUS, 0), 1),
    ("setp.eq.ftz.f32", "p", "rr", (SUBNORMAL, 0), 1),
    ("{{ .reg .pred q, s; setp.eq.s32 s, {a}, 1; setp.lt.and.s32 {d}|q, {a}, {b}, s; }}", "p", "rr", (1, 2), 1),
    ("{{ .reg .pred q, s; setp.eq.s32 s, {a}, 1; setp.lt.and.s32 q|{d}, {a}, {b}, s; }}", "p", "rr", (1, 2), 0),
    ("{{ .reg .pred s; setp.eq.s32 s, {a}, 1; setp.lt.and.s32 _|{d}, {a}, {b}, s; }}", "p", "rr", (1, 2), 0),
    ("{{ .reg .pred s; setp.eq.s32 s, {a}, 1; setp.lt.xor.s32 {d}, {a}, {b}, !s; }}", "p", "rr", (1, 2), 1),
    ("set.lt.u32.s32", "r", "rr", (M32, 0), M32),
    ("set.gt.f32.f32", "r", "rr", (TWO, ONE), ONE),
    ("selp.b32", "r", "rrp", (7, 8, 0), 8),
    ("selp.b64", "d", "ddp", (7, 8, 1), 7),
    ("selp.b16", "h", "hhp", (7, 8, 1), 7),
    ("slct.s32.s32", "r", "rrr", (7, 8, M32), 8),
    ("slct.u64.f32", "d", "ddr", (7, 8, MINUS), 7),
    ("and.pred", "p", "pp", (1, 0), 0),
    ("or.pred", "p", "pp", (1, 0), 1),
    ("not.pred", "p", "p", (0,), 1),
    ("xor.pred", "p", "pp", (1, 1), 0),
    ("{{ .reg .pred s; mov.pred s, -1; xor.pred {d}, {a}, s; }}", "p", "p", (1,), 0),
    ("{{ .reg .pred s; mov.pred s, 2; and.pred {d}, {a}, s; }}", "p", "p", (1,), 1),
    # %in is a global address.
    ("isspacep.global {d}, %in;", "p", "", (), 1),
    ("isspacep.shared {d}, %in;", "p", "", (), 0),
    ("isspacep.local {d}, %in;", "p", "", (), 0),
    ("isspacep.const {d}, %in;", "p", "", (), 0),
    ("{{ .shared .b32 s; .reg .b64 a; mov.u64 a, s; cvta.shared.u64 a, a; isspacep.shared {d}, a; }}", "p", "", (), 1),
    ("{{ .shared .b32 s; .reg .b64 a; mov.u64 a, s; cvta.shared.u64 a, a; isspacep.global {d}, a; }}", "p", "", (), 0),
    ("{{ .local .b32 l; .reg .b64 a; mov.u64 a, l; cvta.local.u64 a, a; isspacep.local {d}, a; }}", "p", "", (), 1),
    ("{{ mov.b32 {d}, 3; @{b} mov.b32 {d}, {a}; @!{b} add.u32 {d}, {d}, 1; }}", "r", "rp", (9, 1), 9),
    ("{{ mov.b32 {d}, 3; @{b} mov.b32 {d}, {a}; @!{b} add.u32 {d}, {d}, 1; }}", "r", "rp", (9, 0), 4),
]

CONVERT = [
    ("cvt.s64.s32", "d", "r", (M32,), M64),
    ("cvt.u64.u32", "d", "r", (M32,), M32),
    ("cvt.u32.u64", "r", "d", (0x123456789,), 0x23456789),
    ("cvt.s32.s16", "r", "h", (0x8000,), 0xffff8000),
    ("cvt.u32.u16", "r", "h", (0x8000,), 0x8000),
    ("cvt.s32.s8", "r", "r", (0x1ff,), M32),
    ("cvt.u16.u32", "h", "r", (0x12345,), 0x2345),
    ("cvt.sat.s16.s32", "h", "r", (0x12345,), 0x7fff),
    ("cvt.sat.u8.s32", "r", "r", (M32,), 0),
    ("cvt.sat.s8.s32", "r", "r", (200,), 127),
    ("cvt.sat.u32.s64", "r", "d", (M64,), 0),
    ("cvt.rzi.s32.f32", "r", "r", (f32(-1.7),), M32),
    ("cvt.rni.s32.f32", "r", "r", (f32(2.5),), 2),
    ("cvt.rmi.s32.f32", "r", "r", (f32(-1.1),), M32 - 1),
    ("cvt.rpi.s32.f32", "r", "r", (f32(1.1),), 2),
    ("cvt.rzi.s32.f32", "r", "r", (NAN,), 0),
    ("cvt.rzi.u32.f32", "r", "r", (NAN,), 0),
    ("cvt.rzi.s64.f32", "d", "r", (NAN,), 1 << 63),
    ("cvt.rzi.s32.f64", "r", "d", (NAN64,), 0x80000000),
    ("cvt.rzi.s32.f32", "r", "r", (INF,), 0x7fffffff),
    ("cvt.rzi.u32.f32", "r", "r", (f32(-5),), 0),
    ("cvt.rzi.u32.f32", "r", "r", (f32(1e10),), M32),
    ("cvt.rzi.s64.f32", "d", "r", (f32(-2 ** 40),), M64 - 2 ** 40 + 1),
    ("cvt.rzi.u64.f64", "d", "d", (f64(2. ** 63),), 1 << 63),
    ("cvt.rzi.s32.f64", "r", "d", (f64(-1e20),), 0x80000000),
    ("cvt.rn.f32.s32", "r", "r", (M32,), f32(-1)),
    ("cvt.rn.f32.u32", "r", "r", (M32,), f32(2. ** 32)),
    ("cvt.rz.f32.u32", "r", "r", (M32,), f32(2. ** 32) - 1),
    ("cvt.rp.f32.s64", "r", "d", (2 ** 24 + 1,), f32(2 ** 24 + 2)),
    ("cvt.rn.f64.s32", "d", "r", (M32,), f64(-1)),
    ("cvt.rn.f64.u64", "d", "d", (M64,), f64(2. ** 64)),
    ("cvt.rm.f64.u64", "d", "d", (0,), 0),
    ("cvt.rm.f64.u32", "d", "r", (0,), 0),
    ("cvt.rm.f32.u64", "r", "d", (0,), 0),
    ("cvt.rm.f32.f64", "r", "d", (f64(-0.0),), 0x80000000),
    ("cvt.rn.f32.f64", "r", "d", (f64(1 / 3),), 0x3eaaaaab),
    ("cvt.rz.f32.f64", "r", "d", (f64(1 / 3),), 0x3eaaaaaa),
    ("cvt.f64.f32", "d", "r", (HALF,), f64(.5)),
    ("cvt.rni.f32.f32", "r", "r", (f32(3.5),), f32(4)),
    ("cvt.rzi.f64.f64", "d", "d", (f64(-3.5),), f64(-3)),
    ("cvt.sat.f32.f32", "r", "r", (f32(-2),), 0),
    ("cvt.rn.f16.f32", "h", "r", (f32(1 / 3),), f16(1 / 3)),
    ("cvt.rn.f16.f32", "h", "r", (f32(70000),), 0x7c00),
    ("cvt.rz.f16.f32", "h", "r", (f32(70000),), 0x7bff),
    ("cvt.rn.f16.f32", "h", "r", (f32(2 ** -24),), 1),
    ("cvt.f32.f16", "r", "h", (0x3555,), f32(0.333251953125)),
    ("cvt.f32.f16", "r", "h", (1,), f32(2 ** -24)),
    ("cvt.rn.f16.s32", "h", "r", (2049,), f16(2048)),
    ("cvt.rzi.s32.f16", "r", "h", (f16(-3.5),), M32 - 2),
]
# Of sm_80.
CONVERT_80 = [
    ("cvt.rn.bf16.f32", "h", "r", (f32(1 / 3),), 0x3eab),
    ("cvt.rz.bf16.f32", "h", "r", (f32(1 / 3),), 0x3eaa),
    ("cvt.rn.f16x2.f32", "r", "rr", (ONE, TWO), f16(1) << 16 | f16(2)),
    ("cvt.rn.bf16x2.f32", "r", "rr", (ONE, TWO), 0x3f804000),
    ("cvt.rna.tf32.f32", "r", "r", (0x3f801000,), 0x3f802000),
    ("fma.rn.bf16", "h", "hhh", (0x4040, 0x4000, 0x3f80), 0x40e0),
    ("min.NaN.f32", "r", "rr", (NAN, ONE), 0x7fffffff),
    ("max.bf16", "h", "hh", (0x3f80, 0x4000), 0x4000),
    ("fma.rn.relu.f16", "h", "hhh", (f16(-2), f16(3), f16(1)), 0),
    ("fma.rn.relu.f16", "h", "hhh", (f16(2), f16(3), f16(1)), f16(7)),
    ("fma.rn.relu.bf16", "h", "hhh", (0xc000, 0x4040, 0x3f80), 0),
    ("ex2.approx.f16", "h", "h", (f16(3),), f16(8)),
    ("tanh.approx.f32", "r", "r", (0,), 0),
    ("tanh.approx.f32", "r", "r", (MINUS,), MINUS),
    ("tanh.approx.f32", "r", "r", (INF,), ONE),
    ("tanh.approx.f32", "r", "r", (INF | MINUS,), f32(-1)),
    ("tanh.approx.f16", "h", "h", (0x7c00,), f16(1)),
    ("tanh.approx.f16x2", "r", "r", (0xfc000000,), f16(-1) << 16),
]
INTEGER_76 = [
    ("szext.clamp.s32", "r", "rr", (0x80, 8), 0xffffff80),
    ("szext.clamp.u32", "r", "rr", (M32, 4), 15),
    ("szext.clamp.s32", "r", "rr", (0x12345678, 99), 0x12345678),
    ("szext.wrap.u32", "r", "rr", (M32, 33), 1),
    ("bmsk.clamp.b32", "r", "rr", (4, 8), 0xff0),
    ("bmsk.clamp.b32", "r", "rr", (28, 8), 0xf0000000),
    ("bmsk.wrap.b32", "r", "rr", (33, 2), 6),
]
# Of sm_90.
CONVERT_90 = [
    ("cvt.rn.bf16.u64", "h", "d", (M64,), 0x5f80),
    ("cvt.rn.bf16.u64", "h", "d", (3 << 62,), 0x5f40),
    ("cvt.rz.bf16.u64", "h", "d", (M64,), 0x5f7f),
    ("{{ .reg .b32 h; mov.b64 {{_, h}}, {a}; mov.b32 {d}, h; }}", "r", "d", (0x123456789abcdef0,), 0x12345678),
    ("cvt.rn.bf16.s64", "h", "d", (1 << 63,), 0xdf00),
    ("add.u16x2", "r", "rr", (0xffff0001, 0x00020003), 0x00010004),
    ("min.s16x2", "r", "rr", (0xffff0005, 0x00010003), 0xffff0003),
    ("max.u16x2", "r", "rr", (0xffff0005, 0x00010003), 0xffff0005),
    ("min.relu.s16x2", "r", "rr", (0xffff0005, 0x00010003), 3),
    ("max.relu.s32", "r", "rr", (M32 - 4, M32 - 2), 0),
    ("cvt.rn.tf32.f32", "r", "r", (0x3f801000,), 0x3f800000),
    ("cvt.rz.tf32.f32", "r", "r", (0x3f801fff,), 0x3f800000),
    ("cvt.rn.relu.tf32.f32", "r", "r", (f32(-2),), 0),
    # e4m3: 4 bits of exponent, biased by 7; 448 is the largest. e5m2: the upper half of f16; 57344 is the largest.
    ("cvt.rn.satfinite.e4m3x2.f32", "h", "rr", (ONE, f32(-448)), 0x38fe),
    ("cvt.rn.satfinite.e4m3x2.f32", "h", "rr", (f32(1000), INF | MINUS), 0x7efe),
    ("cvt.rn.satfinite.e4m3x2.f32", "h", "rr", (f32(17), f32(19)), 0x585a),
    ("cvt.rn.satfinite.e4m3x2.f32", "h", "rr", (f32(2 ** -9), f32(2 ** -10)), 0x0100),
    ("cvt.rn.satfinite.e4m3x2.f32", "h", "rr", (f32(3 * 2 ** -10), NAN), 0x027f),
    ("cvt.rn.satfinite.relu.e4m3x2.f32", "h", "rr", (f32(-1), ONE), 0x0038),
    ("cvt.rn.satfinite.e5m2x2.f32", "h", "rr", (ONE, f32(57344)), 0x3c7b),
    ("cvt.rn.satfinite.e5m2x2.f32", "h", "rr", (f32(1e6), f32(-2)), 0x7bc0),
    ("cvt.rn.satfinite.e4m3x2.f16x2", "h", "r", (f16(1) << 16 | f16(-2),), 0x38c0),
    ("cvt.rn.f16x2.e4m3x2", "r", "h", (0x38fe,), f16(1) << 16 | f16(-448)),
    ("cvt.rn.relu.f16x2.e4m3x2", "r", "h", (0x38fe,), f16(1) << 16),
    ("cvt.rn.f16x2.e5m2x2", "r", "h", (0x3c7b,), f16(1) << 16 | f16(57344)),
]

# Parts of a register; the third source is added, or not used.
VIDEO = [
    ("vadd4.u32.u32.u32", "r", "rrr", (0x01ff7f80, 0x01020304, 9), 0x02018284),
    ("vadd4.u32.u32.u32.sat", "r", "rrr", (0x01ff7f80, 0x01020304, 9), 0x02ff8284),
    ("vadd4.s32.s32.s32.sat", "r", "rrr", (0x7f80ff01, 0x01ff0101, 9), 0x7f800002),
    ("vadd4.u32.u32.u32.add", "r", "rrr", (0x01020304, 0x01010101, 100), 114),
    ("vsub2.s32.s32.s32", "r", "rrr", (0x00010000, 0x00020001, 9), M32),
    ("vabsdiff4.u32.u32.u32", "r", "rrr", (0x05010a00, 0x0102050a, 9), 0x0401050a),
    ("vabsdiff4.u32.u32.u32.add", "r", "rrr", (0x05010a00, 0x0102050a, 1), 21),
    ("vavrg4.u32.u32.u32", "r", "rrr", (0x01020304, 0x02020505, 9), 0x02020405),
    # A half is rounded away from zero.
    ("vavrg4.s32.s32.s32", "r", "rrr", (0x01ff7f80, 0x02fe7f80, 9), 0x02fe7f80),
    ("vavrg4.s32.s32.s32.add", "r", "rrr", (0x01ff7f80, 0x02fe7f80, 9), 8),
    ("vavrg2.s32.s32.s32", "r", "rrr", (0x7fff8000, 0x7ffe8001, 9), 0x7fff8000),
    ("vavrg2.s32.s32.u32", "r", "rrr", (0xffff0003, 0x00000002, 9), 0xffff0003),
    ("vavrg2.u32.s32.s32.sat", "r", "rrr", (0xfffd0005, 0xfffe0002, 9), 0x00000004),
    ("vmin2.s32.s32.s32", "r", "rrr", (0xffff0005, 0x00010003, 9), 0xffff0003),
    ("vmax2.s32.s32.s32", "r", "rrr", (0xffff0005, 0x00010003, 9), 0x00010005),
    ("vset4.u32.u32.lt", "r", "rrr", (0x01020304, 0x02020205, 9), 0x01000001),
    ("vset4.u32.u32.lt.add", "r", "rrr", (0x01020304, 0x02020205, 10), 12),
    ("fns.b32", "r", "rrr", (0xf0f, 0, 5), 8),
    ("fns.b32", "r", "rrr", (0xf0f, 8, M32 - 1), 3),
    ("fns.b32", "r", "rrr", (0xf0f, 8, 0), 8),
    ("fns.b32", "r", "rrr", (1, 1, 1), M32),
    ("cvt.rm.f16.f32", "h", "r", (f32(1 / 3),), 0x3555),
    ("cvt.rp.f16.f32", "h", "r", (f32(1 / 3),), 0x3556),
    ("cvt.rm.f16.f32", "h", "r", (f32(-1 / 3),), 0xb556),
]
VIDEO_PART, VIDEO_PART_APART = ptx_video.rows()
# Two halves; predicate p is that of the lower one.
HALVES = [
    ("set.lt.f16x2.f16x2", "r", "rr", (f16(1) << 16 | f16(3), f16(2) << 16 | f16(2)), 0x3c000000),
    ("set.lt.u32.f16x2", "r", "rr", (f16(1) << 16 | f16(3), f16(2) << 16 | f16(2)), 0xffff0000),
    ("set.gt.u16.f16", "h", "hh", (f16(2), f16(1)), 0xffff),
    ("{{ .reg .pred p, q; setp.lt.f16x2 p|q, {a}, {b}; selp.u32 {d}, 1, 0, p; @q add.u32 {d}, {d}, 2; }}", "r", "rr",
     (f16(1) << 16 | f16(3), f16(2) << 16 | f16(2)), 2),
    ("cvt.pack.sat.u16.s32", "r", "rr", (70000, M32), 0xffff0000),
    ("cvt.pack.sat.s8.s32.b32", "r", "rrr", (200, M32 - 199, 0x12345678), 0x56787f80),
]
TABLES = {"video": (VIDEO, 60, 60), "video_part": (VIDEO_PART, 60, 60), "halves": (HALVES, 65, 72), "sm_70": (INTEGER_76, 76, 70), "integer": (INTEGER, 60, 61), "float": (FLOAT, 65, 53), "compare": (COMPARE, 60, 50), "convert": (CONVERT, 60, 53),
          "sm_80": (CONVERT_80, 70, 80), "sm_90": (CONVERT_90, 80, 90)}
# What GPUs do not do as the ISA says.
TABLES_APART = {"video_part": (VIDEO_PART_APART, 60, 60)}


def instruction(row):
    text, result, sources = row[0], row[1], row[2]
    names = {"d": "%to" + result}
    for letter, kind in zip("abce", sources):
        names[letter] = f"%from{letter}{kind}"
    if "{" not in text:
        text += " " + ", ".join("{" + letter + "}" for letter in "d" + "abce"[:len(sources)]) + ";"
    return text.replace("{e}", names.get("e", "")).format(**names)


def module(rows, version, target):
    """A module with one kernel, table(in, out), that runs all rows: four sources and one result of 64 bits each."""
    lines = [f".version {version // 10}.{version % 10}", f".target sm_{target}", ".address_size 64",
             ".visible .entry table(.param .u64 in, .param .u64 out)", "{",
             ".reg .pred %top, %fromap, %frombp, %fromcp, %fromep;",
             ".reg .b64 %in, %out, %word;"]
    for kind, bits in (("h", 16), ("r", 32), ("d", 64)):
        lines.append(f".reg .b{bits} %to{kind}, " + ", ".join(f"%from{letter}{kind}" for letter in "abce") + ";")
    lines += ["ld.param.u64 %in, [in];", "ld.param.u64 %out, [out];",
              "cvta.to.global.u64 %in, %in;", "cvta.to.global.u64 %out, %out;"]
    for i, row in enumerate(rows):
        for k, kind in enumerate(row[2]):
            name, at = f"%from{'abce'[k]}{kind}", f"[%in+{32 * i + 8 * k}]"
            if kind == "p":
                lines += [f"ld.global.u64 %word, {at};", f"setp.ne.u64 {name}, %word, 0;"]
            else:
                lines.append(f"ld.global.{ {'h': 'u16', 'r': 'u32', 'd': 'u64'}[kind]} {name}, {at};")
        lines.append(instruction(row))
        to = "%to" + row[1]
        if row[1] == "p":
            lines.append(f"selp.u64 %word, 1, 0, {to};")
        elif row[1] == "d":
            lines.append(f"mov.b64 %word, {to};")
        else:
            lines.append(f"cvt.u64.u{ {'h': 16, 'r': 32}[row[1]]} %word, {to};")
        lines.append(f"st.global.u64 [%out+{8 * i}], %word;")
    return "\n".join(lines + ["ret;", "}", ""])

# SPDX-License-Identifier: Apache-2.0
"""PTX's video instructions on one part of a register, in every form, with the bits that the PTX ISA says they give.

Rows as ptx_table has them. Where the ISA leaves a result open there is none: .min and .max of what does not fit into 32 bits,
.sat of a shift out of 34 bits.

GPUs since Volta have no such instructions: ptxas makes others of them. Those of CUDA 13.0 give other bits than the ISA says
- for a result in .h1: the upper half of the result, not the lower
- for .sat of a negative result into a part: the largest number
- for .sat of a shift into a part: its lower bits
- for .min and .max of vset with a first source of s32: they take c as signed
- for vmad with .sat or a scale: they take whole unsigned registers as signed
The rows of which this is true are apart.
"""

import itertools
import operator

SIGNS = ("u32", "s32")
PARTS = {"": (0, 32), ".b0": (0, 8), ".b1": (8, 8), ".b2": (16, 8), ".b3": (24, 8), ".h0": (0, 16), ".h1": (16, 16)}
OPERATIONS = {
    "vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max,
    "vshl.clamp": lambda a, b: a << min(b, 32), "vshl.wrap": lambda a, b: a << (b & 31),
    "vshr.clamp": lambda a, b: a >> min(b, 32), "vshr.wrap": lambda a, b: a >> (b & 31),
}
WIDE = 1 << 33
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
SECOND = {"": lambda x, c: x, ".add": lambda x, c: x + c, ".min": min, ".max": max}
# Both signs, parts of both signs, and small numbers, which shifts can use.
VALUES = (0x89abcdef, 0x7f80ff01, 5, 0xfffffffe, 0x01020304, 0x7fffffff, 33, 0x80000000, 0x00c01fe2)


def part(value, selector, sign):
    at, bits = PARTS[selector]
    x = value >> at & (1 << bits) - 1
    return x - (1 << bits) if sign == "s32" and x >> bits - 1 else x


def span(bits, sign):
    return (-1 << bits - 1, (1 << bits - 1) - 1) if sign == "s32" else (0, (1 << bits) - 1)


def clamp(x, bits, sign):
    low, high = span(bits, sign)
    return max(low, min(high, x))


def merge(x, to, c):
    at, bits = PARTS[to]
    mask = (1 << bits) - 1 << at
    return c & ~mask | x << at & mask


def finish(x, c, form):
    """The bits of a result x, or None where they are open."""
    sign, to, second, saturates = form
    if not -WIDE <= x < WIDE and saturates:
        return None
    if saturates:
        x = clamp(x, PARTS[to][1], sign)
    elif second in (".min", ".max") and x != clamp(x, 32, sign):
        return None
    return merge(SECOND[second](x, part(c, "", sign)), to, c) & 0xffffffff


class Picker:
    """Goes through parts and values, so that the rows have them in many combinations."""

    def __init__(self):
        self.parts = itertools.cycle(itertools.product(PARTS, PARTS))
        self.values = itertools.cycle(itertools.permutations(VALUES, 3))

    def next(self):
        for _ in range(4):  # neighbours are alike
            selectors = next(self.parts)
        for _ in range(37):
            values = next(self.values)
        return selectors, values


def forms():
    """What can stand behind a name and its types: sat, second operation, part of the result."""
    yield from itertools.product((False, True), SECOND, ("",))
    yield from itertools.product((False, True), ("",), list(PARTS)[1:])


def row(text, form, selectors, values, x):
    """None or one, and whether GPUs agree."""
    sign, to, second, saturates = form
    has_third = to or second
    expected = finish(x, values[2], form)
    if expected is None:
        return []
    text += f" {{d}}{to}, {{a}}{selectors[0]}, {{b}}{selectors[1]}" + (", {c};" if has_third else ";")
    agree = to != ".h1" and not (to and saturates and (x < 0 or text.startswith("vsh") and x != clamp(x, PARTS[to][1], sign)))
    if text.startswith("vset.s32") and second in (".min", ".max"):
        agree = values[2] < 1 << 31
    return [((text, "r", "rrr", values, expected), agree)]


def arithmetic(pick):
    for name, types in itertools.product(OPERATIONS, itertools.product(SIGNS, SIGNS, SIGNS)):
        name, mode = (name.split(".") + [""])[:2]
        if mode and types[2] != "u32":
            continue
        for saturates, second, to in forms():
            selectors, values = pick.next()
            x = OPERATIONS[name + (mode and "." + mode)](part(values[0], selectors[0], types[1]), part(values[1], selectors[1], types[2]))
            text = ".".join((name,) + types) + (".sat" if saturates else "") + (mode and "." + mode) + second
            yield from row(text, (types[0], to, second, saturates), selectors, values, x)


def comparisons(pick):
    for a, b, comparison in itertools.product(SIGNS, SIGNS, COMPARISONS):
        for _saturates, second, to in [form for form in forms() if not form[0]]:
            selectors, values = pick.next()
            x = getattr(operator, comparison)(part(values[0], selectors[0], a), part(values[1], selectors[1], b))
            yield from row(f"vset.{a}.{b}.{comparison}{second}", ("u32", to, second, False), selectors, values, int(x))


# The signs in front of a, b and c.
MINUS = (("", "", ""), ("-", "", ""), ("", "-", ""), ("-", "-", ""), ("", "", "-"))


def mad(values, selectors, types, minus, adds_one, shift, saturates):
    negates = minus[0] != minus[1]
    sign = "s32" if "s32" in types[1:] or negates or minus[2] else "u32"
    x = part(values[0], selectors[0], types[1]) * part(values[1], selectors[1], types[2])
    c = part(~values[2] & 0xffffffff if minus[2] else values[2], "", sign)
    x = (-x if negates else x) + c + bool(adds_one or minus[2]) >> shift
    return (clamp(x, 32, sign) if saturates else x) & 0xffffffff


def products(pick):
    for types, saturates, scale in itertools.product(itertools.product(SIGNS, SIGNS, SIGNS), ("", ".sat"), ("", ".shr7", ".shr15")):
        for adds_one, minus in [("", minus) for minus in MINUS] + [(".po", MINUS[0])]:
            selectors, values = pick.next()
            names = [f"{minus[i]}{{{'abc'[i]}}}{(selectors + ('',))[i]}" for i in range(3)]
            text = ".".join(("vmad",) + types) + f"{adds_one}{saturates}{scale} {{d}}, " + ", ".join(names) + ";"
            expected = mad(values, selectors, types, minus, adds_one, int(scale[4:] or 0), saturates)
            whole = [value for value, selector, sign in zip(values, selectors + ("",), types[1:] + ("u32",)) if not selector and sign == "u32"]
            agree = not (saturates or scale) or max(whole) < 1 << 31
            yield (text, "r", "rrr", values, expected), agree


def rows():
    """Those of which GPUs give the same bits, and the others."""
    pick = Picker()
    found = [*arithmetic(pick), *comparisons(pick), *products(pick)]
    return [one for one, agree in found if agree], [one for one, agree in found if not agree]

# SPDX-License-Identifier: GPL-2.0
"""Numbers as text, and rows of them as Markdown tables."""
import random
from statistics import median


def number(value, digits=3):
    """As many digits as mean something: 12,300, 45.6, 0.0789."""
    if abs(value) >= 10 ** digits - 0.5:
        return f"{round(value, digits - len(str(round(abs(value))))):,.0f}"
    return f"{value:.{digits}g}"


def spread(values, digits=3):
    """The median, and the least and the most behind it."""
    return f"{number(median(values), digits)} ({number(min(values), digits)} to {number(max(values), digits)})"


def lower_quarter(values):
    """What a quarter of them are below: where something else only ever adds to what is measured, in less than three quarters of all."""
    return sorted(values)[len(values) // 4]


def flat(turns):
    return [value for turn in turns for value in turn]


def more_percent(ones, others):
    """
    Of turns of several values each: by how much the lower quarter of the ones is above that of the others, and the bounds that this has with
    95 %. The bounds are from turns that are drawn from these, again and again.
    """
    chance = random.Random(1)

    def drawn(turns):
        return lower_quarter(flat(chance.choices(turns, k=len(turns))))
    might = sorted(drawn(ones) / drawn(others) for _ in range(1000))
    ratio = lower_quarter(flat(ones)) / lower_quarter(flat(others))
    return [100 * (one - 1) for one in (ratio, might[25], might[-26])]


def ratios(ones, others):
    """Round by round."""
    return [one / other for one, other in zip(ones, others)]


def table(head, rows):
    """The first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"

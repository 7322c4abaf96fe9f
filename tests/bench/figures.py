# SPDX-License-Identifier: GPL-2.0
"""Numbers as text, and rows of them as Markdown tables."""
from statistics import median


def number(value, digits=3):
    """As many digits as mean something: 12,300, 45.6, 0.0789."""
    if abs(value) >= 10 ** digits - 0.5:
        return f"{round(value, digits - len(str(round(abs(value))))):,.0f}"
    return f"{value:.{digits}g}"


def spread(values, digits=3):
    """The median, and the least and the most behind it."""
    return f"{number(median(values), digits)} ({number(min(values), digits)} to {number(max(values), digits)})"


def ratios(ones, others):
    """Round by round."""
    return [one / other for one, other in zip(ones, others)]


def more_percent(ones, others):
    """
    By how much the ones are above the others in the median of their pairs, and the bounds that it has with 95 %: on each side of a median
    chance leaves so many of them.
    """
    each = sorted(ratios(ones, others))
    beyond = max(0, int(len(each) / 2 - 0.98 * len(each) ** 0.5) - 1)
    return [100 * (ratio - 1) for ratio in (median(each), each[beyond], each[-1 - beyond])]


def table(head, rows):
    """The first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"

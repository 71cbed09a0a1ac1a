"""Parts of Markdown tables."""

from statistics import mean, stdev


def table(header, rows):
    """Return the lines of a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def spread(values, digits=3):
    """Return mean ± standard deviation; the value alone where there is one."""
    text = f"{mean(values):.{digits}f}"
    return text if len(values) == 1 else f"{text} ± {stdev(values):.{digits}f}"


def spread_of_known(values):
    """Return :func:`spread` of the values that are not None; nothing where there are none."""
    known = [value for value in values if value is not None]
    return spread(known) if known else ""


def value_range(values):
    """Return the smallest and the largest value, or the one there is."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"


def number(value):
    """Return three digits of a number, nothing for None."""
    return "" if value is None else f"{value:.3f}"


def machine_lines(machines):
    """Return a line for each different machine or set of versions."""
    described = {}
    for machine in machines:
        versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items())
        text = f"{machine['cpu']}, {machine['threads']} threads; {versions}"
        described.setdefault(text, []).append((machine["date"][:10], machine["load"]))
    lines = []
    for text, measured in described.items():
        dates = sorted({date for date, _ in measured})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        loads = [load for _, load in measured if load is not None]
        busy = f"; load {min(loads):.1f} to {max(loads):.1f}" if loads else ""
        lines += ["", f"Measured {when} on {text}{busy}."]
    return lines

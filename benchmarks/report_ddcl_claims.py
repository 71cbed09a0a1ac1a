"""What the paper of DDCL claims, the figure measured here, and whether it holds."""

from statistics import mean, stdev

from .tables import table

_SCHEDULES = ("2 to 0.5", "0.5", "0.1", "2")
# Guards, rate and unit of the temperature nearest to what the paper describes.
_UNGUARDED = "{}, guards none, encoder_lr=0.001, absolute temperature"
_SLOW = "{}, guards none, encoder_lr=1e-05, relative temperature"


def claims_table(parts):
    """Return the lines of the table; `parts` maps a part to its stored cells."""
    rows = []
    for text, part, measure in _CLAIMS:
        found = parts.get(part)
        measured = measure(found) if found else None
        figure, verdict = ("not run", "") if measured is None else measured
        rows.append([text, figure, verdict])
    return table(["claim of the paper", "measured", "holds"], rows)


def _cells(found, title, row):
    return list(found.get(title, {}).get(row, {}).values())


def _accuracies(found, title, row):
    return [cell["acc"] for cell in _cells(found, title, row)]


def _answer(holds):
    return "yes" if holds else "no"


def _identity(found):
    cells = [cell for row in found.values() for seeds in row.values() for cell in seeds.values()]
    worst = max(cell["largest_relative_error"] for cell in cells)
    smallest = min(cell["smallest_spread"] for cell in cells)
    text = f"largest relative error {worst:.1e}, smallest spread {smallest:.1e}"
    return text, _answer(worst < 1e-10 and smallest >= 0)


def _structure_cells(found, loss, entropy, multiples):
    return [
        cell
        for row, seeds in found["shapes"].items()
        if row.split(", ")[2:4] == [loss, entropy] and float(row.rpartition(", ")[2]) in multiples
        for cell in seeds.values()
    ]


def _separation(found):
    below = _structure_cells(found, "quantization", "0.0", (0.25, 0.5, 1.0, 2.5))
    above = _structure_cells(found, "quantization", "0.0", (5.0, 20.0))
    shares = [mean(cell["is_apart"] for cell in cells) for cells in (below, above)]
    text = f"apart: {shares[0]:.2f} of the fits below, {shares[1]:.2f} above 4 largest variances"
    return text, "below the critical temperature only"


def _collapse(found):
    cells = _structure_cells(found, "reconstruction", "0.0", (5.0, 20.0))
    share = mean(not cell["is_apart"] for cell in cells)
    return f"{share:.2f} of the fits collapsed at 5 and 20 largest variances", _answer(share > 0.5)


def _correlation(found):
    name = "corr separation, assignment_variance"
    cells = _structure_cells(found, "quantization", "0.0", (0.25, 0.5, 1.0, 2.5))
    known = sorted(cell[name] for cell in cells if cell[name] is not None)
    share = mean(value < -0.9 for value in known)
    middle = known[len(known) // 2]
    return f"median {middle:.2f}; below -0.9 in {share:.2f} of the fits", _answer(middle < -0.9)


def _schedules(found):
    means = [mean(_accuracies(found, "digits", f"bare error, temperature {s}")) for s in _SCHEDULES]
    text = ", ".join(f"{s}: {m:.3f}" for s, m in zip(_SCHEDULES, means, strict=True))
    return text, _answer(means == sorted(means, reverse=True))


def _repulsion(found):
    plain = _accuracies(found, "digits", "bare error, temperature 2 to 0.5")
    pushed = _accuracies(found, "digits", "bare error, separation_weight=0.1")
    return _compared(plain, pushed, "without", "with")


def _compared(first, second, name, other):
    text = (
        f"{name} {mean(first):.3f} ± {stdev(first):.3f}, {other} {mean(second):.3f} ± "
        f"{stdev(second):.3f}"
    )
    gap, noise = mean(first) - mean(second), (stdev(first) ** 2 + stdev(second) ** 2) ** 0.5
    within = " (within one deviation)" if abs(gap) < noise else ""
    return text, _answer(gap > 0) + within


def _high_dimensional(found):
    ours = _accuracies(found, "5 informative", "DDCL, bare error, 200 columns")
    kmeans = _accuracies(found, "5 informative", "KMeans, 200 columns")
    reduced = _accuracies(found, "5 informative", "PCA(2) + KMeans, 200 columns")
    text, verdict = _compared(ours, kmeans, "DDCL", "KMeans")
    return f"{text}; KMeans after PCA {mean(reduced):.3f}", verdict


def _frozen(found):
    gaps, differences = [], []
    for title in found:
        first, second = (_accuracies(found, title, row) for row in ("bare error", "reconstruction"))
        if not first or not second:
            continue
        gaps.append(f"{title}: {mean(first):.3f} and {mean(second):.3f}")
        noise = (stdev(first) ** 2 + stdev(second) ** 2) ** 0.5 if len(first) > 1 else 0.0
        differences.append(abs(mean(first) - mean(second)) <= max(noise, 1e-3))
    if not gaps:
        return None
    return "; ".join(gaps), f"in {sum(differences)} of {len(differences)} within one deviation"


def _gradients(found):
    cells = [cell for title in found for cell in _cells(found, title, "gradients")]
    if not cells:
        return None
    worst = max(cell["largest_gradient_difference"] for cell in cells)
    return f"largest difference {worst:.1e}", _answer(worst < 1e-12)


def _end_to_end(pattern):
    def measured(found):
        names = ("bare error", "reconstruction")
        first, second = (_accuracies(found, "digits", pattern.format(name)) for name in names)
        if min(len(first), len(second)) < 2:
            return None
        return _compared(first, second, "bare error", "reconstruction")

    return measured


def _deep_cluster(found):
    ours = _accuracies(found, "digits", _UNGUARDED.format("bare error"))
    theirs = _accuracies(found, "digits", "DeepCluster, new head")
    if min(len(ours), len(theirs)) < 2:
        return None
    text, verdict = _compared(ours, theirs, "bare error", "DeepCluster")
    return f"{text}; KMeans {mean(_accuracies(found, 'digits', 'KMeans on the rows')):.3f}", verdict


def _rising(found):
    title, start = "digits: shuffled", "DDCL, from the mean"
    low = [
        cell
        for temperature in ("0.2", "0.5")
        for cell in _cells(found, title, f"{start}, T={temperature}, batches of 16")
    ]
    high = _cells(found, title, f"{start}, T=2.0, batches of 16")
    if not low or not high:
        return None
    rising = mean(cell["share_rising"] for cell in low)
    text = (
        f"below the critical temperature {rising:.2f} of the steps rise; above it "
        f"{mean(c['first_separation'] for c in high):.2f} becomes "
        f"{mean(c['last_separation'] for c in high):.2f}"
    )
    return text, "below the critical temperature only" if rising > 0.9 else "no"


_CLAIMS = (
    ("The error is reconstruction plus a spread that is never negative", "identity", _identity),
    ("Prototypes separate by themselves under the quantisation error", "structure", _separation),
    ("Prototypes collapse under the reconstruction", "structure", _collapse),
    (
        "Separation and assignment variance correlate with -0.98",
        "structure",
        _correlation,
    ),
    (
        "Digits: annealing 2 to 0.5 beats fixed 0.5, then 0.1, then 2",
        "low-dimensional",
        _schedules,
    ),
    ("Digits: a repulsion makes it worse (0.576 to 0.549)", "low-dimensional", _repulsion),
    ("200 columns, 100 rows: 0.807, K-means near 0.5", "high-dimensional", _high_dimensional),
    ("Frozen encoder: both losses give the same ACC", "frozen", _frozen),
    ("Frozen encoder: both losses give the same gradient", "frozen", _gradients),
    (
        "Trained encoder: bare error 0.378, reconstruction 0.229",
        "end-to-end",
        _end_to_end(_UNGUARDED),
    ),
    ("The same with a slow encoder", "end-to-end", _end_to_end(_SLOW)),
    ("Trained encoder: DeepCluster 0.170", "end-to-end", _deep_cluster),
    ("On a stream the separation rises, then settles", "incremental", _rising),
)

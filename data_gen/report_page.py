"""The page of a corpus report: one HTML file with its charts drawn in it, readable in grey."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from beamless.data_gen.report import Figures

WIDTH, HEIGHT, BARS, WORST = 420, 150, 24, 40
STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#111;background:#fff;max-width:60rem;margin:2rem auto;
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem;
border-bottom:1px solid #bbb;vertical-align:top}td.n,th.n{text-align:right;
font-variant-numeric:tabular-nums}figure{display:inline-block;margin:.5rem 1rem .5rem 0}
figcaption{font-weight:600}svg text{font:11px system-ui,sans-serif;fill:#333}
svg rect{fill:#555}svg line{stroke:#333}
"""


def page_of(name: str, measured: Sequence["Figures"], bound: float) -> str:
    """Return the page: totals, charts, tables by speaker and source, and the worst utterances."""
    heard = [figures for figures in measured if figures.wer is not None]
    charts = [
        _histogram("Duration, seconds", [f.seconds for f in measured]),
        _histogram("Words a second", [f.words_per_second for f in measured if f.words]),
        _histogram("Level, dB below full scale", [f.level for f in measured]),
    ]
    if heard:
        charts.append(_histogram("Word error rate, %", [100 * (f.wer or 0.0) for f in heard]))
    parts = [
        f"<h1>Corpus {escape(name)}</h1>",
        _totals(measured, heard, bound),
        "<h2>Distributions</h2>",
        *charts,
        *_groups(measured),
        *_clipped(measured),
        *_worst(heard, bound),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Corpus {escape(name)}</title><style>{STYLE}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _totals(measured: Sequence["Figures"], heard: Sequence["Figures"], bound: float) -> str:
    seconds = sum(f.seconds for f in measured)
    rows = [
        ("Utterances", f"{len(measured):,}"),
        ("Hours", f"{seconds / 3600:.2f}"),
        ("Speakers known", f"{len({f.speaker for f in measured if f.speaker}):,}"),
        ("Words", f"{sum(f.words for f in measured):,}"),
        ("Without words", f"{sum(not f.words for f in measured):,}"),
        ("Sample rates", _counted(f"{f.rate:,} Hz" for f in measured)),
        ("Clipped utterances", f"{sum(f.clipped > 0 for f in measured):,}"),
    ]
    if heard:
        rows.append(("Heard by the model", f"{len(heard):,}"))
        wrong = sum((f.wer or 0.0) > bound for f in heard)
        rows.append((f"Heard with a WER above {bound:.0%}", f"{wrong:,}"))
    return _table(("", ""), rows)


def _groups(measured: Sequence["Figures"]) -> list[str]:
    parts = []
    for title, name in (("Sources", "source"), ("Voices", "voice"), ("Speakers", "speaker")):
        groups: dict[str, list[Figures]] = defaultdict(list)
        for figures in measured:
            groups[getattr(figures, name) or "not stated"].append(figures)
        if set(groups) == {"not stated"}:
            continue
        longest = sorted(groups.items(), key=lambda entry: -sum(f.seconds for f in entry[1]))
        rows = [(group, *_group_row(members)) for group, members in longest[:WORST]]
        left = f" (the {WORST} with most speech)" if len(groups) > WORST else ""
        heading = (title[:-1], "utterances", "minutes", "words a second", "WER %")
        parts += [f"<h2>{title}{left}</h2>", _table(heading, rows)]
    return parts


def _group_row(members: Sequence["Figures"]) -> tuple[str, str, str, str]:
    seconds = sum(f.seconds for f in members)
    words = sum(f.words for f in members)
    heard = [f for f in members if f.wer is not None]
    rate = "–"
    if heard:
        errors = sum((f.wer or 0.0) * max(1, f.words) for f in heard)
        rate = f"{100 * errors / sum(max(1, f.words) for f in heard):.1f}"
    speed = f"{words / seconds:.2f}" if seconds else "–"
    return f"{len(members):,}", f"{seconds / 60:.1f}", speed, rate


def _clipped(measured: Sequence["Figures"]) -> list[str]:
    clipped = sorted((f for f in measured if f.clipped > 0), key=lambda f: -f.clipped)[:WORST]
    if not clipped:
        return []
    rows = [(f.id, f"{100 * f.clipped:.3f}", f.text) for f in clipped]
    return ["<h2>Most clipped</h2>", _table(("id", "samples %", "text"), rows)]


def _worst(heard: Sequence["Figures"], bound: float) -> list[str]:
    worst = sorted((f for f in heard if (f.wer or 0.0) > 0), key=lambda f: -(f.wer or 0.0))[:WORST]
    if not worst:
        return []
    rows = [
        (f.id, ("✗ " if (f.wer or 0.0) > bound else "") + f"{100 * (f.wer or 0.0):.0f}", text, said)
        for f in worst
        for text, said in [(f.text, f.heard or "")]
    ]
    note = f"<p>✗ marks what is above {bound:.0%} and goes with <code>beamless corpus drop</code>."
    heading = ("id", "WER %", "text", "heard")
    return ["<h2>Worst heard</h2>", note + "</p>", _table(heading, rows)]


def _counted(values: Iterable[str]) -> str:
    counts: dict[str, int] = defaultdict(int)
    for value in values:
        counts[value] += 1
    return ", ".join(f"{value} ({number:,})" for value, number in sorted(counts.items()))


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; numbers are set right, but for the first column, which names the row."""
    body = "".join(f"<tr>{_cell(row[0], False)}{''.join(map(_cell, row[1:]))}</tr>" for row in rows)
    head = "".join(f"<th>{escape(title)}</th>" for title in heading)
    return f"<table><tr>{head}</tr>{body}</table>" if any(heading) else f"<table>{body}</table>"


def _cell(text: str, may_be_number: bool = True) -> str:
    number = may_be_number and text.replace(",", "").replace(".", "", 1).isdigit()
    opening = '<td class="n">' if number else "<td>"
    return f"{opening}{escape(text)}</td>"


def _histogram(title: str, values: Sequence[float]) -> str:
    """Draw a histogram; values beyond the 99.5th percentile share its last bar."""
    if not values:
        return ""
    top = float(np.percentile(values, 99.5))
    low = float(min(values))
    top = top if top > low else low + 1.0
    counts, edges = np.histogram(np.clip(values, low, top), bins=BARS, range=(low, top))
    highest = max(1, int(counts.max()))
    step = WIDTH / BARS
    bars = "".join(
        f'<rect x="{i * step + 1:.1f}" y="{HEIGHT * (1 - n / highest):.1f}" '
        f'width="{step - 2:.1f}" height="{HEIGHT * n / highest:.1f}">'
        f"<title>{edges[i]:.2f} to {edges[i + 1]:.2f}: {n}</title></rect>"
        for i, n in enumerate(counts)
    )
    middle = float(np.median(values))
    ticks = [(0.0, low, "start"), (WIDTH / 2, (low + top) / 2, "middle"), (WIDTH, top, "end")]
    labels = "".join(
        f'<text x="{x:.0f}" y="{HEIGHT + 16}" text-anchor="{anchor}">{value:.1f}</text>'
        for x, value, anchor in ticks
    )
    return (
        f"<figure><figcaption>{escape(title)} (median {middle:.2f})</figcaption>"
        f'<svg viewBox="0 -4 {WIDTH} {HEIGHT + 26}" width="{WIDTH}" role="img" '
        f'aria-label="{escape(title)}"><line x1="0" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}"/>'
        f'{bars}{labels}<text x="2" y="8">{highest}</text></svg></figure>'
    )

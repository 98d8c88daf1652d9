#!/usr/bin/env python3
"""Draws two regions and what crosses the WAN between them.

    docs/images/regions.py >docs/images/regions.svg"""

WORKER, PS, INK, PALE = "#cfe3f5", "#f6d9a8", "#30363d", "#f5f7f9"
out = []


def box(x, y, w, h, fill, *lines, dash=False):
    style = ' stroke-dasharray="5 4"' if dash else ""
    out.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{fill}" stroke="{INK}"{style}/>')
    for i, line in enumerate(lines):
        out.append(f'<text x="{x + w / 2}" y="{y + h / 2 + 5 + 16 * (i - (len(lines) - 1) / 2)}" text-anchor="middle">{line}</text>')


def text(x, y, words, anchor="middle", size=13):
    out.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{words}</text>')


def arrow(x1, y1, x2, y2, both=False):
    start = ' marker-start="url(#tip)"' if both else ""
    out.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" marker-end="url(#tip)"{start}/>')


def region(x, name, workers, inward):
    """inward: where its PS is, 1: on the right side."""
    box(x, 20, 270, 240, PALE, dash=True)
    text(x + 135, 42, f"region {name} (LAN)", size=14)
    ps = x + (165 if inward else 15)
    near = ps + (0 if inward else 90)
    box(ps, 105, 90, 60, PS, "parameter", "server")
    for i in range(workers):
        y = 60 + i * (165 - 36) / max(workers - 1, 1)
        w = x + (15 if inward else 165)
        box(w, y, 90, 36, WORKER, "worker")
        arrow(w + (90 if inward else 0), y + 18, near, 135, both=True)
    text(x + 135, 250, "its data stay here")


out.append('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 280" font-family="sans-serif" font-size="13" role="img" '
           'aria-label="Two regions. Workers exchange gradients and parameters with the parameter server of their region; the two '
           'parameter servers exchange updates or models over the WAN.">')
out.append(f'<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
           f'<path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>')
region(10, "A", 3, True)
region(560, "B", 2, False)
arrow(265, 125, 575, 125)
arrow(575, 145, 265, 145)
text(420, 75, "WAN: slow, unreliable, metered", size=14)
text(420, 115, "updates or models,")
text(420, 168, "every f steps")
text(420, 250, "never: samples")
out.append("</svg>")
print("\n".join(out))

"""A partial update of the screen, without what it does not touch.

Textual draws every widget whose container the update touches, whole, and all that lies under it: a new line
in the journal has the panes beside it and the rows behind it drawn too, only to be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class NearCompositor(Compositor):
    """Draws the widgets that the update touches, as far as they can be seen there."""

    _touched: frozenset[Region] = frozenset()

    def render_partial_update(self) -> ChopsUpdate | None:
        self._touched = frozenset(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._touched = frozenset()

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        return self._seen() if self._touched else super()._get_renders(crop)

    def _seen(self) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """The rows of each widget that the update touches, from the front to that which hides the rest."""
        left = set(self._touched)
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip)
            under = [part for part in left if seen.overlaps(part)]
            if not under:
                continue
            top = max(seen.y, min(part.y for part in under))
            bottom = min(seen.bottom, max(part.bottom for part in under))
            rows = Region(seen.x, top, seen.width, bottom - top)
            yield rows, rows, widget.render_lines(rows.translate(-region.offset))
            left.difference_update(part for part in under if seen.contains_region(part))
            if not left:
                return

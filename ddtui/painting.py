"""A partial update of the screen, without what it does not touch.

Textual draws every widget whose container the update touches: a new line in the journal has the panes beside
it drawn too, only to be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class NearCompositor(Compositor):
    """Draws the widgets that the update touches."""

    _touched: tuple[Region, ...] = ()

    def render_partial_update(self) -> ChopsUpdate | None:
        self._touched = tuple(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._touched = ()

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if not self._touched:
            return super()._get_renders(crop)
        every = self.visible_widgets
        self._visible_widgets = {
            widget: (region, clip)
            for widget, (region, clip) in every.items()
            if any(map(region.intersection(clip).overlaps, self._touched))
        }
        try:
            return list(super()._get_renders(crop))
        finally:
            self._visible_widgets = every

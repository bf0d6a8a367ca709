"""A partial update of the screen, without what it does not touch.

Textual draws every widget whose container the update touches: a new line in the journal has the panes beside
it drawn too, only to be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class NearCompositor(Compositor):
    """Draws the widgets that the update touches."""

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if not crop:
            return super()._get_renders(crop)
        every = self.visible_widgets
        self._visible_widgets = {
            widget: (region, clip)
            for widget, (region, clip) in every.items()
            if crop.overlaps(region.intersection(clip))
        }
        try:
            return list(super()._get_renders(crop))
        finally:
            self._visible_widgets = every

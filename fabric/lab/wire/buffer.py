"""The shared packet buffer: reserved, shared under a dynamic threshold, headroom; and when to pause and resume.

A frame is charged to the priority group through which it came, whole, to the first region that has room: the
group's reserve, the shared pool as far as T = alpha x free, and, in a lossless group, its headroom. Knows no queue.

Source: switches.md 5.4 for T; SAI saibuffer.h for XON: resume below the larger of xon and limit - xon_offset.
"""

from dataclasses import dataclass

__all__ = ("Charge", "GroupPlan", "SharedBuffer")


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One priority group of one port.

    Attributes:
        headroom_bytes: room above the XOFF threshold, 0 where the group is lossy.
        reserved_bytes: its own room below.
        xon_bytes: resume at or below this use. xon_offset_bytes: or at XOFF less this, whichever is more.
        alpha_log2: n of alpha = 2^n.
        static_bytes: fixed threshold in place of alpha, or None.
        pauses: PFC priorities of the peer that this group pauses; empty where PFC is off.
        lossless: whether the egress side keeps its frames too.
    """

    headroom_bytes: int = 0
    reserved_bytes: int = 0
    xon_bytes: int = 0
    xon_offset_bytes: int = 0
    alpha_log2: int = 0
    static_bytes: int | None = None
    pauses: tuple[int, ...] = ()
    lossless: bool = False


class Charge:
    """What one frame holds of the buffer until its last copy has left."""

    __slots__ = ("copies", "group", "size_bytes")

    def __init__(self, group: "_Group", size_bytes: int) -> None:
        self.group = group
        self.size_bytes = size_bytes
        self.copies = 1


class _Group:
    __slots__ = ("headroom", "index", "paused", "plan", "port", "reserved", "shared")

    def __init__(self, port: int, index: int, plan: GroupPlan) -> None:
        self.port = port
        self.index = index
        self.plan = plan
        self.reserved = self.shared = self.headroom = 0
        self.paused = False


class SharedBuffer:
    """The buffer of one switch.

    Args:
        shared_bytes: P, what the groups share.
        plans: by port, eight groups each.
        headroom_pool_bytes: what all headrooms together may use, None for each its own.
    """

    def __init__(
        self, shared_bytes: int, plans: tuple[tuple[GroupPlan, ...], ...], *, headroom_pool_bytes: int | None = None
    ) -> None:
        self.shared_bytes = shared_bytes
        self.used_bytes = 0
        self.headroom_used_bytes = 0
        self.headroom_peak_bytes = 0
        self._headroom_pool_bytes = headroom_pool_bytes
        self._groups = tuple(
            tuple(_Group(port, index, plan) for index, plan in enumerate(groups)) for port, groups in enumerate(plans)
        )

    def configure(
        self, shared_bytes: int, plans: tuple[tuple[GroupPlan, ...], ...], *, headroom_pool_bytes: int | None = None
    ) -> None:
        """Replaces sizes and thresholds; what is charged stays charged."""
        self.shared_bytes = shared_bytes
        self._headroom_pool_bytes = headroom_pool_bytes
        for groups, port_plans in zip(self._groups, plans, strict=True):
            for group, plan in zip(groups, port_plans, strict=True):
                group.plan = plan

    @property
    def free_bytes(self) -> int:
        """Returns what is left of the shared pool."""
        return max(0, self.shared_bytes - self.used_bytes)

    @property
    def charged_bytes(self) -> int:
        """Returns all bytes charged to any region."""
        return sum(group.reserved + group.shared + group.headroom for groups in self._groups for group in groups)

    def threshold_bytes(self, plan: GroupPlan) -> int:
        """Returns the XOFF threshold of now."""
        return plan.static_bytes if plan.static_bytes is not None else shifted(self.free_bytes, plan.alpha_log2)

    def admit(self, port: int, index: int, size_bytes: int) -> Charge | None:
        """Returns the charge of a frame that arrived, or None when there is no room for it."""
        group = self._groups[port][index]
        plan = group.plan
        if group.reserved + size_bytes <= plan.reserved_bytes:
            group.reserved += size_bytes
            return Charge(group, size_bytes)
        threshold = min(self.threshold_bytes(plan), group.shared + self.free_bytes)
        if group.shared + size_bytes <= threshold:
            group.shared += size_bytes
            self.used_bytes += size_bytes
            return Charge(group, size_bytes)
        if group.headroom + size_bytes > plan.headroom_bytes:
            return None
        pool = self._headroom_pool_bytes
        if pool is not None and self.headroom_used_bytes + size_bytes > pool:
            return None
        group.headroom += size_bytes
        self.headroom_used_bytes += size_bytes
        self.headroom_peak_bytes = max(self.headroom_peak_bytes, group.headroom)
        return Charge(group, size_bytes)

    def release(self, charge: Charge) -> bool:
        """Returns whether the last copy has left now, which gives the room back: headroom first, the reserve last."""
        charge.copies -= 1
        if charge.copies:
            return False
        group, left = charge.group, charge.size_bytes
        from_headroom = min(left, group.headroom)
        from_shared = min(left - from_headroom, group.shared)
        group.headroom -= from_headroom
        group.shared -= from_shared
        group.reserved -= left - from_headroom - from_shared
        self.headroom_used_bytes -= from_headroom
        self.used_bytes -= from_shared
        return True

    def pause_change(self, port: int, index: int, *, refused: bool = False) -> bool | None:
        """Returns True to pause the peer, False to resume it, None when nothing changes.

        `refused` says that a frame of this group has just found no room.
        """
        group = self._groups[port][index]
        plan = group.plan
        threshold = self.threshold_bytes(plan)
        if not group.paused:
            over = refused or group.headroom > 0 or group.shared >= threshold
            group.paused = over and bool(plan.pauses)
            return True if group.paused else None
        level = max(plan.xon_bytes, plan.reserved_bytes + threshold - plan.xon_offset_bytes)
        if group.headroom == 0 and group.reserved + group.shared <= level:
            group.paused = False
            return False
        return None

    def forget_pause(self, port: int, index: int) -> bool:
        """Returns whether the group held its peer, and forgets it."""
        group = self._groups[port][index]
        held, group.paused = group.paused, False
        return held

    def is_paused(self, port: int, index: int) -> bool:
        """Returns whether the group holds its peer now."""
        return self._groups[port][index].paused


def shifted(size_bytes: int, log2: int) -> int:
    """Returns size x 2^log2, rounded down."""
    return size_bytes << log2 if log2 >= 0 else size_bytes >> -log2

"""What is rendered, patched onto a text and read again, is what was meant; and what was foreign is still there."""

from dataclasses import replace

from hypothesis import given

from fabric.diff import Op, changes, future
from fabric.nos.sonic import SONIC
from fabric.nos.sonic.names import OWN_PREFIX
from fabric.qos import UNKNOWN, DeviceQos, Trust
from tests.strategies.sonic import Case, cases


def _after(case: Case, *, adopt: bool = True) -> str:
    intended = SONIC.render(case.qos, case.context)
    change_set = changes(case.context.running, intended, SONIC.rules, adopt=adopt)
    return SONIC.apply(case.base, SONIC.payload(change_set.forward, case.context.running))


def _ours(qos: DeviceQos, names: set[str]) -> DeviceQos:
    ports = tuple(port for port in qos.ports if port.name in names)
    return replace(qos, ports=ports, undefined=(), duplicates=())


@given(cases())
def test_what_is_rendered_reads_back_as_observable(case: Case) -> None:
    names = {port.name for port in case.qos.ports}
    found = SONIC.parse(_after(case), device="leaf1")
    assert _ours(found, names) == _ours(SONIC.observable(case.qos, case.context), names)


@given(cases())
def test_observable_keeps_all_that_config_db_can_hold(case: Case) -> None:
    for wanted, seen in zip(case.qos.ports, SONIC.observable(case.qos, case.context).ports, strict=True):
        assert (wanted.mtu_bytes, wanted.pfc) == (seen.mtu_bytes, seen.pfc)
        # a switch-level DSCP map holds beside the port's own 802.1p map
        assert seen.trust in {wanted.trust, Trust.BOTH}
        assert (wanted.dscp_to_tc or None, wanted.tc_to_queue, wanted.tc_to_pg) == (
            seen.dscp_to_tc if wanted.dscp_to_tc else None,
            seen.tc_to_queue,
            seen.tc_to_pg,
        )
        assert wanted.watchdog == seen.watchdog
        for queue in wanted.queues:
            if queue.scheduler is not None or queue.aqm is not None:
                assert seen.queue(queue.index) is not None
            if queue.lossless_buffer is True:
                found = seen.queue(queue.index)
                assert found is not None
                assert found.lossless_buffer is True


@given(cases())
def test_lossless_groups_are_lossless_where_the_device_has_a_way(case: Case) -> None:
    dynamic = '"dynamic"' in case.base.partition("PORT")[0]
    profiles = case.context.running.children("BUFFER_PROFILE")
    for wanted, seen in zip(case.qos.ports, SONIC.observable(case.qos, case.context).ports, strict=True):
        for group in wanted.priority_groups:
            has_profile = f"pg_lossless_{seen.speed_mbps}_{wanted.cable_m}m_profile" in profiles
            if group.lossless is True and (dynamic or has_profile or not group.derived_by_nos):
                others = [one for one in wanted.priority_groups if one.lossless is True]
                if dynamic or has_profile or all(not one.derived_by_nos for one in others):
                    found = seen.priority_group(group.index)
                    assert found is not None
                    assert found.lossless is True
                    assert found.derived_by_nos or (found.xoff_bytes is not UNKNOWN and found.xoff_bytes > 0)


@given(cases())
def test_text_after_the_patch_is_the_future_tree(case: Case) -> None:
    intended = SONIC.render(case.qos, case.context)
    change_set = changes(case.context.running, intended, SONIC.rules, adopt=case.context.adopt)
    text = SONIC.apply(case.base, SONIC.payload(change_set.forward, case.context.running))
    assert SONIC.tree(text) == future(case.context.running, change_set.forward)


@given(cases())
def test_rollback_gives_the_base_back(case: Case) -> None:
    intended = SONIC.render(case.qos, case.context)
    change_set = changes(case.context.running, intended, SONIC.rules, adopt=case.context.adopt)
    text = SONIC.apply(case.base, SONIC.payload(change_set.forward, case.context.running))
    back = SONIC.apply(text, SONIC.payload(change_set.backward, SONIC.tree(text)))
    assert SONIC.tree(back) == case.context.running


@given(cases())
def test_second_plan_is_empty(case: Case) -> None:
    text = _after(case)
    again = SONIC.render(case.qos, replace(case.context, running=SONIC.tree(text)))
    assert changes(SONIC.tree(text), again, SONIC.rules, adopt=True).forward == ()


@given(cases())
def test_ports_outside_the_intent_keep_what_they_had(case: Case) -> None:
    ours = {port.name for port in case.qos.ports}
    before = SONIC.parse(case.base)
    after = SONIC.parse(_after(case, adopt=False))
    outside = [port for port in before.ports if port.name not in ours]
    assert [after.port(port.name) for port in outside] == outside


@given(cases())
def test_nothing_foreign_is_removed_but_joined_keys(case: Case) -> None:
    ours = {port.name for port in case.qos.ports}
    intended = SONIC.render(case.qos, case.context)
    for change in changes(case.context.running, intended, SONIC.rules, adopt=True).forward:
        if change.op is Op.REMOVE:
            key = change.path[1]
            of_ours = bool(ours.intersection(key.partition("|")[0].split(",")))
            of_cable = change.path[0] == "CABLE_LENGTH" and change.path[2] in ours
            assert of_ours or of_cable or key.startswith(OWN_PREFIX), change

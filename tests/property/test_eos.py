"""What holds for every device that EOS can do, on every configuration that it may meet."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from fabric.diff import changes, future
from fabric.errors import UnsupportedFeatureError
from fabric.nos.base import RenderContext
from fabric.nos.eos import EOS
from fabric.nos.eos.lines import read, write
from fabric.qos import DeviceQos
from tests.strategies.eos import bases, contexts, device_qos


@given(qos=device_qos(), base=bases(), data=st.data())
def test_what_was_typed_is_read_back_as_what_was_planned_and_leaves_nothing_to_do(
    qos: DeviceQos, base: str, data: st.DataObject
) -> None:
    context = data.draw(contexts(base))
    wanted = _observable(qos, context)
    plan = changes(context.running, EOS.render(qos, context), EOS.rules, adopt=True)

    after = EOS.apply(base, EOS.payload(plan.forward, context.running))

    found = EOS.parse(after)
    assert found.global_dscp_to_tc == wanted.global_dscp_to_tc
    assert [found.port(port.name) for port in wanted.ports] == list(wanted.ports)
    again = replace(context, running=EOS.tree(after))
    assert changes(again.running, EOS.render(qos, again), EOS.rules, adopt=True).empty


@given(qos=device_qos(), base=bases(), data=st.data(), adopt=st.booleans())
def test_the_typed_text_is_the_future_and_its_rollback_the_past(
    qos: DeviceQos, base: str, data: st.DataObject, adopt: bool
) -> None:
    context = data.draw(contexts(base, adopt=adopt))
    _observable(qos, context)
    plan = changes(context.running, EOS.render(qos, context), EOS.rules, adopt=adopt)
    there = future(context.running, plan.forward)

    after = EOS.apply(base, EOS.payload(plan.forward, context.running))
    back = EOS.apply(after, EOS.payload(plan.backward, there))

    assert EOS.tree(after) == there
    assert EOS.tree(back) == context.running


@given(qos=device_qos(), asic=st.sampled_from(["", "jericho2"]), adopt=st.booleans())
def test_the_rendered_text_alone_is_read_back(qos: DeviceQos, asic: str, adopt: bool) -> None:
    context = RenderContext(asic=asic, adopt=adopt)

    found = EOS.parse(EOS.render(qos, context).text, device=qos.device)

    assert found.ports == EOS.observable(qos, context).ports


@given(base=bases())
def test_text_that_nobody_touches_stays_as_it_was(base: str) -> None:
    assert write(read(base)) == base
    assert EOS.apply(base, "") == base


def _observable(qos: DeviceQos, context: RenderContext) -> DeviceQos:
    try:
        EOS.render(qos, context)
    except UnsupportedFeatureError:  # two members of one port channel that shall differ
        assume(False)
    return EOS.observable(qos, context)

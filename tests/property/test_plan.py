"""What the planner plans, each network OS can say and reads back the same, with the capabilities it states itself."""

from hypothesis import given

from fabric.intent.model import Fabric, Switch
from fabric.nos import RenderContext, catalog
from fabric.plan import make_plan
from fabric.qos import Capabilities
from tests.strategies.fabrics import fabrics


def stated(switch: Switch) -> Capabilities:
    """Returns what the switch's network OS says of itself."""
    return catalog.get(switch.nos).capabilities(asic=switch.asic, version=switch.version)


@given(fabrics())
def test_plan_comes_back_from_every_dialect(fabric: Fabric) -> None:
    for planned in make_plan(fabric, stated).switches:
        nos = catalog.get(planned.nos)
        context = RenderContext(version=planned.version, asic=planned.asic, hwsku=planned.hwsku, adopt=planned.adopt)
        text = nos.render(planned.qos, context).text
        assert nos.parse(text, device=planned.device) == nos.observable(planned.qos, context)

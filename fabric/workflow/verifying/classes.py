"""The classes of a fabric as a verdict needs them: what is lossless, and through which queues and groups it goes."""

from fabric.compliance.closure import data_group, data_queue
from fabric.intent import Fabric
from fabric.plan import FabricPlan
from fabric.qos import UNKNOWN
from fabric.verify import SwitchQueue, TrafficClass
from fabric.workflow.subjects import planned_subjects

__all__ = ("traffic_classes",)


def traffic_classes(fabric: Fabric, plan: FabricPlan) -> tuple[TrafficClass, ...]:
    """Returns one class for each priority that hosts or targets put data on, as the plan has it.

    By the plan, not by what switches do now: a class that a switch puts elsewhere is what is to be found.
    """
    policies = [*(one.policy for one in fabric.hosts), *(one.policy for one in fabric.targets)]
    priorities = sorted({one.data_priority for one in policies})
    subjects = planned_subjects(fabric, plan)
    found = []
    for priority in priorities:
        own = [one for one in subjects if one.expected.data_priority == priority]
        queues = []
        for subject in own:
            port = next(iter(subject.judged_ports), None)
            if port is None:
                continue
            queue, group = data_queue(subject, port), data_group(subject, port)
            if queue is not UNKNOWN and group is not UNKNOWN:
                queues.append(SwitchQueue(subject.qos.device, queue, group))
        name = "storage" if len(priorities) == 1 else f"storage-{priority}"
        lossless = all(one.expected.lossless for one in own)
        found.append(TrafficClass(name, priority, lossless, tuple(queues)))
    return tuple(found)

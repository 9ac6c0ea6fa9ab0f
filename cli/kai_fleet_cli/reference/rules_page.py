"""The page about the rules, from what the rules say of themselves: docs/rules.md.

Written with `python -m kai_fleet_cli.reference.rules_page > docs/rules.md`; a test compares them.
"""

from kai_fleet_policies.pack.policies import EXEMPT_KEY, QUEUES_KEY, RESERVED_KEY, schema
from kai_fleet_policies.rules import RULES, Rule
from kubectl_fleet.rules.queue_tree import CHART_PARENT, EXISTING_QUEUES

_HEAD = """\
# The rules

Each rule is one file in `policies/kai_fleet_policies/rules/`, or in `kubectl/kubectl_fleet/rules/`
where `kubectl fleet` knows it, too. Each is asked three times: of a stack's settings before
anything is declared, of what is declared in the offline plan, and of any program's resources by the
policy pack at `pulumi preview` and `pulumi up`. What only shows at run time is held by the
[guard at admission](#at-admission).

A `mandatory` rule stops the preview, an `advisory` one is only shown. Where a rule needs a value
that only the update will know, it says so under the name `undecided`, and decides during the
update. Codes such as W1 name the trap behind a rule.

| rule | level | severity |
|---|---|---|
"""

_TAIL = f"""\
## Configuration of the pack

A JSON file for `--policy-pack-config`, as for any CrossGuard pack. Every rule takes a level
(`mandatory`, `advisory`, `disabled`), and `all` sets that of all rules:

```json
{{
  "queue-zero-quota": "disabled",
  "workload-gpu-request": "advisory",
  "queue-tree": {{"{EXISTING_QUEUES}": ["{CHART_PARENT}"]}},
  "workload-leaf-queue": {{
    "{EXEMPT_KEY}": ["lab"],
    "{QUEUES_KEY}": {{"team-web": ["serve"]}}
  }},
  "namespace-reserved": {{"{RESERVED_KEY}": ["platform"]}}
}}
```

`{EXEMPT_KEY}` goes with every `workload-` rule and with `namespace-reserved`: the namespaces whose
workloads that rule leaves alone. `{QUEUES_KEY}` lists the only queues that pods of a namespace may
name; namespaces that it does not list may name any leaf. `{RESERVED_KEY}` adds to the reserved
namespaces. `{EXISTING_QUEUES}` lists queues that another program makes, such as the
`{CHART_PARENT}` of KAI's chart: for `queue-tree` as parents, for `workload-leaf-queue` as leaves.

## In another program

The pack looks at any program's `kubernetes:*` resources: pods and everything that carries a pod
template, Queues, Namespaces and Helm releases, from `pulumi_kubernetes` in any language. It knows
the kinds whose operator writes the scheduler or the queue: those of KubeRay, Dynamo, Grove and
Kubeflow Trainer ([where each names its queue](ml-engineers.md#ray-dynamo-grove-and-kubeflow)).

```console
pulumi preview --policy-pack <this checkout>/policies --policy-pack-config rules.json
```

The pack runs in this checkout's environment (`make setup`). `rules.json` is optional.
[examples/other-program](../examples/other-program/README.md) is such a program with such a file.

## At admission

`QueueGuard` (`components/kai_fleet/guards/queue_guard.py`) declares a ValidatingAdmissionPolicy and
its binding for each team that KAI schedules: in virtual mode inside the team's vCluster, for all
namespaces; in host mode for the team's namespace on the host. It needs Kubernetes 1.30 or newer.
It denies what
`workload-leaf-queue`, `workload-scheduler`, `workload-known-keys`, `workload-gpu-request`,
`workload-gpu-sharing` and `namespace-reserved` refuse, in the same words, and names the queue and
the allowed ones:

```text
pods "train-a" is forbidden: ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding
'kai-fleet-queues-ml' denied request: pod train-a in namespace default names queue default, which is
no leaf queue of team ml; write the label kai.scheduler/queue: train or serve
```

- `kai-fleet:guard: {{mode: audit}}` lets such pods pass, with a warning to whoever makes them and
  an entry in the API server's audit log: for roll-out. `off` declares no guard; `deny` is the
  default.
- The guard sees pods. KAI also reads the queue from the label of a pod's Deployment or Job; write
  it in the pod template too, or the guard denies the pods. In mode virtual `kubectl apply` of the
  Deployment or Job warns of that in the same words, and takes it.
- Pods that are nothing to KAI are not looked at, KAI's own components and reservation pods among
  them.
- A pod that exists is judged again only where its queue, its scheduler or its GPU annotations
  change. What KAI itself writes on pods never counts, so a queue may go while its pods run.
- In host mode pods are made inside the vCluster and denied where they are copied to the host: the
  reason is in the events of the pod inside (`kubectl describe pod`).
"""


def page() -> str:
    """The whole page."""
    rows = [f"| [`{r.NAME}`](#{r.NAME}) | {r.LEVEL} | {r.SEVERITY} |" for r in RULES]
    sections = [_section(rule) for rule in RULES]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections) + "\n" + _TAIL


def _section(rule: Rule) -> str:
    what = (rule.__doc__ or "").strip()  # a rule is a module
    keys = ", ".join(f"`{key}`" for key in schema(rule.NAME))
    return "\n".join(
        [
            f"## {rule.NAME}\n",
            f"{what} ({rule.LEVEL}, severity {rule.SEVERITY})\n",
            f"Why: {rule.WHY}\n",
            f"Remedy: {rule.REMEDY}\n",
            *([f"Configuration: {keys}.\n"] if keys else []),
        ]
    )


if __name__ == "__main__":
    print(page(), end="")

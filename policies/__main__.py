"""The policy pack of a checkout, as Pulumi's language host runs it: `--policy-pack policies`.

The host runs the folder that it is given, whatever `main` says in PulumiPolicy.yaml.
"""

from kai_fleet_policies.pack.analyzer import main

main()

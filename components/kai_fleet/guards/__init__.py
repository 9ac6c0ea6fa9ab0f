"""Guards: ValidatingAdmissionPolicies as YAML, a team's bounds as a ConfigMap, and bindings."""

{{/*
The Deployments of a KAI version, each with the values key of its component. v0.7 and v0.8 have no
operator; from v0.10 a SchedulingShard makes the scheduler, and names it.
*/}}
{{- define "kai.components" -}}
{{- if semverCompare "<0.9.0" .Chart.Version -}}
scheduler: scheduler
binder: binder
podgrouper: podgrouper
podgroup-controller: podgroupcontroller
queuecontroller: queuecontroller
{{- else -}}
kai-operator: operator
{{ ternary "scheduler" "kai-scheduler-default" (semverCompare "<0.10.0" .Chart.Version) }}: scheduler
binder: binder
admission: admission
pod-grouper: podgrouper
podgroup-controller: podgroupcontroller
queue-controller: queuecontroller
{{- end -}}
{{- end -}}

{{- define "kai.labels" -}}
app.kubernetes.io/part-of: kai-scheduler
app.kubernetes.io/version: {{ .Chart.Version | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
kai-fleet/stand-in: "true"
{{- end -}}

{{/*
The Deployments that the chart itself declares, each with the values key of its component. v0.7 and
v0.8 have no operator; in later versions it makes what is missing here, once Helm is done.
*/}}
{{- define "kai.components" -}}
{{- if semverCompare "<0.9.0" .Chart.Version -}}
scheduler: scheduler
binder: binder
podgrouper: podgrouper
podgroup-controller: podgroupcontroller
queuecontroller: queuecontroller
{{- if semverCompare ">=0.7.13" .Chart.Version }}
kai-admission: admission
{{- end }}
{{- else -}}
kai-operator: operator
{{- if semverCompare "<0.10.0" .Chart.Version }}
scheduler: scheduler
{{- end }}
{{- if semverCompare ">=0.9.4 <0.10.0" .Chart.Version }}
binder: binder
{{- end }}
{{- end -}}
{{- end -}}

{{- define "kai.labels" -}}
app.kubernetes.io/part-of: kai-scheduler
app.kubernetes.io/version: {{ .Chart.Version | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
kai-fleet/stand-in: "true"
{{- end -}}

{{/*
What the operator makes the rest from. The node selector is passed on from v0.13 only.
*/}}
{{- define "kai.config" -}}
apiVersion: kai.scheduler/v1
kind: Config
metadata:
  name: kai-config
  labels:
    {{- include "kai.labels" . | nindent 4 }}
  annotations:
    # So that a chart that declares it may take over one that a hook made.
    meta.helm.sh/release-name: {{ .Release.Name }}
    meta.helm.sh/release-namespace: {{ .Release.Namespace }}
    {{- if semverCompare ">=0.9.5 <0.12.0 || >=0.13.0 <0.14.0" .Chart.Version }}
    # In these versions a hook makes it, anew at each upgrade; uninstalling leaves it behind.
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
    {{- else if semverCompare ">=0.12.0" .Chart.Version }}
    # In these versions a job applies it, which changes the one that is there; uninstalling
    # leaves it behind.
    helm.sh/resource-policy: keep
    {{- end }}
spec:
  namespace: {{ .Release.Namespace }}
  global:
    schedulerName: kai-scheduler
    queueLabelKey: kai.scheduler/queue
    {{- if semverCompare ">=0.18.0" .Chart.Version }}
    gpuSharingMode: {{ .Values.global.gpuSharingMode | default "NonMemoryEnforced" }}
    {{- end }}
    {{- if semverCompare ">=0.13.0" .Chart.Version }}
    {{- with .Values.global.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- end }}
    {{- with .Values.global.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .Values.global.affinity }}
    affinity:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  {{- range $part, $key := dict "scheduler" "scheduler" "binder" "binder" "podGrouper" "podgrouper" "podGroupController" "podgroupcontroller" "queueController" "queuecontroller" "admission" "admission" }}
  {{ $part }}:
    {{- if and (eq $part "admission") (semverCompare "<0.18.0" $.Chart.Version) }}
    gpuSharing: {{ $.Values.global.gpuSharing }}
    {{- end }}
    service:
      image: {name: {{ $key }}, tag: {{ $.Chart.Version | quote }}}
      {{- with (index $.Values $key | default dict).resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- end }}
{{- end -}}

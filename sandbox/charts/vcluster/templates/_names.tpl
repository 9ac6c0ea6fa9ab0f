{{- define "vcluster.labels" -}}
app: vcluster
chart: "vcluster-{{ .Chart.Version }}"
release: {{ .Release.Name | quote }}
heritage: {{ .Release.Service | quote }}
{{- end -}}

{{- define "vcluster.clusterRole" -}}
{{ printf "vc-%s-v-%s" .Release.Name .Release.Namespace | trunc 63 | trimSuffix "-" }}
{{- end -}}

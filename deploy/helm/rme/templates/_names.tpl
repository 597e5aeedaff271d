{{/* A Service's name begins with a letter and has no dots; that of a release may be otherwise. */}}
{{- define "rme.name" -}}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- fail (printf "The release's name, %s, must begin with a letter." .Release.Name) -}}
{{- end -}}
{{- $name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select the pods of a component; they never change. */}}
{{- define "rme.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "rme.labels" -}}
{{ include "rme.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "rme.metadata" -}}
name: {{ include "rme.name" .root }}-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "rme.labels" . | nindent 2 }}
{{- end -}}

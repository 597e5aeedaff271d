{{/* Refuses bounds that Kubernetes would refuse when the migrations have run. */}}
{{- define "rme.checkScaling" -}}
{{- if gt (int64 .scaling.min) (int64 .scaling.max) -}}
{{- fail (printf "%s.autoscaling: min is %v and max %v." .place .scaling.min .scaling.max) -}}
{{- end -}}
{{- end -}}

{{/* How many connections to PostgreSQL all web pods of a rolling upgrade may open. */}}
{{- define "rme.webConnections" -}}
{{- $settings := .Values.settings -}}
{{- $threads := add 1 (int64 (default 4 $settings.WEB_THREADS)) (int64 (default 4 $settings.SENDING_THREADS)) -}}
{{- $process := min $threads (int64 (default 10 $settings.DATABASE_POOL)) -}}
{{- $pods := int64 (ternary .Values.web.autoscaling.max .Values.web.replicas .Values.web.autoscaling.enabled) -}}
{{- mul (add 1 $pods) (int64 (default 2 $settings.WEB_WORKERS)) $process -}}
{{- end -}}

{{/* How workers are scaled by the age of the oldest delivery that is ready on their channel. */}}
{{- define "rme.scaling.behavior" -}}
scaleUp:
  policies:
    - type: Percent
      value: 100
      periodSeconds: 60
scaleDown:
  stabilizationWindowSeconds: 600
  policies:
    - type: Pods
      value: 1
      periodSeconds: 60
{{- end -}}

{{- define "rme.scaling.external" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{- include "rme.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "rme.name" .root }}-{{ .component }}
  minReplicas: {{ .scaling.min }}
  maxReplicas: {{ .scaling.max }}
  metrics:
    - type: External
      external:
        metric:
          name: {{ .scaling.metric }}
          {{- with .channel }}
          selector:
            matchLabels:
              channel: {{ . }}
          {{- end }}
        target:
          type: Value
          value: {{ .scaling.targetSeconds | quote }}
  behavior: {{- include "rme.scaling.behavior" . | nindent 4 }}
{{- end -}}

{{- define "rme.scaling.keda" -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {{- include "rme.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    name: {{ include "rme.name" .root }}-{{ .component }}
  minReplicaCount: {{ .scaling.min }}
  maxReplicaCount: {{ .scaling.max }}
  pollingInterval: 15
  triggers:
    - type: prometheus
      metricType: Value
      metadata:
        serverAddress: {{ .scaling.prometheusAddress }}
        query: {{ printf "max(%s{namespace=%q%s})" .scaling.metric .root.Release.Namespace (ternary (printf ",channel=%q" .channel) "" (ne .channel "")) | quote }}
        threshold: {{ .scaling.targetSeconds | quote }}
        # Without data nothing is known: KEDA would take it for 0 and remove workers.
        ignoreNullValues: "false"
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{- include "rme.scaling.behavior" . | nindent 8 }}
{{- end -}}

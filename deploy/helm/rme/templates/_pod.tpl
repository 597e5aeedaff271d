{{/*
The template of a pod. It takes: root, component, container (command, probes, ports, resources,
lifecycle), spec (what the pod has beyond the rest), env (variables beyond the settings) and secrets
(the keys of the Secret that it sees; without it all).
*/}}
{{- define "rme.pod" -}}
{{- $root := .root -}}
{{- $pod := $root.Values.pod -}}
metadata:
  labels:
    {{- include "rme.selector" . | nindent 4 }}
    {{- with $pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    rme/secrets-version: {{ $root.Values.secrets.version | quote }}
    {{- with $pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with .spec }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false  # variables of other services could be taken for settings
  {{- with $pod.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with $pod.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pod.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $pod.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .component }}
      image: {{ $root.Values.image.repository }}@{{ $root.Values.image.digest }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        privileged: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      env: {{- include "rme.environment" $root | nindent 8 }}
        {{- with .env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- toYaml .container | nindent 6 }}
      volumeMounts:
        - name: secrets
          mountPath: /run/secrets/rme
          readOnly: true
        - name: var
          mountPath: /var/lib/rme
        - name: tmp
          mountPath: /tmp
        {{- with $root.Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: secrets
      secret:
        secretName: {{ $root.Values.secrets.existingSecret }}
        defaultMode: 0440
        {{- with .secrets }}
        items:
          {{- range . }}
          - {key: {{ . }}, path: {{ . }}}
          {{- end }}
        {{- end }}
    - name: var
      emptyDir:
        medium: Memory
        sizeLimit: 16Mi
    - name: tmp
      emptyDir:
        sizeLimit: {{ $pod.tmpSize }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Pods of a component go to different zones, and in them to different nodes. */}}
{{- define "rme.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: {{ .root.Values.zones.whenUnsatisfiable }}
    nodeTaintsPolicy: Honor
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "rme.selector" . | nindent 8 }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    nodeTaintsPolicy: Honor
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "rme.selector" . | nindent 8 }}
{{- end -}}

{{/* One pod of a component at a time may be evicted; one that is broken always. */}}
{{- define "rme.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "rme.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "rme.selector" . | nindent 6 }}
{{- end -}}

{{/* Probes that run `python -m rme.probe` with some arguments. A worker has started once it has done
     a task: one that fails at every task ends no rolling upgrade. */}}
{{- define "rme.execProbes" -}}
startupProbe:
  exec:
    command: {{ toJson (concat (list "python" "-m" "rme.probe") . (ternary (list "--worked") list (eq (first .) "worker"))) }}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 36
livenessProbe:
  exec:
    command: {{ toJson (concat (list "python" "-m" "rme.probe") .) }}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 3
{{- end -}}

{{/* For how long a worker may end what it has in hand, in seconds. */}}
{{- define "rme.workerGrace" -}}
{{- $lease := float64 (default 60 .Values.settings.LEASE_SECONDS) -}}
{{- $grace := default (int64 (ceil (addf (divf $lease 2) 90))) .Values.worker.terminationGracePeriodSeconds -}}
{{- if lt (float64 $grace) (divf $lease 2) -}}
{{- fail (printf "worker.terminationGracePeriodSeconds is %v: a worker waits for half of LEASE_SECONDS (%v) for what is in flight." $grace $lease) -}}
{{- end -}}
{{- $grace -}}
{{- end -}}

{{/* For how long web and router may end what they have in hand, in seconds. */}}
{{- define "rme.webGrace" -}}
{{- $least := add .Values.web.drainSeconds 10 -}}
{{- if lt (int64 .Values.web.terminationGracePeriodSeconds) $least -}}
{{- fail (printf "web.terminationGracePeriodSeconds is %v: after web.drainSeconds (%v) requests have 8 s to end, so at least %d." .Values.web.terminationGracePeriodSeconds .Values.web.drainSeconds $least) -}}
{{- end -}}
{{- .Values.web.terminationGracePeriodSeconds -}}
{{- end -}}

{{/* The probes of what answers HTTP, and its time until proxies know that it ends. */}}
{{- define "rme.httpProbes" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 4
  # Ten minutes: the database is one for all pods, so all would leave the Service at once, and callers
  # would get the proxy's error instead of a 503 that says when to come again.
  failureThreshold: 120
lifecycle:
  preStop:  # requests come until all proxies know that it ends
    exec: {command: [sleep, {{ .Values.web.drainSeconds | quote }}]}
{{- end -}}

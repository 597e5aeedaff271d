{{/* All variables that hold a secret, as rme/core/environment/secret_files.py lists them. */}}
{{- define "rme.secretNames" -}}
ARCHIVE_S3_SECRET CELERY_BROKER_URL CELL_SECRET DATABASE_DIRECT_URL DATABASE_URL FIELD_KEYS METRICS_TOKEN MOVE_DATABASE_URL OIDC_CLIENT_SECRET OTEL_EXPORTER_OTLP_HEADERS REDIS_URL SECRET_KEY SECRET_KEY_FALLBACKS SMTP_URL VAPID_PRIVATE_KEY
{{- end -}}

{{/* A setting as the service reads it. Helm would write 1000000 as 1e+06. */}}
{{- define "rme.setting" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- int64 . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{- define "rme.environment" -}}
{{- $secrets := splitList " " (include "rme.secretNames" .) -}}
- name: RME_VAR
  value: /var/lib/rme
- name: SECRETS_DIR
  value: /run/secrets/rme
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ include "rme.setting" $value | quote }}
{{- end }}
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name (list "HOST" "METRICS_DIR" "METRICS_PORT" "PORT" "RME_VAR" "SECRETS_DIR" "STATIC_ROOT" "WORKER_CONCURRENCY") }}
{{- fail (printf "extraEnv must not have %s: the chart has it." .name) }}
{{- end }}
{{- if has (trimSuffix "_FILE" .name) $secrets }}
{{- fail (printf "extraEnv must not have %s: it is a secret, which belongs into the Secret %s." .name $.Values.secrets.existingSecret) }}
{{- end }}
{{- if and .value (regexMatch "(PASSWORD|SECRET|ACCESS_KEY|TOKEN|API_KEY|HEADERS)$" .name) }}
{{- fail (printf "extraEnv.%s: a secret comes by valueFrom.secretKeyRef, and not as a plain value." .name) }}
{{- end }}
- {{ toYaml . | nindent 2 | trim }}
{{- end }}
{{- end -}}

{{- /* repository, and tag or digest of an image. */}}
{{- define "pointsman.reference" -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else if .tag }}:{{ .tag }}{{ end }}
{{- end }}

{{- define "pointsman.image" -}}
{{ include "pointsman.reference" (merge (dict "tag" (.Values.image.tag | default .Chart.AppVersion)) .Values.image) }}
{{- end }}

{{- define "pointsman.name" -}}
{{ eq .Values.install "trial" | ternary "kube-proxy-pointsman" "kube-proxy" }}
{{- end }}

{{- define "pointsman.label" -}}
{{ eq .Values.install "trial" | ternary "pointsman" "kube-proxy" }}
{{- end }}

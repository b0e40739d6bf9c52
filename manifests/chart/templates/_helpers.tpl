{{- define "orbweaver.labels" -}}
app.kubernetes.io/part-of: orbweaver
{{- end }}

{{- /* Named labels are also what is selected by: they may not change between versions. */}}
{{- define "orbweaver.operator" -}}
app.kubernetes.io/name: orbweaver-operator
{{- end }}
{{- define "orbweaver.agent" -}}
app.kubernetes.io/name: orbweaver-agent
{{- end }}

{{- define "orbweaver.image" -}}
{{- $registry := .root.Values.global.imageRegistryOverride | default .root.Values.image.registry -}}
{{- printf "%s%s:%s" (ternary (printf "%s/" $registry) "" (ne $registry "")) .name (toString .root.Values.image.tag) -}}
{{- end }}

{{- define "orbweaver.webhook" -}}
{{- if or .Values.spiderpoolController.webhook.enabled .Values.spiderpoolController.podResourceInject.enabled -}}true{{- end -}}
{{- end }}

{{- /* --set gives one string where a list is meant: vendors="15b3" or "15b3,8086". */}}
{{- define "orbweaver.list" -}}
{{- if kindIs "slice" . -}}{{ toJson . }}{{- else if . -}}{{ splitList "," (toString .) | toJson }}{{- else -}}[]{{- end -}}
{{- end }}

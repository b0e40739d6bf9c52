{{- define "orbweaver.labels" -}}
app.kubernetes.io/part-of: orbweaver
{{- with .Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Named labels are also what is selected by: they may not change between versions. */}}
{{- define "orbweaver.operator" -}}
app.kubernetes.io/name: orbweaver-operator
{{- end }}
{{- define "orbweaver.agent" -}}
app.kubernetes.io/name: orbweaver-agent
{{- end }}

{{- define "orbweaver.annotations" -}}
{{- with .Values.global.commonAnnotations -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A file of manifests/, in this namespace, with labels (besides: .labels) and annotations that all objects have. */}}
{{- define "orbweaver.file" -}}
{{- $labels := printf "  labels:\n%s" (include "orbweaver.labels" .root | indent 4) -}}
{{- with .labels -}}
{{- $labels = printf "%s\n%s" $labels (toYaml . | indent 4) -}}
{{- end -}}
{{- with include "orbweaver.annotations" .root -}}
{{- $labels = printf "%s\n%s" (indent 2 .) $labels -}}
{{- end -}}
{{- .text | replace "orbweaver-system" .root.Release.Namespace | replace "  labels:\n    app.kubernetes.io/part-of: orbweaver" $labels -}}
{{- end }}

{{- define "orbweaver.image" -}}
{{- $registry := .root.Values.image.registry -}}
{{- $tag := toString (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- printf "%s%s:%s" (ternary (printf "%s/" $registry) "" (ne $registry "")) .name $tag -}}
{{- end }}

{{- define "orbweaver.webhook" -}}
{{- if or .Values.spiderpoolController.webhook.enabled .Values.spiderpoolController.podResourceInject.enabled -}}true{{- end -}}
{{- end }}

{{- /* --set gives one string where a list is meant: vendors="15b3" or "15b3,8086". */}}
{{- define "orbweaver.list" -}}
{{- if kindIs "slice" . -}}{{ toJson . }}{{- else if . -}}{{ splitList "," (toString .) | toJson }}{{- else -}}[]{{- end -}}
{{- end }}

{{- /* Of the agent: a ConfigMap that exists, else the one that the chart makes, else "". */}}
{{- define "orbweaver.deviceSource" -}}
{{- if .configMap }}{{ .configMap }}{{ else if .list }}{{ .made }}{{ end -}}
{{- end }}

{{- /*
	The conf.yml of spiderpool-conf. In one that exists an absent switch is off (docs/ipam.md), so each is written. What a value
	does not say, and what others wrote, stays as it is in the cluster.
*/}}
{{- define "orbweaver.conf" -}}
{{- $conf := dict "enableIPv4" true "enableIPv6" true "enableStatefulSet" true "enableKubevirtStaticIP" true
	"enableIPConflictDetection" false "enableGatewayDetection" false -}}
{{- with lookup "v1" "ConfigMap" .Release.Namespace "spiderpool-conf" -}}
{{- $there := index (.data | default dict) "conf.yml" | default "" | fromYaml -}}
{{- if hasKey $there "Error" -}}
{{- fail (printf "ConfigMap %s/spiderpool-conf: data[conf.yml] is not YAML: correct it, or delete the ConfigMap" .metadata.namespace) -}}
{{- end -}}
{{- $conf = mustMergeOverwrite $conf $there -}}
{{- end -}}
{{- range $name, $value := .Values.ipam -}}
{{- if and (hasKey $conf $name) (not (kindIs "invalid" $value)) -}}
{{- $_ := set $conf $name $value -}}
{{- end -}}
{{- end -}}
{{- $inject := .Values.spiderpoolController.podResourceInject -}}
{{- $_ := set $conf "podResourceInject" (dict "enabled" $inject.enabled "namespacesExclude" $inject.namespacesExclude
	"namespacesInclude" $inject.namespacesInclude "networkResources" $inject.networkResources) -}}
{{- toYaml $conf -}}
{{- end }}

{{- /* Names of values that were set and are none of this chart's, one a line: prefix, values, known. */}}
{{- define "orbweaver.unknown" -}}
{{- $known := .known -}}
{{- $prefix := .prefix -}}
{{- range $name, $value := .values -}}
{{- $path := printf "%s%s" $prefix $name -}}
{{- $inner := false -}}
{{- range $known -}}{{- if hasPrefix (printf "%s." $path) . -}}{{- $inner = true -}}{{- end -}}{{- end -}}
{{- if or (has $path $known) (has (printf "%s.*" $path) $known) -}}
{{- else if and $inner (kindIs "map" $value) -}}
{{ include "orbweaver.unknown" (dict "prefix" (printf "%s." $path) "values" $value "known" $known) }}
{{- else if kindIs "map" $value -}}
{{- range $inner, $_ := $value }}{{ $path }}.{{ $inner }}
{{ end -}}
{{- else -}}
{{ $path }}
{{ end -}}
{{- end -}}
{{- end }}

{{- /*
	A release of Spiderpool is not upgraded in place: Helm would remove what this chart does not have, its agent, Multus and all CNI
	plugins, from under running pods. With --reuse-values the values are those of Spiderpool's chart; without, its objects are there.
*/}}
{{- define "orbweaver.refuseSpiderpool" -}}
{{- $why := "" -}}
{{- if not (hasKey .Values "profile") -}}
{{- $why = "its values (--reuse-values) are those of Spiderpool's chart" -}}
{{- else -}}
{{- range $kind, $name := dict "DaemonSet" "spiderpool-agent" "Deployment" "spiderpool-controller" -}}
{{- with lookup "apps/v1" $kind $.Release.Namespace $name -}}
{{- if eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" .) $.Release.Name -}}
{{- $why = printf "%s %s/%s belongs to it" $kind $.Release.Namespace $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $why -}}
{{- fail (printf "release %s is Spiderpool's (%s), and an upgrade in place would remove its agent, Multus and all CNI plugins from nodes with running pods. Leave it as it is and follow docs/migrate.md from step 1: it saves, stops what would conflict (step 3), and only then installs this chart as a release of its own in orbweaver-system, without --reuse-values (step 4); release %s goes last, with --no-hooks, because its hook deletes all Spiderpool objects (step 7)" .Release.Name $why .Release.Name) -}}
{{- end -}}
{{- end }}

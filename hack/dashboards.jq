# SPDX-License-Identifier: Apache-2.0
# Dashboards from their description (manifests/overlays/dashboards/panels says how it reads). Input: its lines (-Rn). Output: an
# array of dashboards as Grafana takes them, or an error that names the line.
#
#	--rawfile lists    tests/golden-metrics/*.txt, one behind the other: names and labels that there are

def fields: split(" | ") | map(gsub("^\\s+|\\s+$"; ""));

# { NAME: [LABEL] } of all metrics; histograms under the names of their series, too.
def known: [ $lists | split("\n")[] | select(. != "") | split(" ") | { name: .[0], type: .[1],
		labels: (if .[2] == "-" then [] else .[2] | split(",") end) } |
	(., if .type == "histogram" then { name: (.name + "_sum", .name + "_count"), labels },
		{ name: (.name + "_bucket"), labels: (.labels + ["le"]) } else empty end) ] |
	map({ key: .name, value: .labels }) | from_entries;

# What Prometheus adds to whatever it scrapes.
def of_targets: ["instance", "job", "namespace", "pod", "container", "node", "cluster"];

def metrics_in: [scan("([A-Za-z_:][A-Za-z0-9_:]*)\\{")[0]] | unique;
def labels_in: [(scan("\\b(?:by|on|ignoring|group_left) \\(([^)]*)\\)")[0] | split(",")[]),
	(scan("\\{([^}]*)\\}")[0] | scan("([A-Za-z_][A-Za-z0-9_]*)\\s*(?:=|!=)")[0])] | map(gsub("\\s"; "")) | unique - [""];
def without_texts: gsub("\"[^\"]*\""; "\"\"");

# A query has braces behind each metric, and names and labels that there are.
def checked($known; $where; $more):
	. as $query | (without_texts | metrics_in) as $metrics |
	if $metrics == [] then error("\($where): no metric in \"\($query)\"") else . end |
	($metrics - ($known | keys)) as $unknown |
	if $unknown != [] then error("\($where): no metric of ours: \($unknown | join(", "))") else . end |
	([without_texts | scan("[A-Za-z_:][A-Za-z0-9_:]*(?![A-Za-z0-9_:{])")] | map(select($known[.]))) as $bare |
	if $bare != [] then error("\($where): braces belong behind \($bare | join(", "))") else . end |
	((labels_in + $more) - of_targets - [$metrics[] as $m | $known[$m][]]) as $strange |
	if $strange != [] then error("\($where): no label of \($metrics | join(", ")): \($strange | join(", "))") else . end;

# The user's cluster, where several are in one Prometheus: into all braces.
def for_cluster: gsub("\\{"; "{cluster=~\"$cluster\", ") | gsub(", \\}"; "}");

# ---- reading ------------------------------------------------------------------------------------

def read_line($known):
	.line += 1 | "line \(.line)" as $where | .text as $text |
	if ($text | test("^(#|\\s*$)")) then .
	elif ($text | test("^\t")) then
		($text | fields) as [$query, $legend] |
		if .panel | not then error("\($where): a query without a panel") else . end |
		if $legend | not then error("\($where): a query without a legend") else . end |
		(if .panel.kind == "table" then $legend | split(", ") else [$legend | scan("\\{\\{([^}]*)\\}\\}")[0]] end) as $of |
		($query | checked($known; $where; $of)) as $query |
		.boards[-1].parts[-1].queries += [{ $query, $legend }]
	else
		($text | index(" ") // length) as $n | $text[:$n] as $word | ($text[$n + 1:] | fields) as $f |
		if $word != "dashboard" and .boards == [] then error("\($where): no dashboard yet") else . end |
		if $word == "dashboard" then
			if $f | length != 3 then error("\($where): dashboard NAME | TITLE | ABOUT") else . end |
			.panel = null | .boards += [{ name: $f[0], title: $f[1], about: $f[2], choices: [], parts: [] }]
		elif $word == "choose" then
			if $f | length != 3 then error("\($where): choose VARIABLE | SERIES | LABEL") else . end |
			($f[1] | checked($known; $where; [$f[2]])) as $series |
			.boards[-1].choices += [{ name: $f[0], title: $f[0], $series, of: $f[2] }]
		elif $word == "row" then .panel = null | .boards[-1].parts += [{ row: $f[0] }]
		elif ["lines", "number", "bars", "table"] | index($word) then
			if ($f | length < 3) or ($f[2] | test("^([1-9]|1[0-9]|2[0-4])$") | not) then
				error("\($where): \($word) TITLE | UNIT | WIDTH of 24 | ABOUT") else . end |
			.panel = { kind: $word } | .boards[-1].parts += [{ kind: $word, title: $f[0], unit: $f[1], width: ($f[2] | tonumber),
				about: ($f[3] // ""), queries: [] }]
		else error("\($where): what is \"\($word)\"?") end
	end;

# ---- writing ------------------------------------------------------------------------------------

def source: { type: "prometheus", uid: "${datasource}" };

def heights: { number: 4, lines: 8, bars: 8, table: 8 };

# Rows of 24, one beside the other as long as there is room.
def placed:
	reduce .[] as $part ({ x: 0, y: 0, high: 0, out: [] };
		if $part.row then { x: 0, y: (.y + .high + 1), high: 0, out: (.out + [$part + { at: { x: 0, y: (.y + .high), w: 24, h: 1 } }]) }
		else heights[$part.kind] as $h |
			if .x + $part.width > 24 then .x = 0 | .y += .high | .high = 0 else . end |
			.out += [$part + { at: { x, y, w: $part.width, h: $h } }] | .x += $part.width | .high = ([.high, $h] | max)
		end) | .out;

def options:
	if .kind == "lines" then { legend: { displayMode: "list", placement: "bottom", showLegend: true },
		tooltip: { mode: "multi", sort: "desc" } }
	elif .kind == "number" then { colorMode: "none", graphMode: "area", textMode: (if .queries | length > 1 then "value_and_name" else "value" end),
		reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false } }
	elif .kind == "bars" then { displayMode: "basic", orientation: "horizontal",
		reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false } }
	else { showHeader: true, cellHeight: "sm" } end;

def defaults:
	{ unit, min: (if .kind == "table" then null else 0 end), max: (if .kind == "bars" and .unit == "percentunit" then 1 else null end),
		custom: (if .kind == "lines" then { drawStyle: "line", lineWidth: 1, fillOpacity: 8, showPoints: "never", spanNulls: false }
			else null end) } | with_entries(select(.value != null));

def target($kind; $i):
	{ datasource: source, refId: ([65 + $i] | implode), expr: (.query | for_cluster) } +
	(if $kind == "table" then { format: "table", instant: true, range: false }
	else { legendFormat: .legend, range: true } end);

def panel($id):
	if .row then { id: $id, type: "row", title: .row, collapsed: false, gridPos: .at, panels: [] }
	else . as $part | { id: $id, type: { lines: "timeseries", number: "stat", bars: "bargauge", table: "table" }[.kind], title, gridPos: .at,
		datasource: source, fieldConfig: { defaults: defaults, overrides: [] }, options: options,
		targets: (.queries | to_entries | map(.key as $i | .value | target($part.kind; $i))) } +
		(if .about == "" then {} else { description: .about } end) +
		(if .kind == "table" then { transformations: [{ id: "organize", options: { excludeByName: { Time: true },
			indexByName: ([.queries[].legend | split(", ")[]] + ["Value"] | to_entries | map({ key: .value, value: .key }) | from_entries) } }] }
		else {} end)
	end;

def variable: "label_values(\(.series), \(.of))" as $query |
	{ name, "label": .title, type: "query", datasource: source, query: { $query, refId: "A" }, definition: $query, refresh: 2, sort: 1,
	includeAll: true, multi: true, allValue: ".*", current: { text: "All", value: "$__all" } };

def board: {
	uid: "orbweaver-\(.name)", title, description: .about, tags: ["orbweaver"], schemaVersion: 38, version: 1, editable: true,
	refresh: "30s", time: { from: "now-1h", to: "now" }, timezone: "browser",
	links: [{ type: "dashboards", title: "Orbweaver", tags: ["orbweaver"], asDropdown: true, includeVars: true, keepTime: true }],
	templating: { list: ([{ name: "datasource", "label": "Prometheus", type: "datasource", query: "prometheus", current: {} }] +
		[{ name: "cluster", title: "cluster", series: "orbweaver_leader{}", of: "cluster" }, (.choices[] | .series |= for_cluster) | variable]) },
	panels: (.parts | placed | to_entries | map((.key + 1) as $id | .value | panel($id)))
};

known as $known | reduce inputs as $text ({ line: 0, boards: [], panel: null }; .text = $text | read_line($known)) |
[.boards[] | (.parts[] | select(.kind and .queries == []) | error("\(.title): no query")), board] |
if (map(.uid) | unique | length) == length then . else error("two dashboards of one name") end

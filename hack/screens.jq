# SPDX-License-Identifier: Apache-2.0
# A dashboard as Grafana would show it, as SVG: for hack/dashboards screens. A panel is one <g class="panel">; what is drawn of data has
# the class "value". Whole numbers in paths, and no more points than the lines need, keep the files small and their lines to be compared.
#
# Input: { title, about, minutes, from, to, step, choices: [{ name, value }], panels: [{ type, title, unit, columns, at: { x, y, w, h },
# targets: [{ legend, series }] }] }, times in seconds, series as Prometheus' HTTP API has them.

def unit_px: 50;			# of 24 across
def row_px: 30;
def margin_px: 16;
def legend_lines: 3;		# at most
def colours: ["#3f72af", "#3d8b6e", "#c98a1b", "#bf4b43", "#7d62a8", "#3a9bb0", "#a56a3a", "#6f8a2f", "#b8659a", "#66758c"];

# ---- text ---------------------------------------------------------------------------------------

# Widths of Helvetica, which Arial and Liberation Sans share, from " " to "~"; a thousandth of the size.
def widths: [278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556,
	556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667,
	778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222,
	222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584];

# In pixels, with room for fonts that are wider.
def width($size): [explode[] | widths[. - 32] // 600] | add // 0 | . * $size * 1.1 / 1000;

def bold_width($size): width($size) * 1.2;

def cut($room; $size):
	if width($size) <= $room then . else until(length == 0 or (. + "…" | width($size)) <= $room; .[:-1]) + "…" end;

def px: . * 10 | round / 10 | tostring;

# ---- numbers ------------------------------------------------------------------------------------

# Three digits that count.
def short: if . == 0 then 0 else (fabs | log10 | floor - 2) as $digits |
	if $digits < 0 then (. * pow(10; -$digits) | round) / pow(10; -$digits) else (. / pow(10; $digits) | round) * pow(10; $digits) end end;

def scaled($by; $names): { value: ., i: 0 } |
	until((.value | short | fabs) < $by or .i == ($names | length) - 1; { value: (.value / $by), i: (.i + 1) }) |
	"\(.value | short)\($names[.i])";

def seconds:
	if . == 0 then "0 s"
	elif . >= 2 * 86400 then "\(. / 86400 | short) d"
	elif . >= 2 * 3600 then "\(. / 3600 | short) h"
	elif . >= 120 then "\(. / 60 | short) min"
	else . * 1e9 | scaled(1000; [" ns", " µs", " ms", " s"]) end;

def shown($unit):
	if $unit == "s" then seconds
	elif $unit == "percentunit" then "\(. * 100 | short) %"
	elif $unit == "bytes" then scaled(1024; [" B", " KiB", " MiB", " GiB"])
	elif $unit == "bps" then scaled(1000; [" b/s", " kb/s", " Mb/s", " Gb/s", " Tb/s"])
	elif $unit == "pps" then scaled(1000; [" p/s", " kp/s", " Mp/s"])
	elif $unit == "ops" then scaled(1000; [" ops/s", " kops/s", " Mops/s"])
	elif $unit == "reqps" then scaled(1000; [" req/s", " kreq/s", " Mreq/s"])
	else scaled(1000; ["", " k", " M", " G"]) end;

# A step of which at most four reach the value. Whole ones for whole things.
def step($unit):
	(if $unit == "bytes" then pow(1024; log2 / 10 | floor)
	elif $unit == "s" and . >= 4 * 86400 then 86400
	elif $unit == "s" and . >= 4 * 3600 then 3600
	elif $unit == "s" and . >= 240 then 60
	else 1 end) as $of |
	. / $of | . as $most | pow(10; . / 4 | log10 | floor) as $power |
	first((1, 2, (if $unit == "short" and $power <= 1 then empty else 2.5 end), 5, 10) * $power | select($most / . <= 4.2)) * $of |
	if $unit == "short" then [1, .] | max else . end;

# ---- series -------------------------------------------------------------------------------------

def named($legend): .metric as $metric |
	reduce ($legend | scan("\\{\\{([^}]*)\\}\\}")[0]) as $of ($legend; .[:index("{{")] + ($metric[$of] // "") + .[index("}}") + 2:]);

# [{ name, points: [[TIME, VALUE]] }] of a panel, those alone that have a number somewhere.
def lines: [.targets[] | .legend as $legend | .series[] | { name: named($legend), points: [(.values // [.value])[] |
	select(.[1] | test("NaN|Inf") | not) | .[1] |= tonumber] } | select(.points != [])];

def last_value: .points[-1][1];

# Points that lie on the line between their neighbours say nothing.
def thinned: reduce .[] as $p ([]; if length >= 2 and
	(.[-1][0] - .[-2][0]) * ($p[1] - .[-1][1]) == ($p[0] - .[-1][0]) * (.[-1][1] - .[-2][1]) then .[-1] = $p else . + [$p] end);

# "l3-4 5 6": numbers with no more between them than it takes.
def packed: reduce .[] as $n (""; . + (if . == "" or $n < 0 then "" else " " end) + ($n | tostring));

# Points in whole units, a piece for each stretch without a gap; a single point is a dot.
def path($gap): reduce .[] as $p ([]; if length == 0 or $p[2] - .[-1][-1][2] > $gap then . + [[$p]] else .[-1] += [$p] end) |
	map(thinned | "M\(.[0][:2] | packed)" + (if length == 1 then "h1" else
		"l" + ([range(1; length) as $i | .[$i][0] - .[$i - 1][0], .[$i][1] - .[$i - 1][1]] | packed) end)) | add;

# ---- panels -------------------------------------------------------------------------------------

def text($x; $y; $class): "<text x=\"\($x | px)\" y=\"\($y | px)\" class=\"\($class)\">\(@html)</text>";

def nothing($w; $h): "No data" | text($w / 2; $h / 2 + 8; "none");

# Lines of a legend: a colour and a name each, one behind the other as long as there is room.
def legend($room):
	reduce to_entries[] as { key: $i, value: $name } ([];
		($name | cut($room - 30; 12)) as $name | ($name | width(12) + 34) as $takes |
		if length == 0 or .[-1].used + $takes > $room then . + [{ used: 0, names: [] }] else . end |
		.[-1].used += $takes | .[-1].names += [{ $name, colour: ($i % (colours | length)) }]) |
	([.[legend_lines:][].names[]] | length) as $left | .[:legend_lines] |
	if $left == 0 then . else .[-1] |= if .used + 60 > $room then .names[-1] = { name: "+ \($left + 1) more" }
		else .names += [{ name: "+ \($left) more" }] end end |
	map(.names | to_entries | map(.key as $i | .value | (if $i == 0 then "" else " dx=\"12\"" end) as $apart |
		if .colour then "<tspan class=\"c\(.colour) key\"\($apart)>—</tspan> \(.name | @html)"
		else "<tspan\($apart)>\(.name | @html)</tspan>" end) | add);

def graph($w; $h; $screen):
	lines as $all | .unit as $unit | ([$all[].name] | legend($w - 24)) as $legend |
	([$all[].points[][1]] | max | if . > 0 then . else 1 end) as $most | ($most | step($unit)) as $step |
	([range(0; $most / $step * 0.999 | ceil + 1) * $step]) as $ticks | $ticks[-1] as $top |
	([$ticks[] | shown($unit) | width(11)] | max + 20) as $left |
	($h - 30 - 16 * ($legend | length)) as $bottom | ($w - 16) as $right | 40 as $high |
	($screen.to - $screen.from) as $time |
	([60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200] | map(select($time / . <= 6)) | first // 86400) as $tick |
	def x: (. - $screen.from) / $time * ($right - $left) + $left;
	def y: $bottom - . / $top * ($bottom - $high);
	($ticks[] | "<path d=\"M\($left | round) \(y | round)H\($right)\" class=\"grid\"/>",
		(shown($unit) | @html) as $written | "<text x=\"\($left - 7 | px)\" y=\"\(y + 4 | px)\" class=\"tick end\">\($written)</text>"),
	(range(($screen.from / $tick | ceil) * $tick; $screen.to + 1; $tick) | (strftime("%H:%M") as $written | x | select(. < $right - 8) |
		. as $x | $written | text($x; $bottom + 16; "tick middle"))),
	"<g transform=\"scale(.5)\">",
	($all | to_entries[] | .key as $i | "<path class=\"value c\($i % (colours | length))\" d=\"\(
		.value.points | map([(.[0] | x * 2 | round), (.[1] | y * 2 | round), .[0]]) | path($screen.step * 1.5))\"/>"),
	"</g>",
	($legend | to_entries[] | "<text x=\"12\" y=\"\($bottom + 36 + 16 * .key)\" class=\"legend\">\(.value)</text>");

# One beside the other; behind each how it came about.
def numbers($w; $h; $screen):
	lines as $all | .unit as $unit | (($w - 24) / ($all | length)) as $room |
	$all | to_entries[] | (.key * $room + 12) as $x | .value | (last_value | shown($unit)) as $shown |
	([34, 34 * ($room - 12) / ($shown | width(34))] | min) as $size |
	([.points[][1]] | max | if . > 0 then . else 1 end) as $most |
	(($room - 12) / ($screen.to - $screen.from)) as $second |
	(.points | map([((.[0] - $screen.from) * $second + $x | round), ($h - 8 - .[1] / $most * 20 | round)])) as $points |
	(if $points | length < 2 then empty else ($points | thinned | map(packed) | join(" ")) as $line |
		"<path class=\"area\" d=\"M\($points[0][0]) \($h - 6)L\($line)V\($h - 6)z\"/>" end),
	(if $all | length > 1 then .name | cut($room - 8; 12) | text($x + ($room - 12) / 2; 42; "legend middle") else empty end),
	"<text x=\"\($x + ($room - 12) / 2 | px)\" y=\"\($h - 38)\" class=\"value number middle\"\(
		if $size < 34 then " style=\"font-size:\($size | floor)px\"" else "" end)>\($shown | @html)</text>";

def bars($w; $h):
	lines as $all | .unit as $unit | ([$all[].name | width(12)] | max | [., $w * 0.4] | min + 24) as $left | ($w - $left - 90) as $long |
	(if $unit == "percentunit" then 1 else [$all[] | last_value, 1] | max end) as $most |
	([($h - 44) / ($all | length), 34] | min) as $each |
	$all | to_entries[] | (42 + .key * $each) as $y | .value |
	(.name | cut($left - 20; 12) | text(12; $y + $each / 2 + 4; "cell")),
	"<rect x=\"\($left | px)\" y=\"\($y + 3 | px)\" width=\"\($long | px)\" height=\"\($each - 6 | px)\" class=\"empty\"/>",
	"<rect x=\"\($left | px)\" y=\"\($y + 3 | px)\" width=\"\(last_value / $most * $long | px)\" height=\"\($each - 6 | px)\" class=\"bar\"/>",
	(last_value | shown($unit) | text($left + $long + 10; $y + $each / 2 + 4; "value cell"));

def table($w; $h):
	([.targets[].series[] | .metric + { Value: (.value[1] | tonumber | shown("short")) }]) as $rows |
	[.columns[] | select(. as $name | $rows | any(has($name)))] as $columns |
	([$columns[] as $name | [$name, ($rows[] | .[$name] // "")] | map(width(12)) | max + 16]) as $widths |
	(($w - 24) / ($widths | add)) as $stretch | ($widths | map(. * $stretch)) as $widths |
	(($h - 48) / 20) as $room | (if ($rows | length) <= ($room | floor) then $rows | length else ($room | floor) - 1 end) as $fits |
	(range($columns | length) as $i | $columns[$i] | cut($widths[$i] - 8; 12) | text(12 + ($widths[:$i] | add // 0); 42; "head")),
	"<path d=\"\([range($fits + 1) | "M12 \(48 + 20 * .)H\($w - 12)"] | add)\" class=\"grid\"/>",
	(range($fits) as $r | range($columns | length) as $i | $rows[$r][$columns[$i]] // "" | select(. != "") |
		cut($widths[$i] - 8; 12) | text(12 + ($widths[:$i] | add // 0); 62 + 20 * $r; "value cell")),
	(if $fits < ($rows | length) then "+ \(($rows | length) - $fits) more" | text(12; 62 + 20 * $fits; "legend") else empty end);

def drawn($screen):
	(.at.w * unit_px - 8) as $w | (.at.h * row_px - 8) as $h |
	(margin_px + .at.x * unit_px + 4) as $x | (margin_px + 44 + .at.y * row_px + 4) as $y |
	if .type == "row" then "<text x=\"\($x)\" y=\"\($y + 17)\" class=\"row\">\(.title | @html)</text>"
	else "<g class=\"panel\" transform=\"translate(\($x) \($y))\">", "<rect width=\"\($w)\" height=\"\($h)\" rx=\"4\" class=\"card\"/>",
		(.title | ([13, 13 * ($w - 20) / bold_width(13)] | min) as $size | "<text x=\"12\" y=\"21\" class=\"title\"\(
			if $size < 13 then " style=\"font-size:\($size | px)px\"" else "" end)>\(@html)</text>"),
		(if .type != "table" and lines == [] or all(.targets[]; .series == []) then nothing($w; $h)
		elif .type == "timeseries" then graph($w; $h; $screen)
		elif .type == "stat" then numbers($w; $h; $screen)
		elif .type == "bargauge" then bars($w; $h)
		else table($w; $h) end),
		"</g>" end;

# What is chosen behind the title, the time at the right.
def head($w):
	(.title | text(margin_px + 4; margin_px + 22; "board")),
	(foreach .choices[] as $choice ({ end: (margin_px + 24 + (.title | bold_width(20))) };
		($choice.value | cut(220; 12)) as $value | .x = .end | .long = ("\($choice.name)  \($value)" | width(12) + 24) |
		.end += .long + 10 | .text = "<tspan class=\"legend\">\($choice.name | @html)</tspan><tspan dx=\"8\">\($value | @html)</tspan>";
		"<rect x=\"\(.x | px)\" y=\"\(margin_px + 3)\" width=\"\(.long | px)\" height=\"26\" rx=\"4\" class=\"card\"/>",
		"<text x=\"\(.x + 12 | px)\" y=\"\(margin_px + 20)\" class=\"cell\">\(.text)</text>")),
	("Last \(.minutes) minutes" | text($w - margin_px - 8; margin_px + 20; "legend end"));

def style($w): "<style>
text { font: 12px Helvetica, Arial, \"Liberation Sans\", sans-serif; fill: #23262b; white-space: pre }
.board { font-size: 20px; font-weight: 600 }
.row { font-size: 14px; font-weight: 600 }
.title { font-size: 13px; font-weight: 600 }
.number { font-size: 34px; font-weight: 600 }
.legend, .tick, .head, .none { fill: #636972 }
.tick { font-size: 11px }
.none { font-size: 14px }
.middle, .none { text-anchor: middle }
.end { text-anchor: end }
.key { fill: currentColor; font-weight: 900 }
.card { fill: #fff; stroke: #dcdcd6 }
.grid { fill: none; stroke: #e9e9e4 }
g g path { fill: none; stroke: currentColor; stroke-width: 3; stroke-linejoin: round; stroke-linecap: round }
.area { fill: #dbe5f0 }
.empty { fill: #eeeeea }
.bar { fill: \(colours[0]) }
\([colours | to_entries[] | ".c\(.key) { color: \(.value) }"] | join("\n"))
</style>", "<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#f4f4f1\"/>";

. as $screen | (24 * unit_px + 2 * margin_px) as $w | ([.panels[].at | .y + .h] | max * row_px + 44 + 2 * margin_px) as $h |
"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \($w) \($h)\" width=\"\($w)\" height=\"\($h)\">",
"<title>\(.title | @html)</title>", "<desc>\(.about | @html)</desc>", style($w), head($w), (.panels[] | drawn($screen)),
"</svg>"

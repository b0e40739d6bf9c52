
/* ---- live: the served page gets the document by a WebSocket, and what changes in it ---- */

const PAUSE_MIN = 500, PAUSE_MAX = 10000;
let live = null, pause = PAUSE_MIN, lostAt = null;

/* RFC 7386. */
function merge(target, patch) {
	if (patch === null || typeof patch !== "object" || Array.isArray(patch))
		return patch;
	const result = target !== null && typeof target === "object" && !Array.isArray(target) ? {...target} : {};
	for (const [key, value] of Object.entries(patch))
		if (value === null) delete result[key];
		else Object.defineProperty(result, key, {value: merge(result[key], value), enumerable: true, writable: true, configurable: true});
	return result;
}

/* Objects by name to lists, ordered by name. */
function listed(things) {
	return Object.keys(things || {}).sort().map(name => things[name]);
}

function say(state, words) {
	const pill = document.getElementById("live");
	pill.hidden = false;
	pill.replaceChildren(h("i", {class: `dot ${state}`}), words);
}

function showTrouble() {
	const banner = document.getElementById("trouble"), trouble = live && live.trouble;
	const text = lostAt ? ["No connection", ` since ${lostAt.toLocaleTimeString()}: orbweaver report --serve has ended, or cannot be reached. Trying again.`]
		: trouble ? ["Not up to date", ` since ${clock(trouble.since)}: ${trouble.why}. What is shown is from ${clock(live.generated)}. Trying again.`] : null;
	banner.hidden = !text;
	banner.replaceChildren(...(text ? [h("b", {}, text[0]), text[1]] : []));
	if (lostAt) say("broken", "not connected");
	else if (trouble) say("waits", "not up to date");
	else say("ready", "live");
}

function receive(event) {
	const message = JSON.parse(event.data);
	live = message.whole || merge(live, message.change);
	data = {...live, nodes: listed(live.nodes), pools: listed(live.pools), policies: listed(live.policies)};
	show();
	document.getElementById("when").textContent = `changed ${clock(data.generated)}`;
	document.getElementById("foot").textContent = `orbweaver ${data.version}: this page changes with the cluster.`;
	const errors = data.findings.filter(finding => finding.level === "error").length;
	document.title = errors ? `${plural(errors, "error")} · Orbweaver` : "Orbweaver";
	showTrouble();
}

function connect() {
	const socket = new WebSocket(`ws://${location.host}${location.pathname}live`, "orbweaver-report");
	socket.onopen = () => { pause = PAUSE_MIN; lostAt = null; };
	socket.onmessage = receive;
	socket.onclose = () => {
		lostAt = lostAt || new Date();
		showTrouble();
		setTimeout(connect, pause * (0.5 + Math.random() / 2));
		pause = Math.min(PAUSE_MAX, 2 * pause);
	};
}

say("waits", "connecting");
connect();

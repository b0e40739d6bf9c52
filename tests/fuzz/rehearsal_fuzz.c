// SPDX-License-Identifier: Apache-2.0
/*
 * The operator on a cluster out of a file that may come from anybody: no crash, the objects stay as
 * they are, the same decisions again, and an end.
 *
 * Input: { plural: { key: object } }.
 */
#include <stdint.h>

#include "lib/json/json.h"
#include "operator/rehearsal.h"
#include "tests/fuzz/fuzz.h"

struct told {
	struct strbuf text;
	size_t steps;
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static bool has(void *arg, const struct operator_kind *kind)
{
	return true;
}

static void left_out(void *arg, const char *controller, const struct operator_kind *kind)
{
}

static void decided(void *arg, const struct rehearsal_step *step)
{
	struct told *told = arg;

	told->steps++;
	strbuf_addf(&told->text, "%s %s %s\n", step->controller, step->key,
		    step->err ? step->err->text : "");
	for (size_t i = 0; i < step->n; i++) {
		const struct rehearsal_op *op = &step->ops[i];
		auto_free char *text = json_text(op->op);

		fuzz_check(!op->does || op->before || op->after || str_eq(op->does, "evict"),
			   "what changes is there before or after");
		strbuf_addf(&told->text, "%s %s\n", op->does ? op->does : "-", text);
	}
}

static void run(const json_t *objects, struct told *told)
{
	rehearse(&(struct rehearsal_config){
		.objects = objects,
		.ns = "orbweaver-system",
		.resource_prefix = "spidernet.io",
		.config_ns = "spiderpool",
		.now = "2026-01-31T10:00:00Z",
		.webhooks = true,
		.has = has,
		.decided = decided,
		.left_out = left_out,
		.arg = told,
	});
}

/* Dumps are read into keys that come from names (cli/source.c). */
static json_t *by_key(const json_t *world)
{
	json_t *result = json_object(), *objects, *object;
	const char *kind, *name;

	json_each (world, kind, objects)
		json_each (objects, name, object) {
			auto_free char *key = json_key(object);

			if (json_is_object(object) && *json_name(object))
				json_object_set(json_need_object(result, kind), key, object);
		}
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *objects = by_key(input), *before = json_deep_copy(objects);
	struct told first = {0}, again = {0};

	run(objects, &first);
	run(objects, &again);
	fuzz_check(str_eq(strbuf_str(&first.text), strbuf_str(&again.text)), "deciding is pure");
	fuzz_check(json_same(before, objects), "objects stay as they are");
	strbuf_done(&first.text);
	strbuf_done(&again.text);
	return 0;
}

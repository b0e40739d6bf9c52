// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes of a request in, an answer out: no crash, an AdmissionReview with the request's uid, the
 * same answer twice, nothing that was given is changed, and defaults that stay once they are there.
 *
 * Input: an AdmissionReview; "world" beside "request" is what the cluster holds.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/admission/admission.h"
#include "tests/fakes/json_patch.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_answer(const json_t *review, const json_t *answer)
{
	const json_t *response = json_at(answer, "response");
	bool allowed = json_is_true(json_at(response, "allowed"));
	auto_free char *text = json_text(answer);
	json_auto_t *again = json_parse(text, strlen(text), NULL);

	fuzz_check(json_same(again, answer), "an answer is JSON");
	fuzz_check(str_eq(json_str_at(answer, "kind"), "AdmissionReview"), "an answer is a review");
	fuzz_check(str_eq(json_str_at(response, "uid"), json_str_at(review, "request", "uid")),
		   "an answer has the request's uid");
	fuzz_check(allowed || (!str_empty(json_str_at(response, "status", "message")) &&
			       json_integer_value(json_at(response, "status", "code")) == 422),
		   "a refusal says why");
	fuzz_check(allowed || !json_at(response, "patch"), "a refusal has no patch");
}

/* As a server would carry it out; metadata is always there then. */
static void check_defaults(const json_t *review, const json_t *answer)
{
	json_auto_t *patch = json_patch_of(answer);
	json_auto_t *changed = json_deep_copy(review);
	json_t *object = json_at(changed, "request", "object");
	auto_admission_request struct admission_request request = {0};
	json_auto_t *again = NULL;

	fuzz_check(json_is_true(json_at(answer, "response", "allowed")), "defaulting allows");
	if (!patch || !json_is_object(json_at(object, "metadata")))
		return;
	fuzz_check(json_patch_apply(object, patch), "a patch fits");
	fuzz_check(admission_read(changed, &request, NULL) == 0, "a patched review is one");
	again = admission_default(&request);
	fuzz_check(!json_at(again, "response", "patch"), "defaults are filled in once");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *review = json_parse((const char *)data, size, NULL);
	json_auto_t *before = json_deep_copy(review);
	auto_admission_request struct admission_request request = {0};
	json_auto_t *first = NULL, *second = NULL, *defaults = NULL;
	const json_t *world = json_at(review, "world");

	if (!review || admission_read(review, &request, NULL))
		return 0;
	first = admission_validate(world, &request);
	second = admission_validate(world, &request);
	fuzz_check(json_same(first, second), "the same request gets the same answer");
	check_answer(review, first);
	defaults = admission_default(&request);
	check_answer(review, defaults);
	check_defaults(review, defaults);
	fuzz_check(json_same(review, before), "a review is not changed");
	return 0;
}

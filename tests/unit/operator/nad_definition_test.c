/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of NetworkAttachmentDefinition: what is sent, and that nothing but a create is. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "operator/nad_definition.h"
#include "tests/fakes/scripted.h"

#define DEFINITIONS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define CREATE      "POST " DEFINITIONS "?"

struct fixture {
	struct scripted s;
	struct nad_definition *definition;
	int seen; /* requests that have arrived */
	bool leads;
};

static bool may_write(void *arg)
{
	return *(bool *)arg;
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	scripted_open(&f->s);
	f->leads = true;
	kube_client_set_fence(f->s.client, may_write, &f->leads);
	f->definition = nad_definition_new(f->s.client);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	nad_definition_free(f->definition);
	scripted_close(&f->s);
	mem_free(f);
	return 0;
}

static void count(void *arg)
{
	(*(int *)arg)++;
}

static void reply(struct fixture *f, int status, const char *body)
{
	http_script_add(f->s.http, CREATE,
			&(struct http_reply){
				.status = status, .body = body, .seen = count, .arg = &f->seen});
}

TEST_WITH(sends_the_definition_of_the_tree, setup, teardown)
{
	struct fixture *f = *state;
	json_auto_t *want = nad_definition_object();
	json_auto_t *sent = NULL;
	struct err err = {0};
	const char *request = NULL;

	reply(f, 201, "{\"metadata\":{\"name\":\"n\"}}");
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 1);
	request = http_script_request(f->s.http, 0);
	assert_non_null(strstr(request, "fieldManager=orbweaver-operator"));
	request = strstr(request, "\r\n\r\n") + 4;
	sent = json_parse(request, strlen(request), &err);
	assert_true(json_equal(sent, want));
	assert_string_equal(json_name(sent), "network-attachment-definitions.k8s.cni.cncf.io");
}

TEST_WITH(sends_one_request_at_a_time, setup, teardown)
{
	struct fixture *f = *state;

	reply(f, 201, "{}");
	nad_definition_create(f->definition);
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 1);
	scripted_for(&f->s, 20);
	assert_int_equal(http_script_count(f->s.http, "POST"), 1);
	assert_int_equal(http_script_unexpected(f->s.http), 0);
}

TEST_WITH(leaves_the_definition_of_another_program_alone, setup, teardown)
{
	struct fixture *f = *state;

	reply(f, 409,
	      "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
	      "\"reason\":\"AlreadyExists\",\"code\":409}");
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 1);
	scripted_for(&f->s, 20);
	/* No request but that one: neither PUT nor PATCH. */
	assert_int_equal(http_script_count(f->s.http, ""), 1);
}

TEST_WITH(asks_again_after_a_refusal, setup, teardown)
{
	struct fixture *f = *state;

	reply(f, 403,
	      "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
	      "\"reason\":\"Forbidden\",\"code\":403}");
	reply(f, 201, "{}");
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 1);
	scripted_for(&f->s, 20);
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 2);
}

TEST_WITH(sends_nothing_while_another_replica_leads, setup, teardown)
{
	struct fixture *f = *state;

	f->leads = false;
	nad_definition_create(f->definition);
	scripted_for(&f->s, 20);
	assert_int_equal(http_script_count(f->s.http, ""), 0);
}

TEST_WITH(ends_with_a_request_in_flight, setup, teardown)
{
	struct fixture *f = *state;

	http_script_add(f->s.http, CREATE,
			&(struct http_reply){.status = -1, .seen = count, .arg = &f->seen});
	nad_definition_create(f->definition);
	scripted_until(&f->s, &f->seen, 1);
	/* teardown frees it; the sanitizer finds what is left. */
}

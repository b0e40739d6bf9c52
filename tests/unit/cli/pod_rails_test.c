// SPDX-License-Identifier: Apache-2.0
/* What is said of a pod that shall have the same rails as others. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/explain/chain.h"
#include "cli/explain/pod_rails.h"
#include "lib/json/json.h"
#include "tests/support/yaml.h"

#define POD(ns_, name_, node_, label_)                                                             \
	ns_ "/" name_ ": {metadata: {namespace: " ns_ ", name: " name_                             \
	    ", labels: {orbweaver.io/rails: '" label_ "'}}, spec: {nodeName: " node_ "}}, "
#define HAS(pod_, net_, vf_)                                                                       \
	"{pod: " pod_ ", interface: " net_ ", rdmaDevice: mlx5_0, device: '0000:" vf_ "'}, "
#define NODE(name_, attachments_)                                                                  \
	"own/" name_ ": {status: {attachments: [" attachments_ "], interfaces: "                   \
	"[{pciAddress: '0000:a0:00.0', rail: 0, Vfs: [{pciAddress: '0000:a0:00.1'}]}, "            \
	"{pciAddress: '0000:b0:00.0', rail: 1, Vfs: [{pciAddress: '0000:b0:00.1'}, "               \
	"{pciAddress: '0000:b0:00.2'}]}]}}, "

static const char world_text[] = "{env: {namespace: own}, pods: {" POD("ml", "a", "n1", "train")
	POD("ml", "b", "n2", "train") POD("ml", "new", "n2", "train") POD("ml", "c", "n2", "odd")
		POD("ml", "d", "n1", "odd") POD("other", "a", "n1", "train") POD("ml", "e", "n2",
										 "0")
			POD("ml", "bare", "n1", "x") "}, sriovnetworknodestates: {" NODE(
				"n1", HAS("ml/a", "net1", "a0:00.1") HAS("ml/a", "net2", "b0:00.1")
					      HAS("ml/d", "net1", "b0:00.2")
						      HAS("other/a", "net1", "b0:00.2"))
				NODE("n2",
				     HAS("ml/b", "net1", "a0:00.1") HAS("ml/b", "net2", "b0:00.1")
					     HAS("ml/c", "net1", "a0:00.1")
						     HAS("ml/e", "net1", "b0:00.1")) "}}";

static void assert_said(const char *pod, const char *state, const char *reason, const char *what)
{
	json_auto_t *world = yaml(world_text), *chain = chain_new("pod", pod);
	const json_t *link;

	explain_pod_rails(chain, world, json_at(world, "pods", pod));
	link = json_array_get(json_at(chain, "links"), 0);
	assert_string_equal(json_str_or(json_at(link, "state"), "nothing"), state);
	assert_string_equal(json_str_or(json_at(chain, "reason"), ""), reason);
	assert_non_null(strstr(json_str_or(json_at(link, "what"), ""), what));
}

TEST(pods_with_one_label_have_the_same_rails)
{
	assert_said("ml/a", "holds", "", "has rails 0-1, as the 1 other pods with the label train");
	assert_said("ml/new", "waits", "", "no rail of this pod is known yet");
}

TEST(a_pod_with_other_rails_is_explained)
{
	assert_said("ml/c", "broken", "OtherRails",
		    "has rails 0, and pod d on n1 with the same label odd has 1");
	assert_said("ml/e", "broken", "OtherRails", "has rails 1, and the label names 0");
}

TEST(other_pods_are_not_looked_at)
{
	json_auto_t *world = yaml(world_text), *chain = chain_new("pod", "ml/w");
	json_auto_t *pod = yaml("{metadata: {name: w, namespace: ml}, spec: {nodeName: n1}}");

	explain_pod_rails(chain, world, pod);
	assert_int_equal(json_array_size(json_at(chain, "links")), 0);
}

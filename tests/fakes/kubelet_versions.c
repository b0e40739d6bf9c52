// SPDX-License-Identifier: Apache-2.0
/* The table is made from where things change: see the header. */
#include "tests/fakes/kubelet_versions.h"

#include "lib/base/own.h"

/* clang-format off */
#define VERSION(minor)                                                                          \
	{                                                                                       \
		.name = "1." #minor,                                                            \
		.kind = (minor) <= 24 ? FAKE_KUBELET_OLD                                        \
			: (minor) <= 35 ? FAKE_KUBELET_NEW : FAKE_KUBELET_NEWEST,               \
		.dials_by_path = (minor) <= 25,                                                 \
		.wipes_files = (minor) <= 32,                                                   \
		.lists_together = (minor) <= 20,                                                \
		.takes_none_for_0 = (minor) <= 22,                                              \
		.lists_ended = (minor) <= 33,                                                   \
		.checks_given = (minor) >= 27,                                                  \
	}
/* clang-format on */

const struct kubelet_version kubelet_versions[] = {
	VERSION(20), VERSION(21), VERSION(22), VERSION(23), VERSION(24), VERSION(25),
	VERSION(26), VERSION(27), VERSION(28), VERSION(29), VERSION(30), VERSION(31),
	VERSION(32), VERSION(33), VERSION(34), VERSION(35), VERSION(36),
};

const size_t n_kubelet_versions = ARRAY_LEN(kubelet_versions);

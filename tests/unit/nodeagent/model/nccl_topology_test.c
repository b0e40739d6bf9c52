// SPDX-License-Identifier: Apache-2.0
/* The topology file of NCCL: what is below which switch, as NCCL itself would walk up. */
#include "tests/support/test.h"

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/model/nccl_topology.h"
#include "tests/support/yaml.h"

TEST(walks_up_as_nccl_does)
{
	static const struct {
		const char *path, *switches;
	} rows[] = {
		/*
		 * A root port alone, a switch, two switches, and a root port above half a switch.
		 */
		{"pci0000:15/0000:15:01.0", "[]"},
		{"pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", "['0000:16:00.0']"},
		{"pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/0000:19:00.0",
		 "['0000:16:00.0', '0000:18:00.0']"},
		{"pci0000:15/0000:15:01.0/0000:16:00.0", "['0000:15:01.0']"},
		{"", "[]"},
		{"virtual/x", "[]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *got = nccl_topology_switches(rows[i].path);
		json_auto_t *want = yaml(rows[i].switches);

		if (!json_same(got, want))
			fail_msg("row %zu", i);
	}
}

#define PATH(bus_, port_)                                                                          \
	"path: pci0000:" bus_ "0/0000:" bus_ "0:01.0/0000:" bus_ "1:00.0/0000:" bus_ "2:" port_

/* A GPU and a VF below one switch on each of two sockets, and a NIC at a root port. */
TEST(two_sockets_with_a_gpu_and_a_vf)
{
	json_auto_t *cpu = yaml("{arch: x86_64, vendor: GenuineIntel, familyid: 6, modelid: 143}");
	json_auto_t *functions =
		yaml("- {busid: '0000:8b:00.2', class: '0x020000', numaNode: 1, " PATH(
			"8",
			"05.0") ", net: {name: mlx5_5, speed: 400000, rail: 1}}\n"
				"- {busid: '0000:1b:00.2', class: '0x020000', numaNode: 0, " PATH(
					"1",
					"05.0") ", net: {name: mlx5_2, speed: 400000, rail: 0}}\n"
						"- {busid: '0000:ff:00.0', class: '0x020700', "
						"path: "
						"pci0000:f0/0000:f0:01.0, net: {name: ib0}}\n"
						"- {busid: '0000:1a:00.0', class: '0x030200', "
						"numaNode: 0, " PATH(
							"1",
							"04.0") "}\n"
								"- {busid: '0000:8a:00.0', class: "
								"'0x030200', numaNode: 1, " PATH(
									"8", "04.0") "}\n");
	json_auto_t *links = yaml("{'0000:1b:00.2': {speed: 32.0 GT/s PCIe, width: 16}, "
				  "'0000:11:00.0': {speed: 32.0 GT/s PCIe, width: 16}}");
	auto_free char *text = nccl_topology_text(cpu, functions, links);

#define CPU                  "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
#define LINK(speed_, width_) " link_speed=\"" speed_ "\" link_width=\"" width_ "\">\n"
	assert_string_equal(text,
			    "<system version=\"1\">\n"
			    "  <cpu numaid=\"-1\" " CPU
			    "    <pci busid=\"0000:ff:00.0\" class=\"0x020700\"" LINK(
				    "",
				    "0") "      <nic><net name=\"ib0\"/></nic>\n"
					 "    </pci>\n"
					 "  </cpu>\n"
					 "  <cpu numaid=\"0\" " CPU
					 "    <pci busid=\"0000:11:00.0\" class=\"0x060400\"" LINK("32.0 GT/s PCIe", "16") "      <pci busid=\"0000:1a:00.0\" class=\"0x030200\"" LINK(
						 "",
						 "0") "      </pci>\n"
						      "      <pci busid=\"0000:1b:00.2\" "
						      "class=\"0x020000\"" LINK(
							      "32.0 GT/s PCIe",
							      "16") "        <nic><net "
								    "name=\"mlx5_2\" "
								    "speed=\"400000\" "
								    "rail=\"0\"/></nic>\n"
								    "      </pci>\n"
								    "    </pci>\n"
								    "  </cpu>\n"
								    "  <cpu numaid=\"1\" " CPU
								    "    <pci "
								    "busid=\"0000:81:00.0\" "
								    "class=\"0x060400\"" LINK("", "0") "      <pci busid=\"0000:8a:00.0\" class=\"0x030200\"" LINK(
									    "",
									    "0") "      </pci>\n"
										 "      <pci "
										 "busid=\"0000:8b:"
										 "00.2\" "
										 "class="
										 "\"0x020000"
										 "\"" LINK(
											 "",
											 "0") "    "
											      "    "
											      "<nic"
											      "><"
											      "net "
											      "name"
											      "=\"m"
											      "lx5_"
											      "5\" "
											      "spee"
											      "d="
											      "\"40"
											      "0000"
											      "\" "
											      "rail"
											      "=\"1"
											      "\"/"
											      "></"
											      "nic>"
											      "\n"
											      "    "
											      "  "
											      "</"
											      "pci>"
											      "\n"
											      "    "
											      "</"
											      "pci>"
											      "\n"
											      "  "
											      "</"
											      "cpu>"
											      "\n"
											      "</"
											      "syst"
											      "em>"
											      "\n");
}

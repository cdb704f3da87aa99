// SPDX-License-Identifier: Apache-2.0

package label

import (
	"maps"
	"strings"
	"testing"
)

// of returns the labels of an environment, in words.
func of(t *testing.T, environment string, rules ...string) map[string]string {
	t.Helper()
	var list []Rule
	for _, text := range rules {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return Of(&Start{Path: "/jobs/n07/core.r12", Command: []string{"python", "train.py", "--stage=3"}, Environment: strings.Fields(environment)}, list)
}

func TestVariablesOfLaunchersMakeLabels(t *testing.T) {
	for _, c := range []struct {
		name, environment string
		want              map[string]string
	}{
		{"nothing", "HOME=/root RANKS=3", map[string]string{}},
		{
			"torchrun", "RANK=12 LOCAL_RANK=4 WORLD_SIZE=16 LOCAL_WORLD_SIZE=8 GROUP_RANK=1 TORCHELASTIC_RUN_ID=r7 CUDA_VISIBLE_DEVICES=4 HOSTNAME=n1",
			map[string]string{"rank": "12", "local_rank": "4", "world_size": "16", "local_world_size": "8", "node_rank": "1", "run": "r7", "devices": "4", "host": "n1"},
		},
		{"torchrun without a run ID", "RANK=0 TORCHELASTIC_RUN_ID=none", map[string]string{"rank": "0"}},
		{
			// The task of SLURM is the launcher's: its host is right, its number is not the rank.
			"torchrun in a task of SLURM", "RANK=12 LOCAL_RANK=4 WORLD_SIZE=16 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_JOB_ID=99 SLURM_NODEID=1 HOSTNAME=login",
			map[string]string{"rank": "12", "local_rank": "4", "world_size": "16", "job": "99"},
		},
		{
			"a program of srun that sets RANK", "RANK=3 SLURM_PROCID=3 SLURM_LOCALID=1 SLURM_NTASKS=8 SLURM_NODEID=1 SLURMD_NODENAME=n1 SLURM_STEP_ID=0 SLURM_JOB_ID=99",
			map[string]string{"rank": "3", "local_rank": "1", "world_size": "8", "node_rank": "1", "node": "n1", "host": "n1", "job": "99", "step": "0"},
		},
		{"a step of fewer tasks", "SLURM_PROCID=1 SLURM_NTASKS=64 SLURM_STEP_NUM_TASKS=2", map[string]string{"rank": "1", "world_size": "2"}},
		{
			// The batch script is task 0 of its own.
			"mpirun in a batch script", "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=8 PMIX_RANK=5 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_JOBID=7",
			map[string]string{"rank": "5", "local_rank": "1", "world_size": "8", "job": "7"},
		},
		{"MPICH", "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=4 HOSTNAME=head", map[string]string{"rank": "2", "world_size": "4", "local_rank": "2", "local_world_size": "4"}},
		{"MVAPICH", "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=0", map[string]string{"rank": "1", "world_size": "2", "local_rank": "0"}},
		{"PALS", "PALS_RANKID=9 PALS_LOCAL_RANKID=1 PMI_RANK=9 PMI_SIZE=12", map[string]string{"rank": "9", "local_rank": "1", "world_size": "12"}},
		{"Flux", "FLUX_TASK_RANK=3 FLUX_TASK_LOCAL_ID=1 FLUX_JOB_SIZE=4 FLUX_JOB_ID=f2", map[string]string{"rank": "3", "local_rank": "1", "world_size": "4", "job": "f2"}},
		{"jsrun", "JSM_NAMESPACE_RANK=3 JSM_NAMESPACE_LOCAL_RANK=1 JSM_NAMESPACE_SIZE=4", map[string]string{"rank": "3", "local_rank": "1", "world_size": "4"}},
		{"a variable of another meaning", "RANK=senior WORLD_SIZE=big", map[string]string{}},
		{"a rank beyond the world", "RANK=9 WORLD_SIZE=8", map[string]string{}},
		{"two of one name", "RANK=1 RANK=2", map[string]string{"rank": "1"}},
		{"a number with zeros", "RANK=007", map[string]string{"rank": "7"}},
		{"Kubernetes", "POD_NAME=trainer-3 POD_NAMESPACE=ml NODE_NAME=gpu-7 HOSTNAME=trainer-3 JOB_COMPLETION_INDEX=3", map[string]string{
			"pod": "trainer-3", "namespace": "ml", "node": "gpu-7", "host": "trainer-3", "completion_index": "3",
		}},
		{"devices of AMD", "ROCR_VISIBLE_DEVICES=4,5 HIP_VISIBLE_DEVICES=1", map[string]string{"devices": "1"}},
		{"devices of Intel", "ZE_AFFINITY_MASK=0.1", map[string]string{"devices": "0.1"}},
	} {
		if got := of(t, c.environment); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestRulesComeBeforeWhatIsKnown(t *testing.T) {
	for _, c := range []struct{ rule, label, want string }{
		{`rank=core\.r(\d+)$`, "rank", "12"},           // the path
		{`rank=--stage=(\d+)`, "rank", "3"},            // the command line
		{`rank=^MY_RANK=(\d+)$`, "rank", "8"},          // a variable
		{`host=/(n\d+)/`, "host", "n07"},               // before HOSTNAME
		{`stage=stage=\d`, "stage", "stage=3"},         // the whole match
		{`rank=nothing`, "rank", "1"},                  // what is known
		{`rank=(x)?core`, "rank", "1"},                 // a group without a match
		{`rank=^([A-Z_]+)=8$`, "rank", "MY_RANK"},      // any value
		{`pod=^POD=(?P<name>.+)$`, "pod", "trainer-3"}, // a group with a name
	} {
		got := of(t, "RANK=1 MY_RANK=8 HOSTNAME=h POD=trainer-3", c.rule)
		if got[c.label] != c.want {
			t.Errorf("%s: %v, expected %s", c.rule, got, c.want)
		}
	}
	if got := of(t, "", `rank=core\.r(\d)`, `rank=stage=(\d)`); got["rank"] != "1" {
		t.Errorf("%v, expected that of the first rule", got)
	}
}

func TestBadRulesAreExplained(t *testing.T) {
	for rule, want := range map[string]string{
		"rank":                              `"rank" has no =: expected NAME=REGEX`,
		"=x":                                `"" is no name of a label: expected a letter or _`,
		"a b=x":                             `"a b" is no name of a label`,
		"rank=":                             "label rank has no expression",
		"rank=(":                            "label rank: error parsing regexp: missing closing ): `(`",
		"rank=" + strings.Repeat("x", 5000): "label rank: its expression has 5000 bytes, expected at most 4096",
		strings.Repeat("n", 65) + "=x":      "at most 64",
	} {
		if _, err := ParseRule(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, expected %s", rule, err, want)
		}
	}
}

func TestPodsAndContainersAreFoundInCgroups(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for cgroup, want := range map[string][2]string{
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2f81c2a8_93a4_4c1f_9d5b_0f5d3f8a1b2c.slice/cri-containerd-" + id + ".scope\n": {"2f81c2a8-93a4-4c1f-9d5b-0f5d3f8a1b2c", "0123456789ab"},
		"12:memory:/kubepods/besteffort/pod2f81c2a8-93a4-4c1f-9d5b-0f5d3f8a1b2c/" + id + "\n1:name=systemd:/x\n":                                         {"2f81c2a8-93a4-4c1f-9d5b-0f5d3f8a1b2c", "0123456789ab"},
		"0::/system.slice/docker-" + id + ".scope\n":            {"", "0123456789ab"},
		"0::/docker/" + id + "\n":                               {"", "0123456789ab"},
		"0::/user.slice/user-1000.slice/session-2.scope\n":      {},
		"0::/docker/" + id[1:] + "\n":                           {},
		"0::/podlike/pod2f81c2a8-93a4-4c1f-9d5b-0f5d3f8a1b2\n":  {},
		"0::/machine.slice/libpod-" + id + ".scope/container\n": {"", "0123456789ab"},
	} {
		if pod, container := inCgroup(cgroup); pod != want[0] || container != want[1] {
			t.Errorf("%s: pod %q and container %q, expected %q", cgroup, pod, container, want)
		}
	}
}

func TestLabelsAreTextOfOneLine(t *testing.T) {
	long := strings.Repeat("é", maxValue)
	got := Of(&Start{Own: map[string]string{"a": "x\ny\x1b[1m\xff", "b": long, "c": " \n"}, Host: "h", Command: []string{"p", "--local-rank=2"}}, nil)
	want := map[string]string{"a": "x y [1m\ufffd", "b": long[:maxValue] + "...", "host": "h", "local_rank": "2"}
	if !maps.Equal(got, want) {
		t.Errorf("%.100q", got)
	}
}

// FuzzLabels makes labels of hostile starts: each is one line of a bounded length.
func FuzzLabels(f *testing.F) {
	f.Add("rank=(x*)", "path", "A=1\x00RANK=2\x00WORLD_SIZE=3", "0::/docker/x", "label", "value")
	f.Fuzz(func(t *testing.T, rule, path, environment, cgroup, name, value string) {
		var rules []Rule
		if r, err := ParseRule(rule); err == nil {
			rules = append(rules, r)
		}
		for name, value := range Of(&Start{Path: path, Environment: strings.Split(environment, "\x00"), Cgroup: cgroup, Own: map[string]string{name: value}}, rules) {
			if value == "" || len(value) > maxValue+3 || strings.ContainsAny(value, "\n\x00\x1b") {
				t.Errorf("label %q is %q", name, value)
			}
		}
	})
}

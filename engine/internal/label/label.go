// SPDX-License-Identifier: Apache-2.0

// Package label finds labels of processes: their rank in a job, their host, pod and devices, in the environment and
// the command line with which each was started.
package label

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/target"
)

// Start is how a process was started, as far as its target tells.
type Start struct {
	// Path names the target.
	Path string
	// Command has the words of the command line.
	Command []string
	// Environment has the variables, each NAME=VALUE.
	Environment []string
	// Own are labels that the target itself has. They come before those that are found here.
	Own map[string]string
	// Host is the name of the machine, or of the container; "" where the target does not tell.
	Host string
	// Cgroup has the lines of /proc/PID/cgroup.
	Cgroup string
}

// maxValue bounds the bytes of a label. The IDs of 16 parts of accelerators have some 700.
const maxValue = 1 << 10

// The names of labels that are found by themselves.
const (
	Rank      = "rank"
	LocalRank = "local_rank"
	World     = "world_size"
	LocalSize = "local_world_size"
	NodeRank  = "node_rank"
	Node      = "node"
	Host      = "host"
	Job       = "job"
	Step      = "step"
	Run       = "run"
	Restart   = "restart"
	Devices   = "devices"
	Pod       = "pod"
	PodUID    = "pod_uid"
	Namespace = "namespace"
	Container = "container"
	Index     = "completion_index"
)

// Of returns the labels of a process: by rules first, then its own, then from variables that launchers of
// jobs are known to set, then from the command line, the host and the cgroup.
func Of(s *Start, rules []Rule) map[string]string {
	labels := map[string]string{}
	set := func(name, value string) {
		if value = clean(value); value != "" && labels[name] == "" {
			labels[name] = value
		}
	}
	command := strings.Join(s.Command, " ")
	for i := range rules {
		if value, ok := rules[i].match(s.Path, command, s.Environment); ok {
			set(rules[i].name, value)
		}
	}
	for name, value := range s.Own {
		if target.IsLabelName(name) {
			set(name, value)
		}
	}
	variables := variablesOf(s.Environment)
	passesOn := setRanks(variables, set)
	for i := range known {
		k := &known[i]
		if value := variables[k.variable]; value != k.without {
			set(k.label, value)
		}
	}
	set(LocalRank, argument(s.Command, localRankFlags))
	set(Host, s.Host)
	// A launcher that passes its environment on to other hosts passes on the name of its own, too.
	if !passesOn {
		set(Host, variables["HOSTNAME"])
	}
	uid, container := inCgroup(s.Cgroup)
	set(PodUID, uid)
	set(Container, container)
	return labels
}

// launcher has the variables that one launcher of jobs sets.
type launcher struct {
	rank string
	// set are the labels that its other variables make.
	set []variable
	// passesOn means that it passes its own environment on to other hosts.
	passesOn bool
}

// variable is a variable that makes a label.
type variable struct {
	label, variable string
	// without is the value that stands for none.
	without string
}

// launchers are in the order in which they are believed: one that starts processes inside of jobs of another
// comes before it. torchrun starts several ranks in each task of SLURM, mpirun all of a host in the
// first task, and their ranks are the right ones. A launcher whose rank is another one is not used at all: its other
// variables are of its own task.
var launchers = []launcher{
	// torchrun, and all that call init_process_group with env:// (PyTorch, "Torch Distributed Elastic",
	// "Environment Variables").
	{rank: "RANK", set: []variable{
		{label: LocalRank, variable: "LOCAL_RANK"}, {label: World, variable: "WORLD_SIZE"}, {label: LocalSize, variable: "LOCAL_WORLD_SIZE"},
		{label: NodeRank, variable: "GROUP_RANK"}, {label: NodeRank, variable: "NODE_RANK"},
	}},
	// Open MPI, "Environment variables set for MPI applications".
	{rank: "OMPI_COMM_WORLD_RANK", passesOn: true, set: []variable{
		{label: LocalRank, variable: "OMPI_COMM_WORLD_LOCAL_RANK"}, {label: World, variable: "OMPI_COMM_WORLD_SIZE"}, {label: LocalSize, variable: "OMPI_COMM_WORLD_LOCAL_SIZE"},
	}},
	// MVAPICH2's mpirun_rsh.
	{rank: "MV2_COMM_WORLD_RANK", passesOn: true, set: []variable{
		{label: LocalRank, variable: "MV2_COMM_WORLD_LOCAL_RANK"}, {label: World, variable: "MV2_COMM_WORLD_SIZE"}, {label: LocalSize, variable: "MV2_COMM_WORLD_LOCAL_SIZE"},
	}},
	// HPE's PALS, which sets PMI's variables too.
	{rank: "PALS_RANKID", passesOn: true, set: []variable{
		{label: LocalRank, variable: "PALS_LOCAL_RANKID"}, {label: LocalSize, variable: "PALS_LOCAL_SIZE"}, {label: NodeRank, variable: "PALS_NODEID"},
	}},
	// IBM's jsrun.
	{rank: "JSM_NAMESPACE_RANK", passesOn: true, set: []variable{
		{label: LocalRank, variable: "JSM_NAMESPACE_LOCAL_RANK"}, {label: World, variable: "JSM_NAMESPACE_SIZE"}, {label: LocalSize, variable: "JSM_NAMESPACE_LOCAL_SIZE"},
	}},
	// Hydra, of MPICH and Intel MPI, and others that speak PMI.
	{rank: "PMI_RANK", passesOn: true, set: []variable{
		{label: LocalRank, variable: "MPI_LOCALRANKID"}, {label: LocalRank, variable: "PMI_LOCAL_RANK"}, {label: World, variable: "PMI_SIZE"},
		{label: LocalSize, variable: "MPI_LOCALNRANKS"}, {label: LocalSize, variable: "PMI_LOCAL_SIZE"},
	}},
	{rank: "PMIX_RANK", passesOn: true, set: []variable{{label: LocalRank, variable: "PMIX_LOCAL_RANK"}}},
	// flux run (flux-environment(7)).
	{rank: "FLUX_TASK_RANK", passesOn: true, set: []variable{
		{label: LocalRank, variable: "FLUX_TASK_LOCAL_ID"}, {label: World, variable: "FLUX_JOB_SIZE"},
	}},
	// srun (srun(1), "OUTPUT ENVIRONMENT VARIABLES"). SLURM_NTASKS is of the allocation where a step has another
	// number of tasks.
	{rank: "SLURM_PROCID", passesOn: true, set: []variable{
		{label: LocalRank, variable: "SLURM_LOCALID"}, {label: World, variable: "SLURM_STEP_NUM_TASKS"}, {label: World, variable: "SLURM_NTASKS"},
		{label: NodeRank, variable: "SLURM_NODEID"}, {label: Node, variable: "SLURMD_NODENAME"}, {label: Host, variable: "SLURMD_NODENAME"},
	}},
}

// known are variables that make labels whoever started the process. For one label the first variable
// that is there counts.
var known = []variable{
	{label: Job, variable: "SLURM_JOB_ID"}, {label: Job, variable: "SLURM_JOBID"}, {label: Job, variable: "FLUX_JOB_ID"}, {label: Job, variable: "PBS_JOBID"},
	{label: Job, variable: "LSB_JOBID"}, {label: Job, variable: "OAR_JOB_ID"},
	{label: Step, variable: "SLURM_STEP_ID"}, {label: Step, variable: "SLURM_STEPID"},
	// torchrun's --rdzv-id is "none" where none was set.
	{label: Run, variable: "TORCHELASTIC_RUN_ID", without: "none"},
	{label: Restart, variable: "TORCHELASTIC_RESTART_COUNT"},
	// The numbers of HIP count within what ROCR shows, and both stand for the same devices.
	{label: Devices, variable: "CUDA_VISIBLE_DEVICES"}, {label: Devices, variable: "HIP_VISIBLE_DEVICES"}, {label: Devices, variable: "ROCR_VISIBLE_DEVICES"},
	{label: Devices, variable: "GPU_DEVICE_ORDINAL"}, {label: Devices, variable: "ZE_AFFINITY_MASK"}, {label: Devices, variable: "ASCEND_RT_VISIBLE_DEVICES"},
	// Names that the examples of Kubernetes' downward API use, and that of its Indexed Jobs.
	{label: Pod, variable: "POD_NAME"}, {label: Pod, variable: "MY_POD_NAME"}, {label: Pod, variable: "K8S_POD_NAME"},
	{label: PodUID, variable: "POD_UID"}, {label: PodUID, variable: "MY_POD_UID"},
	{label: Namespace, variable: "POD_NAMESPACE"}, {label: Namespace, variable: "MY_POD_NAMESPACE"},
	{label: Node, variable: "NODE_NAME"}, {label: Node, variable: "MY_NODE_NAME"}, {label: Node, variable: "K8S_NODE_NAME"},
	{label: Index, variable: "JOB_COMPLETION_INDEX"},
}

// variablesOf returns variables by their names. The first of one name counts, as it does for getenv.
func variablesOf(environment []string) map[string]string {
	all := make(map[string]string, len(environment))
	for _, v := range environment {
		name, value, ok := strings.Cut(v, "=")
		if _, isThere := all[name]; ok && !isThere {
			all[name] = value
		}
	}
	return all
}

// setRanks sets the labels of launchers. The variables of two launchers are not mixed unless
// both have the same rank. passesOn is true where a launcher passed its environment on.
func setRanks(variables map[string]string, set func(name, value string)) (passesOn bool) {
	rank := int64(-1)
	for i := range launchers {
		l := &launchers[i]
		n, ok := number(variables[l.rank])
		if !ok {
			continue
		}
		passesOn = passesOn || l.passesOn
		if rank >= 0 && n != rank {
			continue
		}
		if size, ok := number(variables[l.worldSize()]); ok && n >= size {
			continue // a variable of this name that somebody else set
		}
		rank = n
		set(Rank, strconv.FormatInt(n, 10))
		for _, v := range l.set {
			value := variables[v.variable]
			if n, ok := number(value); ok {
				set(v.label, strconv.FormatInt(n, 10))
			} else if isName[v.label] {
				set(v.label, value)
			}
		}
	}
	return passesOn
}

// isName has the labels of launchers that are not numbers.
var isName = map[string]bool{Node: true, Host: true}

// worldSize is the first variable with the number of ranks; "" where there is none.
func (l *launcher) worldSize() string {
	for _, v := range l.set {
		if v.label == World {
			return v.variable
		}
	}
	return ""
}

// number reads a number of a rank.
func number(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int64(n), err == nil //nolint:gosec // of 31 bits
}

// localRankFlags are the flags that torch.distributed.launch passes to a program.
var localRankFlags = []string{"--local_rank=", "--local-rank="}

// argument returns the number of the first word that begins with a flag; "" where there is none.
func argument(command, flags []string) string {
	for _, word := range command {
		for _, flag := range flags {
			if value, ok := strings.CutPrefix(word, flag); ok {
				if _, ok := number(value); ok {
					return value
				}
			}
		}
	}
	return ""
}

// clean makes a value fit to be printed and compared: valid UTF-8 of one line, of at most maxValue bytes.
func clean(value string) string {
	value = strings.ToValidUTF8(value, "\ufffd")
	if len(value) > maxValue {
		end := maxValue
		for !utf8.RuneStart(value[end]) {
			end--
		}
		value = value[:end] + "..."
	}
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, value)
	return strings.TrimSpace(value)
}

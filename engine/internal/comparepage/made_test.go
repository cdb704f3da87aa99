// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// maker makes comparisons.
type maker struct {
	trace.Comparison
	functions, lines map[string]int
}

func newMaker() *maker { return &maker{functions: map[string]int{}, lines: map[string]int{}} }

// thread is a thread of each target of a class.
type thread struct {
	role   string
	stack  string // FUNCTION or FUNCTION@LINE, outermost first, behind blanks; "|" in the place of a blank
	module string
	set    func(*trace.ClassThread)
}

// node adds a stack to a tree.
func (m *maker) node(t thread, isByLines bool) int {
	at, path, nodes, known := -1, "", &m.Functions, m.functions
	if isByLines {
		nodes, known = &m.Lines, m.lines
	}
	functions := -1
	function := ""
	for _, word := range strings.Fields(t.stack) {
		name, line, hasLine := strings.Cut(strings.ReplaceAll(word, "|", " "), "@")
		f := trace.ComparedFrame{Function: name, Module: t.module}
		function += "\x00" + name + ":0"
		if isByLines {
			functions = m.functions[t.module+function]
			if hasLine {
				f.File = "src/" + name + ".cc"
				_, _ = fmt.Sscan(line, &f.Line)
			}
		}
		path += fmt.Sprintf("\x00%s:%d", name, f.Line)
		next, ok := known[t.module+path]
		if !ok {
			next = len(*nodes)
			known[t.module+path] = next
			*nodes = append(*nodes, trace.CallNode{Parent: at, Frame: f, Function: functions})
		}
		at = next
	}
	return at
}

// class adds a class of targets.
func (m *maker) class(targets []int, threads []thread, set func(*trace.TargetClass)) {
	c := trace.TargetClass{Targets: targets, Labels: map[string]string{}}
	v := trace.ClassVariant{Targets: targets}
	for _, t := range threads {
		function := trace.ClassThread{Role: t.role, Node: m.node(t, false), Threads: len(targets), Least: 1, Most: 1}
		if t.set != nil {
			t.set(&function)
		}
		for k, target := range targets[:min(len(targets), trace.MaxClassIDs)] {
			function.IDs = append(function.IDs, trace.ClassThreadID{Target: target, ID: fmt.Sprint(10000 + 100*target + k)})
		}
		line := function
		line.Node = m.node(t, true)
		c.Threads, v.Threads = append(c.Threads, function), append(v.Threads, line)
	}
	c.Variants = []trace.ClassVariant{v}
	if set != nil {
		set(&c)
	}
	for _, target := range targets {
		m.Targets[target].Class, m.Targets[target].Threads = len(m.Classes), len(threads)
	}
	m.Classes = append(m.Classes, c)
}

// ranks makes targets with ranks.
func (m *maker) ranks(n int) {
	for i := range n {
		m.Targets = append(m.Targets, trace.ComparedTarget{
			Path: fmt.Sprintf("snapshots/rank%d.snapshot", i), PID: int64(40000 + i%8), Count: 1, Moments: []time.Time{time.Unix(1.7e9, int64(i)*1e6)},
			Labels: map[string]string{"rank": fmt.Sprint(i), "local_rank": fmt.Sprint(i % 8), "host": fmt.Sprintf("node%04d", i/8)},
		})
	}
}

// functionOf is the node of a stack by functions.
func (m *maker) functionOf(module, stack string) int {
	return m.node(thread{stack: stack, module: module}, false)
}

// done counts what nodes have.
func (m *maker) done() *trace.Comparison {
	count := func(nodes []trace.CallNode, class int, size int, threads []trace.ClassThread) {
		seen := map[int]bool{}
		for _, t := range threads {
			if t.Node >= 0 {
				nodes[t.Node].Ends += t.Threads
			}
			for n := t.Node; n >= 0; n = nodes[n].Parent {
				nodes[n].Threads += t.Threads
				if !seen[n] {
					seen[n] = true
					nodes[n].Targets += size
					if !slices.Contains(nodes[n].Classes, class) {
						nodes[n].Classes = append(nodes[n].Classes, class)
					}
				}
			}
		}
	}
	for i := range m.Classes {
		c := &m.Classes[i]
		count(m.Functions, i, len(c.Targets), c.Threads)
		for k := range c.Variants {
			count(m.Lines, i, len(c.Variants[k].Targets), c.Variants[k].Threads)
		}
		for name := range map[string]bool{"rank": true, "host": true, "local_rank": true} {
			c.Labels[name] = m.short(c.Targets, name)
		}
	}
	return &m.Comparison
}

// short is the values of a label in short.
func (m *maker) short(targets []int, name string) string {
	var list []string
	for k := 0; k < len(targets); {
		end := k
		for end+1 < len(targets) && targets[end+1] == targets[end]+1 {
			end++
		}
		first, last := m.Targets[targets[k]].Labels[name], m.Targets[targets[end]].Labels[name]
		if first != last {
			first += "-" + last
		}
		list = append(list, first)
		k = end + 1
	}
	return strings.Join(list, ",")
}

// Stacks of a training job.
const (
	python    = "_start main Py_RunMain <module>@12 train@88 step@41 "
	waits     = python + "all_reduce@30 ncclAllReduce ncclGroupEnd poll"
	loads     = python + "next_batch@17 read_shard@63 __read"
	collects  = "clone3 start_thread ncclProxyProgress@812 ncclProxyService sched_yield"
	watches   = "clone3 start_thread watchdog@55 pthread_cond_timedwait"
	autograd  = "clone3 start_thread torch::autograd::Engine::thread_main@401 std::condition_variable::wait futex_wait"
	crashes   = python + "backward@9 at::native::copy_kernel<float,|long,|true>@77 memcpy"
	elsewhere = "clone3 start_thread worker@5 "
)

// job is a job of ranks of which one is elsewhere, one crashed, some have another library, and some could not be read.
func job(ranks, threads int) *maker {
	m := newMaker()
	m.ranks(ranks)
	others := []thread{{role: "nccl proxy", stack: collects}, {role: "watchdog", stack: watches}, {role: "autograd #", stack: autograd}}
	for i := len(others) + 1; i < threads; i++ {
		others = append(others, thread{role: fmt.Sprintf("worker of queue %c", 'a'+i%26), stack: elsewhere + fmt.Sprintf("poll_queue_%d@%d epoll_wait", i, 10+i)})
	}
	with := func(first thread) []thread { return append([]thread{first}, others...) }
	parting := func(role, last, here, stack string, targets int) *trace.Parting {
		return &trace.Parting{
			Role: role, Node: m.functionOf("", stack), Last: m.functionOf("", last), Here: m.functionOf("", here),
			There: []trace.PartingBranch{{Node: m.functionOf("", python+"all_reduce"), Targets: targets, Threads: targets}},
		}
	}
	slow, dead, unread := ranks/3, ranks/2, []int{ranks - 3, ranks - 2}
	library := []int{5, 6, 7}
	var rest []int
	for i := range ranks {
		if i != slow && i != dead && !slices.Contains(unread, i) && !slices.Contains(library, i) {
			rest = append(rest, i)
		}
	}
	restStack := thread{role: "main", stack: waits, set: func(t *trace.ClassThread) { t.Still = true }}
	m.class([]int{dead}, with(thread{role: "main", stack: crashes, set: func(t *trace.ClassThread) { t.Crashed = true }}), func(c *trace.TargetClass) {
		c.Facts, c.Signature = []string{"SIGSEGV: null pointer: reads 0x18"}, "5f0c2d9a"
		c.PartsAt = parting("main", python, python+"backward", crashes, ranks-4)
	})
	m.class([]int{slow}, with(thread{role: "main", stack: loads}), func(c *trace.TargetClass) {
		c.Signature = "77aa01bc"
		c.PartsAt = parting("main", python, python+"next_batch", loads, ranks-4)
	})
	m.class(unread, nil, func(c *trace.TargetClass) { c.Unread, c.Variants = "snapshot.json: unexpected end of file", nil })
	m.class(library, with(restStack), func(c *trace.TargetClass) {
		c.Builds = []trace.ModuleBuild{{Name: "libnccl.so.2", BuildID: "0badc0de"}}
	})
	m.class(rest, with(restStack), nil)
	m.Modules = []trace.ModuleBuilds{{Name: "libnccl.so.2", Builds: []trace.TargetsOfBuild{{BuildID: "0badc0de", Targets: library}, {BuildID: "11112222", Targets: rest}}}}
	m.Collectives = []trace.Collective{{
		Group: "default_pg", Sequence: 4711, Operation: "nccl:all_reduce", Ranks: fmt.Sprintf("0-%d", ranks-1), Entered: "all others", Missing: fmt.Sprint(slow),
		Different: []string{"Rank 3 has another size: 1024, not 2048."}, Frames: []string{"all_reduce at dist.py:30"},
	}}
	m.Problems = []string{"Two targets have rank 9: they are compared as two."}
	m.Targets[slow].Problems = []string{"It has no times: which moments are before which is a guess."}
	return m
}

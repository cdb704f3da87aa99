// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
)

// Stacks of a training job: functions, and lines behind @, outermost first, between semicolons.
const (
	python    = "_start;main;Py_RunMain;<module>@12;train@88;step@41;"
	waits     = python + "all_reduce@30;ncclAllReduce;ncclGroupEnd;poll"
	loads     = python + "next_batch@17;read_shard@63;__read"
	collects  = "clone3;start_thread;ncclProxyProgress@812;ncclProxyService;sched_yield"
	watches   = "clone3;start_thread;watchdog@55;pthread_cond_timedwait"
	autograd  = "clone3;start_thread;torch::autograd::Engine::thread_main@401;std::condition_variable::wait;futex_wait"
	crashes   = python + "backward@9;at::native::copy_kernel<float, long, true>@77;memcpy"
	elsewhere = "clone3;start_thread;worker@5;"
)

// frames are the frames of a stack.
func frames(stack string) (list []trace.ComparedFrame) {
	for word := range strings.SplitSeq(stack, ";") {
		name, line, hasLine := strings.Cut(word, "@")
		f := trace.ComparedFrame{Function: name}
		if hasLine {
			f.File = "src/" + name + ".cc"
			f.Line, _ = strconv.Atoi(line)
		}
		list = append(list, f)
	}
	return list
}

// common are the threads that each rank has beside the main thread.
func common(threads int) (list []comparison.Thread) {
	add := func(role, stack string) {
		list = append(list, comparison.Thread{ID: strconv.Itoa(100 + len(list)), Role: role, Frames: frames(stack)})
	}
	add("nccl proxy", collects)
	add("watchdog", watches)
	add("autograd #", autograd)
	for i := 4; i < threads; i++ {
		add(fmt.Sprintf("queue %d", i), elsewhere+fmt.Sprintf("poll_queue_%d@%d;epoll_wait", i, 10+i))
	}
	return list
}

// rank is a rank of a job whose main thread has a stack.
func rank(i int, stack string, others []comparison.Thread) *comparison.Target {
	host := fmt.Sprintf("node%04d", i/8)
	return &comparison.Target{
		Path: fmt.Sprintf("snapshots/rank%d.snapshot", i), Host: host, PID: int64(40000 + i%8), Taken: time.Unix(1.7e9, int64(i)*1e6),
		Labels:  map[string]string{"rank": strconv.Itoa(i), "local_rank": strconv.Itoa(i % 8), "host": host},
		Threads: append([]comparison.Thread{{ID: strconv.Itoa(40000 + i%8), Role: "main", Frames: frames(stack)}}, others...),
		Modules: []trace.ModuleBuild{{Name: "libnccl.so.2", BuildID: "11112222"}},
	}
}

// equal is a job of ranks whose stacks are all alike.
func equal(ranks, threads int) *trace.Comparison {
	p, others := comparison.New(comparison.Options{}), common(threads)
	for i := range ranks {
		p.Add(rank(i, waits, others))
	}
	return p.Result()
}

// job is a job of ranks of which one crashed (the one in the middle), one is elsewhere (a third), one has another
// library in its stacks (5), and two could not be read (the last but one and two).
func job(ranks, threads int) *trace.Comparison {
	p, others := comparison.New(comparison.Options{}), common(threads)
	for i := range ranks {
		t := rank(i, waits, others)
		t.Threads[0].Frames[7].Module = "libnccl.so.2"
		switch i {
		case ranks / 2:
			t = rank(i, crashes, others)
			t.Threads[0].Crashed = true
			t.Facts = []string{"SIGSEGV: null pointer: reads 0x18"}
		case ranks / 3:
			t = rank(i, loads, others)
			t.Threads[0].Ends = "no-memory: the stack was not recorded"
			t.Problems = []string{"the memory of thread 7 is cut"}
		case 5:
			t.Modules[0].BuildID = "0badc0de"
		case ranks - 3, ranks - 2:
			t.Threads, t.Modules, t.Unread = nil, nil, "snapshot.json: unexpected end of file"
		}
		p.Add(t)
	}
	c := p.Result()
	c.Collectives = []trace.Collective{{
		Group: "default_pg", Sequence: 4711, Operation: "nccl:all_reduce", Ranks: fmt.Sprintf("0-%d", ranks-1), Entered: "all others", Missing: strconv.Itoa(ranks / 3),
		Different: []string{"Rank 3 has another size: 1024, not 2048."}, Frames: []string{"all_reduce at dist.py:30"},
	}}
	c.Problems = append(c.Problems, "Two targets have rank 9: they are compared as two.")
	return c
}

// distinct is a job of ranks that are a class each: below a function that all have, each thread has functions of
// its own.
func distinct(ranks, threads, deep int) *trace.Comparison {
	p, random := comparison.New(comparison.Options{}), rand.New(rand.NewPCG(1, 2))
	for i := range ranks {
		t := rank(i, "start_thread", nil)
		t.Threads = nil
		for k := range threads {
			stack := frames("start_thread")
			for range deep {
				stack = append(stack, trace.ComparedFrame{
					Function: fmt.Sprintf("space::function_%d<int>(char const*)", random.IntN(100_000)), Module: "libwork.so", File: "/src/work/source.cc", Line: random.IntN(5000),
				})
			}
			t.Threads = append(t.Threads, comparison.Thread{ID: strconv.Itoa(random.IntN(4e6)), Role: fmt.Sprintf("worker %c", 'a'+k), Frames: stack})
		}
		p.Add(t)
	}
	return p.Result()
}

// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// job is a made job: process groups, and the operations that each rank calls, one after the other.
type job struct {
	groups   []madeGroup
	ranks    []madeRank
	buffer   int // records of each recorder
	noStatus bool
	noConfig bool // of the last rank, as ProcessGroupGloo has none
}

type madeGroup struct {
	name, description string
	ranks             []int64
}

// madeRank is how far a rank has come.
type madeRank struct {
	called []call
	next   map[int]int64 // numbers of the next operations, by group
}

// call is an operation that a rank has called.
type call struct {
	group       int
	sequence    int64
	name        string
	elements    int64
	isCompleted bool
}

// call calls the next operation of a group on a rank.
func (j *job) call(rank int64, group int, name string, elements int64) {
	r := &j.ranks[rank]
	if r.next == nil {
		r.next = map[int]int64{}
	}
	r.next[group]++
	r.called = append(r.called, call{group: group, sequence: r.next[group], name: name, elements: elements})
}

// complete completes the operations that all members have called, in their order.
func (j *job) complete() {
	for g := range j.groups {
		members := j.groups[g].ranks
		least := int64(1 << 60)
		for _, rank := range members {
			least = min(least, j.ranks[rank].next[g])
		}
		for _, rank := range members {
			for i := range j.ranks[rank].called {
				if c := &j.ranks[rank].called[i]; c.group == g && c.sequence <= least {
					c.isCompleted = true
				}
			}
		}
	}
}

// text is the dump of a rank as FlightRecorder::dump_json of PyTorch writes it, members in the order of their names.
func (j *job) text(rank int64) string {
	config, status := map[string]map[string]string{}, map[string]map[string]string{}
	for g, group := range j.groups {
		if !slices.Contains(group.ranks, rank) {
			continue
		}
		list := strings.ReplaceAll(fmt.Sprint(group.ranks), " ", ", ")
		if !j.noConfig || rank+1 < int64(len(j.ranks)) {
			config[group.name] = map[string]string{"name": group.name, "desc": group.description, "ranks": list}
		}
		last := int64(-1)
		for _, c := range j.ranks[rank].called {
			if c.group == g && c.isCompleted {
				last = c.sequence
			}
		}
		if n := j.ranks[rank].next[g]; n > 0 && !j.noStatus {
			status[strconv.Itoa(g)] = map[string]string{"last_enqueued_collective": fmt.Sprint(n), "last_started_collective": "-1", "last_completed_collective": fmt.Sprint(last)}
		}
	}
	var entries []map[string]any
	for i, c := range j.ranks[rank].called {
		if i < len(j.ranks[rank].called)-j.buffer {
			continue
		}
		state, done := "started", int64(0)
		if c.isCompleted {
			state, done = "completed", 1796060423477147581
		}
		entries = append(entries, map[string]any{
			"record_id": i, "pg_id": c.group, "process_group": []string{j.groups[c.group].name, j.groups[c.group].description},
			"collective_seq_id": c.sequence, "p2p_seq_id": 0, "op_id": c.sequence, "profiling_name": "nccl:" + c.name, "time_created_ns": 1796060423477147581 + int64(i),
			"input_sizes": [][]int64{{c.elements}}, "input_dtypes": []string{"Float"}, "output_sizes": [][]int64{{c.elements}}, "output_dtypes": []string{"Float"},
			"state": state, "time_discovered_started_ns": 0, "time_discovered_completed_ns": done, "retired": c.isCompleted, "timeout_ms": 600000, "is_p2p": false,
			"thread_id": "1", "thread_name": "python",
		})
	}
	out := map[string]any{"version": "2.10", "comm_lib_version": "2.30.7", "pg_config": config, "pg_status": status, "nccl_comm_state": map[string]any{}}
	if j.noConfig && len(entries) == 0 {
		config[""] = map[string]string{"name": "", "desc": "", "ranks": "[0, 1]"} // as ProcessGroupGloo writes it
	}
	if len(entries) > 0 {
		out["entries"] = entries
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// dumps reads the dumps of all ranks but some.
func (j *job) dumps(t *testing.T, without ...int64) (list []*Dump) {
	t.Helper()
	for rank := range int64(len(j.ranks)) {
		if slices.Contains(without, rank) {
			continue
		}
		list = append(list, read(t, fmt.Sprintf("nccl_trace_rank_%d", rank), j.text(rank)))
	}
	return list
}

func read(t testing.TB, path, text string) *Dump {
	t.Helper()
	d, err := Read(strings.NewReader(text), path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(d.Encode())
	if err != nil || string(again.Encode()) != string(d.Encode()) {
		t.Fatalf("%v: %s is again %s", err, d.Encode(), again.Encode())
	}
	return again
}

// randomJob makes a job in which a rank may stop, call another operation, or lag behind.
func randomJob(r *rand.Rand) *job {
	size := int64(2 + r.IntN(12))
	j := &job{ranks: make([]madeRank, size), buffer: 1 + r.IntN(80), noStatus: r.IntN(4) == 0, noConfig: r.IntN(4) == 0}
	world := make([]int64, size)
	for i := range world {
		world[i] = int64(i)
	}
	j.groups = []madeGroup{{"0", "default_pg", world}}
	for i := range r.IntN(3) {
		var members []int64
		for _, rank := range world {
			if r.IntN(2) == 0 {
				members = append(members, rank)
			}
		}
		if len(members) > 1 {
			j.groups = append(j.groups, madeGroup{strconv.Itoa(i + 1), "undefined", members})
		}
	}
	stops := map[int64]int{}
	for range r.IntN(3) {
		stops[r.Int64N(size)] = r.IntN(60)
	}
	for step := range 60 {
		group := r.IntN(len(j.groups))
		name := []string{"all_reduce", "broadcast", "all_gather"}[r.IntN(3)]
		for _, rank := range j.groups[group].ranks {
			if stop, ok := stops[rank]; !ok || step < stop {
				j.call(rank, group, name, 16)
			}
		}
	}
	j.complete()
	return j
}

// TestWhereRanksStandIsTrue joins the dumps of random jobs. Of what is not known nothing is said, and all that is said
// is true.
func TestWhereRanksStandIsTrue(t *testing.T) {
	jobs, open, found := 200, 0, 0
	if oracle.AllRequested() {
		jobs = 2000
	}
	for seed := range uint64(jobs) {
		r := rand.New(rand.NewPCG(seed, 50)) //nolint:gosec // a test's
		j := randomJob(r)
		var without []int64
		if r.IntN(3) == 0 && !j.noConfig {
			without = append(without, r.Int64N(int64(len(j.ranks))))
		}
		dumps := j.dumps(t, without...)
		list, problems := Join(dumps)
		if len(problems) > 0 {
			t.Fatalf("job %d: problems %q", seed, problems)
		}
		r.Shuffle(len(dumps), func(a, b int) { dumps[a], dumps[b] = dumps[b], dumps[a] })
		if again, _ := Join(dumps); fmt.Sprint(again) != fmt.Sprint(list) {
			t.Fatalf("job %d: another order gives\n%v, not\n%v", seed, again, list)
		}
		first := map[int]int64{}
		for i := range list {
			c := &list[i]
			group := slices.IndexFunc(j.groups, func(g madeGroup) bool {
				return (&members{name: g.name, description: g.description}).title() == c.Group && short(g.ranks) == c.Ranks
			})
			if group < 0 {
				t.Fatalf("job %d: group %s of ranks %s", seed, c.Group, c.Ranks)
			}
			if first[group] == 0 {
				first[group] = c.Sequence
			}
			j.check(t, seed, c.Sequence, group, map[string]string{"entered": c.Entered, "completed": c.Completed, "missing": c.Missing, "unrecorded": c.Unrecorded}, without)
		}
		for group := range j.groups {
			n, isOpen := j.firstOpen(group, without)
			if !isOpen {
				if first[group] != 0 {
					t.Errorf("job %d: operation %d of group %d, of which all are completed", seed, first[group], group)
				}
				continue
			}
			open++
			if first[group] == n {
				found++
			} else if j.buffer >= 60 {
				t.Errorf("job %d: the first operation of group %d is %d, expected %d", seed, group, first[group], n)
			}
		}
	}
	t.Logf("%d of %d operations that a group waits in first were found; the others are no longer in the buffers", found, open)
	if open == 0 || found < open/2 {
		t.Errorf("%d of %d were found", found, open)
	}
}

// firstOpen is the first operation of a group that some rank with a dump has entered, and not all of them completed.
func (j *job) firstOpen(group int, without []int64) (sequence int64, isOpen bool) {
	most := int64(0)
	for rank := range j.ranks {
		if !slices.Contains(without, int64(rank)) {
			most = max(most, j.ranks[rank].next[group])
		}
	}
	for n := int64(1); n <= most; n++ {
		for _, rank := range j.groups[group].ranks {
			if !slices.Contains(without, rank) && j.stand(rank, group, n) != "completed" {
				return n, true
			}
		}
	}
	return 0, false
}

// stand is where a rank truly stands in an operation.
func (j *job) stand(rank int64, group int, sequence int64) string {
	for _, c := range j.ranks[rank].called {
		if c.group == group && c.sequence == sequence {
			if c.isCompleted {
				return "completed"
			}
			return "entered"
		}
	}
	return "missing"
}

func (j *job) check(t *testing.T, seed uint64, sequence int64, group int, sets map[string]string, without []int64) {
	t.Helper()
	total := 0
	for name, set := range sets {
		ranks, ok := ranksIn(set)
		if !ok {
			t.Fatalf("ranks %q", set)
		}
		for _, rank := range ranks {
			total++
			if name != "unrecorded" && (j.stand(rank, group, sequence) != name || slices.Contains(without, rank)) {
				t.Errorf("job %d, operation %d of group %d: rank %d is said to be %s, and is %s", seed, sequence, group, rank, name, j.stand(rank, group, sequence))
			}
			if name == "unrecorded" && !slices.Contains(without, rank) && len(j.ranks[rank].called) <= j.buffer {
				t.Errorf("job %d, operation %d of group %d: rank %d is said to be unrecorded, and its recorder has all", seed, sequence, group, rank)
			}
		}
	}
	if total != len(j.groups[group].ranks) {
		t.Errorf("job %d, operation %d of group %d: %d ranks in %v", seed, sequence, group, total, sets)
	}
}

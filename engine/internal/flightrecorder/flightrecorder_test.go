// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestDumpsOfPyTorch joins dumps that PyTorch wrote; see testdata/gloo/make.py.
func TestDumpsOfPyTorch(t *testing.T) {
	var dumps []*Dump
	for rank := range 4 {
		text, err := os.ReadFile(filepath.Join("testdata/gloo", fmt.Sprintf("rank_%d", rank)))
		if err != nil {
			t.Fatal(err)
		}
		if !Accepts(text) {
			t.Errorf("the dump of rank %d is not recognised", rank)
		}
		d := read(t, fmt.Sprintf("rank_%d", rank), string(text))
		if d.Rank != int64(rank) || d.IsCut {
			t.Errorf("%+v", d)
		}
		dumps = append(dumps, d)
	}
	list, problems := Join(dumps)
	want := []trace.Collective{{
		Group: "0 (default_pg)", Sequence: 4, Operation: "gloo:all_reduce", Ranks: "0-3", Entered: "0,2-3", Missing: "1",
		Different: []string{"ranks 0,2 called gloo:all_reduce", "rank 3 called gloo:all_gather"},
	}}
	if d := cmp.Diff(want, list); d != "" || len(problems) > 0 {
		t.Errorf("(-want +got):\n%s%q", d, problems)
	}
}

// four is a job of four ranks in one group.
func four() *job {
	return &job{ranks: make([]madeRank, 4), groups: []madeGroup{{"0", "default_pg", []int64{0, 1, 2, 3}}}, buffer: 100}
}

func TestOneRankHasNotEntered(t *testing.T) {
	j := four()
	for step := range 40 {
		for rank := range int64(4) {
			if step < 30 || rank != 2 {
				j.call(rank, 0, "all_reduce", 8)
			}
		}
	}
	j.complete()
	want := trace.Collective{Group: "0 (default_pg)", Sequence: 31, Operation: "nccl:all_reduce", Ranks: "0-3", Entered: "0-1,3", Missing: "2"}
	list, problems := Join(j.dumps(t))
	if d := cmp.Diff([]trace.Collective{want}, list); d != "" || len(problems) > 0 {
		t.Errorf("(-want +got):\n%s%q", d, problems)
	}
	want.Entered, want.Unrecorded = "0,3", "1"
	list, _ = Join(j.dumps(t, 1))
	if d := cmp.Diff([]trace.Collective{want}, list); d != "" {
		t.Errorf("without a dump of rank 1 (-want +got):\n%s", d)
	}
}

func TestRecordsThatWereOverwrittenAreNotMissing(t *testing.T) {
	j := four()
	j.noStatus = true
	for range 3 {
		j.call(0, 0, "all_reduce", 8)
	}
	for rank := range int64(3) {
		for range 200 {
			j.call(rank+1, 0, "all_reduce", 8)
		}
	}
	j.complete()
	j.buffer = 100
	list, _ := Join(j.dumps(t))
	if len(list) == 0 || list[0].Sequence != 4 || list[0].Missing != "0" || list[0].Unrecorded != "1-3" || list[0].Entered != "" || list[0].Completed != "" {
		t.Errorf("%+v", list)
	}
}

func TestGroupsOfOneNameAreToldApartByTheirRanks(t *testing.T) {
	j := &job{ranks: make([]madeRank, 4), groups: []madeGroup{{"7", "tp", []int64{0, 1}}, {"7", "tp", []int64{2, 3}}}, buffer: 100}
	j.call(0, 0, "all_reduce", 8)
	j.call(2, 1, "broadcast", 8)
	list, problems := Join(j.dumps(t))
	want := []trace.Collective{
		{Group: "7 (tp)", Sequence: 1, Operation: "nccl:all_reduce", Ranks: "0-1", Entered: "0", Missing: "1"},
		{Group: "7 (tp)", Sequence: 1, Operation: "nccl:broadcast", Ranks: "2-3", Entered: "2", Missing: "3"},
	}
	if d := cmp.Diff(want, list); d != "" || len(problems) > 0 {
		t.Errorf("(-want +got):\n%s%q", d, problems)
	}
}

func TestRanksThatDisagreeAreSaid(t *testing.T) {
	j := four()
	for rank := range int64(4) {
		j.call(rank, 0, "all_reduce", 8)
		elements := int64(100)
		if rank == 1 {
			elements = 101
		}
		j.call(rank, 0, "all_reduce", elements)
	}
	list, _ := Join(j.dumps(t))
	if len(list) != 2 || len(list[0].Different) > 0 || fmt.Sprint(list[1].Different) != "[ranks 0,2-3 have the sizes 100 Float -> 100 Float rank 1 has the sizes 101 Float -> 101 Float]" {
		t.Errorf("%+v", list)
	}
	// It is no difference that each rank has another size, of operations that have such.
	j = four()
	for rank := range int64(4) {
		j.call(rank, 0, "all_to_all", 100+rank)
	}
	if list, _ = Join(j.dumps(t)); len(list) != 1 || len(list[0].Different) > 0 {
		t.Errorf("%+v", list)
	}
}

// with adds entries to a dump of a group "0" of ranks 4 to 7.
func with(entries string) string {
	return `{"version":"2.10","pg_config":{"0":{"name":"0","desc":"pp","ranks":"[4, 5, 6, 7]"}},"entries":[` + entries + `]}`
}

func TestOperationsBetweenTwoRanks(t *testing.T) {
	entry := func(id int, name, state string) string {
		return fmt.Sprintf(`{"record_id":%d,"pg_id":0,"process_group":["0","pp"],"collective_seq_id":0,"p2p_seq_id":%d,"op_id":%d,"profiling_name":%q,"state":%q,"is_p2p":true,`+
			`"input_sizes":[[3]],"output_sizes":[[3]],"frames":[{"name":"send","filename":"c10d.py","line":7},{"name":"main","filename":"t.py","line":null}]}`, id, id+1, id, name, state)
	}
	dumps := []*Dump{
		read(t, "d4", with(entry(0, "nccl:send 0->1", "started")+","+entry(1, "nccl:send 0->2", "scheduled"))),
		read(t, "d5", with(entry(0, "nccl:recv 1<-0", "scheduled"))),
		read(t, "d6", with(entry(0, "nccl:recv 2<-3", "scheduled")+","+entry(1, "nccl:coalesced", "started"))),
	}
	list, problems := Join(dumps)
	frames := []string{"send c10d.py:7", "main t.py"}
	want := []trace.Collective{
		{Group: "0 (pp)", Sequence: 1, Operation: "nccl:send 0->1", Ranks: "4-5", Entered: "4-5", Frames: frames},
		{Group: "0 (pp)", Sequence: 2, Operation: "nccl:send 0->2", Ranks: "4,6", Entered: "4", Missing: "6", Frames: frames},
		{Group: "0 (pp)", Sequence: 1, Operation: "nccl:recv 2<-3", Ranks: "6-7", Entered: "6", Unrecorded: "7", Frames: frames},
		{Group: "0 (pp)", Sequence: 2, Operation: "nccl:coalesced", Ranks: "6", Entered: "6", Frames: frames},
	}
	if d := cmp.Diff(want, list); d != "" || len(problems) > 0 {
		t.Errorf("(-want +got):\n%s%q", d, problems)
	}
}

func TestOperationsThatWereLaunchedAsOne(t *testing.T) {
	entry := func(id int, name, state string) string {
		return fmt.Sprintf(`{"record_id":%d,"pg_id":"0","process_group":["0","pp"],"collective_seq_id":1,"p2p_seq_id":0,"op_id":%d,"profiling_name":%q,"state":%q}`, id, id, name, state)
	}
	both := with(entry(1, "nccl:all_gather", "started") + "," + entry(0, "nccl:broadcast", "completed"))
	list, _ := Join([]*Dump{read(t, "d4", both), read(t, "d5", with(entry(0, "nccl:broadcast", "started")))})
	if len(list) != 1 || list[0].Entered != "4-5" || fmt.Sprint(list[0].Different) != "[rank 4 called nccl:broadcast + nccl:all_gather rank 5 called nccl:broadcast]" {
		t.Errorf("%+v", list)
	}
}

func TestTheRankIsInTheNameOfTheFile(t *testing.T) {
	for path, want := range map[string]int64{
		"/tmp/nccl_trace_rank_12": 12, "dir.7/comm_lib_trace_rank_0.json": 0, "t3.JSON.gz": 3, "rank_1.txt.zst": 1, "dump.json": Unknown, "rank_99999999999": Unknown, "": Unknown,
	} {
		if got := RankOf(path); got != want {
			t.Errorf("%s: %d, expected %d", path, got, want)
		}
	}
	d := read(t, "trace_20260301.json", with(""))
	if d.Rank != Unknown {
		t.Errorf("rank %d, which is in none of its groups", d.Rank)
	}
	list, problems := Join([]*Dump{d})
	if len(list) > 0 || len(problems) != 1 || !strings.Contains(problems[0], "trace_20260301.json: a flight recorder's dump of a rank that is not known") {
		t.Errorf("%v, %q", list, problems)
	}
}

func TestOfTwoDumpsOfARankTheNewerIsUsed(t *testing.T) {
	j := four()
	for rank := range int64(4) {
		j.call(rank, 0, "all_reduce", 8)
	}
	old := j.dumps(t)[2]
	old.Path = "old/rank_2"
	j.complete()
	for rank := range int64(4) {
		if rank != 2 {
			j.call(rank, 0, "all_reduce", 8)
		}
	}
	j.call(2, 0, "broadcast", 8)
	dumps := append(j.dumps(t), old, old)
	list, problems := Join(dumps)
	if len(list) != 1 || list[0].Sequence != 2 || list[0].Entered != "0-3" {
		t.Errorf("%+v", list)
	}
	if len(problems) != 1 || problems[0] != "nccl_trace_rank_2 and old/rank_2: two dumps of the flight recorder of rank 2: the second one is left out, which is not newer" {
		t.Errorf("%q", problems)
	}
}

func TestBadDumpsAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"\x80\x02}(X\x07\x00\x00\x00versionq\x00pg_config": "python3 -c 'import json, pickle, sys;",
		"":                               "d4: a flight recorder's dump: offset 0x0: the text ends, expected an object",
		`{"entries":[]}`:                 `version is "", expected 2 and a point`,
		`{"version":"1.5","entries":[]}`: `version is "1.5", expected 2`,
		`{"version":"2.10"}`:             "it has neither pg_config, pg_status nor entries: the recorder was off",
		`{"version":"2.10","entries":[{"record_id":0}]}`:                         "entries[0]: a record without process_group or profiling_name",
		`{"version":"2.10","entries":[{"record_id":-7}]}`:                        "entries[0].record_id: -7, expected a whole number, or -1",
		`{"version":"2.10","entries":[{"profiling_name":7}]}`:                    "entries[0].profiling_name: found a number, expected a string",
		`{"version":"2.10","pg_config":{"0":{"ranks":"[0, x]"}}}`:                "expected a number",
		`{"version":"2.10","pg_config":{"0":{"ranks":[9999999999]}}}`:            "expected a whole number from 0 to",
		`{"version":"2.10","pg_status":{"0":{"last_completed_collective":"x"}}}`: "expected a whole number, or -1",
		`{"version":"2.10","pg_config":{`:                                        "the text ends",
		`{"version":"2.10","pg_config":{}} x`:                                    "expected the end of the text",
	} {
		d, err := Read(strings.NewReader(text), "d4")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "d4: ") {
			t.Errorf("%q: %v, %v, expected %s", text, d, err, want)
		}
		if isPickle([]byte(text)) != errors.Is(err, ErrPickle) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOtherJSONIsNoDump(t *testing.T) {
	for text, want := range map[string]bool{
		with(""): true, "\x80\x02}pg_config": true, ` {"nccl_comm_state":{}}`: true, `{"traceEvents":[],"distributedInfo":{"pg_config":[]}}`: false,
		`{"version":1,"target":{}}`: false, `["pg_config"]`: false, "": false, "\x80": false, `"pg_config"`: false,
	} {
		if Accepts([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestDamagedEncodingsAreErrors(t *testing.T) {
	for _, text := range []string{"", "[]", `{"groups":[{"name":"0","ranks":[2,1]}]}`, `{"groups":[{"name":"0","enqueued":9007199254740993}]}`,
		`{"groups":[{"name":"0","ranks":"2,1"}]}`, `{"groups":[{"name":"0","ranks":"0-9999999999"}]}`, `{"groups":[{"name":"0","ranks":"1-x"}]}`,
		`{"groups":[{"name":"0","records":[[1,0,0,0]]}],"texts":["x"]}`, `{"groups":[{"name":"0","records":[[1,0,0,0,1]]}],"texts":["x"]}`,
		`{"groups":[{"name":"0","records":[[2,0,0,0,0],[1,0,0,0,0]]}],"texts":["x"]}`} {
		if d, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

// FuzzDump reads hostile dumps and joins them.
func FuzzDump(f *testing.F) {
	j := four()
	for rank := range int64(3) {
		j.call(rank, 0, "all_reduce", 8)
		j.call(rank, 0, "scatter", 8)
	}
	f.Add(j.text(0), j.text(1))
	f.Add(with(`{"record_id":0,"pg_id":0,"process_group":["0","pp"],"p2p_seq_id":1,"profiling_name":"nccl:send 0->1","is_p2p":true,"frames":[{"name":"f","filename":"g","line":1}]}`), with(""))
	f.Add(`{"version":"2.1","pg_status":{"0":{"last_enqueued_collective":9007199254740992}},"entries":[{"pg_id":0,"process_group":["0"],"profiling_name":"x"}]}`, "{}")
	f.Fuzz(func(t *testing.T, a, b string) {
		var dumps []*Dump
		for i, text := range []string{a, b} {
			Accepts([]byte(text))
			d, err := Read(strings.NewReader(text), fmt.Sprintf("rank_%d", 4+i))
			if err != nil {
				continue
			}
			data := d.Encode()
			if len(data) > 4096+64*len(text) {
				t.Errorf("%d bytes are kept of a dump of %d", len(data), len(text))
			}
			again, err := Decode(data)
			if err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			dumps = append(dumps, again)
		}
		list, _ := Join(dumps)
		for i := range list {
			if list[i].Group == "" && list[i].Ranks == "" {
				t.Errorf("%+v", list[i])
			}
		}
	})
}

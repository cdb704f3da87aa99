// SPDX-License-Identifier: Apache-2.0

package nsys

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/internal/oracle"
)

// sums are the weights of stacks, outermost frame first, by event and thread.
func sums(f *stacktree.File) map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range f.Samples {
		var names []string
		for stack := s.Stack; stack != 0; stack = f.Stacks[stack].Caller {
			frame := &f.Frames[f.Stacks[stack].Frame]
			name := fmt.Sprintf("%#x in %s", frame.Address, frame.Object)
			if len(frame.Symbols) > 0 {
				name = frame.Symbols[0].Function
			}
			names = append(names, name)
		}
		slices.Reverse(names)
		t := f.Threads[s.Thread]
		event, _, _ := strings.Cut(f.Events[s.Event].Name, "-time")
		out[fmt.Sprintf("%s %s %d/%d: %s", event, t.Comm, t.PID, t.TID, strings.Join(names, ";"))] += s.Weight
	}
	return out
}

// The global IDs of process 100, and of its threads 100 and 101, as exports have them.
const (
	process = 1<<48 | 100<<24
	first   = process | 100
	second  = process | 101
)

// exported has the rows of an export, by table, with the columns that its documentation names: two
// kernels under ranges and calls, one of them with a recorded stack, a copy, a kernel whose call is
// missing, a call of the system, and samples of the CPU.
var exported = []struct {
	table   string
	columns string
	rows    [][]any
}{
	{"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", [][]any{
		{1, "cudaLaunchKernel_v7000"}, {2, "cudaMemcpyAsync_v3020"}, {3, "void gemm<float>(float*)"}, {4, "gemm"}, {5, "main"}, {6, "/app/train"}, {7, "step"}, {8, "read"}, {9, "worker"},
		{10, "[Unknown]"}, {11, "0x7f0012"},
	}},
	{"ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER", [][]any{{9, nil, second}}},
	{"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT", [][]any{{process, 100, "/app/train"}}},
	{"TARGET_INFO_SESSION_START_TIME", "utcEpochNs INTEGER, utcTime TEXT", [][]any{{int64(1700000000000000000), "x"}}},
	{"CUPTI_ACTIVITY_KIND_KERNEL", `start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
		globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER`, [][]any{
		{1000, 1300, 0, 1, 7, 11, process, 3, 4, nil}, {1300, 1350, 1, 1, 13, 12, process, 3, 4, nil}, {2000, 2002, 0, 1, 7, 999, process, 3, 4, nil},
	}},
	{"CUPTI_ACTIVITY_KIND_MEMCPY", "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER NOT NULL", [][]any{
		{1400, 1450, 0, 7, 13, process, 4096, 1},
	}},
	{"CUPTI_ACTIVITY_KIND_RUNTIME", "start INTEGER NOT NULL, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, callchainId INTEGER", [][]any{
		{100, 120, first, 11, 1, 5}, {130, 140, first, 12, 1, 0}, {150, 190, first, 13, 2, nil}, {300, nil, first, 14, 2, nil},
	}},
	{"CUDA_CALLCHAINS", "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, unresolved INTEGER, originalIP INTEGER, stackDepth INTEGER NOT NULL", [][]any{{5, 5, 6, nil, 4198400, 1}, {5, 11, 6, 1, 8323090, 0}}},
	{"NVTX_EVENTS", "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER", [][]any{
		{90, 200, 59, "iteration 1", first, nil}, {95, 160, 59, nil, first, 7}, {95, nil, 34, "mark", first, nil}, {95, 99, 60, "across", first, nil},
	}},
	{"OSRT_API", "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, callchainId INTEGER NOT NULL", [][]any{{50, 70, second, 8, 0}}},
	{"COMPOSITE_EVENTS", "id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER NOT NULL", [][]any{{1, 55, 0, 1, first, 9}, {2, 60, 0, 1, first, 9}, {3, 61, 0, 1, second, 9}}},
	{"SAMPLING_CALLCHAINS", "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, kernelMode INTEGER, unresolved INTEGER, originalIP INTEGER, stackDepth INTEGER NOT NULL, PRIMARY KEY (id, stackDepth)", [][]any{
		{1, 4, 6, nil, nil, 1, 0}, {1, 5, 6, nil, nil, 2, 1}, {2, 5, 6, nil, nil, 3, 1}, {2, 4, 6, nil, nil, 3, 0}, {3, 11, 10, nil, 1, 8323090, 0},
	}},
	{"GPU_METRICS", "start INTEGER, value INTEGER", [][]any{{1, 2}}},
}

const inRanges = "train 100/100: iteration 1"

var want = map[string]uint64{
	"span " + inRanges:           5 + 40,
	"span " + inRanges + ";step": 5 + 10 + 10,
	"span " + inRanges + ";step;main;0x7f0012 in /app/train;cudaLaunchKernel": 20,
	"span " + inRanges + ";step;cudaLaunchKernel":                             10,
	"span worker 100/101: read":                                               20,
	"cpu-samples train 100/100: main;gemm":                                    2,
	"cpu-samples worker 100/101: 0x7f0012 in ":                                1,
	"gpu-kernel " + inRanges + ";step;main;0x7f0012 in /app/train;cudaLaunchKernel;[GPU 0, stream 7];void gemm<float>(float*)": 300,
	"gpu-kernel " + inRanges + ";step;cudaLaunchKernel;[GPU 1, stream 13];void gemm<float>(float*)":                            50,
	// The copy ends after its range, by less than times may be rounded.
	"span " + inRanges + ";step;cudaMemcpyAsync":                                     10,
	"gpu-memory " + inRanges + ";step;cudaMemcpyAsync;[GPU 0, stream 7];Memcpy HtoD": 50,
	"gpu-kernel train 100/-1: [GPU 0, stream 7];void gemm<float>(float*)":            2,
}

// database writes the rows as a database.
func database(t *testing.T) []byte {
	t.Helper()
	oracle.Tools(t, "sqlite3")
	var sql strings.Builder
	sql.WriteString("BEGIN;\n")
	for _, e := range exported {
		fmt.Fprintf(&sql, "CREATE TABLE %s (%s);\n", e.table, e.columns)
		for _, row := range e.rows {
			var values []string
			for _, v := range row {
				switch v := v.(type) {
				case nil:
					values = append(values, "NULL")
				case string:
					values = append(values, "'"+v+"'")
				default:
					values = append(values, fmt.Sprint(v))
				}
			}
			fmt.Fprintf(&sql, "INSERT INTO %s VALUES (%s);\n", e.table, strings.Join(values, ","))
		}
	}
	sql.WriteString("COMMIT;\n")
	path := filepath.Join(t.TempDir(), "e.sqlite")
	if err := os.WriteFile(path+".sql", []byte(sql.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "sqlite3", path, ".read "+path+".sql")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// lines writes the rows as lines of JSON, texts last.
func lines() []byte {
	var b strings.Builder
	for i := range exported {
		e := exported[len(exported)-1-i]
		var names []string
		for _, column := range strings.Split(e.columns, ",") {
			if name := strings.Fields(column)[0]; name != "PRIMARY" && name != "stackDepth)" {
				names = append(names, name)
			}
		}
		for _, row := range e.rows {
			fmt.Fprintf(&b, `{"table":%q`, e.table)
			for k, v := range row {
				switch v := v.(type) {
				case nil:
				case string:
					fmt.Fprintf(&b, ",%q:%q", names[k], v)
				default:
					fmt.Fprintf(&b, ",%q:%v", names[k], v)
				}
			}
			b.WriteString("}\n")
		}
	}
	return []byte(b.String())
}

func check(t *testing.T, f *stacktree.File, want map[string]uint64, problems ...string) {
	t.Helper()
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(want, sums(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	said := strings.Join(f.Problems, "\n")
	for _, p := range problems {
		if !strings.Contains(said, p) {
			t.Errorf("the problems lack %q:\n%s", p, said)
		}
	}
	if len(f.Problems) != len(problems) {
		t.Errorf("problems:\n%s", said)
	}
}

var expectedProblems = []string{
	"1 rows have no times", "1 marks of NVTX", "1 ranges of NVTX begin and end anywhere", "1 kernels and copies have no call",
	"1 spans end after the span that they are in, by 30ns", "GPU_METRICS",
}

func TestDatabase(t *testing.T) {
	data := database(t)
	if !AcceptsDatabase(data) || AcceptsLines(data) {
		t.Fatal("it is not accepted")
	}
	f, err := ReadDatabase("e", data)
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, want, expectedProblems...)
	if got := f.Samples[0].Time; got < 1700000000000000000 {
		t.Errorf("the first time is %d", got)
	}
}

func TestLines(t *testing.T) {
	data := lines()
	if !AcceptsLines(data) || AcceptsDatabase(data) {
		t.Fatal("it is not accepted")
	}
	f, err := ReadLines("e", append(data, "{not JSON\n"...))
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, want, append([]string{"1 lines cannot be read, the first: line "}, expectedProblems...)...)
}

// TestOldLines are as older versions write them: events in objects, numbers in quotes, and the
// texts in the first line.
func TestOldLines(t *testing.T) {
	data := []byte(fmt.Sprintf(`{"data":["[Unknown]","cudaLaunchKernel_v7000","gemm","step"]}
{"Type":59,"NvtxEvent":{"Type":59,"Timestamp":"90","Text":"iteration 1","GlobalTid":"%[2]d","EndTimestamp":"200","DomainId":"0","NsTime":true}}
{"Type":75,"NvtxEvent":{"Type":75,"Timestamp":"90","Text":"x","GlobalTid":"%[2]d"}}
{"Type":48,"TraceProcessEvent":{"startNs":"100","endNs":"120","correlationId":745,"eventClass":1,"name":"1","returnValue32":0,"globalTid":"%[2]d"}}
{"Type":79,"CudaEvent":{"startNs":"1000","endNs":"1300","correlationId":745,"deviceId":1,"contextId":"1","streamId":"7","eventClass":3,"globalPid":"%[1]d","kernel":{"demangledName":"2","shortName":"2"}}}
{"Type":80,"CudaEvent":{"startNs":"1300","endNs":"1310","correlationId":745,"deviceId":1,"contextId":"1","streamId":"7","globalPid":"%[1]d","memcpy":{"sizebytes":"4","copyKind":"2"}}}
{"Type":106,"CudaEvent":{"startNs":"1300","endNs":"1310","correlationId":745,"deviceId":1,"sync":{"eventId":1}}}
{"Type":41,"SchedEvent":{"startNs":"1"}}
`, int64(process), int64(first)))
	if !AcceptsLines(data) {
		t.Fatal("it is not accepted")
	}
	f, err := ReadLines("e", data)
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, map[string]uint64{
		"span  100/100: iteration 1":                                                      90,
		"span  100/100: iteration 1;cudaLaunchKernel":                                     20,
		"gpu-kernel  100/100: iteration 1;cudaLaunchKernel;[GPU 1, stream 7];gemm":        300,
		"gpu-memory  100/100: iteration 1;cudaLaunchKernel;[GPU 1, stream 7];Memcpy DtoH": 10,
	}, "1 marks of NVTX", "lines that are not shown: 1 CudaEvent, 1 SchedEvent")
}

func TestOtherFilesAreNotAccepted(t *testing.T) {
	for _, text := range []string{"", "{}", `{"table":"x"}`, `{"format":"unwindd-gpu-samples"}`, `{"a":{"b":1}}`, "SQLite format 3\x00", "x\n", `{"traceEvents":[]}`} {
		if AcceptsLines([]byte(text)) || AcceptsDatabase([]byte(text)) {
			t.Errorf("%q is accepted", text)
		}
	}
}

// FuzzLines reads arbitrary bytes as lines.
func FuzzLines(f *testing.F) {
	f.Add(lines())
	f.Add([]byte(`{"data":["a","b"]}` + "\n" + `{"Type":79,"CudaEvent":{"startNs":"1","endNs":"2","kernel":{"demangledName":"1"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		AcceptsLines(data)
		file, err := ReadLines("e", data)
		if err != nil {
			return
		}
		if err := file.Check(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(data), "\n") + 1; len(file.Samples) > 20*n || len(file.Problems) > 60 {
			t.Errorf("%d samples and %d problems of %d lines", len(file.Samples), len(file.Problems), n)
		}
	})
}

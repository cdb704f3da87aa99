// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// sums are the weights of stacks, outermost frame first, by event and thread.
func sums(f *stacktree.File) map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range f.Samples {
		var names []string
		for stack := s.Stack; stack != 0; stack = f.Stacks[stack].Caller {
			symbol := f.Frames[f.Stacks[stack].Frame].Symbols[0]
			name := symbol.Function
			if symbol.Line > 0 {
				name += fmt.Sprintf("@%s:%d", symbol.File, symbol.Line)
			}
			names = append(names, name)
		}
		slices.Reverse(names)
		event, _, _ := strings.Cut(f.Events[s.Event].Name, "-time")
		out[fmt.Sprintf("%s %s: %s", event, f.Threads[s.Thread].Comm, strings.Join(names, ";"))] += s.Weight
	}
	return out
}

func read(t *testing.T, text string) *stacktree.File {
	t.Helper()
	if !Accepts([]byte(text)) {
		t.Errorf("not accepted: %s", text)
	}
	f, err := Read("t", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	return f
}

// span is an event of a thread.
func spanText(category, name string, ts, dur float64, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":10,"tid":11,"ts":%v,"dur":%v,"args":{%s}}`, category, name, ts, dur, args)
}

// gpuText is an event of stream 7 of device 1.
func gpuText(category, name string, ts, dur float64, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":7,"ts":%v,"dur":%v,"args":{"device":1,"stream":7,%s}}`, category, name, ts, dur, args)
}

func kineto(events ...string) string {
	return `{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":3},"baseTimeNanoseconds":1000000,"traceEvents":[` + strings.Join(events, ",\n") + `]}`
}

// TestPyTorch has one kernel under functions of Python, an operator and the call that launched
// it, a copy, and a kernel of which only the operator is known.
func TestPyTorch(t *testing.T) {
	f := read(t, kineto(
		spanText("python_function", "train.py(12): main", 0, 100, `"Python id":1,"Python parent id":null`),
		spanText("python_function", "<built-in method conv2d of type object at 0x7f3a12>", 10, 50, `"Python id":2,"Python parent id":1`),
		spanText("cpu_op", "aten::conv2d", 10, 50, `"External id":5`),
		spanText("cuda_runtime", "cudaLaunchKernel", 20.001, 9.999, `"correlation":77,"External id":5`),
		spanText("cuda_runtime", "cudaMemcpyAsync", 40, 10, `"correlation":78`),
		gpuText("kernel", "gemm", 200, 12.345, `"correlation":77,"External id":5`),
		gpuText("gpu_memcpy", "Memcpy HtoD", 250, 3, `"correlation":78`),
		gpuText("kernel", "gemm", 300, 1, `"correlation":99,"External id":5`),
		gpuText("kernel", "lost", 310, 2, `"correlation":100`),
		gpuText("gpu_user_annotation", "step", 200, 12, `"External id":5`),
		`{"ph":"M","name":"process_name","pid":10,"tid":0,"args":{"name":"python"}}`,
	))
	const conv = "main@train.py:12;<built-in method conv2d of type object>;aten::conv2d"
	want := map[string]uint64{
		"span rank 3: main@train.py:12":                                                 50000,
		"span rank 3: " + conv:                                                          30001,
		"span rank 3: " + conv + ";cudaLaunchKernel":                                    9999,
		"span rank 3: " + conv + ";cudaMemcpyAsync":                                     10000,
		"gpu-kernel rank 3: " + conv + ";cudaLaunchKernel;[GPU 1, stream 7];gemm":       12345,
		"gpu-memory rank 3: " + conv + ";cudaMemcpyAsync;[GPU 1, stream 7];Memcpy HtoD": 3000,
		"gpu-kernel rank 3: " + conv + ";[GPU 1, stream 7];gemm":                        1000,
		"gpu-kernel rank 3: [GPU 1, stream 7];lost":                                     2000,
	}
	if d := cmp.Diff(want, sums(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(f.Kernels) != 2 || f.Kernels[0].Name != "gemm" || f.Kernels[0].Dispatches != 2 || f.Kernels[0].Time != 13345 {
		t.Errorf("kernels %+v", f.Kernels)
	}
	problems := strings.Join(f.Problems, "\n")
	if len(f.Problems) != 2 || !strings.Contains(problems, "1 kernels and copies have no call") || !strings.Contains(problems, "1 gpu_user_annotation") {
		t.Errorf("problems:\n%s", problems)
	}
	for _, s := range f.Samples {
		if f.Events[s.Event].Name == stacktree.MemoryEvent && s.Time != 1250000 {
			t.Errorf("the copy began at %d, expected at 1250000", s.Time)
		}
	}
}

// TestOldExternalIDs: in old traces the external ID of a kernel is its correlation ID again, and of
// no operator.
func TestOldExternalIDs(t *testing.T) {
	f := read(t, kineto(spanText("cpu_op", "aten::other", 0, 10, `"External id":9`), gpuText("kernel", "k", 20, 5, `"correlation":9,"External id":9`)))
	if got := sums(f); got["gpu-kernel rank 3: [GPU 1, stream 7];k"] != 5000 {
		t.Errorf("%v", got)
	}
}

// TestCallsOfOneID: the call inside another is the one that launched; two beside each other are
// not told apart.
func TestCallsOfOneID(t *testing.T) {
	call := func(name string, ts, dur float64) string {
		return spanText("cuda_runtime", name, ts, dur, `"correlation":1`)
	}
	kernel := gpuText("kernel", "k", 50, 5, `"correlation":1`)
	for text, want := range map[string]string{
		kineto(call("outer", 0, 10), call("inner", 1, 2), kernel): "gpu-kernel rank 3: outer;inner;[GPU 1, stream 7];k",
		kineto(call("first", 0, 10), call("next", 11, 2), kernel): "gpu-kernel rank 3: [GPU 1, stream 7];k",
	} {
		if got := sums(read(t, text)); got[want] != 5000 {
			t.Errorf("expected %s:\n%v", want, got)
		}
	}
}

// TestArrows: where calls have no correlation ID an arrow leads from the thread to the kernel.
func TestArrows(t *testing.T) {
	for _, ends := range [][2]string{{"s", "f"}} {
		f := read(t, kineto(
			spanText("user_annotation", "step", 0, 100, ""), spanText("", "enqueue", 10, 10, ""),
			fmt.Sprintf(`{"ph":%q,"id":4,"cat":"ac2g","name":"ac2g","pid":10,"tid":11,"ts":15}`, ends[0]),
			fmt.Sprintf(`{"ph":%q,"id":4,"cat":"ac2g","name":"ac2g","pid":1,"tid":7,"ts":50,"bp":"e"}`, ends[1]),
			`{"ph":"X","cat":"kernel","name":"k","pid":1,"tid":7,"ts":50,"dur":5}`,
		))
		if got := sums(f); got["gpu-kernel rank 3: step;enqueue;launch;[GPU 1, stream 7];k"] != 5000 {
			t.Errorf("%v", got)
		}
	}
}

// TestRecordedStacks: operators of old traces have the stack of Python as a text.
func TestRecordedStacks(t *testing.T) {
	f := read(t, kineto(
		spanText("cpu_op", "aten::linear", 0, 10, `"Call stack":"nn.py(5): forward;main.py(9): <module>"`),
		spanText("cpu_op", "aten::mm", 2, 3, `"Call stack":"nn.py(5): forward;main.py(9): <module>"`),
	))
	want := map[string]uint64{
		"span rank 3: <module>@main.py:9;forward@nn.py:5;aten::linear":          7000,
		"span rank 3: <module>@main.py:9;forward@nn.py:5;aten::linear;aten::mm": 3000,
	}
	if d := cmp.Diff(want, sums(f)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestFunctionsEndBeforeTheirCallers: Python's profiler misses the end of some functions, which
// then seem to call what follows.
func TestFunctionsEndBeforeTheirCallers(t *testing.T) {
	f := read(t, kineto(
		spanText("python_function", "a.py(1): main", 0, 100, ""), spanText("python_function", "a.py(2): enter", 10, 10, ""),
		spanText("python_function", "next", 15, 70, ""), spanText("python_function", "a.py(3): work", 30, 20, ""),
	))
	want := map[string]uint64{
		"span rank 3: main@a.py:1": 70000, "span rank 3: main@a.py:1;enter@a.py:2": 5000, "span rank 3: main@a.py:1;enter@a.py:2;next": 5000,
		"span rank 3: main@a.py:1;work@a.py:3": 20000,
	}
	if d := cmp.Diff(want, sums(f)); d != "" || len(f.Problems) != 1 {
		t.Errorf("problems %q (-want +got):\n%s", f.Problems, d)
	}
}

// TestOtherTraces are of programs that are not PyTorch.
func TestOtherTraces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		problems   int
	}{
		{"begins and ends", `[{"ph":"B","name":"a","pid":1,"tid":"main","ts":-5},{"ph":"B","name":"b","pid":1,"tid":"main","ts":0},{"ph":"E","pid":1,"tid":"main","ts":3},{"ph":"E","pid":1,"tid":"main","ts":10},]`,
			map[string]uint64{"span main: a": 12000, "span main: a;b": 3000}, 0},
		{"a span that does not end", `[{"ph":"B","name":"a","pid":1,"tid":1,"ts":0},{"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":3}]`,
			map[string]uint64{"span : a": 2000, "span : a;b": 3000}, 0},
		{"spans that overlap", `[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"dur":10}]`,
			map[string]uint64{"span : a": 5000, "span : a;b": 5000, "span : b": 5000}, 1},
		{"spans that are rounded", `[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"dur":6}]`,
			map[string]uint64{"span : a": 5000, "span : a;b": 5000}, 1},
		{"numbers in quotes, and with exponents", `[{"ph":"X","name":"a","pid":"1","tid":1,"ts":"1e3","dur":2.5E-1}]`, map[string]uint64{"span : a": 250}, 0},
		{"times that are none", `[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":-1},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1e300,"dur":1},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1},{"ph":"X","name":"b","pid":1,"tid":1,"ts":NaN,"dur":NaN},{"ph":"X","name":"ok","pid":1,"tid":1,"ts":1,"dur":1}]`,
			map[string]uint64{"span : ok": 1000}, 3},
		{"what is no JSON", `{"traceEvents":[{"ph":"X","name":"a","args":{"x":[NaN,{"y":Infinity}]},"pid":1,"tid":1,"ts":0,"dur":1},{"ph":"X","name":"\q","pid":1,"tid":1,"ts":5,"dur":1},{"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"dur":1}]}`,
			map[string]uint64{"span : a": 1000, "span : b": 1000}, 1},
		{"a text that is cut", `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},{"ph":"X","na`, map[string]uint64{"span : a": 1000}, 2},
		{"other events", `[{"ph":"i","name":"x","ts":1},{"ph":"C","name":"x","ts":1},{"ph":"b","name":"x","ts":1},{"ph":"E","ts":1},{"ph":"s","cat":"fwdbwd","id":1,"ts":1},{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}]`, map[string]uint64{"span : a": 1000}, 1},
	} {
		f := read(t, c.text)
		if d := cmp.Diff(c.want, sums(f)); d != "" || len(f.Problems) != c.problems {
			t.Errorf("%s: problems %q (-want +got):\n%s", c.name, f.Problems, d)
		}
	}
}

func TestOtherJSONIsNotAccepted(t *testing.T) {
	for _, text := range []string{"", "[", "{", "[]", "[1,2]", `[{"a":1}]`, `{"a":"traceEvents"}`, `{"rocprofiler-sdk-tool":[{"traceEvents":1}]}`, `{"version":1}`, "x"} {
		if Accepts([]byte(text)) {
			t.Errorf("%s is accepted", text)
		}
	}
}

// TestDeepAndCrossingSpans: time and memory are bounded by the text.
func TestDeepAndCrossingSpans(t *testing.T) {
	var deep, crossing []string
	for i := range 6000 {
		deep = append(deep, fmt.Sprintf(`{"ph":"X","name":"a","pid":1,"tid":1,"ts":%d,"dur":%d}`, i, 20000-2*i))
		crossing = append(crossing, fmt.Sprintf(`{"ph":"X","name":"a","pid":1,"tid":1,"ts":%d,"dur":10000}`, 2*i))
	}
	for name, list := range map[string][]string{"more than": deep, "the rest of them": crossing} {
		f := read(t, "["+strings.Join(list, ",")+"]")
		if len(f.Problems) == 0 || !strings.Contains(strings.Join(f.Problems, " "), name) {
			t.Errorf("problems %q", f.Problems)
		}
	}
}

// FuzzTrace reads arbitrary bytes as a trace.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(kineto(spanText("python_function", "a.py(1): f", 0, 9, `"Python id":1`), spanText("cuda_runtime", "launch", 1, 2, `"correlation":7`), gpuText("kernel", "k", 5, 6, `"correlation":7`))))
	f.Add([]byte(`[{"ph":"B","name":"a","pid":1,"tid":"x","ts":-5},{"ph":"E","pid":1,"tid":"x","ts":1e3},`))
	f.Add([]byte(`{"traceEvents":[{"ph":"X","name":"a","args":{"x":[NaN]},"ts":0,"dur":1},{"ph":"s","id":1,"cat":"ac2g","ts":1},{"ph":"X","ts":1,"dur":9},{"ph":"X","ts":5,"dur":9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		Accepts(data)
		file, err := Read("t", data)
		if err != nil {
			return
		}
		if err := file.Check(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(data), "{"); len(file.Samples) > 20*n || len(file.Problems) > 60 {
			t.Errorf("%d samples and %d problems of %d objects", len(file.Samples), len(file.Problems), n)
		}
	})
}

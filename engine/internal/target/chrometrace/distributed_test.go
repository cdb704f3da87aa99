// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"os"
	"strings"
	"testing"
)

// TestThePartOfAProcessInItsJob reads a trace that PyTorch wrote; see testdata/make.py.
func TestThePartOfAProcessInItsJob(t *testing.T) {
	data, err := os.ReadFile("testdata/rank0.pt.trace.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ReadDistributed("t", data)
	if err != nil || *d != (Distributed{PID: 21775, Host: "n07", Rank: 0, Size: 1, Backend: "gloo"}) {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestProcessesOfTracesAreFound(t *testing.T) {
	work := spanText("cpu_op", "aten::add", 0, 1, "")
	labelled := `{"ph":"M","name":"process_labels","pid":77,"args":{"labels":"CPU"}}`
	for _, c := range []struct {
		name, text string
		pid, rank  int64
		problem    string
	}{
		{"by its label", kineto(work, labelled), 77, 3, ""},
		{"by its work", kineto(work, gpuText("kernel", "k", 0, 1, "")), 10, 3, ""},
		{"the job behind the events", `{"traceEvents":[` + labelled + `,` + work + `],"distributedInfo":{"rank":5,"world_size":8}}`, 77, 5, ""},
		{"none", kineto(gpuText("kernel", "k", 0, 1, "")), 0, 0, "it has 0 processes with work of PyTorch"},
		{"two", kineto(work, strings.Replace(work, `"pid":10`, `"pid":12`, 1)), 0, 0, "it has 2 processes with work of PyTorch"},
		{"no job", `{"traceEvents":[` + labelled + `]}`, 0, 0, "it has no distributedInfo with a rank"},
		{"another rank", `{"distributedInfo":{"rank":"first"},"traceEvents":[` + labelled + `]}`, 0, 0, "it has no distributedInfo with a rank"},
		{"a list", `[` + labelled + `]`, 0, 0, "it is a list of events, expected an object with distributedInfo"},
		{"cut off", `{"distributedInfo":{"rank":3},"traceEvents":[` + work, 0, 0, "expected a comma or the end of the array"},
	} {
		d, err := ReadDistributed("t", []byte(c.text))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.HasPrefix(err.Error(), "t: ") {
				t.Errorf("%s: %+v, %v, expected %s", c.name, d, err, c.problem)
			}
			continue
		}
		if err != nil || d.PID != c.pid || d.Rank != c.rank {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
}

// FuzzDistributed reads hostile traces.
func FuzzDistributed(f *testing.F) {
	f.Add([]byte(kineto(spanText("cpu_op", "aten::add", 0, 1, ""))))
	f.Add([]byte(`{"host_name":"h","distributedInfo":{"rank":1,"world_size":NaN},"traceEvents":[{"ph":"M","name":"process_labels","pid":"7","args":{"labels":"CPU"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ReadDistributed("t", data)
		if (d == nil) == (err == nil) || d != nil && (d.PID <= 0 || d.Rank < 0) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

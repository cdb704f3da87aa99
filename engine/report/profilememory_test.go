// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

func TestAccessesToMemory(t *testing.T) {
	r := workday()
	r.Memory = []trace.DataAccess{
		{Operation: "load", Level: "L1 hit", Snoop: "none", TLB: "L1 hit", Samples: 3, Latency: 16},
		{Operation: "store", Level: "local RAM hit", Snoop: "HitM", Locked: true, Samples: 1},
		{Event: 1, Samples: 4},
	}
	var b bytes.Buffer
	if err := r.view(t, "cpu-clock").WriteSummary(&b, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `memory: 4 samples with a place of their data
         3   75.0%  load, L1 hit, TLB L1 hit, 5 of latency on average
         1   25.0%  store, local RAM hit, snoop HitM, locked
`
	if !strings.Contains(b.String(), want) {
		t.Errorf("expected\n%s\nin\n%s", want, b.String())
	}
	b.Reset()
	if err := r.view(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var out struct{ Memory []memoryAccessJSON }
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]memoryAccessJSON{
		{Event: "cpu-clock", Operation: "load", Level: "L1 hit", Snoop: "none", TLB: "L1 hit", Samples: 3, Latency: 16},
		{Event: "cpu-clock", Operation: "store", Level: "local RAM hit", Snoop: "HitM", Locked: true, Samples: 1},
		{Event: "page-faults", Samples: 4},
	}, out.Memory); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// SPDX-License-Identifier: Apache-2.0

package jsonlines

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
	"github.com/unwindd/unwindd/engine/trace"
)

// FuzzSamples reads arbitrary bytes as a file, with and without a first line of
// the format before them.
func FuzzSamples(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(header + `{"record":"sample","pc":"0x10","exec_mask":"0xf","lanes":2}`))
	f.Add([]byte(`{"record":"launch","id":1,"pid":1,"tid":1,"frames":["0x1"]}` + "\n" + `{"record":"launch","id":1,"pid":2,"tid":1,"frames":["0x1"]}`))
	f.Add([]byte(`{"record":"module","id":1,"path":"/a","arch":"gpu","segments":[{"address":"0x0","size":"0x10","start":"0xffffffffffffffef"}]}`))
	f.Add([]byte("\x00\n{}\n\n[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(t, data)
		exercise(t, append([]byte(header), data...))
	})
}

func exercise(t *testing.T, data []byte) {
	f, err := open(linetext.New("fuzz", data))
	if err != nil {
		return
	}
	if n := len(f.Problems()); n > maxProblems+1 {
		t.Errorf("%d problems", n)
	}
	counts := make([]int, len(f.facts.Events))
	total := 0
	err = f.Samples(func(s *gpusamples.Sample) error {
		if s.Module >= len(f.facts.Modules) || s.Module < 0 != (s.Problem != "" || !s.HasOffset && len(modulesAt(f, s.PC)) == 0) {
			t.Errorf("sample %+v", s)
		}
		if s.ActiveLanes > maxLanes || s.Weight > maxWeight || !s.HasLanes && f.facts.Events[s.Event].Lanes {
			t.Errorf("sample %+v", s)
		}
		if s.Kernel >= len(f.facts.Kernels) {
			t.Errorf("sample %+v", s)
		}
		total++
		counts[s.Event]++
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for i, e := range f.facts.Events {
		if counts[i] != e.Samples {
			t.Errorf("event %q: %d samples, then %d", e.Name, e.Samples, counts[i])
		}
	}
	if total > strings.Count(string(data), "\n")+1 {
		t.Errorf("%d samples", total)
	}
}

// modulesAt are the modules that have a segment at an address.
func modulesAt(f *File, pc uint64) (at []int) {
	for i, m := range f.facts.Modules {
		if f.moduleIDs[m.ID] != several && slices.ContainsFunc(m.Segments, func(s trace.Segment) bool { return pc >= s.Start && pc-s.Start < s.Size }) {
			at = append(at, i)
		}
	}
	return at
}

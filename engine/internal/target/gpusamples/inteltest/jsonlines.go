// SPDX-License-Identifier: Apache-2.0

package inteltest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Module is a code object in lines of JSON.
type Module struct{ Path, Arch string }

// JSONLines returns the run as lines of JSON (docs/gpu-samples.md), which have no states, no
// instructions and no names of functions of the CPU: a sample for each count that is
// not zero, with the same event, time and weight as iaprof's.
func (r *Run) JSONLines(modules []Module) []byte {
	var b strings.Builder
	line := func(members map[string]any) {
		text, err := json.Marshal(members)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
	line(map[string]any{"record": "format", "format_version": 1, "clock": "CLOCK_MONOTONIC"})
	for i, m := range modules {
		line(map[string]any{"record": "module", "id": i + 1, "path": m.Path, "arch": m.Arch})
	}
	for n := range r.Intervals {
		interval := &r.Intervals[n]
		for _, s := range interval.Stalls {
			k := &r.Kernels[s.Kernel]
			for _, count := range s.Counts {
				if count == 0 {
					continue
				}
				sample := map[string]any{
					"record": "sample", "event": "gpu-stall-sampling", "time": interval.End, "module": k.Module + 1,
					"module_offset": fmt.Sprintf("%#x", k.Start+s.Offset), "weight": count, "wave": map[string]any{"kernel": k.Name},
				}
				if l := k.Launch; l != nil {
					sample["launched_by"] = map[string]any{"pid": l.PID, "tid": l.TID, "comm": l.Comm, "frames": []string{}}
				}
				line(sample)
			}
		}
	}
	return []byte(b.String())
}

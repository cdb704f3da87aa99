// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/trace"
)

func TestFacts(t *testing.T) {
	at := time.Unix(1764000000, 0)
	for _, c := range []struct {
		name   string
		own    *trace.Facts
		labels []unpack.Label
		want   trace.Facts
	}{
		{"better than the core's", &trace.Facts{Process: trace.Process{ID: 5, Executable: "server"}},
			[]unpack.Label{{Name: "coredump.exe", Value: "/srv/server"}, {Name: "coredump.pid", Value: "77"}},
			trace.Facts{Process: trace.Process{ID: 5, Executable: "/srv/server"}}},
		{"microseconds", nil, []unpack.Label{{Name: "coredump.timestamp", Value: "1764000000000000"}}, trace.Facts{Process: trace.Process{Kept: at}}},
		{"seconds", nil, []unpack.Label{{Name: "coredump.timestamp", Value: "1764000000"}}, trace.Facts{Process: trace.Process{Kept: at}}},
		{"no number", nil, []unpack.Label{{Name: "coredump.timestamp", Value: "noon"}, {Name: "coredump.pid", Value: ""}}, trace.Facts{}},
	} {
		for _, l := range c.labels {
			c.want.Annotations = append(c.want.Annotations, trace.Annotation{Name: l.Name, Value: l.Value})
		}
		var before trace.Facts
		if c.own != nil {
			before = *c.own
		}
		if diff := cmp.Diff(&c.want, Facts(c.own, c.labels)); diff != "" {
			t.Errorf("%s (-want +got): %s", c.name, diff)
		}
		if c.own != nil && !cmp.Equal(before, *c.own) {
			t.Errorf("%s: the target's own facts have changed", c.name)
		}
	}
}

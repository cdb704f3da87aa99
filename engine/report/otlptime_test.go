// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path/filepath"
	"testing"
	"time"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// A recording with a clock that is named says when it was made; one without does not.
func TestOTLPHasTheTimeOfTheDay(t *testing.T) {
	for _, c := range []struct {
		clock []string
		known bool
	}{{[]string{"-k", "CLOCK_MONOTONIC"}, true}, {nil, false}} {
		path := filepath.Join(t.TempDir(), "perf.data")
		before := time.Now().UnixNano()
		args := append([]string{"record", "-q", "-e", "page-faults:u", "-c", "1", "--call-graph", "dwarf,1024", "-o", path}, c.clock...)
		oracle.Run(t, "perf", append(args, "--", "true")...)
		after := time.Now().UnixNano()
		r := recordedProfile(t, recordedEngine(t, engine.Options{}), path, trace.ProfileOptions{})
		d := &profiles.ProfilesData{}
		if err := proto.Unmarshal([]byte(formOf(t, r.WriteOTLP)), d); err != nil {
			t.Fatal(err)
		}
		p := d.ResourceProfiles[0].ScopeProfiles[0].Profiles[0]
		at, end := int64(p.TimeUnixNano), int64(p.TimeUnixNano+p.DurationNano)
		if isWithin := at >= before && end <= after; isWithin != c.known || !c.known && at != 0 || end == at {
			t.Errorf("with %v the profile is from %d to %d, recorded from %d to %d", c.clock, at, end, before, after)
		}
	}
}

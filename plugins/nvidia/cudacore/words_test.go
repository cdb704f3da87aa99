// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// TestWords has each number of the headers in plain words, and numbers that later headers may
// have as such.
func TestWords(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{laneState(0), "exited"}, {laneState(1), ""}, {laneState(2), "yielded"}, {laneState(8), "blocked until its collective comes"},
		{laneState(9), "blocked on barrier 0"}, {laneState(24), "blocked on barrier 15"}, {laneState(25), "in state 25, which is not known"}, {laneState(invalid), ""},
		{barrierScope(0), ""}, {barrierScope(3), "its block"}, {barrierScope(5), "its kernel"}, {barrierScope(6), "scope 6, which is not known"}, {barrierScope(invalid), ""},
		{laneList(1), "lane 0"}, {laneList(0x8000_000f), "lanes 0-3,31"}, {laneList(0xffff_ffff), "lanes 0-31"}, {laneList(5), "lanes 0,2"},
	} {
		if test.got != test.want {
			t.Errorf("%q, expected %q", test.got, test.want)
		}
	}
	for code := uint32(1); code <= 36; code++ {
		e := exceptionOf(code)
		if _, ok := sdk.FindStopReason(e.reason); !ok || e.words == "" || strings.HasPrefix(e.name, "exception") {
			t.Errorf("exception %d is %+v", code, e)
		}
		if want := map[string]precision{"LANE": byLane, "WARP": byWarp, "DEVI": byDevice, "CLUS": byCluster, "TMA_": byWarp}[e.name[:4]]; e.precision != want {
			t.Errorf("%s has precision %d, expected %d", e.name, e.precision, want)
		}
	}
	if e := exceptionOf(37); e.reason != sdk.StopException || e.precision == byLane {
		t.Errorf("an exception that is not known is %+v", e)
	}
}

// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
)

// wallOffset returns the number that is added to a time of a recording for nanoseconds since
// 1970. perf records one moment by both clocks if it was told which clock to use (perf record
// -k); without that its clock counts from some moment after the boot.
func wallOffset(f *perfdata.File) (offset int64, isKnown bool) {
	x := f.Features()
	if x.WallClock == 0 || x.WallClock > math.MaxInt64 || x.Clock > math.MaxInt64 {
		return 0, false
	}
	attrs := f.Attrs()
	for i := range attrs {
		if a := &attrs[i]; a.Flags&perfdata.FlagUseClockID == 0 || a.ClockID < 0 || uint32(a.ClockID) != x.ClockID {
			return 0, false
		}
	}
	return int64(x.WallClock) - int64(x.Clock), true
}

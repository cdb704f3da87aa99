// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// cpuRange are processors from the first to the last.
type cpuRange struct{ first, last uint32 }

// parseCPUs parses a list of processors, as "0,2-3".
func parseCPUs(text string) (list []cpuRange, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 32)
		last, err2 := strconv.ParseUint(to, 10, 32)
		if err1 != nil || err2 != nil || first > last {
			return nil, fmt.Errorf("--cpu %s: expected numbers of processors, as 0,2-3", text)
		}
		list = append(list, cpuRange{uint32(first), uint32(last)})
	}
	return list, nil
}

// hasCPU reports whether a processor is in a list.
func hasCPU(list []cpuRange, cpu uint32) bool {
	for _, r := range list {
		if cpu >= r.first && cpu <= r.last {
			return true
		}
	}
	return false
}

// moment is a time of a profile: after its first sample, or a part of the time to its last.
type moment struct {
	after     time.Duration
	part      float64 // from 0 to 1, where isPart
	isPart    bool
	isPresent bool
}

// window is the time from one moment to another.
type window struct{ from, to moment }

func (w *window) isSet() bool { return w.from.isPresent || w.to.isPresent }

// parseWindow parses "FROM,TO".
func parseWindow(text string) (w window, err error) {
	if text == "" {
		return w, nil
	}
	wrong := fmt.Errorf("--time %s: expected FROM,TO, each of them seconds since the first sample (1.5), a duration (200ms), a part of the whole time (10%%), or left out", text)
	from, to, ok := strings.Cut(text, ",")
	if !ok || from == "" && to == "" {
		return w, wrong
	}
	for _, side := range []struct {
		text string
		to   *moment
	}{{from, &w.from}, {to, &w.to}} {
		if side.text == "" {
			continue
		}
		if *side.to, ok = parseMoment(side.text); !ok {
			return w, wrong
		}
	}
	isSame := w.from.isPresent && w.to.isPresent && w.from.isPart == w.to.isPart
	if isSame && (w.from.after > w.to.after || w.from.part > w.to.part) {
		return w, fmt.Errorf("--time %s: expected FROM before TO", text)
	}
	return w, nil
}

func parseMoment(text string) (m moment, ok bool) {
	m.isPresent = true
	if number, isPart := strings.CutSuffix(text, "%"); isPart {
		percent, err := strconv.ParseFloat(number, 64)
		m.part, m.isPart = percent/100, true
		return m, err == nil && percent >= 0 && percent <= 100
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		nanoseconds := seconds * float64(time.Second)
		if !(nanoseconds >= 0 && nanoseconds < math.MaxInt64) { // also refuses NaN
			return m, false
		}
		m.after = time.Duration(math.Round(nanoseconds))
		return m, true
	}
	duration, err := time.ParseDuration(text)
	m.after = duration
	return m, err == nil && duration >= 0
}

// place is the time of a moment between the first sample and the last.
func (m *moment) place(first, last, missing uint64) uint64 {
	switch {
	case !m.isPresent:
		return missing
	case m.isPart:
		return first + uint64(math.Round(float64(last-first)*m.part))
	case uint64(m.after) > math.MaxUint64-first: //nolint:gosec // not negative
		return math.MaxUint64
	}
	return first + uint64(m.after) //nolint:gosec // likewise
}

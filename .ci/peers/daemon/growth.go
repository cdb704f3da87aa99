// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settled measures a server when no request is under way: the most of some samples, because
// how many goroutines collect the figures that tell of goroutines is not always the same.
// Where it has had less before it is asked again for a while: a connection that is closed is
// noticed a moment later.
func (s *Server) Settled(before *Usage) (u *Usage, err error) {
	time.Sleep(500 * time.Millisecond)
	if before == nil {
		return s.mostOf(5)
	}
	for end := time.Now().Add(Grace); ; time.Sleep(250 * time.Millisecond) {
		if u, err = s.Usage(); err != nil {
			return nil, err
		}
		if u.NotAbove(before) == nil || time.Now().After(end) {
			return u, nil
		}
	}
}

// mostOf has the most goroutines and descriptors of some samples, and the rest of the last.
func (s *Server) mostOf(samples int) (most *Usage, err error) {
	for range samples {
		u, err := s.Usage()
		if err != nil {
			return nil, err
		}
		if most != nil {
			u.Goroutines, u.Descriptors = max(u.Goroutines, most.Goroutines), max(u.Descriptors, most.Descriptors)
		}
		most = u
		time.Sleep(100 * time.Millisecond)
	}
	return most, nil
}

// NotAbove returns the counts that have grown.
func (u *Usage) NotAbove(before *Usage) error {
	var more []string
	for _, f := range []struct {
		what        string
		now, before int
	}{
		{"goroutines", u.Goroutines, before.Goroutines},
		{"descriptors", u.Descriptors, before.Descriptors},
		{"processes", u.Processes, before.Processes},
		{"bytes of the spool", int(u.Spool), 0},
		{"requests that wait", int(u.Queue), 0},
	} {
		if f.now > f.before {
			more = append(more, fmt.Sprintf("%d %s, and %d before", f.now, f.what, f.before))
		}
	}
	if more == nil {
		return nil
	}
	return fmt.Errorf("at the end the server has %s", strings.Join(more, "; "))
}

// Watch asks the server what it has, again and again, until stop, which gives the answers.
func (s *Server) Watch() (stop func() []*Usage) {
	watched, ended := make(chan struct{}), make(chan struct{})
	var list []*Usage
	go func() {
		defer close(watched)
		for {
			if u, err := s.Usage(); err == nil {
				list = append(list, u)
			}
			select {
			case <-ended:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	}()
	return func() []*Usage {
		close(ended)
		<-watched
		return list
	}
}

// Memory is flat where the median of the last quarter of the samples is at most so much of
// that of the second quarter, and so many KiB more: the heap of a process in Go grows and
// shrinks between collections.
const (
	flatRatio = 1.15
	flatMore  = 16 << 10
	// leastSamples are of eight seconds: before that a server and its workers read their files.
	leastSamples = 32
)

// JudgeMemory prints the memory and the most of everything, and returns whether memory
// grows.
func JudgeMemory(samples []*Usage) error {
	if len(samples) < leastSamples {
		fmt.Printf("memory is not judged by %d samples\n", len(samples))
		return nil
	}
	most := *samples[0]
	var pss []int64
	for _, u := range samples {
		most.Goroutines, most.Descriptors, most.Processes = max(most.Goroutines, u.Goroutines), max(most.Descriptors, u.Descriptors), max(most.Processes, u.Processes)
		most.ServerPSS, most.OtherPSS, most.RSS = max(most.ServerPSS, u.ServerPSS), max(most.OtherPSS, u.OtherPSS), max(most.RSS, u.RSS)
		pss = append(pss, u.ServerPSS+u.OtherPSS)
	}
	fmt.Printf("at most:      %v\n", &most)
	quarter := len(pss) / 4
	var medians [4]int64
	for i := range medians {
		part := slices.Sorted(slices.Values(pss[i*quarter : (i+1)*quarter]))
		medians[i] = part[len(part)/2]
	}
	fmt.Printf("PSS of all, medians of the quarters of %d samples: %.1f, %.1f, %.1f, %.1f MiB\n", len(pss), MiB(medians[0]), MiB(medians[1]), MiB(medians[2]), MiB(medians[3]))
	if limit := int64(flatRatio*float64(medians[1])) + flatMore; medians[3] > limit {
		return fmt.Errorf("memory grows: its median is %.1f MiB in the last quarter, expected at most %.1f MiB", MiB(medians[3]), MiB(limit))
	}
	return nil
}

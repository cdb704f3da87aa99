// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxListed bounds the threads in an error.
const maxListed = 8

// noThread is the error of a thread that a target does not have. A name may mean a thread that has
// it, or the first one.
func noThread(t *engine.Target, id string) error {
	all := t.Threads()
	text := fmt.Sprintf("%s: there is no thread %s", t.Info().Path, id)
	isGoroutine := func(th *trace.Thread) bool { return th.Goroutine != nil }
	named := slices.DeleteFunc(slices.Clone(all), func(th *trace.Thread) bool { return th.Name != id })
	info := t.Info()
	switch {
	case len(all) == 0:
		return fmt.Errorf("%s, nor any other one", text)
	case strings.HasPrefix(id, "goroutine ") && !slices.ContainsFunc(all, isGoroutine):
		return fmt.Errorf("%s: goroutines are among the threads with --goroutines", text)
	case len(named) > 0:
		return fmt.Errorf("%s: --thread takes an ID, and threads of that name are %s", text, listed(named))
	case id == "main" && info.Facts != nil && hasThread(all, info.Facts.Process.ID):
		return fmt.Errorf("%s: --thread takes an ID, and the first thread is %d", text, info.Facts.Process.ID)
	}
	return fmt.Errorf("%s; there are: %s", text, listed(all))
}

// hasThread reports whether a thread has a number as its ID.
func hasThread(all []*trace.Thread, id int64) bool {
	return slices.ContainsFunc(all, func(th *trace.Thread) bool { return th.ID == strconv.FormatInt(id, 10) })
}

// listed is the IDs of threads with their names, at most maxListed of them.
func listed(all []*trace.Thread) string {
	var list []string
	for _, th := range all[:min(len(all), maxListed)] {
		text := th.ID
		if th.Name != "" {
			text += " (" + th.Name + ")"
		}
		list = append(list, text)
	}
	text := strings.Join(list, ", ")
	if n := len(all) - maxListed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// noLane is the error of a lane that no thread of a target has.
func noLane(t *engine.Target, lane uint32) error {
	isWave := func(th *trace.Thread) bool { return th.Wave != nil }
	if !slices.ContainsFunc(t.Threads(), isWave) {
		return fmt.Errorf("%s: no thread has a frame of a lane %d: lanes are of waves of accelerators, and there is none", t.Info().Path, lane)
	}
	return fmt.Errorf("%s: no thread has a frame of a lane %d", t.Info().Path, lane)
}

// inWords lists alternatives: "text, json or html".
func inWords(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

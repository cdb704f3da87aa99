// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file names targets and profiles for people.

// subject names a target: by its kind and path, and a living process by its ID, its executable
// and when it was stopped.
func (h *Head) subject() string {
	target := &h.Target
	name := h.processName()
	if name == "" {
		return target.Kind + " " + target.Path
	}
	if h.facts != nil && !h.facts.Process.Kept.IsZero() {
		name += ", taken " + moment(h.facts.Process.Kept)
	}
	return name
}

// processName names a living process; "" for other targets.
func (h *Head) processName() string {
	p := h.Target.Process
	if h.Target.Kind != string(trace.LiveProcess) || p == nil || p.PID == 0 {
		return ""
	}
	return namedProcess(p.PID, path.Base(cmp.Or(p.Executable, ".")))
}

// namedProcess is a process's ID with its name, if that is known.
func namedProcess(pid int64, name string) string {
	if name == "" || name == "." {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, name)
}

// subject names a profile: by its file, or by the process that was recorded while it lived.
func (r *Profile) subject() string { return cmp.Or(r.processName(), r.p.Path) }

// title is subject with the name of the file alone.
func (r *Profile) title() string { return cmp.Or(r.processName(), path.Base(oneLine(r.p.Path))) }

// processName names the process of a profile that was recorded while the process lived; "" for
// other profiles.
func (r *Profile) processName() string {
	number, isProcess := strings.CutPrefix(r.p.Path, "/proc/")
	pid, err := strconv.ParseInt(number, 10, 32)
	if !isProcess || err != nil {
		return ""
	}
	for i := range r.p.Threads {
		if t := &r.p.Threads[i]; int64(t.PID) == pid && t.TID == t.PID {
			return namedProcess(pid, oneLine(t.Comm))
		}
	}
	return namedProcess(pid, "")
}

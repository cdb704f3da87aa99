// SPDX-License-Identifier: Apache-2.0

// Package packaging reads the facts of a process in the labels of its packed core.
package packaging

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/unpack"
	"github.com/unwindd/unwindd/engine/trace"
)

// labelFacts has the facts in the labels of systemd-coredump (systemd-coredump(8)) and of
// apport. They are better than a core's, which has 15 characters of a name, 79 of a
// command line, and no time.
var labelFacts = map[string]func(f *trace.Facts, value string){
	"coredump.exe":   func(f *trace.Facts, value string) { f.Process.Executable = value },
	"ExecutablePath": func(f *trace.Facts, value string) { f.Process.Executable = value },
	"ProcCmdline":    func(f *trace.Facts, value string) { f.Process.Command = value },
	"coredump.timestamp": func(f *trace.Facts, value string) {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 && f.Process.Kept.IsZero() {
			f.Process.Kept = time.UnixMicro(n)
			if n < 1e12 { // its first versions wrote seconds
				f.Process.Kept = time.Unix(n, 0)
			}
		}
	},
	"coredump.hostname": func(f *trace.Facts, value string) { f.Process.Host = cmp.Or(f.Process.Host, value) },
	"coredump.pid": func(f *trace.Facts, value string) {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && f.Process.ID == 0 {
			f.Process.ID = n
		}
	},
	"Uname": func(f *trace.Facts, value string) {
		if words := strings.Fields(value); len(words) > 1 && f.System.Version == "" {
			f.System.OS, f.System.Version = words[0], words[1]
		}
	},
	"DistroRelease": func(f *trace.Facts, value string) {
		if id, release, ok := strings.Cut(value, " "); ok && f.Distribution == nil {
			f.Distribution = &trace.Distribution{ID: id, Release: release, Description: value}
		}
	},
}

// Facts returns the facts of a target, own, completed from labels. own is not changed.
func Facts(own *trace.Facts, labels []unpack.Label) *trace.Facts {
	f := &trace.Facts{}
	if own != nil {
		*f = *own
	}
	f.Annotations = f.Annotations[:len(f.Annotations):len(f.Annotations)]
	for _, l := range labels {
		if set := labelFacts[l.Name]; set != nil {
			set(f, l.Value)
		}
		f.Annotations = append(f.Annotations, trace.Annotation{Name: l.Name, Value: l.Value})
	}
	return f
}

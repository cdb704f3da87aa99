// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file has the facts that reports of macOS have beside their stacks.

// nameFromReport marks a function that is named by a report of a crash alone.
const nameFromReport = "report"

// newAnnotations returns what a report of macOS tells of a crash; nil for other targets.
func newAnnotations(info *trace.Target) (list []Annotation) {
	if info.Kind != trace.AppleReport || info.Facts == nil {
		return nil
	}
	for _, m := range info.Facts.Messages {
		name := "message"
		if m.Module != "" {
			name += " of " + path.Base(m.Module)
		}
		list = append(list, Annotation{name, m.Text})
	}
	for _, a := range info.Facts.Annotations {
		list = append(list, Annotation{a.Name, a.Value})
	}
	return list
}

// annotations writes the texts that belong to a crash, each on one line.
func (t *text) annotations(list []Annotation) {
	for _, a := range list {
		t.printf("%s %s\n", t.faint(a.Name+":"), strings.Join(strings.Fields(a.Value), " "))
	}
}

// reported marks a function that is named by a report alone.
func (t *text) reported(s *trace.Symbol) {
	if s.IsReported {
		t.printf(" %s", t.faint("(reported)"))
	}
}

// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxLabels bounds the labels of a snapshot.
const maxLabels = 1 << 10

// processEntry is the process as it is read.
type processEntry struct {
	trace.Process
	started, taken string
}

// readLabels reads an object of strings.
func readLabels(r *jsontext.Reader, d *document) error {
	d.labels = map[string]string{}
	return r.Object(func(name []byte) error {
		label := string(name)
		if _, isThere := d.labels[label]; isThere {
			return r.Fail(r.Offset(), "the member is given twice")
		}
		if len(d.labels) >= maxLabels {
			return r.Fail(r.Offset(), "the object has more than %d members", maxLabels)
		}
		if r.Word("null") {
			return nil
		}
		value, err := r.Name()
		d.labels[label] = value
		return err
	})
}

// validLabels returns labels without those whose names no label has.
func (s *Snapshot) validLabels(labels map[string]string) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !target.IsLabelName(name) {
			s.problem("labels: %q is no name of a label, expected a letter or _, and letters, digits and any of _.- behind it, at most %d: it is left out",
				jsontext.Clip(name), target.MaxLabelName)
			delete(labels, name)
		}
	}
	return labels
}

// moment reads a time; zero where there is none.
func (s *Snapshot) moment(member, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Unix() < -maxMoment || t.Unix() > maxMoment {
		s.problem("process: %s is %q, expected a time as RFC 3339 has it: it is left out", member, jsontext.Clip(text))
		return time.Time{}
	}
	return t.UTC()
}

// maxMoment bounds times in seconds around 1970: what nanoseconds of 64 bits can count.
const maxMoment = 1 << 33

// momentText writes a time; "" where it is not known.
func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// labels writes the labels.
func (w *writer) labels(labels map[string]string) error {
	if len(labels) == 0 {
		return nil
	}
	if len(labels) > maxLabels {
		return fmt.Errorf("labels: %d members, expected at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		if !target.IsLabelName(name) {
			return fmt.Errorf("labels: %q is no name of a label", name)
		}
		if err := checkTexts(value); err != nil {
			return fmt.Errorf("labels: %s: %w", name, err)
		}
	}
	return w.member("labels", labels)
}

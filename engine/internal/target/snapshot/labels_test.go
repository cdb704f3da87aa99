// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

func TestLabelsAndMomentsAreReadAgain(t *testing.T) {
	started, taken := time.Date(2026, 3, 1, 9, 0, 0, 250e6, time.FixedZone("CET", 3600)), time.Date(2026, 3, 1, 9, 13, 5, 123456789, time.UTC)
	c := contentsOf(openFull(t))
	c.Process = &trace.Process{ID: 7, Host: "n07", Created: started, Kept: taken}
	c.Labels = map[string]string{"rank": "12", "host": "n07", "my.label-2": "x \"y\" é"}
	data := writeBytes(t, c)
	s := openBytes(t, data)
	p := s.Info().Facts.Process
	if p.ID != 7 || p.Host != "n07" || !p.Created.Equal(started) || !p.Kept.Equal(taken) || !maps.Equal(p.Labels, c.Labels) {
		t.Errorf("%+v", p)
	}
	if list := problems(s); len(list) > 0 {
		t.Errorf("problems: %q", list)
	}
}

func TestLabelsAloneAreRead(t *testing.T) {
	s := openBytes(t, archived(t, `{"format_version":1,"labels":{"rank":"1","none":null}}`))
	if f := s.Info().Facts; f == nil || !maps.Equal(f.Process.Labels, map[string]string{"rank": "1"}) {
		t.Errorf("%+v", f)
	}
}

func TestBadLabelsAndMomentsAreSaid(t *testing.T) {
	for document, want := range map[string]string{
		`{"format_version":1,"labels":{"ra nk":"1","ok":"2"}}`:            `labels: "ra nk" is no name of a label`,
		`{"format_version":1,"process":{"started":"yesterday"}}`:          `process: started is "yesterday", expected a time as RFC 3339 has it: it is left out`,
		`{"format_version":1,"process":{"taken":"9999-01-01T00:00:00Z"}}`: `process: taken is "9999-01-01T00:00:00Z"`,
	} {
		s := openBytes(t, archived(t, document))
		if list := strings.Join(problems(s), "\n"); !strings.Contains(list, want) {
			t.Errorf("%s: problems %q, expected %s", document, list, want)
		}
		p := s.Info().Facts.Process
		if !p.Created.IsZero() || !p.Kept.IsZero() || len(p.Labels) > 1 {
			t.Errorf("%s: %+v", document, p)
		}
	}
	for document, want := range map[string]string{
		`{"format_version":1,"labels":{"rank":1}}`:              "labels.rank: found a number, expected a string",
		`{"format_version":1,"labels":{"rank":"1","rank":"2"}}`: "labels.rank: the member is given twice",
		`{"format_version":1,"labels":["rank"]}`:                "labels: found an array, expected an object",
		`{"format_version":1,"labels":{` + manyLabels() + `}}`:  "the object has more than 1024 members",
		`{"format_version":1,"process":{"started":1764000000}}`: "process.started: found a number, expected a string",
	} {
		if _, err := Open(write(t, archived(t, document)), options()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, expected %s", document, err, want)
		}
	}
}

// archived is a snapshot of a document alone.
func archived(t *testing.T, document string) []byte {
	t.Helper()
	return archiveOf(t, file{documentName, []byte(document), false})
}

func manyLabels() string {
	var b strings.Builder
	for i := range maxLabels + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"l` + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50) + `":"v"`)
	}
	return b.String()
}

func TestLabelsThatNoReaderTakesAreNotWritten(t *testing.T) {
	for _, labels := range []map[string]string{{"a b": "x"}, {"a": strings.Repeat("x", 1<<17)}} {
		if err := Write(&bytes.Buffer{}, &Contents{Labels: labels}, options()); err == nil {
			t.Errorf("%.20q was written", labels)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// maxReportHead is more than a kept report has before its content, in bytes.
const maxReportHead = 200

// gauge reads a figure of /metrics.
func (s *testServer) gauge(t *testing.T, name string) int64 {
	t.Helper()
	_, text := s.ask(t, http.MethodGet, "/metrics", nil)
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no figure %s in\n%s", name, text)
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(n)
}

// TestMetricsOfWhatIsKept counts reports and objects that are kept, by their number and bytes.
func TestMetricsOfWhatIsKept(t *testing.T) {
	options := testOptions(t)
	s := start(t, options)
	check := func(what string, files, least, most int64) {
		t.Helper()
		n, bytes := s.gauge(t, "unwindd_"+what), s.gauge(t, "unwindd_"+what+"_bytes")
		if n != files || bytes < least || bytes > most {
			t.Errorf("%d %s of %d bytes, expected %d of %d to %d", n, what, bytes, files, least, most)
		}
	}
	check("objects", 0, 0, 0)
	check("reports", 0, 0, 0)
	s.putCrash(t)
	size := int64(len(file(t, crashExe)))
	check("objects", 1, size, size)
	kept := s.keepMixed(t)
	_, text := s.ask(t, http.MethodGet, kept, nil)
	check("reports", 1, int64(len(text)), int64(len(text))+maxReportHead)
	options.Run += "2"
	again, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Abandon()
	if a, b := again.reports.Amount(), s.reports.Amount(); a != b {
		t.Errorf("after a restart there are %+v, before %+v", a, b)
	}
	if answer, text := s.ask(t, http.MethodDelete, kept, nil); answer.StatusCode != http.StatusNoContent {
		t.Fatal(answer.Status, text)
	}
	check("reports", 0, 0, 0)
}

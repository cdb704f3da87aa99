// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/debuginfod"
	"github.com/unwindd/unwindd/internal/oracle"
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

// wantMetrics says that the figures of a server have lines.
func (s *testServer) wantMetrics(t *testing.T, lines ...string) {
	t.Helper()
	_, text := s.ask(t, http.MethodGet, "/metrics", nil)
	for _, want := range lines {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestServeCountsDownloads has a debuginfod server that has the executable, and a second
// request that finds it in the cache.
func TestServeCountsDownloads(t *testing.T) {
	var asked atomic.Int64
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, "/executable") {
			http.ServeFile(w, r, crashExe)
			return
		}
		http.NotFound(w, r)
	}))
	defer files.Close()
	from, err := url.Parse(files.URL)
	if err != nil {
		t.Fatal(err)
	}
	o := oneWorker(t)
	o.Caches = []string{filepath.Join(filepath.Dir(o.State), "cache")}
	o.Remote = debuginfod.New(debuginfod.Options{URLs: []*url.URL{from}, Cache: o.Caches[0]})
	s := start(t, o)
	count := func(result string, n int) string {
		return `unwindd_download_lookups_total{cache="debuginfod",result="` + result + `"} ` + strconv.Itoa(n)
	}
	s.wantMetrics(t, count("hit", 0), count("miss", 0))
	s.post(t, "/v1/stack", file(t, crashCore))
	n := int(asked.Load())
	s.wantMetrics(t, count("hit", 0), count("miss", n))
	s.post(t, "/v1/stack", file(t, crashCore))
	s.wantMetrics(t, count("hit", 1), count("miss", n))
	if n == 0 || int(asked.Load()) != n {
		t.Errorf("%d and then %d files were asked for", n, asked.Load())
	}
}

// metricsOfWalks are the metrics of a server that has walked the example twice.
func metricsOfWalks(t *testing.T) string {
	t.Helper()
	o := withPlugins(t)
	o.Sysroot = "/"
	s := start(t, o)
	s.post(t, "/v1/stack", file(t, crashCore))
	s.post(t, "/v1/stack", file(t, crashCore))
	_, text := s.ask(t, http.MethodGet, "/metrics", nil)
	return text
}

// TestServeMetricsAreThoseOfPrometheus has Prometheus' own tool judge them.
func TestServeMetricsAreThoseOfPrometheus(t *testing.T) {
	promtool := oracle.Tool(t, "promtool")
	text := metricsOfWalks(t)
	check := exec.Command(promtool, "check", "metrics") //nolint:gosec,noctx // a tool
	check.Stdin = strings.NewReader(text)
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%v: %s\n%s", err, said, text)
	}
}

// TestServeCountsWalks has what is counted of walks.
func TestServeCountsWalks(t *testing.T) {
	text := metricsOfWalks(t)
	for _, want := range []string{
		`unwindd_requests_total{kind="stack",status="ok"} 2`, `unwindd_plugin_processes_total{event="started",plugin="x86_64"} 1`,
		`unwindd_cache_lookups_total{cache="objects",result="miss"}`, `unwindd_workers_total{event="started"} 1`,
		`unwindd_cache_lookups_total{cache="code_objects",result="miss"}`, `unwindd_cache_lookups_total{cache="code_objects",result="hit"}`,
		`unwindd_queue_wait_seconds_count 2`, `unwindd_frames_total{found_by="context"}`, `unwindd_stops_total{reason=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

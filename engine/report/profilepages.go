// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/http"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// processLabel is the label of samples by which pprof draws a tree for each process.
const processLabel = "process"

// pagesProfile is the profile of pprof's pages, and the label of the trees that they show. In
// a page a function has only its name and its file: functions are marked by the device that
// executes them, and code without a name is named by its address.
func (r *Profile) pagesProfile() (p *profile.Profile, root string) {
	b := &pprofBuilder{r: r, isMarked: true}
	if names := r.processNames(); len(names) > 1 {
		b.processes, root = names, processLabel
	}
	return b.profile(), root
}

// processNames are the names of the samples' processes, by PID: the name of the main thread,
// or else of any thread; of several the one with the most samples.
func (r *Profile) processNames() map[int]string {
	samples := make([]int, len(r.p.Threads))
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; r.isRequested(s) {
			samples[s.Thread]++
		}
	}
	best, names := map[int]int{}, map[int]string{}
	for i := range r.p.Threads {
		t := &r.p.Threads[i]
		score := samples[i]
		if score == 0 {
			continue
		}
		if t.TID == t.PID {
			score += len(r.p.Samples)
		}
		if score > best[t.PID] {
			best[t.PID], names[t.PID] = score, nameOfThread(t)
		}
	}
	return names
}

// nameOfThread is the name of a thread, or [unknown] without one.
func nameOfThread(t *trace.ProfileThread) string {
	if name := oneLine(t.Comm); name != "" {
		return name
	}
	return "[unknown]"
}

// processName is the name of a process with its PID.
func processName(names map[int]string, pid int) string {
	if pid < 0 {
		return names[pid]
	}
	return fmt.Sprintf("%s %d", names[pid], pid)
}

var (
	//go:embed pages/flamegraph.js
	flameGraphScript []byte
	//go:embed pages/flamegraph.css
	flameGraphStyle []byte
)

// flameGraphWriter changes pprof's flame graph so that colours show the device that executed.
type flameGraphWriter struct{ http.ResponseWriter }

// Write implements io.Writer. pprof writes a page at once.
func (w *flameGraphWriter) Write(page []byte) (int, error) {
	var header bytes.Buffer
	fmt.Fprintf(&header, "<style>\n%s</style><script>\n%s</script></head>", flameGraphStyle, flameGraphScript)
	// No name in a page has a line break.
	own := bytes.Replace(page, []byte("\n    stackViewer({"), []byte("\n    unwinddFlameGraph({"), 1)
	if _, err := w.ResponseWriter.Write(bytes.Replace(own, []byte("</head>"), header.Bytes(), 1)); err != nil {
		return 0, err
	}
	return len(page), nil
}

// flameGraphPage is pprof's flame graph with colours of our own.
func flameGraphPage(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(&flameGraphWriter{w}, r) })
}

// downloadPage is the profile as WritePprof writes it: the pages' own has changed names.
func (r *Profile) downloadPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/vnd.google.protobuf+gzip")
	w.Header().Set("Content-Disposition", `attachment; filename="profile.pb.gz"`)
	// An error is the connection's: no client is left to receive it.
	_ = r.WritePprof(w)
}

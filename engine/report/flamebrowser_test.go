// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"html"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// pageIn is a page as headless Chromium has it when its scripts have run.
func pageIn(t *testing.T, url string, flags ...string) string {
	t.Helper()
	oracle.Tools(t, "chromium")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--window-size=1200,800", "--user-data-dir=" + t.TempDir(), "--dump-dom",
	}, flags...)
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "chromium", append(args, url)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium %s: %v\n%s", url, err, stderr.String())
	}
	return string(out)
}

// flameBox is a box of pprof's flame graph.
var flameBox = regexp.MustCompile(`<div class="boxbg[^"]*" style="left: [\d.]+px; top: ([\d.]+)px; width: ([\d.]+)px;[^>]*background: rgb\((\d+), (\d+), (\d+)\)[^>]*>(?:<div class="boxtext"[^>]*>([^<]*)</div>)?`)

// A drawnBox is a box as it is drawn: where, how wide and in which hue, in degrees.
type drawnBox struct {
	name       string
	level      int
	width, hue float64
}

// drawnBoxes are the boxes of a page.
func drawnBoxes(page string) (boxes []drawnBox) {
	const height = 20
	for _, m := range flameBox.FindAllStringSubmatch(page, -1) {
		n := make([]float64, 6)
		for i := 1; i < len(n); i++ {
			n[i], _ = strconv.ParseFloat(m[i], 64)
		}
		boxes = append(boxes, drawnBox{html.UnescapeString(m[6]), int(n[1] / height), n[2], hueOf(n[3], n[4], n[5])})
	}
	return boxes
}

// hueOf is the hue of a colour in degrees.
func hueOf(r, g, b float64) float64 {
	high, low := max(r, g, b), min(r, g, b)
	hue := 0.0
	switch high {
	case low:
	case r:
		hue = (g - b) / (high - low)
	case g:
		hue = 2 + (b-r)/(high-low)
	default:
		hue = 4 + (r-g)/(high-low)
	}
	return math.Mod(hue*60+360, 360)
}

// TestFlameGraphInABrowser looks at the boxes that are drawn: each process has a tree,
// and every function of the outer calls is there, as wide as its share.
func TestFlameGraphInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	oracle.Tools(t, "chromium")
	r := wordsProfile(t)
	p := readBack(t, r)
	_, _, cum := p.stacks("cpu-clock")
	processes := map[string]uint64{}
	for _, s := range p.Samples {
		if s.Event == "cpu-clock" {
			processes[fmt.Sprintf("%s %d", s.Comm, s.PID)] += s.Weight
		}
	}
	page := pageIn(t, servePages(t, r, ServeOptions{})+"/ui/flamegraph")
	const full = 1195.0
	widths := map[string]float64{}
	deepest := 0
	for _, b := range drawnBoxes(page) {
		deepest = max(deepest, b.level)
		if b.level <= 4 {
			widths[b.name] += b.width
		}
		if isOuter := b.level < 2; isOuter != (b.hue > 260 && b.hue < 290) {
			t.Errorf("%s has the hue %.0f", b.name, b.hue)
		}
	}
	want := map[string]float64{"root": 1}
	for _, name := range []string{"_start", "main", "count_by_tree(int)", "count_by_sort(int)"} {
		want[name] = float64(cum[name]) / float64(cum["_start"])
	}
	for name, weight := range processes {
		want[name] = float64(weight) / float64(cum["_start"])
	}
	for name, share := range want {
		if got := widths[name] / full; math.Abs(got-share) > 0.01 {
			t.Errorf("%s is %.3f of the width, expected %.3f", name, got, share)
		}
	}
	if len(widths) != len(want) || len(processes) != 2 {
		t.Errorf("boxes %v, expected those of %v", widths, want)
	}
	if deepest < 15 {
		t.Errorf("%v levels of boxes", deepest)
	}
}

// TestFlameGraphTellsAcceleratorsApart: boxes of the CPU and of the GPU have hues that
// are far apart, and a legend says which.
func TestFlameGraphTellsAcceleratorsApart(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	oracle.Tools(t, "chromium")
	url := servePages(t, gpuProfile(t), ServeOptions{}) + "/ui/flamegraph?si=gpu-pc-sampling"
	for _, granularity := range []string{"", "&g=lines", "&g=addresses"} {
		page := pageIn(t, url+granularity)
		met := map[bool]int{}
		for _, b := range drawnBoxes(page) {
			if b.level == 0 || b.name == "" {
				continue
			}
			isGPU := strings.Contains(b.name, "_[G]")
			met[isGPU]++
			if isGPU && (b.hue < 160 || b.hue > 210) || !isGPU && (b.hue < 30 || b.hue > 65) {
				t.Errorf("%q: %s has the hue %.0f", granularity, b.name, b.hue)
			}
			if name, _, _ := strings.Cut(b.name, ":"); isGPU != (name == "grade_[G]" || name == "repair_[G]") {
				t.Errorf("%q: %s is drawn as GPU: %v", granularity, b.name, isGPU)
			}
		}
		if met[true] < 4 || met[false] < 6 {
			t.Errorf("%q: %d boxes of the GPU, %d of the CPU\n%s", granularity, met[true], met[false], page)
		}
		if legend := regexp.MustCompile(`</i>(\w+)</span>`).FindAllStringSubmatch(page, -1); len(legend) != 2 || legend[0][1] != "CPU" || legend[1][1] != "GPU" {
			t.Errorf("%q: the legend is %q", granularity, legend)
		}
	}
}

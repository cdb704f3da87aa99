// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
)

// pageIn is a page as headless Chromium has it when its scripts have run.
func pageIn(t *testing.T, url string, flags ...string) string {
	t.Helper()
	oracle.Tools(t, "chromium")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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
	p := readProfile(t, wordsRecording)
	_, _, cum := p.stacks("cpu-clock")
	processes := map[string]uint64{}
	for _, s := range p.Samples {
		if s.Event == "cpu-clock" {
			processes[fmt.Sprintf("%s %d", s.Comm, s.PID)] += s.Weight
		}
	}
	page := pageIn(t, serveProfile(t)+"/ui/flamegraph")
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
	url := serveRecording(t, t.TempDir(), gpuRecording, "--gpu-samples", gpuSamples) + "/ui/flamegraph?si=gpu-pc-sampling"
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

// speedscopeRelease is speedscope's released page, and the schema of its files.
func speedscopeRelease(t *testing.T) string {
	t.Helper()
	oracle.Tools(t, "npm", "tar")
	dir := t.TempDir()
	oracle.With{Dir: dir}.Run(t, "npm", "pack", "--silent", "speedscope@1.25.0")
	oracle.With{Dir: dir}.Run(t, "tar", "xzf", "speedscope-1.25.0.tgz")
	return filepath.Join(dir, "package", "dist", "release")
}

// TestSpeedscopeReadsTheProfile opens the profile of each thread in speedscope, and
// compares its table of functions. The file is as speedscope's schema has it.
func TestSpeedscopeReadsTheProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	oracle.Tools(t, "chromium", "npm")
	release := speedscopeRelease(t)
	out, _ := runProfile(t, wordsRecording, "--format", "speedscope", "--event", "cpu-clock")
	var file map[string]any
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		t.Fatal(err)
	}
	format := schema.Schema{}
	b, err := os.ReadFile(filepath.Join(release, "file-format-schema.json"))
	if err == nil {
		err = json.Unmarshal(b, (*map[string]any)(&format))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range format.Check("file", file) {
		t.Error(wrong)
	}
	p := readProfile(t, wordsRecording, "--event", "cpu-clock")
	comms := []string{"words", "sorter"}
	if len(file["profiles"].([]any)) != len(comms) {
		t.Fatalf("%d profiles", len(file["profiles"].([]any)))
	}
	for i, comm := range comms {
		one := *p
		one.Samples = slices.Clone(p.Samples)
		one.Samples = slices.DeleteFunc(one.Samples, func(s profileSample) bool { return s.Comm != comm })
		_, flat, cum := one.stacks("cpu-clock")
		var want []string
		for name, n := range cum {
			want = append(want, fmt.Sprintf("%d %d %s", n, flat[name], name))
		}
		file["activeProfileIndex"] = i
		title, got := speedscopeTable(t, release, file)
		if !strings.HasPrefix(title, comm+" ") {
			t.Errorf("profile %d is %q, expected that of %s", i, title, comm)
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-json +speedscope):\n%s", comm, diff)
		}
	}
}

var (
	speedscopeText   = regexp.MustCompile(`>([^<>]+)<`)
	speedscopeAmount = regexp.MustCompile(`^([\d.]+)(ns|µs|ms|s) \(.*%\)$`)
)

// speedscopeTable loads a file into speedscope as its own command does, and reads
// the table that it shows: total, self and name.
func speedscopeTable(t *testing.T, release string, file any) (title string, rows []string) {
	t.Helper()
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "load.js")
	load := fmt.Sprintf("speedscope.loadFileFromBase64(%q, %q)", "words.json", base64.StdEncoding.EncodeToString(b))
	if err := os.WriteFile(script, []byte(load), 0o600); err != nil {
		t.Fatal(err)
	}
	page := pageIn(t, "file://"+release+"/index.html#view=sandwich&localProfilePath="+script,
		"--allow-file-access-from-files", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--virtual-time-budget=5000")
	var texts []string
	for _, m := range speedscopeText.FindAllStringSubmatch(page, -1) {
		texts = append(texts, html.UnescapeString(m[1]))
	}
	at := slices.Index(texts, "Sandwich")
	if at < 0 || at+1 == len(texts) {
		t.Fatalf("speedscope shows no profile: %q", texts)
	}
	title = texts[at+1]
	for i := 0; i+2 < len(texts); i++ {
		if speedscopeAmount.MatchString(texts[i]) && speedscopeAmount.MatchString(texts[i+1]) {
			rows = append(rows, fmt.Sprintf("%d %d %s", speedscopeNanoseconds(t, texts[i]), speedscopeNanoseconds(t, texts[i+1]), texts[i+2]))
		}
	}
	return title, rows
}

func speedscopeNanoseconds(t *testing.T, text string) int64 {
	t.Helper()
	m := speedscopeAmount.FindStringSubmatch(text)
	d, err := time.ParseDuration(m[1] + m[2])
	if err != nil {
		t.Fatal(err)
	}
	return d.Nanoseconds()
}

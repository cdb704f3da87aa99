// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/schema"
)

// speedscopeRelease is speedscope's released page, and the schema of its files.
func speedscopeRelease(t *testing.T) string {
	t.Helper()
	return filepath.Join(npmPackage(t, "speedscope@1.25.0"), "dist", "release")
}

// npmPackage is the folder of a package of npm, which is downloaded once.
func npmPackage(t *testing.T, name string) string {
	t.Helper()
	dir := oracle.Build{Commands: [][]string{{"npm", "pack", "--silent", name}, {"bash", "-c", "tar xzf *.tgz"}}}.Make(t)
	return filepath.Join(dir, "package")
}

// TestSpeedscopeReadsTheProfile opens the profile of each thread in speedscope, and
// compares its table of functions. The file is as speedscope's schema has it.
func TestSpeedscopeReadsTheProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	oracle.Tools(t, "chromium", "npm")
	release := speedscopeRelease(t)
	r := wordsProfile(t, "cpu-clock")
	var file map[string]any
	if err := json.Unmarshal([]byte(formOf(t, r.WriteSpeedscope)), &file); err != nil {
		t.Fatal(err)
	}
	described := schema.Schema{}
	b, err := os.ReadFile(filepath.Join(release, "file-format-schema.json"))
	if err == nil {
		err = json.Unmarshal(b, &described)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range described.Check("file", file) {
		t.Error(wrong)
	}
	p := readBack(t, r)
	comms := []string{"words", "sorter"}
	if len(file["profiles"].([]any)) != len(comms) {
		t.Fatalf("%d profiles", len(file["profiles"].([]any)))
	}
	for i, comm := range comms {
		one := *p
		one.Samples = slices.Clone(p.Samples)
		one.Samples = slices.DeleteFunc(one.Samples, func(s readSample) bool { return s.Comm != comm })
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
	view := slices.Index(texts, "Sandwich")
	if view < 0 || view+1 == len(texts) {
		t.Fatalf("speedscope shows no profile: %q", texts)
	}
	title = texts[view+1]
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// comparedJSON has members of a comparison as JSON.
type comparedJSON struct {
	Version     int
	ByThread    bool `json:"by_thread"`
	CrashedOnly bool `json:"crashed_only"`
	Targets     []struct {
		Path   string
		Labels map[string]string
		Count  int
		PID    int64
	}
	Classes []struct {
		Targets []int
		Labels  map[string]string
		Unread  string
	}
	Problems []string
}

// comparedJSONOf runs `unwindd compare --format json`.
func comparedJSONOf(t *testing.T, args ...string) (c comparedJSON) {
	t.Helper()
	stdout, stderr, status := unwindd(t, append([]string{"compare", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &c); status != 0 || err != nil {
		t.Fatalf("unwindd compare %q: status %d, %v\n%s", args, status, err, stderr)
	}
	return c
}

// jobFolder is a folder with the cores of four ranks, of which rank 2 is elsewhere, and files that are no
// targets.
func jobFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, source := range map[string]string{"rank0/core": serverCore, "rank1/core": serverCore, "rank2/now.snapshot": mixed, "rank10/core": serverCore} {
		data, err := os.ReadFile(source)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"notes.txt": "no target", "settings.json": `{"learning_rate":1}`, "rank1/nccl.json": emptyDump, "rank0/.partial": "\x7fELF"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(dir, "rank0", "back")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// emptyDump is a dump of a flight recorder that has no operation.
const emptyDump = `{"version":"2.4","entries":[],"pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1, 2, 10]"}},"pg_status":{}}`

const rankRule = "--label=rank=rank([0-9]+)"

// isOfRanks fails unless a comparison has the four ranks of jobFolder, of which the odd one comes first.
func isOfRanks(t *testing.T, how string, c *comparedJSON) {
	t.Helper()
	if len(c.Targets) != 4 || len(c.Classes) != 2 {
		t.Fatalf("%s: %d targets in %d classes: %+v", how, len(c.Targets), len(c.Classes), c)
	}
	if c.Classes[0].Labels["rank"] != "2" || c.Classes[1].Labels["rank"] != "0-1,10" {
		t.Errorf("%s: classes of ranks %q and %q", how, c.Classes[0].Labels["rank"], c.Classes[1].Labels["rank"])
	}
}

func TestCompareSaysWhichRankDiffers(t *testing.T) {
	dir := jobFolder(t)
	c := comparedJSONOf(t, dir, rankRule)
	isOfRanks(t, "a folder", &c)
	if c.Version != 1 || c.ByThread || c.Targets[3].Path != filepath.Join(dir, "rank10", "core") {
		t.Errorf("%+v", c)
	}
	for _, s := range []struct {
		flags  []string
		status int
		words  []string // of standard output, or of standard error where it fails
	}{
		{nil, 0, []string{"4 targets", "rank 2"}},
		{[]string{"--format", "markdown"}, 0, []string{"rank"}},
		{[]string{"--format", "dot"}, 0, []string{"digraph"}},
		{[]string{"--format", "folded"}, 0, []string{";main;"}},
		{[]string{"--format", "pprof"}, 0, []string{"\x1f\x8b"}},
		{[]string{"--format", "html"}, 0, []string{"<!DOCTYPE html>"}},
		{[]string{"--signature"}, 0, []string{"rank"}},
		{[]string{"--fail-if-differ"}, exitCrashed, []string{"--fail-if-differ: the targets differ: they are of 2 classes"}},
	} {
		stdout, stderr, status := unwindd(t, append([]string{"compare", dir, rankRule}, s.flags...)...)
		if status != s.status {
			t.Errorf("%q: status %d, expected %d\n%s", s.flags, status, s.status, stderr)
		}
		said := stdout
		if status != 0 {
			said = stderr
		}
		for _, words := range s.words {
			if !strings.Contains(said, words) {
				t.Errorf("%q: no %q in\n%s", s.flags, words, said)
			}
		}
		if !strings.Contains(stderr, "3 files are no targets") {
			t.Errorf("%q: expected that files are left out: %s", s.flags, stderr)
		}
	}
	_, stderr, _ := unwindd(t, "compare", dir, "-v")
	mustSay(t, stderr, "notes.txt", "settings.json", "it is a link to a folder", "left out")
	if _, stderr, status := unwindd(t, "compare", filepath.Join(dir, "rank0"), filepath.Join(dir, "rank1"), "--fail-if-differ"); status != 0 {
		t.Errorf("ranks that are alike: status %d, %s", status, stderr)
	}
}

// TestCompareReadsAJobInAnyForm: as archives, as a list, as parts and as reports it has the same classes.
func TestCompareReadsAJobInAnyForm(t *testing.T) {
	dir := jobFolder(t)
	outside := t.TempDir()
	archive := func(name string, data []byte) string {
		path := filepath.Join(outside, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tarred := tarOfFolder(t, dir)
	list := fmt.Sprintf("# the ranks\n\n%s/rank0\trank=0\r\n%s/rank1/core\trank=1\thost=b\n  %s/rank2/now.snapshot \trank=2\n%s/rank10\trank=10\n", dir, dir, dir, dir)
	parts := []string{filepath.Join(outside, "a.part"), filepath.Join(outside, "b.part")}
	for i, ranks := range [][]string{{"rank10", "rank2"}, {"rank1", "rank0"}} {
		args := []string{"compare", "--format", "part", "-o", parts[i], rankRule}
		for _, rank := range ranks {
			args = append(args, filepath.Join(dir, rank))
		}
		if _, stderr, status := unwindd(t, args...); status != 0 {
			t.Fatalf("status %d, %s", status, stderr)
		}
	}
	var reports []string
	for _, target := range []string{"rank0/core", "rank1/core", "rank2/now.snapshot", "rank10/core"} {
		path := filepath.Join(outside, strings.ReplaceAll(target, "/", "-")+".json")
		if _, stderr, status := unwindd(t, "stack", filepath.Join(dir, target), "--format", "json", "-o", path); status != 0 {
			t.Fatalf("status %d, %s", status, stderr)
		}
		reports = append(reports, path)
	}
	for how, args := range map[string][]string{
		"tar": {archive("job.tar", tarred), rankRule}, "tar.gz": {archive("job.tar.gz", gzipped(t, tarred)), rankRule}, "zip": {archive("job.zip", zipOfFolder(t, dir)), rankRule},
		"--from": {"--from", archive("list", []byte(list))}, "parts": parts, "reports": append([]string{rankRule}, reports...), "parts in a folder": {outside + "/parts"},
	} {
		if how == "parts in a folder" {
			if err := os.MkdirAll(args[0]+"/node", 0o700); err != nil {
				t.Fatal(err)
			}
			for i, path := range parts {
				if err := os.Link(path, fmt.Sprintf("%s/node/%d.part", args[0], i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := comparedJSONOf(t, args...)
		isOfRanks(t, how, &c)
	}
	whole, _, _ := unwindd(t, "compare", dir, rankRule, "--format", "json")
	merged, _, _ := unwindd(t, append([]string{"compare", "--format", "json"}, parts...)...)
	if diff := cmp.Diff(whole, merged); diff != "" {
		t.Errorf("merged parts are another comparison than all targets:\n%s", diff)
	}
	cmd := command("compare", "-", rankRule, "--format", "json")
	cmd.Stdin = bytes.NewReader(gzipped(t, tarred))
	out, err := cmd.Output()
	var c comparedJSON
	if err != nil || json.Unmarshal(out, &c) != nil {
		t.Fatalf("%v, %s", err, out)
	}
	isOfRanks(t, "standard input", &c)
}

func tarOfFolder(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(withoutLinks{os.DirFS(dir)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOfFolder(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := w.AddFS(withoutLinks{os.DirFS(dir)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withoutLinks is a file system without its links.
type withoutLinks struct{ fs.FS }

func (f withoutLinks) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(f.FS, name)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return e.Type()&fs.ModeSymlink != 0 }), err
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestThreadsOfOneTargetAreCompared: with --threads they are of several targets, too.
func TestThreadsOfOneTargetAreCompared(t *testing.T) {
	if c := comparedJSONOf(t, serverCore); !c.ByThread || len(c.Targets) != 4 || len(c.Classes) < 2 {
		t.Errorf("%+v", c)
	}
	dir := jobFolder(t)
	if c := comparedJSONOf(t, filepath.Join(dir, "rank0"), filepath.Join(dir, "rank1"), "--threads"); !c.ByThread || len(c.Targets) != 8 {
		t.Errorf("%+v", c)
	}
}

// TestTargetsThatCannotBeReadAreAClass: the others are compared.
func TestTargetsThatCannotBeReadAreAClass(t *testing.T) {
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.snapshot")
	data, err := os.ReadFile(mixed)
	if err == nil {
		err = os.WriteFile(cut, data[:len(data)/2], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := comparedJSONOf(t, serverCore, cut, filepath.Join(dir, "nothing"), "4194309")
	unread := map[string]string{}
	for _, class := range c.Classes {
		for _, i := range class.Targets {
			unread[c.Targets[i].Path] = class.Unread
		}
	}
	for path, words := range map[string]string{serverCore: "", cut: "snapshot", filepath.Join(dir, "nothing"): "no such file", "/proc/4194309": "it ended meanwhile"} {
		if reason, ok := unread[path]; !ok || (reason == "") != (words == "") || !strings.Contains(reason, words) {
			t.Errorf("%s: %v, %q, expected %q", path, ok, reason, words)
		}
	}
	if _, stderr, status := unwindd(t, "compare", cut, filepath.Join(dir, "nothing")); status != 1 || !strings.Contains(stderr, "no target could be read") || !strings.Contains(stderr, "no such file") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if _, stderr, status := unwindd(t, "compare", serverCore, cut, "--fail-if-differ"); status != 0 {
		t.Errorf("--fail-if-differ where one was read: status %d, %s", status, stderr)
	}
}

func TestCompareRefuses(t *testing.T) {
	dir := t.TempDir()
	lists := 0
	lines := func(text string) string {
		lists++
		path := filepath.Join(dir, fmt.Sprintf("list%d", lists))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args   []string
		status int
		words  string
	}{
		{nil, 2, "expected TARGET..."},
		{[]string{serverCore, "--format", "xml"}, 2, "--format xml"},
		{[]string{serverCore, "--signature", "--format", "dot"}, 2, "--signature and --format dot"},
		{[]string{serverCore, "--jobs", "-1"}, 2, "--jobs -1"},
		{[]string{serverCore, "--top", "-1"}, 2, "--top -1"},
		{[]string{serverCore, "--repeat", "0"}, 2, "--repeat 0"},
		{[]string{serverCore, "--label", "rank"}, 2, "--label rank"},
		{[]string{serverCore, "--label", "rank=("}, 2, "--label rank=("},
		{[]string{serverCore, "--sysroot", filepath.Join(dir, "none")}, 1, "--sysroot"},
		{[]string{serverCore, "--queue-cert", "x"}, 2, "expected both"},
		{[]string{"-", "-"}, 2, "standard input is one target"},
		{[]string{"-", "--from", "-"}, 2, "standard input"},
		{[]string{t.TempDir()}, 1, "no file is in the folder"},
		{[]string{"--from", filepath.Join(dir, "none")}, 1, "none"},
		{[]string{"--from", lines("")}, 2, "expected a target"},
		{[]string{"--from", lines("core\n\trank=1\n")}, 2, ":2: expected a target before the labels"},
		{[]string{"--from", lines("core\trank\n")}, 2, `:1: "rank": expected a label NAME=VALUE`},
		{[]string{"--from", lines("core\t1=2\n")}, 2, "expected a label NAME=VALUE"},
		{[]string{"--from", lines("core\ta=1\ta=2\n")}, 2, "label a is there twice"},
		{[]string{"--from", lines("# only this\n   \n")}, 2, "expected a target"},
		{[]string{"--from", lines(strings.Repeat("x", 2<<20))}, 1, ":1: bufio.Scanner: token too long"},
		{[]string{"0f9a66d1c5b7e34a8d2b3c4d5e6f7081", "--queue", "nats://127.0.0.1:1"}, 1, "the queue does not answer"},
	} {
		_, stderr, status := unwindd(t, append([]string{"compare"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.words) {
			t.Errorf("%.200q: status %d, expected %d and %q:\n%s", c.args, status, c.status, c.words, stderr)
		}
	}
}

// TestHostileArchives: nothing is written where a member's name leads, and what unpacks to too much is not read.
func TestHostileArchives(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	core, err := os.ReadFile(serverCore)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{
		{Name: "../escaped/core", Size: int64(len(core)), Mode: 0o600, Typeflag: tar.TypeReg},
		{Name: "link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
		{Name: "hard", Linkname: "/etc/passwd", Typeflag: tar.TypeLink},
		{Name: "device", Typeflag: tar.TypeChar},
		{Name: "huge", Size: 1 << 27, Mode: 0o600, Typeflag: tar.TypeReg},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg && h.Name != "huge" {
			if _, err := w.Write(core); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, _ = io.CopyN(w, zeros{}, 1<<27)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "in", "bomb.tar.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, gzipped(t, b.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	b = bytes.Buffer{}
	c := comparedJSONOf(t, path, serverCore, "--max-unpacked", "20M")
	paths := map[string]bool{}
	for _, target := range c.Targets {
		paths[target.Path] = true
	}
	if !paths[path+"/escaped/core"] || paths[path+"/link"] || paths[path+"/hard"] || paths[path+"/device"] || !paths[serverCore] {
		t.Errorf("%v", paths)
	}
	reasons := ""
	for _, class := range c.Classes {
		reasons += class.Unread
	}
	if !strings.Contains(reasons, "--max-unpacked") {
		t.Errorf("expected that it unpacks to too much: %+v", c.Classes)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%v is beside the archive's folder", list)
	}
	if list, _ := os.ReadDir(temp); len(list) != 0 {
		t.Errorf("%v is left", list)
	}
}

// zeros is a stream of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestLivingProcessesAreCompared has one of a group elsewhere, and looks at all of them at several moments.
func TestLivingProcessesAreCompared(t *testing.T) {
	oracle.All(t)
	pids := sleepers(t, 5)
	pids = append(pids, victim(t, "threads", "3"))
	c := comparedJSONOf(t, append([]string{"--repeat", "3", "--interval", "10ms"}, pids...)...)
	if len(c.Targets) != 6 || len(c.Classes) != 2 || len(c.Classes[0].Targets) != 1 {
		t.Fatalf("%+v", c)
	}
	if odd := c.Targets[c.Classes[0].Targets[0]]; odd.Path != "/proc/"+pids[5] || odd.Count != 3 || fmt.Sprint(odd.PID) != pids[5] {
		t.Errorf("%+v", odd)
	}
	dir := t.TempDir()
	collect(t, "--pids", strings.Join(pids, ","), "-o", dir, "--repeat", "2", "--interval", "1ms", "--label", "number=([0-9])$")
	c = comparedJSONOf(t, dir)
	if len(c.Targets) != 6 || len(c.Classes) != 2 || c.Targets[0].Count != 2 || c.Targets[0].Labels["number"] == "" || c.Targets[0].Labels["host"] == "" {
		t.Errorf("of snapshots: %+v", c)
	}
}

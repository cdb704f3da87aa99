// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// innermostNames lists the process and the name of the innermost frame of each sample.
func innermostNames(p *trace.Profile) (list []string) {
	for i := range p.Samples {
		f := &p.Frames[p.Stacks[p.Samples[i].Stack].Frame]
		name := "?"
		if len(f.Symbols) > 0 {
			name = f.Symbols[0].Function
		}
		list = append(list, fmt.Sprintf("%d %s", p.Threads[p.Samples[i].Thread].PID, name))
	}
	return list
}

// writeFiles writes files under a directory.
func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// mustProfile makes a profile of a recording, whole and of its parts.
func mustProfile(t *testing.T, b *perfStream, sysroot string, o trace.ProfileOptions) *trace.Profile {
	t.Helper()
	e, path := gpuEngine(t, Options{Sysroot: sysroot}), b.write(t)
	p, err := e.Profile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	checkParts(t, e, path, o, p)
	return p
}

const execed, madeCode = 1 << 13, 0x601000

// Code that a process made before it forked another is named by its map in the other, after the
// other's own, and what the other made itself is not.
func TestMapsOfForkedProcesses(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"tmp/perf-7.map": "601000 100 made_by_7\n602000 100 other_of_7\n603000 100 later_of_7\n604000 100 shared_of_7\n",
		"tmp/perf-8.map": "601080 80 made_by_8\n",
	})
	b := newShape("x86_64", sampleBasics, 0, 0)
	b.fork(7, 1, 90)
	b.comm(7, 100, execed, "server")
	b.mmap(7, 100, madeCode, 0x1000, 0, "//anon")
	b.mmap(7, 100, 0x602000, 0x1000, 0, "/anon_hugepage (deleted)")
	b.fork(8, 7, 200)
	b.fork(9, 8, 300)
	b.mmap(9, 310, 0x603000, 0x1000, 0, "//anon") // where 7 makes code, too
	// Shared memory stays the same when its rights change.
	b.record(10, inUser, uint32(7), uint32(7), uint64(0x604000), uint64(0x1000), uint64(0), uint32(0), uint32(1), uint64(77), uint64(0), uint32(5), uint32(1), "/dev/zero (deleted)", uint32(7), uint32(7), uint64(110))
	b.record(10, inUser, uint32(8), uint32(8), uint64(0x604000), uint64(0x1000), uint64(0), uint32(0), uint32(1), uint64(77), uint64(0), uint32(5), uint32(1), "/dev/zero (deleted)", uint32(8), uint32(8), uint64(210))
	b.fork(10, 9, 400)
	b.comm(10, 410, execed, "other")
	b.mmap(10, 420, madeCode, 0x1000, 0, "//anon")
	time := uint64(1000)
	for _, at := range []struct {
		pid uint32
		pc  uint64
	}{{7, madeCode + 0x90}, {8, madeCode + 0x90}, {8, madeCode + 0x10}, {9, madeCode + 0x90}, {9, 0x602010}, {9, 0x603010}, {8, 0x604010}, {10, madeCode + 0x10}} {
		time++
		b.sample(inUser, at.pid, time, at.pc)
	}
	p := mustProfile(t, b, dir, trace.ProfileOptions{})
	want := []string{"7 made_by_7", "8 made_by_8", "8 made_by_7", "9 made_by_8", "9 other_of_7", "9 ?", "8 shared_of_7", "10 ?"}
	if d := cmp.Diff(want, innermostNames(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all := strings.Join(p.Problems, "\n")
	for pid, isMissing := range map[int]bool{7: false, 8: false, 9: true, 10: true} {
		if text := fmt.Sprintf("process %d (no fitting map at", pid); strings.Contains(all, text) != isMissing {
			t.Errorf("problems %q: expected %q in them: %v", p.Problems, text, isMissing)
		}
	}
}

// perf tells of the processes that it finds who forked them, not since when: code is looked up in
// the map of a parent that has the same files at the same addresses.
func TestMapsOfProcessesThatWereForkedBefore(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"tmp/perf-20.map": "601000 100 made_by_20\n"})
	b := newShape("x86_64", sampleBasics, 0, 0)
	for i, start := range []uint64{0x401000, 0x401000, 0x501000} { // of 20 there is no sample while it has the memory
		pid, parent := uint32(20+i), uint32(20)
		if i == 0 {
			parent = 1
		}
		b.comm(pid, 0, 0, "server")
		b.fork(pid, parent, 0)
		b.mmap(pid, 0, start, 0x1000, 0, "/x/server")
		b.mmap(pid, 0, madeCode, 0x1000, 0, "//anon")
		if i == 0 {
			b.mmap(pid, 500, madeCode, 0x1000, 0, "/x/library")
			b.sample(inUser, pid, 1000, 0x401010)
			continue
		}
		b.sample(inUser, pid, uint64(1000+i), madeCode+0x10)
	}
	if d := cmp.Diff([]string{"20 ?", "21 made_by_20", "22 ?"}, innermostNames(mustProfile(t, b, dir, trace.ProfileOptions{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Every kind of memory without a file is named by a map.
func TestMapsOfMemoryWithoutAFile(t *testing.T) {
	names := []string{"//anon", "/anon_hugepage (deleted)", "/anon_hugepage", "/dev/zero (deleted)", "/dev/zero", "/SYSV00000000 (deleted)", "[heap]", "[stack]",
		"[anon:v8]", "[anon_shmem:x]", "/memfd:doublemapper (deleted)", "/memfd:code", "anon_inode:[x]", ""}
	dir := t.TempDir()
	b := newShape("x86_64", sampleBasics, 0, 0)
	b.comm(7, 100, execed, "program")
	text, start := "", uint64(0x700000)
	var want []string
	for i, name := range names {
		b.mmap(7, 100, start, 0x1000, 0, name)
		b.sample(inUser, 7, uint64(1000+i), start+0x10)
		text += fmt.Sprintf("%x 100 in %s\n", start, name)
		want = append(want, "7 in "+name)
		start += 0x10000
	}
	writeFiles(t, dir, map[string]string{"tmp/perf-7.map": strings.ReplaceAll(text, "in \n", "in nothing\n")})
	want[len(want)-1] = "7 in nothing"
	if d := cmp.Diff(want, innermostNames(mustProfile(t, b, dir, trace.ProfileOptions{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// In a PID namespace a runtime writes the ID of its process there: under a root it is the map
// that has code where the process has memory. Or the user gives the map, of any owner.
func TestMapsOfContainers(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"a/tmp/perf-1.map":   "601000 100 one_in_a\n",
		"a/tmp/perf-6.map":   "701000 100 six_in_a\n",
		"a/tmp/perf-bad.map": "what is this\n",
		"given.map":          "601000 100 given\nnot a line\nnor this\n",
		"host/x":             "",
	})
	b := newShape("x86_64", sampleBasics, 0, 0)
	const namespaces = 16
	for i, start := range []uint64{madeCode, 0x701000, madeCode, madeCode} {
		pid := uint32(4711 + i)
		b.comm(pid, 100, execed, "program")
		b.record(namespaces, 0, pid, pid, uint64(7), make([]uint64, 6), uint64(4), uint64(4026532281+i), make([]uint64, 6), pid, pid, uint64(100))
		b.mmap(pid, 100, start, 0x1000, 0, "//anon")
		b.sample(inUser, pid, uint64(1000+i), start+0x10)
	}
	given := filepath.Join(dir, "given.map")
	if os.Geteuid() == 0 {
		if err := os.Chown(given, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	o := trace.ProfileOptions{
		Roots:    map[int]string{4711: filepath.Join(dir, "a"), 4712: filepath.Join(dir, "a")},
		PerfMaps: map[int]string{4713: given, 4799: given},
	}
	p := mustProfile(t, b, filepath.Join(dir, "host"), o)
	if d := cmp.Diff([]string{"4711 one_in_a", "4712 six_in_a", "4713 given", "4714 ?"}, innermostNames(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all := strings.Join(p.Problems, "\n")
	for _, text := range []string{
		"and 1 more like that: expected lines of START SIZE NAME",
		"process 4714 (no fitting map at " + filepath.Join(dir, "host/tmp/perf-4714.map"),
		"it is in the PID namespace 4026532284",
		"given.map was not used: no sample is in code that process 4799 made",
	} {
		if strings.Count(all, text) != 1 {
			t.Errorf("%q is in the problems %d times:\n%s", text, strings.Count(all, text), all)
		}
	}
	o.PerfMaps = map[int]string{4713: filepath.Join(dir, "none")}
	if _, err := gpuEngine(t, Options{}).Profile(t.Context(), b.write(t), o); err == nil || !strings.Contains(err.Error(), "the map of process 4713") {
		t.Errorf("a map that is not there: %v", err)
	}
}

// Everyone may write to /tmp: a link that another user made is not followed, and the names in a
// file of another user are used with a word about that.
func TestMapsOfOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes files of other users")
	}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"tmp/perf-7.map": "601000 100 foreign\n", "secret": "601000 100 secret\n"})
	if err := os.Symlink("../secret", filepath.Join(dir, "tmp/perf-8.map")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tmp/perf-7.map", "tmp/perf-8.map"} {
		if err := os.Lchown(filepath.Join(dir, name), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	b := newShape("x86_64", sampleBasics, 0, 0)
	for i := range uint32(2) {
		b.comm(7+i, 100, execed, "program")
		b.mmap(7+i, 100, madeCode, 0x1000, 0, "//anon")
		b.sample(inUser, 7+i, uint64(1000+i), madeCode+0x10)
	}
	p := mustProfile(t, b, dir, trace.ProfileOptions{})
	if d := cmp.Diff([]string{"7 foreign", "8 ?"}, innermostNames(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	all := strings.Join(p.Problems, "\n")
	for _, text := range []string{"perf-7.map: it belongs to another user, 12345", "perf-8.map is a link that user 12345 made"} {
		if strings.Count(all, text) != 1 {
			t.Errorf("%q is in the problems %d times:\n%s", text, strings.Count(all, text), all)
		}
	}
}

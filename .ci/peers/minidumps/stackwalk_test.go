// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A peerFrame is a frame as Breakpad's minidump_stackwalk prints it, or as
// rust-minidump's JSON has it.
type peerFrame struct {
	pc       uint64 // 0: not said, as of inlined calls
	module   string // the last part of its path
	function string
	file     string // likewise
	line     uint64
	isGuess  bool // found by scanning, or taken for a function without a frame
}

var (
	stackwalkThread = regexp.MustCompile(`^Thread (\d+)`)
	// A frame is MODULE!FUNCTION [FILE : LINE + OFFSET], MODULE!FUNCTION + OFFSET,
	// MODULE + OFFSET or an address.
	stackwalkFrame = regexp.MustCompile(`^ ?\d+  (.*)$`)
	stackwalkPlace = regexp.MustCompile(`^(.*) \[(.*) : (\d+) \+ 0x[0-9a-f]+\]$`)
	stackwalkBare  = regexp.MustCompile(`^(.*?) ?\+ 0x[0-9a-f]+$`)
	stackwalkPC    = regexp.MustCompile(`\b[re]ip = 0x([0-9a-f]+)`)
)

// stackwalk runs Breakpad's reader. The threads are in the order of the dump.
func stackwalk(t testing.TB, dump string, symbols string) [][]peerFrame {
	t.Helper()
	cmd := exec.Command(filepath.Join(breakpadTools(t), "minidump_stackwalk"), dump, symbols)
	out, err := cmd.Output() // it logs on its standard error
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	threads := map[int][]peerFrame{}
	thread, count := -1, 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if m := stackwalkThread.FindStringSubmatch(line); m != nil {
			thread, _ = strconv.Atoi(m[1])
			count = max(count, thread+1)
			continue
		}
		if strings.HasPrefix(line, "Loaded modules") {
			break
		}
		if thread < 0 {
			continue
		}
		frames := threads[thread]
		if m := stackwalkFrame.FindStringSubmatch(line); m != nil {
			threads[thread] = append(frames, parseStackwalk(m[1]))
		} else if n := len(frames) - 1; n >= 0 {
			if m := stackwalkPC.FindStringSubmatch(line); m != nil {
				frames[n].pc, _ = strconv.ParseUint(m[1], 16, 64)
			}
			frames[n].isGuess = frames[n].isGuess || strings.Contains(line, "Found by: stack scanning") || strings.Contains(line, "simulating a return")
		}
	}
	list := make([][]peerFrame, count)
	for i := range list {
		list[i] = threads[i]
	}
	return list
}

func parseStackwalk(text string) (f peerFrame) {
	if m := stackwalkPlace.FindStringSubmatch(text); m != nil {
		text, f.file = m[1], m[2]
		f.line, _ = strconv.ParseUint(m[3], 10, 64)
	} else if m := stackwalkBare.FindStringSubmatch(text); m != nil {
		text = m[1]
	} else if strings.HasPrefix(text, "0x") {
		return f
	}
	f.module, f.function, _ = strings.Cut(text, "!")
	return f
}

// lastPart is the last part of a path of any system.
func lastPart(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// peerForm is a frame of ours in the peer's form.
func (f *frame) peerForm() peerFrame {
	pc, _ := strconv.ParseUint(f.PC, 0, 64)
	return peerFrame{pc, lastPart(f.Path), f.Function, lastPart(f.File), f.Line, f.FoundBy == "scan"}
}

func (f peerFrame) String() string {
	guess := ""
	if f.isGuess {
		guess = ", scanned"
	}
	return fmt.Sprintf("%#x %s!%s %s:%d%s", f.pc, f.module, f.function, f.file, f.line, guess)
}

// Differences from a peer that are explained:
const (
	// What a peer scans for without looking at the code is noise from there on: any word
	// of the stack that points into a module.
	peerScans = "the peer scans"
	// A public symbol has no end. Ours ends where other call frame information begins.
	peerNames = "the peer has the name of a public symbol before the code"
	// The function has no record of its own, as its code says, which is in the dump, or as it is no code but data that
	// was jumped to: the peer takes that of its caller for it, and leaves out the caller.
	peerSkips = "the peer skips the caller of a function without a frame record"
	// Ours goes on by rules that it reads from the code, or by a chain of frame records.
	peerEnds = "the peer's ends before"
	// The thread that wrote the dump.
	peerLeavesOut = "the peer leaves out the thread that wrote the dump"
	// No plugin is there for the architecture.
	noPlugin = "no plugin walks the architecture"
)

// compareWithPeer holds the stack of a thread against a peer's, and returns how many
// frames of the peer were equal, and the classes of differences.
func (ours *thread) compareWithPeer(theirs []peerFrame) (equal int, classes map[string]int, other string) {
	classes = map[string]int{}
	if ours.Stopped.Reason == "plugin-failed" {
		classes[noPlugin]++
		return 0, classes, ""
	}
	i := -1
	for _, want := range theirs {
		i++
		if want.isGuess {
			classes[peerScans]++
			return equal, classes, ""
		}
		if i == len(ours.Frames) {
			if want.module == "" && i > 0 { // what is no code is no frame of ours
				classes[peerScans]++
				return equal, classes, ""
			}
			return equal, classes, fmt.Sprintf("frame %d is missing: %s\n\t(ours ends: %v)", i, want, ours.Stopped)
		}
		hasNoRecord := ours.Frames[i].FoundBy == "rules" || i == 1 && ours.Frames[0].Path == "" && ours.Frames[i].peerForm().pc != want.pc
		if i+1 < len(ours.Frames) && hasNoRecord && ours.Frames[i+1].peerForm().pc == want.pc {
			classes[peerSkips]++
			i++
		}
		got := ours.Frames[i].peerForm()
		got.isGuess = false
		if want.pc == 0 {
			want.pc = got.pc
		}
		if want.function == ours.Frames[i].LinkageName { // it leaves Rust's names as they are
			got.function = want.function
		}
		if got.function == "" && want.file == "" && got.file == "" && want.function != "" {
			classes[peerNames]++
			got.function = want.function
		}
		if got != want {
			return equal, classes, fmt.Sprintf("frame %d\n\tis  %s\n\twas %s", i, got, want)
		}
		equal++
	}
	if len(ours.Frames) > i+1 {
		classes[peerEnds]++
	}
	return equal, classes, ""
}

// beginsAs says whether the first frame is that of the first of the peer's stacks.
func (ours *thread) beginsAs(theirs [][]peerFrame) bool {
	return len(theirs) > 0 && len(theirs[0]) > 0 && len(ours.Frames) > 0 && ours.Frames[0].peerForm().pc == theirs[0][0].pc
}

// A tally is what comparisons with a peer gave.
type tally struct {
	mu      sync.Mutex
	frames  int
	classes map[string]int
}

// count adds equal frames, and some of a class if there are.
func (c *tally) count(equal int, class string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.classes == nil {
		c.classes = map[string]int{}
	}
	c.frames += equal
	if n > 0 {
		c.classes[class] += n
	}
}

func (c *tally) add(t testing.TB, name string, ours *document, theirs [][]peerFrame) {
	t.Helper()
	next := 0
	for i := range ours.Threads {
		// The peer leaves out the thread that wrote the dump.
		if len(ours.Threads)-i > len(theirs)-next && !ours.Threads[i].beginsAs(theirs[next:]) {
			c.count(0, peerLeavesOut, 1)
			continue
		}
		if next == len(theirs) {
			t.Errorf("%s: thread %s: the peer does not have it", name, ours.Threads[i].ID)
			continue
		}
		equal, classes, other := ours.Threads[i].compareWithPeer(theirs[next])
		next++
		c.count(equal, "", 0)
		for class, n := range classes {
			c.count(0, class, n)
		}
		if other != "" {
			t.Errorf("%s: thread %s: %s", name, ours.Threads[i].ID, other)
		}
	}
}

// A store is a folder of symbols that tests share. Each file is added once.
type store struct {
	folder string
	files  sync.Map // sync.Once by the path of what the symbols are of
}

// addAll adds what dump_syms says of an executable and of the libraries that it loads.
func (s *store) addAll(t testing.TB, program string) {
	t.Helper()
	list, _ := filepath.Glob(filepath.Join(filepath.Dir(program), "lib*.so"))
	out, _ := exec.Command("ldd", program).Output() // one that is static has none
	for _, m := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		list = append(list, m[1])
	}
	for _, path := range append(list, program) {
		once, _ := s.files.LoadOrStore(path, new(sync.Once))
		once.(*sync.Once).Do(func() { addSymbols(t, s.folder, path) })
	}
}

// compare walks a dump without the files of its modules, which may be beside it, by the
// symbols of the store, and holds the stacks against those of minidump_stackwalk.
func (s *store) compare(t testing.TB, c *tally, name, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), filepath.Base(path))
	writeFile(t, path, data)
	c.add(t, name, readStacks(t, path, "--symbols", s.folder, "--sysroot", t.TempDir()), stackwalk(t, path, s.folder))
}

// publicDumps names a folder that testdata/public.sh of engine/internal/target/minidump made.
const publicDumps = "UNWINDD_MINIDUMPS"

// TestPublicDumpsGiveTheStacksThatBreakpadWalks walks every public dump with the symbols
// that are beside it.
func TestPublicDumpsGiveTheStacksThatBreakpadWalks(t *testing.T) {
	symbols := store{folder: t.TempDir()}
	if folder := os.Getenv(publicDumps); folder != "" {
		symbols.folder = filepath.Join(folder, "symbols")
	}
	var all tally
	read := 0
	for _, path := range factDumps(t) {
		if strings.HasPrefix(filepath.Base(path), "invalid-r") { // which are damaged
			continue
		}
		read++
		symbols.compare(t, &all, path, path)
	}
	t.Logf("%d dumps: %d frames are equal; %v", read, all.frames, all.classes)
}

// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/host"
)

// This file finds what runtimes wrote of the code that they made: /tmp/perf-PID.map, with the ID
// that the process has in its own PID namespace, in its own /tmp, and the dumps that it mapped.

// generatedCode has the maps and dumps of a recording.
type generatedCode struct {
	provided map[int]string // the files of maps, by process, as the user gave them
	isUsed   map[int]bool   // of provided, which was used
	makers   map[int]*codeMaker
	maps     map[string]*perfdata.PerfMap // by path; nil: it cannot be read
	own      map[int]*perfdata.PerfMap    // that fit, by process
	dumps    map[string]*jitDump          // by path
	mapped   map[*perfdata.Mapping]*jitDump
	// isComplete is true where all memory of all processes is known.
	isComplete bool
	nameless   map[int]int // frames in memory without a file that have no name, by process
}

func newGeneratedCode() generatedCode {
	return generatedCode{
		isUsed: map[int]bool{}, makers: map[int]*codeMaker{}, maps: map[string]*perfdata.PerfMap{}, own: map[int]*perfdata.PerfMap{},
		dumps: map[string]*jitDump{}, mapped: map[*perfdata.Mapping]*jitDump{}, nameless: map[int]int{},
	}
}

func (g *generatedCode) close() {
	for _, d := range g.dumps {
		d.close()
	}
	for _, m := range g.maps {
		if m != nil {
			m.Close()
		}
	}
}

// openPerfMaps checks that the files of maps are there.
func openPerfMaps(maps map[int]string) error {
	for pid, name := range maps {
		st, err := os.Stat(name)
		if err == nil && !st.Mode().IsRegular() {
			err = errors.New("it is no regular file")
		}
		if err != nil {
			return fmt.Errorf("the map of process %d, %s: %w", pid, name, err)
		}
	}
	return nil
}

// checkPerfMaps reports given maps that were not used.
func (r *recording) checkPerfMaps() {
	for pid, name := range r.generated.provided {
		if !r.generated.isUsed[pid] {
			r.problem("%s was not used: no sample is in code that process %d made", name, pid)
		}
	}
}

// mapPath is where a runtime writes its map.
func mapPath(pid int) string { return fmt.Sprintf("/tmp/perf-%d.map", pid) }

// ownMap returns the map that a process wrote; nil where there is none. Of several files it is
// the first that has a function in the memory of the process.
func (r *recording) ownMap(c *codeMaker) *perfdata.PerfMap {
	g := &r.generated
	if m, ok := g.own[c.pid]; ok {
		return m
	}
	if name := g.provided[c.pid]; name != "" {
		g.isUsed[c.pid] = true
		g.own[c.pid] = r.openMap(name)
		return g.own[c.pid]
	}
	for _, candidate := range r.mapFiles(c) {
		file, err := r.locate(candidate.root, candidate.name)
		if err != nil || !r.mayRead(candidate, file, c) {
			continue
		}
		if m := r.openMap(file); m != nil && c.fits(m) {
			g.own[c.pid] = m
			return m
		}
	}
	if g.isComplete {
		g.own[c.pid] = nil
	}
	return nil
}

// rootedFile is a path under a root.
type rootedFile struct{ root, name string }

// mapFiles lists where the map of a process may be, the likeliest first.
func (r *recording) mapFiles(c *codeMaker) (list []rootedFile) {
	root := r.rootOf(c)
	if c.isAlive() {
		own := mapPath(cmp.Or(c.live.Own(), c.pid))
		list = append(list, rootedFile{cmp.Or(root, c.liveRoot()), own})
	}
	list = append(list, rootedFile{root, mapPath(c.pid)})
	if dir := r.folder(); dir != "" {
		list = append(list, rootedFile{dir, path.Base(mapPath(c.pid))})
	}
	if c.root != "" {
		// Inside it has another ID, which the recording does not have.
		names, _ := filepath.Glob(filepath.Join(filepath.Clean(c.root), "tmp", "perf-*.map"))
		for _, name := range names[:min(len(names), maxListed)] {
			list = append(list, rootedFile{c.root, "/tmp/" + filepath.Base(name)})
		}
	}
	return slices.Compact(list)
}

// rootOf returns the root that the user gave for a process; "" for this machine's.
func (r *recording) rootOf(c *codeMaker) string {
	if root := cmp.Or(c.root, r.maker.Sysroot); root != "/" {
		return root
	}
	return ""
}

// maxListed bounds the maps in one directory that are looked at.
const maxListed = 256

// liveRoot is the root directory of a living process.
func (c *codeMaker) liveRoot() string { return fmt.Sprintf("/proc/%d/root", c.pid) }

// folder is the directory of the recording.
func (r *recording) folder() string {
	dir := filepath.Dir(r.file.Path())
	if strings.HasPrefix(dir, "/proc/") {
		return "" // of an open file without a name
	}
	return dir
}

// mayRead reports whether a file that a runtime wrote is used, and says where it is not, or where
// that is a risk: everyone may write to /tmp. file is where the candidate leads to.
func (r *recording) mayRead(candidate rootedFile, file string, c *codeMaker) bool {
	user := host.AnyUser
	if c.isAlive() {
		user = c.live.User
	}
	err := host.CheckOwner(file, user)
	if link := filepath.Join(cmp.Or(candidate.root, "/"), candidate.name); err == nil && link != file {
		err = host.CheckOwner(link, user)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, fs.ErrNotExist):
		return false
	case errors.Is(err, host.ErrForeign) && user == host.AnyUser:
		r.problem("%v: whether process %d, whose code it names, was that user's is not recorded: its names are what that user wrote", err, c.pid)
		return true
	}
	r.problem("%v: it is not read; --perf-map %d=FILE gives a map of any owner", err, c.pid)
	return false
}

// openMap opens a map; nil where it cannot be read.
func (r *recording) openMap(file string) *perfdata.PerfMap {
	g := &r.generated
	if m, ok := g.maps[file]; ok {
		return m
	}
	m, err := perfdata.OpenPerfMap(file)
	if err != nil {
		r.problem("%v", err)
	} else if list := m.Problems(); len(list) > 0 {
		text := list[0]
		if len(list) > 1 {
			text = fmt.Sprintf("%s, and %d more like that", text, len(list)-1)
		}
		r.problem("%s: expected lines of START SIZE NAME, with hexadecimal numbers; the others are used", text)
	}
	g.maps[file] = m
	return m
}

// isMapped reports whether a map names code in memory of a process.
func (r *recording) isMapped(c *codeMaker, m *perfdata.Mapping) bool {
	for _, from := range r.mapMakers(c, m) {
		if r.ownMap(from).NamesIn(m.Start, m.End) {
			return true
		}
	}
	return false
}

// mapMakers returns the processes whose maps may have the names of code in memory: the process,
// and those that it has the memory from, the nearest first. Where the recording does not tell who
// made it they are all that forked it.
func (r *recording) mapMakers(c *codeMaker, m *perfdata.Mapping) []*codeMaker {
	list := []*codeMaker{c}
	if m == nil || m.PID == c.pid && !m.IsEarlier && len(c.ancestors) > 0 {
		return list
	}
	for _, pid := range c.ancestors {
		from := r.ancestor(pid, c)
		if m.PID == c.pid && !c.isForkOf(from) {
			break
		}
		// It need not have a sample from when it had the memory.
		if from.addMemory(m) && r.generated.own[pid] == nil {
			delete(r.generated.own, pid)
		}
		if list = append(list, from); pid == m.PID {
			return list
		}
	}
	for from := c.forkedBy(); from != nil && len(list) <= maxForks; from = from.forkedBy() {
		if !slices.ContainsFunc(list, func(c *codeMaker) bool { return c.pid == from.pid }) {
			list = append(list, from)
		}
	}
	return list
}

// maxForks bounds how many living ancestors of a process are looked at.
const maxForks = 8

// nameJIT names code of no module by its runtime's map.
func (b *profileBuilder) nameJIT(f *trace.ProfileFrame, lookup uint64) {
	g := &b.recording.generated
	c := g.makers[f.PID]
	if f.PID < 0 || c == nil {
		return
	}
	memory := c.memoryAt(lookup)
	for _, from := range b.recording.mapMakers(c, memory) {
		m := b.recording.ownMap(from)
		if m == nil {
			continue
		}
		name, start, _, ok := m.Find(lookup)
		if function, first, _, found := m.Find(f.PC); found && first == f.PC {
			name, start, ok = function, first, true // the end of the code before is not known to be a call
		}
		if ok {
			f.Symbols = []trace.Symbol{{Function: name, Start: start, HasStart: true}}
			return
		}
	}
	if memory != nil && !f.FoundBy.IsGuess() && !slices.Contains(kernelPages[:], memory.Path) {
		g.nameless[f.PID]++
	}
}

// kernelPages are pages of code that the kernel maps into processes.
var kernelPages = [...]string{"[vsyscall]", "[uprobes]", "[vectors]", "[sigpage]"}

// maxNamed is how many processes a sentence names.
const maxNamed = 3

// reportNameless says which processes made code and have no map or dump of it.
func (r *recording) reportNameless() {
	g := &r.generated
	var list []int
	for pid := range g.nameless {
		c := g.makers[pid]
		hasMap := slices.ContainsFunc(r.mapMakers(c, nil), func(c *codeMaker) bool { return g.own[c.pid] != nil })
		if !hasMap && !c.hasDump {
			list = append(list, pid)
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Or(cmp.Compare(g.nameless[b], g.nameless[a]), cmp.Compare(a, b)) })
	text := ""
	for _, pid := range list[:min(len(list), maxNamed)] {
		var where []string
		for _, f := range r.mapFiles(g.makers[pid]) {
			if strings.HasPrefix(f.root, "/proc/self/fd/") { // of a living process that was sampled
				f.root = g.makers[pid].liveRoot()
			}
			where = append(where, strings.TrimSuffix(f.root, "/")+"/"+strings.TrimPrefix(f.name, "/"))
		}
		text += fmt.Sprintf("process %d (no fitting map at %s), ", pid, strings.Join(where, ", "))
	}
	text = strings.TrimSuffix(text, ", ")
	if more := len(list) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	first := g.makers[list[0]]
	inside := ""
	const initialNamespace = 0xeffffffc // PROC_PID_INIT_INO
	if first.namespace != 0 && first.namespace != initialNamespace {
		inside = fmt.Sprintf(" (it is in the PID namespace %d: in a container the map has the ID that the process has there)", first.namespace)
	}
	r.problem("samples are in memory without a file, code that a program made while it ran, of %s%s: give its map with --perf-map %d=FILE, or the root directory of the process with --root %d=DIR",
		text, inside, list[0], list[0])
}

// dump opens the dump that a process mapped; it returns nil where it cannot be read.
func (r *recording) dump(c *codeMaker, m *perfdata.Mapping) *jitDump {
	g := &r.generated
	if d, ok := g.mapped[m]; ok {
		return d
	}
	g.mapped[m] = nil
	file, err := r.dumpFile(c, m)
	if err != nil {
		r.problem("%v", err)
		return nil
	}
	if d, ok := g.dumps[file]; ok {
		g.mapped[m] = d
		return d
	}
	g.dumps[file] = nil
	j, err := perfdata.OpenJITDump(file)
	if err != nil {
		r.problem("%v", err)
		return nil
	}
	for _, p := range j.Problems() {
		r.problem("%s", p)
	}
	d := &jitDump{
		file: j, isTimed: !j.HasArchTimestamps && clockOf(r.file) == jitClock,
		generated: map[*perfdata.JITFunction]*code.Module{}, parts: map[jitPart]*code.Segment{},
	}
	g.dumps[file], g.mapped[m] = d, d
	return d
}

// dumpFile returns the path of the dump that a process mapped: of the file with its inode, else
// of the first that is there.
func (r *recording) dumpFile(c *codeMaker, m *perfdata.Mapping) (string, error) {
	root := r.rootOf(c)
	list := []rootedFile{{root, m.Path}}
	if root == "" && c.isAlive() {
		list = append(list, rootedFile{c.liveRoot(), m.Path})
	}
	if dir := r.folder(); dir != "" {
		list = append(list, rootedFile{dir, path.Base(m.Path)})
	}
	var first string
	var place rootedFile
	var failed error
	for _, candidate := range list {
		file, err := r.locate(candidate.root, candidate.name)
		if err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		if h, ok := lookAt(file); ok && m.Inode != 0 && h.inode == m.Inode {
			return file, nil // whoever owns it, the process mapped it
		}
		if first == "" {
			first, place = file, candidate
		}
	}
	if first == "" {
		return "", fmt.Errorf("%w: it is the dump of the code that process %d made; --root %d=DIR says under which directory it is", failed, c.pid, c.pid)
	}
	if !r.mayRead(place, first, c) {
		return "", fmt.Errorf("%s: it is not read", first)
	}
	return first, nil
}

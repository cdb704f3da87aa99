// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// evidence has the records of a PDB file as llvm-pdbutil writes them. Differences are judged by them,
// where llvm-symbolizer has read them in its own way.
type evidence struct {
	lines         []lineBlock
	functions     []withSites
	thunks        []span
	contributions []span          // code of object files
	publics       map[uint64]bool // whether public symbols are marked as code
}

// withSites is a function by its record, with the inlined calls in it.
type withSites struct {
	procedure
	sites []site
}

// site is an inlined call.
type site struct {
	depth  int
	name   string // without the scopes around it, and cut where it is long; "" where it is another module's
	places []int  // the first lines of the functions that its identifier stands for
	rows   []siteRow
}

// siteRow is code of an inlined call.
type siteRow struct {
	span
	line int // from the function's first
}

var (
	moduleLine       = regexp.MustCompile("^ *(Mod \\d+) \\| `")
	inlineeLine      = regexp.MustCompile(`^ *(0x[0-9A-F]+) \| +(\d+) \| `)
	siteLine         = regexp.MustCompile(`inlinee = (0x[0-9A-F]+)(?: \((.*)\))?, parent = \d+`)
	annotationLine   = regexp.MustCompile(`^ +[0-9A-F]{4,} +(.*)$`)
	annotationNumber = regexp.MustCompile(`(code end|code|line) (?:0x)?(-?[0-9A-F]+) \(([+-](?:0x)?[0-9A-F]+)\)`)
	procedureAddress = regexp.MustCompile(`addr = (\d+):(\d+), code size = (\d+)`)
	procedureName    = regexp.MustCompile("\\| S_[GL]PROC32(?:_ID|_DPC|_DPC_ID)? \\[size = \\d+\\] `(.*)`$")
	publicFlags      = regexp.MustCompile("S_PUB32 .*\n +flags = (.*), addr = (\\d+):(\\d+)")
	thunkLine        = regexp.MustCompile(`kind = [^,]+, size = (\d+), addr = (\d+):(\d+)`)
	contributionLine = regexp.MustCompile(`SC\[.*\] +\| mod = \d+, (\d+):(\d+), size = (\d+)`)
)

// evidenceOf reads the records of the PDB file beside an image.
func evidenceOf(image string) (*evidence, error) {
	var e evidence
	sections, err := sectionsOf(image)
	if err != nil {
		return nil, err
	}
	pdb := filepath.Join(filepath.Dir(image), "a.pdb")
	text := map[string]string{}
	for _, kind := range []string{"-il", "-symbols", "-section-contribs", "-publics", "-l"} {
		out, err := exec.Command("llvm-pdbutil-22", "dump", kind, pdb).Output()
		if err != nil {
			return nil, err
		}
		text[kind] = string(out)
	}
	e.lines = linesOf(text["-l"], sections)
	e.functions = sitesOf(text["-symbols"], sections, placesOf(text["-il"]))
	for _, m := range contributionLine.FindAllStringSubmatch(text["-section-contribs"], -1) {
		if start, ok := sections.address(m[1], m[2]); ok {
			size, _ := strconv.ParseUint(m[3], 10, 64)
			e.contributions = append(e.contributions, span{start, start + size})
		}
	}
	for _, m := range thunkLine.FindAllStringSubmatch(text["-symbols"], -1) {
		if start, ok := sections.address(m[2], m[3]); ok {
			size, _ := strconv.ParseUint(m[1], 10, 64)
			e.thunks = append(e.thunks, span{start, start + size})
		}
	}
	e.publics = map[uint64]bool{}
	for _, m := range publicFlags.FindAllStringSubmatch(text["-publics"], -1) {
		if at, ok := sections.address(m[2], m[3]); ok {
			e.publics[at] = e.publics[at] || m[1] != "none"
		}
	}
	return &e, nil
}

// placesOf reads the first lines of inlined functions, by the module and their identifier.
func placesOf(text string) map[string][]int {
	places, module := map[string][]int{}, ""
	for line := range strings.Lines(text) {
		if m := moduleLine.FindStringSubmatch(line); m != nil {
			module = m[1]
		} else if m := inlineeLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[2])
			if key := module + m[1]; !slices.Contains(places[key], n) {
				places[key] = append(places[key], n)
			}
		}
	}
	return places
}

// sitesOf reads the functions and the inlined calls in them.
func sitesOf(text string, sections sectionStarts, places map[string][]int) (list []withSites) {
	module, name, depth := "", "", 0
	var open annotated
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := moduleLine.FindStringSubmatch(line); m != nil {
			module = m[1]
		} else if m := procedureName.FindStringSubmatch(line); m != nil {
			name, depth = m[1], 0
		} else if m := procedureAddress.FindStringSubmatch(line); m != nil && name != "" {
			start, _ := sections.address(m[1], m[2])
			size, _ := strconv.ParseUint(m[3], 10, 64)
			list, name = append(list, withSites{procedure: procedure{span{start, start + size}, name}}), ""
		} else if strings.Contains(line, "| S_INLINESITE_END") {
			depth, open.to = depth-1, nil
		} else if m := siteLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			f := &list[len(list)-1]
			f.sites = append(f.sites, site{depth: depth, name: strings.TrimSuffix(m[2], "..."), places: places[module+m[1]]})
			open = annotated{to: &f.sites[len(f.sites)-1], start: f.start}
			depth++
		} else if m := annotationLine.FindStringSubmatch(line); m != nil && open.to != nil {
			open.read(m[1])
		} else if strings.Contains(line, " | S_") {
			open.to = nil
		}
	}
	return list
}

// annotated reads the annotations of an inlined call.
type annotated struct {
	to     *site
	start  uint64 // of the function
	line   int
	isOpen bool // the last row has no end
}

// read reads a line of annotations.
func (a *annotated) read(text string) {
	numbers := annotationNumber.FindAllStringSubmatch(text, -1)
	for _, m := range numbers { // a row has the line that is set with it
		if m[1] == "line" {
			a.line, _ = strconv.Atoi(m[2])
		}
	}
	for _, m := range numbers {
		offset, _ := strconv.ParseUint(m[2], 16, 64)
		at := a.start + offset
		switch m[1] {
		case "code":
			if a.isOpen {
				a.to.rows[len(a.to.rows)-1].end = at
			}
			a.to.rows = append(a.to.rows, siteRow{span{at, 0}, a.line})
			a.isOpen = true
		case "code end":
			if !a.isOpen { // from the end before it on
				length, _ := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(m[3], "+"), "0x"), 16, 64)
				a.to.rows = append(a.to.rows, siteRow{span{at - length, 0}, a.line})
			}
			a.to.rows[len(a.to.rows)-1].end = at
			a.isOpen = false
		}
	}
}

// explain judges an answer of several frames by the annotations: the kind of a difference whose inlined
// calls and their lines are as the records have them; "" where they are not.
func (e *evidence) explain(address uint64, answer string) (kind string) {
	frames := strings.Split(answer, "\n")
	for i := range e.functions {
		f := &e.functions[i]
		if address < f.start || address >= f.end {
			continue
		}
		if isMerged, ok := f.has(address, frames[:len(frames)-2]); ok && isMerged {
			return "inlined functions that the linker gave one identifier"
		} else if ok {
			return "as llvm-pdbutil has the annotations of inlined calls"
		}
	}
	return ""
}

// hasAnswer reports whether the inlined calls at an address and its line are as the records have them. Code
// without a line has ??:0:0. Of code of no function it reports whether a public symbol may name it.
func (e *evidence) hasAnswer(address uint64, answer string) bool {
	functions := 0
	for i := range e.functions {
		if f := &e.functions[i]; f.start <= address && address < f.end {
			functions++
		}
	}
	if functions == 0 {
		isBare := strings.Count(answer, "\n") == 1
		isThunk := slices.ContainsFunc(e.thunks, func(s span) bool { return s.start <= address && address < s.end })
		return isBare && strings.HasPrefix(answer, "??\n") == (e.isNameless(address) && !isThunk)
	}
	position := answer[strings.LastIndex(answer, "\n")+1:]
	isFolded := functions > 1 // each has its own lines
	isKnown := isFolded || strings.HasSuffix(position, ":0:0") || hasLine(e.lines, address, position)
	return isKnown && e.explain(address, answer) != ""
}

// has reports whether the inlined calls at an address have the names and the lines of frames, innermost
// first. isMerged: an identifier is of several functions.
func (f *withSites) has(address uint64, frames []string) (isMerged, ok bool) {
	next, depth := len(frames)/2-1, 0
	for i := range f.sites {
		s := &f.sites[i]
		if s.depth < depth {
			break // the last call that has the address has ended
		}
		n := slices.IndexFunc(s.rows, func(r siteRow) bool { return r.start <= address && address < r.end })
		if s.depth > depth || n < 0 {
			continue
		}
		depth++
		if len(s.places) == 0 {
			continue // of a library without debug information
		}
		if next < 0 || !strings.Contains(frames[2*next], s.name) {
			return false, false
		}
		line := numberOf(frames[2*next+1])
		switch {
		case len(s.places) > 1:
			isMerged = true
			if line != 0 {
				return false, false
			}
		case line != max(s.places[0]+s.rows[n].line, 0):
			return false, false
		}
		next--
	}
	return isMerged, next == -1
}

// numberOf returns the line of a position FILE:LINE:COLUMN.
func numberOf(position string) int {
	parts := strings.Split(position, ":")
	n, _ := strconv.Atoi(parts[max(0, len(parts)-2)])
	return n
}

// isNameless reports whether no symbol begins in the part of the object file that has an address, at it
// or before it, that may name it: functions that have ended may not, nor may symbols that are not marked as
// code. llvm-symbolizer takes one of them, or of another object file.
func (e *evidence) isNameless(address uint64) bool {
	start := uint64(0)
	for _, c := range e.contributions {
		if address >= c.start && address < c.end {
			start = c.start
		}
	}
	if start == 0 {
		return true
	}
	last := uint64(0)
	for at := range e.publics {
		if at >= start && at <= address {
			last = max(last, at)
		}
	}
	for i := range e.functions {
		if f := &e.functions[i]; f.start >= max(start, last) && f.start <= address {
			if address < f.end {
				return false
			}
			last = max(last, f.start)
		}
	}
	isCode, isPublic := e.publics[last]
	return last == 0 || isPublic && !isCode || slices.ContainsFunc(e.functions, func(f withSites) bool { return f.start <= last && last < f.end && f.end <= address })
}

// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/mach"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/problems"
)

// The bounds of a report. Each element is larger in memory than its shortest form in a file.
const (
	maxFrames   = 1 << 20 // of all threads
	maxThreads  = 1 << 16
	maxImages   = 1 << 16
	maxProblems = 20
	maxText     = 1 << 12 // bytes of a text that is kept, as a message
	maxTexts    = 64      // texts of one kind
)

// Report is everything that is read from a report.
type Report struct {
	Form    string // the name of the form for people: "crash report"
	Arch    string // of the process: "aarch64"; "" where it is not known
	Facts   trace.Facts
	Threads []Thread
	Images  []Image
	// Problems are sentences about parts that could not be read.
	Problems []string

	kept    problems.List[string]
	frames  int // of all threads
	crashed int // the index of the thread that crashed, as the header has it; -1: it has none
	codes   exceptionCodes
	leftOut [3]int // frames, threads and images beyond the bounds
}

// The forms.
const (
	FormCrash    = "crash report"
	FormSample   = "report of sample"
	FormSpindump = "report of spindump"
)

// Image is a code object that was loaded.
type Image struct {
	Base, Size uint64 // Size is 0 where it is not known
	UUID       []byte
	Path, Name string
	Version    string
	Arch       string // as in the report; "" where it does not tell
}

// Thread is a thread of a report.
type Thread struct {
	ID, Name, State string
	Crashed         bool
	// IsException is true for the stack on which an exception was raised that ended the process.
	IsException bool
	Frames      []Frame
	Registers   []trace.NamedRegister
	process     string // its name and its ID, where the report has several
	pid         int64
	// Tree is the calls of a thread that was sampled, callers first; Frames are its heaviest path.
	Tree []Call
}

// Frame is a frame as the report has it.
type Frame struct {
	Address uint64
	Symbol  string // "": the report has none
	File    string
	Offset  uint64 // of Address in the function, where HasOffset
	Line    int32
	base    uint64 // of the image, as the frame has it; 0: it has none
	// image is the index of the image that Address counts from; -1: it is an address of the process.
	image     int32
	HasOffset bool
	Exact     bool // no call precedes Address
	IsInlined bool // it is a call that is inlined into the next frame
	IsKernel  bool
}

// Call is a node of a tree of samples.
type Call struct {
	Frame
	Depth  int
	Weight uint64
	Object string // the name of the image, where the report gives one
	// owner is the index of the image, in texts of several processes; -1: it is not known.
	owner int32
}

// exceptionCodes are the parts of an exception as reports write them.
type exceptionCodes struct {
	typ, signal, subtype, codes string
}

func newReport(form string) *Report { return &Report{Form: form, crashed: -1} }

// problem adds a sentence to the problems.
func (r *Report) problem(format string, args ...any) {
	if r.kept.HasRoom(maxProblems) {
		r.kept.Keep(fmt.Sprintf(format, args...))
	}
}

// addThread adds a thread, and reports whether there is room for it.
func (r *Report) addThread(t Thread) bool {
	if len(r.Threads) >= maxThreads {
		r.leftOut[1]++
		return false
	}
	r.Threads = append(r.Threads, t)
	return true
}

// addImage adds an image.
func (r *Report) addImage(i Image) {
	if len(r.Images) >= maxImages {
		r.leftOut[2]++
		return
	}
	r.Images = append(r.Images, i)
}

// hasRoom reports whether a frame more is kept, and counts it.
func (r *Report) hasRoom() bool {
	if r.frames >= maxFrames {
		r.leftOut[0]++
		return false
	}
	r.frames++
	return true
}

// note adds a text that is shown with the crash, unless it is "".
func (r *Report) note(name, value string) {
	if value = clip(value); value != "" && len(r.Facts.Annotations) < maxTexts {
		r.Facts.Annotations = append(r.Facts.Annotations, trace.Annotation{Name: name, Value: value})
	}
}

// message adds a text that a library left for the report, unless it is "".
func (r *Report) message(module, text string) {
	if text = clip(text); text != "" && len(r.Facts.Messages) < maxTexts {
		r.Facts.Messages = append(r.Facts.Messages, trace.Message{Module: module, Text: text})
	}
}

// clip returns a text without blanks around it, of at most maxText bytes.
func clip(text string) string {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\ufffd")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// finish completes a report that was read.
func (r *Report) finish() *Report {
	if r.Arch == "" {
		for i := range r.Images {
			if r.Arch = archOf(r.Images[i].Arch); r.Arch != "" {
				break
			}
		}
	}
	r.placeFrames()
	r.extendImages()
	r.markCrashed()
	r.setCrash()
	// "abort() called" says less than any other text.
	slices.SortStableFunc(r.Facts.Messages, func(a, b trace.Message) int { return rank(&a) - rank(&b) })
	for i, what := range [...]string{"frames", "threads", "images"} {
		if n := r.leftOut[i]; n > 0 {
			r.problem("%d %s are left out, expected at most %d", n, what, [...]int{maxFrames, maxThreads, maxImages}[i])
		}
	}
	r.Problems = append(r.Problems, r.kept.Kept()...)
	if n := r.kept.Dropped(); n > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d more problems", n))
	}
	return r
}

func rank(m *trace.Message) int {
	if strings.HasPrefix(m.Text, "abort() called") {
		return 1
	}
	return 0
}

// placeFrames makes addresses of the process of the ones that count from images.
func (r *Report) placeFrames() {
	unknown := 0
	for i := range r.Threads {
		for k := range r.Threads[i].Frames {
			f := &r.Threads[i].Frames[k]
			if f.image < 0 {
				continue
			}
			if int(f.image) >= len(r.Images) {
				unknown++
				continue
			}
			f.Address += r.Images[f.image].Base
		}
	}
	if unknown > 0 {
		r.problem("%d frames are in images that are not listed, of which there are %d: their addresses are offsets in these", unknown, len(r.Images))
	}
}

// placeCalls finds the images of calls of threads, which are the ones from an index on: a call names the base of its
// image, or its address is in one.
func (r *Report) placeCalls(threads []Thread, first int) {
	var order []int
	for i := first; i < len(r.Images); i++ {
		if r.Images[i].Base != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.Images[a].Base, r.Images[b].Base) })
	for i := range threads {
		for k := range threads[i].Tree {
			c := &threads[i].Tree[k]
			c.owner = -1
			address := cmp.Or(c.base, c.Address)
			n, isBase := slices.BinarySearchFunc(order, address, func(i int, a uint64) int { return cmp.Compare(r.Images[i].Base, a) })
			if !isBase {
				n--
			}
			if n < 0 || n >= len(order) || c.base != 0 && !isBase {
				continue
			}
			if image := &r.Images[order[n]]; c.base != 0 || c.Address-image.Base < image.Size {
				c.owner = int32(order[n]) //nolint:gosec // at most maxImages
			}
		}
	}
}

// maxExtent bounds the size of an image that only its frames tell.
const maxExtent = 1 << 32

// extendImages gives images whose ends the report does not know the parts that frames are in: these name the
// bases of their images.
func (r *Report) extendImages() {
	open := map[uint64]*Image{}
	for i := range r.Images {
		if image := &r.Images[i]; image.Size == 0 && image.Base != 0 {
			open[image.Base] = image
		}
	}
	if len(open) == 0 {
		return
	}
	for i := range r.Threads {
		for k := range r.Threads[i].Frames {
			f := &r.Threads[i].Frames[k]
			if image := open[f.base]; image != nil && f.Address >= f.base && f.Address-f.base < maxExtent {
				image.Size = max(image.Size, f.Address-f.base+1)
			}
		}
	}
}

// markCrashed marks the thread that crashed by its number in the header, and puts the stack of an exception that
// ended the process before it.
func (r *Report) markCrashed() {
	if r.crashed >= 0 && !slices.ContainsFunc(r.Threads, func(t Thread) bool { return t.Crashed && !t.IsException }) {
		for i := range r.Threads {
			if t := &r.Threads[i]; t.ID == fmt.Sprint(r.crashed) {
				t.Crashed = true
			}
		}
	}
	slices.SortStableFunc(r.Threads, func(a, b Thread) int { return cmp.Compare(a.order(), b.order()) })
	if r.Form != FormCrash {
		return
	}
	for i := range r.Threads {
		if r.Threads[i].IsException {
			r.Threads[i].Crashed = true
		}
	}
}

// order is 0 for the stack of the last exception, 1 for the ones that libraries left, 2 for threads.
func (t *Thread) order() int {
	switch {
	case t.ID == exceptionID:
		return 0
	case t.IsException:
		return 1
	}
	return 2
}

// setCrash makes the crash of the parts of the exception.
func (r *Report) setCrash() {
	c := &r.codes
	if c.typ == "" && c.signal == "" {
		return
	}
	crash := &trace.Crash{Name: c.typ}
	named := r.nameCodes(crash)
	detail, rest, _ := strings.Cut(strings.TrimSuffix(c.subtype, " at"), " at ")
	if c.subtype == "" && crash.HasAddress {
		detail = named
	}
	if detail = strings.TrimSpace(detail); !isConstant(detail) {
		detail, rest = c.signal, ""
		r.note("exception subtype", c.subtype)
	}
	switch {
	case crash.Name == "":
		crash.Name = c.signal
	case detail != "":
		crash.Name += " / " + detail
	}
	if word, _, _ := strings.Cut(rest, " "); strings.HasPrefix(word, "0x") {
		crash.Address, crash.HasAddress = parseHex(word)
	}
	if strings.Contains(rest, "pointer authentication") {
		r.note("exception subtype", c.subtype)
	}
	for i := range r.Threads {
		if t := &r.Threads[i]; t.Crashed && !t.IsException {
			crash.Thread = t.ID
		}
	}
	if strings.Trim(c.codes, "0x, ") != "" && !isConstant(detail) {
		if named != "" {
			named = ": " + named
		}
		r.note("exception codes", c.codes+named)
	}
	r.Facts.Crash = crash
}

// nameCodes returns the name of the first code of an exception, and sets the address of a failed access, which is the
// second one.
func (r *Report) nameCodes(crash *trace.Crash) string {
	first, second, _ := strings.Cut(r.codes.codes, ",")
	e, isKnown := mach.Named(r.codes.typ)
	code, isCode := parseHex(strings.TrimSpace(first))
	if !isKnown || !isCode {
		return ""
	}
	if address, ok := parseHex(strings.TrimSpace(second)); ok && e == mach.BadAccess && code != mach.GeneralProtection && r.codes.subtype == "" {
		crash.Address, crash.HasAddress = address, true
	}
	return e.CodeName(r.Arch, code)
}

// isConstant reports whether a text is the name of a constant, as KERN_INVALID_ADDRESS.
func isConstant(text string) bool {
	return strings.HasPrefix(text, "KERN_") || strings.HasPrefix(text, "EXC_")
}

// arches are the names of architectures by the words of reports.
var arches = []struct{ begins, arch string }{
	{"ARM-64", "aarch64"}, {"ARM64", "aarch64"}, {"arm64_32", "arm64_32"}, {"arm64", "aarch64"}, {"ARM", "arm"}, {"arm", "arm"},
	{"X86-64", "x86_64"}, {"x86_64", "x86_64"}, {"X86", "i386"}, {"i386", "i386"}, {"PPC-64", "ppc64"}, {"PPC", "ppc"},
}

// archOf returns the name of an architecture; "" for an unknown one.
func archOf(text string) string {
	for _, a := range arches {
		if strings.HasPrefix(text, a.begins) {
			return a.arch
		}
	}
	return ""
}

// parseHex reads a number in hexadecimal with 0x before it.
func parseHex(text string) (n uint64, ok bool) {
	digits, isHex := strings.CutPrefix(text, "0x")
	if !isHex || digits == "" || len(digits) > 16 {
		return 0, false
	}
	for _, c := range []byte(digits) {
		d := hexDigit(c)
		if d > 15 {
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	return n, true
}

// hexDigit is the value of a digit; more than 15 for another byte.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return math.MaxUint8
}

// parseUUID reads a UUID with or without its dashes; nil for any other text, and for one of zeros.
func parseUUID(text string) []byte {
	var id [16]byte
	n, isAny := 0, false
	for _, c := range []byte(text) {
		d := hexDigit(c)
		switch {
		case c == '-':
			continue
		case d > 15 || n == 2*len(id):
			return nil
		}
		id[n/2] = id[n/2]<<4 | d
		isAny = isAny || d != 0
		n++
	}
	if n != 2*len(id) || !isAny {
		return nil
	}
	return id[:]
}

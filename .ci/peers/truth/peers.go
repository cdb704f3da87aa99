// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/stacks"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file asks peers for the stacks of some of the points: gdb and eu-stack by cores of
// them, libunwind while the process stands there.

// peers is the programs that are asked beside the engine, and how often each was right.
type peers struct {
	dir      string
	left     int // how many points are yet to be asked for
	points   []peerPoint
	program  *exec.Cmd // of libunwind; nil: it is not here
	input    io.WriteCloser
	out      *bufio.Reader
	counts   map[string]*peerCount
	names    []string
	examples []string
	problems []string
}

// peerCount counts the stacks of a peer by their result.
type peerCount struct{ right, wrong, beyond, missing, none, frames int }

// peerPoint is a point whose core is written, with the truth of then.
type peerPoint struct {
	core, exe string
	truth     *shadow
	place     string
}

// remembered is the words that a shadow may ask for, as they were.
type remembered map[uint64]uint64

func (r remembered) word(address uint64) (uint64, bool) {
	w, ok := r[address]
	return w, ok
}

// freeze copies the data by which a stack of the current point is judged later.
func (h *shadow) freeze() *shadow {
	words, copies := remembered{}, map[*stack]*stack{}
	f := &shadow{memory: words, isGo: h.isGo}
	var copyOf func(s *stack) *stack
	copyOf = func(s *stack) *stack {
		if s == nil || copies[s] != nil {
			return copies[s]
		}
		c := *s
		copies[s] = &c
		c.places = slices.Clone(s.places)
		for _, p := range c.places {
			if w, ok := h.memory.word(p.slot); ok {
				words[p.slot] = w
			}
		}
		c.from = copyOf(s.from)
		return &c
	}
	f.current = copyOf(h.current)
	return f
}

// newPeers finds the peers, and makes the program of libunwind.
func newPeers(dir string, points int) (*peers, error) {
	p := &peers{dir: dir, left: points, counts: map[string]*peerCount{}}
	if points == 0 {
		return p, nil
	}
	p.names = []string{"unwindd"}
	for name, tool := range map[string]string{"gdb": "gdb", "eu-stack": "eu-stack"} {
		if _, err := exec.LookPath(tool); err != nil {
			p.problems = append(p.problems, fmt.Sprintf("left out: %s: %v", name, err))
			continue
		}
		p.names = append(p.names, name)
	}
	if err := p.startLibunwind(); err != nil {
		p.problems = append(p.problems, fmt.Sprintf("left out: libunwind: %v", err))
	} else {
		p.names = append(p.names, "libunwind")
	}
	slices.SortFunc(p.names[1:], strings.Compare)
	for _, name := range p.names {
		p.counts[name] = &peerCount{}
	}
	if len(p.problems) > 0 && os.Getenv("CI") == "true" {
		return nil, errors.New(strings.Join(p.problems, "; "))
	}
	return p, nil
}

// startLibunwind makes the program that asks libunwind. Its headers are in a package of
// Debian that conflicts with LLVM's library of that name: so it is unpacked.
func (p *peers) startLibunwind() error {
	at := filepath.Join(p.dir, "libunwind")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	script := `[ -e peer ] && exit
apt-get -q -o APT::Sandbox::User= download libunwind-dev && dpkg-deb -x libunwind-dev_*.deb . &&
	gcc -O1 -no-pie -Iusr/include -Iusr/include/x86_64-linux-gnu -o peer ../testdata/peer.c -Lusr/lib/x86_64-linux-gnu \
		-Wl,-Bstatic -lunwind-ptrace -lunwind-x86_64 -lunwind -Wl,-Bdynamic -llzma`
	if err := cost.Run(at, "sh", "-c", script); err != nil {
		return err
	}
	p.program = exec.Command(filepath.Join(at, "peer"))
	var err error
	if p.input, err = p.program.StdinPipe(); err != nil {
		return err
	}
	out, err := p.program.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	return p.program.Start()
}

func (p *peers) close() {
	if p.program != nil {
		_ = p.input.Close()
		_ = p.program.Wait()
	}
}

// take asks about the point that a process stands at: libunwind now, the others later.
func (p *peers) take(s *stepping, ours *trace.Stack, v decision) {
	p.left--
	truth := s.shadow.freeze()
	p.count("unwindd", v, len(ours.Frames))
	place := fmt.Sprintf("%s at %#x", s.program.name, s.tracee.regs.Rip)
	if c, _ := s.classify(decision{}, ours, false); c.function != "" {
		place = fmt.Sprintf("%s, %s!%s+%#x (%s)", s.program.name, c.module, c.function, c.offset, s.text(s.tracee.regs.Rip))
	}
	if p.program != nil {
		pcs, err := p.askLibunwind(s.tracee)
		if err != nil {
			p.problems = append(p.problems, fmt.Sprintf("libunwind: %v", err))
		}
		p.judge("libunwind", truth, pcs, place)
	}
	core := filepath.Join(p.dir, fmt.Sprintf("core.%d", len(p.points)))
	if err := s.point.writeCore(s.tracee, core); err != nil {
		p.problems = append(p.problems, err.Error())
		return
	}
	p.points = append(p.points, peerPoint{core, s.program.argv[0], truth, place})
	if len(p.points) == batch {
		if err := p.ask(); err != nil {
			p.problems = append(p.problems, err.Error())
		}
	}
}

// batch is of how many points cores are kept at once: a large program has 20 MB in each.
const batch = 50

func (p *peers) askLibunwind(t *tracee) (pcs []uint64, err error) {
	r := &t.regs
	line := strconv.Itoa(t.pid)
	for _, v := range [...]uint64{r.Rax, r.Rdx, r.Rcx, r.Rbx, r.Rsi, r.Rdi, r.Rbp, r.Rsp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15, r.Rip} {
		line += fmt.Sprintf(" %x", v)
	}
	if _, err := io.WriteString(p.input, line+"\n"); err != nil {
		return nil, err
	}
	text, err := p.out.ReadString('\n')
	for _, word := range strings.Fields(text) {
		pc, _ := strconv.ParseUint(word, 16, 64)
		pcs = append(pcs, pc)
	}
	return pcs, err
}

// judge counts a peer's stack.
func (p *peers) judge(name string, truth *shadow, pcs []uint64, place string) {
	s := &trace.Stack{}
	for _, pc := range pcs {
		s.Frames = append(s.Frames, trace.Frame{PC: pc})
	}
	v := truth.judge(s)
	p.count(name, v, len(pcs))
	if v.kind != right {
		p.examples = append(p.examples, fmt.Sprintf("%s: %s: frame %d of %d: %s: %s", name, v.kind, v.frame, len(pcs), v.detail, place))
	}
}

func (p *peers) count(name string, v decision, frames int) {
	c := p.counts[name]
	c.frames += v.frames
	switch {
	case frames == 0:
		c.none++
	case v.kind == right || v.kind == wrongRegister || v.kind == wrongCFA:
		c.right++
	case v.kind == missing:
		c.missing++
	case v.isBeyond:
		c.beyond++
	default:
		c.wrong++
	}
}

// ask asks the peers about the cores of a program, which are removed.
func (p *peers) ask() error {
	if len(p.points) == 0 {
		return nil
	}
	if p.counts["gdb"] != nil {
		stacks, err := p.askGDB()
		if err != nil {
			return err
		}
		for i := range p.points {
			p.judge("gdb", p.points[i].truth, stacks[i], p.points[i].place)
		}
	}
	for i := range p.points {
		at := &p.points[i]
		if p.counts["eu-stack"] != nil {
			p.judge("eu-stack", at.truth, askEUStack(at), at.place)
		}
		_ = os.Remove(at.core)
	}
	p.points = p.points[:0]
	return nil
}

// gdbScript prints a line for every frame that has one of its own, of every core.
const gdbScript = `
import gdb
gdb.execute("set pagination off")
gdb.execute("set backtrace past-main on")
for i in range(COUNT):
    print("UNWINDD core", i)
    try:
        gdb.execute("core-file DIR/core.%d" % i, to_string=True)
        f = gdb.newest_frame()
        while f is not None:
            if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                print("UNWINDD frame %#x" % f.pc())
            f = f.older()
    except gdb.error as e:
        print("error", e)
`

func (p *peers) askGDB() ([][]uint64, error) {
	script := strings.NewReplacer("COUNT", strconv.Itoa(len(p.points)), "DIR", p.dir).Replace(gdbScript)
	path := filepath.Join(p.dir, "points.py")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		return nil, err
	}
	out, _ := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", p.points[0].exe, "-x", path).Output()
	stacks := make([][]uint64, len(p.points))
	i := -1
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "UNWINDD" {
			continue
		}
		switch n, _ := strconv.ParseUint(f[2], 0, 64); {
		case f[1] == "core":
			i = int(n) //nolint:gosec // an index
		case i >= 0 && i < len(stacks):
			stacks[i] = append(stacks[i], n)
		}
	}
	return stacks, nil
}

func askEUStack(point *peerPoint) (pcs []uint64) {
	for _, s := range stacks.EUStack("-e", point.exe, "--core", point.core) {
		pcs = append(pcs, s.PCs...) // a core of a point has one thread
	}
	return pcs
}

// report prints who was right how often.
func (p *peers) report() {
	for _, text := range p.problems {
		fmt.Println(text)
	}
	if len(p.names) == 0 {
		return
	}
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\nat a sample of the points\tright\twrong\tgoes on beyond the start\tends early\tno stack\tright frames")
	for _, name := range p.names {
		c := p.counts[name]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", name, c.right, c.wrong, c.beyond, c.missing, c.none, c.frames)
	}
	out.Flush()
	slices.Sort(p.examples)
	for _, e := range p.examples {
		if *verbose {
			fmt.Println(e)
		}
	}
}

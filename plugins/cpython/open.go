// SPDX-License-Identifier: Apache-2.0

package cpython

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// maxTailCallSize is more than the code of _PyEval_EvalFrameDefault has in bytes where other
// functions execute the instructions: 844 in 3.15. Where it has all of them it has 30,000 or more.
const maxTailCallSize = 8 << 10

// open finds the version of CPython and where it has what.
func (g *process) open(ctx context.Context, e sdk.RuntimeEngine) error {
	req := g.request
	if req.AddressBits != 64 {
		return fmt.Errorf("addresses of %d bits, expected 64", req.AddressBits)
	}
	if len(req.Symbols) != len(Description().Symbols) {
		return errors.New("the engine says nothing of its symbols")
	}
	if g.runtime = g.findRuntime(); g.runtime == 0 {
		return errors.New("neither the symbol _PyRuntime nor the section " + runtimeSection + " is in the target")
	}
	if s := &req.Symbols[symbolNone]; s.IsKnown {
		g.none = s.Address
	}
	eval := &req.Symbols[symbolEval]
	g.isTailCall = eval.IsKnown && eval.Size > 0 && eval.Size < maxTailCallSize
	m := sdk.NewMemoryReader(ctx, e, req.ByteOrder, req.AddressBits)
	if head, err := m.Bytes(g.runtime, debugHeader); err == nil && string(head[:len(debugCookie)]) == debugCookie {
		return g.openByDebugOffsets(m, m.Number(head[8:16]), m.Number(head[16:24]))
	}
	if s := &req.Symbols[symbolVersion]; s.IsKnown {
		hex, err := m.Uint(s.Address, 8)
		if err != nil {
			return fmt.Errorf("Py_Version: %w", err)
		}
		return g.openByVersion(ctx, e, hex)
	}
	return g.openByTrial(ctx, e)
}

// findRuntime returns the address of _PyRuntime; 0 where it is not known.
func (g *process) findRuntime() uint64 {
	if s := &g.request.Symbols[symbolRuntime]; s.IsKnown {
		return s.Address
	}
	for i := range g.request.Sections {
		if s := &g.request.Sections[i]; s.Name == runtimeSection {
			if address, ok := g.request.MemoryAddress(s.Address); ok {
				return address
			}
		}
	}
	return 0
}

// splitVersion returns the minor version and the text of PY_VERSION_HEX.
func splitVersion(hex uint64) (minor int, text string, err error) {
	if hex>>24 != 3 {
		return 0, "", fmt.Errorf("its version is %#x, expected 3 in the highest of four bytes", hex)
	}
	minor = int(hex >> 16 & 0xff)
	text = fmt.Sprintf("3.%d.%d", minor, hex>>8&0xff)
	if level, ok := map[uint64]string{0xa: "a", 0xb: "b", 0xc: "rc"}[hex>>4&0xf]; ok {
		text += level + strconv.FormatUint(hex&0xf, 10)
	}
	return minor, text, nil
}

// take takes the layout of a version.
func (g *process) take(hex uint64, isFree bool) error {
	minor, text, err := splitVersion(hex)
	if err != nil {
		return err
	}
	g.version = text
	if g.layout = findLayout(minor, isFree); g.layout == nil {
		return fmt.Errorf("version %s is not known, expected one of %s", text, versions)
	}
	return nil
}

// openByDebugOffsets takes the layout that the runtime says of itself.
func (g *process) openByDebugOffsets(m *sdk.MemoryReader, hex, free uint64) error {
	if err := g.take(hex, free == 1); err != nil {
		return err
	}
	return g.layout.takeDebugOffsets(m, g.runtime)
}

// openByVersion takes the layout of a version before 3.13.
func (g *process) openByVersion(ctx context.Context, e sdk.RuntimeEngine, hex uint64) error {
	if err := g.take(hex, false); err != nil {
		return err
	}
	if g.layout.minor >= 13 {
		return fmt.Errorf("version %s has no debug offsets at _PyRuntime, expected %q", g.version, debugCookie)
	}
	found, err := newReader(ctx, e, g).sysVersion()
	if err != nil {
		return fmt.Errorf("version %s: %w", g.version, err)
	}
	if found != 0 && found != hex {
		return fmt.Errorf("sys.hexversion is %#x, and Py_Version %#x, expected the same", found, hex)
	}
	return nil
}

// inPath finds the version in the path of a module: libpython3.9.so.1.0.
var inPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`python3\.(\d{1,2})[^/]*$`) })

// openByTrial finds a version before 3.11, which only sys says: the one by whose layout sys says
// that it is this one.
func (g *process) openByTrial(ctx context.Context, e sdk.RuntimeEngine) error {
	minors := []int{8, 9, 10}
	if found := inPath().FindStringSubmatch(g.request.Path); found != nil {
		minor, _ := strconv.Atoi(found[1])
		minors = append([]int{minor}, minors...)
	}
	var first error
	for _, minor := range minors {
		l := findLayout(minor, false)
		if l == nil || minor >= 13 {
			continue
		}
		g.layout = l
		hex, err := newReader(ctx, e, g).sysVersion()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && hex == 0 {
			err = errors.New("_PyRuntime.interpreters.head is 0: it has no interpreter")
		}
		if err == nil {
			if found, text, err := splitVersion(hex); err == nil && found == minor {
				g.version = text
				return nil
			}
			err = fmt.Errorf("sys.hexversion is %#x, expected one of 3.%d", hex, minor)
		}
		if first == nil {
			first = fmt.Errorf("by the layout of 3.%d: %w", minor, err)
		}
	}
	g.layout = nil
	return fmt.Errorf("its version is not known, expected one of %s: %w", versions, first)
}

// sysVersion returns sys.hexversion; 0 where there is no interpreter.
func (r *reader) sysVersion() (uint64, error) {
	head, err := r.pointer(r.runtime, r.layout.runtime.interpreters)
	if err != nil || head == 0 {
		return 0, err
	}
	sys, err := r.pointer(head, r.layout.interpreter.sysdict)
	if err != nil {
		return 0, err
	}
	if sys == 0 {
		return 0, nil // it has begun just now
	}
	value, err := r.lookup(sys, "hexversion")
	if err != nil {
		return 0, fmt.Errorf("sys.hexversion: %w", err)
	}
	return r.smallInt(value)
}

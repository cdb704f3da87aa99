// SPDX-License-Identifier: Apache-2.0

// Package hotspot is the plugin of HotSpot, the virtual machine of Java: it names the frames of
// compiled and interpreted methods, and finds the rows of the code that HotSpot made.
//
// HotSpot describes its own structures, in tables that the variables gHotSpotVM* lead to. The
// plugin reads them when it opens a runtime, and takes from them the places of all members. What
// they lack, as the places in an interpreter's frame, is known by version, and verified by each
// frame.
package hotspot

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// Description returns the description of HotSpot.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "hotspot", Version: "1", ThreadKind: "virtual thread",
		Recognises: []sdk.RuntimeRecogniser{{Symbol: tableShapes[tableStructs].array}},
		Symbols:    tableSymbols(),
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	known sdk.ByHandle[*machine]
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// machine is HotSpot in a process. It does not change.
type machine struct {
	*layout
	request  *sdk.OpenRuntimeRequest
	version  *version
	heapList []codeHeap
	queue    interpreterCode
	entry    codeRange // of the stub by which native code calls Java
}

// codeRange is a range of code.
type codeRange struct{ start, end uint64 }

func (c codeRange) has(pc uint64) bool { return pc-c.start < c.end-c.start }

// version has facts of versions that the tables lack.
type version struct {
	first, last uint64 // major versions of Java
	// bcp and locals are the places of the position in the bytecode, and of the local variables,
	// in an interpreter's frame of x86_64, in words from the frame pointer.
	bcp, locals int64
	// excluded is the number by which each byte of a compressed number is larger.
	excluded byte
	// hasWeakMonitors says that a monitor has its object by a handle.
	hasWeakMonitors bool
}

// versions are the known ones, in order.
var versions = []version{
	{first: 8, last: 8, bcp: -7, locals: -6},
	{first: 9, last: 15, bcp: -8, locals: -7},
	{first: 16, last: 19, bcp: -8, locals: -7, hasWeakMonitors: true},
	{first: 20, last: 22, bcp: -8, locals: -7, excluded: 1, hasWeakMonitors: true},
	{first: 25, last: 25, bcp: -8, locals: -7, excluded: 1, hasWeakMonitors: true},
}

// machineX8664 is e_machine of the architecture whose frames are known.
const machineX8664 = 62

// OpenRuntime reads the tables of HotSpot, and finds its code.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	answer := &sdk.OpenRuntimeAnswer{}
	m := &machine{request: req}
	err := m.open(sdk.NewMemoryReader(ctx, e, req.ByteOrder, req.AddressBits), answer)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return &sdk.OpenRuntimeAnswer{Version: answer.Version, Problems: []string{"the frames of Java are not known: " + err.Error()}}, nil //nolint:nilerr // it is among the problems
	}
	p.known.Put(req.Runtime, m)
	m.findLocks(m.newReader(ctx, e), answer)
	return answer, ctx.Err()
}

// open reads what all calls need.
func (m *machine) open(r *sdk.MemoryReader, answer *sdk.OpenRuntimeAnswer) error {
	if m.request.Machine != machineX8664 || m.request.AddressBits != 64 {
		return fmt.Errorf("machine %d of %d bits, expected x86_64", m.request.Machine, m.request.AddressBits)
	}
	t, err := readTables(r, m.request.Symbols)
	if err != nil {
		return err
	}
	if m.layout, err = newLayout(t); err != nil {
		return err
	}
	if answer.Version, err = m.findVersion(r); err != nil {
		return err
	}
	if m.heapList, err = m.readHeaps(r); err != nil {
		return err
	}
	if err := m.readInterpreter(r); err != nil {
		return err
	}
	m.readCallStub(r)
	for _, h := range m.heapList {
		answer.Code = append(answer.Code, sdk.RuntimeCode{Start: h.low, End: h.high, Name: "code heap"})
	}
	answer.HasFrames, answer.HasThreads = true, m.vthread.isKnown
	return nil
}

// findLocks finds the locks for which threads wait.
func (m *machine) findLocks(r *reader, answer *sdk.OpenRuntimeAnswer) {
	threads, err := r.readThreads()
	if err != nil {
		answer.Problems = append(answer.Problems, err.Error())
		return
	}
	handles := map[string]uint64{}
	for i := range m.request.Threads {
		handles[m.request.Threads[i].ID] = m.request.Threads[i].Thread
	}
	var problems []string
	answer.Locks, problems = r.locksOf(threads, handles)
	answer.Problems = append(answer.Problems, problems...)
}

// findVersion finds the version of Java, and the facts about it.
func (m *machine) findVersion(r *sdk.MemoryReader) (release string, err error) {
	text, err := r.Pointer(m.vmRelease)
	if err == nil {
		release, err = r.Text(text, maxNameLength)
	}
	if err == nil && !utf8.ValidString(release) {
		err = fmt.Errorf("%q is not UTF-8", release)
	}
	if err != nil {
		return "", fmt.Errorf("the text of its version: %w", err)
	}
	// What calls itself 25 is Java 8, where it has a version of Java beside.
	var major uint64
	switch {
	case m.jdkVersion != 0:
		major, err = r.Uint(m.jdkVersion, 1)
	case m.vmMajor != 0:
		major, err = r.Uint(m.vmMajor, 4)
	}
	if err != nil {
		return release, fmt.Errorf("its version: %w", err)
	}
	for i := range versions {
		if v := &versions[i]; major >= v.first && major <= v.last {
			m.version = v
			return release, nil
		}
	}
	return release, fmt.Errorf("version %q is Java %d, known are 8 to 22 and 25", release, major)
}

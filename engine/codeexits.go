package engine

import (
	"context"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// exitWindow is how much code is read of a function that nothing bounds.
const exitWindow = 4096

// codeExits is where code goes on to without a call, by addresses of the module.
type codeExits struct {
	start, end uint64   // of what was read
	jumps      []uint64 // to other code
	slots      []uint64 // words that hold where a jump leads
	open       bool     // it may go on elsewhere too
}

// exits asks the plugin where the code at an address of the object goes on to; nil
// where the plugin does not say. The answer is remembered.
func (m *module) exits(ctx context.Context, address uint64) (*codeExits, error) {
	m.resolver() // whose symbols bound functions
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.left[address]; ok {
		return e, nil
	}
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	e, err := m.askExits(ctx, address)
	if err != nil {
		return nil, err
	}
	if m.left == nil {
		m.left = map[uint64]*codeExits{}
	}
	if len(m.left) < maxCachedRows {
		m.left[address] = e
	}
	return e, nil
}

func (m *module) askExits(ctx context.Context, address uint64) (*codeExits, error) {
	bounds := m.bounds(address)
	if !bounds.known {
		bounds = codeBounds{start: address, end: min(m.codeWindow(address).end, address+exitWindow)}
	}
	if bounds.end <= bounds.start || bounds.end-bounds.start > maxFunctionCode {
		return nil, nil
	}
	code := make([]byte, bounds.end-bounds.start)
	n, _ := m.readCodeAt(bounds.start, code)
	if n == 0 {
		n = m.codeOfFile(code, bounds.start)
	}
	if address-bounds.start >= uint64(n) {
		return nil, nil
	}
	base := m.base(bounds.start)
	rules, err := m.askRules(ctx, sdk.CodeRange{
		PC: address - base, Start: bounds.start - base, Code: code[:n],
		Bounded: bounds.known && n == len(code), Name: bounds.name, Exact: true, Exits: true,
	})
	if err != nil || rules.Exits == nil {
		return nil, err
	}
	e := &codeExits{start: bounds.start, end: bounds.start + uint64(n), open: rules.Exits.Open}
	for _, a := range rules.Exits.Jumps {
		e.jumps = append(e.jumps, a+base)
	}
	for _, a := range rules.Exits.Slots {
		e.slots = append(e.slots, a+base)
	}
	return e, nil
}

// boundsAt are those of the function at an address, as far as they are known.
func (m *module) boundsAt(address uint64) codeBounds {
	m.resolver()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bounds(address)
}

// bounds are those that call frame information gives a function, or else its
// symbol.
func (m *module) bounds(address uint64) codeBounds {
	if m.made != nil {
		return codeBounds{m.made.Address, m.made.Address + m.made.Size, true, m.made.Name}
	}
	for _, t := range m.tables {
		if fde, err := t.FDE(address); err == nil {
			return codeBounds{start: fde.Start, end: fde.End, known: true}
		}
	}
	if m.symbols != nil {
		if s, ok := m.symbols.Function(address); ok && s.End > s.Start {
			return codeBounds{s.Start, s.End, true, s.Name}
		}
	}
	return codeBounds{}
}

// linkageSlots are the sections in which a dynamic linker writes, once, where
// functions of other objects are.
var linkageSlots = []string{".got", ".got.plt"}

// isLinkageSlot says whether an address of the module is in one of them.
func (m *module) isLinkageSlot(address uint64) bool {
	if m.isLaid() {
		return false
	}
	return slices.ContainsFunc(linkageSlots, func(name string) bool {
		s := m.Object.Section(name)
		return s != nil && address-s.Address < s.Size
	})
}

// SPDX-License-Identifier: Apache-2.0

package spirv

// scopeInfo is data that a record inherits from the scopes around it.
type scopeInfo struct {
	function      int    // the DebugFunction that the scope is in, a record; -1: none
	source        uint32 // the file, as Module.file takes it; 0: unknown
	discriminator uint64 // of the innermost DebugLexicalBlockDiscriminator
	depth         int    // of a chain of calls; 0: unknown
	// isCut is set where the outer calls of a DebugInlinedAt are left out.
	isCut bool
}

// resolveScopes follows the parents of every scope, and the chains of inlined calls, once.
func (m *Module) resolveScopes() {
	m.infos = make([]scopeInfo, len(m.records))
	const (
		unseen = iota
		onPath
		done
	)
	state := make([]uint8, len(m.records))
	var path []int
	for i := range m.records {
		path = path[:0]
		parent := -1
		for k := i; k >= 0; {
			if state[k] == done {
				parent = k
				break
			}
			if state[k] == onPath {
				r := &m.records[k]
				m.problem(r.Offset, "%s %%%d is around itself, expected no cycle of parents", r.name(), r.ID)
				break
			}
			state[k] = onPath
			path = append(path, k)
			k = m.parent(k)
		}
		for n := len(path) - 1; n >= 0; n-- {
			k := path[n]
			m.infos[k] = m.infoIn(k, parent)
			state[k], parent = done, k
		}
	}
	for i := range m.records {
		if m.records[i].Op == DebugInlinedAt {
			m.resolveCalls(i)
		}
	}
}

// parent is the record around a scope; -1: none. The scopes around a function are in no
// function.
func (m *Module) parent(i int) int {
	r := &m.records[i]
	name := "Parent"
	switch r.Op {
	case DebugTypeTemplate: // compilers use it in place of its target
		name = "Target"
		fallthrough
	case DebugLexicalBlock, DebugLexicalBlockDiscriminator, DebugFunction, DebugFunctionDeclaration, DebugTypeComposite,
		DebugLocalVariable, DebugGlobalVariable:
		if id, ok := r.id(name); ok {
			if k, ok := m.byID[id]; ok && m.records[k].Op != DebugInfoNone {
				return k
			}
		}
	}
	return -1
}

// infoIn is the info of a record from itself and from its parent.
func (m *Module) infoIn(i, parent int) scopeInfo {
	r := &m.records[i]
	info := scopeInfo{function: -1}
	if parent >= 0 {
		around := m.infos[parent]
		info.function, info.source, info.discriminator = around.function, around.source, around.discriminator
	}
	switch r.Op {
	case DebugFunction:
		info.function, info.discriminator = i, 0
	case DebugLexicalBlockDiscriminator:
		info.discriminator, _ = m.number(r, "Discriminator")
	}
	if w, ok := r.id("Source"); ok {
		if _, known := m.texts[w]; known || m.strings[w] != "" {
			info.source = w
		}
	}
	return info
}

// resolveCalls cuts a chain of calls where it returns to itself or is too deep.
func (m *Module) resolveCalls(i int) {
	var path []int
	depth := 0
	for k := i; k >= 0; {
		info := &m.infos[k]
		if info.depth > 0 {
			depth = info.depth
			break
		}
		if info.depth < 0 {
			last := path[len(path)-1]
			m.infos[last].isCut = true
			r := &m.records[last]
			m.problem(r.Offset, "DebugInlinedAt %%%d was inlined into itself, expected no cycle", r.ID)
			break
		}
		info.depth = -1
		path = append(path, k)
		next, _ := m.records[k].id("Inlined")
		if n, ok := m.byID[next]; ok && m.records[n].Op == DebugInlinedAt {
			k = n
		} else {
			k = -1
		}
	}
	for n := len(path) - 1; n >= 0; n-- {
		info := &m.infos[path[n]]
		if depth == maxChain {
			r := &m.records[path[n]]
			m.problem(r.Offset, "DebugInlinedAt %%%d is inlined more than %d deep", r.ID, maxChain)
			info.isCut, depth = true, 0
		}
		depth++
		info.depth = depth
	}
}

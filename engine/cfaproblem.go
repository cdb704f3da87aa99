package engine

import (
	"errors"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// maxCFAProblems bounds the problems of a module before those of CFAs are left
// out.
const maxCFAProblems = 32

// cfaProblem makes it a problem of its module that the CFA of a row cannot be
// evaluated, unless the state of the thread is why.
func (s *rowSource) cfaProblem(err error) {
	m := s.module
	if m == nil || isOfState(err) || !s.told.CompareAndSwap(false, true) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.problems) < maxCFAProblems {
		m.problem("%s: the CFA of the code at %#x to %#x cannot be evaluated: %s", m.name(), s.row.Start, s.row.End, err)
	}
}

// isOfState says whether an evaluation failed for lack of a register, of memory or
// of an answer, which another thread may have.
func isOfState(err error) bool {
	var failure *plugin.Failure
	if errors.As(err, &failure) {
		return true
	}
	for _, missing := range []error{target.ErrNoMemory, target.ErrEndOfStack, object.ErrFileShrank, errUndefined, locexpr.ErrUndefined} {
		if errors.Is(err, missing) {
			return true
		}
	}
	return false
}

// name is that of the module's object, with the file that it is in.
func (m *module) name() string {
	if m.Object != nil {
		return m.Object.Name()
	}
	return m.Path
}

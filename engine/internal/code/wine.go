// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/target/wine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file has the rows of the functions at which Wine enters the code of Windows. Its code for Unix jumps to them, so
// that unwind codes do not lead back to where it was.

// wineEntries are the functions of Wine's ntdll.dll at which it enters the code of Windows.
type wineEntries struct {
	file                *pe.File
	callback, exception pe.Function
}

// newWineEntries returns the entries of a file that is Wine's ntdll.dll: that of Windows does not export the version.
func newWineEntries(o *Object) RowSource {
	f := o.pe()
	if f == nil || !strings.EqualFold(object.LastPart(o.Name()), "ntdll.dll") || !o.File.MayExport("wine_get_version") {
		return nil
	}
	exports, err := f.Exports()
	if err != nil {
		return nil // the reader of names reports it
	}
	s := wineEntries{file: f}
	for i := range exports {
		into := map[string]*pe.Function{"KiUserCallbackDispatcher": &s.callback, "KiUserExceptionDispatcher": &s.exception}[exports[i].Name]
		if fn, ok, err := f.FunctionAt(exports[i].Address); into != nil && ok && err == nil {
			*into = fn
		}
	}
	return s
}

func (s wineEntries) Row(ctx context.Context, l *Lookup) (*Row, error) {
	isIn := func(fn *pe.Function) bool { return l.Address >= fn.Start && l.Address < fn.End }
	switch {
	case isIn(&s.exception):
		row := wine.ExceptionRow()
		row.Start, row.End = s.exception.Start, s.exception.End
		l.bound(peBounds(&s.exception))
		return &Row{Rules: &row, By: trace.ByRules, Dialect: locexpr.Canonical}, nil
	case isIn(&s.callback):
		own, err := unwindCodes{s.file}.Row(ctx, l)
		if err != nil || own == nil || own.Rules.SignalFrame {
			return own, err // later versions have the frame of an interrupt, which leads to the code of Windows
		}
		guessed := otherCaller(own, trace.ByScan, wine.GuessedCaller(), nil)
		windows := otherCaller(own, trace.ByRules, wine.WindowsCaller(), guessed)
		return otherCaller(own, trace.ByRules, wine.UnixCaller(), windows), nil
	}
	return nil, nil
}

// otherCaller returns a row that leads to another caller, and to the one of the row otherwise where that is not there.
func otherCaller(row *Row, found trace.FoundBy, rules []cfi.RegisterRule, otherwise *Row) *Row {
	other, changed := *row, *row.Rules
	changed.Rules, changed.ReturnAddress = rules, wine.ReturnAddress
	other.Rules, other.By, other.Dialect, other.Otherwise, other.ToModule = &changed, found, locexpr.Canonical, otherwise, otherwise != nil
	return &other
}

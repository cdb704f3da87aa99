// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/unwindd/unwindd/engine/report"
)

func (f *dumpExprFlags) file(path string) error {
	m, err := f.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	o, d, err := report.OpenObject(path, m, bundledFormats)
	if err != nil {
		return err
	}
	defer o.Close()
	dialect, err := dialectOf(d, f.dialect, nil)
	if err != nil {
		return err
	}
	expressions, err := report.NewObjectExpressions(o, d, dialect)
	if err != nil {
		return err
	}
	var count tally
	expressions.List = counted(expressions.List, &count)
	err = f.write(func(w *writer) error {
		if f.format == "json" {
			return expressions.WriteJSON(w)
		}
		return expressions.WriteText(w, complain)
	})
	if err == nil {
		err = count.failure(path, "expression")
	}
	return err
}

// tally counts the entries of a file that could and could not be read.
type tally struct{ read, failed int }

func (t *tally) add(err error) {
	if err != nil {
		t.failed++
	} else {
		t.read++
	}
}

// failure returns the error of a file that has entries of which none could be read.
func (t *tally) failure(path, kind string) error {
	if t.failed == 0 || t.read > 0 {
		return nil
	}
	return fmt.Errorf("%s: no %s could be read", path, kind)
}

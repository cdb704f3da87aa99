package main

import (
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
)

func (f *dumpExprFlags) file(path string) error {
	m, err := f.manager()
	if err != nil {
		return err
	}
	defer m.Close()
	o, err := openObject(path)
	if err != nil {
		return err
	}
	defer o.Close()
	d, err := describe(m, o)
	if err != nil && !errors.Is(err, plugin.ErrNoArchitecture) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if d != nil {
		o.SetRelocations(d.Relocations)
	}
	text, err := expressionText(d, o, f.dialect)
	if err != nil {
		return err
	}
	var count tally
	list := counted(engine.Expressions(o, d), &count)
	err = object.Guard(func() error {
		return f.write(func(w *writer) error {
			if f.format == "json" {
				return report.WriteExpressionsJSON(w, list, text)
			}
			return report.WriteExpressions(w, list, text, complain)
		})
	})
	if err == nil {
		err = count.failure(path, "expression")
	}
	return err
}

// A tally counts what a file has and what of it could not be read.
type tally struct{ read, failed int }

func (t *tally) add(err error) {
	if err != nil {
		t.failed++
	} else {
		t.read++
	}
}

// failure is an error where nothing came of a file that has something.
func (t *tally) failure(path, what string) error {
	if t.failed == 0 || t.read > 0 {
		return nil
	}
	return fmt.Errorf("%s: no %s could be read", path, what)
}
